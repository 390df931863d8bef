#include "fixture.hpp"
#include "reference.hpp"

#include <cmath>
#include <limits>

namespace brontes::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

const std::vector<std::size_t>& lengths() {
  static const std::vector<std::size_t> values = {1,    2,     3,     4,     5,
                                                  15,   16,    17,    63,    64,
                                                  65,   255,   256,   257,   511,
                                                  513,  1023,  1024,  1025,  4095,
                                                  4097, 65535, 65536, 65537, (std::size_t{1} << 20) + 3};
  return values;
}

struct Reductions {
  Tensor sum, dot, max, min;
};
Reductions record(Batch& batch, const std::vector<float>& x, const std::vector<float>& y) {
  const Tensor tx = batch.upload(x);
  return {batch.sum(tx), batch.dot(tx, batch.upload(y)), batch.max(tx), batch.min(tx)};
}

float one(const Batch& batch, Tensor x) {
  const std::vector<float> values = read(batch, x);
  REQUIRE(values.size() == 1);
  return values[0];
}

void check_lengths(const Device& device) {
  Batch batch(device);
  std::vector<std::vector<float>> x, y;
  std::vector<Reductions> results;
  for (std::size_t n : lengths()) {
    x.push_back(cases::random_values(n, -1, 1, n));
    y.push_back(cases::random_values(n, -1, 1, n + 1));
    results.push_back(record(batch, x.back(), y.back()));
  }
  REQUIRE_OK(batch.execute());
  for (std::size_t i = 0; i < results.size(); ++i) {
    INFO(lengths()[i] << " elements");
    const double sum_allowed = cases::reduction_tolerance(lengths()[i]) * cases::sum_of_magnitudes(x[i]);
    const double dot_allowed = cases::reduction_tolerance(lengths()[i]) * cases::dot_of_magnitudes(x[i], y[i]);
    CHECK(std::fabs(static_cast<double>(one(batch, results[i].sum)) - cases::sum(x[i])) <= sum_allowed);
    CHECK(std::fabs(static_cast<double>(one(batch, results[i].dot)) - cases::dot(x[i], y[i])) <= dot_allowed);
    CHECK(static_cast<double>(one(batch, results[i].max)) == cases::maximum(x[i]));
    CHECK(static_cast<double>(one(batch, results[i].min)) == cases::minimum(x[i]));
  }
}

// Only one element matters: wherever it lies, the reduction must find it.
void check_positions(const Device& device, std::size_t n) {
  Batch batch(device);
  std::vector<std::size_t> positions = {0, n - 1, n / 2};
  for (std::size_t p :
       {std::size_t{1}, std::size_t{3}, std::size_t{255}, std::size_t{256}, std::size_t{65536}, n - 2}) {
    if (p < n) positions.push_back(p);
  }
  std::vector<Reductions> results;
  std::vector<Tensor> lows;
  for (std::size_t p : positions) {
    std::vector<float> x(n, 0.0f);
    x[p] = 5.0f;
    results.push_back(record(batch, x, std::vector<float>(n, 2.0f)));
    std::vector<float> low(n, 3.0f);
    low[p] = -7.0f;
    lows.push_back(batch.min(batch.upload(low)));
  }
  REQUIRE_OK(batch.execute());
  for (std::size_t i = 0; i < positions.size(); ++i) {
    INFO("element " << positions[i] << " of " << n);
    CHECK(one(batch, results[i].sum) == 5.0f);
    CHECK(one(batch, results[i].dot) == 10.0f);
    CHECK(one(batch, results[i].max) == 5.0f);
    CHECK(one(batch, lows[i]) == -7.0f);
  }
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "reductions agree with double precision at every length", "[reduction]") {
  check_lengths(shared_device());
}

TEST_CASE_METHOD(DeviceTest, "reductions find a single element wherever it lies", "[reduction]") {
  for (std::size_t n : {std::size_t{2}, std::size_t{5}, std::size_t{257}, std::size_t{1025}, std::size_t{70001}}) {
    check_positions(shared_device(), n);
  }
}

TEST_CASE_METHOD(DeviceTest, "sums of whole numbers are exact below 2^24, whatever the order", "[reduction]") {
  for (std::size_t n : {std::size_t{257}, std::size_t{300}, std::size_t{1000}, std::size_t{65537}}) {
    const std::vector<float> x = cases::random_integers(n, 3, n);
    const std::vector<float> y = cases::random_integers(n, 3, n + 1);
    Batch batch(shared_device());
    const Reductions r = record(batch, x, y);
    REQUIRE_OK(batch.execute());
    INFO(n << " elements");
    CHECK(static_cast<double>(one(batch, r.sum)) == cases::sum(x));
    CHECK(static_cast<double>(one(batch, r.dot)) == cases::dot(x, y));
  }
}

