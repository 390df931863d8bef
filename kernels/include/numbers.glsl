// NaN and infinity by their bits, which no fast-math setting of a driver can see through, and the
// operations that GLSL leaves undefined for NaN.
#ifndef BRONTES_NUMBERS_GLSL
#define BRONTES_NUMBERS_GLSL

#define BRONTES_INFINITY uintBitsToFloat(0x7f800000u)
#define BRONTES_NAN uintBitsToFloat(0x7fc00000u)

bool is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }
bvec4 is_nan(vec4 x) { return greaterThan(floatBitsToUint(x) & 0x7fffffffu, uvec4(0x7f800000u)); }

bool is_inf(float x) { return (floatBitsToUint(x) & 0x7fffffffu) == 0x7f800000u; }
bvec4 is_inf(vec4 x) { return equal(floatBitsToUint(x) & 0x7fffffffu, uvec4(0x7f800000u)); }

// A NaN on either side is the result.
float nan_min(float x, float y) { return is_nan(x) ? x : is_nan(y) ? y : min(x, y); }
float nan_max(float x, float y) { return is_nan(x) ? x : is_nan(y) ? y : max(x, y); }
vec4 nan_min(vec4 x, vec4 y) { return mix(mix(min(x, y), y, is_nan(y)), x, is_nan(x)); }
vec4 nan_max(vec4 x, vec4 y) { return mix(mix(max(x, y), y, is_nan(y)), x, is_nan(x)); }

#endif
