// How the kernels whose lanes run along n get at A: each step needs, of every row of the tile, four of k in all lanes.
// Either `sources` lanes load a row each, which is then broadcast, or with `sources` 1 all lanes load each row:
// lavapipe of Mesa 22 broadcasts by a loop over lanes and is faster that way.
//
// A kernel has the constants `rows` (up to 16) and `sources` (1, 4 or 8, and no more than a subgroup has lanes). A lane
// makes left_count loads for a step, the row of load s being left_row(s). With sources > 1, row r of the tile is then
// what lane r % sources got from load r / sources.
#ifndef BRONTES_LEFT_GLSL
#define BRONTES_LEFT_GLSL

const uint left_count = (rows + sources - 1u) / sources;

// The row of the tile that load s of this lane is for.
uint left_row(uint s) { return min(s * sources + (sources == 1u ? 0u : gl_SubgroupInvocationID % sources), rows - 1u); }

// Sets `to` to what `from` is in a lane from 0 to 7. Broadcasts want literal lanes: once loops are unrolled, one case is
// left of the switch.
#define BRONTES_BROADCAST(to, from, lane)                  \
  switch (lane) {                                          \
    case 0u: to = subgroupBroadcast(from, 0u); break;      \
    case 1u: to = subgroupBroadcast(from, 1u); break;      \
    case 2u: to = subgroupBroadcast(from, 2u); break;      \
    case 3u: to = subgroupBroadcast(from, 3u); break;      \
    case 4u: to = subgroupBroadcast(from, 4u); break;      \
    case 5u: to = subgroupBroadcast(from, 5u); break;      \
    case 6u: to = subgroupBroadcast(from, 6u); break;      \
    case 7u: to = subgroupBroadcast(from, 7u); break;      \
  }

// Sets `to` to four of k of row r of the tile, where x[s] is what this lane got from load s, and `load` loads those of
// row r.
#define BRONTES_LEFT(to, x, r, load)                       \
  if (sources == 1u) {                                     \
    to = load;                                             \
  } else if (sources == 8u) {                              \
    BRONTES_BROADCAST(to, x[(r) / 8u], (r) % 8u)           \
  } else {                                                 \
    BRONTES_BROADCAST(to, x[(r) / 4u], (r) % 4u)           \
  }

#endif
