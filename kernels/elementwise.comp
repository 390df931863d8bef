// Runs an elementwise program (program.glsl) over up to four inputs and writes up to three of its
// results.
#version 450
#extension GL_GOOGLE_include_directive : require

#include "memory.glsl"
#include "program.glsl"
#include "vectors.glsl"

layout(local_size_x = 64, local_size_x_id = 0) in;
// The registers that are written to out0 .. out2; 0 for none.
layout(constant_id = 3) const uint result0 = 4;
layout(constant_id = 4) const uint result1 = 0;
layout(constant_id = 5) const uint result2 = 0;
// More steps than program.glsl has for everybody.
layout(constant_id = 25) const uint step4 = 0;
layout(constant_id = 26) const uint step5 = 0;
layout(constant_id = 27) const uint step6 = 0;
layout(constant_id = 28) const uint step7 = 0;
// How each input is indexed (plan::ElementwiseMode).
layout(constant_id = 29) const uint mode0 = 0;
layout(constant_id = 30) const uint mode1 = 0;
layout(constant_id = 31) const uint mode2 = 0;
layout(constant_id = 32) const uint mode3 = 0;

layout(push_constant, std430) uniform ElementwiseParams {
  uint n;
  uint vectors;  // vectors.glsl
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
BRONTES_OUTPUT(5, out1)
BRONTES_OUTPUT(6, out2)

#define LOAD(i) BRONTES_LOAD4(r[i], in##i, mode##i, at, params.div[i], params.mod[i])
#define STEP(s) BRONTES_STEP(s, params.p[s], params.q[s])
#define STORE(o) \
  if (result##o != 0u) store4(out##o, at, r[result##o]);

// Always a whole vec4: memory is handed out in such, so elements past the end are nobody's.
void run(uint at) {
  vec4 r[12];
  r[0] = r[1] = r[2] = r[3] = vec4(0.0);
  LOAD(0) LOAD(1) LOAD(2) LOAD(3)
  STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7)
  STORE(0) STORE(1) STORE(2)
}

void main() {
  BRONTES_RUN_VECTORS(params.n, params.vectors)
}
