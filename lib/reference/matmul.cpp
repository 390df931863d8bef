#include "reference/reference.hpp"

#include <algorithm>
#include <cmath>

namespace brontes::reference {

double matmul_bound(std::uint64_t k, bool shared) {
  const double length = static_cast<double>(k);
  return 0x1p-24 * (shared ? std::min(length + 2, length / 4 + 48) : length + 2);
}

namespace {

// What rounding to f16 may change of an element, on devices that take denormals for 0.
double rounding_f16(double magnitude) { return magnitude < 0x1p-14 ? magnitude : 0x1p-11 * magnitude; }

struct Product {
  std::uint64_t m, k, n;
  Layout layout;
  double alpha;
  bool f16 = false;

  // Appends a product of two matrices.
  void add(const double* a, const double* b, Expected& to) const {
    const std::uint64_t row_step = layout == Layout::nk ? 1 : n;
    const std::uint64_t column_step = layout == Layout::nk ? k : 1;
    for (std::uint64_t i = 0; i < m; ++i) {
      for (std::uint64_t j = 0; j < n; ++j) {
        double total = 0;
        double magnitude = 0;
        double rounding = 0;
        for (std::uint64_t p = 0; p < k; ++p) {
          const double x = a[i * k + p], y = b[p * row_step + j * column_step];
          total += x * y;
          magnitude += std::fabs(x * y);
          if (!f16) continue;
          const double dx = rounding_f16(std::fabs(x)), dy = rounding_f16(std::fabs(y));
          rounding += dx * std::fabs(y) + std::fabs(x) * dy + dx * dy;
        }
        if (f16) magnitude = rounding + (magnitude + rounding) * matmul_bound(k, false);
        to.values.push_back(total * alpha);
        to.allowed.push_back(magnitude * std::fabs(alpha));
      }
    }
  }
};

Expected multiply(const Values& a, const Shape& a_shape, const Values& b, const Shape& b_shape, Layout layout,
                  double alpha, bool f16) {
  const std::size_t ra = a_shape.rank(), rb = b_shape.rank();
  const Product product{a_shape[ra - 2], a_shape[ra - 1], b_shape[layout == Layout::nk ? rb - 2 : rb - 1],
                        layout,          alpha,           f16};
  // Extent of leading dim `dim`, counted from the innermost.
  auto extent = [](const Shape& shape, std::size_t dim) {
    return dim + 3 <= shape.rank() ? shape[shape.rank() - 3 - dim] : std::uint64_t{1};
  };
  const std::size_t dims = std::max(ra, rb) - 2;
  std::uint64_t matrices = 1;
  for (std::size_t d = 0; d < dims; ++d) {
    matrices *= extent(a_shape, d) == 1 ? extent(b_shape, d) : extent(a_shape, d);
  }
  Expected all;
  for (std::uint64_t z = 0; z < matrices; ++z) {
    std::uint64_t rest = z, in_a = 0, in_b = 0, step_a = 1, step_b = 1;
    for (std::size_t d = 0; d < dims; ++d) {
      const std::uint64_t ea = extent(a_shape, d), eb = extent(b_shape, d);
      const std::uint64_t at = rest % std::max(ea, eb);
      rest /= std::max(ea, eb);
      in_a += (ea == 1 ? 0 : at) * step_a;
      in_b += (eb == 1 ? 0 : at) * step_b;
      step_a *= ea;
      step_b *= eb;
    }
    product.add(a.data() + in_a * product.m * product.k, b.data() + in_b * product.k * product.n, all);
  }
  return all;
}

}  // namespace

Expected matmul(const Values& a, const Shape& a_shape, const Values& b, const Shape& b_shape, Layout layout,
                double alpha) {
  return multiply(a, a_shape, b, b_shape, layout, alpha, false);
}

Expected matmul_f16(const Values& a, const Shape& a_shape, const Values& b, const Shape& b_shape, Layout layout,
                    double alpha) {
  return multiply(a, a_shape, b, b_shape, layout, alpha, true);
}

}  // namespace brontes::reference
