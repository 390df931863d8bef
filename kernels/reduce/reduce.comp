// Reduces a chunk of the input per workgroup to one value: sum, maximum or minimum of x, or of x * y.
// A second dispatch with one workgroup reduces the partial results. NaN anywhere gives NaN.
#version 450
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require

#include "epilogue.glsl"
#include "grid.glsl"
#include "memory.glsl"
#include "numbers.glsl"
#include "prologue.glsl"

// A power of two from 1 to 1024.
layout(local_size_x = 64, local_size_x_id = 0) in;
layout(constant_id = 0) const uint group_size = 64;
// plan::ReduceCombine
layout(constant_id = 1) const uint combine = 0;
// 0 reduces x, 1 reduces x * y.
layout(constant_id = 2) const uint pair = 0;

layout(push_constant, std430) uniform ReduceParams {
  uint n;
  uint chunk;
  uint groups;
  EpilogueParams epilogue;  // of the dispatch with the last, single workgroup
  PrologueParams prologue;  // of the first dispatch
} params;

BRONTES_INPUT(0, in0)
BRONTES_INPUT(1, in1)
BRONTES_OUTPUT(2, out0)

shared float partial[group_size];

const uint combine_sum = 0;
const uint combine_max = 1;

vec4 combined(vec4 a, vec4 b) {
  if (combine == combine_sum) return a + b;
  return combine == combine_max ? nan_max(a, b) : nan_min(a, b);
}

float combined(float a, float b) {
  if (combine == combine_sum) return a + b;
  return combine == combine_max ? nan_max(a, b) : nan_min(a, b);
}

vec4 value4(uint i4) {
  vec4 x = load4(in0, i4);
  BRONTES_PROLOGUE4(x, i4, params.prologue)
  return pair == 0u ? x : x * load4(in1, i4);
}

float value1(uint i) {
  vec4 x = vec4(load1(in0, i));
  BRONTES_PROLOGUE1(x, i, params.prologue)
  return pair == 0u ? x.x : x.x * load1(in1, i);
}

void main() {
  uint group = group_index();
  if (group >= params.groups) return;
  uint lane = gl_LocalInvocationID.x;
  uint begin = min(group * params.chunk, params.n);
  uint end = min(begin + params.chunk, params.n);

  float identity = combine == combine_sum ? 0.0 : combine == combine_max ? -BRONTES_INFINITY : BRONTES_INFINITY;
  vec4 total = vec4(identity);
  vec4 rest = total;

  // What an iteration takes is added up among itself before it joins the total, so that no chain of additions is longer
  // than plan::reduce_most_rounds / 8 plus a few. One sum is carried from iteration to iteration: CPU drivers end each
  // with a select, or a store, for every one.
#define PAIR(i) combined(value4(at + (i) * group_size), value4(at + ((i) + 1u) * group_size))
#define FOUR(i) combined(PAIR(i), PAIR((i) + 2u))
#define EIGHT(i) combined(FOUR(i), FOUR((i) + 4u))
#define SIXTEEN(i) combined(EIGHT(i), EIGHT((i) + 8u))

  // Every chunk begins on a vec4; only the last may end inside one.
  uint end4 = end / 4u;
  uint at = begin / 4u + lane;
  while (at + 31u * group_size < end4) {
    total = combined(total, combined(SIXTEEN(0u), SIXTEEN(16u)));
    at += 32u * group_size;
  }
  while (at + 3u * group_size < end4) {
    rest = combined(rest, FOUR(0u));
    at += 4u * group_size;
  }
  if (at < end4) rest = combined(rest, value4(at));
  if (at + group_size < end4) rest = combined(rest, value4(at + group_size));
  if (at + 2u * group_size < end4) rest = combined(rest, value4(at + 2u * group_size));
  if (lane == 0u) {
    uint last = end4 * 4u;
    if (last < end) rest.x = combined(rest.x, value1(last));
    if (last + 1u < end) rest.y = combined(rest.y, value1(last + 1u));
    if (last + 2u < end) rest.z = combined(rest.z, value1(last + 2u));
  }

  total = combined(total, rest);
  float mine = combined(combined(total.x, total.y), combined(total.z, total.w));
  partial[lane] = mine;
  // Kept a loop because every barrier costs lavapipe much compile time.
  [[dont_unroll]] for (uint width = group_size / 2u; width > 0u; width /= 2u) {
    barrier();
    if (lane < width) {
      mine = combined(mine, partial[lane + width]);
      partial[lane] = mine;
    }
  }
  if (lane == 0u) {
    BRONTES_EPILOGUE1(mine, 0u, params.epilogue)
    store1(out0, group, mine);
  }
}
