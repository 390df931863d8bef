// The case of every elementwise op: how it is called, what it must give, and how closely.
//
// Adding an op to kernels/elementwise.def needs one row in elementwise.cpp, and one in lib/reference/elementwise.cpp
// for what it must give; a unit test fails without. Device tests and benchmarks walk this table.
#pragma once

#include "reference/reference.hpp"

#include <brontes/batch.hpp>

#include <string_view>
#include <vector>

namespace brontes::cases {

/// What an op is recorded with. Ops of arity 0 use `shape` alone.
struct Operands {
  Batch& batch;
  Shape shape;
  Tensor x;
  Tensor y;
  Tensor z;
  float p = 0;
  float q = 0;
};

using reference::Tolerance;

struct ElementwiseCase {
  const char* name;  // as in elementwise.def
  int arity;
  int scalars;
  Tensor (*record)(const Operands&);
  double (*reference)(double x, double y, double z, double p, double q);
  Tolerance tolerance;
  float low, high;              // random inputs come from [low, high]
  float p = 0, q = 0;           // the scalars of the tests
  const char* types = nullptr;  // as in elementwise.def; null for f32 throughout

  /// Of operand k.
  DType type(std::size_t k) const {
    const char letter = types == nullptr ? 'f' : types[k];
    return letter == 'i' ? DType::i32 : letter == 'm' ? DType::mask : letter == 'h' ? DType::f16 : DType::f32;
  }
};

const std::vector<ElementwiseCase>& elementwise_cases();

/// Null when there is none.
const ElementwiseCase* find_elementwise_case(std::string_view name);

}  // namespace brontes::cases
