// The only way kernels reach memory. A kernel declares its slots
//
//   BRONTES_INPUT(slot, name)    read only
//   BRONTES_WORDS(slot, name)    the same, and also seen as words
//   BRONTES_OUTPUT(slot, name)   write only
//   BRONTES_INOUT(slot, name)    both
//
// and uses load1(name, i), load4(name, i4), store1(name, i, value), store4(name, i4, value), where i
// counts floats and i4 counts vec4s, and loadu4(name, i, end) for the four floats from i < end on, where
// something valid stands in for those from `end` on. loadw1(name, i) and loadw4(name, i4) give inputs that are
// declared with BRONTES_WORDS as raw 32-bit words instead. Nothing else about a slot is known to a kernel, so that it can be
// compiled for several access modes, which decide its speed on CPU drivers:
//
//   storage   every slot is a storage buffer. What GPUs want.
//   texel     inputs are RGBA32F uniform texel buffers. lavapipe of Mesa 22 reads these 2 to 4 times faster.
//   pointer   slots are addresses in a table, one uvec2 each. lavapipe of Mesa 25 makes gathers and scatters of these,
//             at a price per element, so that a vec4 goes as two 64-bit words. The fastest there but for panels.
//
// Slots of which half_slots has the bit hold f16, two to a word. Their elements become f32 as they are loaded, exactly,
// and numbers that are stored there must be such as f16 has (halves.glsl).
//
// Inputs are `restrict`. An output may still share memory with an input if the same invocation reads
// every element before it writes it and no other invocation touches that element.
#ifndef BRONTES_MEMORY_GLSL
#define BRONTES_MEMORY_GLSL

#include "halves.glsl"

// Bit s: slot s holds f16.
layout(constant_id = 46) const uint half_slots = 0;
#define BRONTES_HALF(slot) ((half_slots >> (slot) & 1u) != 0u)

#define load1(name, i) name##_load1(i)
#define load4(name, i4) name##_load4(i4)
#define loadu4(name, i, end) name##_loadu4(i, end)
#define loadw1(name, i) name##_loadw1(i)
#define loadw4(name, i4) name##_loadw4(i4)
#define store1(name, i, value) name##_store1(i, value)
#define store4(name, i4, value) name##_store4(i4, value)

#define BRONTES_UNALIGNED(name)                                                                       \
  vec4 name##_loadu4(uint i, uint end) {                                                              \
    return vec4(name##_load1(i), name##_load1(min(i + 1u, end - 1u)), name##_load1(min(i + 2u, end - 1u)), \
                name##_load1(min(i + 3u, end - 1u)));                                                 \
  }

// One half of a word; another invocation may be writing the other one. Each changes its own bits only, so that it does
// not matter in which order they do.
#define BRONTES_STORE_HALF(word, i, value)                   \
  uint shift = (i) % 2u * 16u;                               \
  atomicAnd(word, ~(0xffffu << shift));                      \
  atomicOr(word, half_bits(vec4(value)).x << shift);

#if defined(BRONTES_POINTER)

#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

