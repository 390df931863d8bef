// How a weight matrix lies in device memory, where the smallest load may be a 32-bit word.
#pragma once

#include <brontes/tensor.hpp>

#include <cstddef>
#include <cstdint>

namespace brontes::weights {

/// Where things are in the device's copy of a weight matrix [rows, columns]. All of it can be read as
/// 32-bit words; words are little-endian, so the first element is in the low bits.
///
/// First come the elements. Element k of row r is in word r * row_words + k / n, n elements to a word:
///   f32          n = 1, rows packed as they come
///   f16, bf16    n = 2, in bits 16 (k % 2) and up
///   q8_0         n = 4, a signed byte in bits 8 (k % 4) and up, worth q * d
///   q4_0         n = 8, worth (q - 8) * d: word k % 16 / 4 of the four of a block of 32 has elements k % 16 in the low
///                nibbles of its bytes, and those 16 further on in the high ones, as files have them
/// Except for f32, every row starts at a multiple of 16 bytes, so vec4 loads of words stay in their row.
///
/// Then, for q8_0 and q4_0, the scales d at byte scales_offset, a multiple of 256: one f16 for each block of a row.
/// Those of eight rows for the same block are 16 bytes, as many columns of a product need at a time, and those of the
/// next block follow: the scale of block b = k / 32 of row r is number (r / 8 * blocks + b) * 8 + r % 8, where a row
/// has `blocks`.
///
/// Whatever lies between is zero.
struct DeviceLayout {
  std::uint64_t row_words = 0;      ///< from one row of elements to the next
  std::uint64_t scales_offset = 0;  ///< in bytes; 0 for types without scales
  /// A multiple of 16, or Shape::no_count when the size is beyond reason (2^60 bytes).
  std::uint64_t total_bytes = 0;

  friend constexpr bool operator==(const DeviceLayout&, const DeviceLayout&) = default;
};

/// Rows must be whole blocks: row_ok() of weights/formats.hpp. A part of the rows is a matrix, too: a
/// weight that is too large for one buffer becomes several of these.
constexpr DeviceLayout device_layout(DType type, std::uint64_t rows, std::uint64_t columns) noexcept {
  constexpr auto round_up = [](std::uint64_t bytes, std::uint64_t to) { return (bytes + to - 1) / to * to; };
  DeviceLayout layout;
  switch (type) {
    case DType::f32:
    case DType::i32:  // of no weight
    case DType::mask: layout.row_words = columns; break;
    case DType::f16:
    case DType::bf16: layout.row_words = columns / 8 * 4 + (columns % 8 != 0 ? 4 : 0); break;
    case DType::q8_0: layout.row_words = columns / 4; break;
    case DType::q4_0: layout.row_words = columns / 8; break;
  }
  constexpr std::uint64_t most_words = std::uint64_t{1} << 58;
  if (rows != 0 && layout.row_words > most_words / rows) {
    layout.total_bytes = Shape::no_count;
    return layout;
  }
  layout.total_bytes = round_up(rows * layout.row_words * 4, 16);
  if (block_elements(type) > 1) {
    const std::uint64_t blocks = columns / block_elements(type);
    layout.scales_offset = round_up(layout.total_bytes, 256);
    layout.total_bytes = layout.scales_offset + (rows / 8 + (rows % 8 != 0 ? 1 : 0)) * blocks * 16;
  }
  return layout;
}

/// Writes the device's copy of weights that are encoded as in weights/formats.hpp, row after row. Every
/// byte of `out`, total_bytes of them, is written once and none is read, so that it may be mapped device
/// memory. Loses nothing.
void repack(DType type, const std::byte* stored, std::uint64_t rows, std::uint64_t columns, std::byte* out);

/// encode() and repack() in one, with no copy of the encoded matrix in between.
void pack(DType type, const float* in, std::uint64_t rows, std::uint64_t columns, std::byte* out);

/// The weights in a device's copy, read word by word as a kernel does; exactly what decode() gives for
/// the rows that were repacked. Slow: for tests.
void unpack(DType type, const std::byte* device, std::uint64_t rows, std::uint64_t columns, float* out);

}  // namespace brontes::weights
