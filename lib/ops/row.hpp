// Ops along one axis: which axis, and how the work is cut into lines, teams and slices. kernels/include/row.glsl says
// what these are.
#pragma once

#include "plan/params.hpp"
#include "plan/plan.hpp"

#include <brontes/error.hpp>
#include <brontes/tensor.hpp>

#include <cstdint>

namespace brontes::ops {

/// Turns an axis counted from the end into one from the front. Errc::invalid_argument if the shape has no such axis.
Error resolve_axis(const char* op, const Shape& shape, std::int64_t& axis);

/// A tensor seen along one axis.
struct RowShape {
  std::uint64_t outer = 1, n = 1, inner = 1;

  std::uint64_t count() const noexcept { return outer * n * inner; }
};
RowShape row_shape(const Shape& shape, std::int64_t axis) noexcept;

enum class RowStage : std::uint32_t { whole = 0, partial = 1, finish = 2 };

inline constexpr std::uint32_t row_most_held = 32;  // by a lane, in kernels/include/row.glsl

/// A kernel that includes row.glsl.
struct RowKernel {
  kernels::Id plain;
  kernels::Id subgroup;      // with subgroup arithmetic; `plain` again if there is none
  std::uint32_t planes = 2;  // floats, or vec4s for columns, that RowStage::partial leaves for a slice
  /// Lanes have a part of the row each, which they add up step by step, instead of every team-th vec4, of which they
  /// add up eight at a time.
  bool chunks = false;
};

struct RowCut {
  std::uint32_t group_size = 1;
  std::uint32_t team = 1;
  bool columns = false;
  bool aligned = false;
  std::uint32_t held = 0;
  bool subgroups = false;  // the variant with subgroup arithmetic
  bool single = false;     // the workgroup is one subgroup
  std::uint64_t lines = 0;
  std::uint64_t slice = 0;  // steps along n
  std::uint64_t slices = 1;

  std::uint64_t groups() const noexcept;
  /// Of the held vec4s, those that every lane of every team has.
  std::uint32_t certain(const RowKernel& kernel) const noexcept;
  /// Memory for what stage_partial leaves.
  std::uint64_t partial_bytes(const RowKernel& kernel) const noexcept;
};

/// Most loop iterations of an invocation, in any stage.
std::uint64_t row_iterations(const RowCut& cut) noexcept;

RowCut cut_rows(const RowShape& shape, const RowKernel& kernel, const plan::Traits& traits);

/// Lowers an op along an axis of its first operand: one dispatch, or two where lines are cut into slices. `complete`
/// adds to each what only the op knows.
using CompleteRow = void (*)(const plan::Lowering& to, std::uint32_t group, RowStage stage, plan::Dispatch& dispatch,
                             kernels::RowParams& params);
Error lower_row(plan::Lowering& to, std::uint32_t group, const RowShape& shape, const RowKernel& kernel,
                CompleteRow complete);

}  // namespace brontes::ops
