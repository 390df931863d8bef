#include "op_case.hpp"
#include "row_shapes.hpp"

#include <cmath>
#include <limits>

namespace brontes::cases {
namespace {

// Of one line. x - max has an error of half an ulp, which is relative in its exponential.
void reference_line(bool logarithm, const std::vector<float>& x, Expected& y, std::uint64_t first, std::uint64_t stride,
                    std::uint64_t n) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  double largest = -std::numeric_limits<double>::infinity();
  bool any_nan = false;
  for (std::uint64_t i = 0; i < n; ++i) {
    const double v = double{x[first + i * stride]};
    any_nan |= std::isnan(v);
    largest = std::max(largest, v);
  }
  double sum = 0;
  for (std::uint64_t i = 0; i < n; ++i) sum += std::exp(double{x[first + i * stride]} - largest);
  const double log_n = std::log(static_cast<double>(n));
  const double roundings = row_roundings(n) + log_n + 32;
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t at = first + i * stride;
    const double d = double{x[at]} - largest;
    if (any_nan || std::isinf(largest)) {
      y.values[at] = nan;
    } else if (logarithm) {
      y.values[at] = d - std::log(sum);
      y.allowed[at] = 0x1p-24 * (roundings + 3 * (std::fabs(d) + log_n));
    } else {
      y.values[at] = std::exp(d) / sum;
      y.allowed[at] = y.values[at] == 0 ? 0 : 0x1p-24 * y.values[at] * (std::fabs(d) + roundings);
    }
  }
}

OpCase softmax(bool logarithm, const RowCase& row) {
  OpCase c;
  const std::string op = logarithm ? "log_softmax" : "softmax";
  c.name = "softmax/" + op + "/" + dims(row.shape) + (row.axis == -1 ? "" : "/" + std::to_string(row.axis));
  c.operands.push_back({row.shape, -6, 6});
  c.record = [=](Batch& batch, const std::vector<Tensor>& in) {
    return logarithm ? batch.log_softmax(in[0], row.axis) : batch.softmax(in[0], row.axis);
  };
  c.reference = [=](const Data& in) {
    Expected y{std::vector<double>(in[0].size()), std::vector<double>(in[0].size())};
    for_lines(row, [&](std::uint64_t first, std::uint64_t stride, std::uint64_t n) {
      reference_line(logarithm, in[0], y, first, stride, n);
    });
    return y;
  };
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
