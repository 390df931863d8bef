// Elementary functions with the same values on every driver. GLSL's own exp, log and tanh may be off by
// many ulp and say nothing of NaN, infinity or large arguments; here each has its range guarded,
// and NaN gives NaN. Polynomials are minimax fits (Remez), in Horner form.
//
// Largest errors against double precision, over all of the stated range, for a division within 2.5 ulp:
//   exp        1.5e-7 relative wherever the result is normal
//   log        1.5e-7 relative, denormal arguments included
//   sigmoid    4e-7 relative wherever the result is normal
//   tanh       4e-7 relative
//   gelu       1.5e-7 * max(1, |x|) absolute; 2e-6 relative in [-6, 0), 6e-6 in [-12, -6)
//   gelu_tanh  2e-7 * max(1, |x|) absolute; 4e-6 relative in [-6, 0)
#ifndef BRONTES_ACTIVATIONS_GLSL
#define BRONTES_ACTIVATIONS_GLSL

#include "numbers.glsl"

// ln 2 in two parts; a product of the first with an integer below 2^9 is exact.
const float ln2_high = 0.693145751953125;
const float ln2_low = 1.42860682030941723e-6;

// exp for x in [-104, 88.8]; anything beyond is taken as the end of the range, NaN as any value.
vec4 exp_bounded(vec4 x) {
  x = clamp(x, -104.0, 88.8);
  vec4 k = floor(x * 1.44269504088896341 + 0.5);
  // Exact only if evaluated as written.
  precise vec4 r = x - k * ln2_high;
  r = r - k * ln2_low;
  vec4 series = r * 0.0013813145256597872 + 0.008369418829638726;
  series = series * r + 0.04166845676949187;
  series = series * r + 0.16666514791500261;
  series = series * r + 0.4999999305083573;
  series = series * (r * r) + r + 1.0;
  // In two factors, as 2^k itself may be past the range of floats where the product is not.
  ivec4 whole = ivec4(k);
  ivec4 part = whole >> 1;
  return series * intBitsToFloat((part + 127) << 23) * intBitsToFloat((whole - part + 127) << 23);
}

vec4 safe_exp(vec4 x) {
  vec4 result = mix(exp_bounded(x), vec4(BRONTES_INFINITY), greaterThan(x, vec4(88.72284)));
  result = mix(result, vec4(0.0), lessThan(x, vec4(-104.0)));
  return mix(result, x, is_nan(x));
}

vec4 safe_log(vec4 x) {
  uvec4 bits = floatBitsToUint(x);
  // A denormal is an integer times 2^-149; reading its bits works where arithmetic would flush it.
  bvec4 denormal = lessThan(bits, uvec4(0x00800000u));
  uvec4 scaled = mix(bits, floatBitsToUint(vec4(bits)), denormal);
  // x = 2^k * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
  ivec4 exponent = ivec4(scaled - 0x3f3504f3u) >> 23;
  vec4 f = uintBitsToFloat(scaled - (uvec4(exponent) << 23)) - 1.0;
  vec4 k = vec4(exponent + mix(ivec4(0), ivec4(-149), denormal));
  // log(1 + f) = f - f^2/2 + s * (f^2/2 + series(s^2)) with s = f / (2 + f).
  vec4 s = f / (2.0 + f);
  vec4 z = s * s;
  vec4 series = z * ((0.29871727735489156 * z + 0.39977541580224796) * z + 0.6666677638151898);
  vec4 half_square = 0.5 * f * f;
  precise vec4 result = k * ln2_high + (f - (half_square - (s * (half_square + series) + k * ln2_low)));
  result = mix(result, vec4(-BRONTES_INFINITY), equal(bits << 1, uvec4(0u)));
  result = mix(result, x, greaterThanEqual(bits & 0x7fffffffu, uvec4(0x7f800000u)));
  return mix(result, vec4(BRONTES_NAN), greaterThan(bits, uvec4(0x80000000u)));
}

