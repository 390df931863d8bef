// y = x + amount, as plain as it gets: what a user who writes Vulkan by hand begins with.
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Input { float x[]; };
layout(std430, binding = 1) writeonly buffer Output { float y[]; };
layout(push_constant) uniform Params {
  uint count;
  uint from;  // elements into x and y
  uint to;
  float amount;
};

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < count) y[to + i] = x[from + i] + amount;
}
