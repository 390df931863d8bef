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

// 1 where unpackHalf2x16 keeps halves below the smallest normal one: elsewhere it may give 0, and with a scale would go a
// whole block of weights.
layout(constant_id = 45) const uint half_denormals = 0;

vec2 weight_halves(uint word) {
  if (half_denormals != 0u) return unpackHalf2x16(word);
  return halves_of(uvec2(word, 0u)).xy;
}

// Scales, which quantized types have: those of eight rows for the same block of 32 are a vec4 of words, and these lie in
// the order of the blocks.
uint weight_scales_at(uint row, uint block) {
  uint elements = params.n_count * weight_row_words();
  return (elements + 63u) / 64u * 16u + row / 8u * (params.k / 32u) + block;  // from a multiple of 256 bytes on
}

// The word that has the scale of the block that k is in, and, in its low half or its high one, the scale itself.
uint weight_scale_word(uint row, uint k) { return loadw1(b, weight_scales_at(row, k / 32u) * 4u + row % 8u / 2u); }
float weight_scale_of(uint word, uint row) { return weight_halves(word >> row % 2u * 16u).x; }
float weight_scale(uint row, uint k) { return weight_scale_of(weight_scale_word(row, k), row); }

// Elements 4s .. 4s + 3 of a chunk, without their scale. Words of q4_0 have elements 4s .. 4s + 3 in the low halves of
// their bytes, and 16 further on those in the high ones.
vec4 weight_decode(uvec4 words, uint s) {
  if (b_type == type_q8_0) {
    int word = int(words[s]);
    return vec4(ivec4(word << 24, word << 16, word << 8, word) >> 24);
  }
  if (b_type == type_q4_0) {
    int word = int((words[s % 4u] ^ 0x88888888u) << (4u - s / 4u * 4u));  // from 8 more to two's complement
    return vec4(ivec4(word << 24, word << 16, word << 8, word) >> 28);
  }
  uvec2 pair = s % 2u == 0u ? words.xy : words.zw;
  if (b_type == type_bf16) return uintBitsToFloat(uvec4(pair.x << 16, pair.x & 0xffff0000u, pair.y << 16, pair.y & 0xffff0000u));
  return vec4(weight_halves(pair.x), weight_halves(pair.y));
}

// The low four of a word of quantized weights, or its high ones, which only q4_0 has, each divided by its scale and by
// weight_digit: signed bytes, of which GPUs make floats at once. Nibbles go to the upper half of a byte.
const float weight_digit = b_type == type_q4_0 ? 0.0625 : 1.0;

vec4 weight_digits(uint word, uint high) {
  int digits = int(word);
  if (b_type == type_q4_0) {
    word ^= 0x88888888u;  // from 8 more to two's complement
    digits = int((high == 0u ? word << 4 : word) & 0xf0f0f0f0u);
  }
  return vec4(ivec4(digits << 24, digits << 16, digits << 8, digits) >> 24);
}

// One element: slow, for kernels that do not care.
float weight1(uint row, uint k) {
  if (b_type == type_f32) return load1(b, row * params.k + k);
  float value = weight_decode(weight_words(row, k / weight_chunk * weight_chunk), k % weight_chunk / 4u)[k % 4u];
  return b_quantized ? value * weight_scale(row, k) : value;
}

#endif
