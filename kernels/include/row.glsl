// What the ops along one axis share. A tensor is [outer, n, inner] and an op runs along n. There are two ways:
//
//   rows      inner is 1: `team` lanes share a row. A vec4 is four neighbours along n, and sums meet across the team.
//   columns   inner is larger: a lane has four neighbouring columns, a vec4 is one step along n, and no lanes meet.
//
// A line is a row, or four columns. Long lines are cut into slices: one dispatch leaves what it found out about each
// slice in memory (stage_partial), the next puts these together and writes the result (stage_finish). Short lines are
// held in registers, `held` vec4s per lane, so that memory is read once.
//
// BRONTES_SUBGROUP adds up the lanes of a subgroup before shared memory is used. Then a team is a whole workgroup.
#ifndef BRONTES_ROW_GLSL
#define BRONTES_ROW_GLSL

#include "epilogue.glsl"
#include "grid.glsl"
#include "memory.glsl"
#include "numbers.glsl"
#include "prologue.glsl"

layout(local_size_x = 64, local_size_x_id = 0) in;
layout(constant_id = 0) const uint group_size = 64;
// A power of two that divides group_size; 1 for columns.
layout(constant_id = 1) const uint team = 1;
layout(constant_id = 2) const uint columns = 0;
// Every vec4 is whole and begins on one: n and slices, or inner, are multiples of 4.
layout(constant_id = 3) const uint aligned = 0;
// 0 to most_held; 0 goes through memory in loops. Only with stage_whole.
layout(constant_id = 4) const uint held = 0;
layout(constant_id = 5) const uint stage = 0;
// Of the held vec4s, those that every lane is sure to have. CPU drivers pay for every condition around a load or store.
layout(constant_id = 6) const uint certain = 0;

const uint most_held = 32;

const uint stage_whole = 0;
const uint stage_partial = 1;
const uint stage_finish = 2;

layout(push_constant, std430) uniform RowParams {
  uint n;
  uint inner;
  uint lines;
  uint slice;   // steps along n
  uint slices;
  uint count;   // elements of the tensor
  uint groups;
  float epsilon;
  EpilogueParams epilogue;
  PrologueParams prologue;
} params;

BRONTES_INPUT(0, in0)
BRONTES_OUTPUT(2, out0)
// Of stage_partial: planes of [lines, slices] floats, or of [slices, lines] vec4s for columns.
BRONTES_INPUT(5, partials)

#define BRONTES_FOR_HELD(DO)                                                                             \
  DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15)  \
  DO(16) DO(17) DO(18) DO(19) DO(20) DO(21) DO(22) DO(23) DO(24) DO(25) DO(26) DO(27) DO(28) DO(29)      \
  DO(30) DO(31)

const float row_lowest = -3.4028234663852886e38;

// What one lane has of a line. Floats of the tensor are counted from 0.
struct Line {
  uint index;  // params.lines past the last one: nothing to do, but for barriers
  uint slice;
  uint first;  // of its slice; of the first of four columns
  uint end;    // behind its slice
  uint at;     // of the lane's first vec4
  uint steps;  // vec4s of the lane
  uint width;  // columns it really has, up to four
};

uint row_lane() { return gl_LocalInvocationID.x % team; }
// Floats from one vec4 of the lane to its next.
uint row_stride() { return columns != 0u ? params.inner : 4u * team; }

Line row_line(uint group) {
  uint unit = group * (group_size / team) + gl_LocalInvocationID.x / team;
  Line line;
  line.slice = unit / params.lines;
  line.index = line.slice < params.slices ? unit % params.lines : params.lines;
  uint begin = min(line.slice * params.slice, params.n);
  uint end = min(begin + params.slice, params.n);
  line.width = 4u;
  if (columns != 0u) {
    uint quads = (params.inner + 3u) / 4u;
    uint column = line.index % quads * 4u;
    line.width = min(4u, params.inner - column);
    line.first = line.index / quads * params.n * params.inner + column + begin * params.inner;
    line.at = line.first;
    line.steps = end - begin;
    line.end = line.first + line.steps * params.inner;
  } else {
    line.first = line.index * params.n + begin;
    line.end = line.first + (end - begin);
    line.at = line.first + 4u * row_lane();
    line.steps = line.at < line.end ? (line.end - line.at + 4u * team - 1u) / (4u * team) : 0u;
  }
  if (line.index == params.lines) line.steps = 0u;
  return line;
}

