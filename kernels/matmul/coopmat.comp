// C[m,n] = alpha * A[m,k] x B by the device's matrix units (VK_KHR_cooperative_matrix), which take f16 and add up in
// f32. A workgroup computes tile_m x tile_n elements of C. For every tile_k of k it brings a tile of A and one of B into
// shared memory, as f16, whatever they are stored as; while one tile is multiplied the next is on its way to registers.
// Each subgroup has matrices_m x matrices_n matrices of sums. These reach C through shared memory, one after the other,
// so that alpha, bounds and the epilogue are what they are in other kernels.
//
// With BRONTES_DECLARATIONS there are only the declarations, for compilers that do not know the extension.
#version 450
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_GOOGLE_include_directive : require
#ifndef BRONTES_DECLARATIONS
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#endif

#include "grid.glsl"
#include "lanes.glsl"
#include "matmul.glsl"
#include "weights.glsl"

// plan::MatmulCoopmatShape says which values go together.
layout(local_size_x = 128, local_size_x_id = 0) in;
layout(constant_id = 0) const uint group_size = 128;
layout(constant_id = 1) const uint b_layout = 0;
// plan::matmul_vectorized, as in tiled.comp.
layout(constant_id = 2) const uint vectorized = 0;
// What the device multiplies at once: matrix_m x matrix_k by matrix_k x matrix_n. Each 8 or a multiple of 8.
layout(constant_id = 3) const uint matrix_m = 16;
layout(constant_id = 4) const uint matrix_n = 16;
layout(constant_id = 5) const uint matrix_k = 16;
// Of a workgroup.
layout(constant_id = 6) const uint subgroups_m = 2;
layout(constant_id = 7) const uint subgroups_n = 2;
// Of a subgroup: 1, 2 or 4.
layout(constant_id = 8) const uint matrices_m = 2;
layout(constant_id = 9) const uint matrices_n = 2;

#ifdef BRONTES_DECLARATIONS

void main() {}

#else

const uint tile_m = matrix_m * matrices_m * subgroups_m;
const uint tile_n = matrix_n * matrices_n * subgroups_n;
const uint tile_k = 32;  // a block of quantized weights

const bool vector_k = (vectorized & 1u) != 0u;
const bool vector_n = (vectorized & 2u) != 0u;

// Rows of shared memory, in fours: 16 bytes more than they need, so that rows below one another are in different banks.
const uint pitch_k = tile_k / 4 + 2;
const uint pitch_n = tile_n / 4 + 2;
const uint b_fours = b_layout == layout_nk ? tile_n * pitch_k : tile_k * pitch_n;
const uint patch_size = matrix_m * matrix_n;
shared f16vec4 tile_a[tile_m * pitch_k];
shared f16vec4 tile_b[b_fours];
shared float patches[subgroups_m * subgroups_n * patch_size];

// Invocation `local` carries the eights local, local + group_size and so on of a tile, if it has so many: up to four.
#define CARRIED(l) (local + l * group_size)
#define CARRIES(l, tile)                       \
  (l * group_size < tile * (tile_k / 8u) &&    \
   ((tile * (tile_k / 8u)) % group_size == 0u || CARRIED(l) < tile * (tile_k / 8u)))
// Of a tile whose rows run along k.
#define CARRIED_ROW(l) (CARRIED(l) / (tile_k / 8u))
#define CARRIED_K(l) (CARRIED(l) % (tile_k / 8u) * 8u)
// Of a tile of B[k,n].
#define CARRIED_LINE(l) (CARRIED(l) / (tile_n / 8u))
#define CARRIED_COLUMN(l) (CARRIED(l) % (tile_n / 8u) * 8u)

// Elements are carried as they are stored, so that nothing waits for them before it has to: eight floats, or the words
// of eight weights and, if they have one, that with their scale. The eight of a word of q4_0 are two fours, 16 of k apart.
struct Eight {
  uvec4 low, high;
};