vec4 safe_sqrt(vec4 x) {
  uvec4 bits = floatBitsToUint(x);
  // As in safe_log: a denormal is an integer times 2^-149.
  bvec4 denormal = lessThan(bits, uvec4(0x00800000u));
  vec4 scaled = mix(abs(x), vec4(bits << 1), denormal);
  vec4 result = sqrt(scaled) * mix(vec4(1.0), vec4(2.6469779601696886e-23), denormal);
  result = mix(result, x, greaterThanEqual(bits & 0x7fffffffu, uvec4(0x7f800000u)));
  result = mix(result, vec4(BRONTES_NAN), greaterThan(bits, uvec4(0x80000000u)));
  return mix(result, x, equal(bits << 1, uvec4(0u)));
}

// Negative numbers, -0 and -Inf by their bits, so that NaN of either sign stays.
vec4 relu(vec4 x) { return mix(x, vec4(0.0), lessThanEqual(floatBitsToInt(x), ivec4(0xff800000))); }

// For any x but NaN.
vec4 sigmoid_number(vec4 x) {
  vec4 e = exp_bounded(-abs(x));
  vec4 s = 1.0 / (1.0 + e);
  return mix(s, e * s, lessThan(x, vec4(0.0)));
}

vec4 sigmoid(vec4 x) { return mix(sigmoid_number(x), x, is_nan(x)); }

vec4 swish(vec4 x) {
  // Past -104 the sigmoid is 0, and so is the limit; -Inf * 0 would not be.
  vec4 result = mix(x * sigmoid_number(x), vec4(0.0), lessThan(x, vec4(-104.0)));
  return mix(result, x, is_nan(x));
}

vec4 safe_tanh(vec4 x) {
  vec4 magnitude = min(abs(x), 10.0);
  vec4 large = 1.0 - 2.0 / (exp_bounded(2.0 * magnitude) + 1.0);
  vec4 z = magnitude * magnitude;
  vec4 series = -0.00571704341384934 * z + 0.020650585735432388;
  series = series * z - 0.053743497575264566;
  series = series * z + 0.13331491280777655;
  series = series * z - 0.33333283925084856;
  vec4 small = series * (z * magnitude) + magnitude;
  vec4 result = mix(large, small, lessThan(magnitude, vec4(0.625)));
  // The sign bit also gives tanh(-0) = -0.
  result = uintBitsToFloat(floatBitsToUint(result) | (floatBitsToUint(x) & 0x80000000u));
  return mix(result, x, is_nan(x));
}

// x * P(X <= x) for a standard normal X, which is relu(x) - t * Q(t) with t = |x| and the upper tail
// Q(t) = erfc(t / sqrt(2)) / 2. Q(t) * exp(t^2 / 2) is smooth and a polynomial in 1 / (1 + 0.3 t),
// fitted with 5.8e-8 relative error for t up to 14.5; beyond, t * Q(t) underflows.
vec4 gelu(vec4 x) {
  vec4 t = min(abs(x), 15.0);
  vec4 s = 1.0 / (1.0 + 0.3 * t);
  vec4 ratio = 0.038407343970554016 * s - 0.16930724495202978;
  ratio = ratio * s + 0.22895137288692669;
  ratio = ratio * s - 0.07683924350736229;
  ratio = ratio * s + 0.14276501666132388;
  ratio = ratio * s + 0.09458596068846324;
  ratio = ratio * s + 0.12194524127910125;
  ratio = ratio * s + 0.11948420979461426;
  ratio = ratio * s + 7.372255837429525e-06;
  vec4 result = max(x, 0.0) - t * (exp_bounded(-0.5 * t * t) * ratio);
  return mix(result, x, is_nan(x));
}

// 0.5 * x * (1 + tanh(u)) is x * sigmoid(2 u), with u = sqrt(2 / pi) * (x + 0.044715 * x^3).
vec4 gelu_tanh(vec4 x) {
  vec4 t = clamp(x, -15.0, 15.0);
  vec4 share = sigmoid_number(t * (1.5957691216057308 + 0.07135481627260025 * (t * t)));
  vec4 result = mix(x, t, lessThan(x, t)) * share;
  return mix(result, x, is_nan(x));
}

#endif
