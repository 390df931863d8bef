// layer_norm and rms_norm, over the last dim.
#include "ops/catalogue.hpp"
#include "ops/row.hpp"
#include "reference/reference.hpp"

#include <array>
#include <string>

namespace brontes::ops {
namespace {

struct NormAttributes {
  float epsilon;
};

constexpr record::Field fields[] = {
    {"epsilon", record::Field::Type::f32, record::Field::Text::named, offsetof(NormAttributes, epsilon)},
};

// Operands are x, then the weight, then the bias, as far as there are such.
template <bool rms>
Error infer(const record::Graph& graph, Span<const record::ValueId> inputs, record::Attributes& attributes,
            std::vector<record::ValueType>& results) {
  const std::string name = rms ? "rms_norm" : "layer_norm";
  const Shape& shape = graph.value(inputs[0]).shape;
  const Shape expected(shape[shape.rank() - 1]);
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const Shape& given = graph.value(inputs[i]).shape;
    if (given == expected) continue;
    return Error(Errc::shape_mismatch, name + ": a " + (i == 1 ? "weight" : "bias") + " of " + to_string(given) +
                                           " for a tensor of " + to_string(shape) + "; expected " +
                                           to_string(expected));
  }
  const float epsilon = attributes.as<NormAttributes>().epsilon;
  if (!(epsilon >= 0)) {
    return Error(Errc::invalid_argument, name + ": epsilon " + std::to_string(epsilon) + " is not 0 or more");
  }
  results.push_back({shape});
  return {};
}

template <bool rms>
void complete(const plan::Lowering& to, std::uint32_t index, RowStage stage, plan::Dispatch& dispatch,
              kernels::RowParams& params) {
  namespace kernel = kernels::norm;
  const Span<const record::ValueId> inputs = to.graph.inputs(to.root(index));
  dispatch.set(kernel::rms, rms ? 1 : 0);
  params.epsilon = to.root(index).attributes.as<NormAttributes>().epsilon;
  if (stage == RowStage::partial) return;
  dispatch.set(kernel::weighted, inputs.size() > 1 ? 1 : 0);
  dispatch.set(kernel::biased, inputs.size() > 2 ? 1 : 0);
  if (inputs.size() > 1) dispatch.bind(kernel::weight, to.region(inputs[1]));
  if (inputs.size() > 2) dispatch.bind(kernel::bias, to.region(inputs[2]));
}

template <bool rms>
Error lower(plan::Lowering& to, std::uint32_t index) {
  const Shape& shape = to.graph.value(to.root(index).output).shape;
  const RowKernel kernel{kernels::Id::norm, kernels::Id::norm_subgroup, rms ? 1u : 3u};
  return lower_row(to, index, row_shape(shape, static_cast<std::int64_t>(shape.rank()) - 1), kernel, complete<rms>);
}

template <bool rms>
reference::Expected expected(const record::Graph& graph, const record::Node& node,
                             Span<const reference::Values> inputs) {
  const reference::Values none;
  return reference::norm(inputs[0], graph.value(node.output).shape, inputs.size() > 1 ? inputs[1] : none,
                         inputs.size() > 2 ? inputs[2] : none,
                         static_cast<double>(node.attributes.as<NormAttributes>().epsilon), rms);
}

template <bool rms>
constexpr record::Op entry() {
  return {.name = rms ? "rms_norm" : "layer_norm",
          .fields = fields,
          .infer = infer<rms>,
          .lower = lower<rms>,
          .takes_epilogue = [](const record::Node&) { return true; },
          .takes_prologue = true,
          .reference = expected<rms>};
}
constexpr std::array ops = {entry<false>(), entry<true>()};

}  // namespace

const Room norm_room = ops;

}  // namespace brontes::ops

namespace brontes {

Tensor Batch::layer_norm(Tensor x, float epsilon) {
  return OpAccess::record(*this, ops::ops[0], {x}, ops::NormAttributes{epsilon});
}

Tensor Batch::layer_norm(Tensor x, Tensor weight, Tensor bias, float epsilon) {
  return OpAccess::record(*this, ops::ops[0], {x, weight, bias}, ops::NormAttributes{epsilon});
}

Tensor Batch::rms_norm(Tensor x, float epsilon) {
  return OpAccess::record(*this, ops::ops[1], {x}, ops::NormAttributes{epsilon});
}

Tensor Batch::rms_norm(Tensor x, Tensor weight, float epsilon) {
  return OpAccess::record(*this, ops::ops[1], {x, weight}, ops::NormAttributes{epsilon});
}

}  // namespace brontes
