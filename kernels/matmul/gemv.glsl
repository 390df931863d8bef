// The product of one to eight rows: C[m,n] = alpha * A[m,k] x B, where each element of B is read once, for
// all of them. It is as fast as memory gives B.
//
// B is W[n,k]: all lanes run along k, for `columns` rows of W at once so that A is read once for these. Of quantized rows
// a lane takes a word at a time, so that neighbours read neighbours of A: 16 bytes each, of which four lanes or more are
// side by side.
// B is [k,n]: `teams` teams of lanes share k, and the lanes of a team run along n.
// Either way the lanes' sums meet in shared memory. BRONTES_SUBGROUP adds up those of a subgroup beforehand.
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
#ifdef BRONTES_SUBGROUP
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_basic : require
#endif

#include "grid.glsl"
#include "matmul.glsl"
#include "weights.glsl"

layout(local_size_x = 64, local_size_x_id = 0) in;
layout(constant_id = 0) const uint group_size = 64;
layout(constant_id = 1) const uint b_layout = 1;
// plan::matmul_vectorized: bit 0 if k % 4 == 0, bit 1 if n % 4 == 0, bit 2 if k % 8 == 0.
layout(constant_id = 2) const uint vectorized = 0;
// Rows of A, at least m: 1 to 8.
layout(constant_id = 3) const uint rows = 1;
// Rows of W per workgroup: 1, 2, 4 or 8.
layout(constant_id = 4) const uint columns = 4;
// Divides group_size.
layout(constant_id = 5) const uint teams = 4;

const bool aligned = (vectorized & 1u) != 0u;
const bool four = (vectorized & 2u) != 0u;
// The last chunk of a row may reach past it. (No && here: glslang makes no constants of it.)
const uint whole_chunks = b_type == type_f16 ? 5u : b_type == type_bf16 ? 5u : 1u;
const bool ragged = (vectorized & whole_chunks) != whole_chunks;
// The sums of a word of quantized weights are scaled, and not the weights: with more rows these are fewer.
const bool hoisted = b_quantized ? rows <= 2u : false;

const uint outputs = rows * columns;
const uint lanes = group_size / teams;
// Floats of shared memory: plan::matmul_gemv_shared_bytes.
#ifdef BRONTES_SUBGROUP
const uint nk_floats = (group_size + 3) / 4 * outputs;  // subgroups have four lanes or more
#else
const uint nk_floats = group_size * outputs;
#endif
const uint kn_floats = group_size * rows * (1 + vectorized / 2 % 2 * 3);
shared float partial[b_layout * nk_floats + (1 - b_layout) * kn_floats];

#define FOUR(name, i) vec4(load1(name, i), load1(name, (i) + 1u), load1(name, (i) + 2u), load1(name, (i) + 3u))

// `copy` counts the matrices of C: those of a batch, once for each slice of k.
uint slice_of(uint copy) { return batched != 0u ? copy / params.batch : copy; }
uint matrix_of(uint copy) { return batched != 0u ? copy % params.batch : 0u; }

