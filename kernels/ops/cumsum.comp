// The sum of every element along a line and all before it. Columns are added up step by step. In rows every lane has a
// part of its own, chunk() elements long, which it looks at twice: for its sum, and then, when it knows the sums of
// the lanes and slices before it, for its results.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "row.glsl"

// Elements of a slice that a lane has in rows: a multiple of 4.
uint chunk() { return ((params.slice + team - 1u) / team + 3u) / 4u * 4u; }

// Sums that begin with the element itself.
vec4 running(vec4 v) {
  float two = v.x + v.y;
  return vec4(v.x, two, two + v.z, two + (v.z + v.w));
}

// What the lanes before this one have. Every invocation of the workgroup must come here.
float before_lane(float own) {
  if (team == 1u) return 0.0;
  uint lane = row_lane();
  uint at = gl_LocalInvocationID.x;
  row_shared[at] = own;
  [[dont_unroll]] for (uint width = 1u; width < team; width *= 2u) {
    barrier();
    float left = lane >= width ? row_shared[at - width] : 0.0;
    barrier();
    own = left + own;
    row_shared[at] = own;
  }
  barrier();
  float result = lane == 0u ? 0.0 : row_shared[at - 1u];
  barrier();
  return result;
}

// What the slices before this one have.
vec4 before_slice(Line line) {
  vec4 sum = vec4(0.0);
  uint end = line.index == params.lines ? 0u : line.slice;
#define SLICE(i) (s + i * team < end ? partial4(line, 0u, s + i * team) : vec4(0.0))
  for (uint s = first_slice(); s < end; s += 4u * team) sum += (SLICE(0u) + SLICE(1u)) + (SLICE(2u) + SLICE(3u));
  if (columns != 0u) return sum;
  return vec4(team_sum(sum.x));
}

void main() {
  uint group = group_index();
  if (group >= params.groups) return;
  Line line = row_line(group);
  uint stride = row_stride();
  if (columns == 0u) {
    stride = 4u;
    line.at = min(line.first + row_lane() * chunk(), line.end);
    line.end = min(line.at + chunk(), line.end);
    line.steps = line.index == params.lines ? 0u : (line.end - line.at + 3u) / 4u;
  }

  if (held != 0u) {
    vec4 x[most_held];
    vec4 sum = vec4(0.0);
#define LOAD(i)                                                                    \
  if (i < held) {                                                                  \
    x[i] = value_or(line, i, line.at + i * stride, 0.0);                           \
    if (columns == 0u) x[i] = sum + running(x[i]);                                 \
    if (columns != 0u) x[i] = sum + x[i];                                          \
    sum = columns != 0u ? x[i] : vec4(x[i].w);                                     \
  }
#define PUT(i)                                                                     \
  if (i < held) {                                                                  \
    if (i < line.steps) put4(line, line.at + i * stride, before + x[i]);           \
  }
    BRONTES_FOR_HELD(LOAD)
    vec4 before = vec4(before_lane(sum.x));
    BRONTES_FOR_HELD(PUT)
    return;
  }

  vec4 before = vec4(0.0);
  if (stage == stage_finish) before = before_slice(line);

  uint at = line.at;
  uint s = 0u;
  // A column of which nobody wants the sum needs no look ahead.
  bool ahead = stage == stage_partial ? true : columns == 0u;
  if (ahead) {
    vec4 sum = vec4(0.0);
#define NEXT(i) value4(line, at + i * stride, 0.0)
#define EIGHT ((NEXT(0u) + NEXT(1u)) + (NEXT(2u) + NEXT(3u))) + ((NEXT(4u) + NEXT(5u)) + (NEXT(6u) + NEXT(7u)))
    for (; s + 8u <= line.steps; s += 8u) {
      sum += EIGHT;
      at += 8u * stride;
    }
    for (; s < line.steps; ++s) {
      sum += NEXT(0u);
      at += stride;
    }
    if (stage == stage_partial) {
      put_partial(line, 0u, line_sum(sum));
      return;
    }
    before += vec4(before_lane((sum.x + sum.y) + (sum.z + sum.w)));
    at = line.at;
    s = 0u;
  }
  vec4 sum = vec4(0.0);
#define RESULT(i)                                          \
  if (columns != 0u) {                                     \
    sum += NEXT(i);                                        \
    put4(line, at + i * stride, before + sum);             \
  } else {                                                 \
    sum = vec4(sum.w) + running(NEXT(i));                  \
    put4(line, at + i * stride, before + sum);             \
  }
  for (; s + 4u <= line.steps; s += 4u) {
    RESULT(0u)
    RESULT(1u)
    RESULT(2u)
    RESULT(3u)
    at += 4u * stride;
  }
  for (; s < line.steps; ++s) {
    RESULT(0u)
    at += stride;
  }
}
