// What every matmul kernel shares: its parameters, its slots and how a result reaches C.
//
//   C[m,n] = alpha * (A[m,k] x B, over k in [k_begin, k_begin + k_count), plus C if accumulate)
//
// and then the epilogue. Both alpha and the epilogue belong to the dispatch that ends at k; alpha is 1 in others, since
// an infinite one must meet the whole sum and not its parts. A weight may come in parts: then B
// holds n_count rows of it, for the columns of C from n_begin on.
//
// All row-major. B is [k,n] when b_layout is 0, and the weight form W[n,k] of y = x W^T when it is 1.
//
// A batch of products is one dispatch: the matrices of A lie one after the other, and so do those of B and of C. They are
// numbered by leading dims, of which A or B may lack some and then repeats over them. Dims that lie side by side
// and that the same operands have are one block.
#ifndef BRONTES_MATMUL_GLSL
#define BRONTES_MATMUL_GLSL

#include "epilogue.glsl"
#include "memory.glsl"

// A constant, because CPU drivers would read C all the same.
layout(constant_id = 41) const uint accumulate = 0;
// 0 for a single product. Else two bits for each block of a batch's leading dims, the innermost first: 1 if A has it,
// and 2 if B has it.
layout(constant_id = 42) const uint batched = 0;

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
  uint batch;      // matrices of C
  uint blocks[5];  // extents of all blocks but the outermost
  EpilogueParams epilogue;
} params;

BRONTES_INPUT(0, a)
BRONTES_WORDS(1, b)
BRONTES_INOUT(2, c)

const uint layout_nk = 1;

// The matrices of A and of B that matrix z of C is the product of.
uvec2 factors_of(uint z) {
  uvec2 at = uvec2(0u);
  uvec2 count = uvec2(1u);  // of matrices within the blocks so far
#define BRONTES_BLOCK(i)                                                     \
  if (batched >> 2u * i != 0u) {                                             \
    uint extent = params.blocks[i % 5u];                                     \
    uint index = batched >> 2u * i + 2u == 0u ? z : z % extent;              \
    if ((batched >> 2u * i & 1u) != 0u) {                                    \
      at.x += index * count.x;                                               \
      count.x *= extent;                                                     \
    }                                                                        \
    if ((batched >> 2u * i & 2u) != 0u) {                                    \
      at.y += index * count.y;                                               \
      count.y *= extent;                                                     \
    }                                                                        \
    z /= extent;                                                             \
  }
  BRONTES_BLOCK(0u) BRONTES_BLOCK(1u) BRONTES_BLOCK(2u) BRONTES_BLOCK(3u) BRONTES_BLOCK(4u) BRONTES_BLOCK(5u)
  return at;
}

// The rows of A, of B (as it lies, with b_rows in a matrix) and of C that come before those of matrix z of C.
uvec3 rows_before(uint z, uint b_rows) {
  if (batched == 0u) return uvec3(0u);
  return uvec3(factors_of(z), z) * uvec3(params.m, b_rows, params.m);
}

void put1(uint i, float sum) {
  if (accumulate != 0u) sum += load1(c, i);
  float value = params.alpha * sum;
  BRONTES_EPILOGUE1(value, i, params.epilogue)
  store1(c, i, value);
}

void put4(uint i4, vec4 sum) {
  if (accumulate != 0u) sum += load4(c, i4);
  vec4 value = params.alpha * sum;
  BRONTES_EPILOGUE4(value, i4, params.epilogue)
  store4(c, i4, value);
}

#endif
