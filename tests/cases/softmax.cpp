#include "op_case.hpp"
#include "row_shapes.hpp"

namespace brontes::cases {
namespace {

OpCase softmax(bool logarithm, const RowCase& row) {
  OpCase c;
  const std::string op = logarithm ? "log_softmax" : "softmax";
  c.name = "softmax/" + op + "/" + dims(row.shape) + (row.axis == -1 ? "" : "/" + std::to_string(row.axis));
  c.operands.push_back({row.shape, -6, 6});
  c.record = [=](Batch& batch, const std::vector<Tensor>& in) {
    return logarithm ? batch.log_softmax(in[0], row.axis) : batch.softmax(in[0], row.axis);
  };
  c.reference = [=](const Data& in) { return reference::softmax(doubles(in[0]), row.shape, row.index(), logarithm); };
  return c;
}

std::vector<OpCase> all() {
  std::vector<OpCase> cases;
  for (const bool logarithm : {false, true}) {
    for (const RowCase& row : row_cases()) cases.push_back(softmax(logarithm, row));
    for (const RowCase& row : column_cases()) cases.push_back(softmax(logarithm, row));
  }
  return cases;
}

std::vector<OpBenchmark> benchmarks() {
  std::vector<OpBenchmark> all;
  for (const Shape& shape : {Shape(1024, 1024), Shape(32, 32000)}) {
    all.push_back({softmax(false, {shape}), 8.0 * static_cast<double>(shape.count()), 0});
  }
  return all;
}

}  // namespace

const CaseRoom softmax_cases{all, benchmarks};

}  // namespace brontes::cases
