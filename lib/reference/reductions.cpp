#include "reference/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace brontes::reference {

double reduction_tolerance(std::uint64_t n) {
  const double length = static_cast<double>(n);
  return n < 2 ? 0x1p-24 : 0x1p-24 * std::min(length, 42 + std::log2(length));
}

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double ulp = 0x1p-23;

double sum(const Values& x) {
  double total = 0;
  for (double v : x) total += v;
  return total;
}
double squares(const Values& x) {
  double total = 0;
  for (double v : x) total += v * v;
  return total;
}
double magnitudes(const Values& x) {
  double total = 0;
  for (double v : x) total += std::fabs(v);
  return total;
}
double product(const Values& x) {
  double total = 1;
  for (double v : x) total *= v;
  return total;
}
double mean(const Values& x) { return sum(x) / static_cast<double>(x.size()); }
// NaN if any element is.
double extreme(const Values& x, double sign) {
  double best = -infinity;
  for (double v : x) {
    if (std::isnan(v)) return v;
    best = std::max(best, sign * v);
  }
  return sign * best;
}
double largest(const Values& x) { return extreme(x, 1); }
double smallest(const Values& x) { return extreme(x, -1); }
double log_of_exps(const Values& x) {
  const double most = largest(x);
  if (std::isnan(most) || std::isinf(most)) return most;
  double total = 0;
  for (double v : x) total += std::exp(v - most);
  return most + std::log(total);
}

// The elements of one result, and how far off it may be, where `roundings` is the bound on those of a sum. The table
// of docs/architecture.md.
struct Reduction {
  std::string_view name;
  double (*result)(const Values& x);
  double (*allowed)(const Values& x, double result, double roundings);
};

const Reduction reductions[] = {
    {"sum", sum, [](const Values& x, double, double roundings) { return roundings * magnitudes(x); }},
    {"mean", mean,
     [](const Values& x, double, double roundings) {
       return (roundings + 3 * ulp) * magnitudes(x) / static_cast<double>(x.size());
     }},
    {"prod", product,
     [](const Values& x, double result, double) {
       return std::fabs(result) * static_cast<double>(x.size()) * 0x1p-24;
     }},
    {"max", largest, [](const Values&, double, double) { return 0.0; }},
    {"min", smallest, [](const Values&, double, double) { return 0.0; }},
    {"sum_of_squares", squares,
     [](const Values&, double result, double roundings) { return (roundings + ulp) * result; }},
    {"l1_norm", magnitudes, [](const Values&, double result, double roundings) { return roundings * result; }},
    {"l2_norm", [](const Values& x) { return std::sqrt(squares(x)); },
     [](const Values&, double result, double roundings) { return (roundings / 2 + 5 * ulp) * result; }},
    {"logsumexp", log_of_exps,
     [](const Values&, double result, double) { return 0x1p-17 + 4 * ulp * std::fabs(result); }},
};

// Each block of neighbouring axes has the roundings of a sum of its own.
double roundings_of(const Shape& shape, std::uint32_t axes) {
  double total = 0;
  std::uint64_t n = 1;
  for (std::size_t i = 0; i <= shape.rank(); ++i) {
    if (i < shape.rank() && ((axes >> i & 1u) != 0 || shape[i] == 1)) {
      n *= shape[i];
    } else if (n != 1) {
      total += reduction_tolerance(n);
      n = 1;
    }
  }
  return std::max(total, reduction_tolerance(1));
}

// The elements of each result.
std::vector<Values> sets_of(const Values& x, const Shape& shape, std::uint32_t axes) {
  std::uint64_t results = 1;
  for (std::size_t i = 0; i < shape.rank(); ++i) results *= (axes >> i & 1u) != 0 ? 1 : shape[i];
  std::vector<Values> sets(results);
  for (std::uint64_t at = 0; at < x.size(); ++at) {
    std::uint64_t result = 0;
    std::uint64_t stride = 1;
    std::uint64_t rest = at;
    for (std::size_t i = shape.rank(); i-- > 0;) {
      if ((axes >> i & 1u) == 0) {
        result += rest % shape[i] * stride;
        stride *= shape[i];
      }
      rest /= shape[i];
    }
    sets[result].push_back(x[at]);
  }
  return sets;
}

}  // namespace

Expected reduce_axes(std::string_view op, const Values& x, const Shape& shape, std::uint32_t axes) {
  const auto reduction =
      std::find_if(std::begin(reductions), std::end(reductions), [&](const Reduction& r) { return r.name == op; });
  Expected expected;
  const double roundings = roundings_of(shape, axes);
  for (const Values& set : sets_of(x, shape, axes)) {
    expected.values.push_back(reduction->result(set));
    expected.allowed.push_back(reduction->allowed(set, expected.values.back(), roundings));
  }
  return expected;
}

// Of no elements sum and dot are 0; the others are refused.
Expected reduce(std::string_view op, const Values& x, const Values& y) {
  Values terms = x;
  if (op == "dot") {
    for (std::size_t i = 0; i < terms.size(); ++i) terms[i] *= y[i];
    op = "sum";
  }
  const std::uint64_t n = terms.size();
  Expected expected = reduce_axes(op, terms, Shape(n), 1);
  if (op == "sum") expected.allowed[0] = reduction_tolerance(n) * magnitudes(terms);
  return expected;
}

}  // namespace brontes::reference
