// Writes rows over others: row k of rows[.., width] becomes row target[k] of out, or none where that is -1. No two are
// the same.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "grid.glsl"
#include "memory.glsl"

layout(local_size_x = 64, local_size_x_id = 0) in;
layout(constant_id = 0) const uint group_size = 64;
// Elements of an invocation: 4 if rows are whole vec4s, else 1.
layout(constant_id = 1) const uint columns = 1;

layout(push_constant, std430) uniform ScatterRowsParams {
  uint first;  // the first row
  uint units;  // of `columns` elements each
  uint width;  // units of a row
  uint groups;
} params;

BRONTES_INPUT(0, rows)
BRONTES_INPUT(1, target)
BRONTES_OUTPUT(2, out0)

void main() {
  uint group = group_index();
  if (group >= params.groups) return;
  uint unit = group * group_size + gl_LocalInvocationID.x;
  if (unit >= params.units) return;
  uint row = params.first + unit / params.width;
  uint column = unit % params.width;
  int to = floatBitsToInt(load1(target, row));
  if (to < 0) return;
  uint from = row * params.width + column;
  uint into = uint(to) * params.width + column;
  if (columns == 4u) {
    store4(out0, into, load4(rows, from));
  } else {
    store1(out0, into, load1(rows, from));
  }
}
