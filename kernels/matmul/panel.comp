// C[m,n] = alpha * A[m,k] x W[n,k]^T for CPU drivers, where lanes are SIMD lanes: no shared memory and no barriers. A
// subgroup computes a tile, `rows` of A by `width` columns of C. Its lanes run along n, `columns` each, and take
// four of k at a time. Both operands are f32, or pack.comp has made them so.
//
// At each load lavapipe calls a function, before which it saves all registers. So a step loads what it needs of
// W, and then goes through the rows.
#version 450
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require

#include "grid.glsl"
#include "lanes.glsl"
#include "matmul.glsl"
#include "panels.glsl"
#include "tiles.glsl"

layout(local_size_x = 64, local_size_x_id = 0) in;
// The tile, by default the largest: rows, and columns per lane.
layout(constant_id = 1) const uint rows = 16;
layout(constant_id = 2) const uint columns = 8;
layout(constant_id = 3) const uint width = 64;
layout(constant_id = 4) const uint sources = 1;
// Tiles per workgroup.
layout(constant_id = 5) const uint tiles = 8;
// 1 where pack.comp has been, in bands of `rows` and of `width`.
layout(constant_id = 6) const uint a_packed = 0;
layout(constant_id = 7) const uint b_packed = 0;
// Fours of k per iteration, 1 or 2: with loops come selects for every sum.
layout(constant_id = 8) const uint steps = 2;
// plan::matmul_vectorized: bit 0 if k % 4 == 0.
layout(constant_id = 9) const uint vectorized = 0;

#include "left.glsl"

// Rows that do not begin on a vec4 are counted in floats, and their last four of k goes past the end. (No && here:
// glslang makes no constants of it.)
const bool ragged = (vectorized & 1u) == 0u;
const bool a_split = a_packed != 0u ? false : ragged;
const bool b_split = b_packed != 0u ? false : ragged;
const bool split = a_split ? true : b_split;

// From one four of k to the next.
const uint a_step = a_packed != 0u ? rows : a_split ? 4u : 1u;
const uint b_step = b_packed != 0u ? width : b_split ? 4u : 1u;

vec4 load_a(uint at) {
  if (a_split) return loadu4(a, at, at + 4u);
  return load4(a, at);
}

vec4 load_b(uint at) {
  if (b_split) return loadu4(b, at, at + 4u);
  return load4(b, at);
}

// Of the last four, the first `rest`, and zeros in place of the others, for which loadu4 gives the last one again: that
// must not count twice, nor meet a zero of the other operand as an infinity.
vec4 first_of(vec4 four, uint rest) { return mix(vec4(0.0), four, lessThan(uvec4(0u, 1u, 2u, 3u), uvec4(rest))); }

vec4 load_last_a(uint at, uint rest) {
  if (a_split) return first_of(loadu4(a, at, at + rest), rest);
  return load4(a, at);
}

vec4 load_last_b(uint at, uint rest) {
  if (b_split) return first_of(loadu4(b, at, at + rest), rest);
  return load4(b, at);
}

// Where a row that is not packed begins.
uint begin_of_a(uint row) {
  return a_split ? row * params.k + params.k_begin : row * matmul_fours() + params.k_begin / 4u;
}

uint begin_of_b(uint row) {
  return b_split ? row * params.k + params.k_begin : row * matmul_fours() + params.k_begin / 4u;
}

