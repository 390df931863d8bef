#include "elementwise.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

namespace brontes::cases {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double ulp = 0x1p-23;  // of 1.0f

// Picks an operand or flips a sign, so nothing may be lost.
constexpr Tolerance exact{};
// An intermediate result may have been denormal, and so zero.
constexpr double flushed = 2e-38;
// One correctly rounded operation.
constexpr Tolerance rounded{ulp, 0};

double nan_or(double x, double y, double otherwise) { return std::isnan(x) || std::isnan(y) ? x + y : otherwise; }

// As 32-bit integers have it.
double wrapped(double x) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int64_t>(x))); }
double wrapped_product(double x, double y) {
  return wrapped(static_cast<double>(static_cast<std::uint32_t>(static_cast<std::int64_t>(x)) *
                                     static_cast<std::uint32_t>(static_cast<std::int64_t>(y))));
}
double floor_mod(double x, double y) {
  const double rest = std::fmod(x, y);
  return rest != 0 && std::signbit(rest) != std::signbit(y) ? rest + y : rest;
}
double saturated(double x) {
  return std::isnan(x) ? 0 : std::trunc(std::fmin(std::fmax(x, -2147483648.0), 2147483647.0));
}

// clang-format off
#define CASE(name, arity, scalars, call, formula, ...)                                  \
  {#name, arity, scalars, [](const Operands& o) { return o.batch.call; },               \
   []([[maybe_unused]] double x, [[maybe_unused]] double y, [[maybe_unused]] double z,  \
      [[maybe_unused]] double p, [[maybe_unused]] double q) -> double { return formula; },                         \
   __VA_ARGS__}
