#include "ops/store.hpp"

#include "ops/catalogue.hpp"
#include "plan/params.hpp"
#include "plan/plan.hpp"
#include "record/view.hpp"

#include <algorithm>
#include <iterator>
#include <string>

namespace brontes::ops {
namespace {

namespace kernel = kernels::store_slice;
using record::Access;
using record::ValueId;

Error lower(plan::Lowering& to, std::uint32_t index) {
  const record::Node& node = to.root(index);
  const ValueId x = to.graph.inputs(node)[0];
  const record::Value& value = to.graph.value(x);
  const plan::Region into{node.destination, 0, value.bytes(), value.half()};
  return plan::lower_copy(to, index, to.region(x), into, value.shape.count());
}

// Where the elements of a slice lie, from the first byte that a binding may begin at: what is stored to other parts of
// the buffer need not wait.
plan::Region region_of(const Access& a, record::ResourceId destination, bool half, const plan::Traits& traits) {
  std::int64_t first = a.offset;
  std::int64_t last = a.offset;
  for (std::size_t d = 0; d < a.rank; ++d) {
    const std::int64_t distance = (std::int64_t{a.extents[d]} - 1) * a.strides[d];
    (distance < 0 ? first : last) += distance;
  }
  plan::Region region{destination, 0, 0, half};
  const std::uint64_t size = region.element_bytes();
  region.offset = static_cast<std::uint64_t>(first) * size / traits.storage_alignment * traits.storage_alignment;
  region.bytes = (static_cast<std::uint64_t>(last) + 1) * size - region.offset;
  return region;
}

// Rows, and whatever they begin at, are whole vec4s.
bool has_whole_vectors(const Access& a) {
  if (a.rank == 0) return false;
  const std::size_t last = a.rank - 1;
  bool whole = a.strides[last] == 1 && a.extents[last] % 4 == 0 && a.offset % 4 == 0;
  for (std::size_t d = 0; d < last; ++d) whole = whole && a.strides[d] % 4 == 0;
  return whole;
}

Error lower_slice(plan::Lowering& to, std::uint32_t group) {
  const record::Node& node = to.root(group);
  const ValueId x = to.graph.inputs(node)[0];
  const record::Value& value = to.graph.value(x);
  const std::uint64_t count = value.shape.count();
  if (count == 0) return {};
  plan::Region from = to.region(x);
  if (from.resource == node.destination) {
    // Within one buffer, an element could be overwritten before it is read.
    const plan::Region copy = to.arena.reserve(value.bytes(), value.half());
    if (Error e = plan::lower_copy(to, group, from, copy, count)) return e;
    from = copy;
  }

  const auto view = node.attributes.as<record::ViewAttributes>();
  const Access access = record::access(value.shape, {view.strides.items.data(), value.shape.rank()}, view.offset);
  const plan::Region into = region_of(access, node.destination, value.half(), to.traits);
  const std::int32_t columns = has_whole_vectors(access) ? 4 : 1;
  const std::uint32_t group_size = std::min(to.traits.cpu ? 64u : 256u, to.traits.max_group_invocations);
  kernels::StoreSliceParams params{};
  params.n = static_cast<std::uint32_t>(count) / static_cast<std::uint32_t>(columns);
  params.groups = plan::ceil_div(params.n, group_size);
  params.offset = static_cast<std::uint32_t>(access.offset - into.offset / into.element_bytes()) /
                  static_cast<std::uint32_t>(columns);
  for (std::uint32_t d = 0; d < access.rank; ++d) {
    const std::uint32_t from_last = access.rank - 1 - d;
    const std::int32_t stride = access.strides[from_last];
    params.strides[d] = static_cast<std::uint32_t>(d == 0 ? stride : stride / columns);
    if (d + 1 < access.rank)
      params.extents[d] = access.extents[from_last] / (d == 0 ? static_cast<std::uint32_t>(columns) : 1u);
  }
  plan::Dispatch dispatch(kernels::Id::store_slice, group);
  dispatch.work = count;
  dispatch.set(kernel::group_size, group_size);
  dispatch.set(kernel::columns, static_cast<std::uint32_t>(columns));
  dispatch.set(kernel::rank, std::max(access.rank, 1u));
  dispatch.bind(kernel::in0, from);
  dispatch.bind(kernel::out0, into);
  dispatch.params(params);
  return to.emit(dispatch, params.groups);
}

record::ViewAttributes moves(const record::Graph& graph, const record::Node& node, std::size_t) {
  const Shape& shape = graph.value(graph.inputs(node)[0]).shape;
  return record::row_by_row(shape, shape);
}

record::ViewAttributes moves_to_slice(const record::Graph&, const record::Node& node, std::size_t) {
  return node.attributes.as<record::ViewAttributes>();
}

// Both have the name under which they are called.
const record::Op all[] = {
    {.name = "store", .lower = lower, .types = 1, .moves = moves, .fills = true},
    {.name = "store", .fields = record::view_fields, .lower = lower_slice, .types = 1, .moves = moves_to_slice},
};
const record::Op& store_op = all[0];
const record::Op& store_slice_op = all[1];

Error check_type(const record::Value& value, DType destination_type) {
  if (value.weight || value.dtype == destination_type) return {};
  return Error(Errc::type_mismatch, "store: a tensor of " + to_string(value.shape) + " is " + to_string(value.dtype) +
                                        " and the buffer is " + to_string(destination_type) +
                                        "; expected the same type");
}

bool is_all_of(const Shape& destination, const record::Chosen& chosen) {
  if (chosen.shape.count() != destination.count() || chosen.view.offset != 0) return false;
  const Access a = record::access(chosen.shape, {chosen.view.strides.items.data(), chosen.shape.rank()}, 0);
  return a.rank == 0 || (a.rank == 1 && a.strides[0] == 1);
}

}  // namespace

const Room store_room{all, std::size(all)};

Error store(record::Graph& graph, ValueId x, record::ResourceId destination, const Shape& destination_shape,
            DType destination_type, bool exact) {
  const record::Value& value = graph.value(x);
  if (value.shape.count() != destination_shape.count()) {
    return Error(Errc::shape_mismatch, "store: a tensor of " + to_string(value.shape) + " into a buffer of " +
                                           to_string(destination_shape) + "; expected the same number of elements");
  }
  if (Error e = check_type(value, destination_type)) return e;
  // A slice of all elements: slices are written element by element where that matters.
  if (exact) return store_slice(graph, x, destination, Shape(destination_shape.count()), {}, destination_type, true);
  return graph.append_effect(store_op, {&x, 1}, {}, destination);
}

Error store_slice(record::Graph& graph, ValueId x, record::ResourceId destination, const Shape& destination_shape,
                  Span<const Range> ranges, DType destination_type, bool exact) {
  if (Error e = graph.check(store_slice_op, {&x, 1}, {})) return e;
  if (Error e = check_type(graph.value(x), destination_type)) return e;
  const auto chosen = record::choose(destination_shape, ranges, "store");
  if (!chosen) return chosen.error();
  const Shape shape = graph.value(x).shape;
  const bool fills = shape.count() == chosen->shape.count();
  if (!fills && record::broadcast(shape, chosen->shape) != chosen->shape) {
    return Error(Errc::shape_mismatch,
                 "store: a tensor of " + to_string(shape) + " into a slice of " + to_string(chosen->shape) +
                     " of a buffer of " + to_string(destination_shape) +
                     "; expected the same number of elements, or dims that broadcast to the slice's");
  }
  graph.reserve(2);  // nothing fails from here on
  Result<ValueId> source = x;
  if (!fills) {
    source = record::expand(graph, x, chosen->shape);
  } else if (shape != chosen->shape) {
    source = graph.reshape("store", x, chosen->shape);
  }
  if (!source) return source.error();
  if (!exact && is_all_of(destination_shape, *chosen))
    return graph.append_effect(store_op, {&*source, 1}, {}, destination);
  return graph.append_effect(store_slice_op, {&*source, 1}, chosen->view, destination);
}

}  // namespace brontes::ops
