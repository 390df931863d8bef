// Which rows are written where: out[k] is the row index[k], counted from the end if negative, or -1 where that is not
// there, or where a later entry of the same span names the same row.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "grid.glsl"
#include "memory.glsl"

layout(local_size_x = 64, local_size_x_id = 0) in;
layout(constant_id = 0) const uint group_size = 64;

layout(push_constant, std430) uniform LastRowsParams {
  uint n;       // entries of the index
  uint span;
  int entries;  // rows of the table
  uint groups;
} params;

BRONTES_INPUT(0, index)
BRONTES_OUTPUT(1, out0)

int row_of(uint k) {
  int row = floatBitsToInt(load1(index, k));
  return row < 0 ? row + params.entries : row;
}

void main() {
  uint group = group_index();
  if (group >= params.groups) return;
  uint k = group * group_size + gl_LocalInvocationID.x;
  if (k >= params.n) return;
  int row = row_of(k);
  bool counts = row >= 0 && row < params.entries;
  uint end = min((k / params.span + 1u) * params.span, params.n);
  uint later = k + 1u;
  while (counts && later < end) {
    counts = row_of(later) != row;
    ++later;
  }
  store1(out0, k, intBitsToFloat(counts ? row : -1));
}