void weight_rows(uint tile, uint copy) {
  uint lane = gl_LocalInvocationID.x;
  uint begin = params.k_begin + slice_of(copy) * params.k_slice;
  uint end = min(begin + params.k_slice, params.k_begin + params.k_count);
  uint first = tile * columns;
  uvec3 before = rows_before(matrix_of(copy), params.n);

  // Rows past the end repeat the last one; their sums go nowhere.
  uint a_row[8];
  [[unroll]] for (uint r = 0u; r < 8u; ++r) a_row[r] = (before.x + min(r, params.m - 1u)) * params.k;
  uint w_row[8];
  uint w_at[8];  // in vec4s if aligned
  [[unroll]] for (uint c = 0u; c < 8u; ++c) {
    w_row[c] = before.y + min(first + c, params.n_count - 1u);
    w_at[c] = w_row[c] * params.k / (aligned ? 4u : 1u);
  }
  float sum[8 * 8];
  [[unroll]] for (uint i = 0u; i < 64u; ++i) sum[i] = 0.0;

  vec4 x[8];
  vec4 whole[8];
  uvec4 words[8];
  // Adds the products of x with elements 4s .. 4s + 3 of each column's chunk.
#define ADD_COLUMNS                                                                     \
  [[unroll]] for (uint c = 0u; c < 8u; ++c) {                                           \
    if (c < columns) {                                                                  \
      vec4 w;                                                                           \
      if (b_type == type_f32)                                                           \
        w = whole[c];                                                                   \
      else                                                                              \
        w = weight_decode(words[c], s);                                                 \
      [[unroll]] for (uint r = 0u; r < 8u; ++r) {                                       \
        if (r < rows) {                                                                 \
          [[unroll]] for (uint i = 0u; i < 4u; ++i) sum[r * 8u + c] += x[r][i] * w[i];  \
        }                                                                               \
      }                                                                                 \
    }                                                                                   \
  }

  // Words of quantized weights, and those with their scales: number u of each column is component u.
  uvec4 packed[8];
  uvec4 scales[4];
  float scale[8];
  float part[8 * 8];
  // Adds the products of `count` words of each column, group_size words apart. Drivers unroll its loops.
#define ADD_WORDS(count)                                                                      \
  [[unroll]] for (uint u = 0u; u < 4u; ++u) {                                                 \
    if (u < count) {                                                                          \
      uint own = word + u * group_size;                                                       \
      [[unroll]] for (uint c = 0u; c < 8u; ++c) {                                             \
        if (c < columns) packed[c][u] = loadw1(b, w_at[c] + own);                             \
      }                                                                                       \
      [[unroll]] for (uint c = 0u; c < 4u; ++c) {                                             \
        if (c * 2u < columns) scales[c][u] = loadw1(b, scales_at + own / block_words * 4u + c); \
      }                                                                                       \
    }                                                                                         \
  }                                                                                           \
  for (uint u = 0u; u < count; ++u) {                                                         \
    [[unroll]] for (uint c = 0u; c < 4u; ++c) {                                               \
      if (c * 2u < columns) {                                                                 \
        vec2 pair = weight_halves(scales[c][u] >> scales_shift);                              \
        scale[c * 2u] = weight_digit * pair.x;                                                \
        scale[c * 2u + 1u] = weight_digit * pair.y;                                           \
      }                                                                                       \
    }                                                                                         \
    [[unroll]] for (uint i = 0u; i < 64u; ++i) part[i] = 0.0;                                 \
    uint at = word + u * group_size;                                                          \
    if (b_type == type_q4_0) at = at / 4u * 8u + at % 4u;                                     \
    for (uint h = 0u; h < word_elements / 4u; ++h) {                                          \
      [[unroll]] for (uint r = 0u; r < 8u; ++r) {                                             \
        if (r < rows) x[r] = load4(a, a_row[r] / 4u + at + h * 4u);                           \
      }                                                                                       \
      [[unroll]] for (uint c = 0u; c < 8u; ++c) {                                             \
        if (c < columns) {                                                                    \
          vec4 w = weight_digits(packed[c][u], h);                                            \
          if (!hoisted) w *= scale[c];                                                        \
          [[unroll]] for (uint r = 0u; r < 8u; ++r) {                                         \
            if (r < rows) {                                                                   \
              [[unroll]] for (uint i = 0u; i < 4u; ++i) {                                     \
                if (hoisted)                                                                  \
                  part[r * 8u + c] += x[r][i] * w[i];                                         \
                else                                                                          \
                  sum[r * 8u + c] += x[r][i] * w[i];                                          \
              }                                                                               \
            }                                                                                 \
          }                                                                                   \
        }                                                                                     \
      }                                                                                       \
    }                                                                                         \
    if (hoisted) {                                                                            \
      [[unroll]] for (uint r = 0u; r < 8u; ++r) {                                             \
        [[unroll]] for (uint c = 0u; c < 8u; ++c) {                                           \
          if (r < rows && c < columns) sum[r * 8u + c] += scale[c] * part[r * 8u + c];        \
        }                                                                                     \
      }                                                                                       \
    }                                                                                         \
  }

  if (b_quantized) {
    const uint word_elements = b_type == type_q4_0 ? 8u : 4u;
    const uint block_words = 32u / word_elements;
    [[unroll]] for (uint c = 0u; c < 8u; ++c) w_at[c] = w_row[c] * weight_row_words();
    uint scales_at = weight_scales_at(first, 0u) * 4u + first % 8u / 2u;
    uint scales_shift = columns == 1u ? first % 2u * 16u : 0u;
    uint last = end / word_elements;
    uint word = begin / word_elements + lane;
    for (; word + 3u * group_size < last; word += 4u * group_size) {
      ADD_WORDS(4u)
    }
    for (; word < last; word += group_size) {
      ADD_WORDS(1u)
    }
  } else {
    uint k = begin + weight_chunk * lane;
    for (; k + weight_chunk <= end; k += weight_chunk * group_size) {
      [[unroll]] for (uint c = 0u; c < 8u; ++c) {
        if (c < columns) {
          if (b_type != type_f32)
            words[c] = weight_words(w_row[c], k);
          else if (aligned)
            whole[c] = load4(b, w_at[c] + k / 4u);
          else
            whole[c] = FOUR(b, w_at[c] + k);
        }
      }
      uint at = k;
      for (uint s = 0u; s < weight_chunk / 4u; ++s) {
        [[unroll]] for (uint r = 0u; r < 8u; ++r) {
          if (r < rows) {
            if (aligned)
              x[r] = load4(a, a_row[r] / 4u + at / 4u);
            else
              x[r] = FOUR(a, a_row[r] + at);
          }
        }
        ADD_COLUMNS
        at += 4u;
      }
    }
    // What is left of a chunk falls to one lane. Zero past the end, on both sides: an infinity there times
    // zero would be NaN.
    if (ragged) {
      if (k < end) {
        uint at = k;
        bvec4 inside = lessThan(at + uvec4(0u, 1u, 2u, 3u), uvec4(end));
        [[unroll]] for (uint c = 0u; c < 8u; ++c) {
          if (c < columns) {
            if (b_type != type_f32)
              words[c] = weight_words(w_row[c], k);
            else
              whole[c] = mix(vec4(0.0), loadu4(b, w_at[c] + k, w_at[c] + end), inside);
          }
        }
        for (uint s = 0u; s < weight_chunk / 4u; ++s) {
          [[unroll]] for (uint r = 0u; r < 8u; ++r) {
            if (r < rows) {
              uint row_end = a_row[r] + end;
              x[r] = mix(vec4(0.0), loadu4(a, min(a_row[r] + at, row_end - 1u), row_end), inside);
            }
          }
          ADD_COLUMNS
          at += 4u;
          inside = lessThan(at + uvec4(0u, 1u, 2u, 3u), uvec4(end));
        }
      }
    }
  }

#ifdef BRONTES_SUBGROUP
  uint parts = gl_NumSubgroups;
  uint stride = parts;
  [[unroll]] for (uint r = 0u; r < 8u; ++r) {
    [[unroll]] for (uint c = 0u; c < 8u; ++c) {
      if (r < rows && c < columns) sum[r * 8u + c] = subgroupAdd(sum[r * 8u + c]);
    }
  }
  if (subgroupElect()) {
    [[unroll]] for (uint r = 0u; r < 8u; ++r) {
      [[unroll]] for (uint c = 0u; c < 8u; ++c) {
        if (r < rows && c < columns) partial[(r * columns + c) * parts + gl_SubgroupID] = sum[r * 8u + c];
      }
    }
  }
#else
  const uint parts = min(8u, group_size);
  uint stride = group_size;
  [[unroll]] for (uint r = 0u; r < 8u; ++r) {
    [[unroll]] for (uint c = 0u; c < 8u; ++c) {
      if (r < rows && c < columns) partial[(r * columns + c) * group_size + lane] = sum[r * 8u + c];
    }
  }
  barrier();
  for (uint i = lane; i < outputs * parts; i += group_size) {
    uint at = i / parts * group_size + i % parts;
    float total = partial[at];
    for (uint j = parts; j + i % parts < group_size; j += parts) total += partial[at + j];
    partial[at] = total;  // which nobody else reads before the barrier
  }
#endif
  barrier();
  for (uint i = lane; i < outputs; i += group_size) {
    float total = partial[i * stride];
    for (uint j = 1u; j < parts; ++j) total += partial[i * stride + j];
    uint row = i / columns;
    uint column = first + i % columns;
    if (row < params.m && column < params.n_count)
      put1((copy * params.m + row) * params.n + params.n_begin + column, total);
  }
}

