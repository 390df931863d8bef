#include "reference/reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace brontes::reference {
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
#define ROW(name, formula, ...)                                                                  \
  {#name, []([[maybe_unused]] double x, [[maybe_unused]] double y, [[maybe_unused]] double z,    \
             [[maybe_unused]] double p, [[maybe_unused]] double q) -> double { return formula; }, __VA_ARGS__}

// name, formula, tolerance. Adding an op to kernels/elementwise.def needs a row here; a unit test fails without.
// Vulkan allows exp 3 + 2|x| ulp and division 2.5 ulp, and what is built from them inherits it.
const Elementwise table[] = {
    ROW(fill, p, exact),
    ROW(copy, x, exact),
    ROW(relu, x < 0 ? 0 : x, exact),
    ROW(scale, x * p, rounded),
    ROW(offset, x + p, rounded),
    ROW(neg, -x, exact),
    ROW(abs, std::fabs(x), exact),
    ROW(exp, std::exp(x), {192 * ulp, 0}),
    ROW(log, std::log(x), {4 * ulp, 0x1p-21}),
    ROW(sqrt, std::sqrt(x), {4 * ulp, 0}),
    ROW(sigmoid, 1 / (1 + std::exp(-x)), {64 * ulp, 1e-7}),
    ROW(tanh, std::tanh(x), {16 * ulp, 2e-7}),
    ROW(swish, x == -infinity ? 0 : x / (1 + std::exp(-x)), {64 * ulp, 1e-6}),
    ROW(gelu, x == -infinity ? 0 : 0.5 * x * (1 + std::erf(x * std::sqrt(0.5))), {16 * ulp, 1e-6}),
    ROW(gelu_tanh, x == -infinity ? 0 : 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))), {16 * ulp, 2e-6}),
    ROW(clamp, x < p ? p : x > q ? q : x, exact),
    ROW(add, x + y, rounded),
    ROW(sub, x - y, rounded),
    ROW(mul, x * y, rounded),
    ROW(div, x / y, {3 * ulp, 0}),
    ROW(min, nan_or(x, y, y < x ? y : x), exact),
    ROW(max, nan_or(x, y, y > x ? y : x), exact),
    ROW(square, x * x, rounded),
    ROW(reciprocal, 1 / x, {3 * ulp, 0}),
    ROW(rsqrt, 1 / std::sqrt(x), {8 * ulp, 0}),
    ROW(sign, x > 0 ? 1 : x < 0 ? -1 : x, exact),
    ROW(floor, std::floor(x), exact),
    ROW(ceil, std::ceil(x), exact),
    ROW(round, std::nearbyint(x), exact),
    ROW(sin, std::sin(x), {4 * ulp, 2e-7}),
    ROW(cos, std::cos(x), {4 * ulp, 2e-7}),
    ROW(tan, std::tan(x), {16 * ulp, 2e-7}),
    ROW(erf, std::erf(x), {8 * ulp, 2e-7}),
    ROW(leaky_relu, x < 0 ? x * p : x, rounded),
    ROW(elu, x < 0 ? p * std::expm1(x) : x, {32 * ulp, flushed}),
    ROW(softplus, std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))) + (std::isnan(x) ? x : 0), {32 * ulp, 0}),
    ROW(hard_sigmoid, std::isnan(x) ? x : std::fmin(std::fmax(x / 6 + 0.5, 0), 1), {ulp, 2e-7}),
    ROW(hard_swish, x < -3 ? 0 : x * (std::isnan(x) ? x : std::fmin(std::fmax(x / 6 + 0.5, 0), 1)), {4 * ulp, 1e-6}),
    ROW(pow, nan_or(x, y, std::pow(x, y)), {512 * ulp, flushed}),
    ROW(mod, floor_mod(x, y), rounded),
    ROW(fill_i32, p, exact),
    ROW(neg_i32, wrapped(-x), exact),
    ROW(abs_i32, wrapped(std::fabs(x)), exact),
    ROW(add_i32, wrapped(x + y), exact),
    ROW(sub_i32, wrapped(x - y), exact),
    ROW(mul_i32, wrapped_product(x, y), exact),
    ROW(div_i32, y == 0 ? 0 : wrapped(std::floor(x / y)), exact),
    ROW(mod_i32, y == 0 ? 0 : floor_mod(x, y), exact),
    ROW(min_i32, std::fmin(x, y), exact),
    ROW(max_i32, std::fmax(x, y), exact),
    ROW(eq, x == y, exact),
    ROW(ne, x != y, exact),
    ROW(lt, x < y, exact),
    ROW(le, x <= y, exact),
    ROW(gt, x > y, exact),
    ROW(ge, x >= y, exact),
    ROW(eq_i32, x == y, exact),
    ROW(ne_i32, x != y, exact),
    ROW(lt_i32, x < y, exact),
    ROW(le_i32, x <= y, exact),
    ROW(gt_i32, x > y, exact),
    ROW(ge_i32, x >= y, exact),
    ROW(logical_and, x != 0 && y != 0, exact),
    ROW(logical_or, x != 0 || y != 0, exact),
    ROW(logical_xor, (x != 0) != (y != 0), exact),
    ROW(logical_not, x == 0, exact),
    ROW(where, x != 0 ? y : z, exact),
    ROW(f32_to_i32, saturated(x), exact),
    ROW(f32_to_mask, x != 0, exact),
    ROW(i32_to_f32, static_cast<double>(static_cast<float>(x)), exact),
    ROW(i32_to_mask, x != 0, exact),
    ROW(mask_to_f32, x, exact),
    ROW(mask_to_i32, x, exact),
    ROW(f32_to_f16, nearest_half(x), exact),
    ROW(f16_to_f32, x, exact),
};
// clang-format on

}  // namespace

double nearest_half(double x) {
  if (!std::isfinite(x) || x == 0) return x;
  if (std::fabs(x) >= 65520) return std::copysign(infinity, x);
  const double unit = std::ldexp(1.0, std::max(std::ilogb(x), -14) - 10);
  return std::nearbyint(x / unit) * unit;
}

const Elementwise* elementwise(std::string_view name) {
  for (const Elementwise& row : table) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

}  // namespace brontes::reference