// Elements that a vec4 at `at` really has.
uint row_width(Line line, uint at) { return columns != 0u ? line.width : min(4u, line.end - at); }

// The one place where elements of x are read, with the prologue: four at `at`, with `other` for those past the end of
// the row.
vec4 value4(Line line, uint at, float other) {
  if (aligned != 0u) {
    vec4 whole = load4(in0, at / 4u);
    BRONTES_PROLOGUE4(whole, at / 4u, params.prologue)
    return whole;
  }
  uint end = columns != 0u ? params.count : line.end;
  vec4 some = loadu4(in0, at, end);
  BRONTES_PROLOGUE_U4(some, at, end, params.prologue)
  if (columns != 0u) return some;
  bvec4 inside = lessThan(at + uvec4(0u, 1u, 2u, 3u), uvec4(line.end));
  return mix(vec4(other), some, inside);
}

// Step s of the lane, whether there is one or not.
vec4 value_or(Line line, uint s, uint at, float other) {
  if (s < certain || s < line.steps) return value4(line, at, other);
  return vec4(other);
}

// v with 0 for what is past the end: step s of the lane is at `at`.
vec4 row_inside(Line line, uint s, uint at, vec4 v) {
  if (aligned != 0u) {
    if (s < certain) return v;
  }
  bvec4 inside = bvec4(s < line.steps);
  if (aligned == 0u) {
    if (columns == 0u) inside = lessThan(at + uvec4(0u, 1u, 2u, 3u), uvec4(line.end));
  }
  return mix(vec4(0.0), v, inside);
}

// The one place where results are written, after the epilogue.
void put4(Line line, uint at, vec4 value) {
  if (aligned != 0u) {
    BRONTES_EPILOGUE4(value, at / 4u, params.epilogue)
    store4(out0, at / 4u, value);
    return;
  }
  uint width = row_width(line, at);
  if (step_count != 0u) {
    vec4 r[8];
    r[0] = value;
    r[1] = r[2] = r[3] = vec4(0.0);
    vec4 one = vec4(0.0);
#define ROW_EXTRA(k, i)                                                                                     \
  BRONTES_LOAD1(one, extra1, mode1, at + min(i, width - 1u), params.epilogue.div[0], params.epilogue.mod[0]) \
  if (mode1 != 0u) r[1].k = one.x;                                                                          \
  BRONTES_LOAD1(one, extra2, mode2, at + min(i, width - 1u), params.epilogue.div[1], params.epilogue.mod[1]) \
  if (mode2 != 0u) r[2].k = one.x;
    ROW_EXTRA(x, 0u)
    ROW_EXTRA(y, 1u)
    ROW_EXTRA(z, 2u)
    ROW_EXTRA(w, 3u)
#undef ROW_EXTRA
    BRONTES_EPILOGUE_STEPS(params.epilogue)
    value = r[3u + step_count];
  }
  store1(out0, at, value.x);
  if (width > 1u) store1(out0, at + 1u, value.y);
  if (width > 2u) store1(out0, at + 2u, value.z);
  if (width > 3u) store1(out0, at + 3u, value.w);
}

// DO(at) for every vec4 of the lane, four of them in a row.
#define BRONTES_FOR_STEPS(line, DO)                        \
  {                                                        \
    uint row_step = row_stride();                          \
    uint row_at = line.at;                                 \
    uint row_done = 0u;                                    \
    for (; row_done + 4u <= line.steps; row_done += 4u) {  \
      DO(row_at)                                           \
      DO((row_at + row_step))                              \
      DO((row_at + 2u * row_step))                         \
      DO((row_at + 3u * row_step))                         \
      row_at += 4u * row_step;                             \
    }                                                      \
    for (; row_done < line.steps; ++row_done) {            \
      DO(row_at)                                           \
      row_at += row_step;                                  \
    }                                                      \
  }

