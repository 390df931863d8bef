// What the cases of ops along one axis have in common.
#pragma once

#include <brontes/tensor.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace brontes::cases {

struct RowCase {
  Shape shape;
  std::int64_t axis = -1;
};

/// Rows of all kinds, with lengths that are held by one lane, by a team, and not at all.
inline std::vector<RowCase> row_cases() {
  std::vector<RowCase> all;
  for (const int n : {1, 2, 3, 4, 5, 31, 64, 65, 100, 128, 200, 256, 259, 1000, 1024, 4097, 40000}) {
    all.push_back({Shape(3, n)});
  }
  for (const int n : {1, 4, 5, 31, 260, 1000}) all.push_back({Shape(1000, n)});
  for (const int n : {4096, 4097, 100003}) all.push_back({Shape(n)});
  all.push_back({Shape(2, 3, 4, 5)});
  all.push_back({Shape(0)});
  all.push_back({Shape(3, 0)});
  all.push_back({Shape(0, 5)});
  return all;
}

/// Axes with something behind them.
inline std::vector<RowCase> column_cases() {
  std::vector<RowCase> all;
  for (const int inner : {3, 4, 65}) {
    for (const int n : {1, 2, 5, 8, 9, 31, 1000}) all.push_back({Shape(3, n, inner), 1});
  }
  all.push_back({Shape(4097, 3), 0});
  all.push_back({Shape(2, 4097, 4), 1});
  all.push_back({Shape(7, 1024), 0});
  all.push_back({Shape(300, 1023), -2});
  all.push_back({Shape(2, 3, 4, 5), 0});
  all.push_back({Shape(2, 3, 4, 5), 1});
  all.push_back({Shape(2, 3, 4, 5), -2});
  all.push_back({Shape(5, 7, 1), 1});
  all.push_back({Shape(7, 0, 3), 1});
  all.push_back({Shape(0, 6, 3), 1});
  return all;
}

/// Calls line(offset, stride) for every line along the axis.
template <class Line>
void for_lines(const RowCase& c, Line line) {
  const auto rank = static_cast<std::int64_t>(c.shape.rank());
  const auto axis = static_cast<std::size_t>(c.axis < 0 ? c.axis + rank : c.axis);
  std::uint64_t inner = 1;
  for (std::size_t i = axis + 1; i < c.shape.rank(); ++i) inner *= c.shape[i];
  const std::uint64_t n = c.shape[axis];
  for (std::uint64_t first = 0; n != 0 && first < c.shape.count(); first += n * inner) {
    for (std::uint64_t j = 0; j < inner; ++j) line(first + j, inner, n);
  }
}

/// Rounding errors that an element of a sum along a line of n takes part in, whatever the elements are.
inline double row_roundings(std::uint64_t n) {
  const double length = static_cast<double>(n);
  return std::min(length, 180 + std::sqrt(length) / 2);
}

}  // namespace brontes::cases
