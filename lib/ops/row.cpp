#include "ops/row.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

namespace brontes::ops {
namespace {

// Every kernel that includes row.glsl has the same numbers.
namespace kernel = kernels::softmax_subgroup;
#define BRONTES_SAME(other)                                                                                           \
  static_assert(kernels::other::group_size + 0u == kernel::group_size && kernels::other::team + 0u == kernel::team && \
                kernels::other::columns + 0u == kernel::columns && kernels::other::aligned + 0u == kernel::aligned && \
                kernels::other::held + 0u == kernel::held && kernels::other::stage + 0u == kernel::stage &&           \
                kernels::other::certain + 0u == kernel::certain && kernels::other::in0 + 0u == kernel::in0 &&         \
                kernels::other::out0 + 0u == kernel::out0 && kernels::other::partials + 0u == kernel::partials)
BRONTES_SAME(cumsum);
BRONTES_SAME(norm);
BRONTES_SAME(norm_subgroup);
BRONTES_SAME(softmax);
#undef BRONTES_SAME
static_assert(kernels::norm_subgroup::subgroup_lanes + 0u == kernel::subgroup_lanes);

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0); }

// More would cost a GPU occupancy. On CPU drivers what does not fit into registers lies on the stack, in the
// first-level cache, which is nearer than where it came from.
constexpr std::uint32_t gpu_most_held = 8;

// Lanes of a workgroup that have registers to hold so much. With 1024 of them, Mesa 26.2.6 spills 18 times on Adreno
// 740 and 27 times on Apple's M1; of Arm no compiler is at hand.
std::uint32_t most_holding_lanes(const plan::Traits& traits) {
  switch (traits.vendor) {
    case plan::Vendor::apple:
    case plan::Vendor::arm:
    case plan::Vendor::qualcomm: return 512;
    default: return 1024;
  }
}

// Additions of a lane in one chain, and no more: each adds its rounding error.
constexpr std::uint64_t chain = 128;

// Cuts n into slices of equal length, as far as whole vec4s allow.
void slice(RowCut& cut, std::uint64_t n, std::uint64_t slices) {
  cut.slice = ceil_div(n, std::clamp<std::uint64_t>(slices, 1, n));
  if (!cut.columns) cut.slice = ceil_div(cut.slice, 4) * 4;
  cut.slices = ceil_div(n, cut.slice);
}

// The fewest slices that loop limits allow, or as near to them as slices get.
bool fit_loops(RowCut& cut, std::uint64_t n, const plan::Traits& traits) {
  while (row_iterations(cut) > traits.max_loop_iterations) {
    const RowCut before = cut;
    slice(cut, n, cut.slices + (cut.slices + 3) / 4);
    if (cut.slices == before.slices) return false;
    if (row_iterations(cut) >= row_iterations(before)) {
      cut = before;
      return false;
    }
  }
  return true;
}

void cut_columns(RowCut& cut, const RowShape& shape, const RowKernel& row, const plan::Traits& traits) {
  cut.columns = true;
  cut.aligned = shape.inner % 4 == 0;
  cut.lines = shape.outer * ceil_div(shape.inner, 4);
  // Small workgroups where there are few lines, so that every core or multiprocessor gets some.
  const std::uint64_t share = ceil_div(cut.lines, traits.cpu ? 4 : 64);
  cut.group_size = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(std::bit_floor(share), traits.cpu ? traits.subgroup_size : 32, 64));
  cut.group_size = std::min(cut.group_size, traits.max_group_invocations);
  cut.slice = shape.n;
  if (shape.n <= (traits.cpu ? row_most_held / 2 : gpu_most_held)) {
    cut.held = static_cast<std::uint32_t>(shape.n);
    return;
  }
  // Lanes that keep the device busy, and no chain of additions that is too long, neither in a slice nor over slices.
  const std::uint64_t busy = traits.cpu ? 64 : 16384;
  std::uint64_t slices = std::min(ceil_div(busy, cut.lines), ceil_div(shape.n, 128));
  const std::uint64_t at_a_time = row.chunks ? 1 : 8;
  const double root = std::sqrt(static_cast<double>(at_a_time * shape.n) / 4);  // slices are put together by four
  const auto longest = std::max(at_a_time * chain, static_cast<std::uint64_t>(root));
  slices = std::max(slices, ceil_div(shape.n, longest));
  slice(cut, shape.n, slices);
  fit_loops(cut, shape.n, traits);
}

