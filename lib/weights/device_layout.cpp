#include "weights/device_layout.hpp"

#include "weights/formats.hpp"
#include "weights/half.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace brontes::weights {
namespace {

static_assert(std::endian::native == std::endian::little, "rows are copied byte by byte into little-endian words");

constexpr std::uint64_t block_length = 32;

// Rows whose scales lie side by side.
constexpr std::uint64_t scale_rows = 8;

void zero(std::byte* begin, std::byte* end) {
  if (begin != end) std::memset(begin, 0, static_cast<std::size_t>(end - begin));
}

// Calls row(r, elements) for every row, to write its elements, and fills what lies between.
template <class Row>
void for_rows(DType type, std::uint64_t rows, std::uint64_t columns, std::byte* out, Row row) {
  const DeviceLayout layout = device_layout(type, rows, columns);
  std::byte* elements = out;
  for (std::uint64_t r = 0; r < rows; ++r) {
    row(r, elements);
    zero(elements + row_bytes(type, columns), elements + layout.row_words * 4);
    elements += layout.row_words * 4;
  }
  zero(elements, out + layout.total_bytes);
}

// Calls blocks(r, b, count) for `count` blocks of row r from block b on, as they are stored, and writes them. Scales
// are collected first: `out` may be memory that is slow to write a few bytes at a time.
template <class Blocks>
void split_rows(DType type, std::uint64_t rows, std::uint64_t columns, std::byte* out, Blocks blocks) {
  constexpr std::uint64_t most = 32;
  const DeviceLayout layout = device_layout(type, rows, columns);
  const std::uint64_t row_blocks = columns / block_length;
  const std::uint64_t stored_bytes = block_bytes(type);
  const std::uint64_t quant_bytes = stored_bytes - 2;
  std::byte* scales = out + layout.scales_offset;
  for (std::uint64_t first = 0; first < rows; first += scale_rows) {
    for (std::uint64_t b = 0; b < row_blocks; b += most) {
      const std::uint64_t count = std::min(most, row_blocks - b);
      std::byte collected[most * scale_rows * 2] = {};
      for (std::uint64_t r = first; r < std::min(first + scale_rows, rows); ++r) {
        const std::byte* stored = blocks(r, b, count);
        std::byte* quants = out + r * layout.row_words * 4 + b * quant_bytes;
        for (std::uint64_t i = 0; i < count; ++i, stored += stored_bytes, quants += quant_bytes) {
          std::memcpy(collected + (i * scale_rows + (r - first)) * 2, stored, 2);
          std::memcpy(quants, stored + 2, quant_bytes);
        }
      }
      std::memcpy(scales, collected, count * scale_rows * 2);
      scales += count * scale_rows * 2;
    }
  }
  zero(out + rows * layout.row_words * 4, out + layout.scales_offset);
}

std::uint32_t load_word(const std::byte* words, std::uint64_t index) {
  std::uint32_t word;
  std::memcpy(&word, words + index * sizeof word, sizeof word);
  return word;
}

}  // namespace

void repack(DType type, const std::byte* stored, std::uint64_t rows, std::uint64_t columns, std::byte* out) {
  if (rows == 0 || columns == 0) return;
  const std::uint64_t stride = row_bytes(type, columns);
  if (block_elements(type) == 1) {
    for_rows(type, rows, columns, out,
             [=](std::uint64_t r, std::byte* elements) { std::memcpy(elements, stored + r * stride, stride); });
    return;
  }
  split_rows(type, rows, columns, out, [=](std::uint64_t r, std::uint64_t b, std::uint64_t) {
    return stored + r * stride + b * block_bytes(type);
  });
}

void pack(DType type, const float* in, std::uint64_t rows, std::uint64_t columns, std::byte* out) {
  if (rows == 0 || columns == 0) return;
  if (block_elements(type) == 1) {
    for_rows(type, rows, columns, out,
             [=](std::uint64_t r, std::byte* elements) { encode(type, in + r * columns, columns, elements); });
    return;
  }
  std::byte encoded[32 * block_bytes(DType::q8_0)];
  split_rows(type, rows, columns, out, [&](std::uint64_t r, std::uint64_t b, std::uint64_t count) {
    encode(type, in + r * columns + b * block_length, count * block_length, encoded);
    return static_cast<const std::byte*>(encoded);
  });
}

void unpack(DType type, const std::byte* device, std::uint64_t rows, std::uint64_t columns, float* out) {
  const DeviceLayout layout = device_layout(type, rows, columns);
  for (std::uint64_t r = 0; r < rows; ++r) {
    const std::byte* row = device + r * layout.row_words * 4;
    const std::byte* scales = device + layout.scales_offset;
    const auto half = [](const std::byte* words, std::uint64_t i) {
      return static_cast<std::uint16_t>(load_word(words, i / 2) >> 16 * (i % 2));
    };
    for (std::uint64_t k = 0; k < columns; ++k, ++out) {
      const std::uint64_t block = k / block_length;
      const std::uint64_t scale = (r / scale_rows * (columns / block_length) + block) * scale_rows + r % scale_rows;
      switch (type) {
        case DType::f32:
        case DType::i32:  // of no weight
        case DType::mask: *out = std::bit_cast<float>(load_word(row, k)); break;
        case DType::f16: *out = from_f16(half(row, k)); break;
        case DType::bf16: *out = from_bf16(half(row, k)); break;
        case DType::q8_0: {
          const auto quant = static_cast<std::int8_t>(load_word(row, k / 4) >> 8 * (k % 4));
          *out = static_cast<float>(quant) * from_f16(half(scales, scale));
          break;
        }
        case DType::q4_0: {
          const std::uint32_t word = load_word(row, block * 4 + k % 16 / 4);
          const auto quant = static_cast<std::int32_t>(word >> (k % 4 * 8 + k % 32 / 16 * 4) & 15u);
          *out = static_cast<float>(quant - 8) * from_f16(half(scales, scale));
          break;
        }
      }
    }
  }
}

}  // namespace brontes::weights