// Eight floats from element i on of a row, all of which are before `end`, or zeros from there on.
#define FLOATS(name)                                                                              \
  Eight name##_floats(uint i) {                                                                   \
    Eight e;                                                                                      \
    if (vector_k) {                                                                               \
      e.low = floatBitsToUint(load4(name, i / 4u));                                               \
      e.high = floatBitsToUint(load4(name, i / 4u + 1u));                                         \
    } else {                                                                                      \
      e.low = floatBitsToUint(vec4(load1(name, i), load1(name, i + 1u), load1(name, i + 2u), load1(name, i + 3u))); \
      e.high = floatBitsToUint(vec4(load1(name, i + 4u), load1(name, i + 5u), load1(name, i + 6u), load1(name, i + 7u))); \
    }                                                                                             \
    return e;                                                                                     \
  }                                                                                               \
  Eight name##_floats_before(uint i, uint end) {                                                  \
    Eight e = Eight(uvec4(0u), uvec4(0u));                                                        \
    [[unroll]] for (uint j = 0u; j < 4u; ++j) {                                                   \
      if (i + j < end) e.low[j] = floatBitsToUint(load1(name, i + j));                            \
      if (i + j + 4u < end) e.high[j] = floatBitsToUint(load1(name, i + j + 4u));                 \
    }                                                                                             \
    return e;                                                                                     \
  }
FLOATS(a)
FLOATS(b)

// Elements k to k + 7 of a row of W that is not f32, or of q4_0 word k / 8; k is a multiple of 8.
Eight weights(uint row, uint k) {
  Eight e = Eight(uvec4(0u), uvec4(0u));
  uint at = row * weight_row_words();
  if (b_type == type_q4_0) {
    e.low.x = loadw1(b, at + k / 8u);
  } else if (b_type == type_q8_0) {
    e.low.x = loadw1(b, at + k / 4u);
    e.low.y = loadw1(b, at + k / 4u + 1u);
  } else {
    e.low = loadw4(b, (at + k / 2u) / 4u);
  }
  if (b_quantized) e.high.x = weight_scale_word(row, k);
  return e;
}

// The same where k ends at `end`, and zeros from there on. Quantized rows end with a block.
Eight weights_before(uint row, uint k, uint end) {
  if (k >= end) return Eight(uvec4(0u), uvec4(0u));
  Eight e = weights(row, k);
  if (!b_quantized) {
    [[unroll]] for (uint j = 0u; j < 4u; ++j) {
      if (k + 2u * j >= end)
        e.low[j] = 0u;
      else if (k + 2u * j + 1u >= end)
        e.low[j] &= 0xffffu;
    }
  }
  return e;
}

// Eight neighbours in row k of B[k,n], where `at` is the first one's column.
Eight columns(uint row, uint at) {
  Eight e;
  if (vector_n) {
    e.low = floatBitsToUint(load4(b, (row * params.n + min(at, params.n - 4u)) / 4u));
    e.high = floatBitsToUint(load4(b, (row * params.n + min(at + 4u, params.n - 4u)) / 4u));
  } else {
    [[unroll]] for (uint j = 0u; j < 4u; ++j) {
      e.low[j] = floatBitsToUint(load1(b, row * params.n + min(at + j, params.n - 1u)));
      e.high[j] = floatBitsToUint(load1(b, row * params.n + min(at + j + 4u, params.n - 1u)));
    }
  }
  return e;
}

// The first four of what weights() gave for a row, or the other four.
vec4 decoded(Eight e, uint row, bool high) {
  if (b_type == type_f32) return uintBitsToFloat(high ? e.high : e.low);
  if (!b_quantized) return weight_decode(e.low, high ? 1u : 0u);
  float scale = weight_scale_of(e.high.x, row);
  if (b_type == type_q8_0) return weight_decode(uvec4(high ? e.low.y : e.low.x), 0u) * scale;
  uint word = high ? e.low.x >> 4 : e.low.x;
  uvec4 nibbles = uvec4(word, word >> 8, word >> 16, word >> 24) & 15u;
  return fma(vec4(nibbles), vec4(scale), vec4(-8.0 * scale));
}

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

