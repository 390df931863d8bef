#include "ops/store.hpp"

#include "ops/catalogue.hpp"
#include "plan/plan.hpp"

#include <string>

namespace brontes::ops {
namespace {

Error lower(plan::Lowering& to, std::uint32_t index) {
  const record::Node& node = to.root(index);
  const record::ValueId x = to.graph.inputs(node)[0];
  const record::Value& value = to.graph.value(x);
  return plan::lower_copy(to, index, to.region(x), {node.destination, 0, value.bytes()}, value.shape.count());
}

}  // namespace

const record::Op store_op{.name = "store", .lower = lower, .types = 1, .copies = true};
const Room store_room{&store_op, 1};

Error store(record::Graph& graph, record::ValueId x, record::ResourceId destination, const Shape& destination_shape,
            DType destination_type) {
  const Shape& shape = graph.value(x).shape;
  if (shape.count() != destination_shape.count()) {
    return Error(Errc::shape_mismatch, "store: a tensor of " + to_string(shape) + " into a buffer of " +
                                           to_string(destination_shape) + "; expected the same number of elements");
  }
  const record::Value& value = graph.value(x);
  if (!value.weight && value.dtype != destination_type) {
    return Error(Errc::type_mismatch, "store: a tensor of " + to_string(shape) + " is " + to_string(value.dtype) +
                                          " and the buffer is " + to_string(destination_type) +
                                          "; expected the same type");
  }
  return graph.append_effect(store_op, {&x, 1}, {}, destination);
}

}  // namespace brontes::ops
