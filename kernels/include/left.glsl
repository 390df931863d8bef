// How the kernels whose lanes run along n get at A: each step needs, of every row of the tile, four of k in all lanes.
// Either `sources` lanes load a row each, which is then broadcast, or with `sources` 1 all lanes load each row:
// lavapipe of Mesa 22 broadcasts by a loop over lanes and is faster that way.
//
// A kernel has the constants `rows` (up to 16) and `sources` (1, 4 or 8, and no more than a subgroup has lanes) and
// declares uint a_at[16], where what its lane loads begins in A, and vec4 x[4].
#ifndef BRONTES_LEFT_GLSL
#define BRONTES_LEFT_GLSL

#define BRONTES_FOR_ROWS(DO) \
  DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15)

const uint left_count = (rows + sources - 1u) / sources;

// The row of the tile that load s of this lane is for.
uint left_row(uint s) { return min(s * sources + (sources == 1u ? 0u : gl_SubgroupInvocationID % sources), rows - 1u); }

// Four of k of row r of the tile, where FOUR(s) loads those of left_row(s). Broadcasts want constant lanes.
#define BRONTES_LEFT_LOAD(s, FOUR) \
  if (sources > 1u && s < left_count) x[s] = FOUR(s);
#define BRONTES_LEFT_LOADS(FOUR) \
  BRONTES_LEFT_LOAD(0, FOUR) BRONTES_LEFT_LOAD(1, FOUR) BRONTES_LEFT_LOAD(2, FOUR) BRONTES_LEFT_LOAD(3, FOUR)
#define BRONTES_LEFT(factor, r, FOUR)                   \
  if (sources == 1u)                                    \
    factor = FOUR(r);                                   \
  else if (sources == 8u)                               \
    factor = subgroupBroadcast(x[r / 8], r % 8);        \
  else                                                  \
    factor = subgroupBroadcast(x[r / 4], r % 4);

#endif
