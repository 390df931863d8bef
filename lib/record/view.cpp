#include "record/view.hpp"

#include "record/elementwise.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace brontes::record {
namespace {

constexpr ElementwiseInfo copies{"copy", static_cast<std::uint8_t>(ElementwiseOp::copy), 1, 0, "t_t"};

constexpr Op view_op(const char* name) {
  return {.name = name, .fields = view_fields, .types = 1, .elementwise = &copies, .view = true};
}

std::string number(std::int64_t x) { return std::to_string(x); }

using Strides = std::array<std::int32_t, Shape::max_rank>;

/// A view that is being made: what it shows, and how.
struct Window {
  ValueId of = no_value;
  std::uint32_t offset = 0;
  Strides strides{};  // by dim of the value that was asked for a view
};

// Of elements that lie row by row.
Strides strides_of(const Shape& shape) {
  Strides strides{};
  std::uint64_t stride = 1;
  for (std::size_t d = shape.rank(); d-- > 0;) {
    strides[d] = static_cast<std::int32_t>(stride);
    stride *= std::max<std::uint64_t>(shape[d], 1);
  }
  return strides;
}

// All of x, as a window on x or on what x is itself a view of.
Window whole(const Graph& graph, ValueId x) {
  Window window{x};
  if (const Node* node = graph.view_of(x)) {
    const auto own = node->attributes.as<ViewAttributes>();
    window.of = graph.inputs(*node)[0];
    window.offset = own.offset;
    window.strides = own.strides.items;
    return window;
  }
  window.strides = strides_of(graph.value(x).shape);
  return window;
}

ViewAttributes attributes_of(const Window& window, const Shape& shape) {
  ViewAttributes attributes;
  attributes.offset = window.offset;
  attributes.strides.count = static_cast<std::int32_t>(shape.rank());
  std::copy_n(window.strides.begin(), shape.rank(), attributes.strides.items.begin());
  return attributes;
}

Result<ValueId> finish(Graph& graph, const Op& op, const char* name, ValueId x, const Window& window,
                       const Shape& shape) {
  // The elements in the order in which they lie: no need to choose. But what is chosen of a buffer is what lies there
  // now, whatever is stored there later, and a reshape of an import would show that.
  const std::uint64_t count = shape.count();
  const Value& of = graph.value(window.of);
  if (count == of.shape.count() && window.offset == 0 && !of.imported) {
    const Access a = access(shape, {window.strides.data(), shape.rank()}, 0);
    if (count <= 1 || (a.rank == 1 && a.strides[0] == 1)) {
      auto same = graph.reshape(name, window.of, shape);
      if (same && window.of != x) graph.consume(x);
      return same;
    }
  }
  return graph.append_view(op, x, window.of, attributes_of(window, shape), shape);
}

Error no_weight(const Graph& graph, const char* name, ValueId x) {
  if (!graph.value(x).weight) return {};
  return Error(Errc::invalid_argument,
               std::string(name) + ": " + to_string(graph.value(x).shape) + " is a weight, and has no views");
}

// Narrows a window on all of a tensor to the ranges; the shape of that.
Result<Shape> take(Window& window, const Shape& shape, Span<const Range> ranges, const char* name) {
  if (ranges.size() > shape.rank()) {
    return Error(Errc::invalid_argument, std::string(name) + ": " + number(static_cast<std::int64_t>(ranges.size())) +
                                             " ranges for a tensor of " + to_string(shape) +
                                             "; expected at most one per dim");
  }
  std::array<std::uint64_t, Shape::max_rank> dims{};
  std::int64_t offset = window.offset;
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    const Range range = d < ranges.size() ? ranges[d] : Range{};
    const auto n = static_cast<std::int64_t>(shape[d]);
    if (range.step == 0) {
      return Error(Errc::invalid_argument, std::string(name) + ": a step of 0 along dim " +
                                               number(static_cast<std::int64_t>(d)) + " of " + to_string(shape));
    }
    const bool forward = range.step > 0;
    // As in numpy: from the end if negative, then to where a walk in this direction can begin and end.
    auto bound = [&](std::int64_t at) {
      if (at < 0) at = at < -n ? -1 : at + n;
      if (forward) return std::clamp<std::int64_t>(at, 0, n);
      return std::clamp<std::int64_t>(at, -1, n - 1);
    };
    const std::int64_t begin = bound(range.begin);
    const std::int64_t end = bound(range.end);
    // Steps past the dim are all one; the difference keeps clear of overflow.
    const std::int64_t step =
        std::clamp<std::int64_t>(range.step, -std::max<std::int64_t>(n, 1), std::max<std::int64_t>(n, 1));
    const std::int64_t distance = forward ? end - begin : begin - end;
    const std::int64_t stride = forward ? step : -step;
    dims[d] = distance <= 0 ? 0 : static_cast<std::uint64_t>((distance + stride - 1) / stride);
    if (dims[d] != 0) offset += begin * window.strides[d];
    window.strides[d] = static_cast<std::int32_t>(window.strides[d] * step);
    if (dims[d] <= 1) window.strides[d] = 0;
  }
  const Shape result = Shape::of({dims.data(), shape.rank()});
  window.offset = result.count() == 0 ? 0 : static_cast<std::uint32_t>(offset);
  return result;
}

}  // namespace