// Lanes of a team share a row on a CPU: a subgroup, or one lane where rows are short.
void cut_rows_cpu(RowCut& cut, const RowShape& shape, const RowKernel& row, const plan::Traits& traits,
                  std::uint32_t most_lanes) {
  const std::uint64_t vectors = ceil_div(shape.n, 4);
  if (vectors <= row_most_held / 2) {
    cut.group_size = std::min(64u, most_lanes);
    cut.held = static_cast<std::uint32_t>(vectors);
    return;
  }
  cut.team = std::min(std::bit_floor(traits.subgroup_size), most_lanes);
  // All of the team must be lanes of one subgroup.
  cut.subgroups = cut.single = row.subgroup != row.plain && traits.subgroup_operations && traits.exact_subgroups &&
                               cut.team > 1 && cut.team == plan::real_lanes(traits);
  if (ceil_div(vectors, cut.team) <= row_most_held) {
    cut.held = static_cast<std::uint32_t>(ceil_div(vectors, cut.team));
    cut.group_size = cut.team;
    return;
  }
  const std::uint64_t few = 16;
  for (;; cut.team *= 2) {
    cut.group_size = cut.team;
    std::uint64_t slices = cut.lines < few ? std::min(ceil_div(few, cut.lines), ceil_div(shape.n, 4096)) : 1;
    slices = std::max(slices, ceil_div(shape.n, (row.chunks ? 4 : 32) * chain * cut.team));
    slice(cut, shape.n, slices);
    if (fit_loops(cut, shape.n, traits) || 2 * cut.team > most_lanes) return;
    cut.subgroups = cut.single = false;
  }
}

void cut_rows_gpu(RowCut& cut, const RowShape& shape, const RowKernel& row, const plan::Traits& traits,
                  std::uint32_t most_lanes) {
  constexpr std::uint32_t most_held = gpu_most_held;
  const std::uint64_t vectors = ceil_div(shape.n, 4);
  const std::uint32_t usual = std::min(256u, most_lanes);
  // Four vec4s per lane, more if it would take more than the usual workgroup, and then larger workgroups.
  const std::uint64_t wanted = std::bit_ceil(ceil_div(vectors, 4));
  cut.team = static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, usual));
  const std::uint32_t most_holding = std::min(most_lanes, most_holding_lanes(traits));
  while (ceil_div(vectors, cut.team) > most_held && 2 * cut.team <= most_holding) cut.team *= 2;
  if (ceil_div(vectors, cut.team) <= most_held) {
    cut.held = static_cast<std::uint32_t>(ceil_div(vectors, cut.team));
    const std::uint64_t lanes = std::bit_ceil(std::min<std::uint64_t>(cut.lines, usual) * cut.team);
    cut.group_size = std::max(cut.team, static_cast<std::uint32_t>(std::min<std::uint64_t>(lanes, usual)));
  } else {
    cut.team = cut.group_size = usual;
    slice(cut, shape.n, ceil_div(shape.n, std::uint64_t{32} * usual));
    fit_loops(cut, shape.n, traits);
  }
  cut.subgroups = row.subgroup != row.plain && traits.subgroup_operations && cut.team == cut.group_size &&
                  cut.team > traits.subgroup_size;
}

}  // namespace

Error resolve_axis(const char* op, const Shape& shape, std::int64_t& axis) {
  const auto rank = static_cast<std::int64_t>(shape.rank());
  if (axis < -rank || axis >= rank) {
    return Error(Errc::invalid_argument, std::string(op) + ": axis " + std::to_string(axis) + " of a tensor of " +
                                             to_string(shape) + "; expected " + std::to_string(-rank) + " to " +
                                             std::to_string(rank - 1));
  }
  if (axis < 0) axis += rank;
  return {};
}

RowShape row_shape(const Shape& shape, std::int64_t axis) noexcept {
  RowShape row;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    (at < axis ? row.outer : at == axis ? row.n : row.inner) *= shape[i];
  }
  return row;
}

// Every team must have a line, and every lane its vec4s.
std::uint32_t RowCut::certain(const RowKernel& row) const noexcept {
  if (held == 0 || row.chunks || lines % (group_size / team) != 0) return 0;
  return columns || 4 * std::uint64_t{team} * held <= slice ? held : held - 1;
}

