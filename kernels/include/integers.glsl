// i32 and mask values, which travel as the bits of floats: no arithmetic is done on them as such, and nothing here
// depends on what a driver makes of NaN or denormals.
#ifndef BRONTES_INTEGERS_GLSL
#define BRONTES_INTEGERS_GLSL

#include "elementary.glsl"

ivec4 ints(vec4 x) { return floatBitsToInt(x); }
vec4 bits_of(ivec4 x) { return intBitsToFloat(x); }
vec4 mask_of(bvec4 x) { return intBitsToFloat(ivec4(x)); }

// Numbers in the order of the floats. Zeros are equal, denormals are not zero, NaN is anything.
int order_of(float x) {
  int bits = floatBitsToInt(x);
  return bits < 0 ? int(0x80000000u - uint(bits)) : bits;
}
ivec4 order_of(vec4 x) {
  ivec4 bits = floatBitsToInt(x);
  return mix(bits, ivec4(0x80000000u - uvec4(bits)), lessThan(bits, ivec4(0)));
}
bvec4 ordered(vec4 x, vec4 y) { return both(not(is_nan(x)), not(is_nan(y))); }

// Towards 0; past the range of i32 the nearest there is, and 0 for NaN.
ivec4 saturated(vec4 x) {
  ivec4 bits = floatBitsToInt(x);
  bvec4 large = greaterThanEqual(bits & 0x7fffffff, ivec4(0x4f000000));
  ivec4 limit = mix(ivec4(0x7fffffff), ivec4(0x80000000u), lessThan(bits, ivec4(0)));
  return mix(mix(ivec4(mix(x, vec4(0.0), large)), limit, large), ivec4(0), is_nan(x));
}

// A divisor with which x can be divided: neither 0, nor -1 where the quotient has no place. For both 1 is as good.
ivec4 safe_divisor(ivec4 x, ivec4 y) {
  bvec4 overflows = both(equal(x, ivec4(0x80000000u)), equal(y, ivec4(-1)));
  return mix(mix(y, ivec4(1), equal(y, ivec4(0))), ivec4(1), overflows);
}
// Where a quotient that was cut off at 0 lies above the true one.
bvec4 cut_off(ivec4 rest, ivec4 y) {
  return both(notEqual(rest, ivec4(0)), lessThan(rest ^ y, ivec4(0)));
}
// Rounded down, so that the rest has the sign of y. 0 where y is 0, and the lowest number again where it is divided by
// -1.
ivec4 floor_div(ivec4 x, ivec4 y) {
  ivec4 divisor = safe_divisor(x, y);
  ivec4 quotient = x / divisor;
  ivec4 lower = quotient - ivec4(cut_off(x - quotient * divisor, divisor));
  return mix(lower, ivec4(0), equal(y, ivec4(0)));
}
ivec4 floor_mod(ivec4 x, ivec4 y) {
  ivec4 divisor = safe_divisor(x, y);
  ivec4 rest = x - x / divisor * divisor;
  return mix(rest, rest + divisor, cut_off(rest, divisor));
}

// m * 2^(e - 150), for m up to 2^24 and e from 1 on.
vec4 composed(uvec4 m, uvec4 e) {
  uvec4 shift = uvec4(max(23 - findMSB(m), 0));
  uvec4 normal = (e - shift << 23) + (m << shift) - 0x800000u;
  return uintBitsToFloat(mix(mix(normal, m << (e - 1u & 31u), lessThanEqual(e, shift)), uvec4(0u), equal(m, uvec4(0u))));
}

// x - floor(x / y) * y without rounding on the way: long division of the mantissas, eight bits at a time.
vec4 floor_mod(vec4 x, vec4 y) {
  uvec4 ax = floatBitsToUint(x) & 0x7fffffffu;
  uvec4 ay = floatBitsToUint(y) & 0x7fffffffu;
  bvec4 none = bvec4(uvec4(greaterThanEqual(ax, uvec4(0x7f800000u))) | uvec4(equal(ay, uvec4(0u))) |
                     uvec4(greaterThan(ay, uvec4(0x7f800000u))));
  // Denormals have the exponent 1 and no leading bit.
  uvec4 ex = max(ax >> 23, uvec4(1u));
  uvec4 ey = max(ay >> 23, uvec4(1u));
  uvec4 mx = (ax & 0x7fffffu) | uvec4(greaterThan(ax, uvec4(0x7fffffu))) << 23;
  uvec4 my = max((ay & 0x7fffffu) | uvec4(greaterThan(ay, uvec4(0x7fffffu))) << 23, uvec4(1u));
  uvec4 left = mix(ex - ey, uvec4(0u), lessThan(ex, ey));
  uvec4 rest = mx % my;
  for (uint step = 0u; step < 32u; ++step) {
    if (left == uvec4(0u)) break;
    uvec4 shift = min(left, uvec4(8u));
    rest = (rest << shift) % my;
    left -= shift;
  }
  bvec4 apart = lessThan(floatBitsToInt(x) ^ floatBitsToInt(y), ivec4(0));
  vec4 divided = composed(mix(rest, my - rest, both(apart, notEqual(rest, uvec4(0u)))), ey);
  // x is smaller than y: what is left of it is x, or the difference from y.
  precise vec4 difference = uintBitsToFloat(ay) - uintBitsToFloat(ax);
  vec4 whole = mix(uintBitsToFloat(ax), difference, both(apart, notEqual(ax, uvec4(0u))));
  vec4 magnitude = mix(divided, whole, lessThan(ex, ey));
  vec4 result = uintBitsToFloat(floatBitsToUint(magnitude) | (floatBitsToUint(y) & 0x80000000u));
  return mix(result, vec4(BRONTES_NAN), none);
}

#endif
