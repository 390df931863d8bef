// Elementwise programs as dispatches, as epilogues and as prologues: specialization constants and push constants.
#include "plan/params.hpp"
#include "plan/plan.hpp"
#include "record/view.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace brontes::plan {
namespace {

namespace kernel = kernels::elementwise;
using record::ElementwiseOp;
using record::ValueId;

constexpr kernel::Constant step_ids[] = {kernel::step0, kernel::step1, kernel::step2, kernel::step3,
                                         kernel::step4, kernel::step5, kernel::step6, kernel::step7};
constexpr kernel::Constant mode_ids[] = {kernel::mode0, kernel::mode1, kernel::mode2, kernel::mode3};
constexpr kernel::Binding input_ids[] = {kernel::in0, kernel::in1, kernel::in2, kernel::in3};
constexpr kernel::Binding output_ids[] = {kernel::out0, kernel::out1, kernel::out2};
constexpr kernel::Constant result_ids[] = {kernel::result0, kernel::result1, kernel::result2};
static_assert(std::size(step_ids) == elementwise_max_steps && std::size(input_ids) == elementwise_max_inputs);
static_assert(std::size(output_ids) == elementwise_max_outputs);

// The names of the epilogue are also those of a program of its own.
static_assert(kernel::step0 + 0u == kernels::epilogue::step0 && kernel::step3 + 0u == kernels::epilogue::step3 &&
              kernel::mode1 + 0u == kernels::epilogue::mode1 && kernel::mode2 + 0u == kernels::epilogue::mode2 &&
              kernel::step_count + 0u == kernels::epilogue::step_count);
static_assert(std::size(kernels::EpilogueParams{}.p) == epilogue_max_steps &&
              std::size(kernels::PrologueParams{}.p) == prologue_max_steps);

namespace strided {
using namespace kernels::elementwise_strided;
constexpr Constant access_ids[] = {access0, access1, access2, access3};
static_assert(std::size(kernels::ElementwiseStridedParams{}.view) == record::max_access_words &&
              std::size(kernels::ElementwiseStridedParams{}.p) == strided_max_steps);
// What both kernels have, they have under the same number.
static_assert(group_size + 0u == kernel::group_size && lanes + 0u == kernel::lanes &&
              step_count + 0u == kernel::step_count && step0 + 0u == kernel::step0 && step3 + 0u == kernel::step3 &&
              result0 + 0u == kernel::result0 && result2 + 0u == kernel::result2 && in0 + 0u == kernel::in0 &&
              in3 + 0u == kernel::in3 && out0 + 0u == kernel::out0 && out2 + 0u == kernel::out2);
}  // namespace strided

struct Output {
  Region region;
  std::uint32_t step;
};

// How a tensor is cut into workgroups.
struct Cut {
  std::uint32_t group_size;
  std::uint32_t vectors;  // per invocation
  std::uint32_t lanes;    // vectors.glsl
};

Cut cut_of(std::uint64_t count, const Traits& traits) {
  // A GPU has enough invocations for one vector each. On CPU drivers a workgroup has its price: many elements
  // go into large ones with several vectors per invocation, as long as there is one for every core.
  Cut cut{std::min(256u, traits.max_group_invocations), 1, 0};
  if (!traits.cpu) return cut;
  constexpr std::uint64_t many = 1u << 16, enough_groups = 64;
  if (count < many) {
    cut.group_size = std::min(64u, cut.group_size);
    return cut;
  }
  const std::uint64_t most = count / 4 / cut.group_size / enough_groups;
  cut.vectors = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(most, 1, elementwise_max_vectors));
  cut.lanes = std::gcd(real_lanes(traits), cut.group_size);
  return cut;
}

// What the steps of a program do, for any kernel that runs one: `ids` are its constants for them.
template <class Constants, class Params>
void set_steps(const ElementwiseProgram& program, const Constants& ids, Dispatch& dispatch, Params& params) {
  for (std::size_t s = 0; s < program.step_count; ++s) {
    dispatch.set(ids[s], program.word(s));
    params.p[s] = program.steps[s].p;
    params.q[s] = program.steps[s].q;
  }
}

