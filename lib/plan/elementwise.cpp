// Elementwise programs as dispatches and as epilogues: specialization constants and push constants.
#include "plan/params.hpp"
#include "plan/plan.hpp"

#include <algorithm>
#include <bit>

namespace brontes::plan {
namespace {

namespace kernel = kernels::elementwise;
using record::ElementwiseOp;

constexpr kernel::Constant step_ids[] = {kernel::step0, kernel::step1, kernel::step2, kernel::step3,
                                         kernel::step4, kernel::step5, kernel::step6, kernel::step7};
constexpr kernel::Constant mode_ids[] = {kernel::mode0, kernel::mode1, kernel::mode2, kernel::mode3};
constexpr kernel::Binding input_ids[] = {kernel::in0, kernel::in1, kernel::in2, kernel::in3};
constexpr kernel::Binding output_ids[] = {kernel::out0, kernel::out1, kernel::out2};
constexpr kernel::Constant result_ids[] = {kernel::result0, kernel::result1, kernel::result2};
static_assert(std::size(step_ids) == elementwise_max_steps && std::size(input_ids) == elementwise_max_inputs);
static_assert(std::size(output_ids) == elementwise_max_outputs);

// set_epilogue() names constants and bindings of one kernel for all.
#define BRONTES_SAME(name)                                                                 \
  static_assert(kernels::matmul_naive::name + 0u == kernels::matmul_gemv::name &&          \
                kernels::matmul_naive::name + 0u == kernels::matmul_gemv_subgroup::name && \
                kernels::matmul_naive::name + 0u == kernels::matmul_combine::name &&       \
                kernels::matmul_naive::name + 0u == kernels::matmul_panel::name &&         \
                kernels::matmul_naive::name + 0u == kernels::matmul_tiled::name &&         \
                kernels::matmul_naive::name + 0u == kernels::matmul_subgroup_kn::name &&   \
                kernels::matmul_naive::name + 0u == kernels::matmul_subgroup_nk::name &&   \
                kernels::matmul_naive::name + 0u == kernels::reduce::name)
BRONTES_SAME(step_count);
BRONTES_SAME(step0);
BRONTES_SAME(step3);
BRONTES_SAME(mode1);
BRONTES_SAME(mode2);
BRONTES_SAME(extra1);
BRONTES_SAME(extra2);
#undef BRONTES_SAME
static_assert(kernel::step0 + 0u == kernels::reduce::step0 && kernel::mode1 + 0u == kernels::reduce::mode1 &&
              kernel::step_count + 0u == kernels::reduce::step_count);

struct Output {
  Region region;
  std::uint32_t step;
};

// How a tensor is cut into workgroups.
struct Cut {
  std::uint32_t group_size;
  std::uint32_t vectors;  // per invocation
  bool large;
};

Cut cut_of(std::uint64_t count, const Traits& traits) {
  // A GPU has enough invocations for one vector each. On CPU drivers a workgroup has its price: many elements
  // go into large ones with several vectors per invocation, as long as there is one for every core.
  Cut cut{256, 1, count >= (1u << 16)};
  if (traits.cpu) cut.group_size = cut.large ? 256 : 64;
  if (traits.cpu && cut.large) {
    constexpr std::uint64_t enough_groups = 64;
    const std::uint64_t most = count / 4 / cut.group_size / enough_groups;
    cut.vectors =
        static_cast<std::uint32_t>(std::bit_floor(std::clamp<std::uint64_t>(most, 1, elementwise_max_vectors)));
  }
  cut.group_size = std::min(cut.group_size, traits.max_group_invocations);
  return cut;
}

Error emit(Lowering& to, std::uint32_t group, const ElementwiseProgram& program, Span<const Region> inputs,
           Span<const Output> outputs, std::uint64_t count) {
  if (count == 0) return {};
  const Cut cut = cut_of(count, to.traits);
  Dispatch dispatch(kernels::Id::elementwise, group);
  dispatch.work = count;
  ElementwiseParams params{};
  params.n = static_cast<std::uint32_t>(count);
  params.groups = elementwise_groups(params.n, cut.group_size, cut.vectors);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const record::Repeat& repeat = program.inputs[i].repeat;
    dispatch.bind(input_ids[i], inputs[i]);
    dispatch.set(mode_ids[i], static_cast<std::uint32_t>(mode_of(repeat, count)));
    params.div[i] = static_cast<std::uint32_t>(repeat.div);
    params.mod[i] = static_cast<std::uint32_t>(repeat.mod);
  }
  for (std::size_t s = 0; s < program.step_count; ++s) {
    dispatch.set(step_ids[s], program.word(s));
    params.p[s] = program.steps[s].p;
    params.q[s] = program.steps[s].q;
  }
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    dispatch.bind(output_ids[o], outputs[o].region);
    dispatch.set(result_ids[o], elementwise_max_inputs + outputs[o].step);
  }
  dispatch.set(kernel::group_size, cut.group_size);
  dispatch.set(kernel::vectors, cut.vectors);
  dispatch.set(kernel::step_count, program.step_count);
  dispatch.params(params);

