// The push-constant blocks of the kernels, as C++ sees them, and what a planner must know about each
// kernel's cost: loop iterations per invocation, shared memory, and output covered by one workgroup.
//
// kernels_check.cpp, which kernelgen writes, asserts that every struct here has the size and the
// member offsets of the block of the same name in the SPIR-V.
//
// Two rules hold for every kernel:
// - Workgroups are numbered linearly, x fastest, over all three axes of the grid; `groups` is how many
//   the work needs. A grid may be rounded up when it is folded over axes: the surplus does nothing.
// - Element counts are below 2^31, so that index arithmetic stays inside 32 bits.
//
// Iteration bounds are for lavapipe from Mesa 22, which silently ends an invocation's loops once it has
// counted 65535 iterations. They assume that nothing is unrolled, add up nested and sequential loops,
// and count one more for each time a loop is entered, for the test that ends it.
#pragma once

#include <cstdint>

namespace brontes::plan {

constexpr std::uint32_t ceil_div(std::uint32_t a, std::uint32_t b) noexcept { return a / b + (a % b != 0); }

// Steps of a tree over `width` lanes: ceil(log2(width)).
constexpr std::uint32_t tree_steps(std::uint32_t width) noexcept {
  std::uint32_t steps = 0;
  while ((1u << steps) < width) ++steps;
  return steps;
}

// elementwise: a program of up to 8 steps over up to 4 inputs, of which up to 3 results are written.

inline constexpr std::uint32_t elementwise_max_inputs = 4;
inline constexpr std::uint32_t elementwise_max_steps = 8;
inline constexpr std::uint32_t elementwise_max_outputs = 3;
inline constexpr std::uint32_t elementwise_max_vectors = 8;

// How output element j finds its element of an input, the value of the constants mode0..mode3. In every
// mode but `unused` it is element (j / div) % mod; the modes say how much of that is known beforehand.
enum class ElementwiseMode : std::uint32_t {
  unused = 0,
  full = 1,         // element j; the input holds at least n elements
  scalar = 2,       // element 0
  row_vec4 = 3,     // div == 1 and mod % 4 == 0
  column_vec4 = 4,  // div % 4 == 0
  general = 5,      // any div >= 1 and mod >= 1
};

struct ElementwiseParams {
  std::uint32_t n;       // output elements
  std::uint32_t groups;  // elementwise_groups()
  std::uint32_t div[4];  // per input, for the modes that read it
  std::uint32_t mod[4];
  float p[8];  // the scalars of step s are p[s] and q[s]
  float q[8];
};

// The word of one step: its op code (elementwise.def) and its operands, where 0..3 are the external
// inputs and 4 + s is the result of step s.
constexpr std::uint32_t elementwise_step(std::uint32_t op, std::uint32_t a = 0, std::uint32_t b = 0) noexcept {
  return op | a << 8 | b << 16;
}

constexpr std::uint32_t elementwise_groups(std::uint32_t n, std::uint32_t group_size, std::uint32_t vectors) noexcept {
  return ceil_div(ceil_div(n, 4), group_size * vectors);
}

constexpr std::uint32_t elementwise_iterations(std::uint32_t vectors) noexcept { return vectors + 1; }

// The program that a matmul or a reduction runs on its results: register 0 is the result, registers 1 and
// 2 are two more inputs.

inline constexpr std::uint32_t epilogue_max_inputs = 2;
inline constexpr std::uint32_t epilogue_max_steps = 4;

struct EpilogueParams {
  std::uint32_t div[2];  // of the two inputs, as in ElementwiseParams
  std::uint32_t mod[2];
  float p[4];
  float q[4];
};

// reduce: one value per workgroup. Workgroup g reduces [g * chunk, min(n, (g + 1) * chunk)) to out[g].

struct ReduceParams {
  std::uint32_t n;
  std::uint32_t chunk;      // elements per workgroup, a multiple of 4
  std::uint32_t groups;     // ceil_div(n, chunk), at least 1: an empty range gives the identity
  EpilogueParams epilogue;  // of a dispatch with one workgroup
};

enum class ReduceCombine : std::uint32_t { sum = 0, max = 1, min = 2 };

constexpr std::uint32_t reduce_iterations(std::uint32_t chunk, std::uint32_t group_size) noexcept {
  return ceil_div(chunk, 16 * group_size) + tree_steps(group_size) + 2;
}

constexpr std::uint32_t reduce_shared_bytes(std::uint32_t group_size) noexcept { return 4 * group_size; }

// matmul: C[m,n] = alpha * A[m,k] x B over k in [k_begin, k_begin + k_count), plus C if accumulate.
// B is [k,n], or the weight form W[n,k] of y = x W^T; all row-major. A long k is cut into several
// dispatches, the later ones with the constant accumulate = 1.

struct MatmulParams {
  std::uint32_t m, k, n;
  std::uint32_t k_begin;  // a multiple of 4
  std::uint32_t k_count;  // a multiple of 4 unless the range ends at k
  float alpha;
  std::uint32_t groups;     // row tiles times column tiles times slices of k
  std::uint32_t n_begin;    // the columns of C that this dispatch computes: with W[n,k] in parts, as many as
  std::uint32_t n_count;    // this part has rows
  std::uint32_t k_slice;    // of k, in each of several C behind one another; k_count for a single C
  EpilogueParams epilogue;  // of the dispatch that ends at k
};

enum class MatmulLayout : std::uint32_t { kn = 0, nk = 1 };  // of B: the constant b_layout

// What one workgroup writes.
struct MatmulTile {
  std::uint32_t rows, columns;
};

// The constant `vectorized`: which row strides keep vec4 loads aligned. Bit 0 is for rows of k elements,
// bit 1 for rows of n, bit 2 says that rows of k are whole eights. For a part of W, bit 1 also needs that
// n_begin and n_count are whole fours.
constexpr std::uint32_t matmul_vectorized(std::uint32_t k, std::uint32_t n) noexcept {
  return (k % 4 == 0 ? 1u : 0u) | (n % 4 == 0 ? 2u : 0u) | (k % 8 == 0 ? 4u : 0u);
}

constexpr std::uint32_t matmul_groups(std::uint32_t m, std::uint32_t n, MatmulTile tile) noexcept {
  return ceil_div(m, tile.rows) * ceil_div(n, tile.columns);
}

// naive: one invocation per element of C, in workgroups of group_x columns by group_y rows.

constexpr MatmulTile matmul_naive_tile(std::uint32_t group_x, std::uint32_t group_y) noexcept {
  return {group_y, group_x};
}

constexpr std::uint32_t matmul_naive_iterations(std::uint32_t k_count) noexcept {
  return k_count / 4 + k_count % 4 + 2;
}

// combine: adds up `slices` of [m,n_count] that a matmul wrote with k_slice below k_count, in order, and
// does for the sums what a matmul does for a product: alpha, accumulate, epilogue.

struct MatmulCombineParams {
  std::uint32_t m, n;
  std::uint32_t n_begin, n_count;
  std::uint32_t slices;
  float alpha;
  std::uint32_t groups;
  EpilogueParams epilogue;
};

constexpr std::uint32_t matmul_combine_iterations(std::uint32_t slices) noexcept { return slices / 4 + slices % 4 + 2; }

// gemv and gemv_subgroup: m = 1 to 8, for which `rows` is the constant. With W[n,k] all lanes run along k,
// for `columns` rows of W at a time. With B[k,n] the workgroup is `teams` teams of group_size / teams lanes,
// each lane with 4 columns if n % 4 == 0 and else 1; the teams share k.

inline constexpr std::uint32_t matmul_gemv_max_rows = 8;
inline constexpr std::uint32_t matmul_gemv_max_columns = 8;

struct MatmulGemvShape {
  bool subgroups;  // gemv_subgroup, for subgroups of 4 lanes or more
  std::uint32_t group_size, rows, columns, teams;
  std::uint32_t chunk;  // elements of W in 16 bytes
};

constexpr MatmulTile matmul_gemv_tile(MatmulLayout layout, std::uint32_t vectorized,
                                      const MatmulGemvShape& s) noexcept {
  return {s.rows, layout == MatmulLayout::nk ? s.columns : s.group_size / s.teams * ((vectorized & 2) != 0 ? 4 : 1)};
}

constexpr std::uint32_t matmul_gemv_iterations(MatmulLayout layout, std::uint32_t k_count,
                                               const MatmulGemvShape& s) noexcept {
  if (layout == MatmulLayout::kn) {
    return ceil_div(k_count, 4 * s.teams) + 5 + ceil_div(s.rows, s.teams) * (s.teams + 2) + 1;
  }
  const std::uint32_t outputs = s.rows * s.columns;
  const std::uint32_t parts = s.subgroups ? ceil_div(s.group_size, 4) : 8;
  const std::uint32_t meet =
      s.subgroups ? 0 : ceil_div(8 * outputs, s.group_size) * (ceil_div(s.group_size, 8) + 2) + 1;
  return (ceil_div(k_count, s.chunk * s.group_size) + 1) * (s.chunk / 4 + 2) + 1 + meet +
         ceil_div(outputs, s.group_size) * (parts + 2) + 1;
}

constexpr std::uint32_t matmul_gemv_shared_bytes(MatmulLayout layout, std::uint32_t vectorized,
                                                 const MatmulGemvShape& s) noexcept {
  if (layout == MatmulLayout::kn) return 4 * s.group_size * s.rows * ((vectorized & 2) != 0 ? 4 : 1);
  return 4 * s.rows * s.columns * (s.subgroups ? ceil_div(s.group_size, 4) : s.group_size);
}

// subgroup_nk, subgroup_kn and panel: a subgroup computes a tile, without shared memory.

inline constexpr std::uint32_t matmul_subgroup_min_lanes = 4;

struct MatmulSubgroupShape {
  std::uint32_t group_size;
  std::uint32_t tiles;  // per workgroup: one for each of its subgroups
  std::uint32_t rows;   // of the tile
  // subgroup_nk: columns of the tile, no more than twice the lanes of a subgroup. subgroup_kn: vec4s per lane. panel:
  // columns per lane.
  std::uint32_t columns;
  std::uint32_t width;      // of the tile, in columns
  std::uint32_t sources;    // subgroup_kn and panel: lanes that load rows of A for all, or 1 where all lanes load all
  bool a_packed, b_packed;  // panel: the operands come from pack
  std::uint32_t steps;      // panel: fours of k per iteration, 1 or 2, which divides them
};

// The largest that the kernels take.
inline constexpr std::uint32_t matmul_subgroup_nk_max_rows = 8, matmul_subgroup_nk_max_columns = 16;
inline constexpr std::uint32_t matmul_subgroup_kn_max_rows = 16, matmul_subgroup_kn_max_vectors = 4;
inline constexpr std::uint32_t matmul_panel_max_rows = 16, matmul_panel_max_columns = 8;

// subgroup_nk: the lanes run along k, a vec4 each, of floats or of words with `chunk` weights in all.
constexpr std::uint32_t matmul_subgroup_nk_iterations(std::uint32_t k_count, std::uint32_t lanes,
                                                      std::uint32_t chunk) noexcept {
  return 4 + ceil_div(k_count, chunk * lanes) * (chunk / 4 + 2);
}

// subgroup_kn and panel: the lanes run along n. Loops over tiles, parts of a tile, and rows that are written.
inline constexpr std::uint32_t matmul_along_n_iterations = 5 + 1 + 16;
static_assert(matmul_subgroup_kn_max_rows <= 16 && matmul_panel_max_rows <= 16);

constexpr std::uint32_t matmul_subgroup_kn_iterations(std::uint32_t k_count) noexcept {
  return matmul_along_n_iterations + k_count / 4 + k_count % 4 + 2;
}

constexpr std::uint32_t matmul_panel_iterations(std::uint32_t k_count, std::uint32_t steps) noexcept {
  return matmul_along_n_iterations + ceil_div(k_count, 4 * steps) + 1;
}

// pack: lays `n_count` rows of k, or columns of B[k,n], out for panel, in bands of `height`.

struct MatmulPackParams {
  std::uint32_t k;
  std::uint32_t n_count;
};

// vec4s of k, the last one with zeros past k.
constexpr std::uint64_t matmul_fours(std::uint64_t k) noexcept { return (k + 3) / 4; }

constexpr std::uint64_t matmul_packed_elements(std::uint64_t count, std::uint64_t k, std::uint32_t height) noexcept {
  return (count + height - 1) / height * height * matmul_fours(k) * 4;
}

// An invocation packs up to 32 of k of a row, or four of k of four columns of B[k,n].
constexpr std::uint64_t matmul_pack_invocations(MatmulLayout layout, std::uint64_t count, std::uint64_t k,
                                                std::uint32_t height) noexcept {
  const std::uint64_t padded = (count + height - 1) / height * height;
  return layout == MatmulLayout::nk ? padded * ((matmul_fours(k) + 7) / 8) : padded / 4 * matmul_fours(k);
}

// tiled: a workgroup computes tile_m x tile_n elements, each invocation micro_m x micro_n of them,
// through two buffers in shared memory, matmul_tiled_k of k at a time.

inline constexpr std::uint32_t matmul_tiled_k = 8;

struct MatmulTiledShape {
  std::uint32_t tile_m, tile_n;
  std::uint32_t micro_m, micro_n;  // each 4 or 8

