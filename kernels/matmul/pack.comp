// Lays a matrix out for panel.comp: rows of A[m,k] or W[n,k], or columns of B[k,n], in bands of `height` of
// them. Four of k are a vec4, and those of a band lie side by side:
//
//   vec4 (band * fours + k / 4) * height + i % height   for row or column i, where fours = matmul_fours(k)
//
// with zeros past the last row or column and past k. Weights of other types become f32. The matrices of a batch each have
// bands of their own, one after the other.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "grid.glsl"
#include "memory.glsl"

layout(push_constant, std430) uniform MatmulPackParams {
  uint k;
  uint n_count;  // rows, or columns of B[k,n]
  uint batch;    // matrices
} params;

BRONTES_WORDS(1, b)
BRONTES_OUTPUT(2, c)

const uint layout_nk = 1;

#include "panels.glsl"
#include "weights.glsl"

layout(local_size_x = 64, local_size_x_id = 0) in;
layout(constant_id = 0) const uint group_size = 64;
layout(constant_id = 1) const uint b_layout = 1;
// plan::matmul_vectorized: bit 0 if k % 4 == 0, bit 1 if n % 4 == 0.
layout(constant_id = 2) const uint vectorized = 0;
// For columns of B[k,n] a multiple of 4.
layout(constant_id = 3) const uint height = 8;
// 1 for several matrices.
layout(constant_id = 42) const uint batched = 0;

const bool aligned_k = (vectorized & 1u) != 0u;
const bool aligned_n = (vectorized & 2u) != 0u;

uint bands() { return (params.n_count + height - 1u) / height; }

uint place(uint i, uint four, uint z) {
  return ((z * bands() + i / height) * matmul_fours() + four) * height + i % height;
}

// Up to 32 of k of one row of matrix z.
void pack_row(uint id, uint z) {
  uint parts = (matmul_fours() + 7u) / 8u;
  // Neighbours in a band write side by side.
  uint i = id / (parts * height) * height + id % height;
  uint four = id / height % parts * 8u;
  uint to = place(i, four, z);
  uint row = z * params.n_count + min(i, params.n_count - 1u);
  bool outside = i >= params.n_count;
  uint row_end = (row + 1u) * params.k;
#define PACK(s)                                                                                       \
  if (four + s < matmul_fours()) {                                                                    \
    uint k = 4u * (four + s);                                                                         \
    vec4 w = vec4(0.0);                                                                               \
    if (b_type != type_f32) {                                                                         \
      uint at = min(k, (params.k - 1u) / 4u * 4u);                                                    \
      w = weight_decode(weight_words(row, at / weight_chunk * weight_chunk), at % weight_chunk / 4u); \
      if (b_quantized) w *= weight_scale(row, at);                                                    \
    } else if (aligned_k) {                                                                           \
      w = load4(b, (row * params.k + min(k, params.k - 4u)) / 4u);                                    \
    } else {                                                                                          \
      w = loadu4(b, min(row * params.k + k, row_end - 1u), row_end);                                  \
    }                                                                                                 \
    bvec4 inside = lessThan(k + uvec4(0u, 1u, 2u, 3u), uvec4(outside ? 0u : params.k));               \
    store4(c, to + s * height, mix(vec4(0.0), w, inside));                                            \
  }
  PACK(0u) PACK(1u) PACK(2u) PACK(3u) PACK(4u) PACK(5u) PACK(6u) PACK(7u)
}

// Four of k of four columns of matrix z.
void pack_columns(uint id, uint z) {
  uint across = bands() * (height / 4u);
  uint i = id % across * 4u;
  uint four = id / across;
  uint column = min(i, params.n_count - 1u);
  uint end = (z + 1u) * params.k * params.n_count;
  vec4 w[4];
#define LOAD(s)                                                                                         \
  {                                                                                                     \
    uint k = 4u * four + s;                                                                             \
    uint at = (z * params.k + min(k, params.k - 1u)) * params.n_count;                                  \
    w[s] = aligned_n ? load4(b, (at + min(i, params.n_count - 4u)) / 4u) : loadu4(b, at + column, end); \
    bvec4 inside = lessThan(i + uvec4(0u, 1u, 2u, 3u), uvec4(k < params.k ? params.n_count : 0u));      \
    w[s] = mix(vec4(0.0), w[s], inside);                                                                \
  }
  LOAD(0) LOAD(1) LOAD(2) LOAD(3)
  uint to = place(i, four, z);
  store4(c, to, vec4(w[0].x, w[1].x, w[2].x, w[3].x));
  store4(c, to + 1u, vec4(w[0].y, w[1].y, w[2].y, w[3].y));
  store4(c, to + 2u, vec4(w[0].z, w[1].z, w[2].z, w[3].z));
  store4(c, to + 3u, vec4(w[0].w, w[1].w, w[2].w, w[3].w));
}

void main() {
  uint id = group_index() * group_size + gl_LocalInvocationID.x;
  uint each = b_layout == layout_nk ? bands() * height * ((matmul_fours() + 7u) / 8u)
                                    : bands() * (height / 4u) * matmul_fours();
  uint z = 0u;
  if (batched != 0u) {
    z = id / each;
    id -= z * each;
  }
  if (batched != 0u ? z >= params.batch : id >= each) return;
  if (b_layout == layout_nk)
    pack_row(id, z);
  else
    pack_columns(id, z);
}