layout(set = 0, binding = 0, std140) uniform BrontesAddresses { uvec4 brontes_addresses[4]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer BrontesScalars { float at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer BrontesWords { uint at[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer BrontesLongs { uint64_t at[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer BrontesPairs { u64vec2 at[]; };

uvec4 brontes_words(u64vec2 pairs) { return uvec4(unpackUint2x32(pairs.x), unpackUint2x32(pairs.y)); }
u64vec2 brontes_pairs(uvec4 words) { return u64vec2(packUint2x32(words.xy), packUint2x32(words.zw)); }

#define BRONTES_ADDRESS(slot) \
  ((slot) % 2 == 0 ? brontes_addresses[(slot) / 2].xy : brontes_addresses[(slot) / 2].zw)
#define BRONTES_LOADS(slot, name)                                                            \
  float name##_load1(uint i) {                                                               \
    if (BRONTES_HALF(slot)) return half_of(BrontesWords(BRONTES_ADDRESS(slot)).at[i / 2u], i); \
    return BrontesScalars(BRONTES_ADDRESS(slot)).at[i];                                      \
  }                                                                                          \
  uvec4 name##_words4(uint i4) { return brontes_words(BrontesPairs(BRONTES_ADDRESS(slot)).at[i4]); } \
  vec4 name##_load4(uint i4) {                                                               \
    if (BRONTES_HALF(slot)) return halves_of(unpackUint2x32(BrontesLongs(BRONTES_ADDRESS(slot)).at[i4])); \
    return uintBitsToFloat(name##_words4(i4));                                               \
  }                                                                                          \
  BRONTES_UNALIGNED(name)
#define BRONTES_STORES(slot, name)                                                           \
  void name##_store1(uint i, float value) {                                                  \
    if (BRONTES_HALF(slot)) {                                                                \
      BRONTES_STORE_HALF(BrontesWords(BRONTES_ADDRESS(slot)).at[i / 2u], i, value)           \
    } else {                                                                                 \
      BrontesScalars(BRONTES_ADDRESS(slot)).at[i] = value;                                   \
    }                                                                                        \
  }                                                                                          \
  void name##_store4(uint i4, vec4 value) {                                                  \
    if (BRONTES_HALF(slot)) {                                                                \
      BrontesLongs(BRONTES_ADDRESS(slot)).at[i4] = packUint2x32(packed_halves(value));       \
    } else {                                                                                 \
      BrontesPairs(BRONTES_ADDRESS(slot)).at[i4] = brontes_pairs(floatBitsToUint(value));    \
    }                                                                                        \
  }

#define BRONTES_INPUT(slot, name) BRONTES_LOADS(slot, name)
#define BRONTES_WORDS(slot, name)                                                            \
  BRONTES_LOADS(slot, name)                                                                  \
  uint name##_loadw1(uint i) { return BrontesWords(BRONTES_ADDRESS(slot)).at[i]; }           \
  uvec4 name##_loadw4(uint i4) { return name##_words4(i4); }
#define BRONTES_OUTPUT(slot, name) BRONTES_STORES(slot, name)
#define BRONTES_INOUT(slot, name) BRONTES_LOADS(slot, name) BRONTES_STORES(slot, name)

#else

// Storage buffers, each slot seen both as floats and as vec4s, and as words where it may hold f16. kernelgen takes the
// slot's name from the names of blocks and texel buffers, and its access from the qualifiers.
#define BRONTES_SLOT(slot, name, qualifiers)                                                                   \
  layout(set = 0, binding = slot, std430) qualifiers buffer name##_scalars_view { float name##_scalars[]; };   \
  layout(set = 0, binding = slot, std430) qualifiers buffer name##_vectors_view { vec4 name##_vectors[]; };
#define BRONTES_LOADS(slot, name)                                                                                  \
  layout(set = 0, binding = slot, std430) restrict readonly buffer name##_pairs_view { uvec2 name##_pairs[]; };    \
  float name##_load1(uint i) {                                                                                     \
    if (BRONTES_HALF(slot)) return half_of(floatBitsToUint(name##_scalars[i / 2u]), i);                            \
    return name##_scalars[i];                                                                                      \
  }                                                                                                                \
  vec4 name##_load4(uint i4) {                                                                                     \
    if (BRONTES_HALF(slot)) return halves_of(name##_pairs[i4]);                                                    \
    return name##_vectors[i4];                                                                                     \
  }                                                                                                                \
  BRONTES_UNALIGNED(name)
// What is updated is not qualified: to Vulkan it is read, though no kernel sees what was there.
#define BRONTES_STORES(slot, name)                                                                                 \
  layout(set = 0, binding = slot, std430) writeonly buffer name##_stores_view { uvec2 name##_stores[]; };    \
  layout(set = 0, binding = slot, std430) buffer name##_updates_view { uint name##_updates[]; };                   \
  void name##_store1(uint i, float value) {                                                                        \
    if (BRONTES_HALF(slot)) {                                                                                      \
      BRONTES_STORE_HALF(name##_updates[i / 2u], i, value)                                                         \
    } else {                                                                                                       \
      name##_scalars[i] = value;                                                                                   \
    }                                                                                                              \
  }                                                                                                                \
  void name##_store4(uint i4, vec4 value) {                                                                        \
    if (BRONTES_HALF(slot)) {                                                                                      \
      name##_stores[i4] = packed_halves(value);                                                               \
    } else {                                                                                                       \
      name##_vectors[i4] = value;                                                                                  \
    }                                                                                                              \
  }

#if defined(BRONTES_TEXEL)
#extension GL_EXT_samplerless_texture_functions : require
#define BRONTES_INPUT(slot, name)                                                                  \
  layout(set = 0, binding = slot) uniform textureBuffer name##_texels_view;                        \
  float name##_load1(uint i) {                                                                     \
    if (BRONTES_HALF(slot)) {                                                                      \
      return half_of(floatBitsToUint(texelFetch(name##_texels_view, int(i / 8u))[i / 2u % 4u]), i); \
    }                                                                                              \
    return texelFetch(name##_texels_view, int(i / 4u))[i % 4u];                                    \
  }                                                                                                \
  vec4 name##_load4(uint i4) {                                                                     \
    if (BRONTES_HALF(slot)) {                                                                      \
      uvec4 words = floatBitsToUint(texelFetch(name##_texels_view, int(i4 / 2u)));                 \
      return halves_of(i4 % 2u == 0u ? words.xy : words.zw);                                       \
    }                                                                                              \
    return texelFetch(name##_texels_view, int(i4));                                                \
  }                                                                                                \
  vec4 name##_loadu4(uint i, uint end) {                                                           \
    vec4 low = name##_load4(i / 4u);                                                               \
    vec4 high = name##_load4(min(i / 4u + 1u, (end - 1u) / 4u));                                   \
    uint shift = i % 4u;                                                                           \
    vec4 by2 = shift >= 2u ? vec4(low.zw, high.xy) : low;                                          \
    float next = shift >= 2u ? high.z : high.x;                                                    \
    return shift % 2u != 0u ? vec4(by2.yzw, next) : by2;                                           \
  }
// Texels are copied bit by bit.
#define BRONTES_WORDS(slot, name)                                                                  \
  BRONTES_INPUT(slot, name)                                                                        \
  uint name##_loadw1(uint i) { return floatBitsToUint(name##_load1(i)); }                          \
  uvec4 name##_loadw4(uint i4) { return floatBitsToUint(name##_load4(i4)); }
#else
#define BRONTES_INPUT(slot, name) BRONTES_SLOT(slot, name, restrict readonly) BRONTES_LOADS(slot, name)
#define BRONTES_WORDS(slot, name)                                                                                  \
  BRONTES_INPUT(slot, name)                                                                                        \
  layout(set = 0, binding = slot, std430) restrict readonly buffer name##_words1_view { uint name##_words1[]; };   \
  layout(set = 0, binding = slot, std430) restrict readonly buffer name##_words4_view { uvec4 name##_words4[]; };  \
  uint name##_loadw1(uint i) { return name##_words1[i]; }                                                          \
  uvec4 name##_loadw4(uint i4) { return name##_words4[i4]; }
#endif
#define BRONTES_OUTPUT(slot, name) BRONTES_SLOT(slot, name, writeonly) BRONTES_STORES(slot, name)
#define BRONTES_INOUT(slot, name) BRONTES_SLOT(slot, name, ) BRONTES_LOADS(slot, name) BRONTES_STORES(slot, name)

#endif
#endif
