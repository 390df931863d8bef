// Adds to a buffer in place, through shared memory.
#version 450
layout(local_size_x = 8, local_size_y = 4) in;
layout(binding = 0) buffer Total { float total[]; };
layout(binding = 1) readonly buffer More { float more[]; };
shared vec3 parts[32];
shared float last;

void main() {
  const uint lane = gl_LocalInvocationIndex;
  const uint i = gl_WorkGroupID.x * 32 + lane;
  parts[lane] = vec3(i < more.length() ? more[i] : 0.0, 0.0, 0.0);
  if (lane == 0) last = 0.0;
  barrier();
  if (i < total.length()) total[i] += parts[lane].x + last;
}
