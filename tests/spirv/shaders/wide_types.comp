// Constants, switches and loops of all widths.
#version 460
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_16bit_storage : require
layout(local_size_x = 4) in;
layout(constant_id = 0) const uint64_t a = 1ul;
layout(constant_id = 1) const int64_t b = -2l;
layout(constant_id = 2) const uint16_t c = 3us;
layout(constant_id = 3) const int8_t d = int8_t(-4);
layout(constant_id = 4) const double e = 0.5lf;
layout(constant_id = 5) const bool f = true;
layout(constant_id = 6) const uint g = 2;
const uint64_t sum = a + 7ul;
const int narrowed = f ? int(g) : 3;
layout(binding = 0) buffer Values { uint64_t values[8]; uint16_t halves[8]; float16_t small[8]; double doubles[4]; };

uint64_t chosen(uint64_t x, int64_t y) {
  if (a == 1ul) return x + sum;
  switch (uint(x)) {
    case 0: return x << 1;
    case 1: x += uint64_t(y);
    default: break;
  }
  for (uint16_t i = 0us; i < c; ++i) {
    if (d < int8_t(0)) continue;
    x *= 3ul;
  }
  return x;
}

void main() {
  values[0] = chosen(values[1], b);
  halves[1] = uint16_t(halves[0] * c);
  small[0] = small[1] * float16_t(2.0) + float16_t(g);
  doubles[0] = e * doubles[1];
  values[2] = uint64_t(narrowed);
  if (g == 3u && f) values[3] = packUint2x32(uvec2(g, 1u));
}
