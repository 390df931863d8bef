#include "elementwise.hpp"

#include "fixture.hpp"
#include "reference.hpp"

#include <cmath>

namespace brontes::test {
namespace {

using cases::ElementwiseCase;

const std::vector<std::size_t>& lengths() {
  static const std::vector<std::size_t> values = {0, 1, 2, 3, 4, 5, 255, 256, 257, 65537, (std::size_t{1} << 20) + 3};
  return values;
}

// Data for up to three operands.
struct Inputs {
  std::vector<float> x, y, z;
};

// Every combination of special values of the operands' types.
Inputs special_inputs(const ElementwiseCase& c) {
  static const std::vector<float> none = {0};
  Inputs inputs;
  for (float a : cases::special_values(c.type(0))) {
    for (float b : c.arity > 1 ? cases::special_values(c.type(1)) : none) {
      for (float d : c.arity > 2 ? cases::special_values(c.type(2)) : none) {
        inputs.x.push_back(a);
        inputs.y.push_back(b);
        inputs.z.push_back(d);
      }
    }
  }
  return inputs;
}

Inputs random_inputs(const ElementwiseCase& c, std::size_t n) {
  Inputs inputs;
  inputs.x = cases::random_values(n, c.low, c.high, n, c.type(0));
  if (c.arity > 1) inputs.y = cases::random_values(n, c.low, c.high, n + 1, c.type(1));
  if (c.arity > 2) inputs.z = cases::random_values(n, c.low, c.high, n + 2, c.type(2));
  return inputs;
}

Tensor record(const ElementwiseCase& c, Batch& batch, const Inputs& in) {
  cases::Operands operands{batch, Shape(in.x.size()), {}, {}, {}, c.p, c.q};
  if (c.arity > 0) operands.x = cases::upload(batch, in.x, operands.shape, c.type(0));
  if (c.arity > 1) operands.y = cases::upload(batch, in.y, operands.shape, c.type(1));
  if (c.arity > 2) operands.z = cases::upload(batch, in.z, operands.shape, c.type(2));
  return c.record(operands);
}

void check(const ElementwiseCase& c, const Batch& batch, Tensor result, const Inputs& in) {
  INFO("op " << c.name);
  REQUIRE(result.size() == in.x.size());
  if (result.dtype() == DType::f32 || result.dtype() == DType::f16) {
    CHECK(cases::mismatch(c, read(batch, result), in.x, in.y, in.z) == "");
    return;
  }
  const auto got = batch.read_i32(result);
  REQUIRE_OK(got.error());
  CHECK(cases::mismatch(c, *got, in.x, in.y, in.z) == "");
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "elementwise ops are right at NaN, infinities, zeros, denormals and +-1e4",
                 "[elementwise]") {
  Batch batch(shared_device());
  std::vector<Tensor> results;
  for (const ElementwiseCase& c : cases::elementwise_cases()) {
    results.push_back(record(c, batch, special_inputs(c)));
  }
  REQUIRE_OK(batch.execute());
  std::size_t next = 0;
  for (const ElementwiseCase& c : cases::elementwise_cases()) {
    check(c, batch, results[next++], special_inputs(c));
  }
}

TEST_CASE_METHOD(DeviceTest, "elementwise ops keep within their tolerance at every length", "[elementwise]") {
  for (const ElementwiseCase& c : cases::elementwise_cases()) {
    Batch batch(shared_device());
    std::vector<Inputs> inputs;
    std::vector<Tensor> results;
    for (std::size_t n : lengths()) {
      inputs.push_back(random_inputs(c, n));
      results.push_back(record(c, batch, inputs.back()));
    }
    INFO("op " << c.name);
    REQUIRE_OK(batch.execute());
    for (std::size_t i = 0; i < results.size(); ++i) check(c, batch, results[i], inputs[i]);
  }
}

TEST_CASE_METHOD(DeviceTest, "activations keep within their tolerance over a fine sweep", "[elementwise]") {
  // Where approximations change branch, and where tails cancel.
  std::vector<float> x;
  for (int i = -120000; i <= 120000; ++i) x.push_back(static_cast<float>(i) * 1e-3f);
  for (const char* name : {"sigmoid", "tanh", "swish", "gelu", "gelu_tanh", "exp"}) {
    const ElementwiseCase& c = *cases::find_elementwise_case(name);
    Batch batch(shared_device());
    const Tensor y = record(c, batch, {x, {}, {}});
    CHECK(cases::mismatch(c, run(batch, y), x, {}) == "");
  }
}

TEST_CASE_METHOD(DeviceTest, "activations are monotone enough to stay in their range", "[elementwise]") {
  const std::vector<float>& x = cases::special_values();
  Batch batch(shared_device());
  const Tensor in = batch.upload(x);
  const Tensor sigmoid = batch.sigmoid(in);
  const Tensor tanh = batch.tanh(in);
  REQUIRE_OK(batch.execute());
  for (float v : read(batch, sigmoid)) CHECK((std::isnan(v) || (v >= 0.0f && v <= 1.0f)));
  for (float v : read(batch, tanh)) CHECK((std::isnan(v) || (v >= -1.0f && v <= 1.0f)));
}

TEST_CASE_METHOD(DeviceTest, "an op over more than 65535 * 256 elements reaches every one of them", "[elementwise]") {
  const std::size_t n = std::size_t{65535} * 256 + 1;
  if (shared_device().info().max_storage_range < n * sizeof(float)) SKIP("the device takes no tensor of that size");
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(static_cast<int>(i % 2003) - 1001);
  Batch batch(shared_device());
  const Tensor y = batch.relu(batch.upload(x));
  REQUIRE_OK(batch.execute());
  std::vector<float> got(n);
  REQUIRE_OK(batch.read(y, got));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < n; ++i) wrong += got[i] != (x[i] < 0 ? 0 : x[i]);
  CHECK(wrong == 0);
  CHECK(got[n - 1] == (x[n - 1] < 0 ? 0 : x[n - 1]));
}

TEST_CASE_METHOD(DeviceTest, "grids fold over all axes when a device allows few groups on each", "[elementwise]") {
  DeviceOptions options = checked_options();
  options.simulate.max_group_count = 7;
  const Device device = open_device(options);
  REQUIRE(device.info().max_group_count[0] == 7);
  // 7 * 7 groups of any size do not cover this on two axes unless a group takes over 1300 elements.
  for (std::size_t n : {std::size_t{1}, std::size_t{4097}, std::size_t{65537}}) {
    const std::vector<float> x = counting(n);
    Batch batch(device);
    const Tensor y = batch.neg(batch.upload(x));
    const std::vector<float> got = run(batch, y);
    CHECK(cases::mismatch(*cases::find_elementwise_case("neg"), got, x, {}) == "");
  }
}

TEST_CASE_METHOD(DeviceTest, "fill makes a tensor of any shape with one value", "[elementwise]") {
  Batch batch(shared_device());
  const Tensor a = batch.fill(2.5f, {3, 5});
  const Tensor b = batch.fill(-1.0f, {0});
  const Tensor c = batch.fill(std::nanf(""), {2});
  CHECK(a.shape() == Shape(3, 5));
  REQUIRE_OK(batch.execute());
  CHECK(read(batch, a) == std::vector<float>(15, 2.5f));
  CHECK(read(batch, b).empty());
  CHECK(std::isnan(read(batch, c)[1]));
}

TEST_CASE_METHOD(DeviceTest, "an op may use the same tensor twice", "[elementwise]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload({1.f, -2.f, 3.f});
  const Tensor square = batch.mul(x, x);
  const Tensor zero = batch.sub(square, square);
  const Tensor kept = batch.keep(square);
  REQUIRE_OK(batch.execute());
  CHECK(read(batch, kept) == std::vector<float>{1, 4, 9});
  CHECK(read(batch, zero) == std::vector<float>{0, 0, 0});
}

TEST_CASE_METHOD(DeviceTest, "scalars keep their bits: factors of 0, infinity and NaN reach the kernel",
                 "[elementwise]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload({1.f, -2.f});
  const Tensor zero = batch.scale(x, 0.0f);
  const Tensor infinite = batch.scale(x, HUGE_VALF);
  const Tensor not_a_number = batch.offset(x, std::nanf(""));
  const Tensor tiny = batch.scale(x, 1e-30f);
  REQUIRE_OK(batch.execute());
  CHECK(read(batch, zero) == std::vector<float>{0.f, 0.f});
  CHECK(read(batch, infinite) == std::vector<float>{HUGE_VALF, -HUGE_VALF});
  CHECK(std::isnan(read(batch, not_a_number)[0]));
  CHECK(read(batch, tiny) == std::vector<float>{1e-30f, -2e-30f});
}

TEST_CASE_METHOD(DeviceTest, "a long chain of dependent ops gives what the same steps on the host give",
                 "[elementwise]") {
  const std::vector<float> x = counting(1000);
  Batch batch(shared_device());
  Tensor y = batch.upload(x);
  for (int i = 0; i < 300; ++i) y = i % 2 == 0 ? batch.offset(y, 1.0f) : batch.neg(y);
  // Two steps turn y into -(y + 1); twice that is y again, and 300 steps are 75 such rounds.
  CHECK(cases::mismatch(run(batch, y), x) == "");
}

}  // namespace brontes::test