// Columns `first` and on of the tile, `columns` per lane. Rows and columns past the end repeat the last one; their
// sums go nowhere.
void compute(uint band, uint panel, uint first, uint z) {
  uint lane = gl_SubgroupInvocationID;
  uint fours = matmul_fours();
  uint four = params.k_begin / 4u;
  uint k_end = params.k_begin + params.k_count;
  uvec3 before = rows_before(z, params.n);
  // Bands of packed operands before those of the matrices.
  uvec2 skipped = uvec2(0u);
  if (batched != 0u) skipped = factors_of(z) * uvec2((params.m + rows - 1u) / rows, (params.n + width - 1u) / width);
  uint end = (k_end + (split ? 0u : 3u)) / 4u;
  uint a_at[16];
  [[unroll]] for (uint s = 0u; s < 16u; ++s) {
    if (s < left_count)
      a_at[s] = a_packed != 0u ? ((skipped.x + band) * fours + four) * rows + left_row(s)
                               : begin_of_a(before.x + min(band * rows + left_row(s), params.m - 1u));
  }
  uint b_at[8];
  [[unroll]] for (uint c = 0u; c < 8u; ++c) {
    uint local = first + c * subgroup_lanes + lane;
    if (c < columns)
      b_at[c] = b_packed != 0u ? ((skipped.y + panel) * fours + four) * width + min(local, width - 1u)
                               : begin_of_b(before.y + min(panel * width + local, params.n_count - 1u));
  }
  float sum[16 * 8];
  [[unroll]] for (uint r = 0u; r < 16u; ++r) {
    [[unroll]] for (uint c = 0u; c < 8u; ++c) {
      if (r < rows && c < columns) sum[r * 8u + c] = 0.0;
    }
  }

  vec4 x[4];
  vec4 w[8];
  // Adds the products of four of k, where load_a(s) and load_b(c) load them.
#define STEP(load_a, load_b)                                                        \
  [[unroll]] for (uint s = 0u; s < 4u; ++s) {                                       \
    if (sources > 1u && s < left_count) x[s] = load_a(s);                           \
  }                                                                                 \
  [[unroll]] for (uint c = 0u; c < 8u; ++c) {                                       \
    if (c < columns) w[c] = load_b(c);                                              \
  }                                                                                 \
  [[unroll]] for (uint r = 0u; r < 16u; ++r) {                                      \
    if (r < rows) {                                                                 \
      vec4 factor;                                                                  \
      BRONTES_LEFT(factor, x, r, load_a(r))                                         \
      [[unroll]] for (uint i = 0u; i < 4u; ++i) {                                   \
        [[unroll]] for (uint c = 0u; c < 8u; ++c) {                                 \
          if (c < columns) sum[r * 8u + c] += factor[i] * w[c][i];                  \
        }                                                                           \
      }                                                                             \
    }                                                                               \
  }
#define FOUR_A(s) load_a(a_at[s])
#define FOUR_B(c) load_b(b_at[c])
#define LAST_A(s) load_last_a(a_at[s], k_end % 4u)
#define LAST_B(c) load_last_b(b_at[c], k_end % 4u)
  [[dont_unroll]] for (; four < end; four += steps) {
    [[unroll]] for (uint i = 0u; i < 2u; ++i) {
      if (i < steps) {
        STEP(FOUR_A, FOUR_B)
        [[unroll]] for (uint s = 0u; s < 16u; ++s) {
          if (s < left_count) a_at[s] += a_step;
        }
        [[unroll]] for (uint c = 0u; c < 8u; ++c) {
          if (c < columns) b_at[c] += b_step;
        }
      }
    }
  }
  if (split && k_end % 4u != 0u) {
    STEP(LAST_A, LAST_B)
  }

  // Row after row moves to the front: a copy of the epilogue for every sum would take drivers seconds to compile, and
  // so does finding sums by an index.
  uint last_row = min(band * rows + rows, params.m);
  [[dont_unroll]] for (uint row = band * rows; row < last_row; ++row) {
    [[unroll]] for (uint c = 0u; c < 8u; ++c) {
      if (c < columns) {
        uint local = first + c * subgroup_lanes + lane;
        uint column = panel * width + local;
        if (local < width && column < params.n_count)
          put1((before.z + row) * params.n + params.n_begin + column, sum[c]);
      }
    }
    [[unroll]] for (uint r = 0u; r < 15u; ++r) {
      [[unroll]] for (uint c = 0u; c < 8u; ++c) {
        if (r + 1u < rows && c < columns) sum[r * 8u + c] = sum[r * 8u + 8u + c];
      }
    }
  }
}

void main() {
  uint bands = (params.m + rows - 1u) / rows;
  uint panels = (params.n_count + width - 1u) / width;
  for (uint i = gl_SubgroupID; i < tiles; i += gl_NumSubgroups) {
    uint tile = group_index() * tiles + i;
    uint z = 0u;
    if (batched != 0u) {
      z = tile / (bands * panels);
      tile -= z * bands * panels;
    }
    uvec2 place = tile_position(tile, bands, panels);
    if (batched != 0u ? z < params.batch : place.x < bands) {
      // Once around, but where a smaller subgroup is simulated.
      for (uint first = 0u; first < width; first += columns * subgroup_lanes) compute(place.x, place.y, first, z);
    }
  }
}
