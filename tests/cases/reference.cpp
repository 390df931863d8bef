#include "reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

namespace brontes::cases {
namespace {

// splitmix64: the same numbers with every standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

std::string sizes_differ(std::size_t got, std::size_t want) {
  return got == want ? std::string() : std::to_string(got) + " elements instead of " + std::to_string(want);
}

}  // namespace

std::vector<float> random_values(std::size_t count, float low, float high, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& v : values) v = static_cast<float>(double{low} + (double{high} - double{low}) * random.unit());
  return values;
}

std::vector<float> random_integers(std::size_t count, int limit, std::uint64_t seed) {
  Random random(seed);
  const auto range = static_cast<std::uint64_t>(2 * limit + 1);
  std::vector<float> values(count);
  for (float& v : values) v = static_cast<float>(static_cast<int>(random.next() % range) - limit);
  return values;
}

std::vector<float> as_type(std::vector<float> values, DType type) {
  for (float& v : values) {
    if (type == DType::i32) v = std::floor(v);
    if (type == DType::mask) v = v >= 0.5f ? 1.0f : 0.0f;
    if (type == DType::f16) v = static_cast<float>(nearest_half(double{v}));
  }
  return values;
}

std::vector<float> random_values(std::size_t count, float low, float high, std::uint64_t seed, DType type) {
  if (type == DType::mask) return as_type(random_values(count, 0, 1, seed), type);
  return as_type(random_values(count, low, type == DType::i32 ? std::nextafter(high + 1, low) : high, seed), type);
}

Tensor upload(Batch& batch, Span<const float> data, const Shape& shape, DType type) {
  if (type == DType::f32) return batch.upload(data, shape);
  if (type == DType::f16) return batch.upload_f16(data, shape);
  std::vector<std::int32_t> whole(data.size());
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<std::int32_t>(data[i]);
  return batch.cast(batch.upload(whole, shape), type);
}

const std::vector<float>& special_values(DType type) {
  static const std::vector<float> integers = {0,      1,        -1,        2,           -2,           3,
                                              -3,     7,        1000,      -1000,       65535,        65536,
                                              -65536, 16777216, -16777216, 2147483520., -2147483648., -2147483520.};
  static const std::vector<float> masks = {0, 1};
  // Its denormals and its largest number besides.
  static const std::vector<float> halves = [] {
    std::vector<float> values = as_type(special_values(), DType::f16);
    values.insert(values.end(), {0x1p-24f, -0x1p-24f, 0x1.ff8p-15f, 0x1p-14f, 65504.0f, -65504.0f});
    return values;
  }();
  return type == DType::i32 ? integers : type == DType::mask ? masks : type == DType::f16 ? halves : special_values();
}

const std::vector<float>& special_values() {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float largest = std::numeric_limits<float>::max();
  constexpr float smallest = std::numeric_limits<float>::min();
  constexpr float denormal = std::numeric_limits<float>::denorm_min();
  static const std::vector<float> values = {
      0.0f,     -0.0f,     std::numeric_limits<float>::quiet_NaN(),
      infinity, -infinity, largest,
      -largest, smallest,  -smallest,
      denormal, -denormal, 1e-40f,
      -1e-40f,  1e4f,      -1e4f,
      1e10f,    -1e10f,    1e-10f,
      -1e-10f,  1.0f,      -1.0f,
      0.5f,     -0.5f,     1e-4f,
      -1e-4f,   3.0f,      -3.0f,
      5.5f,     -5.5f,     9.1f,
      -9.1f,    20.0f,     -20.0f,
      50.0f,    -50.0f,    88.0f,
      -87.0f,   89.0f,     -104.0f,
      1000.0f,  -1000.0f,
  };
  return values;
}

bool close(const ElementwiseCase& c, double got, float x, float y, float z) {
  const auto matches = [&](float a, float b, float d) {
    const double want = c.reference(double{a}, double{b}, double{d}, double{c.p}, double{c.q});
    // Only integers are no floats.
    return got == want || (static_cast<double>(static_cast<float>(got)) == got || std::isnan(got)
                               ? close(static_cast<float>(got), want, c.tolerance)
                               : false);
  };
  if (matches(x, y, z)) return true;
  const float fx = flushed(x);
  const float fy = flushed(y);
  return matches(fx, y, z) || matches(x, fy, z) || matches(fx, fy, z) || matches(x, y, flushed(z));
}

