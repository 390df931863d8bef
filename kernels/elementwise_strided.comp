// Runs an elementwise program (program.glsl) over up to four inputs, of which some are slices, permutations or
// expansions of what lies in memory, and writes up to three of its results. Otherwise like elementwise.comp, with fewer
// steps, to make room for the descriptions of these inputs.
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
// How each input is indexed: mode (plan::StridedMode) | rank << 4 | first word in params.view << 8.
layout(constant_id = 29) const uint access0 = 0;
layout(constant_id = 30) const uint access1 = 0;
layout(constant_id = 31) const uint access2 = 0;
layout(constant_id = 32) const uint access3 = 0;

layout(push_constant, std430) uniform ElementwiseStridedParams {
  uint n;
  uint vectors;  // vectors.glsl
  uint view[22];  // per strided input: the offset, the strides, then all extents but the outermost; the last dim first
  float p[4];
  float q[4];
} params;

BRONTES_INPUT(0, in0)
BRONTES_INPUT(1, in1)
BRONTES_INPUT(2, in2)
BRONTES_INPUT(3, in3)
BRONTES_OUTPUT(4, out0)
BRONTES_OUTPUT(5, out1)
BRONTES_OUTPUT(6, out2)

const uint strided_full = 1;    // element j
const uint strided_scalar = 2;  // element 0
const uint strided_vec4 = 3;    // vec4s lie in memory as they are needed
const uint strided_same = 4;    // the four elements are one
const uint strided_row = 5;     // the four elements are of one row, a stride apart
const uint strided_any = 6;

// Adds the coordinate along dim d, from the last one, times its stride. Numbers wrap, so that strides may be negative.
#define DIM(d)                                                 \
  if (d + 1u < rank) {                                         \
    uint extent = params.view[first + 1u + rank + d];          \
    index += rest % extent * params.view[first + 1u + d];      \
    rest /= extent;                                            \
  }

// Where the element of an input lies that element j of the result takes.
uint place(uint j, uint rank, uint first) {
  uint index = params.view[first];
  uint rest = j;
  DIM(0u) DIM(1u) DIM(2u) DIM(3u) DIM(4u) DIM(5u) DIM(6u)
  return index + rest * params.view[first + rank];
}

#define PLACE(i, j) place(j, access##i >> 4 & 15u, access##i >> 8)
#define MODE(i) (access##i & 15u)

#define LOAD(i)                                                                          \
  if (MODE(i) == strided_full) {                                                         \
    r[i] = load4(in##i, at);                                                             \
  } else if (MODE(i) == strided_scalar) {                                                \
    r[i] = vec4(load1(in##i, 0));                                                        \
  } else if (MODE(i) == strided_vec4) {                                                  \
    r[i] = load4(in##i, PLACE(i, at * 4u) / 4u);                                         \
  } else if (MODE(i) == strided_same) {                                                  \
    r[i] = vec4(load1(in##i, PLACE(i, at * 4u)));                                        \
  } else if (MODE(i) == strided_row) {                                                   \
    uint index = PLACE(i, at * 4u);                                                      \
    uint stride = params.view[(access##i >> 8) + 1u];                                    \
    r[i] = vec4(load1(in##i, index), load1(in##i, index + stride),                       \
                load1(in##i, index + 2u * stride), load1(in##i, index + 3u * stride));   \
  } else if (MODE(i) == strided_any) {                                                   \
    r[i] = vec4(load1(in##i, PLACE(i, at * 4u)), load1(in##i, PLACE(i, min(at * 4u + 1u, last))),          \
                load1(in##i, PLACE(i, min(at * 4u + 2u, last))), load1(in##i, PLACE(i, min(at * 4u + 3u, last)))); \
  }

#define STEP(s) BRONTES_STEP(s, params.p[s], params.q[s])
#define STORE(o) \
  if (result##o != 0u) store4(out##o, at, r[result##o]);

// Always a whole vec4: memory is handed out in such, so elements past the end are nobody's.
void run(uint at) {
  uint last = params.n - 1u;
  vec4 r[8];
  r[0] = r[1] = r[2] = r[3] = vec4(0.0);
  LOAD(0) LOAD(1) LOAD(2) LOAD(3)
  STEP(0) STEP(1) STEP(2) STEP(3)
  STORE(0) STORE(1) STORE(2)
}

void main() {
  BRONTES_RUN_VECTORS(params.n, params.vectors)
}
