// Joins up to seven tensors along an axis. Each is seen as [outer, its own part of a row], and a row of the result
// is their parts side by side.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "grid.glsl"
#include "memory.glsl"

layout(local_size_x = 64, local_size_x_id = 0) in;
layout(constant_id = 0) const uint group_size = 64;
layout(constant_id = 1) const uint count = 1;      // of inputs
layout(constant_id = 2) const uint vectorized = 0;  // all parts are whole vec4s

layout(push_constant, std430) uniform ConcatParams {
  uint n;         // elements, or vec4s, that are written; so are all numbers below
  uint groups;
  uint row;       // of the result
  uint column;    // of the result, where the first part begins
  uint begin[8];  // of each part from there, and behind the last the end
} params;

BRONTES_INPUT(0, in0)
BRONTES_INPUT(1, in1)
BRONTES_INPUT(2, in2)
BRONTES_INPUT(3, in3)
BRONTES_INPUT(4, in4)
BRONTES_INPUT(5, in5)
BRONTES_INPUT(6, in6)
BRONTES_OUTPUT(7, out0)

#define PART(k)                                                                                    \
  if (k < count && column >= params.begin[k] && column < params.begin[k + 1]) {                    \
    uint from = outer * (params.begin[k + 1] - params.begin[k]) + column - params.begin[k];        \
    if (vectorized != 0u) {                                                                        \
      store4(out0, to, load4(in##k, from));                                                         \
    } else {                                                                                       \
      store1(out0, to, load1(in##k, from));                                                         \
    }                                                                                              \
  }

void main() {
  uint group = group_index();
  if (group >= params.groups) return;
  uint i = group * group_size + gl_LocalInvocationID.x;
  if (i >= params.n) return;
  uint width = params.begin[count];
  uint outer = i / width;
  uint column = i % width;
  uint to = outer * params.row + params.column + column;
  PART(0) PART(1) PART(2) PART(3) PART(4) PART(5) PART(6)
}
