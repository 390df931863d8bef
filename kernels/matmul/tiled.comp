// C[m,n] = alpha * A[m,k] x B by tiles. A workgroup computes tile_m x tile_n elements of C. For every
// tile_k of k it brings a tile of A and one of B into shared memory, both with k as the slow axis, and
// each invocation adds their products into micro_m x micro_n registers. While one tile is multiplied
// the next is on its way to registers.
#version 450
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require

#include "grid.glsl"
#include "matmul.glsl"

// plan::MatmulTiledShape says which values go together.
layout(local_size_x = 256, local_size_x_id = 0) in;
layout(constant_id = 0) const uint group_size = 256;
layout(constant_id = 1) const uint b_layout = 0;
// plan::matmul_vectorized: bit 0 if k % 4 == 0, bit 1 if n % 4 == 0.
layout(constant_id = 2) const uint vectorized = 0;
layout(constant_id = 3) const uint tile_m = 64;
layout(constant_id = 4) const uint tile_n = 64;
layout(constant_id = 5) const uint tile_k = 16;
// 4 or 8. The second four of eight lie half a tile away, so that neighbouring lanes read
// neighbouring vec4s of shared memory.
layout(constant_id = 6) const uint micro_m = 4;
layout(constant_id = 7) const uint micro_n = 4;

// A transposed store would hit few banks without the padding, which also keeps vec4s aligned.
const uint stride_m = tile_m + 4;
const uint stride_n = tile_n + 4;
shared float tile_a[tile_k * (tile_m + 4)];
shared float tile_b[tile_k * (tile_n + 4)];

const bool vector_k = (vectorized & 1u) != 0u;
const bool vector_n = (vectorized & 2u) != 0u;

// Elements `at` to `at + 3` of a row; those at `limit` or past it, or of a row that is not there, are 0.
// An aligned row has its limit on a vec4.
#define LOAD_ROW(slot, aligned, row, rows, stride, at, limit, value)        \
  value = vec4(0.0);                                                        \
  if (row < rows) {                                                         \
    uint i = row * stride + at;                                             \
    if (aligned) {                                                          \
      if (at < limit) value = load4(slot, i / 4u);                          \
    } else {                                                                \
      if (at < limit) value.x = load1(slot, i);                             \
      if (at + 1u < limit) value.y = load1(slot, i + 1u);                   \
      if (at + 2u < limit) value.z = load1(slot, i + 2u);                   \
      if (at + 3u < limit) value.w = load1(slot, i + 3u);                   \
    }                                                                       \
  }

// Invocation `local` carries the vec4s local, local + group_size, ... of a tile, at most four of each.
#define FOR_CARRIED(DO) DO(0) DO(1) DO(2) DO(3)
#define CARRIES(l, tile) (l * group_size < tile * tile_k / 4u)
#define IN_TILE(l, tile) ((tile * tile_k / 4u) % group_size == 0u || local + l * group_size < tile * tile_k / 4u)

#define FETCH(l)                                                                                       \
  if (CARRIES(l, tile_m) && IN_TILE(l, tile_m)) {                                                      \
    uint slot = local + l * group_size;                                                                \
    uint row = first_row + slot / (tile_k / 4u);                                                       \
    uint at = k + slot % (tile_k / 4u) * 4u;                                                           \
    LOAD_ROW(a, vector_k, row, params.m, params.k, at, end, carried_a[l])                              \
  }                                                                                                    \
  if (CARRIES(l, tile_n) && IN_TILE(l, tile_n)) {                                                      \
    uint slot = local + l * group_size;                                                                \
    if (b_layout == layout_nk) {                                                                       \
      uint row = first_column + slot / (tile_k / 4u);                                                  \
      uint at = k + slot % (tile_k / 4u) * 4u;                                                         \
      LOAD_ROW(b, vector_k, row, params.n, params.k, at, end, carried_b[l])                            \
    } else {                                                                                           \
      uint row = k + slot / (tile_n / 4u);                                                             \
      uint at = first_column + slot % (tile_n / 4u) * 4u;                                              \
      LOAD_ROW(b, vector_n, row, end, params.n, at, params.n, carried_b[l])                            \
    }                                                                                                  \
  }

#define DEPOSIT_ROW(tile, i, stride, value) \
  tile[i] = value.x;                        \
  tile[i + stride] = value.y;               \
  tile[i + 2u * stride] = value.z;          \
  tile[i + 3u * stride] = value.w;