std::uint64_t RowCut::groups() const noexcept { return ceil_div(lines * slices, group_size / team); }

std::uint64_t RowCut::partial_bytes(const RowKernel& row) const noexcept {
  return lines * slices * row.planes * (columns ? 4 : 1) * sizeof(float);
}

std::uint64_t row_iterations(const RowCut& cut) noexcept {
  if (cut.held != 0) return 4 * (plan::tree_steps(cut.team) + 1);
  const std::uint64_t steps = cut.columns ? cut.slice : ceil_div(cut.slice, 4 * std::uint64_t{cut.team});
  // Two loops of eight vec4s per iteration look at the line, one of four writes it, and up to three look at the slices.
  const std::uint64_t looking = 2 * (ceil_div(steps, 8) + 5);
  const std::uint64_t writing = steps / 4 + 5;
  const std::uint64_t gathering = 3 * (ceil_div(cut.slices, 4 * std::uint64_t{cut.team}) + 1);
  const std::uint64_t meeting = cut.team == 1 || cut.single ? 0 : 4 * (plan::tree_steps(cut.team) + 1);
  return meeting + (cut.slices == 1 ? looking + writing : std::max(looking, gathering + writing));
}

RowCut cut_rows(const RowShape& shape, const RowKernel& row, const plan::Traits& traits) {
  RowCut cut;
  if (shape.inner > 1) {
    cut_columns(cut, shape, row, traits);
    return cut;
  }
  cut.lines = shape.outer;
  cut.aligned = shape.n % 4 == 0;
  cut.slice = shape.n;
  const std::uint32_t most_lanes =
      std::bit_floor(std::max(1u, std::min({traits.max_group_invocations, traits.max_shared_bytes / 4, 1024u})));
  (traits.cpu ? cut_rows_cpu : cut_rows_gpu)(cut, shape, row, traits, most_lanes);
  // Several teams in a workgroup, if one each is more than the grid takes.
  while (!plan::fold(cut.groups(), traits) && 2 * cut.group_size <= most_lanes) {
    cut.group_size *= 2;
    cut.subgroups = cut.single = false;
  }
  return cut;
}

Error lower_row(plan::Lowering& to, std::uint32_t group, const RowShape& shape, const RowKernel& row,
                CompleteRow complete) {
  if (shape.count() == 0) return {};
  const RowCut cut = cut_rows(shape, row, to.traits);
  plan::Region partials;
  const auto emit = [&](RowStage stage) {
    plan::Dispatch dispatch(cut.subgroups ? row.subgroup : row.plain, group);
    dispatch.work = shape.count();
    dispatch.set(kernel::group_size, cut.group_size);
    dispatch.set(kernel::team, cut.team);
    dispatch.set(kernel::columns, cut.columns ? 1 : 0);
    dispatch.set(kernel::aligned, cut.aligned ? 1 : 0);
    dispatch.set(kernel::held, cut.held);
    dispatch.set(kernel::stage, static_cast<std::uint32_t>(stage));
    dispatch.set(kernel::certain, cut.certain(row));
    if (cut.subgroups) dispatch.set(kernel::subgroup_lanes, cut.single ? cut.team : 0);
    kernels::RowParams params{};
    params.n = static_cast<std::uint32_t>(shape.n);
    params.inner = static_cast<std::uint32_t>(shape.inner);
    params.lines = static_cast<std::uint32_t>(cut.lines);
    params.slice = static_cast<std::uint32_t>(cut.slice);
    params.slices = static_cast<std::uint32_t>(cut.slices);
    params.count = static_cast<std::uint32_t>(shape.count());
    params.groups = static_cast<std::uint32_t>(cut.groups());
    bind_operand(to, group, dispatch, params.prologue);
    if (stage == RowStage::finish) dispatch.bind(kernel::partials, partials);
    dispatch.bind(kernel::out0, stage == RowStage::partial ? partials : to.result(group));
    if (stage != RowStage::partial) set_epilogue(to, group, dispatch, params.epilogue);
    complete(to, group, stage, dispatch, params);
    dispatch.params(params);
    return to.emit(dispatch, params.groups);
  };
  if (cut.slices == 1) return emit(RowStage::whole);
  partials = to.arena.reserve(cut.partial_bytes(row));
  if (Error e = emit(RowStage::partial)) return e;
  return emit(RowStage::finish);
}

}  // namespace brontes::ops
