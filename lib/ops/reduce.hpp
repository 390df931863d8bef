// Reductions of all elements to one: sum, dot, max and min.
#pragma once

#include "plan/params.hpp"
#include "record/graph.hpp"

#include <cstdint>

namespace brontes::ops {

enum class ReduceOp : std::uint8_t { sum, dot, max, min };
const char* name(ReduceOp op) noexcept;

Result<record::ValueId> reduce(record::Graph& graph, ReduceOp op, Span<const record::ValueId> inputs);

// kernels/reduce/reduce.comp. Workgroup g reduces [g * chunk, min(n, (g + 1) * chunk)) to out[g].

enum class ReduceCombine : std::uint32_t { sum = 0, max = 1, min = 2 };

// A round is 16 elements of each invocation. Of a sum a chunk has no more rounds than these: each is a rounding error.
inline constexpr std::uint32_t reduce_most_rounds = 256;

constexpr std::uint32_t reduce_iterations(std::uint32_t chunk, std::uint32_t group_size) noexcept {
  return plan::ceil_div(chunk, 16 * group_size) + plan::tree_steps(group_size) + 2;
}

constexpr std::uint32_t reduce_shared_bytes(std::uint32_t group_size) noexcept { return 4 * group_size; }

}  // namespace brontes::ops
