#include "elementwise.hpp"

#include "reference/reference.hpp"

#include <cstdint>

namespace brontes::cases {
namespace {

double no_formula(double, double, double, double, double) { return 0; }

// What it must give is in lib/reference.
ElementwiseCase with_reference(ElementwiseCase c) {
  const reference::Elementwise* row = reference::elementwise(c.name);
  c.reference = row == nullptr ? no_formula : row->formula;
  if (row != nullptr) c.tolerance = row->tolerance;
  return c;
}

// clang-format off
#define CASE(name, arity, scalars, call, ...) \
  with_reference({#name, arity, scalars, [](const Operands& o) { return o.batch.call; }, nullptr, {}, __VA_ARGS__})
#define UNARY(name, ...) CASE(name, 1, 0, name(o.x), __VA_ARGS__)
#define BINARY(name, ...) CASE(name, 2, 0, name(o.x, o.y), __VA_ARGS__)
// Rows of other types than f32: their name, that of their method, and types.
#define TYPED_UNARY(name, method, types, low, high) CASE(name, 1, 0, method(o.x), low, high, 0, 0, #types)
#define TYPED_BINARY(name, method, types, low, high) CASE(name, 2, 0, method(o.x, o.y), low, high, 0, 0, #types)
#define CAST(name, to, types, low, high) CASE(name, 1, 0, cast(o.x, DType::to), low, high, 0, 0, #types)

// name, random inputs from, to, scalars p, q.
const std::vector<ElementwiseCase> table = {
    CASE(fill, 0, 1, fill(o.p, o.shape), 0, 0, 1.5f),
    UNARY(copy, -100, 100),
    UNARY(relu, -8, 8),
    CASE(scale, 1, 1, scale(o.x, o.p), -8, 8, -1.7f),
    CASE(offset, 1, 1, offset(o.x, o.p), -8, 8, 0.3f),
    UNARY(neg, -8, 8),
    UNARY(abs, -8, 8),
    UNARY(exp, -80, 80),
    UNARY(log, 1e-3f, 1e4f),
    UNARY(sqrt, 0, 1e6f),
    UNARY(sigmoid, -20, 20),
    UNARY(tanh, -10, 10),
    UNARY(swish, -20, 20),
    UNARY(gelu, -8, 8),
    UNARY(gelu_tanh, -8, 8),
    CASE(clamp, 1, 2, clamp(o.x, o.p, o.q), -8, 8, -2.5f, 3.25f),
    BINARY(add, -8, 8),
    BINARY(sub, -8, 8),
    BINARY(mul, -8, 8),
    BINARY(div, 0.25f, 8),
    BINARY(min, -8, 8),
    BINARY(max, -8, 8),
    UNARY(square, -8, 8),
    UNARY(reciprocal, 0.25f, 8),
    UNARY(rsqrt, 1e-3f, 1e6f),
    UNARY(sign, -8, 8),
    UNARY(floor, -100, 100),
    UNARY(ceil, -100, 100),
    UNARY(round, -100, 100),
    UNARY(sin, -100, 100),
    UNARY(cos, -100, 100),
    UNARY(tan, -100, 100),
    UNARY(erf, -4, 4),
    CASE(leaky_relu, 1, 1, leaky_relu(o.x, o.p), -8, 8, 0.01f),
    CASE(elu, 1, 1, elu(o.x, o.p), -8, 8, 1.5f),
    UNARY(softplus, -20, 20),
    UNARY(hard_sigmoid, -8, 8),
    UNARY(hard_swish, -8, 8),
    BINARY(pow, 0.25f, 8),
    BINARY(mod, -8, 8),
    CASE(fill_i32, 0, 1, fill_i32(static_cast<std::int32_t>(o.p), o.shape), 0, 0, -7, 0, "none_i"),
    TYPED_UNARY(neg_i32, neg, i_i, -1000, 1000),
    TYPED_UNARY(abs_i32, abs, i_i, -1000, 1000),
    TYPED_BINARY(add_i32, add, ii_i, -1000, 1000),
    TYPED_BINARY(sub_i32, sub, ii_i, -1000, 1000),
    TYPED_BINARY(mul_i32, mul, ii_i, -1000, 1000),
    TYPED_BINARY(div_i32, div, ii_i, -100, 100),
    TYPED_BINARY(mod_i32, mod, ii_i, -100, 100),
    TYPED_BINARY(min_i32, min, ii_i, -1000, 1000),
    TYPED_BINARY(max_i32, max, ii_i, -1000, 1000),
    TYPED_BINARY(eq, eq, ff_m, -8, 8),
    TYPED_BINARY(ne, ne, ff_m, -8, 8),
    TYPED_BINARY(lt, lt, ff_m, -8, 8),
    TYPED_BINARY(le, le, ff_m, -8, 8),
    TYPED_BINARY(gt, gt, ff_m, -8, 8),
    TYPED_BINARY(ge, ge, ff_m, -8, 8),
    TYPED_BINARY(eq_i32, eq, ii_m, -3, 3),
    TYPED_BINARY(ne_i32, ne, ii_m, -3, 3),
    TYPED_BINARY(lt_i32, lt, ii_m, -3, 3),
    TYPED_BINARY(le_i32, le, ii_m, -3, 3),
    TYPED_BINARY(gt_i32, gt, ii_m, -3, 3),
    TYPED_BINARY(ge_i32, ge, ii_m, -3, 3),
    TYPED_BINARY(logical_and, logical_and, mm_m, 0, 1),
    TYPED_BINARY(logical_or, logical_or, mm_m, 0, 1),
    TYPED_BINARY(logical_xor, logical_xor, mm_m, 0, 1),
    TYPED_UNARY(logical_not, logical_not, m_m, 0, 1),
    CASE(where, 3, 0, where(o.x, o.y, o.z), -8, 8, 0, 0, "mtt_t"),
    CAST(f32_to_i32, i32, f_i, -1000, 1000),
    CAST(f32_to_mask, mask, f_m, -1, 1),
    CAST(i32_to_f32, f32, i_f, -1000, 1000),
    CAST(i32_to_mask, mask, i_m, -1, 1),
    CAST(mask_to_f32, f32, m_f, 0, 1),
    CAST(mask_to_i32, i32, m_i, 0, 1),
    CAST(f32_to_f16, f16, f_h, -1000, 1000),
    CAST(f16_to_f32, f32, h_f, -1000, 1000),
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
