// C[m,n] = alpha * A[m,k] x B by tiles. A workgroup computes tile_m x tile_n elements of C. For every
// tile_k of k it brings a tile of A and one of B into shared memory, both with k as the slow axis, and
// each invocation adds their products into micro_m x micro_n registers. While one tile is multiplied
// the next is on its way to registers, and from there to a second buffer: one barrier for each.
#version 450
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require

#include "grid.glsl"
#include "matmul.glsl"
#include "weights.glsl"

// plan::MatmulTiledShape says which values go together.
layout(local_size_x = 256, local_size_x_id = 0) in;
layout(constant_id = 0) const uint group_size = 256;
layout(constant_id = 1) const uint b_layout = 0;
// plan::matmul_vectorized: bit 0 if k % 4 == 0, bit 1 if n % 4 == 0; for a part of W, n_begin and n_count too.
layout(constant_id = 2) const uint vectorized = 0;
layout(constant_id = 3) const uint tile_m = 64;
layout(constant_id = 4) const uint tile_n = 64;
// 4 or 8. The second four of eight lie half a tile away, so that neighbouring lanes read
// neighbouring vec4s of shared memory.
layout(constant_id = 5) const uint micro_m = 8;
layout(constant_id = 6) const uint micro_n = 4;

const uint tile_k = 8;

// Element i of row k of a tile is at k * width + SWIZZLED(i, k): without it, those who deposit columns for
// k and for k + 4 would meet in the same banks. Four neighbours stay together.
#define SWIZZLED(i, k) (((i) / 4u ^ ((k) & 4u)) * 4u + (i) % 4u)
shared float tile_a[2 * tile_k * tile_m];
shared float tile_b[2 * tile_k * tile_n];

const bool vector_k = (vectorized & 1u) != 0u;
const bool vector_n = (vectorized & 2u) != 0u;

#define FOUR(name, i) vec4(load1(name, i), load1(name, (i) + 1u), load1(name, (i) + 2u), load1(name, (i) + 3u))

// Invocation `local` carries the vec4s local and local + group_size of a tile, if it has so many.
#define CARRIES(l, tile)                         \
  (l * group_size < tile * tile_k / 4u &&        \
   ((tile * tile_k / 4u) % group_size == 0u || local + l * group_size < tile * tile_k / 4u))
// Of a tile whose rows run along k.
#define CARRIED_ROW(l) ((local + l * group_size) / 2u)
#define CARRIED_K(l) ((local + l * group_size) % 2u * 4u)
// Of a tile of B[k,n].
#define CARRIED_LINE(l) ((local + l * group_size) / (tile_n / 4u))
#define CARRIED_COLUMN(l) ((local + l * group_size) % (tile_n / 4u) * 4u)

// Elements k + ahead to k + ahead + 3 of a row of W that is not f32, where `at` is the word of `ahead`. Of
// quantized rows, k is a multiple of 8, and `ahead` 0 or 4.
vec4 weight_four(uint row, uint at, uint k, uint ahead) {
  if (b_type == type_q4_0) {
    // (q - 8) * scale, all of whose parts are exact; nibbles by bytes.
    uint four = (k + ahead) / 4u;
    uint word = loadw1(b, at + k / 32u * 4u + four % 4u) >> (four & 4u);
    uvec4 nibbles = uvec4(word, word >> 8, word >> 16, word >> 24) & 15u;
    float scale = weight_scale(row, k);
    return fma(vec4(nibbles), vec4(scale), vec4(-8.0 * scale));
  }
  if (b_type == type_q8_0) return weight_decode(uvec4(loadw1(b, at + k / 4u)), 0u) * weight_scale(row, k);
  if (vector_k) {
    uint i = at + k / 2u;
    return weight_decode(uvec4(loadw1(b, i), loadw1(b, i + 1u), 0u, 0u), 0u);
  }
  k += ahead;
  return vec4(weight1(row, k), weight1(row, k + 1u), weight1(row, k + 2u), weight1(row, k + 3u));
}
const uint elements_per_word = b_type == type_q4_0 ? 8u : b_type == type_q8_0 ? 4u : 2u;

