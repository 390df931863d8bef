// The sum over each subgroup.
#version 450
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };

void main() { y[gl_GlobalInvocationID.x] = subgroupAdd(x[gl_GlobalInvocationID.x]); }
