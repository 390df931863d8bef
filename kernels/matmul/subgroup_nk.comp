// C[m,n] = alpha * A[m,k] x W[n,k]^T for CPU drivers, where lanes are SIMD lanes: no shared memory and no
// barriers. A subgroup computes a tile of C. Its lanes run along k, a vec4 each, of floats or of packed
// weights, so that every load is contiguous; each lane adds up its share of every element, and the shares meet once, at the end.
#version 450
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_basic : require

#include "grid.glsl"
#include "lanes.glsl"
#include "matmul.glsl"
#include "tiles.glsl"
#include "weights.glsl"

layout(local_size_x = 64, local_size_x_id = 0) in;
// plan::matmul_vectorized: bit 0 if k % 4 == 0, bit 2 if k % 8 == 0.
layout(constant_id = 1) const uint vectorized = 0;
// The tile: up to 8 rows of A by 1, 2, 4, 8 or 16 rows of W, and no more of W than twice the lanes of a subgroup.
layout(constant_id = 2) const uint rows = 1;
layout(constant_id = 3) const uint columns = 8;
// Tiles per workgroup: one for each subgroup.
layout(constant_id = 4) const uint tiles = 8;

const bool aligned = (vectorized & 1u) != 0u;
// The last chunk of a row may reach past it. (No && here: glslang makes no constants of it.)
const uint whole_chunks = b_type == type_f16 ? 5u : b_type == type_bf16 ? 5u : 1u;
// Rows of f32 that do not begin on a vec4.
const bool split = b_type == type_f32 ? !aligned : false;
const bool ragged = (vectorized & whole_chunks) != whole_chunks;

