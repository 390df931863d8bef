// Reduces the rows of x[rows, n], each in `parts` of `chunk` elements: out[rows, parts]. A part is the work of `lanes`
// neighbouring invocations. Where that is one, as on CPU drivers, there is neither shared memory nor a barrier.
#version 450
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require

#include "epilogue.glsl"
#include "grid.glsl"
#include "prologue.glsl"

layout(local_size_x = 64, local_size_x_id = 0) in;
layout(constant_id = 0) const uint group_size = 64;
// A power of two that divides the workgroup.
layout(constant_id = 4) const uint lanes = 1;
// 1 if rows begin or end inside a vec4. Chunks are whole ones.
layout(constant_id = 5) const uint ragged = 1;

layout(push_constant, std430) uniform ReduceRowsParams {
  uint n;
  uint chunk;
  uint parts;
  uint units;  // rows * parts
  uint groups;
  float divisor;
  EpilogueParams epilogue;
  PrologueParams prologue;
} params;

#include "reduction.glsl"

shared float partial[lanes == 1u ? 1u : group_size];

// What an iteration takes is combined among itself before it joins the total: no chain of additions is longer than
// ops::rows_most_chunk allows. One total is carried along, because CPU drivers end an iteration with a select for each.
#define ONE(i) value4(at + (i) * lanes, shift)
#define PAIR(i) combined(ONE(i), ONE((i) + 1u))
#define FOUR(i) combined(PAIR(i), PAIR((i) + 2u))
#define EIGHT(i) combined(FOUR(i), FOUR((i) + 4u))
#define SIXTEEN(i) combined(EIGHT(i), EIGHT((i) + 8u))

vec4 total_of(uint begin, uint end, uint lane, vec4 shift) {
  vec4 total = identity();
  vec4 rest = identity();
  uint at = (begin + 3u) / 4u + lane;
  uint end4 = end / 4u;
  // exp is too much code to be repeated that often.
  if (map != map_exp) {
    while (at + 31u * lanes < end4) {
      total = combined(total, combined(SIXTEEN(0u), SIXTEEN(16u)));
      at += 32u * lanes;
    }
  }
  while (at + 3u * lanes < end4) {
    rest = combined(rest, FOUR(0u));
    at += 4u * lanes;
  }
  if (at < end4) rest = combined(rest, ONE(0u));
  if (at + lanes < end4) rest = combined(rest, ONE(1u));
  if (at + 2u * lanes < end4) rest = combined(rest, ONE(2u));
  if (ragged != 0u && begin < end) {
    bool head = begin % 4u != 0u;
    if (lane == 0u && head) rest = combined(rest, within(value4(begin / 4u, shift), begin / 4u * 4u, begin, end));
    if (lane == lanes - 1u && end % 4u != 0u && !(head && end4 == begin / 4u)) {
      rest = combined(rest, within(value4(end4, shift), end4 * 4u, begin, end));
    }
  }
  return combined(total, rest);
}

void main() {
  uint group = group_index();
  if (group >= params.groups) return;
  uint invocation = gl_LocalInvocationID.x;
  uint lane = invocation % lanes;
  uint unit = group * (group_size / lanes) + invocation / lanes;
  bool exists = unit < params.units;
  uint row = exists ? unit / params.parts : 0u;
  uint part = exists ? unit % params.parts : 0u;
  uint begin = row * params.n + min(part * params.chunk, params.n);
  uint end = exists ? min(begin + params.chunk, (row + 1u) * params.n) : begin;
  vec4 shift = vec4(0.0);
  if (map == map_exp || finish == finish_log) shift = shift_of(vec4(load1(in1, row)));

  vec4 total = total_of(begin, end, lane, shift);
  float mine = combined(combined(total.x, total.y), combined(total.z, total.w));
  if (lanes > 1u) {
    partial[invocation] = mine;
    // Kept a loop because every barrier costs lavapipe much compile time.
    [[dont_unroll]] for (uint width = lanes / 2u; width > 0u; width /= 2u) {
      barrier();
      if (lane < width) {
        mine = combined(mine, partial[invocation + width]);
        partial[invocation] = mine;
      }
    }
  }
  if (exists && lane == 0u) {
    mine = finished(vec4(mine), shift, params.divisor).x;
    BRONTES_EPILOGUE1(mine, unit, params.epilogue)
    store1(out0, unit, mine);
  }
}
