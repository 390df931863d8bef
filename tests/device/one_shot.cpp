#include "elementwise.hpp"
#include "fixture.hpp"
#include "reference.hpp"

namespace brontes::test {
namespace {

using Unary = Error (*)(const Device&, Span<const float>, Span<float>);
using Binary = Error (*)(const Device&, Span<const float>, Span<const float>, Span<float>);

const std::pair<const char*, Unary> unary_ops[] = {
    {"relu", ops::relu},
    {"neg", ops::neg},
    {"abs", ops::abs},
    {"exp", ops::exp},
    {"log", ops::log},
    {"sqrt", ops::sqrt},
    {"sigmoid", ops::sigmoid},
    {"tanh", ops::tanh},
    {"swish", ops::swish},
    {"gelu", ops::gelu},
    {"gelu_tanh", ops::gelu_tanh},
};
const std::pair<const char*, Binary> binary_ops[] = {
    {"add", ops::add}, {"sub", ops::sub}, {"mul", ops::mul}, {"div", ops::div}, {"min", ops::min}, {"max", ops::max},
};

}  // namespace

TEST_CASE_METHOD(DeviceTest, "one-shot ops give what the same op in a batch gives", "[one-shot]") {
  const Device& device = shared_device();
  for (const auto& [name, op] : unary_ops) {
    const cases::ElementwiseCase& c = *cases::find_elementwise_case(name);
    const std::vector<float> x = cases::random_values(300, c.low, c.high, 1);
    std::vector<float> out(300);
    REQUIRE_OK(op(device, x, out));
    CHECK(cases::mismatch(c, out, x, {}) == "");
  }
  for (const auto& [name, op] : binary_ops) {
    const cases::ElementwiseCase& c = *cases::find_elementwise_case(name);
    const std::vector<float> x = cases::random_values(300, c.low, c.high, 1);
    const std::vector<float> y = cases::random_values(300, c.low, c.high, 2);
    std::vector<float> out(300);
    REQUIRE_OK(op(device, x, y, out));
    CHECK(cases::mismatch(c, out, x, y) == "");
  }
  const std::vector<float> x = cases::random_values(300, -8, 8, 1);
  std::vector<float> out(300);
  const cases::ElementwiseCase& scale = *cases::find_elementwise_case("scale");
  REQUIRE_OK(ops::scale(device, x, scale.p, out));
  CHECK(cases::mismatch(scale, out, x, {}) == "");
  const cases::ElementwiseCase& offset = *cases::find_elementwise_case("offset");
  REQUIRE_OK(ops::offset(device, x, offset.p, out));
  CHECK(cases::mismatch(offset, out, x, {}) == "");
  const cases::ElementwiseCase& clamp = *cases::find_elementwise_case("clamp");
  REQUIRE_OK(ops::clamp(device, x, clamp.p, clamp.q, out));
  CHECK(cases::mismatch(clamp, out, x, {}) == "");
}

TEST_CASE_METHOD(DeviceTest, "one-shot reductions and matmul give their results", "[one-shot]") {
  const Device& device = shared_device();
  const std::vector<float> x = cases::random_integers(1001, 9, 1);
  const std::vector<float> y = cases::random_integers(1001, 9, 2);
  CHECK(static_cast<double>(ops::sum(device, x).value()) == cases::sum(x));
  CHECK(static_cast<double>(ops::dot(device, x, y).value()) == cases::dot(x, y));
  CHECK(static_cast<double>(ops::max(device, x).value()) == cases::maximum(x));
  CHECK(static_cast<double>(ops::min(device, x).value()) == cases::minimum(x));
  const std::vector<float> a = cases::random_integers(6 * 7, 5, 3);
  const std::vector<float> b = cases::random_integers(7 * 9, 5, 4);
  std::vector<float> out(6 * 9);
  for (Layout layout : {Layout::kn, Layout::nk}) {
    REQUIRE_OK(ops::matmul(device, a, b, out, 6, 7, 9, {0.5f, layout, MatmulKernel::automatic}));
    CHECK(cases::mismatch(out, cases::matmul(a, b, 6, 7, 9, layout, 0.5f), 0) == "");
  }
}

TEST_CASE_METHOD(DeviceTest, "the output of a one-shot may be its input", "[one-shot]") {
  std::vector<float> x = {-1, 2, -3};
  REQUIRE_OK(ops::relu(shared_device(), x, x));
  CHECK(x == std::vector<float>{0, 2, 0});
  std::vector<float> y = {1, 2, 3};
  REQUIRE_OK(ops::sub(shared_device(), x, y, y));
  CHECK(y == std::vector<float>{-1, 0, -3});
  std::vector<float> m = {1, 2, 3, 4};
  REQUIRE_OK(ops::matmul(shared_device(), m, m, m, 2, 2, 2));
  CHECK(m == std::vector<float>{7, 10, 15, 22});
}

TEST_CASE_METHOD(DeviceTest, "a one-shot that fails leaves its output untouched", "[one-shot]") {
  const std::vector<float> x = {1, 2, 3};
  std::vector<float> out(2, 7.0f);
  const Error size = ops::relu(shared_device(), x, out);
  CHECK(size.code == Errc::shape_mismatch);
  CHECK(contains(size.message, "relu"));
  CHECK(contains(size.message, "2"));
  CHECK(contains(size.message, "3"));
  CHECK(ops::add(shared_device(), x, std::vector<float>{1, 2}, out).code == Errc::shape_mismatch);
  CHECK(ops::clamp(shared_device(), out, 2, 1, out).code == Errc::invalid_argument);
  CHECK(ops::relu(shared_device(), Span<const float>(nullptr, 2), out).code == Errc::null_data);
  CHECK(ops::matmul(shared_device(), x, x, out, 1, 3, 2).code == Errc::shape_mismatch);
  CHECK(out == std::vector<float>{7, 7});
  CHECK(ops::relu(shared_device(), x, Span<float>(nullptr, 3)).code == Errc::null_data);
  CHECK(ops::dot(shared_device(), x, out).error().code == Errc::shape_mismatch);
  CHECK(ops::max(shared_device(), Span<const float>()).error().code == Errc::empty_input);
  check_device_works(shared_device());
}

}  // namespace brontes::test