void compute(uint tile) {
  uint down = (params.m + rows - 1u) / rows;
  uint across = (params.n_count + columns - 1u) / columns;
  uint z = 0u;
  if (batched != 0u) {
    z = tile / (down * across);
    if (z >= params.batch) return;
    tile -= z * down * across;
  }
  uvec3 before = rows_before(z, params.n);
  uvec2 place = tile_position(tile, down, across);
  uint first_row = place.x * rows;
  uint first_column = place.y * columns;
  if (first_row >= params.m) return;

  // Rows past the end repeat the last one; their sums go nowhere. What the loop needs of a row is
  // computed here, because not every driver moves it out of loops: where it begins, in floats of A
  // or in vec4s, and in vec4s of W but for rows that do not begin on one.
  uint a_row[8];
  [[unroll]] for (uint r = 0u; r < 8u; ++r) {
    a_row[r] = (before.x + min(first_row + r, params.m - 1u)) * params.k / (ragged ? 1u : 4u);
  }
  uint w_row[16];
  uint w_at[16];
  [[unroll]] for (uint c = 0u; c < 16u; ++c) {
    w_row[c] = before.y + min(first_column + c, params.n_count - 1u);
    w_at[c] = w_row[c] * weight_row_words() / (split ? 1u : 4u);
  }
  float sum[8 * 16];
  [[unroll]] for (uint i = 0u; i < 128u; ++i) sum[i] = 0.0;

  vec4 x[8];
  vec4 whole[16];
  uvec4 words[16];
  float scale[16];
  uint scales_at[2];
  if (b_quantized) {
    scales_at[0] = weight_scales_at(first_column, 0u);
    scales_at[1] = weight_scales_at(min(first_column + 8u, params.n_count - 1u), 0u);
  }
  uint end = params.k_begin + params.k_count;
  uint last_chunk = (end + weight_chunk - 1u) / weight_chunk;
  for (uint chunk = params.k_begin / weight_chunk + gl_SubgroupInvocationID; chunk < last_chunk; chunk += subgroup_lanes) {
    uint at = chunk * weight_chunk;
    bvec4 inside = lessThan(at + uvec4(0u, 1u, 2u, 3u), uvec4(end));
    [[unroll]] for (uint c = 0u; c < 16u; ++c) {
      if (c < columns) {
        if (split) {
          whole[c] = mix(vec4(0.0), loadu4(b, w_at[c] + at, w_at[c] + end), inside);
        } else if (b_type == type_f32) {
          whole[c] = load4(b, w_at[c] + chunk);
        } else if (!b_quantized) {
          words[c] = loadw4(b, w_at[c] + chunk);
        }
      }
    }
    if (b_quantized) {
      // All of A that the chunk needs, and then one column after the other is unpacked, added up and scaled: few sums at
      // a time, and one product for each chunk in place of one for each weight.
      vec4 left[8 * 8];
      [[unroll]] for (uint s = 0u; s < 8u; ++s) {
        [[unroll]] for (uint r = 0u; r < 8u; ++r) {
          if (r < rows && s < weight_chunk / 4u) left[r * 8u + s] = load4(a, a_row[r] + at / 4u + s);
        }
      }
      // Eight rows of W have their scales side by side.
      [[unroll]] for (uint g = 0u; g < 2u; ++g) {
        if (g * 8u < columns) {
          uvec4 eight = loadw4(b, scales_at[g] + at / 32u);
          if (columns <= 4u && (first_column & 4u) != 0u) eight.xy = eight.zw;
          if (columns <= 2u && (first_column & 2u) != 0u) eight.x = eight.y;
          if (columns == 1u && (first_column & 1u) != 0u) eight.x >>= 16;
          [[unroll]] for (uint i = 0u; i < 4u; ++i) {
            vec2 pair = weight_halves(eight[i]);
            scale[g * 8u + 2u * i] = pair.x;
            scale[g * 8u + 2u * i + 1u] = pair.y;
          }
        }
      }
      [[unroll]] for (uint c = 0u; c < 16u; ++c) {
        if (c < columns) {
          uvec4 quants = loadw4(b, w_at[c] + chunk);
          float part[8];
          [[unroll]] for (uint r = 0u; r < 8u; ++r) part[r] = 0.0;
          [[unroll]] for (uint s = 0u; s < 8u; ++s) {
            if (s < weight_chunk / 4u) {
              vec4 w = weight_decode(quants, s % (weight_chunk / 4u));
              [[unroll]] for (uint r = 0u; r < 8u; ++r) {
                if (r < rows) part[r] += dot(left[r * 8u + s], w);
              }
            }
          }
          [[unroll]] for (uint r = 0u; r < 8u; ++r) {
            if (r < rows) sum[r * 16u + c] += scale[c] * part[r];
          }
        }
      }
    } else {
      for (uint s = 0u; s < weight_chunk / 4u; ++s) {
        // Zero past the end: whatever is there, a NaN say, must not meet the zeros that pad a row of W.
        [[unroll]] for (uint r = 0u; r < 8u; ++r) {
          if (r < rows) {
            if (ragged)
              x[r] = mix(vec4(0.0), loadu4(a, a_row[r] + min(at, end - 1u), a_row[r] + end), inside);
            else
              x[r] = load4(a, a_row[r] + at / 4u);
          }
        }
        [[unroll]] for (uint c = 0u; c < 16u; ++c) {
          if (c < columns) {
            vec4 w = b_type == type_f32 ? whole[c] : weight_decode(words[c], s);
            [[unroll]] for (uint r = 0u; r < 8u; ++r) {
              if (r < rows) sum[r * 16u + c] += dot(x[r], w);
            }
          }
        }
        at += 4u;
        if (ragged) inside = lessThan(at + uvec4(0u, 1u, 2u, 3u), uvec4(end));
      }
    }
  }

  // Lane c writes column c, and column c + lanes.
  uint lane = gl_SubgroupInvocationID;
  [[unroll]] for (uint r = 0u; r < 8u; ++r) {
    if (r < rows && first_row + r < params.m) {
      float mine = 0.0;
      float next = 0.0;
      [[unroll]] for (uint c = 0u; c < 16u; ++c) {
        if (c < columns) {
          float total = subgroupAdd(sum[r * 16u + c]);
          mine = lane == c ? total : mine;
          if (c >= 4u) next = lane + subgroup_lanes == c ? total : next;
        }
      }
      uint i = (before.z + first_row + r) * params.n + params.n_begin + first_column;
      if (lane < columns && first_column + lane < params.n_count) put1(i + lane, mine);
      if (columns > 4u) {
        uint c = lane + subgroup_lanes;
        if (c < columns && first_column + c < params.n_count) put1(i + c, next);
      }
    }
  }
}

void main() {
  uint first = group_index() * tiles;
  for (uint tile = gl_SubgroupID; tile < tiles; tile += gl_NumSubgroups) compute(first + tile);
}
