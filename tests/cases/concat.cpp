#include "op_case.hpp"

namespace brontes::cases {
namespace {

// Tensors that are {outer, extent, inner}, along the axis in the middle.
OpCase joined(std::uint64_t outer, const std::vector<std::uint64_t>& extents, std::uint64_t inner) {
  OpCase c;
  c.name = "concat/" + std::to_string(outer) + "x(";
  for (std::uint64_t extent : extents) {
    c.name += (c.operands.empty() ? "" : "+") + std::to_string(extent);
    c.operands.push_back({Shape(outer, extent, inner)});
  }
  c.name += ")x" + std::to_string(inner);
  c.record = [](Batch& batch, const std::vector<Tensor>& in) { return batch.concat(in, -2); };
  c.reference = [=](const Data& in) {
    std::vector<reference::Values> parts;
    for (const auto& part : in) parts.push_back(doubles(part));
    return reference::concat(parts, outer);
  };
  return c;
}

std::vector<OpCase> all() {
  std::vector<OpCase> cases;
  for (const std::uint64_t outer : {1u, 3u}) {
    for (const std::uint64_t inner : {1u, 4u, 5u}) {
      cases.push_back(joined(outer, {1}, inner));
      cases.push_back(joined(outer, {2, 3}, inner));
      cases.push_back(joined(outer, {4, 0, 8}, inner));
      cases.push_back(joined(outer, {1, 2, 3, 4, 5, 6, 7}, inner));
      cases.push_back(joined(outer, {1, 1, 1, 1, 1, 1, 1, 1}, inner));
      cases.push_back(joined(outer, std::vector<std::uint64_t>(inner == 4 ? 40 : 17, 2), inner));
    }
  }
  cases.push_back(joined(0, {1, 2}, 3));
  cases.push_back(joined(2, {0, 0}, 3));
  cases.push_back(joined(20, {1000, 3}, 1));
  return cases;
}

std::vector<OpBenchmark> benchmarks() {
  return {{joined(1, {1024, 1024}, 1024), 16.0 * 1024 * 1024}, {joined(1024, {1024, 1024}, 1), 16.0 * 1024 * 1024}};
}

}  // namespace

const CaseRoom concat_cases{all, benchmarks};

}  // namespace brontes::cases
