// relu(x) * scale + y for whole vec4s, as one would write it by hand for just that: what the fused
// program of elementwise.comp is measured against. The indices, the memory access and what becomes of
// NaN, -0 and denormals are the same, and so are the results, bit by bit: product and sum are rounded each by itself.
#version 450

layout(local_size_x = 256) in;

layout(push_constant, std430) uniform Params {
  uint n;
  uint groups;
  float scale;
} params;

layout(set = 0, binding = 0, std430) restrict readonly buffer X { vec4 x[]; };
layout(set = 0, binding = 1, std430) restrict readonly buffer Y { vec4 y[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Z { vec4 z[]; };

void main() {
  uint group =
      gl_WorkGroupID.x + gl_NumWorkGroups.x * (gl_WorkGroupID.y + gl_NumWorkGroups.y * gl_WorkGroupID.z);
  if (group >= params.groups) return;
  uint at = group * 256u + gl_LocalInvocationID.x;
  if (at >= params.n / 4u) return;

  vec4 value = x[at];
  // As integers, -Inf to -0 are the least; NaNs of either sign are above.
  value = mix(value, vec4(0.0), lessThanEqual(floatBitsToInt(value), ivec4(0xff800000)));
  precise vec4 result = value * params.scale + y[at];
  z[at] = result;
}
