// softmax and log_softmax.
#include "ops/catalogue.hpp"
#include "ops/row.hpp"
#include "reference/reference.hpp"

#include <array>

namespace brontes::ops {
namespace {

struct SoftmaxAttributes {
  std::int64_t axis;
};

constexpr record::Field fields[] = {
    {"axis", record::Field::Type::i64, record::Field::Text::named, offsetof(SoftmaxAttributes, axis)},
};

template <bool logarithm>
Error infer(const record::Graph& graph, Span<const record::ValueId> inputs, record::Attributes& attributes,
            std::vector<record::ValueType>& results) {
  auto own = attributes.as<SoftmaxAttributes>();
  const Shape& shape = graph.value(inputs[0]).shape;
  if (Error e = resolve_axis(logarithm ? "log_softmax" : "softmax", shape, own.axis)) return e;
  attributes = own;
  results.push_back({shape});
  return {};
}

template <bool logarithm>
Error lower(plan::Lowering& to, std::uint32_t index) {
  const record::Node& root = to.root(index);
  const RowShape shape = row_shape(to.graph.value(root.output).shape, root.attributes.as<SoftmaxAttributes>().axis);
  const RowKernel kernel{kernels::Id::softmax, kernels::Id::softmax_subgroup};
  return lower_row(to, index, shape, kernel,
                   [](const plan::Lowering&, std::uint32_t, RowStage, plan::Dispatch& dispatch, kernels::RowParams&) {
                     dispatch.set(kernels::softmax::logarithm, logarithm ? 1 : 0);
                   });
}

template <bool logarithm>
reference::Expected expected(const record::Graph& graph, const record::Node& node,
                             Span<const reference::Values> inputs) {
  const auto axis = static_cast<std::size_t>(node.attributes.as<SoftmaxAttributes>().axis);
  return reference::softmax(inputs[0], graph.value(node.output).shape, axis, logarithm);
}

template <bool logarithm>
constexpr record::Op entry() {
  return {.name = logarithm ? "log_softmax" : "softmax",
          .fields = fields,
          .infer = infer<logarithm>,
          .lower = lower<logarithm>,
          .takes_epilogue = [](const record::Node&) { return true; },
          .takes_prologue = true,
          .reference = expected<logarithm>};
}
constexpr std::array ops = {entry<false>(), entry<true>()};

}  // namespace

const Room softmax_room = ops;

}  // namespace brontes::ops

namespace brontes {

Tensor Batch::softmax(Tensor x, std::int64_t axis) {
  return OpAccess::record(*this, ops::softmax_room[0], {x}, ops::SoftmaxAttributes{axis});
}

Tensor Batch::log_softmax(Tensor x, std::int64_t axis) {
  return OpAccess::record(*this, ops::softmax_room[1], {x}, ops::SoftmaxAttributes{axis});
}

}  // namespace brontes
