// How weights are stored: f32 to and from every DType, in the layout of GGUF files. Pure functions.
#pragma once

#include <brontes/error.hpp>
#include <brontes/tensor.hpp>

#include <cstddef>
#include <cstdint>

namespace brontes::weights {

/// True when a row of `columns` elements is made of whole blocks. Whoever takes weights from a caller
/// refuses other rows (check() does), and everything below relies on it.
constexpr bool row_ok(DType type, std::uint64_t columns) noexcept { return columns % block_elements(type) == 0; }

/// Whether encode() keeps the weights [rows, columns] within error_bound(). Errc::shape_mismatch when
/// rows are not whole blocks. For q8_0 and q4_0 Errc::invalid_argument, with the position, for NaN and
/// Inf, since the whole block shares one scale and 32 weights would go, and for a magnitude whose scale
/// is past the largest f16 (from 8321040 and 524160 on). The other types take anything: NaN and Inf stay
/// what they are, and f16 makes Inf of magnitudes from 65520 on, as IEEE 754 has it.
Error check(DType type, const float* in, std::uint64_t rows, std::uint64_t columns);

/// The same for weights that come encoded: q8_0 and q4_0 blocks with a NaN or Inf for a scale are
/// refused with their position.
Error check_stored(DType type, const std::byte* in, std::uint64_t rows, std::uint64_t columns);

/// Encodes `count` elements, a multiple of block_elements(type), to row_bytes(type, count) bytes.
///
/// f16 and bf16 round to nearest even. q8_0 and q4_0 give the bytes of ggml's reference: with m the
/// element of largest magnitude, the first of several, and id = 1 / d in f32,
///   q8_0: f16 d = |m| / 127, then 32 signed bytes, x * id rounded half away from zero;
///   q4_0: f16 d = m / -8, then 16 bytes of q = min(15, int(x * id + 8.5)), elements 0 to 15 in the low
///         nibbles and 16 to 31 in the high ones, worth (q - 8) * d.
/// A d too small to have an inverse counts as 0; ggml's result is undefined there. A quantised block that
/// check() refuses for NaN or Inf becomes all NaN.
///
/// Neither pointer needs an alignment; `in` and `out` must not overlap.
void encode(DType type, const float* in, std::uint64_t count, std::byte* out);

/// Decodes `count` elements, a multiple of block_elements(type).
void decode(DType type, const std::byte* in, std::uint64_t count, float* out);

/// The most by which a decoded weight differs from the one that was encoded, where `largest` is the
/// largest magnitude in its block, or its own where a block is one element. Infinity where encode()
/// overflows. With a = `largest`:
///   f16   max(a / 2^11, 2^-25)
///   bf16  max(a / 2^8, 2^-134)
///   q8_0  a / 254 + max(a / 2^11, 127 * 2^-25) + a / 2^21
///   q4_0  a / 8   + max(a / 2^11,   8 * 2^-25) + a / 2^21
/// For the quantised types these are rounding to the grid (a whole step for q4_0, whose grid ends at
/// 7 d on one side), rounding d to f16, and f32 arithmetic.
double error_bound(DType type, double largest) noexcept;

}  // namespace brontes::weights
