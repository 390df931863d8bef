// More elementary functions, by the rules of activations.glsl: guarded ranges, NaN gives NaN, the same values on every
// driver. Polynomials interpolate at Chebyshev nodes.
//
// Largest errors against double precision:
//   sin, cos   1.2e-7 absolute for any x, 2e-7 relative where the result is not near a zero past 2^24
//   tan        5e-7 relative
//   erf        2e-7 absolute, 3e-7 relative below 1
//   pow        2e-7 * (1 + |y log x|) relative
#ifndef BRONTES_ELEMENTARY_GLSL
#define BRONTES_ELEMENTARY_GLSL

#include "activations.glsl"

bvec4 is_negative(vec4 x) { return lessThan(floatBitsToInt(x), ivec4(0)); }
bvec4 both(bvec4 a, bvec4 b) { return bvec4(a.x && b.x, a.y && b.y, a.z && b.z, a.w && b.w); }

// From here on floats have no fraction.
const float no_fraction = 8388608.0;

vec4 safe_floor(vec4 x) { return mix(x, floor(x), lessThan(abs(x), vec4(no_fraction))); }
vec4 safe_ceil(vec4 x) { return mix(x, ceil(x), lessThan(abs(x), vec4(no_fraction))); }
vec4 round_even(vec4 x) { return mix(x, roundEven(x), lessThan(abs(x), vec4(no_fraction))); }

vec4 sign_of(vec4 x) {
  uvec4 bits = floatBitsToUint(x);
  vec4 one = uintBitsToFloat((bits & 0x80000000u) | 0x3f800000u);
  bvec4 zero = equal(bits << 1, uvec4(0u));
  return mix(mix(one, x, zero), x, is_nan(x));
}

vec4 leaky_relu(vec4 x, float slope) {
  return mix(x, x * slope, lessThanEqual(floatBitsToInt(x), ivec4(0xff800000)));
}

// e^x - 1 for x <= 0, by 2 t / (1 - t) with t = tanh(x / 2).
vec4 elu(vec4 x, float scale) {
  vec4 t = safe_tanh(0.5 * x);
  return mix(x, scale * (2.0 * t / (1.0 - t)), lessThanEqual(floatBitsToInt(x), ivec4(0xff800000)));
}

// max(x, 0) + log(1 + e^-|x|). What 1 + e loses is made up for by e / ((1 + e) - 1).
vec4 softplus(vec4 x) {
  vec4 e = exp_bounded(-abs(x));
  precise vec4 sum = 1.0 + e;
  precise vec4 kept = sum - 1.0;
  vec4 tail = mix(safe_log(sum) * (e / kept), e, equal(kept, vec4(0.0)));
  return mix(max(x, 0.0) + tail, x, is_nan(x));
}

vec4 hard_sigmoid(vec4 x) { return nan_min(nan_max(x * (1.0 / 6.0) + 0.5, vec4(0.0)), vec4(1.0)); }
vec4 hard_swish(vec4 x) { return mix(x * hard_sigmoid(x), vec4(0.0), lessThan(x, vec4(-3.0))); }

// The upper half of the 64-bit product of a 24-bit number and a word, and the lower half.
uvec4 product_high(uvec4 m, uvec4 w) {
  uvec4 low = (m & 0xffffu) * (w & 0xffffu);
  uvec4 first = (m & 0xffffu) * (w >> 16);
  uvec4 second = (m >> 16) * (w & 0xffffu);
  uvec4 carry = (low >> 16) + (first & 0xffffu) + (second & 0xffffu);
  return (m >> 16) * (w >> 16) + (first >> 16) + (second >> 16) + (carry >> 16);
}

// Word i of 2 / pi, with a word of zeros in front.
uvec4 two_over_pi(uvec4 i) {
  uvec4 w = uvec4(0u);
  w = mix(w, uvec4(0xa2f9836eu), equal(i, uvec4(1u)));
  w = mix(w, uvec4(0x4e441529u), equal(i, uvec4(2u)));
  w = mix(w, uvec4(0xfc2757d1u), equal(i, uvec4(3u)));
  w = mix(w, uvec4(0xf534ddc0u), equal(i, uvec4(4u)));
  w = mix(w, uvec4(0xdb629599u), equal(i, uvec4(5u)));
  w = mix(w, uvec4(0x3c439041u), equal(i, uvec4(6u)));
  return mix(w, uvec4(0xfe5163abu), equal(i, uvec4(7u)));
}

// |x| = quarter * pi / 2 + rest with rest in [-pi/4, pi/4], for any finite x (Payne and Hanek): of the product of the
// 24 bits of x and 2 / pi, only the bits of weight 2 and below matter, and 96 bits of 2 / pi give 64 of them.
vec4 reduced_angle(vec4 x, out uvec4 quarter) {
  uvec4 bits = floatBitsToUint(x) & 0x7fffffffu;
  uvec4 mantissa = (bits & 0x007fffffu) | 0x00800000u;
  // Below pi / 4 there is nothing to take off.
  bvec4 small = lessThan(bits, uvec4(0x3f490fdbu));
  uvec4 at = mix((bits >> 23) - 120u, uvec4(6u), small);
  uvec4 word = at >> 5;
  uvec4 shift = at & 31u;
  uvec4 a = two_over_pi(word);
  uvec4 b = two_over_pi(word + 1u);
  uvec4 c = two_over_pi(word + 2u);
  uvec4 d = two_over_pi(word + 3u);
  uvec4 w0 = (a << shift) | ((b >> 1) >> (31u - shift));
  uvec4 w1 = (b << shift) | ((c >> 1) >> (31u - shift));
  uvec4 w2 = (c << shift) | ((d >> 1) >> (31u - shift));
  uvec4 low = mantissa * w1 + product_high(mantissa, w2);
  uvec4 carry = mix(uvec4(0u), uvec4(1u), lessThan(low, mantissa * w1));
  uvec4 high = mantissa * w0 + product_high(mantissa, w1) + carry;
  // Two bits are quarters, and the fraction behind them is rounded to the nearer one.
  uvec4 rounded = high + 0x20000000u;
  quarter = mix(rounded >> 30, uvec4(0u), small);
  uvec4 top = (high << 2) | (low >> 30);
  uvec4 bottom = low << 2;
  bvec4 minus = greaterThanEqual(top, uvec4(0x80000000u));
  bvec4 borrow = equal(bottom, uvec4(0u));
  uvec4 size_top = mix(top, mix(~top, ~top + 1u, borrow), minus);
  uvec4 size_bottom = mix(bottom, ~bottom + 1u, minus);
  vec4 fraction = vec4(size_top) * 2.3283064365386963e-10 + vec4(size_bottom) * 5.421010862427522e-20;
  vec4 rest = fraction * 1.5707963267948966;
  return mix(mix(rest, -rest, minus), uintBitsToFloat(bits), small);
}

