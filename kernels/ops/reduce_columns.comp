// Reduces x[outer, n, inner] along n, in `parts`, which gives out[outer, parts, inner]. They are one of these:
//
//   in turns  part p has the rows p, p + parts and so on. Together the parts are a matrix of rows parts * inner wide, and
//             lanes run along these, so that neighbours read neighbours however small inner is.
//   stacked   a part has neighbouring rows. The steps from row to row are as small as they can be, which is easier on
//             caches: large powers of two meet in the same sets.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "epilogue.glsl"
#include "grid.glsl"
#include "prologue.glsl"

layout(local_size_x = 64, local_size_x_id = 0) in;
layout(constant_id = 0) const uint group_size = 64;
// Columns of an invocation: 4 if rows and matrices consist of whole vec4s, else 1.
layout(constant_id = 4) const uint columns = 1;
layout(constant_id = 5) const uint stacked = 0;  // only where inner consists of whole `columns`

layout(push_constant, std430) uniform ReduceColumnsParams {
  uint slab;   // n * inner
  uint inner;
  uint width;  // parts * inner
  uint full;   // elements of the rows that are whole; stacked: of a part
  uint units;  // outer * width / columns
  float divisor;
  EpilogueParams epilogue;
  PrologueParams prologue;
} params;

#include "reduction.glsl"

vec4 value(uint i, vec4 shift) {
  if (columns == 4u) return value4(i, shift);
  return value1(i, shift);
}

#define PAIR(i) combined(value(at + (i) * step, shift), value(at + ((i) + 1u) * step, shift))
#define FOUR(i) combined(PAIR(i), PAIR((i) + 2u))

float largest(uint matrix, uint column) { return load1(in1, matrix * params.inner + column % params.inner); }

void main() {
  uint unit = group_index() * group_size + gl_LocalInvocationID.x;
  if (unit >= params.units) return;
  uint step = params.width / columns;
  uint matrix = unit / step;
  uint column = unit % step * columns;
  vec4 shift = vec4(0.0);
  if (map == map_exp || finish == finish_log) {
    shift.x = largest(matrix, column);
    if (columns == 4u) {
      shift.y = largest(matrix, column + 1u);
      shift.z = largest(matrix, column + 2u);
      shift.w = largest(matrix, column + 3u);
    }
    shift = shift_of(shift);
  }

  vec4 total = identity();
  vec4 rest = identity();
  uint base = matrix * params.slab;
  uint at = (base + column) / columns;
  uint end = (base + params.full) / columns;
  uint tail = params.slab - params.full;
  if (stacked != 0u) {
    uint first = column / params.inner * params.full;
    at = (base + first + column % params.inner) / columns;
    end = (base + min(first + params.full, params.slab)) / columns;
    step = params.inner / columns;
    tail = 0u;
  }
  while (at + 7u * step < end) {
    total = combined(total, combined(FOUR(0u), FOUR(4u)));
    at += 8u * step;
  }
  while (at < end) {
    rest = combined(rest, value(at, shift));
    at += step;
  }
  // A last row that is shorter than the others.
  if (column < tail) {
    vec4 last = value(at, shift);
    rest = combined(rest, columns == 4u ? within(last, column, 0u, tail) : last);
  }

  total = finished(combined(total, rest), shift, params.divisor);
  if (columns == 4u) {
    BRONTES_EPILOGUE4(total, unit, params.epilogue)
    store4(out0, unit, total);
  } else {
    float result = total.x;
    BRONTES_EPILOGUE1(result, unit, params.epilogue)
    store1(out0, unit, result);
  }
}
