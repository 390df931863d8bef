// A program of up to four steps that reductions and row ops run on the elements of their operand as they load them, so
// that sum(square(x)) or softmax(x * s + mask) is one pass over memory. Register 0 is the element of in0, register 1
// that of one more input.
#ifndef BRONTES_PROLOGUE_GLSL
#define BRONTES_PROLOGUE_GLSL

#include "program.glsl"

// As step_count, step0 .. step3 and a mode of program.glsl.
layout(constant_id = 33) const uint prologue_count = 0;
layout(constant_id = 34) const uint prologue0 = 0;
layout(constant_id = 35) const uint prologue1 = 0;
layout(constant_id = 36) const uint prologue2 = 0;
layout(constant_id = 37) const uint prologue3 = 0;
layout(constant_id = 38) const uint prologue_mode = 0;

struct PrologueParams {
  uint div;  // of the other input
  uint mod;
  float p[4];  // of each step
  float q[4];
};

BRONTES_INPUT(7, extra0)

#define BRONTES_PROLOGUE_STEP(s, e)                                                                          \
  if (s < prologue_count) {                                                                                  \
    r[4 + s] = apply(prologue##s & 255u, r[prologue##s >> 8 & 255u], r[prologue##s >> 16 & 255u],            \
                     r[prologue##s >> 24], e.p[s], e.q[s]);                                                  \
  }
#define BRONTES_PROLOGUE(value, e, LOAD)                                         \
  if (prologue_count != 0u) {                                                    \
    vec4 r[8];                                                                   \
    r[0] = value;                                                                \
    r[1] = r[2] = r[3] = vec4(0.0);                                              \
    LOAD                                                                         \
    BRONTES_PROLOGUE_STEP(0, e)                                                  \
    BRONTES_PROLOGUE_STEP(1, e)                                                  \
    BRONTES_PROLOGUE_STEP(2, e)                                                  \
    BRONTES_PROLOGUE_STEP(3, e)                                                  \
    value = r[3u + prologue_count];                                              \
  }

// Of vec4 `at` of the operand.
#define BRONTES_PROLOGUE4(value, at, e) \
  BRONTES_PROLOGUE(value, e, BRONTES_LOAD4(r[1], extra0, prologue_mode, at, e.div, e.mod))
// Of element i, which all four of `value` are.
#define BRONTES_PROLOGUE1(value, i, e) \
  BRONTES_PROLOGUE(value, e, BRONTES_LOAD1(r[1], extra0, prologue_mode, i, e.div, e.mod))
// Of the four elements from i on; something valid stands in for those from `end` on.
#define BRONTES_PROLOGUE_U4(value, i, end, e)                                                         \
  BRONTES_PROLOGUE(value, e, vec4 one = vec4(0.0);                                                    \
                   BRONTES_PROLOGUE_PART(x, i, e) BRONTES_PROLOGUE_PART(y, min(i + 1u, end - 1u), e)  \
                   BRONTES_PROLOGUE_PART(z, min(i + 2u, end - 1u), e)                                 \
                   BRONTES_PROLOGUE_PART(w, min(i + 3u, end - 1u), e))
#define BRONTES_PROLOGUE_PART(k, i, e)                                 \
  BRONTES_LOAD1(one, extra0, prologue_mode, i, e.div, e.mod)           \
  r[1].k = one.x;

#endif
