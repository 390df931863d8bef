// Transposes matrices: out[b][j][i] = in[offset + b * batch_stride + i * row_stride + j]. An invocation turns a block of
// four by four, and a workgroup a square of such blocks, so that whole cache lines are read and written. `lanes` blocks
// side by side come first, then those below them: CPU drivers run subgroup after subgroup, and in this order they finish
// the cache lines that they write while they still have them.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "grid.glsl"
#include "memory.glsl"

layout(local_size_x = 64, local_size_x_id = 0) in;
layout(constant_id = 0) const uint group_size = 64;  // side * side
layout(constant_id = 1) const uint side = 8;         // of the square of a workgroup, in blocks
layout(constant_id = 2) const uint vec4_in = 0;      // rows of the input begin at whole vec4s, and are such
layout(constant_id = 3) const uint vec4_out = 0;     // so do rows of the result
layout(constant_id = 4) const uint lanes = 8;        // divides side

layout(push_constant, std430) uniform TransposeParams {
  uint rows;     // of the input: i
  uint columns;  // j
  uint offset;
  uint row_stride;
  uint batch_stride;
  uint squares_i;  // that cover the rows
  uint squares_j;
  uint groups;
} params;

BRONTES_INPUT(0, in0)
BRONTES_OUTPUT(1, out0)

// Rows past the last are that one once more, and are not written.
#define ROW(k, name)                                                              \
  uint name##_begin = begin + min(i + k, params.rows - 1u) * params.row_stride;   \
  vec4 name = vec4_in != 0u ? load4(in0, (name##_begin + j) / 4u)                 \
                            : loadu4(in0, name##_begin + j, name##_begin + params.columns);

#define COLUMN(k, c)                                                              \
  if (j + k < params.columns) {                                                   \
    uint at = to + k * params.rows;                                               \
    if (vec4_out != 0u) {                                                         \
      store4(out0, at / 4u, vec4(row0.c, row1.c, row2.c, row3.c));                \
    } else {                                                                      \
      store1(out0, at, row0.c);                                                   \
      if (i + 1u < params.rows) store1(out0, at + 1u, row1.c);                    \
      if (i + 2u < params.rows) store1(out0, at + 2u, row2.c);                    \
      if (i + 3u < params.rows) store1(out0, at + 3u, row3.c);                    \
    }                                                                             \
  }

void main() {
  uint group = group_index();
  if (group >= params.groups) return;
  uint local = gl_LocalInvocationID.x;
  uint square = group / params.squares_j;
  // Neighbouring lanes read neighbouring vec4s.
  uint strip = local / (lanes * side);
  uint j = (group % params.squares_j * side + strip * lanes + local % lanes) * 4u;
  uint i = (square % params.squares_i * side + local / lanes % side) * 4u;
  uint batch = square / params.squares_i;
  if (i >= params.rows || j >= params.columns) return;

  uint begin = params.offset + batch * params.batch_stride;
  ROW(0u, row0) ROW(1u, row1) ROW(2u, row2) ROW(3u, row3)
  uint to = batch * params.columns * params.rows + j * params.rows + i;
  COLUMN(0u, x) COLUMN(1u, y) COLUMN(2u, z) COLUMN(3u, w)
}
