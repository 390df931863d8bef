// Slices, permutations of dims and expansions: ops that choose elements and compute nothing. Elementwise ops read what
// they choose where it lies; for everyone else they are a copy.
#pragma once

#include "record/graph.hpp"
#include "record/shape.hpp"

#include <brontes/tensor.hpp>

#include <cstddef>
#include <cstdint>

namespace brontes::record {

/// Of an op with Op::view: which element of the operand each element of the result is. As Op::moves gives them: which
/// element of the result or destination each element of an operand goes to.
struct ViewAttributes {
  std::uint32_t offset = 0;
  List strides;  // by dim of the result, or of the operand that is moved
};

inline constexpr Field view_fields[] = {
    {.name = "offset",
     .type = Field::Type::u32,
     .text = Field::Text::named,
     .offset = offsetof(ViewAttributes, offset),
     .default_bits = 0,
     .json_default = false},
    {"strides", Field::Type::list, Field::Text::named, offsetof(ViewAttributes, strides)},
};

extern const Op slice_op;
extern const Op permute_op;
extern const Op expand_op;

/// The ranges are for the first dims of x; the others are taken whole.
Result<ValueId> slice(Graph& graph, ValueId x, Span<const Range> ranges, const char* name = "slice");
/// Dim i of the result is dim axes[i] of x.
Result<ValueId> permute(Graph& graph, ValueId x, Span<const std::int64_t> axes, const char* name = "permute");
Result<ValueId> expand(Graph& graph, ValueId x, const Shape& shape);

/// The elements that ranges choose of memory whose elements lie row by row.
struct Chosen {
  Shape shape;
  ViewAttributes view;
};
Result<Chosen> choose(const Shape& shape, Span<const Range> ranges, const char* name);

/// All elements of a tensor of this shape, in order, as they lie in one whose dims have the strides of `whole`. Both
/// have the same rank.
ViewAttributes row_by_row(const Shape& shape, const Shape& whole, std::uint32_t offset = 0);

/// The value of which x shows the last two dims the other way round, and nothing else; no_value if it does not. For ops
/// that can read their operand either way.
ValueId transposed_source(const Graph& graph, ValueId x);

/// How operand k of an elementwise node is read, a view op or one that broadcasts.
Access operand_access(const Graph& graph, const Node& node, std::size_t k);

}  // namespace brontes::record
