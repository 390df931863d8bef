// A program of up to four steps that a matmul or a reduction runs on its results before it writes them:
// bias, activation, residual. Register 0 is the result, registers 1 and 2 are two more inputs.
#ifndef BRONTES_EPILOGUE_GLSL
#define BRONTES_EPILOGUE_GLSL

#include "program.glsl"

layout(constant_id = 30) const uint mode1 = 0;
layout(constant_id = 31) const uint mode2 = 0;

struct EpilogueParams {
  uint div[2];  // of inputs 1 and 2
  uint mod[2];
  float p[4];  // of each step
  float q[4];
};

BRONTES_INPUT(3, extra1)
BRONTES_INPUT(4, extra2)

#define BRONTES_EPILOGUE_STEPS(e)     \
  BRONTES_STEP(0, e.p[0], e.q[0])     \
  BRONTES_STEP(1, e.p[1], e.q[1])     \
  BRONTES_STEP(2, e.p[2], e.q[2])     \
  BRONTES_STEP(3, e.p[3], e.q[3])

// Of four neighbouring results, vec4 `at` of the output.
#define BRONTES_EPILOGUE4(value, at, e)                                          \
  if (step_count != 0u) {                                                        \
    vec4 r[8];                                                                   \
    r[0] = value;                                                                \
    r[1] = r[2] = r[3] = vec4(0.0);                                              \
    BRONTES_LOAD4(r[1], extra1, mode1, at, e.div[0], e.mod[0])                   \
    BRONTES_LOAD4(r[2], extra2, mode2, at, e.div[1], e.mod[1])                   \
    BRONTES_EPILOGUE_STEPS(e)                                                    \
    value = r[3u + step_count];                                                  \
  }

// Of one result, element i of the output.
#define BRONTES_EPILOGUE1(value, i, e)                                           \
  if (step_count != 0u) {                                                        \
    vec4 r[8];                                                                   \
    r[0] = vec4(value);                                                          \
    r[1] = r[2] = r[3] = vec4(0.0);                                              \
    BRONTES_LOAD1(r[1], extra1, mode1, i, e.div[0], e.mod[0])                    \
    BRONTES_LOAD1(r[2], extra2, mode2, i, e.div[1], e.mod[1])                    \
    BRONTES_EPILOGUE_STEPS(e)                                                    \
    value = r[3u + step_count].x;                                                \
  }

#endif