  constexpr std::uint32_t group_size() const noexcept { return tile_m / micro_m * (tile_n / micro_n); }

  // What the kernel asks of its constants. The swizzle of shared memory moves elements by 16, within a tile
  // or within half of one; an invocation carries up to two vec4s of each tile.
  constexpr bool valid() const noexcept {
    return (micro_m == 4 || micro_m == 8) && (micro_n == 4 || micro_n == 8) && tile_m != 0 && tile_n != 0 &&
           tile_m % (micro_m * 8) == 0 && tile_n % (micro_n * 8) == 0 && tile_m * matmul_tiled_k <= 8 * group_size() &&
           tile_n * matmul_tiled_k <= 8 * group_size();
  }
};

constexpr MatmulTile matmul_tiled_tile(std::uint32_t tile_m, std::uint32_t tile_n) noexcept { return {tile_m, tile_n}; }

constexpr std::uint32_t matmul_tiled_iterations(std::uint32_t k_count) noexcept {
  return ceil_div(k_count, matmul_tiled_k) + 1 + 9;
}

constexpr std::uint32_t matmul_tiled_shared_bytes(std::uint32_t tile_m, std::uint32_t tile_n) noexcept {
  return 2 * 4 * matmul_tiled_k * (tile_m + tile_n);
}

}  // namespace brontes::plan
