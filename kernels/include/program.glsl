// Elementwise programs: up to eight steps spelt by specialization constants, so that the driver folds
// every switch below and a fused chain costs what a kernel written for it would. Steps are unrolled by
// macros because not every driver unrolls loops.
//
// A program works on registers r[0] .. r[3], its inputs, and r[4 + s], the result of step s. Kernels of
// all kinds use the same constant ids for it.
#ifndef BRONTES_PROGRAM_GLSL
#define BRONTES_PROGRAM_GLSL

#include "elementary.glsl"
#include "integers.glsl"
#include "memory.glsl"

// op | a << 8 | b << 16 | c << 24: an op of elementwise.def and its operands' registers.
layout(constant_id = 20) const uint step_count = 0;
layout(constant_id = 21) const uint step0 = 0;
layout(constant_id = 22) const uint step1 = 0;
layout(constant_id = 23) const uint step2 = 0;
layout(constant_id = 24) const uint step3 = 0;

const uint mode_full = 1;
const uint mode_scalar = 2;
const uint mode_row_vec4 = 3;
const uint mode_column_vec4 = 4;
const uint mode_general = 5;

vec4 apply(uint op, vec4 x, vec4 y, vec4 z, float p, float q) {
  // Step by step as written: drivers would otherwise join a product and a sum, or take x - x for 0 whatever x is.
  precise vec4 result = x;
  switch (op) {
#define BRONTES_OP(name, code, arity, scalars, types, formula) \
  case code:                                                   \
    result = formula;                                          \
    break;
#include "elementwise.def"
#undef BRONTES_OP
  }
  return result;
}

#define BRONTES_STEP(s, p, q)                                                                      \
  if (s < step_count) {                                                                            \
    r[4 + s] =                                                                                     \
        apply(step##s & 255u, r[step##s >> 8 & 255u], r[step##s >> 16 & 255u], r[step##s >> 24], p, q); \
  }

// Sets `to` to what an input gives for vec4 `at` of the result, by its mode (plan::ElementwiseMode). In
// mode_full all four elements must exist.
#define BRONTES_LOAD4(to, name, mode, at, div, mod)                  \
  if (mode == mode_full) {                                           \
    to = load4(name, at);                                            \
  } else if (mode == mode_scalar) {                                  \
    to = vec4(load1(name, 0));                                       \
  } else if (mode == mode_row_vec4) {                                \
    to = load4(name, at % (mod / 4u));                               \
  } else if (mode == mode_column_vec4) {                             \
    to = vec4(load1(name, at / (div / 4u) % mod));                   \
  } else if (mode == mode_general) {                                 \
    to.x = load1(name, at * 4u / div % mod);                         \
    to.y = load1(name, (at * 4u + 1u) / div % mod);                  \
    to.z = load1(name, (at * 4u + 2u) / div % mod);                  \
    to.w = load1(name, (at * 4u + 3u) / div % mod);                  \
  }

// The same for a single element i.
#define BRONTES_LOAD1(to, name, mode, i, div, mod) \
  if (mode == mode_full) {                         \
    to = vec4(load1(name, i));                     \
  } else if (mode == mode_scalar) {                \
    to = vec4(load1(name, 0));                     \
  } else if (mode != 0u) {                         \
    to = vec4(load1(name, (i) / div % mod));       \
  }

#endif
