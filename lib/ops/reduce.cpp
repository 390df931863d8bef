// Reductions: every workgroup reduces a chunk to one partial, a second dispatch reduces the partials.
#include "ops/reduce.hpp"

#include "ops/catalogue.hpp"
#include "plan/plan.hpp"
#include "reference/reference.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

namespace brontes::ops {
namespace {

namespace kernel = kernels::reduce;
using plan::Dispatch;
using plan::Lowering;
using plan::Region;
using record::Graph;
using record::ValueId;

struct Pass {
  ReduceCombine combine;
  bool pair;
  bool first;  // x is the operand, not what an earlier pass left
  Region x, y, out;
  std::uint64_t count;
  std::uint64_t chunk;
  std::uint32_t group_size;
};

Error emit(Lowering& to, std::uint32_t group, const Pass& pass, bool last) {
  Dispatch dispatch(kernels::Id::reduce, group);
  dispatch.work = pass.count;
  kernels::ReduceParams params{};
  params.n = static_cast<std::uint32_t>(pass.count);
  params.chunk = static_cast<std::uint32_t>(pass.chunk);
  params.groups = std::max(1u, plan::ceil_div(params.n, params.chunk));
  if (last) set_epilogue(to, group, dispatch, params.epilogue);
  if (pass.count != 0 && pass.first) bind_operand(to, group, dispatch, params.prologue);
  if (pass.count != 0 && !pass.first) dispatch.bind(kernel::in0, pass.x);
  dispatch.params(params);
  dispatch.set(kernel::group_size, pass.group_size);
  dispatch.set(kernel::combine, static_cast<std::uint32_t>(pass.combine));
  dispatch.set(kernel::pair, pass.pair ? 1 : 0);
  if (pass.count != 0 && pass.pair) dispatch.bind(kernel::in1, pass.y);
  dispatch.bind(kernel::out0, pass.out);
  return to.emit(dispatch, params.groups);
}

constexpr const char* names[] = {"sum", "dot", "max", "min"};

template <ReduceOp op>
Error infer(const Graph& graph, Span<const ValueId> inputs, record::Attributes&, std::vector<record::ValueType>& out) {
  const Shape& shape = graph.value(inputs[0]).shape;
  if (op == ReduceOp::dot && graph.value(inputs[1]).shape.count() != shape.count()) {
    const Shape& other = graph.value(inputs[1]).shape;
    return Error(Errc::shape_mismatch, "dot: operands " + to_string(shape) + " and " + to_string(other) + " have " +
                                           std::to_string(shape.count()) + " and " + std::to_string(other.count()) +
                                           " elements; expected the same number");
  }
  if ((op == ReduceOp::max || op == ReduceOp::min) && shape.count() == 0) {
    return Error(Errc::empty_input, std::string(name(op)) + ": operand " + to_string(shape) +
                                        " has no elements, so there is no " + name(op));
  }
  out.push_back({Shape(1)});
  return {};
}

template <ReduceOp op>
Error lower(Lowering& to, std::uint32_t index) {
  const Span<const ValueId> inputs = to.graph.inputs(to.root(index));
  const plan::Traits& traits = to.traits;

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
  pass.combine = op == ReduceOp::max   ? ReduceCombine::max
                 : op == ReduceOp::min ? ReduceCombine::min
                                       : ReduceCombine::sum;
  pass.pair = op == ReduceOp::dot;
  pass.first = true;
  if (pass.pair) pass.y = to.region(inputs[1]);
  pass.count = to.graph.value(inputs[0]).shape.count();
  pass.group_size = group_size;
  // More would be a long chain of additions, each with its error.
  const std::uint64_t most_rounds = pass.combine == ReduceCombine::sum ? reduce_most_rounds : std::uint64_t{1} << 16;

  for (;;) {
    const std::uint64_t rounds = (pass.count + round - 1) / round;
    std::uint64_t rounds_per_group =
        std::clamp<std::uint64_t>((rounds + most_groups - 1) / most_groups, 4, most_rounds);
    while (rounds_per_group > 1 && reduce_iterations(static_cast<std::uint32_t>(rounds_per_group * round), group_size) >
                                       traits.max_loop_iterations) {
      --rounds_per_group;
    }
    pass.chunk = rounds_per_group * round;
    const std::uint64_t groups = std::max<std::uint64_t>(1, (pass.count + pass.chunk - 1) / pass.chunk);
    if (groups == 1) {
      pass.out = to.result(index);
      return emit(to, index, pass, true);
    }
    pass.out = to.arena.reserve(groups * sizeof(float));
    if (Error e = emit(to, index, pass, false)) return e;
    pass.x = pass.out;
    pass.first = false;
    pass.pair = false;
    pass.count = groups;
  }
}

template <ReduceOp op>
reference::Expected expected(const Graph&, const record::Node&, Span<const reference::Values> inputs) {
  return reference::reduce(name(op), inputs[0], inputs[inputs.size() - 1]);
}

template <ReduceOp op>
constexpr record::Op entry() {
  return {.name = names[static_cast<std::size_t>(op)],
          .infer = infer<op>,
          .lower = lower<op>,
          .takes_epilogue = [](const record::Node&) { return true; },
          .takes_prologue = true,
          .reference = expected<op>};
}
constexpr std::array ops = {entry<ReduceOp::sum>(), entry<ReduceOp::dot>(), entry<ReduceOp::max>(),
                            entry<ReduceOp::min>()};

}  // namespace

const Room reduce_room = ops;

const char* name(ReduceOp op) noexcept { return names[static_cast<std::size_t>(op)]; }

Result<ValueId> reduce(Graph& graph, ReduceOp op, Span<const ValueId> inputs) {
  return graph.apply(ops[static_cast<std::size_t>(op)], inputs);
}

}  // namespace brontes::ops