#define DEPOSIT(l)                                                                        \
  if (CARRIES(l, tile_m) && IN_TILE(l, tile_m)) {                                         \
    uint slot = local + l * group_size;                                                   \
    uint i = slot % (tile_k / 4u) * 4u * stride_m + slot / (tile_k / 4u);                 \
    DEPOSIT_ROW(tile_a, i, stride_m, carried_a[l])                                        \
  }                                                                                       \
  if (CARRIES(l, tile_n) && IN_TILE(l, tile_n)) {                                         \
    uint slot = local + l * group_size;                                                   \
    if (b_layout == layout_nk) {                                                          \
      uint i = slot % (tile_k / 4u) * 4u * stride_n + slot / (tile_k / 4u);               \
      DEPOSIT_ROW(tile_b, i, stride_n, carried_b[l])                                      \
    } else {                                                                              \
      uint i = slot / (tile_n / 4u) * stride_n + slot % (tile_n / 4u) * 4u;               \
      DEPOSIT_ROW(tile_b, i, 1u, carried_b[l])                                            \
    }                                                                                     \
  }

#define TILE_VEC4(tile, i) vec4(tile[i], tile[(i) + 1u], tile[(i) + 2u], tile[(i) + 3u])

#define MULTIPLY_ROWS(first, left, h, right)  \
  sum[first][h] += left.x * right;            \
  sum[first + 1][h] += left.y * right;        \
  sum[first + 2][h] += left.z * right;        \
  sum[first + 3][h] += left.w * right;

#define MULTIPLY(u)                                                            \
  {                                                                            \
    uint ia = (kk + u) * stride_m + local_row;                                 \
    uint ib = (kk + u) * stride_n + local_column;                              \
    vec4 x0 = TILE_VEC4(tile_a, ia);                                           \
    vec4 y0 = TILE_VEC4(tile_b, ib);                                           \
    MULTIPLY_ROWS(0, x0, 0, y0)                                                \
    if (micro_m == 8u) {                                                       \
      vec4 x1 = TILE_VEC4(tile_a, ia + tile_m / 2u);                           \
      MULTIPLY_ROWS(4, x1, 0, y0)                                              \
      if (micro_n == 8u) {                                                     \
        vec4 y1 = TILE_VEC4(tile_b, ib + tile_n / 2u);                         \
        MULTIPLY_ROWS(0, x0, 1, y1)                                            \
        MULTIPLY_ROWS(4, x1, 1, y1)                                            \
      }                                                                        \
    } else if (micro_n == 8u) {                                                \
      vec4 y1 = TILE_VEC4(tile_b, ib + tile_n / 2u);                           \
      MULTIPLY_ROWS(0, x0, 1, y1)                                              \
    }                                                                          \
  }

void finish(uint row, uint column, vec4 value) {
  if (row >= params.m || column >= params.n) return;
  uint i = row * params.n + column;
  if (vector_n) {
    put4(i / 4u, value);
  } else {
    put1(i, value.x);
    if (column + 1u < params.n) put1(i + 1u, value.y);
    if (column + 2u < params.n) put1(i + 2u, value.z);
    if (column + 3u < params.n) put1(i + 3u, value.w);
  }
}

#define FINISH(i)                                                                      \
  if (i < micro_m) {                                                                   \
    uint row = first_row + local_row + (i < 4 ? i : tile_m / 2u + i - 4u);             \
    finish(row, first_column + local_column, sum[i][0]);                               \
    if (micro_n == 8u) finish(row, first_column + local_column + tile_n / 2u, sum[i][1]); \
  }

void main() {
  uint group = group_index();
  if (group >= params.groups) return;
  uint local = gl_LocalInvocationID.x;
  uint tiles_n = (params.n + tile_n - 1u) / tile_n;
  uint first_row = group / tiles_n * tile_m;
  uint first_column = group % tiles_n * tile_n;
  uint local_row = local / (tile_n / micro_n) * 4u;
  uint local_column = local % (tile_n / micro_n) * 4u;

  vec4 sum[8][2];
#define CLEAR(i) sum[i][0] = sum[i][1] = vec4(0.0);
  CLEAR(0) CLEAR(1) CLEAR(2) CLEAR(3) CLEAR(4) CLEAR(5) CLEAR(6) CLEAR(7)

  vec4 carried_a[4];
  vec4 carried_b[4];
  uint end = params.k_begin + params.k_count;
  uint k = params.k_begin;
  FOR_CARRIED(FETCH)
  while (k < end) {
    FOR_CARRIED(DEPOSIT)
    barrier();
    k += tile_k;
    FOR_CARRIED(FETCH)
    // Unrolled no further: it gains 0 to 8% on RADV and costs lavapipe seconds of compiling.
    [[dont_unroll]] for (uint kk = 0u; kk < tile_k; kk += 4u) {
      MULTIPLY(0u) MULTIPLY(1u) MULTIPLY(2u) MULTIPLY(3u)
    }
    barrier();
  }

  FINISH(0) FINISH(1) FINISH(2) FINISH(3) FINISH(4) FINISH(5) FINISH(6) FINISH(7)
}