  return to.emit(dispatch, params.groups);
}

ElementwiseProgram single(ElementwiseOp op, float p) {
  ElementwiseProgram program;
  program.steps[0] = {op, 0, 0, p, 0, no_node, record::no_value};
  program.step_count = 1;
  return program;
}

}  // namespace

Error lower_elementwise(Lowering& to, std::uint32_t index) {
  const Group& group = to.grouping.groups[index];
  const ElementwiseProgram& program = group.program;
  std::array<Region, elementwise_max_inputs> inputs;
  for (std::size_t i = 0; i < program.input_count; ++i) inputs[i] = to.region(program.inputs[i].value);
  std::array<Output, elementwise_max_outputs> outputs;
  std::size_t output_count = 0;
  // The last result first: it is the one that may take an operand's memory.
  for (std::uint32_t s = program.step_count; s-- > 0;) {
    const record::ValueId value = program.steps[s].result;
    if (to.grouping.written[value] != 0) outputs[output_count++] = {to.region(value), s};
  }
  return emit(to, index, program, {inputs.data(), program.input_count}, {outputs.data(), output_count}, group.count);
}

Error lower_copy(Lowering& to, std::uint32_t group, const Region& from, const Region& into, std::uint64_t count) {
  ElementwiseProgram program = single(ElementwiseOp::copy, 0);
  program.inputs[0] = {record::no_value, {1, count}};
  program.input_count = 1;
  const Output output{into, 0};
  return emit(to, group, program, {&from, 1}, {&output, 1}, count);
}

Error lower_fill(Lowering& to, std::uint32_t group, float value, const Region& into, std::uint64_t count) {
  const Output output{into, 0};
  return emit(to, group, single(ElementwiseOp::fill, value), {}, {&output, 1}, count);
}

std::uint64_t fill_groups(std::uint64_t count, const Traits& traits) {
  const Cut cut = cut_of(count, traits);
  return elementwise_groups(static_cast<std::uint32_t>(count), cut.group_size, cut.vectors);
}

void set_epilogue(const Lowering& to, std::uint32_t index, Dispatch& dispatch, EpilogueParams& params) {
  const Group& group = to.grouping.groups[index];
  const ElementwiseProgram& program = group.program;
  constexpr kernels::reduce::Binding extra_ids[] = {kernels::reduce::extra1, kernels::reduce::extra2};
  dispatch.set(kernel::step_count, program.step_count);
  for (std::size_t s = 0; s < program.step_count; ++s) {
    dispatch.set(step_ids[s], program.word(s));
    params.p[s] = program.steps[s].p;
    params.q[s] = program.steps[s].q;
  }
  for (std::size_t i = 0; i < program.input_count; ++i) {
    const record::Repeat& repeat = program.inputs[i].repeat;
    dispatch.bind(extra_ids[i], to.region(program.inputs[i].value));
    dispatch.set(mode_ids[i + 1], static_cast<std::uint32_t>(mode_of(repeat, group.count)));
    params.div[i] = static_cast<std::uint32_t>(repeat.div);
    params.mod[i] = static_cast<std::uint32_t>(repeat.mod);
  }
}

}  // namespace brontes::plan