void columns_of_b(uint tile, uint copy) {
  uint local = gl_LocalInvocationID.x;
  uint team = local / lanes;
  uint begin = params.k_begin + slice_of(copy) * params.k_slice;
  uint end = min(begin + params.k_slice, params.k_begin + params.k_count);
  // In vec4s if `four`, else in floats.
  uint width = four ? params.n / 4u : params.n;
  uint first = tile * lanes;
  uvec3 before = rows_before(matrix_of(copy), params.k);
  uint at = before.y * width + min(first + local % lanes, width - 1u);

  uint a_row[8];
  vec4 sum[8];
  [[unroll]] for (uint r = 0u; r < 8u; ++r) {
    a_row[r] = (before.x + min(r, params.m - 1u)) * params.k;
    sum[r] = vec4(0.0);
  }

#define LOAD_B(i) (four ? load4(b, i) : vec4(load1(b, i), 0.0, 0.0, 0.0))
  uint k = begin + 4u * team;
  for (; k + 4u <= end; k += 4u * teams) {
    uint i = k * width + at;
    vec4 w[4];
    [[unroll]] for (uint u = 0u; u < 4u; ++u) w[u] = LOAD_B(i + u * width);
    [[unroll]] for (uint r = 0u; r < 8u; ++r) {
      if (r < rows) {
        vec4 x;
        if (aligned)
          x = load4(a, a_row[r] / 4u + k / 4u);
        else
          x = FOUR(a, a_row[r] + k);
        [[unroll]] for (uint u = 0u; u < 4u; ++u) {
          if (four)
            sum[r] += x[u] * w[u];
          else
            sum[r].x += x[u] * w[u].x;
        }
      }
    }
  }
  // The last one to three of k, which fall to one team.
  if (!aligned) {
    for (; k < end; ++k) {
      uint i = k * width + at;
      vec4 w = LOAD_B(i);
      [[unroll]] for (uint r = 0u; r < 8u; ++r) {
        if (r < rows) {
          float x = load1(a, a_row[r] + k);
          if (four)
            sum[r] += x * w;
          else
            sum[r].x += x * w.x;
        }
      }
    }
  }

  const uint planes = four ? 4u : 1u;
  [[unroll]] for (uint r = 0u; r < 8u; ++r) {
    if (r < rows) {
      partial[planes * r * group_size + local] = sum[r].x;
      if (four) {
        [[unroll]] for (uint i = 1u; i < 4u; ++i) partial[(4u * r + i) * group_size + local] = sum[r][i];
      }
    }
  }
  barrier();
  for (uint o = local; o < rows * lanes; o += group_size) {
    uint row = o / lanes;
    uint column = first + o % lanes;
    uint i = planes * row * group_size + o % lanes;
    vec4 total = vec4(0.0);
    for (uint j = 0u; j < teams; ++j) {
      total.x += partial[i];
      if (four) {
        total.y += partial[i + group_size];
        total.z += partial[i + 2u * group_size];
        total.w += partial[i + 3u * group_size];
      }
      i += lanes;
    }
    if (row < params.m && column < width) {
      uint to = (copy * params.m + row) * width + column;
      if (four)
        put4(to, total);
      else
        put1(to, total.x);
    }
  }
}

void main() {
  uint group = group_index();
  if (group >= params.groups) return;
  if (b_layout == layout_nk) {
    uint tiles = (params.n_count + columns - 1u) / columns;
    weight_rows(group % tiles, group / tiles);
  } else {
    uint across = four ? 4u * lanes : lanes;
    uint tiles = (params.n + across - 1u) / across;
    columns_of_b(group % tiles, group / tiles);
  }
}
