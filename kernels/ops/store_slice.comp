// Writes elements, in order, to some of another tensor: unit u of the input goes to offset + the coordinates of u times
// the strides. The elements between them stay as they are.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "grid.glsl"
#include "memory.glsl"

layout(local_size_x = 64, local_size_x_id = 0) in;
layout(constant_id = 0) const uint group_size = 64;
// Elements of a unit: 4 if rows, and whatever they begin at, are whole vec4s; else 1.
layout(constant_id = 1) const uint columns = 1;
layout(constant_id = 2) const uint rank = 1;

layout(push_constant, std430) uniform StoreSliceParams {
  uint n;  // units; so are all numbers below
  uint groups;
  uint offset;
  uint strides[8];  // the last dim first
  uint extents[7];  // likewise, of all dims but the outermost
} params;

BRONTES_INPUT(0, in0)
BRONTES_OUTPUT(1, out0)

// Numbers wrap, so that strides may be negative.
#define DIM(d)                                           \
  if (d + 1u < rank) {                                   \
    into += rest % params.extents[d] * params.strides[d]; \
    rest /= params.extents[d];                           \
  }

void main() {
  uint group = group_index();
  if (group >= params.groups) return;
  uint unit = group * group_size + gl_LocalInvocationID.x;
  if (unit >= params.n) return;
  uint into = params.offset;
  uint rest = unit;
  DIM(0u) DIM(1u) DIM(2u) DIM(3u) DIM(4u) DIM(5u) DIM(6u)
  into += rest * params.strides[rank - 1u];
  if (columns == 4u) {
    store4(out0, into, load4(in0, unit));
  } else {
    store1(out0, into, load1(in0, unit));
  }
}
