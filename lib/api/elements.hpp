// Elements on their way between host and device: as they are, or f16 from and to floats.
#pragma once

#include "weights/half.hpp"

#include <brontes/error.hpp>
#include <brontes/tensor.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace brontes {

inline std::vector<std::uint16_t> halves_of(Span<const float> data) {
  std::vector<std::uint16_t> halves(data.size());
  std::transform(data.begin(), data.end(), halves.begin(), weights::to_f16);
  return halves;
}

/// Fills `out` with elements that are stored as `stored`: read(to, bytes) brings them.
template <class T, class Read>
Error read_elements(DType stored, Span<T> out, Read read) {
  const std::size_t count = out.size();
  if constexpr (std::is_same_v<T, float>) {
    if (stored == DType::f16) {
      // Into the upper half of the output, from where they are widened one after the other: each float ends before the
      // halves that come after its own.
      auto* const bytes = reinterpret_cast<std::byte*>(out.data());
      if (Error e = read(bytes + 2 * count, 2 * count)) return e;
      for (std::size_t i = 0; i < count; ++i) {
        std::uint16_t half = 0;
        std::memcpy(&half, bytes + 2 * count + 2 * i, sizeof half);
        const float wide = weights::from_f16(half);
        std::memcpy(bytes + 4 * i, &wide, sizeof wide);
      }
      return {};
    }
  }
  return read(out.data(), count * sizeof(T));
}

/// The other way round: write(offset, from, bytes) may be called more than once, with an offset in bytes.
template <class T, class Write>
Error write_elements(DType stored, Span<const T> data, Write write) {
  if constexpr (std::is_same_v<T, float>) {
    if (stored == DType::f16) {
      std::array<std::uint16_t, 4096> halves;
      for (std::size_t first = 0; first < data.size(); first += halves.size()) {
        const std::size_t count = std::min(halves.size(), data.size() - first);
        std::transform(data.begin() + first, data.begin() + first + count, halves.begin(), weights::to_f16);
        if (Error e = write(2 * first, halves.data(), 2 * count)) return e;
      }
      return {};
    }
  }
  return write(0, data.data(), data.size() * sizeof(T));
}

}  // namespace brontes
