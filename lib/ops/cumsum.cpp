// Cumulative sums.
#include "ops/catalogue.hpp"
#include "ops/row.hpp"
#include "reference/reference.hpp"

namespace brontes::ops {
namespace {

struct CumsumAttributes {
  std::int64_t axis;
};

constexpr record::Field fields[] = {
    {"axis", record::Field::Type::i64, record::Field::Text::named, offsetof(CumsumAttributes, axis)},
};

Error infer(const record::Graph& graph, Span<const record::ValueId> inputs, record::Attributes& attributes,
            std::vector<record::ValueType>& results) {
  auto own = attributes.as<CumsumAttributes>();
  const Shape& shape = graph.value(inputs[0]).shape;
  if (Error e = resolve_axis("cumsum", shape, own.axis)) return e;
  attributes = own;
  results.push_back({shape});
  return {};
}

Error lower(plan::Lowering& to, std::uint32_t index) {
  const record::Node& root = to.root(index);
  const RowShape shape = row_shape(to.graph.value(root.output).shape, root.attributes.as<CumsumAttributes>().axis);
  const RowKernel kernel{kernels::Id::cumsum, kernels::Id::cumsum, 1, true};
  return lower_row(to, index, shape, kernel,
                   [](const plan::Lowering&, std::uint32_t, RowStage, plan::Dispatch&, kernels::RowParams&) {});
}

reference::Expected expected(const record::Graph& graph, const record::Node& node,
                             Span<const reference::Values> inputs) {
  const auto axis = static_cast<std::size_t>(node.attributes.as<CumsumAttributes>().axis);
  return reference::cumsum(inputs[0], graph.value(node.output).shape, axis);
}

const record::Op cumsum_op{.name = "cumsum",
                           .fields = fields,
                           .infer = infer,
                           .lower = lower,
                           .takes_epilogue = [](const record::Node&) { return true; },
                           .takes_prologue = true,
                           .reference = expected};

}  // namespace

const Room cumsum_room{&cumsum_op, 1};

}  // namespace brontes::ops

namespace brontes {

Tensor Batch::cumsum(Tensor x, std::int64_t axis) {
  return OpAccess::record(*this, ops::cumsum_op, {x}, ops::CumsumAttributes{axis});
}

}  // namespace brontes
