// store: copies a value into memory outside the batch, all of it or a slice.
#pragma once

#include "record/graph.hpp"

namespace brontes::ops {

/// `exact`: what lies behind the elements is somebody else's, and is not written along with the last vec4.
Error store(record::Graph& graph, record::ValueId x, record::ResourceId destination, const Shape& destination_shape,
            DType destination_type = DType::f32, bool exact = false);

/// destination[ranges] = x, where x has as many elements as the slice or broadcasts to its shape.
Error store_slice(record::Graph& graph, record::ValueId x, record::ResourceId destination,
                  const Shape& destination_shape, Span<const Range> ranges, DType destination_type = DType::f32,
                  bool exact = false);

}  // namespace brontes::ops
