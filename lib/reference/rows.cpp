// Ops along one axis.
#include "reference/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace brontes::reference {

double row_roundings(std::uint64_t n) {
  const double length = static_cast<double>(n);
  return std::min(length, 180 + std::sqrt(length) / 2);
}

namespace {

Expected like(const Values& x) { return {Values(x.size()), Values(x.size())}; }

// x - max has an error of half an ulp, which is relative in its exponential.
void softmax_line(bool logarithm, const Values& x, Expected& y, std::uint64_t first, std::uint64_t stride,
                  std::uint64_t n) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  double largest = -std::numeric_limits<double>::infinity();
  bool any_nan = false;
  for (std::uint64_t i = 0; i < n; ++i) {
    const double v = x[first + i * stride];
    any_nan |= std::isnan(v);
    largest = std::max(largest, v);
  }
  double sum = 0;
  for (std::uint64_t i = 0; i < n; ++i) sum += std::exp(x[first + i * stride] - largest);
  const double log_n = std::log(static_cast<double>(n));
  const double roundings = row_roundings(n) + log_n + 32;
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t at = first + i * stride;
    const double d = x[at] - largest;
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

}  // namespace

Expected softmax(const Values& x, const Shape& shape, std::size_t axis, bool logarithm) {
  Expected y = like(x);
  for_lines(shape, axis, [&](std::uint64_t first, std::uint64_t stride, std::uint64_t n) {
    softmax_line(logarithm, x, y, first, stride, n);
  });
  return y;
}

Expected cumsum(const Values& x, const Shape& shape, std::size_t axis) {
  Expected y = like(x);
  for_lines(shape, axis, [&](std::uint64_t first, std::uint64_t stride, std::uint64_t n) {
    double sum = 0;
    double magnitude = 0;
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t at = first + i * stride;
      sum += x[at];
      magnitude += std::fabs(x[at]);
      y.values[at] = sum;
      y.allowed[at] = 0x1p-24 * magnitude * (row_roundings(n) + std::sqrt(static_cast<double>(n)) / 2 + 2);
    }
  });
  return y;
}

Expected norm(const Values& x, const Shape& shape, const Values& weights, const Values& biases, double epsilon,
              bool rms) {
  Expected y = like(x);
  for_lines(shape, shape.rank() - 1, [&](std::uint64_t first, std::uint64_t, std::uint64_t n) {
    const double length = static_cast<double>(n);
    double mean = 0;
    double squares = 0;
    for (std::uint64_t i = 0; i < n; ++i) mean += x[first + i] / length;
    if (rms) mean = 0;
    for (std::uint64_t i = 0; i < n; ++i) squares += std::pow(x[first + i] - mean, 2);
    const double deviation = std::sqrt(squares / length + epsilon);
    for (std::uint64_t i = 0; i < n; ++i) {
      const double plain = (x[first + i] - mean) / deviation;
      const double weight = weights.empty() ? 1 : weights[i];
      const double bias = biases.empty() ? 0 : biases[i];
      y.values[first + i] = plain * weight + bias;
      // Of the mean the error is relative to the deviation, and of x - mean and the factor to themselves.
      y.allowed[first + i] =
          0x1p-24 * ((row_roundings(n) + 24) * (1 + std::fabs(plain)) * std::fabs(weight) + 2 * std::fabs(bias));
    }
  });
  return y;
}

}  // namespace brontes::reference