#define MATRIX_A coopmat<float16_t, gl_ScopeSubgroup, matrix_m, matrix_k, gl_MatrixUseA>
#define MATRIX_B coopmat<float16_t, gl_ScopeSubgroup, matrix_k, matrix_n, gl_MatrixUseB>
#define MATRIX_C coopmat<float, gl_ScopeSubgroup, matrix_m, matrix_n, gl_MatrixUseAccumulator>

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
  // Of the subgroup's part of the tile.
  uint part_row = gl_SubgroupID / subgroups_n * (matrix_m * matrices_m);
  uint part_column = gl_SubgroupID % subgroups_n * (matrix_n * matrices_n);

  MATRIX_C sum[4][4];
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    [[unroll]] for (uint j = 0u; j < 4u; ++j) {
      if (i < matrices_m && j < matrices_n) sum[i][j] = MATRIX_C(0.0);
    }
  }

  uint k = params.k_begin + slice * params.k_slice;
  uint end = min(k + params.k_slice, params.k_begin + params.k_count);
  Eight carried_a[4];
  Eight carried_b[4];
  // Rows and columns past the end repeat the last one: their products go nowhere. What is past the end of k is zero on
  // both sides: an infinity times zero would be NaN.
#define A_ROW(l) (before.x + min(first_row + CARRIED_ROW(l), params.m - 1u))
#define B_ROW(l) (before.y + min(first_column + CARRIED_ROW(l), params.n_count - 1u))
#define FETCH                                                                                     \
  if (k + tile_k <= end) {                                                                        \
    [[unroll]] for (uint l = 0u; l < 4u; ++l) {                                                   \
      if (CARRIES(l, tile_m)) carried_a[l] = a_floats(A_ROW(l) * params.k + k + CARRIED_K(l));    \
      if (CARRIES(l, tile_n)) {                                                                   \
        if (b_layout != layout_nk)                                                                \
          carried_b[l] = columns(before.y + k + CARRIED_LINE(l), first_column + CARRIED_COLUMN(l)); \
        else if (b_type == type_f32)                                                              \
          carried_b[l] = b_floats(B_ROW(l) * params.k + k + CARRIED_K(l));                        \
        else                                                                                      \
          carried_b[l] = weights(B_ROW(l), k + CARRIED_K(l));                                     \
      }                                                                                           \
    }                                                                                             \
  } else {                                                                                        \
    [[unroll]] for (uint l = 0u; l < 4u; ++l) {                                                   \
      if (CARRIES(l, tile_m)) {                                                                   \
        uint at = A_ROW(l) * params.k;                                                            \
        carried_a[l] = a_floats_before(at + k + CARRIED_K(l), at + end);                          \
      }                                                                                           \
      if (CARRIES(l, tile_n)) {                                                                   \
        if (b_layout != layout_nk) {                                                              \
          carried_b[l] = Eight(uvec4(0u), uvec4(0u));                                             \
          if (k + CARRIED_LINE(l) < end)                                                          \
            carried_b[l] = columns(before.y + k + CARRIED_LINE(l), first_column + CARRIED_COLUMN(l)); \
        } else if (b_type == type_f32) {                                                          \
          uint at = B_ROW(l) * params.k;                                                          \
          carried_b[l] = b_floats_before(at + k + CARRIED_K(l), at + end);                        \
        } else {                                                                                  \
          carried_b[l] = weights_before(B_ROW(l), k + CARRIED_K(l), end);                         \
        }                                                                                         \
      }                                                                                           \
    }                                                                                             \
  }