// Four of k of a row of A that begins at `at`.
vec4 fetch_a(uint at, uint k) {
  vec4 four;
  if (vector_k)
    four = load4(a, at + k / 4u);
  else
    four = FOUR(a, at + k);
  return four;
}

// The same of a row of W, `ahead` of it in k, or four neighbours in row k of B[k,n].
vec4 fetch_b(uvec4 at, uint k, uint ahead) {
  vec4 four;
  if (b_layout == layout_nk) {
    if (b_type != type_f32)
      four = weight_four(at.x, at.y, k, ahead);
    else if (vector_k)
      four = load4(b, at.x + k / 4u);
    else
      four = FOUR(b, at.x + k);
  } else if (vector_n) {
    four = load4(b, at.x + k * (params.n / 4u));
  } else {
    uvec4 i = at + k * params.n;
    four = vec4(load1(b, i.x), load1(b, i.y), load1(b, i.z), load1(b, i.w));
  }
  return four;
}

// Up to three of k, those before `rest`.
#define PART(name, i, at) \
  vec4(load1(name, i), at + 1u < rest ? load1(name, (i) + 1u) : 0.0, at + 2u < rest ? load1(name, (i) + 2u) : 0.0, 0.0)

#define TILE_VEC4(tile, i) vec4(tile[i], tile[(i) + 1u], tile[(i) + 2u], tile[(i) + 3u])

void finish(uint row, uint column, uint copy, vec4 value) {
  if (row >= params.m || column >= params.n_count) return;
  uint i = (copy * params.m + row) * params.n + params.n_begin + column;
  if (vector_n) {
    put4(i / 4u, value);
  } else {
    put1(i, value.x);
    if (column + 1u < params.n_count) put1(i + 1u, value.y);
    if (column + 2u < params.n_count) put1(i + 2u, value.z);
    if (column + 3u < params.n_count) put1(i + 3u, value.w);
  }
}

