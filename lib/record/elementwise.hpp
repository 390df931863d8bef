// The elementwise ops: the rows of kernels/elementwise.def, each an op.
#pragma once

#include "record/graph.hpp"

#include <cstdint>

namespace brontes::record {

enum class ElementwiseOp : std::uint8_t {
#define BRONTES_OP(name, code, arity, scalars, types, formula) name = code,
#include "elementwise.def"
#undef BRONTES_OP
};

inline constexpr std::size_t elementwise_max_arity = 3;

const ElementwiseInfo& info(ElementwiseOp op) noexcept;
/// All of them, by code.
Span<const Op> elementwise_ops() noexcept;

struct ElementwiseAttributes {
  float p = 0;
  float q = 0;
};

inline ElementwiseOp elementwise_op(const Node& node) noexcept {
  return static_cast<ElementwiseOp>(node.op->elementwise->code);
}

/// Of any elementwise node; views have none.
inline ElementwiseAttributes scalars(const Node& node) noexcept {
  return node.op->view ? ElementwiseAttributes{} : node.attributes.as<ElementwiseAttributes>();
}

/// Of operands of a type that the op has a row of its own for, as add has add_i32, it is that row.
Result<ValueId> elementwise(Graph& graph, ElementwiseOp op, Span<const ValueId> inputs, float p = 0, float q = 0);
Result<ValueId> fill(Graph& graph, float value, const Shape& shape);
Result<ValueId> fill_i32(Graph& graph, std::int32_t value, const Shape& shape);
/// Nothing is recorded where x is of that type already.
Result<ValueId> cast(Graph& graph, ValueId x, DType type);

}  // namespace brontes::record
