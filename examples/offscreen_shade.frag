// A picture with the noise of a path tracer that had one sample per pixel.
#version 450
layout(push_constant) uniform Frame { uint seed; };
layout(location = 0) out float brightness;

uint hash(uint x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

void main() {
  const vec2 p = gl_FragCoord.xy;
  const float clean = 0.5 + 0.3 * sin(p.x / 12.0) * cos(p.y / 9.0);
  const uint pixel = uint(p.y) * 4096u + uint(p.x);
  const float noise = float(hash(pixel ^ hash(seed)) >> 8) / 16777216.0 - 0.5;
  brightness = clean + 0.5 * noise;
}