void main() {
  uint group = group_index();
  if (group >= params.groups) return;
  uint local = gl_LocalInvocationID.x;
  uint tiles_m = (params.m + tile_m - 1u) / tile_m;
  uint tiles_n = (params.n_count + tile_n - 1u) / tile_n;
  // Of C: one for each matrix of a batch, and all of them for each slice of k.
  uint copy = group / (tiles_m * tiles_n);
  uint slice = batched != 0u ? copy / params.batch : copy;
  uvec3 before = rows_before(batched != 0u ? copy % params.batch : 0u, b_layout == layout_nk ? params.n : params.k);
  uint first_row = group / tiles_n % tiles_m * tile_m;
  uint first_column = group % tiles_n * tile_n;
  uint local_row = local / (tile_n / micro_n) * 4u;
  uint local_column = local % (tile_n / micro_n) * 4u;

  uint high_row = local_row / 4u ^ 4u;
  uint high_column = local_column / 4u ^ 4u;

  vec4 sum[8][2];
  [[unroll]] for (uint i = 0u; i < 8u; ++i) sum[i][0] = sum[i][1] = vec4(0.0);

  // Rows and columns past the end repeat the last one: their products go nowhere.
  vec4 carried_a[2];
  vec4 carried_b[2];
  uint a_at[2];
  uvec4 b_at[2];
  uint a_into[2];
  uint b_into[2];
  [[unroll]] for (uint l = 0u; l < 2u; ++l) {
    a_into[l] = CARRIED_K(l) * tile_m + SWIZZLED(CARRIED_ROW(l), CARRIED_K(l));
    a_at[l] = (before.x + min(first_row + CARRIED_ROW(l), params.m - 1u)) * params.k + CARRIED_K(l);
    if (vector_k) a_at[l] /= 4u;
    if (b_layout == layout_nk) {
      b_into[l] = CARRIED_K(l) * tile_n + SWIZZLED(CARRIED_ROW(l), CARRIED_K(l));
      b_at[l] = uvec4(before.y + min(first_column + CARRIED_ROW(l), params.n_count - 1u));
      if (b_type == type_f32) b_at[l].x = b_at[l].x * params.k + CARRIED_K(l);
      if (b_type == type_f32 && vector_k) b_at[l].x /= 4u;
      if (b_type != type_f32) b_at[l].y = b_at[l].x * weight_row_words() + CARRIED_K(l) / elements_per_word;
    } else {
      b_into[l] = CARRIED_LINE(l) * (tile_n / 4u) + (CARRIED_COLUMN(l) / 4u ^ (CARRIED_LINE(l) & 4u));
      if (vector_n) {
        b_at[l].x = (before.y + CARRIED_LINE(l)) * params.n;
        b_at[l].x = (b_at[l].x + min(first_column + CARRIED_COLUMN(l), params.n - 4u)) / 4u;
      } else {
        b_at[l] = min(first_column + CARRIED_COLUMN(l) + uvec4(0u, 1u, 2u, 3u), uvec4(params.n - 1u));
        b_at[l] += (before.y + CARRIED_LINE(l)) * params.n;
      }
    }
  }

  // The part of k that is no whole tile comes first, so that the loop need not look for it. Zero past its `rest` of k,
  // on both sides: an infinity there times zero would be NaN.
  uint k = params.k_begin + slice * params.k_slice;
  uint end = min(k + params.k_slice, params.k_begin + params.k_count);
  uint rest = (end - k - 1u) % tile_k + 1u;
  [[unroll]] for (uint l = 0u; l < 2u; ++l) {
    carried_a[l] = carried_b[l] = vec4(0.0);
    if (CARRIES(l, tile_m)) {
      if (CARRIED_K(l) + 3u < rest) {
        carried_a[l] = fetch_a(a_at[l], k);
      } else if (!vector_k) {
        if (CARRIED_K(l) < rest) carried_a[l] = PART(a, a_at[l] + k, CARRIED_K(l));
      }
    }
    if (CARRIES(l, tile_n)) {
      if (b_layout != layout_nk) {
        if (CARRIED_LINE(l) < rest) carried_b[l] = fetch_b(b_at[l], k, CARRIED_K(l));
      } else if (CARRIED_K(l) + 3u < rest) {
        carried_b[l] = fetch_b(b_at[l], k, CARRIED_K(l));
      } else if (!vector_k) {
        if (CARRIED_K(l) < rest) {
          if (b_type == type_f32) {
            carried_b[l] = PART(b, b_at[l].x + k, CARRIED_K(l));
          } else {
            uint at = k + CARRIED_K(l);
            carried_b[l].x = weight1(b_at[l].x, at);
            if (CARRIED_K(l) + 1u < rest) carried_b[l].y = weight1(b_at[l].x, at + 1u);
            if (CARRIED_K(l) + 2u < rest) carried_b[l].z = weight1(b_at[l].x, at + 2u);
          }
        }
      }
    }
  }
  k += rest;

  // Each round deposits a tile, sets out for the next, and multiplies.
#define DEPOSIT                                                                           \
  [[unroll]] for (uint l = 0u; l < 2u; ++l) {                                             \
    if (CARRIES(l, tile_m)) {                                                             \
      uint i = a_into[l] + current * tile_k * tile_m;                                     \
      [[unroll]] for (uint j = 0u; j < 4u; ++j) tile_a[i + j * tile_m] = carried_a[l][j]; \
    }                                                                                     \
    if (CARRIES(l, tile_n)) {                                                             \
      if (b_layout == layout_nk) {                                                        \
        uint i = b_into[l] + current * tile_k * tile_n;                                   \
        [[unroll]] for (uint j = 0u; j < 4u; ++j) tile_b[i + j * tile_n] = carried_b[l][j]; \
      } else {                                                                            \
        uint i = (b_into[l] + current * (tile_k * tile_n / 4u)) * 4u;                     \
        [[unroll]] for (uint j = 0u; j < 4u; ++j) tile_b[i + j] = carried_b[l][j];        \
      }                                                                                   \
    }                                                                                     \
  }
  uint current = 0u;
  DEPOSIT
  barrier();
  for (;;) {
    bool more = k < end;
    if (more) {
      [[unroll]] for (uint l = 0u; l < 2u; ++l) {
        if (CARRIES(l, tile_m)) carried_a[l] = fetch_a(a_at[l], k);
        if (CARRIES(l, tile_n)) carried_b[l] = fetch_b(b_at[l], k, CARRIED_K(l));
      }
    }
    uint low_a = local_row / 4u + current * (tile_k * tile_m / 4u);
    uint low_b = local_column / 4u + current * (tile_k * tile_n / 4u);
    uint high_a = high_row + current * (tile_k * tile_m / 4u);
    uint high_b = high_column + current * (tile_k * tile_n / 4u);
    [[unroll]] for (uint u = 0u; u < tile_k; ++u) {
      uint ia = (u * (tile_m / 4u) + (u < 4u ? low_a : high_a)) * 4u;
      uint ib = (u * (tile_n / 4u) + (u < 4u ? low_b : high_b)) * 4u;
      vec4 x0 = TILE_VEC4(tile_a, ia);
      vec4 y0 = TILE_VEC4(tile_b, ib);
      [[unroll]] for (uint i = 0u; i < 4u; ++i) sum[i][0] += x0[i] * y0;
      if (micro_m == 8u) {
        vec4 x1 = TILE_VEC4(tile_a, ia + tile_m / 2u);
        [[unroll]] for (uint i = 0u; i < 4u; ++i) sum[4u + i][0] += x1[i] * y0;
        if (micro_n == 8u) {
          vec4 y1 = TILE_VEC4(tile_b, ib + tile_n / 2u);
          [[unroll]] for (uint i = 0u; i < 4u; ++i) sum[i][1] += x0[i] * y1;
          [[unroll]] for (uint i = 0u; i < 4u; ++i) sum[4u + i][1] += x1[i] * y1;
        }
      } else if (micro_n == 8u) {
        vec4 y1 = TILE_VEC4(tile_b, ib + tile_n / 2u);
        [[unroll]] for (uint i = 0u; i < 4u; ++i) sum[i][1] += x0[i] * y1;
      }
    }
    if (!more) break;
    current ^= 1u;
    DEPOSIT
    barrier();
    k += tile_k;
  }

  if (step_count == 0u) {
    [[unroll]] for (uint i = 0u; i < 8u; ++i) {
      if (i < micro_m) {
        uint row = first_row + local_row + (i < 4u ? i : tile_m / 2u + i - 4u);
        finish(row, first_column + local_column, copy, sum[i][0]);
        if (micro_n == 8u) finish(row, first_column + local_column + tile_n / 2u, copy, sum[i][1]);
      }
    }
    return;
  }
  // Row after row moves to the front: a copy of the epilogue for each would be most of the code.
  [[dont_unroll]] for (uint i = 0u; i < micro_m; ++i) {
    uint row = first_row + local_row + (i < 4u ? i : tile_m / 2u + i - 4u);
    finish(row, first_column + local_column, copy, sum[0][0]);
    if (micro_n == 8u) finish(row, first_column + local_column + tile_n / 2u, copy, sum[0][1]);
    [[unroll]] for (uint j = 0u; j < 7u; ++j) {
      if (j + 1u < micro_m) {
        sum[j][0] = sum[j + 1u][0];
        sum[j][1] = sum[j + 1u][1];
      }
    }
  }
}
