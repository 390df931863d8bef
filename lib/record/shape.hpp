// Shape rules: what fits what. Pure functions.
#pragma once

#include <brontes/error.hpp>
#include <brontes/tensor.hpp>

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

/// The repetition of `operand` over `result`, or nothing when it is not of the one form the kernels
/// know: dims that repeat may lie before and after the operand's own dims, not between them.
std::optional<Repeat> repetition(const Shape& operand, const Shape& result);

/// a * b, or nothing past 64 bits.
std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b);

}  // namespace brontes::record
