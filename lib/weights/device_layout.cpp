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

// The low nibbles of eight bytes, next to each other.
std::uint32_t low_nibbles(std::uint64_t bytes) {
  bytes &= 0x0f0f0f0f0f0f0f0fu;
  bytes = (bytes | bytes >> 4) & 0x00ff00ff00ff00ffu;
  bytes = (bytes | bytes >> 8) & 0x0000ffff0000ffffu;
  return static_cast<std::uint32_t>(bytes | bytes >> 16);
}

void split_q8_0(const std::byte* stored, std::uint64_t blocks, std::byte* quants, std::byte* scales) {
  for (; blocks > 0; --blocks, stored += block_bytes(DType::q8_0), quants += 32, scales += 2) {
    std::memcpy(scales, stored, 2);
    std::memcpy(quants, stored + 2, 32);
  }
}

void split_q4_0(const std::byte* stored, std::uint64_t blocks, std::byte* quants, std::byte* scales) {
  for (; blocks > 0; --blocks, stored += block_bytes(DType::q4_0), quants += 16, scales += 2) {
    std::uint64_t pairs[2];
    std::memcpy(pairs, stored + 2, sizeof pairs);
    const std::uint32_t words[4] = {low_nibbles(pairs[0]), low_nibbles(pairs[1]), low_nibbles(pairs[0] >> 4),
                                    low_nibbles(pairs[1] >> 4)};
    std::memcpy(scales, stored, 2);
    std::memcpy(quants, words, sizeof words);
  }
}

void split(DType type, const std::byte* stored, std::uint64_t blocks, std::byte* quants, std::byte* scales) {
  if (type == DType::q8_0) {
    split_q8_0(stored, blocks, quants, scales);
  } else {
    split_q4_0(stored, blocks, quants, scales);
  }
}

void zero(std::byte* begin, std::byte* end) {
  if (begin != end) std::memset(begin, 0, static_cast<std::size_t>(end - begin));
}

// Calls row(r, elements, scales) for every row, to write them, and fills what lies between.
template <class Row>
void for_rows(DType type, std::uint64_t rows, std::uint64_t columns, std::byte* out, Row row) {
  const DeviceLayout layout = device_layout(type, rows, columns);
  const bool scaled = block_elements(type) > 1;
  const std::uint64_t blocks = columns / block_elements(type);
  const std::uint64_t used = blocks * (block_bytes(type) - (scaled ? 2 : 0));
  std::byte* elements = out;
  std::byte* scales = out + layout.scales_offset;
  for (std::uint64_t r = 0; r < rows; ++r) {
    row(r, elements, scales);
    zero(elements + used, elements + layout.row_words * 4);
    elements += layout.row_words * 4;
    if (!scaled) continue;
    zero(scales + blocks * 2, scales + layout.scale_row_words * 4);
    scales += layout.scale_row_words * 4;
  }
  zero(elements, out + (scaled ? layout.scales_offset : layout.total_bytes));
  if (scaled) zero(scales, out + layout.total_bytes);
}

std::uint32_t load_word(const std::byte* words, std::uint64_t index) {
  std::uint32_t word;
  std::memcpy(&word, words + index * sizeof word, sizeof word);
  return word;
}

}  // namespace

void repack(DType type, const std::byte* stored, std::uint64_t rows, std::uint64_t columns, std::byte* out) {
  const std::uint64_t stride = row_bytes(type, columns);
  if (block_elements(type) == 1) {
    for_rows(type, rows, columns, out, [=](std::uint64_t r, std::byte* elements, std::byte*) {
      if (stride != 0) std::memcpy(elements, stored + r * stride, stride);
    });
    return;
  }
  for_rows(type, rows, columns, out, [=](std::uint64_t r, std::byte* elements, std::byte* scales) {
    split(type, stored + r * stride, columns / block_length, elements, scales);
  });
}

void pack(DType type, const float* in, std::uint64_t rows, std::uint64_t columns, std::byte* out) {
  if (block_elements(type) == 1) {
    for_rows(type, rows, columns, out, [=](std::uint64_t r, std::byte* elements, std::byte*) {
      encode(type, in + r * columns, columns, elements);
    });
    return;
  }
  constexpr std::uint64_t most_blocks = 32;
  std::byte stored[most_blocks * block_bytes(DType::q8_0)];
  const std::uint64_t quant_bytes = block_bytes(type) - 2;
  for_rows(type, rows, columns, out, [&](std::uint64_t r, std::byte* elements, std::byte* scales) {
    const std::uint64_t row_blocks = columns / block_length;
    for (std::uint64_t b = 0; b < row_blocks; b += most_blocks) {
      const std::uint64_t blocks = std::min(most_blocks, row_blocks - b);
      encode(type, in + r * columns + b * block_length, blocks * block_length, stored);
      split(type, stored, blocks, elements + b * quant_bytes, scales + b * 2);
    }
  });
}

void unpack(DType type, const std::byte* device, std::uint64_t rows, std::uint64_t columns, float* out) {
  const DeviceLayout layout = device_layout(type, rows, columns);
  for (std::uint64_t r = 0; r < rows; ++r) {
    const std::byte* row = device + r * layout.row_words * 4;
    const std::byte* scales = device + layout.scales_offset + r * layout.scale_row_words * 4;
    const auto half = [](const std::byte* words, std::uint64_t i) {
      return static_cast<std::uint16_t>(load_word(words, i / 2) >> 16 * (i % 2));
    };
    for (std::uint64_t k = 0; k < columns; ++k, ++out) {
      const std::uint64_t block = k / block_length;
      switch (type) {
        case DType::f32:
        case DType::i32:  // of no weight
        case DType::mask: *out = std::bit_cast<float>(load_word(row, k)); break;
        case DType::f16: *out = from_f16(half(row, k)); break;
        case DType::bf16: *out = from_bf16(half(row, k)); break;
        case DType::q8_0: {
          const auto quant = static_cast<std::int8_t>(load_word(row, k / 4) >> 8 * (k % 4));
          *out = static_cast<float>(quant) * from_f16(half(scales, block));
          break;
        }
        case DType::q4_0: {
          const auto quant = static_cast<std::int32_t>(load_word(row, k / 8) >> 4 * (k % 8) & 15u);
          *out = static_cast<float>(quant - 8) * from_f16(half(scales, block));
          break;
        }
      }
    }
  }
}

}  // namespace brontes::weights