// Held step i of the lane.
#define BRONTES_PUT_HELD(line, i, value) \
  if (i < certain || i < line.steps) put4(line, line.at + i * row_stride(), value);

// Plane p of what is known of a slice.
void put_partial(Line line, uint p, vec4 value) {
  if (line.index == params.lines) return;
  uint plane = p * params.slices * params.lines;
  if (columns != 0u) {
    store4(out0, plane + line.slice * params.lines + line.index, value);
  } else if (row_lane() == 0u) {
    store1(out0, plane + line.index * params.slices + line.slice, value.x);
  }
}

// For rows the same in all four.
vec4 partial4(Line line, uint p, uint slice) {
  uint plane = p * params.slices * params.lines;
  if (columns != 0u) return load4(partials, plane + slice * params.lines + line.index);
  return vec4(load1(partials, plane + line.index * params.slices + slice));
}

// Slices are shared out among the lanes of a team. Nothing for a line that is none.
uint first_slice() { return row_lane(); }
uint end_slice(Line line) { return line.index == params.lines ? 0u : params.slices; }

// What the lanes of a team have, put together for all of them. Every invocation of the workgroup must come here.

#ifdef BRONTES_SUBGROUP
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_basic : require

// Where subgroup_lanes is given, the workgroup is one subgroup, so that neither shared memory nor barriers are needed:
// for CPU drivers.
#include "lanes.glsl"

shared float row_shared[(group_size + 3) / 4];  // subgroups have four lanes or more

#define ROW_TEAM(name, subgroup_operation, combined)                  \
  float name(float a) {                                               \
    if (team == 1u) return a;                                         \
    a = subgroup_operation(a);                                        \
    if (subgroup_lanes != 0u) return a;                               \
    if (subgroupElect()) row_shared[gl_SubgroupID] = a;               \
    barrier();                                                        \
    a = row_shared[0];                                                \
    for (uint i = 1u; i < gl_NumSubgroups; ++i) {                     \
      float b = row_shared[i];                                        \
      a = combined;                                                   \
    }                                                                 \
    barrier();                                                        \
    return a;                                                         \
  }
ROW_TEAM(team_sum, subgroupAdd, a + b)
ROW_TEAM(team_max, subgroupMax, max(a, b))

#else
#extension GL_EXT_control_flow_attributes : require

shared float row_shared[group_size];

// Kept a loop because every barrier costs lavapipe much compile time.
#define ROW_TEAM(name, combined)                                              \
  float name(float a) {                                                       \
    if (team == 1u) return a;                                                 \
    uint lane = row_lane();                                                   \
    uint own = gl_LocalInvocationID.x;                                        \
    row_shared[own] = a;                                                      \
    [[dont_unroll]] for (uint width = team / 2u; width > 0u; width /= 2u) {   \
      barrier();                                                              \
      if (lane < width) {                                                     \
        float b = row_shared[own + width];                                    \
        a = combined;                                                         \
        row_shared[own] = a;                                                  \
      }                                                                       \
    }                                                                         \
    barrier();                                                                \
    a = row_shared[own - lane];                                               \
    barrier();                                                                \
    return a;                                                                 \
  }
ROW_TEAM(team_sum, a + b)
ROW_TEAM(team_max, max(a, b))
#endif
#undef ROW_TEAM

// Of a whole line: for rows the same in all four, for columns each its own.
vec4 line_sum(vec4 v) {
  if (columns != 0u) return v;
  return vec4(team_sum((v.x + v.y) + (v.z + v.w)));
}
vec4 line_max(vec4 v) {
  if (columns != 0u) return v;
  return vec4(team_max(max(max(v.x, v.y), max(v.z, v.w))));
}

#endif
