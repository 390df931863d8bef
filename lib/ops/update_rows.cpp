// update_rows: a copy of a table with some rows replaced.
//
// One dispatch copies the table. Another finds for every entry of the index which row it writes, if any: of equal ones
// within a span only the last. Then spans are written one after the other, so that later ones win over earlier ones.
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

using record::ValueId;

Error infer(const record::Graph& graph, Span<const ValueId> inputs, record::Attributes&,
            std::vector<record::ValueType>& results) {
  const record::Value& x = graph.value(inputs[0]);
  const record::Value& index = graph.value(inputs[1]);
  const record::Value& rows = graph.value(inputs[2]);
  if (index.dtype != DType::i32) {
    return Error(Errc::type_mismatch, "update_rows: the index %" + std::to_string(inputs[1]) + " is " +
                                          to_string(index.dtype) + "; expected i32");
  }
  if (!x.weight && !rows.weight && rows.dtype != x.dtype) {
    return Error(Errc::type_mismatch, "update_rows: operand %" + std::to_string(inputs[0]) + " is " +
                                          to_string(x.dtype) + " and the rows %" + std::to_string(inputs[2]) + " are " +
                                          to_string(rows.dtype) + "; expected the same type");
  }
  const auto wanted = rows_shape(index.shape, x.shape);
  if (!wanted || rows.shape != *wanted) {
    return Error(Errc::shape_mismatch, "update_rows: rows of " + to_string(rows.shape) + " for an index of " +
                                           to_string(index.shape) + " into " + to_string(x.shape) +
                                           (wanted ? "; expected " + to_string(*wanted) : ""));
  }
  results.push_back({x.shape, x.dtype});
  return {};
}

std::uint32_t group_size_of(const plan::Traits& traits) {
  return std::min(traits.cpu ? 64u : 256u, traits.max_group_invocations);
}

Error find_rows(plan::Lowering& to, std::uint32_t group, ValueId index, std::uint32_t entries, std::uint32_t span,
                const plan::Region& into) {
  namespace kernel = kernels::last_rows;
  const std::uint32_t group_size = group_size_of(to.traits);
  kernels::LastRowsParams params{};
  params.n = static_cast<std::uint32_t>(to.graph.value(index).shape.count());
  params.span = span;
  params.entries = static_cast<std::int32_t>(entries);
  params.groups = plan::ceil_div(params.n, group_size);
  plan::Dispatch dispatch(kernels::Id::last_rows, group);
  dispatch.work = std::uint64_t{params.n} * std::min(span, params.n);
  dispatch.set(kernel::group_size, group_size);
  dispatch.bind(kernel::index, to.region(index));
  dispatch.bind(kernel::out0, into);
  dispatch.params(params);
  return to.emit(dispatch, params.groups);
}

Error lower(plan::Lowering& to, std::uint32_t group) {
  namespace kernel = kernels::scatter_rows;
  const record::Node& node = to.root(group);
  const ValueId x = to.graph.inputs(node)[0];
  const ValueId index = to.graph.inputs(node)[1];
  const ValueId rows = to.graph.inputs(node)[2];
  const Shape& shape = to.graph.value(x).shape;
  if (shape.count() == 0) return {};
  const plan::Region& out = to.result(group);
  if (Error e = plan::lower_copy(to, group, to.region(x), out, shape.count())) return e;
  const std::uint64_t n = to.graph.value(index).shape.count();
  if (n == 0) return {};

  // Long enough that there are few dispatches, short enough that nobody searches for long.
  const auto span = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(to.traits.max_loop_iterations, 3, 4098) - 2);
  const plan::Region target = to.arena.reserve(n * sizeof(std::int32_t));
  if (Error e = find_rows(to, group, index, static_cast<std::uint32_t>(shape[0]), span, target)) return e;

  const std::uint64_t width = row_width(shape);
  const std::uint32_t columns = width % 4 == 0 ? 4 : 1;
  const std::uint32_t group_size = group_size_of(to.traits);
  for (std::uint64_t first = 0; first < n; first += span) {
    kernels::ScatterRowsParams params{};
    params.first = static_cast<std::uint32_t>(first);
    params.width = static_cast<std::uint32_t>(width / columns);
    params.units = static_cast<std::uint32_t>(std::min<std::uint64_t>(span, n - first) * params.width);
    params.groups = plan::ceil_div(params.units, group_size);
    plan::Dispatch dispatch(kernels::Id::scatter_rows, group);
    dispatch.work = std::uint64_t{params.units} * columns;
    dispatch.set(kernel::group_size, group_size);
    dispatch.set(kernel::columns, columns);
    dispatch.bind(kernel::rows, to.region(rows));
    dispatch.bind(kernel::target, target);
    dispatch.bind(kernel::out0, out);
    dispatch.params(params);
    if (Error e = to.emit(dispatch, params.groups)) return e;
  }
  return {};
}

reference::Expected expected(const record::Graph& graph, const record::Node& node,
                             Span<const reference::Values> inputs) {
  return reference::update_rows(inputs[0], graph.value(node.output).shape, inputs[1], inputs[2]);
}

const record::Op update_rows_op{
    .name = "update_rows", .infer = infer, .lower = lower, .types = 7, .reference = expected};

}  // namespace

const Room update_rows_room{&update_rows_op, 1};

}  // namespace ops

Tensor Batch::update_rows(Tensor x, Tensor index, Tensor rows) {
  return OpAccess::record(*this, ops::update_rows_op, {x, index, rows});
}

}  // namespace brontes
