// concat: tensors side by side along an axis.
#include "ops/catalogue.hpp"
#include "ops/row.hpp"
#include "plan/params.hpp"
#include "plan/plan.hpp"
#include "record/view.hpp"
#include "reference/reference.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

namespace brontes {
namespace ops {
namespace {

namespace kernel = kernels::concat;
using record::Field;

constexpr std::size_t max_parts = 7;
constexpr kernel::Binding input_ids[] = {kernel::in0, kernel::in1, kernel::in2, kernel::in3,
                                         kernel::in4, kernel::in5, kernel::in6};
static_assert(std::size(input_ids) == max_parts);

struct ConcatAttributes {
  std::int64_t axis = 0;
};

constexpr Field fields[] = {
    {"axis", Field::Type::i64, Field::Text::named, offsetof(ConcatAttributes, axis)},
};

Error infer(const record::Graph& graph, Span<const record::ValueId> inputs, record::Attributes& attributes,
            std::vector<record::ValueType>& results) {
  if (inputs.empty()) return Error(Errc::empty_input, "concat: no tensors");
  auto own = attributes.as<ConcatAttributes>();
  const record::Value& first = graph.value(inputs[0]);
  if (Error e = resolve_axis("concat", first.shape, own.axis)) return e;
  attributes = own;
  const auto axis = static_cast<std::size_t>(own.axis);
  std::array<std::uint64_t, Shape::max_rank> dims{};
  for (std::size_t d = 0; d < first.shape.rank(); ++d) dims[d] = d == axis ? 0 : first.shape[d];
  for (record::ValueId x : inputs) {
    const Shape& shape = graph.value(x).shape;
    bool fits = shape.rank() == first.shape.rank();
    for (std::size_t d = 0; d < shape.rank() && fits; ++d) fits = d == axis || shape[d] == dims[d];
    if (!fits) {
      return Error(Errc::shape_mismatch, "concat: " + to_string(shape) + " does not fit " + to_string(first.shape) +
                                             " along axis " + std::to_string(axis) +
                                             "; expected the same extents along the other axes");
    }
    if (graph.value(x).dtype != first.dtype) {
      return Error(Errc::type_mismatch, "concat: " + to_string(shape) + " is " + to_string(graph.value(x).dtype) +
                                            " and " + to_string(first.shape) + " is " + to_string(first.dtype) +
                                            "; expected the same type");
    }
    if (dims[axis] + shape[axis] < dims[axis]) {
      return Error(Errc::size_overflow, "concat: the size of the result does not fit in 64 bits");
    }
    dims[axis] += shape[axis];
  }
  results.push_back({Shape::of({dims.data(), first.shape.rank()}), first.dtype});
  return {};
}

std::size_t axis_of(const record::Node& node) {
  return static_cast<std::size_t>(node.attributes.as<ConcatAttributes>().axis);
}

// Elements of a step along the axis.
std::uint64_t inner_of(const Shape& shape, std::size_t axis) {
  std::uint64_t inner = 1;
  for (std::size_t d = axis + 1; d < shape.rank(); ++d) inner *= shape[d];
  return inner;
}

record::ViewAttributes moves(const record::Graph& graph, const record::Node& node, std::size_t k) {
  const Shape& shape = graph.value(node.output).shape;
  const std::size_t axis = axis_of(node);
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < k; ++i) before += graph.value(graph.inputs(node)[i]).shape[axis];
  return record::row_by_row(graph.value(graph.inputs(node)[k]).shape, shape,
                            static_cast<std::uint32_t>(before * inner_of(shape, axis)));
}

Error lower(plan::Lowering& to, std::uint32_t group) {
  const record::Node& node = to.root(group);
  const Shape& shape = to.graph.value(node.output).shape;
  if (shape.count() == 0) return {};
  const std::size_t axis = axis_of(node);
  const std::uint64_t inner = inner_of(shape, axis);

  // Tensors without elements have no part. Of those that are written in place, none lies between others, and the result
  // is one row.
  std::vector<record::ValueId> parts;
  bool vectorized = true;
  bool all = true;
  std::uint64_t first_element = 0;
  std::uint64_t row_elements = 0;
  for (std::size_t k = 0; k < node.input_count; ++k) {
    const record::ValueId x = to.graph.inputs(node)[k];
    const std::uint64_t part = to.graph.value(x).shape[axis] * inner;
    if (part == 0) continue;
    if (to.is_there(node, k)) {
      if (parts.empty()) first_element += part;
      all = false;
      continue;
    }
    parts.push_back(x);
    vectorized = vectorized && part % 4 == 0;
    row_elements += part;
  }
  plan::Region into = to.result(group);
  const std::uint64_t size = into.element_bytes();
  if (!all) into = {into.resource, into.offset + first_element * size, row_elements * size, into.half};
  const std::uint32_t unit = vectorized ? 4 : 1;
  const std::uint32_t group_size = std::min(to.traits.cpu ? 64u : 256u, to.traits.max_group_invocations);
  const auto row = static_cast<std::uint32_t>(row_elements / unit);
  const std::uint32_t outer = all ? static_cast<std::uint32_t>(shape.count() / unit) / row : 1;
  std::uint32_t column = 0;
  for (std::size_t first = 0; first < parts.size(); first += max_parts) {
    const std::size_t count = std::min(max_parts, parts.size() - first);
    plan::Dispatch dispatch(kernels::Id::concat, group);
    kernels::ConcatParams params{};
    for (std::size_t k = 0; k < count; ++k) {
      const record::ValueId x = parts[first + k];
      dispatch.bind(input_ids[k], to.region(x));
      params.begin[k + 1] = params.begin[k] + static_cast<std::uint32_t>(to.graph.value(x).shape[axis] * inner / unit);
    }
    params.n = outer * params.begin[count];
    params.groups = plan::ceil_div(params.n, group_size);
    params.row = row;
    params.column = column;
    column += params.begin[count];
    dispatch.work = std::uint64_t{params.n} * unit;
    dispatch.set(kernel::group_size, group_size);
    dispatch.set(kernel::count, static_cast<std::uint32_t>(count));
    dispatch.set(kernel::vectorized, vectorized ? 1 : 0);
    dispatch.bind(kernel::out0, into);
    dispatch.params(params);
    if (Error e = to.emit(dispatch, params.groups)) return e;
  }
  return {};
}

reference::Expected expected(const record::Graph& graph, const record::Node& node,
                             Span<const reference::Values> inputs) {
  const RowShape shape = row_shape(graph.value(node.output).shape, node.attributes.as<ConcatAttributes>().axis);
  return reference::concat(inputs, shape.outer);
}

const record::Op concat_op{.name = "concat",
                           .fields = fields,
                           .infer = infer,
                           .lower = lower,
                           .types = ~0u,
                           .moves = moves,
                           .reference = expected};

}  // namespace

const Room concat_room{&concat_op, 1};

}  // namespace ops

Tensor Batch::concat(Span<const Tensor> parts, std::int64_t axis) {
  return OpAccess::record(*this, ops::concat_op, parts, ops::ConcatAttributes{axis});
}

Tensor Batch::concat(std::initializer_list<Tensor> parts, std::int64_t axis) {
  return concat(Span<const Tensor>(parts.begin(), parts.size()), axis);
}

}  // namespace brontes
