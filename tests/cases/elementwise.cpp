#include "elementwise.hpp"

#include <cmath>
#include <limits>

namespace brontes::cases {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double ulp = 0x1p-23;  // of 1.0f

// Picks an operand or flips a sign, so nothing may be lost.
constexpr Tolerance exact{};
// One correctly rounded operation.
constexpr Tolerance rounded{ulp, 0};

double nan_or(double x, double y, double otherwise) { return std::isnan(x) || std::isnan(y) ? x + y : otherwise; }

// clang-format off
#define CASE(name, arity, scalars, call, formula, ...)                                  \
  {#name, arity, scalars, [](const Operands& o) { return o.batch.call; },               \
   []([[maybe_unused]] double x, [[maybe_unused]] double y, [[maybe_unused]] double p,  \
      [[maybe_unused]] double q) -> double { return formula; },                         \
   __VA_ARGS__}
#define UNARY(name, formula, ...) CASE(name, 1, 0, name(o.x), formula, __VA_ARGS__)
#define BINARY(name, formula, ...) CASE(name, 2, 0, name(o.x, o.y), formula, __VA_ARGS__)

// name, reference, tolerance, random inputs from, to, scalars p, q.
// Vulkan allows exp 3 + 2|x| ulp and division 2.5 ulp, and what is built from them inherits it.
const std::vector<ElementwiseCase> table = {
    CASE(fill, 0, 1, fill(o.p, o.shape), p, exact, 0, 0, 1.5f),
    UNARY(copy, x, exact, -100, 100),
    UNARY(relu, x < 0 ? 0 : x, exact, -8, 8),
    CASE(scale, 1, 1, scale(o.x, o.p), x * p, rounded, -8, 8, -1.7f),
    CASE(offset, 1, 1, offset(o.x, o.p), x + p, rounded, -8, 8, 0.3f),
    UNARY(neg, -x, exact, -8, 8),
    UNARY(abs, std::fabs(x), exact, -8, 8),
    UNARY(exp, std::exp(x), {192 * ulp, 0}, -80, 80),
    UNARY(log, std::log(x), {4 * ulp, 0x1p-21}, 1e-3f, 1e4f),
    UNARY(sqrt, std::sqrt(x), {4 * ulp, 0}, 0, 1e6f),
    UNARY(sigmoid, 1 / (1 + std::exp(-x)), {64 * ulp, 1e-7}, -20, 20),
    UNARY(tanh, std::tanh(x), {16 * ulp, 2e-7}, -10, 10),
    UNARY(swish, x == -infinity ? 0 : x / (1 + std::exp(-x)), {64 * ulp, 1e-6}, -20, 20),
    UNARY(gelu, x == -infinity ? 0 : 0.5 * x * (1 + std::erf(x * std::sqrt(0.5))), {16 * ulp, 1e-6}, -8, 8),
    UNARY(gelu_tanh, x == -infinity ? 0 : 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))),
          {16 * ulp, 2e-6}, -8, 8),
    CASE(clamp, 1, 2, clamp(o.x, o.p, o.q), x < p ? p : x > q ? q : x, exact, -8, 8, -2.5f, 3.25f),
    BINARY(add, x + y, rounded, -8, 8),
    BINARY(sub, x - y, rounded, -8, 8),
    BINARY(mul, x * y, rounded, -8, 8),
    BINARY(div, x / y, {3 * ulp, 0}, 0.25f, 8),
    BINARY(min, nan_or(x, y, y < x ? y : x), exact, -8, 8),
    BINARY(max, nan_or(x, y, y > x ? y : x), exact, -8, 8),
};
// clang-format on

}  // namespace

const std::vector<ElementwiseCase>& elementwise_cases() { return table; }

const ElementwiseCase* find_elementwise_case(std::string_view name) {
  for (const ElementwiseCase& c : table) {
    if (name == c.name) return &c;
  }
  return nullptr;
}

}  // namespace brontes::cases