TEST_CASE_METHOD(DeviceTest, "a reduction of 2^25 elements loses none to a driver's loop limit", "[reduction]") {
  // One group of 256 would loop 131072 times; lavapipe of Mesa 22 ends loops near 65535. A single f32
  // accumulator would stop at 2^24.
  const std::uint64_t n = std::uint64_t{1} << 25;
  if (shared_device().info().max_storage_range < n * sizeof(float)) SKIP("the device takes no tensor of that size");
  {
    Batch batch(shared_device());
    const Tensor ones = batch.fill(1.0f, {n});
    const Tensor sum = batch.sum(ones);
    const Tensor dot = batch.dot(ones, ones);
    REQUIRE_OK(batch.execute());
    CHECK(one(batch, sum) == 33554432.0f);
    CHECK(one(batch, dot) == 33554432.0f);
  }
  std::vector<float> x(n, -2.0f);
  x[n - 1] = -1.0f;
  x[n - 2] = -3.0f;
  Batch batch(shared_device());
  const Tensor values = batch.upload(x);
  const Tensor max = batch.max(values);
  const Tensor min = batch.min(values);
  REQUIRE_OK(batch.execute());
  CHECK(one(batch, max) == -1.0f);
  CHECK(one(batch, min) == -3.0f);
}

TEST_CASE_METHOD(DeviceTest, "reductions stay right when an invocation may loop only a few times", "[reduction]") {
  DeviceOptions options = checked_options();
  options.simulate.max_loop_iterations = 16;
  const Device device = open_device(options);
  check_lengths(device);
  check_positions(device, 70001);
}

TEST_CASE_METHOD(DeviceTest, "reductions stay right when a grid has few groups", "[reduction]") {
  DeviceOptions options = checked_options();
  options.simulate.max_group_count = 7;
  const Device device = open_device(options);
  check_lengths(device);
}

TEST_CASE_METHOD(DeviceTest, "one NaN anywhere makes every reduction NaN", "[reduction]") {
  for (std::size_t n : {std::size_t{1}, std::size_t{4}, std::size_t{257}, std::size_t{70001}}) {
    for (std::size_t p : {std::size_t{0}, n / 2, n - 1}) {
      std::vector<float> x(n, 1.0f);
      x[p] = nan;
      if (n > 2) x[(p + 1) % n] = infinity;
      Batch batch(shared_device());
      const Reductions r = record(batch, x, std::vector<float>(n, 1.0f));
      REQUIRE_OK(batch.execute());
      INFO("element " << p << " of " << n);
      CHECK(std::isnan(one(batch, r.sum)));
      CHECK(std::isnan(one(batch, r.dot)));
      CHECK(std::isnan(one(batch, r.max)));
      CHECK(std::isnan(one(batch, r.min)));
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "infinities reduce to infinities, and opposite ones sum to NaN", "[reduction]") {
  Batch batch(shared_device());
  std::vector<float> x(300, 1.0f);
  x[299] = infinity;
  const Reductions up = record(batch, x, x);
  x[7] = -infinity;
  const Reductions both = record(batch, x, std::vector<float>(300, 1.0f));
  const Tensor all_low = batch.max(batch.upload(std::vector<float>(300, -infinity)));
  const Tensor all_high = batch.min(batch.upload(std::vector<float>(300, infinity)));
  REQUIRE_OK(batch.execute());
  CHECK(one(batch, up.sum) == infinity);
  CHECK(one(batch, up.dot) == infinity);
  CHECK(one(batch, up.max) == infinity);
  CHECK(one(batch, up.min) == 1.0f);
  CHECK(std::isnan(one(batch, both.sum)));
  CHECK(one(batch, both.max) == infinity);
  CHECK(one(batch, both.min) == -infinity);
  CHECK(one(batch, all_low) == -infinity);
  CHECK(one(batch, all_high) == infinity);
}

TEST_CASE_METHOD(DeviceTest, "max of negatives is negative and min of positives is positive", "[reduction]") {
  Batch batch(shared_device());
  const Tensor max = batch.max(batch.upload(std::vector<float>(261, -4.0f)));
  const Tensor min = batch.min(batch.upload(std::vector<float>(261, 4.0f)));
  REQUIRE_OK(batch.execute());
  CHECK(one(batch, max) == -4.0f);
  CHECK(one(batch, min) == 4.0f);
}

TEST_CASE_METHOD(DeviceTest, "the sum and the dot of no elements are 0", "[reduction]") {
  Batch batch(shared_device());
  const Tensor none = batch.upload(Span<const float>(), {0});
  const Tensor sum = batch.sum(none);
  const Tensor dot = batch.dot(none, batch.fill(1, {3, 0}));
  CHECK(sum.shape() == Shape(1));
  REQUIRE_OK(batch.execute());
  CHECK(one(batch, sum) == 0.0f);
  CHECK(one(batch, dot) == 0.0f);
}

TEST_CASE_METHOD(DeviceTest, "dot takes operands of different shape and equal size", "[reduction]") {
  Batch batch(shared_device());
  const Tensor dot = batch.dot(batch.upload({1.f, 2.f, 3.f, 4.f}, {2, 2}), batch.upload({1.f, 10.f, 100.f, 1000.f}));
  CHECK(dot.shape() == Shape(1));
  REQUIRE_OK(batch.execute());
  CHECK(one(batch, dot) == 4321.0f);
}

TEST_CASE_METHOD(DeviceTest, "a reduced value broadcasts back over what it came from", "[reduction]") {
  const std::vector<float> x = cases::random_integers(1000, 9, 1);
  Batch batch(shared_device());
  const Tensor values = batch.upload(x);
  const Tensor shifted = batch.sub(values, batch.max(values));
  const std::vector<float> got = run(batch, shifted);
  const auto top = static_cast<float>(cases::maximum(x));
  std::vector<float> want;
  for (float v : x) want.push_back(v - top);
  CHECK(cases::mismatch(got, want) == "");
}

}  // namespace brontes::test
