// C[m,n] = alpha * A[m,k] x B[k,n] for CPU drivers, where lanes are SIMD lanes: no shared memory and no
// barriers. A subgroup computes a tile of C. Its lanes run along n, `vectors` vec4s each; the elements
// of A, which all lanes need, are loaded a subgroup's worth at a time and broadcast.
#version 450
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_basic : require

#include "grid.glsl"
#include "matmul.glsl"

layout(local_size_x = 64, local_size_x_id = 0) in;
// plan::matmul_vectorized: bit 1 if n % 4 == 0.
layout(constant_id = 1) const uint vectorized = 0;
// The tile: up to 8 rows by up to 2 vec4s per lane.
layout(constant_id = 2) const uint rows = 4;
layout(constant_id = 3) const uint vectors = 1;
// Elements of each row of A loaded at once: 4 or 8, and no more than a subgroup has lanes.
layout(constant_id = 4) const uint depth = 4;
// Tiles per workgroup: one for each subgroup, of the size the device says it has.
layout(constant_id = 5) const uint tiles = 8;

#define FOR_ROWS(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define FOR_VECTORS(DO, r) DO(r, 0) DO(r, 1)

const bool aligned = (vectorized & 2u) != 0u;

void compute(uint tile) {
  uint lanes = gl_SubgroupSize;
  uint lane = gl_SubgroupInvocationID;
  uint tiles_n = (params.n + 4u * lanes * vectors - 1u) / (4u * lanes * vectors);
  uint first_row = tile / tiles_n * rows;
  if (first_row >= params.m) return;

  // Rows past the end repeat the last one, columns past the end the last four; neither goes anywhere.
  uint a_row[8];
  uint column[2];
  uint at[2];
  vec4 sum[16];
#define BEGIN_ROW(r) a_row[r] = min(first_row + r, params.m - 1u) * params.k;
#define BEGIN_VECTOR(r, v)                                                        \
  column[v] = (tile % tiles_n * vectors + v) * 4u * lanes + 4u * lane;            \
  at[v] = min(column[v], aligned ? params.n - 4u : params.n - 1u);
#define BEGIN_SUM(r, v) sum[r * 2 + v] = vec4(0.0);
#define BEGIN_SUMS(r) FOR_VECTORS(BEGIN_SUM, r)
  FOR_ROWS(BEGIN_ROW)
  FOR_VECTORS(BEGIN_VECTOR, 0)
  FOR_ROWS(BEGIN_SUMS)

  uint end = params.k_begin + params.k_count;
  float x[8];
  vec4 w[2];
#define LOAD_VECTOR(k, v) \
  if (v < vectors) w[v] = aligned ? load4(b, (k * params.n + at[v]) / 4u) : loadu4(b, k * params.n + at[v], k * params.n + params.n);
#define ADD(r, v) \
  if (r < rows && v < vectors) sum[r * 2 + v] += factor * w[v];
#define ADD_ROW(r)                                   \
  if (r < rows) {                                    \
    float factor = subgroupBroadcast(x[r], i);       \
    FOR_VECTORS(ADD, r)                              \
  }
#define LOAD_A(r) \
  if (r < rows) x[r] = load1(a, a_row[r] + min(k + lane, end - 1u));
  // Broadcasts want constant lanes.
#define ONE(lane_i)                          \
  {                                          \
    const uint i = lane_i;                   \
    uint row_k = k + i;                      \
    FOR_VECTORS(LOAD_VECTOR_K, 0)            \
    FOR_ROWS(ADD_ROW)                        \
  }
#define LOAD_VECTOR_K(unused, v) LOAD_VECTOR(row_k, v)
  uint k = params.k_begin;
  for (; k + depth <= end; k += depth) {
    FOR_ROWS(LOAD_A)
    ONE(0) ONE(1) ONE(2) ONE(3)
    if (depth > 4u) { ONE(4) ONE(5) ONE(6) ONE(7) }
  }
  [[dont_unroll]] for (; k < end; ++k) {
    FOR_ROWS(LOAD_A)
    ONE(0)
  }

#define FINISH(r, v)                                                                   \
  if (r < rows && v < vectors && first_row + r < params.m) {                           \
    uint i = (first_row + r) * params.n + column[v];                                   \
    if (aligned) {                                                                     \
      if (column[v] < params.n) put4(i / 4u, sum[r * 2 + v]);                          \
    } else {                                                                           \
      if (column[v] < params.n) put1(i, sum[r * 2 + v].x);                             \
      if (column[v] + 1u < params.n) put1(i + 1u, sum[r * 2 + v].y);                   \
      if (column[v] + 2u < params.n) put1(i + 2u, sum[r * 2 + v].z);                   \
      if (column[v] + 3u < params.n) put1(i + 3u, sum[r * 2 + v].w);                   \
    }                                                                                  \
  }
#define FINISH_ROW(r) FOR_VECTORS(FINISH, r)
  FOR_ROWS(FINISH_ROW)
}

void main() {
  uint first = group_index() * tiles;
  for (uint tile = gl_SubgroupID; tile < tiles; tile += gl_NumSubgroups) compute(first + tile);
}