// How the inputs of a program are indexed, for the kernel that does it by repetitions alone.
void set_inputs(const ElementwiseProgram& program, std::uint64_t count, Dispatch& dispatch,
                kernels::ElementwiseParams& params) {
  for (std::size_t i = 0; i < program.input_count; ++i) {
    const record::Repeat& repeat = program.inputs[i].repeat;
    dispatch.set(mode_ids[i], static_cast<std::uint32_t>(mode_of(repeat, count)));
    params.div[i] = static_cast<std::uint32_t>(repeat.div);
    params.mod[i] = static_cast<std::uint32_t>(repeat.mod);
  }
}

// And for the one that can do more.
void set_inputs(const record::Graph& graph, const ElementwiseProgram& program, std::uint64_t count, Dispatch& dispatch,
                kernels::ElementwiseStridedParams& params) {
  std::uint32_t words = 0;
  for (std::size_t i = 0; i < program.input_count; ++i) {
    const record::Access access = access_of(graph, program.inputs[i], count);
    const auto mode = static_cast<std::uint32_t>(mode_of(access));
    if (record::access_words(access) == 0) {
      dispatch.set(strided::access_ids[i], mode);
      continue;
    }
    const std::uint32_t rank = std::max(access.rank, 1u);
    dispatch.set(strided::access_ids[i], mode | rank << 4 | words << 8);
    std::uint32_t* view = params.view + words;
    view[0] = access.offset;
    for (std::uint32_t d = 0; d < access.rank; ++d) {
      view[1 + d] = static_cast<std::uint32_t>(access.strides[access.rank - 1 - d]);
      if (d + 1 < rank) view[1 + rank + d] = access.extents[access.rank - 1 - d];
    }
    words += record::access_words(access);
  }
  assert(words <= record::max_access_words);
}

// A program that only turns rows into columns, of one matrix or of many: [batch, j, i] with a stride of 1 along j.
bool is_transposition(const ElementwiseProgram& program, const record::Access& access) {
  return program.step_count == 1 && program.steps[0].op == ElementwiseOp::copy &&
         (access.rank == 2 || access.rank == 3) && access.strides[access.rank - 1] > 1 &&
         access.strides[access.rank - 2] == 1;
}

// Blocks along a side of the square that a workgroup turns. CPU drivers do best with squares of many cache lines, as
// long as every core has some.
std::uint32_t transposed_side(const kernels::TransposeParams& params, std::uint64_t matrices, const Traits& traits) {
  constexpr std::uint64_t enough_squares = 64;
  std::uint32_t side = traits.cpu ? 32 : 8;
  const auto squares = [&](std::uint32_t of) {
    return matrices * ceil_div(params.rows, 4 * of) * ceil_div(params.columns, 4 * of);
  };
  while (side > 8 && squares(side) < enough_squares) side /= 2;
  while (side * side > traits.max_group_invocations) side /= 2;
  return side;
}

Error emit_transposition(Lowering& to, std::uint32_t group, const record::Access& access, const Region& from,
                         const Region& into, std::uint64_t count) {
  namespace turn = kernels::transpose;
  constexpr std::uint32_t block = 4;
  kernels::TransposeParams params{};
  params.rows = access.extents[access.rank - 1];
  params.columns = access.extents[access.rank - 2];
  params.offset = access.offset;
  params.row_stride = static_cast<std::uint32_t>(access.strides[access.rank - 1]);
  params.batch_stride = access.rank == 3 ? static_cast<std::uint32_t>(access.strides[0]) : 0;
  const std::uint64_t matrices = access.rank == 3 ? access.extents[0] : 1;
  const std::uint32_t side = transposed_side(params, matrices, to.traits);
  params.squares_i = ceil_div(params.rows, block * side);
  params.squares_j = ceil_div(params.columns, block * side);
  const std::uint64_t groups = matrices * params.squares_i * params.squares_j;
  params.groups = static_cast<std::uint32_t>(groups);
  const bool whole_rows = (params.offset | params.row_stride | params.batch_stride | params.columns) % block == 0;
  Dispatch dispatch(kernels::Id::transpose, group);
  dispatch.work = count;
  dispatch.bind(turn::in0, from);
  dispatch.bind(turn::out0, into);
  dispatch.set(turn::group_size, side * side);
  dispatch.set(turn::side, side);
  dispatch.set(turn::lanes, std::min(side, 8u));  // two cache lines
  dispatch.set(turn::vec4_in, whole_rows ? 1 : 0);
  dispatch.set(turn::vec4_out, params.rows % block == 0 ? 1 : 0);
  dispatch.params(params);
  return to.emit(dispatch, groups);
}

