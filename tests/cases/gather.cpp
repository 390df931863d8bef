#include "op_case.hpp"

namespace brontes::cases {
namespace {

// Indices go a little past both ends of the table.
OpCase gather(const Shape& table, const Shape& index, DType type = DType::f32) {
  OpCase c;
  const auto entries = static_cast<float>(table[0]);
  c.name = "gather/" + dims(table) + "/" + dims(index) + (type == DType::f32 ? "" : std::string("/") + to_string(type));
  c.operands = {{table, -100, 100, type}, {index, -entries - 1, entries, DType::i32}};
  c.record = [](Batch& batch, const std::vector<Tensor>& in) { return batch.gather(in[0], in[1]); };
  c.reference = [table, type](const Data& in) {
    return reference::gather(doubles(in[0]), table, type, doubles(in[1]));
  };
  return c;
}

std::vector<OpCase> all() {
  std::vector<OpCase> cases;
  for (const Shape& table : {Shape(1), Shape(7), Shape(5, 4), Shape(9, 3), Shape(300, 64), Shape(17, 129)}) {
    for (const Shape& index : {Shape(1), Shape(13), Shape(4, 5), Shape(0)}) cases.push_back(gather(table, index));
  }
  cases.push_back(gather(Shape(6, 2, 4), Shape(3, 2)));
  cases.push_back(gather(Shape(6, 2, 3), Shape(7)));
  cases.push_back(gather(Shape(5), Shape(2, 3, 2, 2)));
  cases.push_back(gather(Shape(0, 4), Shape(3)));
  cases.push_back(gather(Shape(4, 0), Shape(3)));
  cases.push_back(gather(Shape(3, 4), Shape(20011)));
  cases.push_back(gather(Shape(3), Shape(21001)));
  cases.push_back(gather(Shape(9, 3), Shape(13), DType::i32));
  cases.push_back(gather(Shape(9, 4), Shape(13), DType::i32));
  cases.push_back(gather(Shape(9, 4), Shape(13), DType::mask));
  return cases;
}

std::vector<OpBenchmark> benchmarks() { return {{gather(Shape(8192, 256), Shape(4096)), 2 * 4 * 4096.0 * 256}}; }

}  // namespace

const CaseRoom gather_cases{all, benchmarks};

}  // namespace brontes::cases
