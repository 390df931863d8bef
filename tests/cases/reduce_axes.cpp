#include "op_case.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace brontes::cases {
namespace {

using Record = Tensor (Batch::*)(Tensor, Axes, bool);

struct Reduction {
  const char* name;
  Record record;
  /// Of the elements of one result.
  double (*reference)(const std::vector<double>& x);
  /// How far off the result may be, where `roundings` is the bound on those of a sum.
  double (*allowed)(const std::vector<double>& x, double result, double roundings);
  bool special_values;
};

constexpr double infinity = std::numeric_limits<double>::infinity();

double sum_of(const std::vector<double>& x) {
  double total = 0;
  for (double v : x) total += v;
  return total;
}
double squares(const std::vector<double>& x) {
  double total = 0;
  for (double v : x) total += v * v;
  return total;
}
double magnitudes(const std::vector<double>& x) {
  double total = 0;
  for (double v : x) total += std::fabs(v);
  return total;
}
double extreme(const std::vector<double>& x, double sign) {
  double best = -infinity;
  for (double v : x) {
    if (std::isnan(v)) return v;
    best = std::max(best, sign * v);
  }
  return sign * best;
}
double log_of_exps(const std::vector<double>& x) {
  const double largest = extreme(x, 1);
  if (std::isnan(largest) || std::isinf(largest)) return largest;
  double total = 0;
  for (double v : x) total += std::exp(v - largest);
  return largest + std::log(total);
}

constexpr double ulp = 0x1p-23;

// The table of docs/architecture.md.
const Reduction reductions[] = {
    {"sum", &Batch::sum, sum_of,
     [](const std::vector<double>& x, double, double roundings) { return roundings * magnitudes(x); }, false},
    {"mean", &Batch::mean, [](const std::vector<double>& x) { return sum_of(x) / static_cast<double>(x.size()); },
     [](const std::vector<double>& x, double, double roundings) {
       return (roundings + 3 * ulp) * magnitudes(x) / static_cast<double>(x.size());
     },
     false},
    {"prod", &Batch::prod,
     [](const std::vector<double>& x) {
       double product = 1;
       for (double v : x) product *= v;
       return product;
     },
     [](const std::vector<double>& x, double result, double) {
       return std::fabs(result) * static_cast<double>(x.size()) * 0x1p-24;
     },
     false},
    {"max", &Batch::max, [](const std::vector<double>& x) { return extreme(x, 1); },
     [](const std::vector<double>&, double, double) { return 0.0; }, true},
    {"min", &Batch::min, [](const std::vector<double>& x) { return extreme(x, -1); },
     [](const std::vector<double>&, double, double) { return 0.0; }, true},
    {"sum_of_squares", &Batch::sum_of_squares, squares,
     [](const std::vector<double>&, double result, double roundings) { return (roundings + ulp) * result; }, true},
    {"l1_norm", &Batch::l1_norm, magnitudes,
     [](const std::vector<double>&, double result, double roundings) { return roundings * result; }, true},
    {"l2_norm", &Batch::l2_norm, [](const std::vector<double>& x) { return std::sqrt(squares(x)); },
     [](const std::vector<double>&, double result, double roundings) { return (roundings / 2 + 5 * ulp) * result; },
     false},
    {"logsumexp", &Batch::logsumexp, log_of_exps,
     [](const std::vector<double>&, double result, double) { return 0x1p-17 + 4 * ulp * std::fabs(result); }, true},
};

std::vector<bool> set_of(const Shape& shape, const std::vector<std::int64_t>& axes) {
  std::vector<bool> reduced(shape.rank(), axes.empty());
  const auto rank = static_cast<std::int64_t>(shape.rank());
  for (std::int64_t axis : axes) reduced[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = true;
  return reduced;
}

// Each block of neighbouring axes has the roundings of a sum of its own.
double roundings_of(const Shape& shape, const std::vector<bool>& reduced) {
  double total = 0;
  std::uint64_t n = 1;
  for (std::size_t i = 0; i <= shape.rank(); ++i) {
    if (i < shape.rank() && (reduced[i] || shape[i] == 1)) {
      n *= shape[i];
    } else if (n != 1) {
      total += reduction_tolerance(n);
      n = 1;
    }
  }
  return std::max(total, reduction_tolerance(1));
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
    std::uint64_t results = 1;
    for (std::size_t i = 0; i < shape.rank(); ++i) results *= reduced[i] ? 1 : shape[i];
    std::vector<std::vector<double>> sets(results);
    for (std::uint64_t at = 0; at < in[0].size(); ++at) {
      std::uint64_t result = 0;
      std::uint64_t stride = 1;
      std::uint64_t rest = at;
      for (std::size_t i = shape.rank(); i-- > 0;) {
        if (!reduced[i]) {
          result += rest % shape[i] * stride;
          stride *= shape[i];
        }
        rest /= shape[i];
      }
      sets[result].push_back(double{in[0][at]});
    }
    Expected expected;
    const double roundings = roundings_of(shape, reduced);
    for (const std::vector<double>& x : sets) {
      expected.values.push_back(r.reference(x));
      expected.allowed.push_back(r.allowed(x, expected.values.back(), roundings));
    }
    return expected;
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
