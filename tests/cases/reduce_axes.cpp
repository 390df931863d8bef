#include "op_case.hpp"

#include <algorithm>
#include <cmath>

namespace brontes::cases {
namespace {

using Record = Tensor (Batch::*)(Tensor, Axes, bool);

struct Reduction {
  const char* name;
  Record record;
  bool special_values;
};

const Reduction reductions[] = {
    {"sum", &Batch::sum, false},
    {"mean", &Batch::mean, false},
    {"prod", &Batch::prod, false},
    {"max", &Batch::max, true},
    {"min", &Batch::min, true},
    {"sum_of_squares", &Batch::sum_of_squares, true},
    {"l1_norm", &Batch::l1_norm, true},
    {"l2_norm", &Batch::l2_norm, false},
    {"logsumexp", &Batch::logsumexp, true},
};

std::vector<bool> set_of(const Shape& shape, const std::vector<std::int64_t>& axes) {
  std::vector<bool> reduced(shape.rank(), axes.empty());
  const auto rank = static_cast<std::int64_t>(shape.rank());
  for (std::int64_t axis : axes) reduced[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = true;
  return reduced;
}

OpCase reduction(const Reduction& r, const Shape& shape, const std::vector<std::int64_t>& axes,
                 bool keep_dims = false) {
  OpCase c;
  c.name = std::string("reduce_axes/") + r.name + "/" + dims(shape) + "/";
  for (std::int64_t axis : axes) c.name += std::to_string(axis) + (axis == axes.back() ? "" : ",");
  if (axes.empty()) c.name += "all";
  if (keep_dims) c.name += "/keep";
  const std::vector<bool> reduced = set_of(shape, axes);
  Operand operand{shape};
  if (std::string(r.name) == "prod") {
    // Products that neither overflow nor underflow.
    std::uint64_t n = 1;
    for (std::size_t i = 0; i < shape.rank(); ++i) n *= reduced[i] ? shape[i] : 1;
    const float spread = 1 / std::sqrt(static_cast<float>(std::max<std::uint64_t>(n, 4)));
    operand.low = 1 - spread;
    operand.high = 1 + spread;
  }
  c.operands = {operand};
  c.record = [&r, axes, keep_dims](Batch& batch, const std::vector<Tensor>& in) {
    return (batch.*r.record)(in[0], Span<const std::int64_t>(axes), keep_dims);
  };
  c.reference = [&r, shape, reduced](const Data& in) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < reduced.size(); ++i) bits |= reduced[i] ? 1u << i : 0u;
    return reference::reduce_axes(r.name, doubles(in[0]), shape, bits);
  };
  c.special_values = r.special_values;
  return c;
}

std::vector<OpCase> all() {
  std::vector<OpCase> cases;
  struct Where {
    Shape shape;
    std::vector<std::int64_t> axes;
  };
  const Where everywhere[] = {
      {Shape(7), {}},
      {Shape(1), {0}},
      {Shape(5, 7), {0}},
      {Shape(5, 7), {1}},
      {Shape(5, 8), {-1}},
      {Shape(300, 3), {0}},
      {Shape(70, 65), {0}},
      {Shape(33, 4, 5), {1}},
      {Shape(2, 1, 9), {1}},
      {Shape(2, 600, 12), {1}},
      {Shape(3, 5, 7), {0, 2}},
      {Shape(3, 5, 7), {0, -2}},
      {Shape(3, 1, 7, 4), {}},
      {Shape(2, 3, 4, 5), {1, 2}},
      {Shape(2, 3, 4, 5), {0, 3}},
      {Shape(2, 3, 4, 5), {-1, 1}},
      {Shape(4000), {0}},
  };
  for (const Reduction& r : reductions) {
    for (const Where& where : everywhere) cases.push_back(reduction(r, where.shape, where.axes));
    for (const Where& where : {Where{Shape(5, 7), {0}}, Where{Shape(3, 5, 7), {0, 2}}, Where{Shape(6, 4), {}}}) {
      cases.push_back(reduction(r, where.shape, where.axes, true));
    }
    // No elements in a set, and no sets.
    cases.push_back(reduction(r, Shape(0, 5), {1}));
    if (r.record == static_cast<Record>(&Batch::max) || r.record == static_cast<Record>(&Batch::min)) continue;
    cases.push_back(reduction(r, Shape(0, 5), {0}));
    cases.push_back(reduction(r, Shape(3, 0), {}, true));
  }
  // Many parts, which several passes combine; parts of odd widths; rows that begin anywhere in a vec4.
  const Where large[] = {
      {Shape(100'003), {0}},    {Shape(3, 40'001), {1}}, {Shape(40'000, 4), {0}}, {Shape(20'001, 3), {0}},
      {Shape(4, 5000, 6), {1}}, {Shape(2000, 37), {1}},  {Shape(2000, 37), {0}},  {Shape(3000, 2, 33), {0, 2}},
  };
  for (const Reduction& r : reductions) {
    for (const Where& where : large) cases.push_back(reduction(r, where.shape, where.axes));
  }
  return cases;
}

std::vector<OpBenchmark> benchmarks() {
  std::vector<OpBenchmark> all;
  auto add = [&](std::size_t which, const Shape& shape, std::int64_t axis) {
    const double count = static_cast<double>(shape.count());
    const double results = count / static_cast<double>(shape[static_cast<std::size_t>(axis)]);
    all.push_back({reduction(reductions[which], shape, {axis}), 4 * (count + results), count});
  };
  for (const std::int64_t axis : {0, 1}) {
    add(0, Shape(4096, 4096), axis);  // sum
    add(3, Shape(1024, 1024), axis);  // max
    add(8, Shape(1024, 1024), axis);  // logsumexp
  }
  return all;
}

}  // namespace

const CaseRoom reduce_axes_cases{all, benchmarks};

}  // namespace brontes::cases
