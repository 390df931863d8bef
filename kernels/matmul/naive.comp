// C[m,n] = alpha * A[m,k] x B, one invocation per element of C. The reference for the other kernels.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "grid.glsl"
#include "matmul.glsl"
#include "weights.glsl"

layout(local_size_x = 16, local_size_x_id = 0, local_size_y = 4, local_size_y_id = 1) in;
layout(constant_id = 0) const uint group_x = 16;
layout(constant_id = 1) const uint group_y = 4;
layout(constant_id = 2) const uint b_layout = 0;

void main() {
  uint group = group_index();
  if (group >= params.groups) return;
  uint tiles_n = (params.n_count + group_x - 1u) / group_x;
  uint z = 0u;
  if (batched != 0u) {
    uint tiles = (params.m + group_y - 1u) / group_y * tiles_n;
    z = group / tiles;
    group -= z * tiles;
  }
  uint row = group / tiles_n * group_y + gl_LocalInvocationID.y;
  uint column = group % tiles_n * group_x + gl_LocalInvocationID.x;
  if (row >= params.m || column >= params.n_count) return;

  uvec3 before = rows_before(z, b_layout == layout_nk ? params.n : params.k);
  uint end = params.k_begin + params.k_count;
  float sum = 0.0;
  uint k = params.k_begin;
#define ADD(u)                                                                           \
  sum += load1(a, (before.x + row) * params.k + k + u) *                                 \
         (b_layout == layout_nk ? weight1(before.y + column, k + u)                       \
                                : load1(b, (before.y + k + u) * params.n + column));
  for (; k + 4u <= end; k += 4u) {
    ADD(0u) ADD(1u) ADD(2u) ADD(3u)
  }
  for (; k < end; ++k) {
    ADD(0u)
  }

  put1((before.z + row) * params.n + params.n_begin + column, sum);
}
