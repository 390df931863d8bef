#include "op_case.hpp"

namespace brontes::cases {
namespace {

// Indices go a little past both ends of x, and many are equal.
OpCase update(const Shape& x, const Shape& index, const Shape& rows, DType type = DType::f32) {
  OpCase c;
  const auto entries = static_cast<float>(x[0]);
  c.name =
      "update_rows/" + dims(x) + "/" + dims(index) + (type == DType::f32 ? "" : std::string("/") + to_string(type));
  c.operands = {{x, -100, 100, type}, {index, -entries - 1, entries, DType::i32}, {rows, -100, 100, type}};
  c.record = [](Batch& batch, const std::vector<Tensor>& in) { return batch.update_rows(in[0], in[1], in[2]); };
  c.reference = [x](const Data& in) {
    return reference::update_rows(doubles(in[0]), x, doubles(in[1]), doubles(in[2]));
  };
  return c;
}

std::vector<OpCase> all() {
  std::vector<OpCase> cases;
  for (const int width : {1, 3, 4, 65, 128}) {
    for (const int rows : {1, 7, 100}) {
      for (const int n : {0, 1, 13, 90}) cases.push_back(update({rows, width}, {n}, {n, width}));
    }
  }
  cases.push_back(update({5}, {3, 4}, {3, 4}));
  cases.push_back(update({5, 2, 2}, {6}, {6, 2, 2}));
  cases.push_back(update({0, 4}, {3}, {3, 4}));
  cases.push_back(update({4, 0}, {3}, {3, 0}));
  cases.push_back(update({30, 4}, {10000}, {10000, 4}));
  cases.push_back(update({20011}, {9001}, {9001}));
  cases.push_back(update({9, 4}, {13}, {13, 4}, DType::i32));
  cases.push_back(update({9, 3}, {13}, {13, 3}, DType::mask));
  return cases;
}

std::vector<OpBenchmark> benchmarks() {
  return {{update({8192, 256}, {512}, {512, 256}), 4 * (2 * 8192.0 * 256 + 2 * 512.0 * 256)}};
}

}  // namespace

const CaseRoom update_rows_cases{all, benchmarks};

}  // namespace brontes::cases
