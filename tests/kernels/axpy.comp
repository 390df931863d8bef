// z = a x + y, with a workgroup size, a bias and a switch that specialization sets.
#version 450
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const float bias = 0.0;
layout(constant_id = 2) const bool negate = false;
layout(constant_id = 3) const int shift = 0;

layout(push_constant) uniform Params {
  float a;
  uint n;
};
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 4) readonly buffer Y { float y[]; };
layout(binding = 2) writeonly buffer Z { float z[]; };

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= n) return;
  const float sum = a * x[i] + y[i] + bias + float(shift);
  z[i] = negate ? -sum : sum;
}
