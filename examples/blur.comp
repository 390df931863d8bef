// One pass of a Gaussian blur, along x or y.
#version 450
// snippet: shader
layout(local_size_x = 16, local_size_y = 8) in;
layout(constant_id = 0) const int radius = 1;

layout(push_constant) uniform Pass {
  ivec2 size;
  ivec2 direction;  // (1, 0) or (0, 1)
  float sigma;
};
layout(binding = 0) readonly buffer From { float from[]; };
layout(binding = 1) writeonly buffer To { float to[]; };

void main() {
  const ivec2 at = ivec2(gl_GlobalInvocationID.xy);
  if (any(greaterThanEqual(at, size))) return;
  float sum = 0.0;
  float weights = 0.0;
  for (int i = -radius; i <= radius; ++i) {
    const ivec2 p = clamp(at + i * direction, ivec2(0), size - 1);
    const float weight = exp(-0.5 * float(i * i) / (sigma * sigma));
    sum += weight * from[p.y * size.x + p.x];
    weights += weight;
  }
  to[at.y * size.x + at.x] = sum / weights;
}
// end
