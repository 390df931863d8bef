#include "op_case.hpp"
#include "row_shapes.hpp"

namespace brontes::cases {
namespace {

OpCase extreme(const RowCase& row, bool smallest, DType type = DType::f32, bool keep_dim = false) {
  OpCase c;
  c.name = std::string("extreme/") + (smallest ? "argmin/" : "argmax/") + dims(row.shape) +
           (row.axis == -1 ? "" : "/" + std::to_string(row.axis)) +
           (type == DType::f32 ? "" : std::string("/") + to_string(type)) + (keep_dim ? "/keep_dim" : "");
  // Whole numbers have many equals.
  c.operands.push_back({row.shape, -3, 3, type});
  c.record = [=](Batch& batch, const std::vector<Tensor>& in) {
    return smallest ? batch.argmin(in[0], row.axis, keep_dim) : batch.argmax(in[0], row.axis, keep_dim);
  };
  c.reference = [=](const Data& in) { return reference::extreme(doubles(in[0]), row.shape, row.index(), smallest); };
  return c;
}

std::vector<OpCase> all() {
  std::vector<OpCase> cases;
  std::vector<RowCase> rows = row_cases();
  for (const RowCase& row : column_cases()) rows.push_back(row);
  for (const RowCase& row : rows) {
    const auto rank = static_cast<std::int64_t>(row.shape.rank());
    const std::uint64_t n = row.shape[static_cast<std::size_t>(row.axis < 0 ? row.axis + rank : row.axis)];
    if (n == 0 && row.shape != Shape(0, 5)) continue;
    cases.push_back(extreme(row, false));
    cases.push_back(extreme(row, true));
  }
  for (const bool smallest : {false, true}) {
    cases.push_back(extreme({Shape(3, 100)}, smallest, DType::i32));
    cases.push_back(extreme({Shape(3, 5, 4), 1}, smallest, DType::i32));
    cases.push_back(extreme({Shape(40003)}, smallest, DType::i32));
    cases.push_back(extreme({Shape(3, 5, 4), 1}, smallest, DType::f32, true));
    cases.push_back(extreme({Shape(9)}, smallest, DType::f32, true));
  }
  return cases;
}

std::vector<OpBenchmark> benchmarks() {
  const Shape shape(1024, 1024);
  const double bytes = 4.0 * static_cast<double>(shape.count());
  return {{extreme({shape}, false), bytes}, {extreme({shape, 0}, false), bytes}};
}

}  // namespace

const CaseRoom extreme_cases{all, benchmarks};

}  // namespace brontes::cases
