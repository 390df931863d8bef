// Batches without a device: what public calls record can be looked at and planned for any device.
#pragma once

#include "ops/catalogue.hpp"

#include <brontes/batch.hpp>

namespace brontes::test {

/// An operand without data.
inline Tensor stand_in(Batch& batch, const Shape& shape, DType type = DType::f32) {
  if (type != DType::f32) return batch.cast(batch.upload(std::vector<std::int32_t>(shape.count()), shape), type);
  return batch.upload(std::vector<float>(shape.count()), shape);
}

}  // namespace brontes::test
