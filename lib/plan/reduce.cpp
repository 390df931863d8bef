// Reductions: every workgroup reduces a chunk to one partial, a second dispatch reduces the partials.
#include "plan/params.hpp"
#include "plan/plan.hpp"

#include <algorithm>
#include <bit>

namespace brontes::plan {
namespace {

namespace kernel = kernels::reduce;

struct Pass {
  ReduceCombine combine;
  bool pair;
  Region x, y, out;
  std::uint64_t count;
  std::uint64_t chunk;
  std::uint32_t group_size;
};

Error emit(Lowering& to, std::uint32_t group, const Pass& pass, bool last) {
  Dispatch dispatch(kernels::Id::reduce, group);
  dispatch.work = pass.count;
  ReduceParams params{};
  params.n = static_cast<std::uint32_t>(pass.count);
  params.chunk = static_cast<std::uint32_t>(pass.chunk);
  params.groups = std::max(1u, ceil_div(params.n, params.chunk));
  if (last) set_epilogue(to, group, dispatch, params.epilogue);
  dispatch.params(params);
  dispatch.set(kernel::group_size, pass.group_size);
  dispatch.set(kernel::combine, static_cast<std::uint32_t>(pass.combine));
  dispatch.set(kernel::pair, pass.pair ? 1 : 0);
  if (pass.count != 0) dispatch.bind(kernel::in0, pass.x);
  if (pass.count != 0 && pass.pair) dispatch.bind(kernel::in1, pass.y);
  dispatch.bind(kernel::out0, pass.out);
  return to.emit(dispatch, params.groups);
}

ReduceCombine combine_of(record::ReduceOp op) {
  switch (op) {
    case record::ReduceOp::max: return ReduceCombine::max;
    case record::ReduceOp::min: return ReduceCombine::min;
    case record::ReduceOp::sum:
    case record::ReduceOp::dot: break;
  }
  return ReduceCombine::sum;
}

}  // namespace

Error lower_reduce(Lowering& to, std::uint32_t index) {
  const Group& group = to.grouping.groups[index];
  const record::Node& node = to.graph.nodes()[group.root];
  const Traits& traits = to.traits;

  // One subgroup per workgroup on a CPU, where lanes of different subgroups meet only at great cost.
  std::uint32_t group_size = traits.cpu ? std::max(4u, traits.subgroup_size) : 256u;
  group_size = std::bit_floor(std::min({group_size, traits.max_group_invocations, traits.max_shared_bytes / 4}));
  if (group_size == 0) {
    return Error(Errc::unsupported, "reductions need shared memory, and this device has " +
                                        std::to_string(traits.max_shared_bytes) + " bytes");
  }
  // The tree over the lanes is a loop too.
  while (group_size > 1 && reduce_iterations(16 * group_size, group_size) > traits.max_loop_iterations) group_size /= 2;

  // Each invocation takes 16 elements per loop iteration; a chunk is a few such rounds, so that there
  // are neither more partials than needed nor too few groups to fill the device.
  const std::uint64_t round = std::uint64_t{16} * group_size;
  const std::uint64_t most_groups = traits.cpu ? 16 : 1024;

  Pass pass{};
  pass.combine = combine_of(node.reduce.op);
  pass.pair = node.reduce.op == record::ReduceOp::dot;
  pass.x = to.region(node.inputs[0]);
  if (pass.pair) pass.y = to.region(node.inputs[1]);
  pass.count = to.graph.values()[node.inputs[0]].shape.count();
  pass.group_size = group_size;

  for (;;) {
    const std::uint64_t rounds = (pass.count + round - 1) / round;
    std::uint64_t rounds_per_group = std::max<std::uint64_t>(4, (rounds + most_groups - 1) / most_groups);
    const std::uint64_t fixed = reduce_iterations(0, group_size);
    const std::uint64_t allowed = traits.max_loop_iterations > fixed ? traits.max_loop_iterations - fixed : 1;
    rounds_per_group = std::min(rounds_per_group, allowed);
    pass.chunk = rounds_per_group * round;
    const std::uint64_t groups = std::max<std::uint64_t>(1, (pass.count + pass.chunk - 1) / pass.chunk);
    if (groups == 1) {
      pass.out = to.region(to.grouping.result(group, to.graph));
      return emit(to, index, pass, true);
    }
    pass.out = to.arena.reserve(groups * sizeof(float));
    if (Error e = emit(to, index, pass, false)) return e;
    pass.x = pass.out;
    pass.pair = false;
    pass.count = groups;
  }
}

}  // namespace brontes::plan
