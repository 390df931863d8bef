// IEEE 754 binary16 by integers and exact products. GLSL's own conversions may flush denormals and round as they like,
// and where there is 16-bit arithmetic there need not be 16-bit memory.
#ifndef BRONTES_HALVES_GLSL
#define BRONTES_HALVES_GLSL

// The halves that the lower bits of `bits` are, exactly. A denormal half is a normal float: the product meets none that
// a device might flush.
vec4 halves_from_bits(uvec4 bits) {
  uvec4 magnitude = bits & 0x7fffu;
  uvec4 normal = (magnitude << 13) + (112u << 23);
  uvec4 small = floatBitsToUint(vec4(magnitude) * 5.9604644775390625e-8);  // 2^-24
  uvec4 special = magnitude << 13 | 0x7f800000u;
  uvec4 number = mix(normal, small, lessThan(magnitude, uvec4(0x400u)));
  number = mix(number, special, greaterThanEqual(magnitude, uvec4(0x7c00u)));
  return uintBitsToFloat(number | (bits & 0x8000u) << 16);
}

// The four halves of two words.
vec4 halves_of(uvec2 words) { return halves_from_bits(uvec4(words.x, words.x >> 16, words.y, words.y >> 16)); }

// Half i of the halves that `word` holds two of.
float half_of(uint word, uint i) { return halves_from_bits(uvec4(word >> (i % 2u * 16u))).x; }

// The bits of numbers that f16 has. NaN keeps the upper bits of its payload.
uvec4 half_bits(vec4 x) {
  uvec4 bits = floatBitsToUint(x);
  uvec4 magnitude = bits & 0x7fffffffu;
  uvec4 normal = (magnitude >> 13) - (112u << 10);
  uvec4 small = uvec4(uintBitsToFloat(min(magnitude, uvec4(0x38800000u))) * 16777216.0);  // in units of 2^-24
  uvec4 special = 0x7c00u | (magnitude >> 13 & 0x3ffu);
  uvec4 number = mix(normal, small, lessThan(magnitude, uvec4(0x38800000u)));
  number = mix(number, special, greaterThanEqual(magnitude, uvec4(0x7f800000u)));
  return number | (bits >> 16 & 0x8000u);
}

// As they lie in two words.
uvec2 packed_halves(vec4 x) {
  uvec4 halves = half_bits(x);
  return halves.xz | halves.yw << 16;
}

// The nearest numbers that f16 has, ties to even: denormals among them, infinity from 65520 on. NaN becomes a quiet one.
vec4 rounded_to_half(vec4 x) {
  uvec4 bits = floatBitsToUint(x);
  uvec4 magnitude = bits & 0x7fffffffu;
  uvec4 normal = (magnitude + 0xfffu + (magnitude >> 13 & 1u)) & 0xffffe000u;
  normal = mix(normal, uvec4(0x7f800000u), greaterThanEqual(normal, uvec4(0x47800000u)));
  // In units of 2^-24, which are those of denormal halves. Both products are exact.
  vec4 units = roundEven(uintBitsToFloat(min(magnitude, uvec4(0x38800000u))) * 16777216.0);
  uvec4 small = floatBitsToUint(units * 5.9604644775390625e-8);
  uvec4 number = mix(normal, small, lessThan(magnitude, uvec4(0x38800000u)));
  number = mix(number, 0x7fc00000u | (magnitude & 0x7fe000u), greaterThan(magnitude, uvec4(0x7f800000u)));
  return uintBitsToFloat(number | (bits & 0x80000000u));
}

#endif
