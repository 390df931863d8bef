// store: copies a value into memory outside the batch.
#pragma once

#include "record/graph.hpp"

namespace brontes::ops {

extern const record::Op store_op;

Error store(record::Graph& graph, record::ValueId x, record::ResourceId destination, const Shape& destination_shape,
            DType destination_type = DType::f32);

}  // namespace brontes::ops
