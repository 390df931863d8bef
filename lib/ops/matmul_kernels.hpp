// What the matmul kernels cost: loop iterations per invocation, shared memory, and what one workgroup covers.
#pragma once

#include "plan/params.hpp"

#include <cstdint>

namespace brontes::plan {

// matmul: C[m,n] = alpha * (A[m,k] x B over k in [k_begin, k_begin + k_count), plus C if accumulate).
// B is [k,n], or the weight form W[n,k] of y = x W^T; all row-major. A long k is cut into several
// dispatches, the later ones with the constant accumulate = 1.

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
  std::uint32_t lanes;  // of each subgroup, as pipelines require
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

// coopmat: a workgroup of subgroups_m x subgroups_n subgroups computes a tile, each of them matrices_m x matrices_n
// matrices of the size that the device multiplies at once, through a buffer of f16 in shared memory, matmul_coopmat_k
// of k at a time.

inline constexpr std::uint32_t matmul_coopmat_k = 32;

struct MatmulCoopmatShape {
  std::uint32_t matrix_m, matrix_n, matrix_k;
  std::uint32_t lanes;  // of each subgroup, as pipelines require
  std::uint32_t subgroups_m, subgroups_n;
  std::uint32_t matrices_m, matrices_n;  // each 1, 2 or 4

  constexpr std::uint32_t tile_m() const noexcept { return matrix_m * matrices_m * subgroups_m; }
  constexpr std::uint32_t tile_n() const noexcept { return matrix_n * matrices_n * subgroups_n; }
  constexpr std::uint32_t group_size() const noexcept { return lanes * subgroups_m * subgroups_n; }

  // What the kernel asks of its constants: an invocation carries up to four eights of each tile, and there are up to
  // four steps of matrix_k.
  constexpr bool valid() const noexcept {
    auto few = [](std::uint32_t matrices) { return matrices == 1 || matrices == 2 || matrices == 4; };
    return matrix_m != 0 && matrix_n != 0 && matrix_k != 0 && matrix_m % 8 == 0 && matrix_n % 8 == 0 &&
           matrix_k % 8 == 0 && matmul_coopmat_k % matrix_k == 0 && few(matrices_m) && few(matrices_n) && lanes != 0 &&
           tile_m() * (matmul_coopmat_k / 8) <= 4 * group_size() &&
           tile_n() * (matmul_coopmat_k / 8) <= 4 * group_size();
  }
};

constexpr std::uint32_t matmul_coopmat_iterations(std::uint32_t k_count, const MatmulCoopmatShape& s) noexcept {
  const std::uint32_t fours = ceil_div(s.matrix_m * s.matrix_n / 4, s.lanes) + 1;
  return ceil_div(k_count, matmul_coopmat_k) + 1 + s.matrices_m * (s.matrices_n * (fours + 1) + 2) + 1;
}

// Rows have 16 bytes more than they need.
constexpr std::uint32_t matmul_coopmat_shared_bytes(MatmulLayout layout, const MatmulCoopmatShape& s) noexcept {
  const std::uint32_t row = 2 * matmul_coopmat_k + 16;
  const std::uint32_t b = layout == MatmulLayout::nk ? s.tile_n() * row : matmul_coopmat_k * (2 * s.tile_n() + 16);
  return s.tile_m() * row + b + 4 * s.subgroups_m * s.subgroups_n * s.matrix_m * s.matrix_n;
}

}  // namespace brontes::plan
