// C[m,n] = alpha * A[m,k] x W[n,k]^T for CPU drivers, where lanes are SIMD lanes: no shared memory and no
// barriers. A subgroup computes a tile of C. Its lanes run along k, a vec4 each, of floats or of packed
// weights, so that every load is contiguous; each lane adds up its share of every element, and the shares meet once, at the end.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_basic : require

#include "grid.glsl"
#include "matmul.glsl"
#include "tiles.glsl"
#include "weights.glsl"

layout(local_size_x = 64, local_size_x_id = 0) in;
// plan::matmul_vectorized: bit 0 if k % 4 == 0, bit 2 if k % 8 == 0.
layout(constant_id = 1) const uint vectorized = 0;
// The tile: up to 8 rows of A by up to 16 rows of W, and no more of W than twice the lanes of a subgroup.
layout(constant_id = 2) const uint rows = 1;
layout(constant_id = 3) const uint columns = 8;
// Tiles per workgroup: one for each subgroup, of the size the device says it has.
layout(constant_id = 4) const uint tiles = 8;

#define FOR_ROWS(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define FOR_COLUMNS(DO, r)                                                              \
  DO(r, 0) DO(r, 1) DO(r, 2) DO(r, 3) DO(r, 4) DO(r, 5) DO(r, 6) DO(r, 7)             \
  DO(r, 8) DO(r, 9) DO(r, 10) DO(r, 11) DO(r, 12) DO(r, 13) DO(r, 14) DO(r, 15)

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
  uint w_row[16];
  uint w_at[16];
  float sum[128];
#define BEGIN_ROW(r) a_row[r] = (before.x + min(first_row + r, params.m - 1u)) * params.k / (ragged ? 1u : 4u);
#define BEGIN_COLUMN(r, c)                                                     \
  w_row[c] = before.y + min(first_column + c, params.n_count - 1u);            \
  w_at[c] = w_row[c] * weight_row_words() / (split ? 1u : 4u);
#define BEGIN_SUM(r, c) sum[r * 16 + c] = 0.0;
#define BEGIN_SUMS(r) FOR_COLUMNS(BEGIN_SUM, r)
  FOR_ROWS(BEGIN_ROW)
  FOR_COLUMNS(BEGIN_COLUMN, 0)
  FOR_ROWS(BEGIN_SUMS)

  vec4 x[8];
  vec4 whole[16];
  uvec4 words[16];
  float scale[16];
#define FETCH(unused, c)                                                                              \
  if (c < columns) {                                                                                  \
    if (split) {                                                                                      \
      whole[c] = mix(vec4(0.0), loadu4(b, w_at[c] + at, w_at[c] + end), inside);                      \
    } else if (b_type == type_f32) {                                                                  \
      whole[c] = load4(b, w_at[c] + chunk);                                                           \
    } else {                                                                                          \
      words[c] = loadw4(b, w_at[c] + chunk);                                                          \
      if (b_quantized) scale[c] = weight_scale(w_row[c], at);                                         \
    }                                                                                                 \
  }
  // Zero past the end: whatever is there, a NaN say, must not meet the zeros that pad a row of W.
#define LOAD_ROW(r)                                                                                   \
  if (r < rows) {                                                                                     \
    if (ragged)                                                                                       \
      x[r] = mix(vec4(0.0), loadu4(a, a_row[r] + min(at, end - 1u), a_row[r] + end), inside);         \
    else                                                                                              \
      x[r] = load4(a, a_row[r] + at / 4u);                                                            \
  }
#define ADD(r, c) \
  if (r < rows) sum[r * 16 + c] += dot(x[r], w);
#define ADD_COLUMN(unused, c)                                                                         \
  if (c < columns) {                                                                                  \
    vec4 w = b_type == type_f32 ? whole[c] : weight_decode(words[c], s);                              \
    if (b_quantized) w *= scale[c];                                                                   \
    ADD(0, c) ADD(1, c) ADD(2, c) ADD(3, c) ADD(4, c) ADD(5, c) ADD(6, c) ADD(7, c)                   \
  }

  uint end = params.k_begin + params.k_count;
  uint last_chunk = (end + weight_chunk - 1u) / weight_chunk;
  for (uint chunk = params.k_begin / weight_chunk + gl_SubgroupInvocationID; chunk < last_chunk; chunk += gl_SubgroupSize) {
    uint at = chunk * weight_chunk;
    bvec4 inside = lessThan(at + uvec4(0u, 1u, 2u, 3u), uvec4(end));
    FOR_COLUMNS(FETCH, 0)
    for (uint s = 0u; s < weight_chunk / 4u; ++s) {
      FOR_ROWS(LOAD_ROW)
      FOR_COLUMNS(ADD_COLUMN, 0)
      at += 4u;
      if (ragged) inside = lessThan(at + uvec4(0u, 1u, 2u, 3u), uvec4(end));
    }
  }

  // Lane c writes column c, and column c + lanes.
  uint lane = gl_SubgroupInvocationID;
#define MEET(r, c)                                                   \
  if (c < columns) {                                                 \
    float total = subgroupAdd(sum[r * 16 + c]);                      \
    mine = lane == c ? total : mine;                                 \
    if (c >= 4) next = lane + gl_SubgroupSize == c ? total : next;   \
  }
#define PUT(row, at, value)                                               \
  if (at < columns && first_column + at < params.n_count)            \
    put1((before.z + first_row + row) * params.n + params.n_begin + first_column + at, value);
#define FINISH(r)                                                    \
  if (r < rows && first_row + r < params.m) {                        \
    float mine = 0.0;                                                \
    float next = 0.0;                                                \
    FOR_COLUMNS(MEET, r)                                             \
    PUT(r, lane, mine)                                                  \
    if (columns > 4u) { PUT(r, lane + gl_SubgroupSize, next) }          \
  }
  FOR_ROWS(FINISH)
}

void main() {
  uint first = group_index() * tiles;
  for (uint tile = gl_SubgroupID; tile < tiles; tile += gl_NumSubgroups) compute(first + tile);
}
