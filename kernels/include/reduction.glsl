// What reductions along axes have in common: how elements are loaded, combined and finished. All of it is chosen by
// specialization constants, so that one kernel is every op. The kernel includes prologue.glsl and declares its params,
// with a prologue, before it includes this.
#ifndef BRONTES_REDUCTION_GLSL
#define BRONTES_REDUCTION_GLSL

#include "activations.glsl"
#include "memory.glsl"
#include "numbers.glsl"

// ops::AxesCombine, AxesMap and AxesFinish
layout(constant_id = 1) const uint combine = 0;
layout(constant_id = 2) const uint map = 0;
layout(constant_id = 3) const uint finish = 0;

const uint combine_sum = 0;
const uint combine_product = 1;
const uint combine_max = 2;

const uint map_square = 1;
const uint map_magnitude = 2;
const uint map_exp = 3;

const uint finish_divide = 1;
const uint finish_sqrt = 2;
const uint finish_log = 3;

BRONTES_INPUT(0, in0)
// For logsumexp: the largest element of each result's set.
BRONTES_INPUT(1, in1)
BRONTES_OUTPUT(2, out0)

// Of logsumexp, what is taken off before exp. An infinite one would make NaN of infinities, which exp and log pass on.
vec4 shift_of(vec4 largest) { return mix(largest, vec4(0.0), is_inf(largest)); }

vec4 mapped(vec4 x, vec4 shift) {
  if (map == map_square) return x * x;
  if (map == map_magnitude) return abs(x);
  if (map == map_exp) return safe_exp(x - shift);
  return x;
}

// The elements of the operand, as they are combined.
vec4 value4(uint i4, vec4 shift) {
  vec4 x = load4(in0, i4);
  BRONTES_PROLOGUE4(x, i4, params.prologue)
  return mapped(x, shift);
}
vec4 value1(uint i, vec4 shift) {
  vec4 x = vec4(load1(in0, i));
  BRONTES_PROLOGUE1(x, i, params.prologue)
  return mapped(x, shift);
}

// What leaves everything as it is.
vec4 identity() {
  if (combine == combine_sum) return vec4(0.0);
  if (combine == combine_product) return vec4(1.0);
  return vec4(combine == combine_max ? -BRONTES_INFINITY : BRONTES_INFINITY);
}

vec4 combined(vec4 a, vec4 b) {
  if (combine == combine_sum) return a + b;
  if (combine == combine_product) return a * b;
  return combine == combine_max ? nan_max(a, b) : nan_min(a, b);
}

float combined(float a, float b) {
  if (combine == combine_sum) return a + b;
  if (combine == combine_product) return a * b;
  return combine == combine_max ? nan_max(a, b) : nan_min(a, b);
}

// The elements of x, of which the first has index i, that lie in [begin, end).
vec4 within(vec4 x, uint i, uint begin, uint end) {
  uvec4 index = uvec4(i) + uvec4(0u, 1u, 2u, 3u);
  bvec4 inside = notEqual(uvec4(greaterThanEqual(index, uvec4(begin))) * uvec4(lessThan(index, uvec4(end))), uvec4(0u));
  return mix(identity(), x, inside);
}

vec4 finished(vec4 total, vec4 shift, float divisor) {
  if (finish == finish_divide) return total / divisor;
  if (finish == finish_sqrt) return safe_sqrt(total);
  if (finish == finish_log) return safe_log(total) + shift;
  return total;
}

#endif
