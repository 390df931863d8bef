// C[m,n] = alpha * A[m,k] x B[k,n] for CPU drivers, where lanes are SIMD lanes: no shared memory and no
// barriers. A subgroup computes a tile of C. Its lanes run along n, `vectors` vec4s each; the elements
// of A, which all lanes need, are loaded by a few of them and broadcast.
#version 450
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_basic : require

#include "grid.glsl"
#include "matmul.glsl"
#include "tiles.glsl"

layout(local_size_x = 64, local_size_x_id = 0) in;
// plan::matmul_vectorized: bit 0 if k % 4 == 0, bit 1 if n % 4 == 0.
layout(constant_id = 1) const uint vectorized = 0;
// The tile: up to 8 rows by up to 2 vec4s per lane.
layout(constant_id = 2) const uint rows = 4;
layout(constant_id = 3) const uint vectors = 1;
// Elements of each row of A loaded at once, by four times fewer lanes: 8 or 16.
layout(constant_id = 4) const uint depth = 8;
// Tiles per workgroup: one for each subgroup, of the size the device says it has.
layout(constant_id = 5) const uint tiles = 8;

#define FOR_ROWS(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define FOR_VECTORS(DO, r) DO(r, 0) DO(r, 1)

const bool aligned_k = (vectorized & 1u) != 0u;
const bool aligned = (vectorized & 2u) != 0u;

void compute(uint tile) {
  uint lanes = gl_SubgroupSize;
  uint lane = gl_SubgroupInvocationID;
  uint width = 4u * lanes * vectors;
  uvec2 place = tile_position(tile, (params.m + rows - 1u) / rows, (params.n + width - 1u) / width);
  uint first_row = place.x * rows;
  if (first_row >= params.m) return;

  // Rows past the end repeat the last one, columns past the end the last four; neither goes anywhere.
  // Where rows begin is computed here, because not every driver moves that out of loops.
  uint a_row[8];
  uint column[2];
  uint at[2];  // of B, in vec4s if aligned
  vec4 sum[16];
  uint stride = aligned ? params.n / 4u : params.n;
#define BEGIN_ROW(r) a_row[r] = min(first_row + r, params.m - 1u) * params.k;
#define BEGIN_VECTOR(r, v)                                                        \
  column[v] = (place.y * vectors + v) * 4u * lanes + 4u * lane;            \
  at[v] = params.k_begin * stride + (aligned ? min(column[v], params.n - 4u) / 4u : min(column[v], params.n - 1u));
#define BEGIN_SUM(r, v) sum[r * 2 + v] = vec4(0.0);
#define BEGIN_SUMS(r) FOR_VECTORS(BEGIN_SUM, r)
  FOR_ROWS(BEGIN_ROW)
  FOR_VECTORS(BEGIN_VECTOR, 0)
  FOR_ROWS(BEGIN_SUMS)

  uint k = params.k_begin;
  uint end = params.k_begin + params.k_count;
  vec4 x[8];
  vec4 w[2];
  // The lanes past those that are listened to repeat the last of them.
#define LOAD_A(r)                                                                       \
  if (r < rows) {                                                                       \
    uint i = a_row[r] + k + 4u * min(lane, depth / 4u - 1u);                            \
    x[r] = aligned_k ? load4(a, i / 4u) : loadu4(a, i, a_row[r] + end);                 \
  }
#define LOAD_A1(r) \
  if (r < rows) x[r].x = load1(a, a_row[r] + k);
#define LOAD_B(unused, v)                                                               \
  if (v < vectors) {                                                                    \
    w[v] = aligned ? load4(b, at[v]) : loadu4(b, at[v], params.k * params.n);           \
    at[v] += stride;                                                                    \
  }
#define ADD(r, v) \
  if (v < vectors) sum[r * 2 + v] += factor * w[v];
#define ADD_ROW(r, from, part)                                                          \
  if (r < rows) {                                                                       \
    float factor = subgroupBroadcast(x[r].part, from);                                  \
    FOR_VECTORS(ADD, r)                                                                 \
  }
  // Broadcasts want constant lanes.
#define ONE(from, part)                                                                 \
  FOR_VECTORS(LOAD_B, 0)                                                                \
  ADD_ROW(0, from, part) ADD_ROW(1, from, part) ADD_ROW(2, from, part) ADD_ROW(3, from, part) \
  ADD_ROW(4, from, part) ADD_ROW(5, from, part) ADD_ROW(6, from, part) ADD_ROW(7, from, part)
#define FOUR(from) ONE(from, x) ONE(from, y) ONE(from, z) ONE(from, w)
  for (; k + depth <= end; k += depth) {
    FOR_ROWS(LOAD_A)
    FOUR(0) FOUR(1)
    if (depth > 8u) { FOUR(2) FOUR(3) }
  }
  [[dont_unroll]] for (; k < end; ++k) {
    FOR_ROWS(LOAD_A1)
    ONE(0, x)
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
