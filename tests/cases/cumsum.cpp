#include "op_case.hpp"
#include "row_shapes.hpp"

namespace brontes::cases {
namespace {

OpCase cumsum(const RowCase& row) {
  OpCase c;
  c.name = "cumsum/" + dims(row.shape) + (row.axis == -1 ? "" : "/" + std::to_string(row.axis));
  c.operands.push_back({row.shape});
  c.record = [=](Batch& batch, const std::vector<Tensor>& in) { return batch.cumsum(in[0], row.axis); };
  c.reference = [=](const Data& in) { return reference::cumsum(doubles(in[0]), row.shape, row.index()); };
  // Sums of numbers near the largest overflow or not by their order.
  c.special_values = false;
  return c;
}

std::vector<OpCase> all() {
  std::vector<OpCase> cases;
  for (const RowCase& row : row_cases()) cases.push_back(cumsum(row));
  for (const RowCase& row : column_cases()) cases.push_back(cumsum(row));
  return cases;
}

std::vector<OpBenchmark> benchmarks() {
  const Shape shape(1024, 1024);
  return {{cumsum({shape}), 8.0 * static_cast<double>(shape.count()), static_cast<double>(shape.count())}};
}

}  // namespace

const CaseRoom cumsum_cases{all, benchmarks};

}  // namespace brontes::cases
