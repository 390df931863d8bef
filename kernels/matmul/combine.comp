// Adds up the slices of k that a matmul computed side by side, always in the same order:
//
//   C[m,n_count] = alpha * (slice 0 + slice 1 + ..., plus C if accumulate)
//
// and then the epilogue. Slices are [m,n_count] each; in C these are the columns from n_begin on.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "epilogue.glsl"
#include "grid.glsl"
#include "memory.glsl"

layout(local_size_x = 64, local_size_x_id = 0) in;
layout(constant_id = 0) const uint group_size = 64;
// 1 if n, n_begin and n_count are multiples of 4: an invocation then has four neighbours.
layout(constant_id = 1) const uint vectorized = 0;

layout(constant_id = 41) const uint accumulate = 0;

layout(push_constant, std430) uniform MatmulCombineParams {
  uint m;
  uint n;
  uint n_begin;
  uint n_count;
  uint slices;
  float alpha;
  uint groups;
  EpilogueParams epilogue;
} params;

BRONTES_INPUT(0, partials)
BRONTES_INOUT(2, c)

void main() {
  const bool four = vectorized != 0u;
  uint group = group_index();
  if (group >= params.groups) return;
  uint i = group * group_size + gl_LocalInvocationID.x;
  // In vec4s if `four`, else in floats.
  const uint unit = four ? 4u : 1u;
  uint across = params.n_count / unit;
  uint size = params.m * across;
  if (i >= size) return;
  uint to = i / across * (params.n / unit) + params.n_begin / unit + i % across;

#define LOAD(s) (four ? load4(partials, i + (s) * size) : vec4(load1(partials, i + (s) * size), 0.0, 0.0, 0.0))
  vec4 sum = vec4(0.0);
  uint s = 0u;
  for (; s + 4u <= params.slices; s += 4u) {
    vec4 p0 = LOAD(s);
    vec4 p1 = LOAD(s + 1u);
    vec4 p2 = LOAD(s + 2u);
    vec4 p3 = LOAD(s + 3u);
    sum += p0;
    sum += p1;
    sum += p2;
    sum += p3;
  }
  for (; s < params.slices; ++s) sum += LOAD(s);

  if (four) {
    if (accumulate != 0u) sum += load4(c, to);
    vec4 value = params.alpha * sum;
    BRONTES_EPILOGUE4(value, to, params.epilogue)
    store4(c, to, value);
  } else {
    if (accumulate != 0u) sum.x += load1(c, to);
    float value = params.alpha * sum.x;
    BRONTES_EPILOGUE1(value, to, params.epilogue)
    store1(c, to, value);
  }
}
