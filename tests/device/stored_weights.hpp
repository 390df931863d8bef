// Weights as files store them, and what they mean: written from the definition of each format, apart from the library.
#pragma once

#include "reference.hpp"

#include <brontes/tensor.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace brontes::test {

inline constexpr DType all_types[] = {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0};

inline bool quantized(DType type) { return type == DType::q8_0 || type == DType::q4_0; }

/// The number that 16 bits of IEEE binary16 stand for.
inline float half_value(unsigned bits) {
  const int sign = (bits >> 15) != 0 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> 10 & 31u);
  const int fraction = static_cast<int>(bits & 1023u);
  if (exponent == 31) {
    return fraction != 0 ? std::numeric_limits<float>::quiet_NaN()
                         : static_cast<float>(sign) * std::numeric_limits<float>::infinity();
  }
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 15 - 10);
  return static_cast<float>(sign * magnitude);
}

struct StoredWeights {
  std::vector<std::byte> bytes;  // rows one after the other, row_bytes() each
  std::vector<float> values;     // what each of them is worth
};

/// Any bits that make finite numbers of at most about 1, reproducibly.
inline StoredWeights random_stored(DType type, std::uint64_t rows, std::uint64_t columns, std::uint64_t seed) {
  StoredWeights result;
  const std::size_t count = rows * columns;
  // Whole numbers below 2^16 carry the bits.
  const std::vector<float> noise = cases::random_integers(2 * count + 64, 32767, seed);
  std::size_t next = 0;
  const auto bits16 = [&] { return static_cast<std::uint16_t>(static_cast<int>(noise[next++]) + 32767); };
  const auto put = [&](const void* data, std::size_t size) {
    const auto* bytes = static_cast<const std::byte*>(data);
    result.bytes.insert(result.bytes.end(), bytes, bytes + size);
  };
  // Magnitudes below 1, denormals included.
  const auto half_below_one = [&] { return static_cast<std::uint16_t>(bits16() & 0xbbffu); };
  result.values.reserve(count);
  while (result.values.size() < count) {
    switch (type) {
      case DType::i32:  // no weight has these
      case DType::mask:
      case DType::f32: {
        const float value = noise[next++] / 32768.0f;
        put(&value, 4);
        result.values.push_back(value);
        break;
      }
      case DType::f16: {
        const std::uint16_t half = half_below_one();
        put(&half, 2);
        result.values.push_back(half_value(half));
        break;
      }
      case DType::bf16: {
        // Exponents from 2^-32 to 1.
        const std::uint16_t drawn = bits16();
        const auto brain = static_cast<std::uint16_t>((drawn & 0x807fu) | (95u + (drawn >> 7 & 31u)) << 7);
        put(&brain, 2);
        const std::uint32_t word = std::uint32_t{brain} << 16;
        float value = 0;
        std::memcpy(&value, &word, 4);
        result.values.push_back(value);
        break;
      }
      case DType::q8_0: {
        const std::uint16_t scale = static_cast<std::uint16_t>(half_below_one() & 0xa3ffu);  // below 2^-6
        put(&scale, 2);
        for (int i = 0; i < 32; ++i) {
          const auto quant = static_cast<std::int8_t>(bits16() >> 4);
          put(&quant, 1);
          result.values.push_back(static_cast<float>(quant) * half_value(scale));
        }
        break;
      }
      case DType::q4_0: {
        const std::uint16_t scale = static_cast<std::uint16_t>(half_below_one() & 0xb3ffu);  // below 2^-2
        put(&scale, 2);
        float high[16];
        for (float& value : high) {
          const auto pair = static_cast<std::uint8_t>(bits16() >> 4);
          put(&pair, 1);
          result.values.push_back(static_cast<float>((pair & 15) - 8) * half_value(scale));
          value = static_cast<float>((pair >> 4) - 8) * half_value(scale);
        }
        result.values.insert(result.values.end(), high, high + 16);
        break;
      }
    }
  }
  return result;
}

/// Numbers that `type` holds without rounding, below 1 in magnitude.
inline std::vector<float> exact_values(DType type, std::uint64_t rows, std::uint64_t columns, std::uint64_t seed) {
  const std::size_t count = rows * columns;
  switch (type) {
    case DType::i32:  // no weight has these
    case DType::mask:
    case DType::f32: return cases::random_values(count, -1, 1, seed);
    case DType::f16: {
      std::vector<float> values = cases::random_integers(count, 1023, seed);
      for (float& v : values) v /= 1024.0f;
      return values;
    }
    case DType::bf16: {
      std::vector<float> values = cases::random_integers(count, 127, seed);
      for (float& v : values) v /= 128.0f;
      return values;
    }
    case DType::q8_0: {
      // The largest of each block is 127 steps.
      std::vector<float> values = cases::random_integers(count, 126, seed);
      for (std::size_t i = 0; i < count; i += 32) values[i + i / 32 % 32] = i % 64 == 0 ? 127.0f : -127.0f;
      for (float& v : values) v /= 128.0f;
      return values;
    }
    case DType::q4_0: {
      // The largest of each block is -8 steps, which are positive or negative.
      std::vector<float> values = cases::random_integers(count, 7, seed);
      for (std::size_t i = 0; i < count; i += 32) values[i + i / 32 % 32] = -8.0f;
      for (std::size_t i = 0; i < count; ++i) values[i] /= i % 64 < 32 ? 16.0f : -16.0f;
      return values;
    }
  }
  return {};
}

}  // namespace brontes::test
