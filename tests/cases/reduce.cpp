#include "op_case.hpp"

namespace brontes::cases {
namespace {

OpCase reduction(const char* name, const Shape& shape) {
  const std::string op = name;
  OpCase c;
  c.name = "reduce/" + op + "/" + dims(shape);
  c.operands.push_back({shape});
  if (op == "dot") c.operands.push_back({shape});
  c.record = [op](Batch& batch, const std::vector<Tensor>& in) {
    if (op == "dot") return batch.dot(in[0], in[1]);
    return op == "sum" ? batch.sum(in[0]) : op == "max" ? batch.max(in[0]) : batch.min(in[0]);
  };
  c.reference = [op](const Data& in) {
    return reference::reduce(op, doubles(in[0]), in.size() > 1 ? doubles(in[1]) : reference::Values());
  };
  // Sums of numbers near the largest overflow or not by their order.
  c.special_values = op == "max" || op == "min";
  return c;
}

std::vector<OpCase> all() {
  std::vector<OpCase> cases;
  for (const char* op : {"sum", "dot", "max", "min"}) {
    for (const Shape& shape : {Shape(1), Shape(5), Shape(7, 9), Shape(1025), Shape(3, 5, 700), Shape(100'003)}) {
      cases.push_back(reduction(op, shape));
    }
  }
  cases.push_back(reduction("sum", Shape(0)));
  cases.push_back(reduction("dot", Shape(3, 0)));
  return cases;
}

std::vector<OpBenchmark> benchmarks() {
  std::vector<OpBenchmark> all;
  for (const char* op : {"sum", "dot", "max"}) {
    const std::uint64_t count = std::uint64_t{1} << 20;
    const double operands = std::string(op) == "dot" ? 2 : 1;
    all.push_back({reduction(op, Shape(count)), operands * 4 * static_cast<double>(count), static_cast<double>(count)});
  }
  return all;
}

}  // namespace

const CaseRoom reduce_cases{all, benchmarks};

}  // namespace brontes::cases
