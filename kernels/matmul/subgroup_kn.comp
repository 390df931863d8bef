// C[m,n] = alpha * A[m,k] x B[k,n] for CPU drivers, where lanes are SIMD lanes: no shared memory and no
// barriers. A subgroup computes a tile of C, `rows` by `width`. Its lanes run along n, `vectors` vec4s each, and take
// four of k at a time.
#version 450
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require

#include "grid.glsl"
#include "lanes.glsl"
#include "matmul.glsl"
#include "tiles.glsl"

layout(local_size_x = 64, local_size_x_id = 0) in;
// The tile, by default the largest: rows, and vec4s per lane.
layout(constant_id = 1) const uint rows = 16;
layout(constant_id = 2) const uint vectors = 4;
layout(constant_id = 3) const uint width = 128;
layout(constant_id = 4) const uint sources = 1;
// Tiles per workgroup.
layout(constant_id = 5) const uint tiles = 8;
// plan::matmul_vectorized: bit 0 if k % 4 == 0, bit 1 if n % 4 == 0.
layout(constant_id = 6) const uint vectorized = 0;

#include "left.glsl"

const bool aligned_k = (vectorized & 1u) != 0u;
const bool aligned = (vectorized & 2u) != 0u;

// Columns `first` and on of the tile, 4 * vectors per lane. Rows past the end repeat the last one, columns past the end
// the last four; neither goes anywhere. Where rows begin is computed before the loops, because not every driver
// moves that out of them.
void compute(uvec2 place, uint first, uint z) {
  uint lane = gl_SubgroupInvocationID;
  uint first_row = place.x * rows;
  uvec3 before = rows_before(z, params.k);
  uint a_at[16];
  [[unroll]] for (uint s = 0u; s < 16u; ++s) {
    if (s < left_count) a_at[s] = (before.x + min(first_row + left_row(s), params.m - 1u)) * params.k;
  }
  uint stride = aligned ? params.n / 4u : params.n;
  uint at[4];  // of B, in vec4s if aligned
  [[unroll]] for (uint v = 0u; v < 4u; ++v) {
    if (v < vectors) {
      uint column = place.y * width + first + 4u * (v * subgroup_lanes + lane);
      at[v] = (before.y + params.k_begin) * stride;
      at[v] += aligned ? min(column, params.n - 4u) / 4u : min(column, params.n - 1u);
    }
  }
  vec4 sum[16 * 4];
  [[unroll]] for (uint r = 0u; r < 16u; ++r) {
    [[unroll]] for (uint v = 0u; v < 4u; ++v) {
      if (r < rows && v < vectors) sum[r * 4u + v] = vec4(0.0);
    }
  }

  uint k = params.k_begin;
  uint end = params.k_begin + params.k_count;
  uint b_end = (before.y + params.k) * params.n;
  vec4 x[4];
  vec4 w[4 * 4];
#define FOUR(s) (aligned_k ? load4(a, (a_at[s] + k) / 4u) : loadu4(a, a_at[s] + k, a_at[s] + end))
#define ONE(s) vec4(load1(a, a_at[s] + k), 0.0, 0.0, 0.0)
  [[dont_unroll]] for (; k + 4u <= end; k += 4u) {
    [[unroll]] for (uint s = 0u; s < 4u; ++s) {
      if (sources > 1u && s < left_count) x[s] = FOUR(s);
    }
    // All four rows before the next vec4 of any: the first of a row is what has to be waited for, and so it is waited
    // for four of them at a time.
    [[unroll]] for (uint v = 0u; v < 4u; ++v) {
      [[unroll]] for (uint u = 0u; u < 4u; ++u) {
        if (v < vectors) {
          w[u * 4u + v] = aligned ? load4(b, at[v]) : loadu4(b, at[v], b_end);
          at[v] += stride;
        }
      }
    }
    [[unroll]] for (uint r = 0u; r < 16u; ++r) {
      if (r < rows) {
        vec4 factor;
        BRONTES_LEFT(factor, x, r, FOUR(r))
        [[unroll]] for (uint v = 0u; v < 4u; ++v) {
          if (v < vectors) sum[r * 4u + v] += factor.x * w[v];
        }
        [[unroll]] for (uint v = 0u; v < 4u; ++v) {
          if (v < vectors) {
            [[unroll]] for (uint u = 1u; u < 4u; ++u) sum[r * 4u + v] += factor[u] * w[u * 4u + v];
          }
        }
      }
    }
  }
  if (!aligned_k) {
    [[dont_unroll]] for (; k < end; ++k) {
      [[unroll]] for (uint s = 0u; s < 4u; ++s) {
        if (sources > 1u && s < left_count) x[s] = ONE(s);
      }
      [[unroll]] for (uint v = 0u; v < 4u; ++v) {
        if (v < vectors) {
          w[v] = aligned ? load4(b, at[v]) : loadu4(b, at[v], b_end);
          at[v] += stride;
        }
      }
      [[unroll]] for (uint r = 0u; r < 16u; ++r) {
        if (r < rows) {
          vec4 factor;
          BRONTES_LEFT(factor, x, r, ONE(r))
          [[unroll]] for (uint v = 0u; v < 4u; ++v) {
            if (v < vectors) sum[r * 4u + v] += factor.x * w[v];
          }
        }
      }
    }
  }

  // Row after row moves to the front: a copy of the epilogue for every sum would take drivers seconds to compile, and
  // so does finding sums by an index.
  uint last_row = min(first_row + rows, params.m);
  [[dont_unroll]] for (uint row = first_row; row < last_row; ++row) {
    [[unroll]] for (uint v = 0u; v < 4u; ++v) {
      if (v < vectors) {
        uint local = first + 4u * (v * subgroup_lanes + lane);
        uint column = place.y * width + local;
        uint i = (before.z + row) * params.n + column;
        if (local < width) {
          if (aligned) {
            if (column < params.n) put4(i / 4u, sum[v]);
          } else {
            if (column < params.n) put1(i, sum[v].x);
            if (column + 1u < params.n) put1(i + 1u, sum[v].y);
            if (column + 2u < params.n) put1(i + 2u, sum[v].z);
            if (column + 3u < params.n) put1(i + 3u, sum[v].w);
          }
        }
      }
    }
    [[unroll]] for (uint r = 0u; r < 15u; ++r) {
      [[unroll]] for (uint v = 0u; v < 4u; ++v) {
        if (r + 1u < rows && v < vectors) sum[r * 4u + v] = sum[r * 4u + 4u + v];
      }
    }
  }
}

void main() {
  uint down = (params.m + rows - 1u) / rows;
  uint across = (params.n + width - 1u) / width;
  for (uint i = gl_SubgroupID; i < tiles; i += gl_NumSubgroups) {
    uint tile = group_index() * tiles + i;
    uint z = 0u;
    if (batched != 0u) {
      z = tile / (down * across);
      tile -= z * down * across;
    }
    uvec2 place = tile_position(tile, down, across);
    if (batched != 0u ? z < params.batch : place.x < down) {
      // Once around, but where a smaller subgroup is simulated.
      for (uint first = 0u; first < width; first += 4u * vectors * subgroup_lanes) compute(place, first, z);
    }
  }
}