Error emit(Lowering& to, std::uint32_t group, const ElementwiseProgram& program, Span<const Region> inputs,
           Span<const Output> outputs, std::uint64_t count) {
  if (count == 0) return {};
  if (program.strided) {
    const record::Access access = access_of(to.graph, program.inputs[0], count);
    if (is_transposition(program, access)) {
      return emit_transposition(to, group, access, inputs[0], outputs[0].region, count);
    }
  }
  const Cut cut = cut_of(count, to.traits);
  const auto n = static_cast<std::uint32_t>(count);
  const std::uint32_t groups = elementwise_groups(n, cut.group_size, cut.vectors);
  Dispatch dispatch(program.strided ? kernels::Id::elementwise_strided : kernels::Id::elementwise, group);
  dispatch.work = count;
  for (std::size_t i = 0; i < inputs.size(); ++i) dispatch.bind(input_ids[i], inputs[i]);
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    dispatch.bind(output_ids[o], outputs[o].region);
    dispatch.set(result_ids[o], elementwise_max_inputs + outputs[o].step);
  }
  dispatch.set(kernel::group_size, cut.group_size);
  dispatch.set(kernel::lanes, cut.lanes);
  dispatch.set(kernel::step_count, program.step_count);

  auto finish = [&](auto params) {
    params.n = n;
    params.vectors = cut.vectors;
    set_steps(program, step_ids, dispatch, params);
    dispatch.params(params);
  };
  if (!program.strided) {
    kernels::ElementwiseParams params{};
    set_inputs(program, count, dispatch, params);
    finish(params);
  } else {
    kernels::ElementwiseStridedParams params{};
    set_inputs(to.graph, program, count, dispatch, params);
    finish(params);
  }
  return to.emit(dispatch, groups);
}

ElementwiseProgram single(ElementwiseOp op, float p) {
  ElementwiseProgram program;
  program.steps[0] = {op, {}, p, 0, no_node, record::no_value};
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

void set_epilogue(const Lowering& to, std::uint32_t index, Dispatch& dispatch, kernels::EpilogueParams& params) {
  const Group& group = to.grouping.groups[index];
  const ElementwiseProgram& program = group.program;
  constexpr kernels::epilogue::Binding extra_ids[] = {kernels::epilogue::extra1, kernels::epilogue::extra2};
  dispatch.set(kernel::step_count, program.step_count);
  set_steps(program, step_ids, dispatch, params);
  for (std::size_t i = 0; i < program.input_count; ++i) {
    const record::Repeat& repeat = program.inputs[i].repeat;
    dispatch.bind(extra_ids[i], to.region(program.inputs[i].value));
    dispatch.set(mode_ids[i + 1], static_cast<std::uint32_t>(mode_of(repeat, group.count)));
    params.div[i] = static_cast<std::uint32_t>(repeat.div);
    params.mod[i] = static_cast<std::uint32_t>(repeat.mod);
  }
}

void bind_operand(const Lowering& to, std::uint32_t index, Dispatch& dispatch, kernels::PrologueParams& params) {
  namespace ids = kernels::prologue;
  constexpr ids::Constant prologue_ids[] = {ids::prologue0, ids::prologue1, ids::prologue2, ids::prologue3};
  static_assert(std::size(prologue_ids) == prologue_max_steps);
  const ValueId operand = to.graph.inputs(to.root(index))[0];
  const std::uint32_t prologue = to.grouping.groups[index].prologue;
  if (prologue == no_prologue) {
    dispatch.bind(ids::in0, to.region(operand));
    return;
  }
  const ElementwiseProgram& program = to.grouping.prologues[prologue];
  dispatch.bind(ids::in0, to.region(program.inputs[0].value));
  dispatch.set(ids::prologue_count, program.step_count);
  set_steps(program, prologue_ids, dispatch, params);
  if (program.input_count < 2) return;
  const record::Repeat& repeat = program.inputs[1].repeat;
  dispatch.bind(ids::extra0, to.region(program.inputs[1].value));
  dispatch.set(ids::prologue_mode, static_cast<std::uint32_t>(mode_of(repeat, to.graph.value(operand).shape.count())));
  params.div = static_cast<std::uint32_t>(repeat.div);
  params.mod = static_cast<std::uint32_t>(repeat.mod);
}

}  // namespace brontes::plan
