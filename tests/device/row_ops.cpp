// Ops along one axis, where cases do not reach.
#include "fixture.hpp"
#include "reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace brontes::test {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

bool all_nan(const std::vector<float>& y, std::size_t begin, std::size_t end) {
  return std::all_of(y.begin() + static_cast<std::ptrdiff_t>(begin), y.begin() + static_cast<std::ptrdiff_t>(end),
                     [](float v) { return std::isnan(v); });
}
bool any_nan(const std::vector<float>& y, std::size_t begin, std::size_t end) {
  return std::any_of(y.begin() + static_cast<std::ptrdiff_t>(begin), y.begin() + static_cast<std::ptrdiff_t>(end),
                     [](float v) { return std::isnan(v); });
}

double total(const std::vector<float>& y, std::size_t begin, std::size_t end) {
  double sum = 0;
  for (std::size_t i = begin; i < end; ++i) sum += double{y[i]};
  return sum;
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "softmax of huge numbers does not overflow, and of distant ones is 0 or 1", "[row]") {
  for (const std::size_t n : {4u, 7u, 300u, 5000u}) {
    std::vector<float> x(2 * n, -3e38f);
    x[n / 2] = 3e38f;
    for (std::size_t i = n; i < 2 * n; ++i) x[i] = 3e38f;
    Batch batch(shared_device());
    const auto y = run(batch, batch.softmax(batch.upload(x, Shape(2, n))));
    INFO("n = " << n);
    CHECK(y[n / 2] == 1.0f);
    CHECK(total(y, 0, n) == 1.0);
    CHECK(std::fabs(y[n] * static_cast<float>(n) - 1) < 1e-5f);
    CHECK(std::fabs(total(y, n, 2 * n) - 1) < 1e-5);
  }
}

