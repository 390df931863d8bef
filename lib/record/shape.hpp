// Shape rules: what fits what. Pure functions.
#pragma once

#include <brontes/error.hpp>
#include <brontes/tensor.hpp>

#include <array>
#include <cstdint>
#include <optional>

namespace brontes::record {

/// How a smaller operand repeats over a larger result: element j of the result reads element
/// (j / div) % mod of the operand.
struct Repeat {
  std::uint64_t div = 1;
  std::uint64_t mod = 1;
};

/// The numpy result shape of two operands aligned at the last dim, or nothing when they do not fit.
std::optional<Shape> broadcast(const Shape& a, const Shape& b);

/// The repetition of `operand` over `result`, or nothing when it is not of this form: dims that repeat may lie before
/// and after the operand's own dims, not between them.
std::optional<Repeat> repetition(const Shape& operand, const Shape& result);

/// How element j of a result finds its element of an operand in any case: the coordinates of j along `extents`,
/// outermost first, times the strides, from `offset` on. In elements; as few dims as describe it, none of extent 1.
struct Access {
  std::array<std::uint32_t, Shape::max_rank> extents{};
  std::array<std::int32_t, Shape::max_rank> strides{};
  std::uint32_t offset = 0;
  std::uint32_t rank = 0;

  std::uint64_t operator()(std::uint64_t j) const noexcept;
};

/// What a kernel can be told about how all operands of an elementwise op are read, in 32-bit numbers.
inline constexpr std::uint32_t max_access_words = 22;
/// What one of them takes of that: an offset, and extent and stride of every dim but the extent of the outermost. None
/// where element j is element j or always the first.
constexpr std::uint32_t access_words(const Access& a) noexcept {
  if (a.offset == 0 && (a.rank == 0 || (a.rank == 1 && (a.strides[0] == 1 || a.strides[0] == 0)))) return 0;
  return 2 * (a.rank == 0 ? 1 : a.rank);
}

/// Of a result with this shape, whose dims have these strides in the operand.
Access access(const Shape& result, Span<const std::int32_t> strides, std::uint32_t offset);
/// Of an operand that is broadcast to the result.
Access broadcast_access(const Shape& operand, const Shape& result);
/// The same as a repetition, where it is one, and back.
std::optional<Repeat> repetition(const Access& access);
Access access(const Repeat& repeat, std::uint64_t count);

/// Without dims of extent 1; {1} where nothing else is left.
Shape squeezed(const Shape& shape);
/// With a dim of extent 1 before `axis`, which counts from the end if negative; nothing for an axis that is not there,
/// or where there is no room.
std::optional<Shape> unsqueezed(const Shape& shape, std::int64_t axis);

/// a * b, or nothing past 64 bits.
std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b);

}  // namespace brontes::record
