// Draws a buffer of Brontes'.
#version 450
layout(push_constant) uniform Frame { uint width; };
layout(set = 0, binding = 0) readonly buffer Filtered { float filtered[]; };
layout(location = 0) out float pixel;

void main() { pixel = filtered[uint(gl_FragCoord.y) * width + uint(gl_FragCoord.x)]; }
