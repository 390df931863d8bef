// Reductions along axes: what their kernels (kernels/ops/reduce_rows.comp and reduce_columns.comp) are given.
#pragma once

#include "plan/params.hpp"
#include "record/graph.hpp"

#include <brontes/batch.hpp>

#include <array>
#include <cstdint>

namespace brontes::ops {

struct AxesAttributes {
  std::array<std::int32_t, Axes::max_size> given{};  // as the caller has them
  std::uint32_t given_count = 0;
  std::uint8_t axes = 0;  // a set of bits, once the rule has seen the shape
  bool keep_dims = false;
};
AxesAttributes axes_attributes(const Axes& axes, bool keep_dims = false);

/// The sum along the last axis.
Result<record::ValueId> sum_rows(record::Graph& graph, record::ValueId x);

// The values of the constants combine, map and finish.
enum class AxesCombine : std::uint32_t { sum = 0, product = 1, max = 2, min = 3 };
enum class AxesMap : std::uint32_t { none = 0, square = 1, magnitude = 2, exp = 3 };
enum class AxesFinish : std::uint32_t { none = 0, divide = 1, sqrt = 2, log = 3 };

// Elements of a row that one lane takes, so that no more than 16 trees of 32 vec4s are added in a chain.
inline constexpr std::uint32_t rows_most_chunk = 2048;
// Rows of a matrix that one lane takes: 16 trees of eight.
inline constexpr std::uint32_t columns_most_rows = 128;

// Loop iterations of an invocation.
constexpr std::uint32_t rows_iterations(std::uint32_t chunk, std::uint32_t lanes, bool exp) noexcept {
  const std::uint32_t vectors = plan::ceil_div(chunk, 4 * lanes);
  return (exp ? vectors / 4 : vectors / 32 + 7) + 3 + plan::tree_steps(lanes);
}
constexpr std::uint32_t columns_iterations(std::uint32_t rows) noexcept { return rows / 8 + 9; }

}  // namespace brontes::ops
