// How the kernels whose lanes run along n get at A: each step needs, of every row of the tile, four of k in all lanes.
// Either `sources` lanes load a row each, which the others take from them, or with `sources` 1 all lanes load each row.
// By shuffles and not by broadcasts: of these lavapipe of Mesa 22 makes loops over lanes, and of a shuffle from a
// constant lane every driver makes an instruction or two.
//
// A kernel has the constants `rows` (up to 16) and `sources` (1, 4 or 8, and no more than a subgroup has lanes). A lane
// makes left_count loads for a step, the row of load s being left_row(s). With sources > 1, row r of the tile is then
// what lane r % sources got from load r / sources.
#ifndef BRONTES_LEFT_GLSL
#define BRONTES_LEFT_GLSL

const uint left_count = (rows + sources - 1u) / sources;

// The row of the tile that load s of this lane is for.
uint left_row(uint s) { return min(s * sources + (sources == 1u ? 0u : gl_SubgroupInvocationID % sources), rows - 1u); }

// Sets `to` to four of k of row r of the tile, where x[s] is what this lane got from load s, and `load` loads those of
// row r.
#define BRONTES_LEFT(to, x, r, load)                       \
  if (sources == 1u) {                                     \
    to = load;                                             \
  } else if (sources == 8u) {                              \
    to = subgroupShuffle(x[(r) / 8u], (r) % 8u);           \
  } else {                                                 \
    to = subgroupShuffle(x[(r) / 4u], (r) % 4u);           \
  }

#endif
