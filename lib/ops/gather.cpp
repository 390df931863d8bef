// gather: rows of a table by their numbers.
#include "ops/catalogue.hpp"
#include "ops/rows_of.hpp"
#include "plan/params.hpp"
#include "plan/plan.hpp"
#include "reference/reference.hpp"

#include <algorithm>
#include <string>

namespace brontes {
namespace ops {
namespace {

namespace kernel = kernels::gather;

Error infer(const record::Graph& graph, Span<const record::ValueId> inputs, record::Attributes&,
            std::vector<record::ValueType>& results) {
  const record::Value& table = graph.value(inputs[0]);
  const record::Value& index = graph.value(inputs[1]);
  if (index.dtype != DType::i32) {
    return Error(Errc::type_mismatch, "gather: the index %" + std::to_string(inputs[1]) + " is " +
                                          to_string(index.dtype) + "; expected i32");
  }
  const auto shape = rows_shape(index.shape, table.shape);
  if (!shape) {
    return Error(Errc::shape_mismatch, "gather: rows of " + to_string(table.shape) + " by an index of " +
                                           to_string(index.shape) + " have more than " +
                                           std::to_string(Shape::max_rank) + " dims");
  }
  results.push_back({*shape, table.dtype});
  return {};
}

// What stands for a row that is not there.
std::uint32_t nothing(DType type) {
  switch (type) {
    case DType::i32: return 0x80000000u;
    case DType::mask: return 0;
    default: return 0x7fc00000u;  // NaN
  }
}

Error lower(plan::Lowering& to, std::uint32_t group) {
  const record::Node& node = to.root(group);
  const record::ValueId table = to.graph.inputs(node)[0];
  const record::ValueId index = to.graph.inputs(node)[1];
  const record::Value& value = to.graph.value(table);
  const std::uint64_t count = to.graph.value(node.output).shape.count();
  if (count == 0) return {};

  const std::uint64_t width = row_width(value.shape);
  const std::uint32_t columns = width % 4 == 0 ? 4 : 1;
  const std::uint32_t group_size = std::min(to.traits.cpu ? 64u : 256u, to.traits.max_group_invocations);
  kernels::GatherParams params{};
  params.units = static_cast<std::uint32_t>(count / columns);
  params.width = static_cast<std::uint32_t>(width / columns);
  params.entries = static_cast<std::int32_t>(value.shape[0]);
  params.nothing = nothing(value.dtype);
  params.groups = plan::ceil_div(params.units, group_size);

  plan::Dispatch dispatch(kernels::Id::gather, group);
  dispatch.work = count;
  dispatch.set(kernel::group_size, group_size);
  dispatch.set(kernel::columns, columns);
  if (value.shape.count() != 0) dispatch.bind(kernel::table, to.region(table));
  dispatch.bind(kernel::index, to.region(index));
  dispatch.bind(kernel::out0, to.result(group));
  set_epilogue(to, group, dispatch, params.epilogue);
  dispatch.params(params);
  return to.emit(dispatch, params.groups);
}

reference::Expected expected(const record::Graph& graph, const record::Node& node,
                             Span<const reference::Values> inputs) {
  const record::Value& table = graph.value(graph.inputs(node)[0]);
  return reference::gather(inputs[0], table.shape, table.dtype, inputs[1]);
}

const record::Op gather_op{.name = "gather",
                           .infer = infer,
                           .lower = lower,
                           .types = 3,
                           .takes_epilogue = [](const record::Node&) { return true; },
                           .reference = expected};

}  // namespace

const Room gather_room{&gather_op, 1};

}  // namespace ops

Tensor Batch::gather(Tensor table, Tensor index) { return OpAccess::record(*this, ops::gather_op, {table, index}); }

}  // namespace brontes
