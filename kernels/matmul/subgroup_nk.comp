// C[m,n] = alpha * A[m,k] x W[n,k]^T for CPU drivers, where lanes are SIMD lanes: no shared memory and no
// barriers. A subgroup computes a tile of C. Its lanes run along k, a vec4 each, so that every load is
// contiguous; each lane adds up its share of every element, and the shares meet once, at the end.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_basic : require

#include "grid.glsl"
#include "matmul.glsl"

layout(local_size_x = 64, local_size_x_id = 0) in;
// plan::matmul_vectorized: bit 0 if k % 4 == 0.
layout(constant_id = 1) const uint vectorized = 0;
// The tile: up to 8 rows of A by up to 8 rows of W, and no more of W than a subgroup has lanes.
layout(constant_id = 2) const uint rows = 1;
layout(constant_id = 3) const uint columns = 8;
// Tiles per workgroup: one for each subgroup, of the size the device says it has.
layout(constant_id = 4) const uint tiles = 8;

#define FOR_ROWS(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define FOR_COLUMNS(DO, r) DO(r, 0) DO(r, 1) DO(r, 2) DO(r, 3) DO(r, 4) DO(r, 5) DO(r, 6) DO(r, 7)

void compute(uint tile) {
  uint tiles_n = (params.n + columns - 1u) / columns;
  uint first_row = tile / tiles_n * rows;
  uint first_column = tile % tiles_n * columns;
  if (first_row >= params.m) return;

  // Rows past the end repeat the last one; their sums go nowhere.
  uint a_row[8];
  uint w_row[8];
  float sum[64];
#define BEGIN_ROW(r) a_row[r] = min(first_row + r, params.m - 1u) * params.k;
#define BEGIN_COLUMN(r, c) w_row[c] = min(first_column + c, params.n - 1u) * params.k;
#define BEGIN_SUM(r, c) sum[r * 8 + c] = 0.0;
#define BEGIN_SUMS(r) FOR_COLUMNS(BEGIN_SUM, r)
  FOR_ROWS(BEGIN_ROW)
  FOR_COLUMNS(BEGIN_COLUMN, 0)
  FOR_ROWS(BEGIN_SUMS)

  vec4 x[8];
  vec4 w;
#define ADD(r, c) \
  if (r < rows) sum[r * 8 + c] += dot(x[r], w);

  uint end = params.k_begin + params.k_count;
  uint step = 4u * gl_SubgroupSize;
  uint k = params.k_begin + 4u * gl_SubgroupInvocationID;
  if ((vectorized & 1u) != 0u) {
#define LOAD_ROW(r) \
  if (r < rows) x[r] = load4(a, (a_row[r] + k) / 4u);
#define ADD_COLUMN(unused, c)                   \
  if (c < columns) {                            \
    w = load4(b, (w_row[c] + k) / 4u);          \
    ADD(0, c) ADD(1, c) ADD(2, c) ADD(3, c) ADD(4, c) ADD(5, c) ADD(6, c) ADD(7, c) \
  }
    for (; k < end; k += step) {
      FOR_ROWS(LOAD_ROW)
      FOR_COLUMNS(ADD_COLUMN, 0)
    }
  } else {
    // Zero on both sides past the end: an infinity there times zero would be NaN.
#define LOAD_ROW_UNALIGNED(r) \
  if (r < rows) x[r] = mix(vec4(0.0), loadu4(a, a_row[r] + k, a_row[r] + end), inside);
#define ADD_COLUMN_UNALIGNED(unused, c)                         \
  if (c < columns) {                                            \
    w = mix(vec4(0.0), loadu4(b, w_row[c] + k, w_row[c] + end), inside); \
    ADD(0, c) ADD(1, c) ADD(2, c) ADD(3, c) ADD(4, c) ADD(5, c) ADD(6, c) ADD(7, c) \
  }
    for (; k < end; k += step) {
      bvec4 inside = lessThan(k + uvec4(0u, 1u, 2u, 3u), uvec4(end));
      FOR_ROWS(LOAD_ROW_UNALIGNED)
      FOR_COLUMNS(ADD_COLUMN_UNALIGNED, 0)
    }
  }

  // Lane c writes column c.
  uint lane = gl_SubgroupInvocationID;
#define MEET(r, c)                                \
  if (c < columns) {                              \
    float total = subgroupAdd(sum[r * 8 + c]);    \
    mine = lane == c ? total : mine;              \
  }
#define FINISH(r)                                                                            \
  if (r < rows && first_row + r < params.m) {                                                \
    float mine = 0.0;                                                                        \
    FOR_COLUMNS(MEET, r)                                                                     \
    if (lane < columns && first_column + lane < params.n)                                    \
      put1((first_row + r) * params.n + first_column + lane, mine);                          \
  }
  FOR_ROWS(FINISH)
}

void main() {
  uint first = group_index() * tiles;
  for (uint tile = gl_SubgroupID; tile < tiles; tile += gl_NumSubgroups) compute(first + tile);
}
