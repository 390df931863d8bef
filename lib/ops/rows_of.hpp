// Shapes of ops that take rows of a table by index.
#pragma once

#include <brontes/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace brontes::ops {

/// The index's dims, then those of a row of the table; nothing where that is more than a shape has.
inline std::optional<Shape> rows_shape(const Shape& index, const Shape& table) {
  const std::size_t rank = index.rank() + table.rank() - 1;
  if (rank > Shape::max_rank) return std::nullopt;
  std::array<std::uint64_t, Shape::max_rank> dims{};
  for (std::size_t i = 0; i < rank; ++i) dims[i] = i < index.rank() ? index[i] : table[i - index.rank() + 1];
  return Shape::of({dims.data(), rank});
}

/// Elements of a row of the table.
inline std::uint64_t row_width(const Shape& table) {
  std::uint64_t width = 1;
  for (std::size_t i = 1; i < table.rank(); ++i) width *= table[i];
  return width;
}

}  // namespace brontes::ops
