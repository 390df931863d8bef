// What the cases of ops along one axis have in common.
#pragma once

#include <brontes/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace brontes::cases {

struct RowCase {
  Shape shape;
  std::int64_t axis = -1;

  std::size_t index() const {
    return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(shape.rank()) : axis);
  }
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

}  // namespace brontes::cases
