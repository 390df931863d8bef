// Rows of a table by their numbers: out[rows, width], row r of which is row index[r] of the table. Elements are words of
// any type.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "epilogue.glsl"
#include "grid.glsl"
#include "memory.glsl"

layout(local_size_x = 64, local_size_x_id = 0) in;
layout(constant_id = 0) const uint group_size = 64;
// Elements of an invocation: 4 if rows are whole vec4s, else 1.
layout(constant_id = 1) const uint columns = 1;

layout(push_constant, std430) uniform GatherParams {
  uint units;   // of `columns` elements each
  uint width;   // units of a row
  int entries;  // rows of the table
  uint nothing; // the word that rows past the table consist of
  uint groups;
  EpilogueParams epilogue;
} params;

BRONTES_INPUT(0, table)
BRONTES_INPUT(1, index)
BRONTES_OUTPUT(2, out0)

void main() {
  uint group = group_index();
  if (group >= params.groups) return;
  uint unit = group * group_size + gl_LocalInvocationID.x;
  if (unit >= params.units) return;
  int row = floatBitsToInt(load1(index, unit / params.width));
  if (row < 0) row += params.entries;
  bool exists = row >= 0 && row < params.entries;
  uint from = (exists ? uint(row) : 0u) * params.width + unit % params.width;
  if (columns == 4u) {
    vec4 value = vec4(uintBitsToFloat(params.nothing));
    if (exists) value = load4(table, from);
    BRONTES_EPILOGUE4(value, unit, params.epilogue)
    store4(out0, unit, value);
  } else {
    float value = uintBitsToFloat(params.nothing);
    if (exists) value = load1(table, from);
    BRONTES_EPILOGUE1(value, unit, params.epilogue)
    store1(out0, unit, value);
  }
}
