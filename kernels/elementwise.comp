// Runs a short program of elementwise ops over up to four inputs. The program is made of
// specialization constants, so the driver folds every switch below: a fused chain costs what a kernel
// written for it would. Steps are unrolled by macros because not every driver unrolls loops.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "activations.glsl"
#include "grid.glsl"
#include "memory.glsl"

layout(local_size_x = 64, local_size_x_id = 0) in;
layout(constant_id = 0) const uint group_size = 64;
// vec4s per invocation, 1 to 8. Neighbouring invocations take neighbouring ones.
layout(constant_id = 1) const uint vectors = 1;
// 1 if n % 4 may be other than 0.
layout(constant_id = 2) const uint tail = 1;
// The program: op | a << 8 | b << 16, where operands 0..3 are the inputs and 4 + s is the result of
// step s. The last step's result is the kernel's.
layout(constant_id = 3) const uint step_count = 1;
layout(constant_id = 4) const uint step0 = 0;
layout(constant_id = 5) const uint step1 = 0;
layout(constant_id = 6) const uint step2 = 0;
layout(constant_id = 7) const uint step3 = 0;
layout(constant_id = 8) const uint step4 = 0;
layout(constant_id = 9) const uint step5 = 0;
layout(constant_id = 10) const uint step6 = 0;
layout(constant_id = 11) const uint step7 = 0;
// How each input is indexed (plan::ElementwiseMode).
layout(constant_id = 12) const uint mode0 = 1;
layout(constant_id = 13) const uint mode1 = 0;
layout(constant_id = 14) const uint mode2 = 0;
layout(constant_id = 15) const uint mode3 = 0;

layout(push_constant, std430) uniform ElementwiseParams {
  uint n;
  uint groups;
  uint div[4];
  uint mod[4];
  float p[8];
  float q[8];
} params;

BRONTES_INPUT(0, in0)
BRONTES_INPUT(1, in1)
BRONTES_INPUT(2, in2)
BRONTES_INPUT(3, in3)
BRONTES_OUTPUT(4, out0)

vec4 apply(uint op, vec4 x, vec4 y, float p, float q) {
  vec4 result = x;
  switch (op) {
#define BRONTES_OP(name, code, arity, scalars, formula) \
  case code:                                            \
    result = formula;                                   \
    break;
#include "elementwise.def"
#undef BRONTES_OP
  }
  return result;
}

const uint mode_full = 1;
const uint mode_scalar = 2;
const uint mode_row_vec4 = 3;
const uint mode_column_vec4 = 4;
const uint mode_general = 5;

// Reads into r what input `i` gives for vec4 `at` of the output, of which `valid` elements exist. Only
// in full mode could the missing ones lie outside the input.
#define LOAD(i)                                                                            \
  if (mode##i == mode_full) {                                                              \
    if (tail == 0u || valid == 4u) {                                                       \
      r[i] = load4(in##i, at);                                                             \
    } else {                                                                               \
      r[i].x = load1(in##i, at * 4u);                                                      \
      if (valid > 1u) r[i].y = load1(in##i, at * 4u + 1u);                                 \
      if (valid > 2u) r[i].z = load1(in##i, at * 4u + 2u);                                 \
    }                                                                                      \
  } else if (mode##i == mode_scalar) {                                                     \
    r[i] = vec4(load1(in##i, 0));                                                          \
  } else if (mode##i == mode_row_vec4) {                                                   \
    r[i] = load4(in##i, at % (params.mod[i] / 4u));                                        \
  } else if (mode##i == mode_column_vec4) {                                                \
    r[i] = vec4(load1(in##i, at / (params.div[i] / 4u) % params.mod[i]));                  \
  } else if (mode##i == mode_general) {                                                    \
    r[i].x = load1(in##i, at * 4u / params.div[i] % params.mod[i]);                        \
    r[i].y = load1(in##i, (at * 4u + 1u) / params.div[i] % params.mod[i]);                 \
    r[i].z = load1(in##i, (at * 4u + 2u) / params.div[i] % params.mod[i]);                 \
    r[i].w = load1(in##i, (at * 4u + 3u) / params.div[i] % params.mod[i]);                 \
  }

#define STEP(s)                                                                                            \
  if (s < step_count)                                                                                      \
    r[4 + s] = apply(step##s & 255u, r[step##s >> 8 & 255u], r[step##s >> 16 & 255u], params.p[s], params.q[s]);

void run(uint at) {
  if (at >= (params.n + 3u) / 4u) return;
  uint valid = min(params.n - at * 4u, 4u);

  vec4 r[12];
  r[0] = r[1] = r[2] = r[3] = vec4(0.0);
  LOAD(0) LOAD(1) LOAD(2) LOAD(3)
  STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7)
  vec4 result = r[3u + step_count];

  if (tail == 0u || valid == 4u) {
    store4(out0, at, result);
  } else {
    store1(out0, at * 4u, result.x);
    if (valid > 1u) store1(out0, at * 4u + 1u, result.y);
    if (valid > 2u) store1(out0, at * 4u + 2u, result.z);
  }
}

void main() {
  uint group = group_index();
  if (group >= params.groups) return;
  uint first = group * (group_size * vectors) + gl_LocalInvocationID.x;
  for (uint v = 0u; v < vectors; ++v) run(first + v * group_size);
}
