// What every matmul kernel shares: its parameters, its slots and how a result reaches C.
//
//   C[m,n] = alpha * A[m,k] x B, over k in [k_begin, k_begin + k_count), plus C if accumulate
//
// and then the epilogue, which belongs to the dispatch that ends at k. A weight may come in parts: then B
// holds n_count rows of it, for the columns of C from n_begin on.
//
// All row-major. B is [k,n] when b_layout is 0, and the weight form W[n,k] of y = x W^T when it is 1.
#ifndef BRONTES_MATMUL_GLSL
#define BRONTES_MATMUL_GLSL

#include "epilogue.glsl"
#include "memory.glsl"

// A constant, because CPU drivers would read C all the same.
layout(constant_id = 41) const uint accumulate = 0;

layout(push_constant, std430) uniform MatmulParams {
  uint m;
  uint k;
  uint n;
  uint k_begin;  // a multiple of 4
  uint k_count;
  float alpha;
  uint groups;
  uint n_begin;
  uint n_count;  // n, but for W[n,k] in parts
  uint k_slice;  // of k, for each of several C behind one another; a multiple of 32, or k_count for a single C
  EpilogueParams epilogue;
} params;

BRONTES_INPUT(0, a)
BRONTES_WORDS(1, b)
BRONTES_INOUT(2, c)

const uint layout_nk = 1;

void put1(uint i, float sum) {
  float value = params.alpha * sum;
  if (accumulate != 0u) value += load1(c, i);
  BRONTES_EPILOGUE1(value, i, params.epilogue)
  store1(c, i, value);
}

void put4(uint i4, vec4 sum) {
  vec4 value = params.alpha * sum;
  if (accumulate != 0u) value += load4(c, i4);
  BRONTES_EPILOGUE4(value, i4, params.epilogue)
  store4(c, i4, value);
}

#endif