#define UNARY(name, formula, ...) CASE(name, 1, 0, name(o.x), formula, __VA_ARGS__)
#define BINARY(name, formula, ...) CASE(name, 2, 0, name(o.x, o.y), formula, __VA_ARGS__)
// Rows of other types than f32: their name, that of their method, and types. All are exact.
#define TYPED_UNARY(name, method, types, formula, low, high) \
  CASE(name, 1, 0, method(o.x), formula, exact, low, high, 0, 0, #types)
#define TYPED_BINARY(name, method, types, formula, low, high) \
  CASE(name, 2, 0, method(o.x, o.y), formula, exact, low, high, 0, 0, #types)
#define CAST(name, to, types, formula, low, high) \
  CASE(name, 1, 0, cast(o.x, DType::to), formula, exact, low, high, 0, 0, #types)

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
    UNARY(square, x * x, rounded, -8, 8),
    UNARY(reciprocal, 1 / x, {3 * ulp, 0}, 0.25f, 8),
    UNARY(rsqrt, 1 / std::sqrt(x), {8 * ulp, 0}, 1e-3f, 1e6f),
    UNARY(sign, x > 0 ? 1 : x < 0 ? -1 : x, exact, -8, 8),
    UNARY(floor, std::floor(x), exact, -100, 100),
    UNARY(ceil, std::ceil(x), exact, -100, 100),
    UNARY(round, std::nearbyint(x), exact, -100, 100),
    UNARY(sin, std::sin(x), {4 * ulp, 2e-7}, -100, 100),
    UNARY(cos, std::cos(x), {4 * ulp, 2e-7}, -100, 100),
    UNARY(tan, std::tan(x), {16 * ulp, 2e-7}, -100, 100),
    UNARY(erf, std::erf(x), {8 * ulp, 2e-7}, -4, 4),
    CASE(leaky_relu, 1, 1, leaky_relu(o.x, o.p), x < 0 ? x * p : x, rounded, -8, 8, 0.01f),
    CASE(elu, 1, 1, elu(o.x, o.p), x < 0 ? p * std::expm1(x) : x, {32 * ulp, flushed}, -8, 8, 1.5f),
    UNARY(softplus, std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))) + (std::isnan(x) ? x : 0), {32 * ulp, 0}, -20, 20),
    UNARY(hard_sigmoid, std::isnan(x) ? x : std::fmin(std::fmax(x / 6 + 0.5, 0), 1), {ulp, 2e-7}, -8, 8),
    UNARY(hard_swish, x < -3 ? 0 : x * (std::isnan(x) ? x : std::fmin(std::fmax(x / 6 + 0.5, 0), 1)), {4 * ulp, 1e-6}, -8, 8),
    BINARY(pow, nan_or(x, y, std::pow(x, y)), {512 * ulp, flushed}, 0.25f, 8),
    BINARY(mod, floor_mod(x, y), rounded, -8, 8),
    CASE(fill_i32, 0, 1, fill_i32(static_cast<std::int32_t>(o.p), o.shape), p, exact, 0, 0, -7, 0, "none_i"),
    TYPED_UNARY(neg_i32, neg, i_i, wrapped(-x), -1000, 1000),
    TYPED_UNARY(abs_i32, abs, i_i, wrapped(std::fabs(x)), -1000, 1000),
    TYPED_BINARY(add_i32, add, ii_i, wrapped(x + y), -1000, 1000),
    TYPED_BINARY(sub_i32, sub, ii_i, wrapped(x - y), -1000, 1000),
    TYPED_BINARY(mul_i32, mul, ii_i, wrapped_product(x, y), -1000, 1000),
    TYPED_BINARY(div_i32, div, ii_i, y == 0 ? 0 : wrapped(std::floor(x / y)), -100, 100),
    TYPED_BINARY(mod_i32, mod, ii_i, y == 0 ? 0 : floor_mod(x, y), -100, 100),
    TYPED_BINARY(min_i32, min, ii_i, std::fmin(x, y), -1000, 1000),
    TYPED_BINARY(max_i32, max, ii_i, std::fmax(x, y), -1000, 1000),
    TYPED_BINARY(eq, eq, ff_m, x == y, -8, 8),
    TYPED_BINARY(ne, ne, ff_m, x != y, -8, 8),
    TYPED_BINARY(lt, lt, ff_m, x < y, -8, 8),
    TYPED_BINARY(le, le, ff_m, x <= y, -8, 8),
    TYPED_BINARY(gt, gt, ff_m, x > y, -8, 8),
    TYPED_BINARY(ge, ge, ff_m, x >= y, -8, 8),
    TYPED_BINARY(eq_i32, eq, ii_m, x == y, -3, 3),
    TYPED_BINARY(ne_i32, ne, ii_m, x != y, -3, 3),
    TYPED_BINARY(lt_i32, lt, ii_m, x < y, -3, 3),
    TYPED_BINARY(le_i32, le, ii_m, x <= y, -3, 3),
    TYPED_BINARY(gt_i32, gt, ii_m, x > y, -3, 3),
    TYPED_BINARY(ge_i32, ge, ii_m, x >= y, -3, 3),
    TYPED_BINARY(logical_and, logical_and, mm_m, x != 0 && y != 0, 0, 1),
    TYPED_BINARY(logical_or, logical_or, mm_m, x != 0 || y != 0, 0, 1),
    TYPED_BINARY(logical_xor, logical_xor, mm_m, (x != 0) != (y != 0), 0, 1),
    TYPED_UNARY(logical_not, logical_not, m_m, x == 0, 0, 1),
    CASE(where, 3, 0, where(o.x, o.y, o.z), x != 0 ? y : z, exact, -8, 8, 0, 0, "mtt_t"),
    CAST(f32_to_i32, i32, f_i, saturated(x), -1000, 1000),
    CAST(f32_to_mask, mask, f_m, x != 0, -1, 1),
    CAST(i32_to_f32, f32, i_f, static_cast<double>(static_cast<float>(x)), -1000, 1000),
    CAST(i32_to_mask, mask, i_m, x != 0, -1, 1),
    CAST(mask_to_f32, f32, m_f, x, 0, 1),
    CAST(mask_to_i32, i32, m_i, x, 0, 1),
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