vec4 sin_near_zero(vec4 r) {
  vec4 z = r * r;
  vec4 series = (2.7249619808352316e-06 * z - 0.00019840084373212076) * z + 0.008333331870330528;
  return r + r * z * (series * z - 0.1666666666384396);
}
vec4 cos_near_zero(vec4 r) {
  vec4 z = r * r;
  vec4 series = (-2.73008048348859e-07 * z + 2.4800599627476452e-05) * z - 0.0013888887672861242;
  return 1.0 - 0.5 * z + z * z * (series * z + 0.04166666666435977);
}

// Of NaN and infinities.
vec4 unless_finite(vec4 result, vec4 x) {
  return mix(result, vec4(BRONTES_NAN), greaterThanEqual(floatBitsToUint(x) & 0x7fffffffu, uvec4(0x7f800000u)));
}
vec4 flip(vec4 x, uvec4 sign) { return uintBitsToFloat(floatBitsToUint(x) ^ (sign << 31)); }

vec4 safe_sin(vec4 x) {
  uvec4 quarter;
  vec4 r = reduced_angle(x, quarter);
  vec4 result = mix(sin_near_zero(r), cos_near_zero(r), equal(quarter & 1u, uvec4(1u)));
  return unless_finite(flip(result, (quarter >> 1) ^ (floatBitsToUint(x) >> 31)), x);
}
vec4 safe_cos(vec4 x) {
  uvec4 quarter;
  vec4 r = reduced_angle(x, quarter);
  vec4 result = mix(cos_near_zero(r), sin_near_zero(r), equal(quarter & 1u, uvec4(1u)));
  return unless_finite(flip(result, (quarter >> 1) ^ (quarter & 1u)), x);
}
vec4 safe_tan(vec4 x) {
  uvec4 quarter;
  vec4 r = reduced_angle(x, quarter);
  vec4 s = sin_near_zero(r);
  vec4 c = cos_near_zero(r);
  bvec4 odd = equal(quarter & 1u, uvec4(1u));
  vec4 result = mix(s, -c, odd) / mix(c, s, odd);
  return unless_finite(flip(result, floatBitsToUint(x) >> 31), x);
}

// Below 1 a polynomial, from there on 1 - 2 Q(t) with the tail Q of gelu().
vec4 safe_erf(vec4 x) {
  vec4 z = min(x * x, 1.0);
  vec4 series = -9.667044998012112e-06 * z + 0.00011265959187425895;
  series = series * z - 0.0008484080430098716;
  series = series * z + 0.005221031809749211;
  series = series * z - 0.026865430728438864;
  series = series * z + 0.11283782495252244;
  series = series * z - 0.3761263846802991;
  vec4 small = x * (series * z + 1.1283791670615435);
  vec4 t = min(abs(x), 10.0) * 1.4142135623730951;
  // gelu(t) = t (1 - Q(t)), and erf(x) = 1 - 2 Q(t).
  vec4 large = 2.0 * (gelu(t) / max(t, 1.0)) - 1.0;
  large = uintBitsToFloat(floatBitsToUint(large) | (floatBitsToUint(x) & 0x80000000u));
  return mix(mix(large, small, lessThan(abs(x), vec4(1.0))), x, is_nan(x));
}

vec4 safe_pow(vec4 x, vec4 y) {
  vec4 magnitude = safe_exp(y * safe_log(abs(x)));
  // 0 * Inf on the way to 1.
  bvec4 one = equal(abs(x), vec4(1.0));
  magnitude = mix(magnitude, vec4(1.0), one);
  magnitude = mix(magnitude, vec4(1.0), equal(y, vec4(0.0)));
  // Past 2^24 every float is even.
  bvec4 countable = lessThan(abs(y), vec4(16777216.0));
  bvec4 whole = equal(safe_floor(y), y);
  ivec4 count = ivec4(mix(vec4(0.0), y, both(countable, whole)));
  bvec4 odd = both(equal(count & 1, ivec4(1)), whole);
  vec4 result = mix(magnitude, -magnitude, both(is_negative(x), odd));
  // A negative number has no other power.
  uvec4 bits = floatBitsToUint(x);
  bvec4 finite = both(greaterThan(bits, uvec4(0x80000000u)), lessThan(bits, uvec4(0xff800000u)));
  result = mix(result, vec4(BRONTES_NAN), both(finite, not(whole)));
  return mix(mix(result, y, is_nan(y)), x, is_nan(x));
}

#endif
