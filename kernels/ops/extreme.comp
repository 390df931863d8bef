// Where the largest element of x[outer, n, inner] along n lies, or the smallest, in `parts` that take turns: part p has
// the rows p, p + parts and so on, which gives out[outer, parts, inner]. Together the parts are a matrix of rows
// parts * inner wide, and lanes run along these, so that neighbours read neighbours however small inner is.
//
// Elements are compared as integers, of which the largest is sought. Among equal ones the first counts.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "epilogue.glsl"
#include "grid.glsl"
#include "integers.glsl"
#include "memory.glsl"
#include "prologue.glsl"

layout(local_size_x = 64, local_size_x_id = 0) in;
layout(constant_id = 0) const uint group_size = 64;
// Columns of an invocation: 4 if rows and matrices consist of whole vec4s, else 1.
layout(constant_id = 1) const uint columns = 1;
// What in0 has, ops::ExtremeInput: f32, i32, or the numbers that an earlier dispatch found, with their places in in1.
layout(constant_id = 2) const uint given = 0;
layout(constant_id = 3) const uint smallest = 0;
// 1 if the numbers are written for another dispatch, too.
layout(constant_id = 4) const uint partial = 0;

const uint given_f32 = 0;
const uint given_found = 2;

layout(push_constant, std430) uniform ExtremeParams {
  uint slab;   // n * inner
  uint inner;
  uint parts;
  uint width;  // parts * inner
  uint full;   // elements of the rows that are whole
  uint units;  // outer * width / columns
  uint groups;
  EpilogueParams epilogue;
  PrologueParams prologue;  // of the first dispatch
} params;

BRONTES_INPUT(0, in0)
BRONTES_INPUT(1, in1)
BRONTES_OUTPUT(2, out0)
BRONTES_OUTPUT(5, out1)

// NaN is above all.
ivec4 numbers(vec4 x) {
  ivec4 order = ints(x);
  if (given == given_f32) order = order_of(x);
  if (given != given_found && smallest != 0u) order = ~order;
  if (given == given_f32) order = mix(order, ivec4(0x7fffffff), is_nan(x));
  return order;
}

void consider(uint at, ivec4 row, bvec4 counts, inout ivec4 best, inout ivec4 place) {
  ivec4 found;
  if (columns == 4u) {
    vec4 x = load4(in0, at);
    BRONTES_PROLOGUE4(x, at, params.prologue)
    found = numbers(x);
    if (given == given_found) row = ints(load4(in1, at));
  } else {
    vec4 x = vec4(load1(in0, at));
    BRONTES_PROLOGUE1(x, at, params.prologue)
    found = numbers(x);
    if (given == given_found) row = ivec4(floatBitsToInt(load1(in1, at)));
  }
  bvec4 first = both(equal(found, best), lessThan(row, place));
  bvec4 better = bvec4(uvec4(greaterThan(found, best)) | uvec4(first));
  better = both(better, counts);
  best = mix(best, found, better);
  place = mix(place, row, better);
}

void main() {
  uint group = group_index();
  if (group >= params.groups) return;
  uint unit = group * group_size + gl_LocalInvocationID.x;
  if (unit >= params.units) return;
  uint step = params.width / columns;
  uint matrix = unit / step;
  uint column = unit % step * columns;
  uvec4 own = uvec4(column) + uvec4(0u, 1u, 2u, 3u);

  ivec4 best = ivec4(0x80000000u);
  ivec4 place = ivec4(0x7fffffff);
  ivec4 row = ivec4(own / params.inner);
  uint base = matrix * params.slab;
  uint at = (base + column) / columns;
  uint end = (base + params.full) / columns;
  while (at < end) {
    consider(at, row, bvec4(true), best, place);
    at += step;
    row += int(params.parts);
  }
  // A last row that is shorter than the others.
  uint tail = params.slab - params.full;
  if (column < tail) consider(at, row, lessThan(own, uvec4(tail)), best, place);

  vec4 result = bits_of(place);
  if (columns == 4u) {
    BRONTES_EPILOGUE4(result, unit, params.epilogue)
    store4(out0, unit, result);
    if (partial != 0u) store4(out1, unit, bits_of(best));
  } else {
    float one = result.x;
    BRONTES_EPILOGUE1(one, unit, params.epilogue)
    store1(out0, unit, one);
    if (partial != 0u) store1(out1, unit, intBitsToFloat(best.x));
  }
}
