// A function for each of more arguments than there may be copies for.
#version 460
layout(local_size_x = 1) in;
layout(constant_id = 0) const uint start = 1;
layout(binding = 0) buffer Values { uint values[]; };

uint f0(uint x) { return x % 5u == 3u ? values[x] : x + 1u; }
#define LEVEL(next, previous) \
  uint next(uint x) { if (x == 77u) return 1u; return previous(x * 2u) + previous(x * 2u + 1u); }
LEVEL(f1, f0)
LEVEL(f2, f1)
LEVEL(f3, f2)
LEVEL(f4, f3)
LEVEL(f5, f4)
LEVEL(f6, f5)
LEVEL(f7, f6)
LEVEL(f8, f7)
LEVEL(f9, f8)

void main() { values[0] = f9(start) + f9(values[1]); }