const Op slice_op = view_op("slice");
const Op permute_op = view_op("permute");
const Op expand_op = view_op("expand");

Result<ValueId> slice(Graph& graph, ValueId x, Span<const Range> ranges, const char* name) {
  if (Error e = no_weight(graph, name, x)) return e;
  const Shape shape = graph.value(x).shape;
  Window window = whole(graph, x);
  const auto taken = take(window, shape, ranges, name);
  if (!taken) return taken.error();
  return finish(graph, slice_op, name, x, window, *taken);
}

Result<Chosen> choose(const Shape& shape, Span<const Range> ranges, const char* name) {
  Window window;
  window.strides = strides_of(shape);
  const auto taken = take(window, shape, ranges, name);
  if (!taken) return taken.error();
  return Chosen{*taken, attributes_of(window, *taken)};
}

Result<ValueId> permute(Graph& graph, ValueId x, Span<const std::int64_t> axes, const char* name) {
  if (Error e = no_weight(graph, name, x)) return e;
  const Shape shape = graph.value(x).shape;
  const auto rank = static_cast<std::int64_t>(shape.rank());
  if (axes.size() != shape.rank()) {
    return Error(Errc::invalid_argument, std::string(name) + ": " + number(static_cast<std::int64_t>(axes.size())) +
                                             " axes for a tensor of " + to_string(shape) + "; expected " +
                                             number(rank));
  }
  const Window from = whole(graph, x);
  Window window = from;
  std::array<std::uint64_t, Shape::max_rank> dims{};
  std::uint32_t seen = 0;
  for (std::size_t d = 0; d < axes.size(); ++d) {
    const std::int64_t axis = axes[d] < 0 ? axes[d] + rank : axes[d];
    if (axis < 0 || axis >= rank || (seen >> axis & 1u) != 0) {
      return Error(Errc::invalid_argument, std::string(name) + ": axis " + number(axes[d]) +
                                               (axis < 0 || axis >= rank ? " is out of range" : " is given twice") +
                                               " for a tensor of " + to_string(shape));
    }
    seen |= 1u << axis;
    dims[d] = shape[static_cast<std::size_t>(axis)];
    window.strides[d] = from.strides[static_cast<std::size_t>(axis)];
  }
  return finish(graph, permute_op, name, x, window, Shape::of({dims.data(), axes.size()}));
}

Result<ValueId> expand(Graph& graph, ValueId x, const Shape& shape) {
  if (Error e = no_weight(graph, "expand", x)) return e;
  const Shape own = graph.value(x).shape;
  const auto joined = shape.valid() ? broadcast(own, shape) : std::nullopt;
  if (!joined || *joined != shape) {
    return Error(Errc::shape_mismatch, "expand: " + to_string(own) + " does not fit " + to_string(shape) +
                                           "; expected equal dims, or 1, from the last dim on");
  }
  const Window from = whole(graph, x);
  Window window = from;
  const std::size_t missing = shape.rank() - own.rank();
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    const bool repeats = d < missing || own[d - missing] != shape[d] || shape[d] == 1;
    window.strides[d] = repeats ? 0 : from.strides[d - missing];
  }
  return finish(graph, expand_op, "expand", x, window, shape);
}

ViewAttributes row_by_row(const Shape& shape, const Shape& whole, std::uint32_t offset) {
  ViewAttributes view;
  view.offset = offset;
  view.strides.count = static_cast<std::int32_t>(shape.rank());
  std::uint64_t stride = 1;
  for (std::size_t d = shape.rank(); d-- > 0;) {
    view.strides.items[d] = static_cast<std::int32_t>(stride);
    stride *= whole[d];
  }
  return view;
}

ValueId transposed_source(const Graph& graph, ValueId x) {
  const Node* node = graph.view_of(x);
  const Shape& shape = graph.value(x).shape;
  if (node == nullptr || shape.rank() < 2) return no_value;
  const ValueId source = graph.inputs(*node)[0];
  const Shape& own = graph.value(source).shape;
  const std::size_t rank = shape.rank();
  const auto view = node->attributes.as<ViewAttributes>();
  if (own.rank() != rank || view.offset != 0) return no_value;
  std::uint64_t stride = 1;
  for (std::size_t d = rank; d-- > 0;) {
    const std::size_t turned = d + 2 < rank ? d : 2 * rank - 3 - d;
    const bool known =
        shape[turned] == own[d] && (own[d] == 1 || view.strides.items[turned] == static_cast<std::int64_t>(stride));
    if (!known) return no_value;
    stride *= own[d];
  }
  return source;
}

Access operand_access(const Graph& graph, const Node& node, std::size_t k) {
  const Shape& result = graph.value(node.output).shape;
  if (!node.op->view) return broadcast_access(graph.value(graph.inputs(node)[k]).shape, result);
  const auto view = node.attributes.as<ViewAttributes>();
  return access(result, {view.strides.items.data(), result.rank()}, view.offset);
}

}  // namespace brontes::record
