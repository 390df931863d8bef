// Elementwise ops: one kernel whose op program is given by specialization constants.
#include "plan/params.hpp"
#include "plan/plan.hpp"
#include "record/shape.hpp"

#include <algorithm>

namespace brontes::plan {
namespace {

namespace kernel = kernels::elementwise;
using record::ElementwiseOp;

// An external input of the program and how it repeats over the result.
struct Input {
  Region region;
  record::Repeat repeat;
};

ElementwiseMode mode_of(const record::Repeat& repeat, std::uint64_t count) {
  if (repeat.div == 1 && repeat.mod == count) return ElementwiseMode::full;
  if (repeat.mod == 1) return ElementwiseMode::scalar;
  if (repeat.div == 1 && repeat.mod % 4 == 0) return ElementwiseMode::row_vec4;
  if (repeat.div % 4 == 0) return ElementwiseMode::column_vec4;
  return ElementwiseMode::general;
}

Error emit(Lowering& to, std::uint32_t node, ElementwiseOp op, float p, float q, Span<const Input> inputs,
           const Region& output, std::uint64_t count) {
  if (count == 0) return {};
  // Small workgroups spread over a CPU's threads; GPUs want several waves in each.
  const std::uint32_t group_size = std::min(to.traits.cpu ? 64u : 256u, to.traits.max_group_invocations);
  // Long tensors are worth pipelines of their own: more work per invocation, and no code for a tail
  // they may not have.
  const bool large = count >= (1u << 16);
  const std::uint32_t vectors = large ? 4 : 1;

  Dispatch dispatch(kernels::Id::elementwise, node);
  ElementwiseParams params{};
  params.n = static_cast<std::uint32_t>(count);
  params.groups = elementwise_groups(params.n, group_size, vectors);
  params.p[0] = p;
  params.q[0] = q;

  constexpr kernel::Binding binding[] = {kernel::in0, kernel::in1, kernel::in2, kernel::in3};
  constexpr kernel::Constant mode[] = {kernel::mode0, kernel::mode1, kernel::mode2, kernel::mode3};
  static_assert(std::size(binding) == elementwise_max_inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    dispatch.bind(binding[i], inputs[i].region);
    dispatch.set(mode[i], static_cast<std::uint32_t>(mode_of(inputs[i].repeat, count)));
    params.div[i] = static_cast<std::uint32_t>(inputs[i].repeat.div);
    params.mod[i] = static_cast<std::uint32_t>(inputs[i].repeat.mod);
  }
  dispatch.bind(kernel::out0, output);
  dispatch.set(kernel::group_size, group_size);
  dispatch.set(kernel::vectors, vectors);
  dispatch.set(kernel::tail, large && count % 4 == 0 ? 0 : 1);
  dispatch.set(kernel::step_count, 1);
  dispatch.set(kernel::step0, elementwise_step(static_cast<std::uint32_t>(op), 0, 1));
  dispatch.params(params);

  auto groups = fold(params.groups, to.traits);
  if (!groups) return groups.error();
  dispatch.groups = *groups;
  dispatch.close();
  to.dispatches.push_back(dispatch);
  return {};
}

}  // namespace

Error lower_elementwise(Lowering& to, std::uint32_t index) {
  const record::Node& node = to.graph.nodes()[index];
  const Shape& shape = to.graph.values()[node.output].shape;
  std::array<Input, 2> inputs;
  for (std::size_t i = 0; i < node.input_count; ++i) {
    const record::ValueId id = node.inputs[i];
    inputs[i] = {to.regions[id], *record::repetition(to.graph.values()[id].shape, shape)};
  }
  return emit(to, index, node.elementwise.op, node.elementwise.p, node.elementwise.q, {inputs.data(), node.input_count},
              to.regions[node.output], shape.count());
}

Error lower_copy(Lowering& to, std::uint32_t node, const Region& from, const Region& into, std::uint64_t count) {
  const Input input{from, {1, count}};
  return emit(to, node, ElementwiseOp::copy, 0, 0, {&input, 1}, into, count);
}

std::uint64_t fill_groups(std::uint64_t count, const Traits& traits) {
  const std::uint32_t group_size = std::min(traits.cpu ? 64u : 256u, traits.max_group_invocations);
  return elementwise_groups(static_cast<std::uint32_t>(count), group_size, count >= (1u << 16) ? 4 : 1);
}

Error lower_fill(Lowering& to, std::uint32_t node, float value, const Region& into, std::uint64_t count) {
  return emit(to, node, ElementwiseOp::fill, value, 0, {}, into, count);
}

}  // namespace brontes::plan