namespace {

template <class T>
std::string find_mismatch(const ElementwiseCase& c, Span<const T> got, Span<const float> x, Span<const float> y,
                          Span<const float> z) {
  if (c.arity > 0) {
    if (auto text = sizes_differ(got.size(), x.size()); !text.empty()) return text;
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    const float a = c.arity > 0 ? x[i] : 0;
    const float b = c.arity > 1 ? y[i] : 0;
    const float d = c.arity > 2 ? z[i] : 0;
    if (close(c, static_cast<double>(got[i]), a, b, d)) continue;
    std::ostringstream text;
    text.precision(9);
    text << c.name << " element " << i << " of " << got.size() << ": x = " << a << ", y = " << b << " gave " << got[i]
         << " instead of " << c.reference(double{a}, double{b}, double{d}, double{c.p}, double{c.q});
    return text.str();
  }
  return {};
}

}  // namespace

std::string mismatch(const ElementwiseCase& c, Span<const float> got, Span<const float> x, Span<const float> y,
                     Span<const float> z) {
  return find_mismatch(c, got, x, y, z);
}

std::string mismatch(const ElementwiseCase& c, Span<const std::int32_t> got, Span<const float> x, Span<const float> y,
                     Span<const float> z) {
  return find_mismatch(c, got, x, y, z);
}

std::string mismatch(Span<const float> got, Span<const float> want) {
  if (auto text = sizes_differ(got.size(), want.size()); !text.empty()) return text;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]))) continue;
    std::ostringstream text;
    text.precision(9);
    text << "element " << i << " of " << got.size() << " is " << got[i] << " instead of " << want[i];
    return text.str();
  }
  return {};
}

double sum(Span<const float> x) {
  double total = 0;
  for (float v : x) total += double{v};
  return total;
}

double sum_of_magnitudes(Span<const float> x) {
  double total = 0;
  for (float v : x) total += std::fabs(double{v});
  return total;
}

double dot(Span<const float> x, Span<const float> y) {
  double total = 0;
  for (std::size_t i = 0; i < x.size(); ++i) total += double{x[i]} * double{y[i]};
  return total;
}

double dot_of_magnitudes(Span<const float> x, Span<const float> y) {
  double total = 0;
  for (std::size_t i = 0; i < x.size(); ++i) total += std::fabs(double{x[i]} * double{y[i]});
  return total;
}

double maximum(Span<const float> x) {
  double best = -std::numeric_limits<double>::infinity();
  for (float v : x) {
    if (std::isnan(v)) return double{v};
    if (double{v} > best) best = double{v};
  }
  return best;
}

double minimum(Span<const float> x) {
  double best = std::numeric_limits<double>::infinity();
  for (float v : x) {
    if (std::isnan(v)) return double{v};
    if (double{v} < best) best = double{v};
  }
  return best;
}

MatmulReference batched_matmul(Span<const float> a, const Shape& a_shape, Span<const float> b, const Shape& b_shape,
                               Layout layout, float alpha) {
  reference::Expected expected =
      reference::matmul({a.begin(), a.end()}, a_shape, {b.begin(), b.end()}, b_shape, layout, double{alpha});
  return {std::move(expected.values), std::move(expected.allowed)};
}

MatmulReference matmul(Span<const float> a, Span<const float> b, std::uint64_t m, std::uint64_t k, std::uint64_t n,
                       Layout layout, float alpha) {
  return batched_matmul(a, Shape(m, k), b, layout == Layout::nk ? Shape(n, k) : Shape(k, n), layout, alpha);
}

std::string mismatch(Span<const float> got, const MatmulReference& want, double tolerance) {
  if (auto text = sizes_differ(got.size(), want.product.size()); !text.empty()) return text;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (close(got[i], want.product[i], {0, tolerance * want.magnitude[i]})) continue;
    std::ostringstream text;
    text.precision(9);
    text << "element " << i << " of " << got.size() << " is " << got[i] << " instead of " << want.product[i];
    return text.str();
  }
  return {};
}

}  // namespace brontes::cases