TEST_CASE_METHOD(DeviceTest, "NaN and infinities of a row stay in their row", "[row]") {
  for (const std::size_t n : {3u, 8u, 100u, 301u, 5000u, 70000u}) {
    for (const float bad : {nan, infinity, -infinity}) {
      std::vector<float> x = cases::random_values(3 * n, -2, 2, n);
      x[n + n / 2] = bad;
      Batch batch(shared_device());
      const Tensor in = batch.upload(x, Shape(3, n));
      const Tensor soft = batch.keep(batch.softmax(in));
      const Tensor log_soft = batch.keep(batch.log_softmax(in));
      const Tensor layer = batch.keep(batch.layer_norm(in));
      const Tensor rms = batch.keep(batch.rms_norm(in));
      REQUIRE_FALSE(batch.execute());
      INFO("n = " << n << ", bad = " << bad);
      for (const Tensor& t : {soft, log_soft, layer, rms}) {
        const auto y = read(batch, t);
        CHECK_FALSE(any_nan(y, 0, n));
        CHECK_FALSE(any_nan(y, 2 * n, 3 * n));
        if (bad == -infinity && (t == soft || t == log_soft)) {
          CHECK_FALSE(any_nan(y, n, 2 * n));
          CHECK(y[n + n / 2] == (t == soft ? 0.0f : -infinity));
        } else {
          CHECK(all_nan(y, n, 2 * n));
        }
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "a row of nothing but -Inf has no softmax", "[row]") {
  for (const std::size_t n : {1u, 5u, 64u, 1000u}) {
    Batch batch(shared_device());
    const auto y = run(batch, batch.softmax(batch.upload(std::vector<float>(n, -infinity))));
    CHECK(all_nan(y, 0, n));
  }
}

TEST_CASE_METHOD(DeviceTest, "softmax takes a row of a million, a million rows, and data that only rises", "[row]") {
  const std::size_t n = 1'000'000;
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i) * 1e-4f;
  Batch batch(shared_device());
  const Tensor in = batch.upload(x);
  const Tensor row = batch.keep(batch.softmax(in));
  const Tensor column = batch.keep(batch.softmax(batch.upload(x, Shape(n, 1)), 0));
  const Tensor rows = batch.keep(batch.softmax(batch.upload(x, Shape(n, 1)), 1));
  REQUIRE_FALSE(batch.execute());
  double sum = 0;
  for (const float v : x) sum += std::exp(double{v} - double{x.back()});
  for (const Tensor& t : {row, column}) {
    const auto y = read(batch, t);
    double worst = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double want = std::exp(double{x[i]} - double{x.back()}) / sum;
      if (want > 1e-37) worst = std::max(worst, std::fabs(double{y[i]} - want) / want);
    }
    CHECK(worst < 5e-5);
  }
  const auto ones = read(batch, rows);
  CHECK(std::all_of(ones.begin(), ones.end(), [](float v) { return v == 1.0f; }));
}

TEST_CASE_METHOD(DeviceTest, "NaN stays in a cumulative sum, from where it is to the end of the row", "[row]") {
  for (const std::size_t n : {5u, 100u, 5000u}) {
    std::vector<float> x(3 * n, 1.0f);
    x[n + n / 2] = nan;
    Batch batch(shared_device());
    const auto y = run(batch, batch.cumsum(batch.upload(x, Shape(3, n))));
    for (std::size_t i = 0; i < y.size(); ++i) {
      const bool should = i >= n + n / 2 && i < 2 * n;
      if (std::isnan(y[i]) == should && (should || y[i] == static_cast<float>(i % n + 1))) continue;
      FAIL("n = " << n << ": element " << i << " is " << y[i]);
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "norms and cumulative sums take a row of a million", "[row]") {
  const std::size_t n = 1'000'000;
  Batch batch(shared_device());
  const Tensor in = batch.upload(std::vector<float>(n, 1.0f));
  std::vector<float> alternating(n, 1003.0f);
  for (std::size_t i = 0; i < n; i += 2) alternating[i] = 1001.0f;
  const Tensor sums = batch.keep(batch.cumsum(in));
  const Tensor layer = batch.keep(batch.layer_norm(batch.upload(alternating), 0.0f));
  const Tensor rms = batch.keep(batch.rms_norm(in, 0.0f));
  REQUIRE_FALSE(batch.execute());
  // Whole numbers up to 2^24 are exact in any order.
  const auto s = read(batch, sums);
  for (std::size_t i = 0; i < n; ++i) {
    if (s[i] != static_cast<float>(i + 1)) FAIL("element " << i << " of cumsum is " << s[i]);
  }
  const auto l = read(batch, layer);
  const auto r = read(batch, rms);
  for (std::size_t i = 0; i < n; ++i) {
    if (std::fabs(l[i] - (i % 2 == 0 ? -1.0f : 1.0f)) > 1e-5f) FAIL("element " << i << " of layer_norm is " << l[i]);
    if (std::fabs(r[i] - 1.0f) > 1e-5f) FAIL("element " << i << " of rms_norm is " << r[i]);
  }
}

TEST_CASE_METHOD(DeviceTest, "ops along an axis work without subgroups and with other sizes of workgroups", "[row]") {
  const std::vector<float> x = cases::random_values(3 * 4100, -3, 3, 1);
  std::vector<float> want;
  for (int variant = 0; variant < 4; ++variant) {
    DeviceOptions options = checked_options();
    options.simulate.no_subgroup_operations = variant == 1;
    options.simulate.max_group_invocations = variant == 2 ? 3 : 0;
    options.simulate.subgroup_size = variant == 3 ? 2 : 0;
    const Device device = open_device(options);
    Batch batch(device);
    const Tensor in = batch.upload(x, Shape(3, 4100));
    const auto y = run(batch, batch.add(batch.softmax(in), batch.softmax(batch.layer_norm(in))));
    if (variant == 0) want = y;
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (std::fabs(y[i] - want[i]) <= 2e-5f * want[i]) continue;
      FAIL("variant " << variant << " gives " << y[i] << " instead of " << want[i]);
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "an axis that is not there is an error that names op, axis and shape", "[row]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload(std::vector<float>(6), Shape(2, 3));
  for (const std::int64_t axis : {2, -3}) {
    CHECK_FALSE(batch.softmax(x, axis).valid());
    const Error e = batch.clear_error();
    CHECK(e.code == Errc::invalid_argument);
    CHECK(e.message.find("softmax: axis " + std::to_string(axis)) == 0);
    CHECK(e.message.find("[2, 3]") != std::string::npos);
    CHECK_FALSE(batch.cumsum(x, axis).valid());
    CHECK(batch.clear_error().message.find("cumsum: axis " + std::to_string(axis)) == 0);
  }
}

TEST_CASE_METHOD(DeviceTest, "a weight or bias of another shape, and a negative epsilon, are errors", "[row]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload(std::vector<float>(6), Shape(2, 3));
  const Tensor right = batch.upload(std::vector<float>(3));
  const Tensor wrong = batch.upload(std::vector<float>(2));
  CHECK_FALSE(batch.layer_norm(x, wrong, right).valid());
  CHECK(batch.clear_error().message.find("layer_norm: a weight of [2]") == 0);
  CHECK_FALSE(batch.layer_norm(x, right, wrong).valid());
  CHECK(batch.clear_error().message.find("layer_norm: a bias of [2]") == 0);
  CHECK_FALSE(batch.rms_norm(x, wrong).valid());
  CHECK(batch.clear_error().code == Errc::shape_mismatch);
  CHECK_FALSE(batch.rms_norm(x, -1.0f).valid());
  CHECK(batch.clear_error().code == Errc::invalid_argument);
}

}  // namespace brontes::test
