// Rows of W[n,k] in any storage type, as lib/weights/device_layout.hpp lays them out. A kernel takes
// weight_chunk elements at a time: a vec4 of words from weight_words(), and from these one vec4 of
// floats after the other. Before it is included there must be the slot b and, among `params`, k and n_count.
#ifndef BRONTES_WEIGHTS_GLSL
#define BRONTES_WEIGHTS_GLSL

// DType of B; other than f32 only where B is W[n,k].
layout(constant_id = 40) const uint b_type = 0;

const uint type_f32 = 0;
const uint type_f16 = 1;
const uint type_bf16 = 2;
const uint type_q8_0 = 3;
const uint type_q4_0 = 4;

const bool b_quantized = b_type >= type_q8_0;
// Elements in a vec4 of words.
const uint weight_chunk = b_type == type_f32 ? 4u : b_type == type_q8_0 ? 16u : b_type == type_q4_0 ? 32u : 8u;

uint weight_row_words() {
  uint chunks = (params.k + weight_chunk - 1u) / weight_chunk;
  return b_type == type_f32 ? params.k : chunks * 4u;
}

// Elements k .. k + weight_chunk - 1 of a row; k is a multiple of that. Not for f32.
uvec4 weight_words(uint row, uint k) { return loadw4(b, (row * weight_row_words() + k / (weight_chunk / 4u)) / 4u); }

// The low half of a word, which must be finite, as scales are. By integers: unpackHalf2x16 may give 0 for a half below the
// smallest normal one, and with it would go a whole block of weights.
float half_bits_to_float(uint bits) {
  uint magnitude = bits & 0x7fffu;
  uint normal = (magnitude << 13) + (112u << 23);
  uint small = floatBitsToUint(float(magnitude) * 5.9604644775390625e-8);  // 2^-24
  return uintBitsToFloat((magnitude < 0x400u ? small : normal) | (bits & 0x8000u) << 16);
}

// What the elements of the block that k is in are multiplied by, and the word that has it. Only for quantized types.
uint weight_scale_word(uint row, uint k) {
  uint elements = params.n_count * weight_row_words();
  uint first = (elements + 63u) / 64u * 64u;  // 256 bytes
  uint row_words = (params.k / 32u + 1u) / 2u;
  return loadw1(b, first + row * row_words + k / 32u / 2u);
}
float weight_scale(uint row, uint k) { return half_bits_to_float(weight_scale_word(row, k) >> (k / 32u % 2u * 16u)); }

// Elements 4s .. 4s + 3 of a chunk, without their scale.
vec4 weight_decode(uvec4 words, uint s) {
  if (b_type == type_q8_0) {
    int word = int(words[s]);
    return vec4(ivec4(word << 24, word << 16, word << 8, word) >> 24);
  }
  if (b_type == type_q4_0) {
    uint word = words[s / 2u] >> (s % 2u * 16u);
    return vec4(uvec4(word, word >> 4, word >> 8, word >> 12) & 15u) - 8.0;
  }
  uvec2 pair = s % 2u == 0u ? words.xy : words.zw;
  if (b_type == type_bf16) return uintBitsToFloat(uvec4(pair.x << 16, pair.x & 0xffff0000u, pair.y << 16, pair.y & 0xffff0000u));
  return vec4(unpackHalf2x16(pair.x), unpackHalf2x16(pair.y));
}

// Elements 4s .. 4s + 3 of a chunk of quantized weights, each divided by its scale and by weight_digit: signed bytes, of
// which GPUs make floats at once. Nibbles go to the upper half of a byte.
const float weight_digit = b_type == type_q4_0 ? 0.0625 : 1.0;

vec4 weight_digits(uvec4 words, uint s) {
  if (b_type == type_q8_0) return weight_decode(words, s);
  uint word = words[s / 2u] ^ 0x88888888u;  // from 8 more to two's complement
  int even = int(word << 4 & 0xf0f0f0f0u);
  int odd = int(word & 0xf0f0f0f0u);
  if (s % 2u == 0u) return vec4(ivec4(even << 24, odd << 24, even << 16, odd << 16) >> 24);
  return vec4(ivec4(even << 8, odd << 8, even, odd) >> 24);
}

// One element: slow, for kernels that do not care.
float weight1(uint row, uint k) {
  if (b_type == type_f32) return load1(b, row * params.k + k);
  float value = weight_decode(weight_words(row, k / weight_chunk * weight_chunk), k % weight_chunk / 4u)[k % 4u];
  return b_quantized ? value * weight_scale(row, k) : value;
}

#endif
