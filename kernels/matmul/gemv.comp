// The product of one row: C[1,n] = alpha * A[1,k] x B.
//
// B is W[n,k]: all lanes run along k, for `rows` rows of W at once so that A is read once for them.
// B is [k,n]: group_size / slices lanes run along n; the `slices` groups of them split k.
// Either way the lanes' sums meet in shared memory.
#version 450
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require

#include "grid.glsl"
#include "matmul.glsl"

// A power of two.
layout(local_size_x = 64, local_size_x_id = 0) in;
layout(constant_id = 0) const uint group_size = 64;
layout(constant_id = 1) const uint b_layout = 1;
// plan::matmul_vectorized: bit 0 if k % 4 == 0, bit 1 if n % 4 == 0.
layout(constant_id = 2) const uint vectorized = 0;
// Rows of W per workgroup, 1 to 8.
layout(constant_id = 3) const uint rows = 4;
// A power of two, at most group_size.
layout(constant_id = 4) const uint slices = 4;

shared float partial[group_size * (b_layout * rows + (1 - b_layout) * 4)];

#define FOR_ROWS(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)

void weight_rows(uint group) {
  uint lane = gl_LocalInvocationID.x;
  uint end = params.k_begin + params.k_count;
  uint first = group * rows;
  float sum[8];

  // Rows past the end repeat the last one; their sums go nowhere.
#define BEGIN(r) \
  sum[r] = 0.0;  \
  uint row##r = min(first + r, params.n - 1u) * params.k;
  FOR_ROWS(BEGIN)

  if ((vectorized & 1u) != 0u) {
    for (uint k = params.k_begin + 4u * lane; k < end; k += 4u * group_size) {
      vec4 x = load4(a, k / 4u);
#define ADD_VECTOR(r) \
  if (r < rows) sum[r] += dot(x, load4(b, (row##r + k) / 4u));
      FOR_ROWS(ADD_VECTOR)
    }
  } else {
    for (uint k = params.k_begin + lane; k < end; k += 4u * group_size) {
      uvec4 at = k + uvec4(0u, group_size, 2u * group_size, 3u * group_size);  // no vector product of constants: specialize() folds scalars
      bvec4 inside = lessThan(at, uvec4(end));
      at = min(at, uvec4(end - 1u));
      vec4 x = mix(vec4(0.0), vec4(load1(a, at.x), load1(a, at.y), load1(a, at.z), load1(a, at.w)), inside);
      // Zero on both sides past the end: an infinity there times zero would be NaN.
#define ADD_SCALARS(r)                                                                                     \
  if (r < rows) {                                                                                         \
    uvec4 w = row##r + at;                                                                                \
    sum[r] += dot(x, mix(vec4(0.0), vec4(load1(b, w.x), load1(b, w.y), load1(b, w.z), load1(b, w.w)), inside)); \
  }
      FOR_ROWS(ADD_SCALARS)
    }
  }

#define SHARE(r) \
  if (r < rows) partial[r * group_size + lane] = sum[r];
  FOR_ROWS(SHARE)
  // Kept a loop because every barrier costs lavapipe much compile time.
  [[dont_unroll]] for (uint width = group_size / 2u; width > 0u; width /= 2u) {
    barrier();
    if (lane < width) {
#define MEET(r)                                          \
  if (r < rows) {                                        \
    sum[r] += partial[r * group_size + lane + width];    \
    partial[r * group_size + lane] = sum[r];             \
  }
      FOR_ROWS(MEET)
    }
  }
  if (lane == 0u) {
#define FINISH(r) \
  if (r < rows && first + r < params.n) put1(first + r, sum[r]);
    FOR_ROWS(FINISH)
  }
}

void columns(uint group) {
  const bool four = (vectorized & 2u) != 0u;
  const uint lanes = group_size / slices;
  uint local = gl_LocalInvocationID.x;
  uint slice = local / lanes;
  uint end = params.k_begin + params.k_count;
  // In vec4s if `four`, else in floats.
  uint width = four ? params.n / 4u : params.n;
  uint column = group * lanes + local % lanes;
  uint at = min(column, width - 1u);
  vec4 sum = vec4(0.0);

  uint k = params.k_begin + 4u * slice;
  for (; k + 4u <= end; k += 4u * slices) {
    vec4 x = load4(a, k / 4u);
    uint i = k * width + at;
    if (four) {
      sum += x.x * load4(b, i);
      sum += x.y * load4(b, i + width);
      sum += x.z * load4(b, i + 2u * width);
      sum += x.w * load4(b, i + 3u * width);
    } else {
      sum.x += x.x * load1(b, i);
      sum.x += x.y * load1(b, i + width);
      sum.x += x.z * load1(b, i + 2u * width);
      sum.x += x.w * load1(b, i + 3u * width);
    }
  }
  // The last one to three of k, which fall to one slice.
#define ADD_REST(u)                                                    \
  if (k + u < end) {                                              \
    if (four)                                                     \
      sum += load1(a, k + u) * load4(b, (k + u) * width + at);    \
    else                                                          \
      sum.x += load1(a, k + u) * load1(b, (k + u) * width + at);  \
  }
  ADD_REST(0u) ADD_REST(1u) ADD_REST(2u)

#define PUT(part)                                              \
  partial[local] = part.x;                                     \
  if (four) {                                                  \
    partial[group_size + local] = part.y;                      \
    partial[2u * group_size + local] = part.z;                 \
    partial[3u * group_size + local] = part.w;                 \
  }
  PUT(sum)
  [[dont_unroll]] for (uint height = slices / 2u; height > 0u; height /= 2u) {
    barrier();
    if (slice < height) {
      uint other = local + height * lanes;
      sum.x += partial[other];
      if (four) {
        sum.y += partial[group_size + other];
        sum.z += partial[2u * group_size + other];
        sum.w += partial[3u * group_size + other];
      }
      PUT(sum)
    }
  }
  if (slice == 0u && column < width) {
    if (four)
      put4(column, sum);
    else
      put1(column, sum.x);
  }
}

void main() {
  uint group = group_index();
  if (group >= params.groups) return;
  if (b_layout == layout_nk)
    weight_rows(group);
  else
    columns(group);
}
