// Which vec4s an invocation takes of a result that lies in one piece, for kernels with `void run(uint at)` that makes
// one of them.
#ifndef BRONTES_VECTORS_GLSL
#define BRONTES_VECTORS_GLSL

#extension GL_EXT_control_flow_attributes : require

#include "grid.glsl"

layout(constant_id = 0) const uint group_size = 64;
// 0: every invocation takes one vec4. Otherwise invocations take several each, and this many run in step, from the first
// to the last vec4, before the next ones begin, as on a CPU. So they share a contiguous range: going through memory in
// strides of a workgroup, they would meet in the same cache sets.
layout(constant_id = 1) const uint lanes = 0;

// `vectors` is how many each invocation takes where it takes several.
#define BRONTES_RUN_VECTORS(n, vectors)                                                       \
  uint invocation = gl_LocalInvocationID.x;                                                   \
  uint begin = group_index() * group_size;                                                    \
  uint end = ((n) + 3u) / 4u;                                                                 \
  if (lanes == 0u) {                                                                          \
    if (begin + invocation < end) run(begin + invocation);                                    \
  } else {                                                                                    \
    uint at = (begin + invocation / lanes * lanes) * (vectors) + invocation % lanes;          \
    uint stop = min(end, at + (vectors) * lanes);                                             \
    /* Drivers would take several times as long to compile it unrolled, and gain nothing. */  \
    [[dont_unroll]] for (; at < stop; at += lanes) run(at);                                   \
  }

#endif
