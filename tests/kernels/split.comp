// Buffers that say nothing of their access: one is only loaded from, two are only stored to.
#version 450
layout(local_size_x = 32) in;
layout(binding = 0) buffer From { float from[]; };
layout(binding = 1) buffer Wholes { float wholes[]; };
layout(binding = 3) buffer Rests { float rests[]; };

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= from.length()) return;
  const float whole = floor(from[i]);
  wholes[i] = whole;
  rests[i] = from[i] - whole;
}