#define DEPOSIT                                                                                   \
  [[unroll]] for (uint l = 0u; l < 4u; ++l) {                                                     \
    if (CARRIES(l, tile_m)) {                                                                     \
      uint into = CARRIED_ROW(l) * pitch_k + CARRIED_K(l) / 4u;                                   \
      tile_a[into] = f16vec4(uintBitsToFloat(carried_a[l].low));                                  \
      tile_a[into + 1u] = f16vec4(uintBitsToFloat(carried_a[l].high));                            \
    }                                                                                             \
    if (CARRIES(l, tile_n)) {                                                                     \
      uint into = CARRIED_ROW(l) * pitch_k + CARRIED_K(l) / (b_type == type_q4_0 ? 8u : 4u);      \
      if (b_layout != layout_nk) into = CARRIED_LINE(l) * pitch_n + CARRIED_COLUMN(l) / 4u;       \
      uint other = into + (b_type == type_q4_0 ? 4u : 1u);                                        \
      tile_b[into] = f16vec4(decoded(carried_b[l], B_ROW(l), false));                             \
      tile_b[other] = f16vec4(decoded(carried_b[l], B_ROW(l), true));                             \
    }                                                                                             \
  }

  FETCH
  for (;;) {
    DEPOSIT
    barrier();
    k += tile_k;
    if (k < end) {
      FETCH
    }
    [[unroll]] for (uint step = 0u; step < 4u; ++step) {
      if (step * matrix_k < tile_k) {
        MATRIX_A x[4];
        [[unroll]] for (uint i = 0u; i < 4u; ++i) {
          if (i < matrices_m)
            coopMatLoad(x[i], tile_a, (part_row + i * matrix_m) * pitch_k + step * matrix_k / 4u, pitch_k,
                        gl_CooperativeMatrixLayoutRowMajor);
        }
        [[unroll]] for (uint j = 0u; j < 4u; ++j) {
          if (j < matrices_n) {
            MATRIX_B y;
            uint column = part_column + j * matrix_n;
            if (b_layout == layout_nk)
              coopMatLoad(y, tile_b, column * pitch_k + step * matrix_k / 4u, pitch_k,
                          gl_CooperativeMatrixLayoutColumnMajor);
            else
              coopMatLoad(y, tile_b, step * matrix_k * pitch_n + column / 4u, pitch_n,
                          gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint i = 0u; i < 4u; ++i) {
              if (i < matrices_m) sum[i][j] = coopMatMulAdd(x[i], y, sum[i][j]);
            }
          }
        }
      }
    }
    if (k >= end) break;
    barrier();
  }

  // Matrix after matrix moves to the front: a copy of the epilogue for each would be most of the code.
  uint patch_at = gl_SubgroupID * patch_size;
  [[dont_unroll]] for (uint i = 0u; i < matrices_m; ++i) {
    [[dont_unroll]] for (uint j = 0u; j < matrices_n; ++j) {
      coopMatStore(sum[0][0], patches, patch_at, matrix_n, gl_CooperativeMatrixLayoutRowMajor);
      barrier();
      [[dont_unroll]] for (uint four = gl_SubgroupInvocationID; four < patch_size / 4u; four += subgroup_lanes) {
        uint at = patch_at + four * 4u;
        finish(first_row + part_row + i * matrix_m + four / (matrix_n / 4u),
               first_column + part_column + j * matrix_n + four % (matrix_n / 4u) * 4u, copy,
               vec4(patches[at], patches[at + 1u], patches[at + 2u], patches[at + 3u]));
      }
      barrier();
      [[unroll]] for (uint s = 0u; s < 3u; ++s) {
        if (s + 1u < matrices_n) sum[0][s] = sum[0][s + 1u];
      }
    }
    [[unroll]] for (uint r = 0u; r < 3u; ++r) {
      [[unroll]] for (uint s = 0u; s < 4u; ++s) {
        if (r + 1u < matrices_m && s < matrices_n) sum[r][s] = sum[r + 1u][s];
      }
    }
  }
}

#endif
