#include "plan/matmul.hpp"

#include "plan/plan.hpp"  // fold(), fill_groups()

#include <algorithm>
#include <bit>

namespace brontes {

const char* to_string(MatmulKernel kernel) noexcept {
  switch (kernel) {
    case MatmulKernel::automatic: return "automatic";
    case MatmulKernel::naive: return "naive";
    case MatmulKernel::gemv: return "gemv";
    case MatmulKernel::tiled: return "tiled";
    case MatmulKernel::subgroup: return "subgroup";
  }
  return "unknown";
}

const char* to_string(Layout layout) noexcept { return layout == Layout::nk ? "nk" : "kn"; }

}  // namespace brontes

namespace brontes::plan {
namespace {

// Vetted tile sets, best first. Each fits the smallest device that Vulkan allows from some point on:
// 128 invocations and 16 KiB of shared memory.
constexpr MatmulTiledShape tile_sets[] = {
    {128, 128, 16, 8, 8},
    {64, 64, 16, 4, 4},
    {32, 32, 16, 4, 4},
    {16, 16, 16, 4, 4},
};

bool fits(const MatmulTiledShape& tiles, const Traits& traits) {
  return tiles.group_size() <= traits.max_group_invocations &&
         matmul_tiled_shared_bytes(tiles.tile_m, tiles.tile_n, tiles.tile_k) <= traits.max_shared_bytes;
}

// Large tiles reuse more but leave a GPU idle when there are few of them.
const MatmulTiledShape* choose_tiles(const MatmulProblem& p, const Traits& traits) {
  constexpr std::uint64_t enough_groups = 64;
  const MatmulTiledShape* smallest = nullptr;
  for (const MatmulTiledShape& tiles : tile_sets) {
    if (!fits(tiles, traits)) continue;
    // 8x8 micro-tiles take CPU drivers seconds to compile, and their registers are not that many.
    if (traits.cpu && tiles.micro_m * tiles.micro_n > 16) continue;
    smallest = &tiles;
    const std::uint64_t groups = ((p.m + tiles.tile_m - 1) / tiles.tile_m) * ((p.n + tiles.tile_n - 1) / tiles.tile_n);
    if (groups >= enough_groups) return &tiles;
  }
  return smallest;
}

bool fits_range(std::uint64_t rows, std::uint64_t columns, const Traits& traits) {
  return columns == 0 || rows <= traits.max_storage_range / sizeof(float) / columns;
}

// The largest chunk of k, in whole units, whose loops stay within the device's allowance.
template <class Iterations>
std::uint64_t chunk_of(std::uint64_t k, const Traits& traits, Iterations iterations, std::uint64_t unit = 4) {
  // The last chunk may be any shorter, and costs more where elements past a multiple of 4 go one by one.
  auto too_long = [&](std::uint64_t count) {
    return iterations(static_cast<std::uint32_t>(count)) > traits.max_loop_iterations;
  };
  if (k <= unit || !too_long(k)) return k;
  std::uint64_t chunk = k / unit * unit;
  while (chunk > unit && (too_long(chunk) || too_long(chunk - 1))) chunk = (chunk / 2 + unit - 1) / unit * unit;
  return chunk;
}

// Tiles of the subgroup kernel: rows, and columns or, with Layout::kn, vec4s of columns per lane.
struct SubgroupTile {
  std::uint32_t rows, columns;
};
constexpr SubgroupTile subgroup_tiles_nk[] = {{1, 8}, {1, 4}, {2, 4}, {4, 4}, {8, 4}, {2, 2}, {4, 2}, {8, 2}};
constexpr SubgroupTile subgroup_tiles_kn[] = {{1, 1}, {1, 2}, {2, 1}, {4, 1}, {8, 1}, {2, 2}, {4, 2}, {8, 2}};

Span<const SubgroupTile> subgroup_tiles(Layout layout) {
  return layout == Layout::nk ? Span<const SubgroupTile>(subgroup_tiles_nk) : subgroup_tiles_kn;
}

MatmulSelection naive(const MatmulProblem& p, const Traits& traits, const char* reason) {
  MatmulSelection s;
  s.kernel = MatmulKernel::naive;
  s.reason = reason;
  // Lanes along a row of C read neighbouring elements of B[K, N].
  s.group_x = std::min(16u, std::bit_floor(traits.max_group_invocations));
  s.group_y = std::max(1u, std::min(16u, std::bit_floor(traits.max_group_invocations) / s.group_x));
  s.tile = matmul_naive_tile(s.group_x, s.group_y);
  s.k_chunk = chunk_of(p.k, traits, [](std::uint32_t k) { return matmul_naive_iterations(k); });
  return s;
}

Result<MatmulSelection> gemv(const MatmulProblem& p, const Traits& traits, const char* reason) {
  MatmulSelection s;
  s.kernel = MatmulKernel::gemv;
  s.reason = reason;
  const MatmulLayout layout = kernel_layout(p.layout);
  s.rows = 4;
  s.group_size = traits.cpu ? std::max(8u, traits.subgroup_size) : 128u;
  const std::uint32_t shared_lanes = traits.max_shared_bytes / matmul_gemv_shared_bytes(layout, 1, s.rows);
  s.group_size = std::min({s.group_size, traits.max_group_invocations, shared_lanes});
  if (s.group_size == 0) {
    return Error(Errc::unsupported, "matmul: the gemv kernel needs shared memory, and this device has " +
                                        std::to_string(traits.max_shared_bytes) + " bytes");
  }
  s.group_size = std::bit_floor(s.group_size);
  s.slices = std::min(traits.cpu ? 1u : 4u, s.group_size);
  s.vectorized = matmul_vectorized(static_cast<std::uint32_t>(p.k), static_cast<std::uint32_t>(p.n));
  s.tile = matmul_gemv_tile(layout, s.vectorized, s.group_size, s.rows, s.slices);
  s.k_chunk =
      chunk_of(p.k, traits, [&](std::uint32_t k) { return matmul_gemv_iterations(layout, k, s.group_size, s.slices); });
  return s;
}

Result<MatmulSelection> tiled(const MatmulProblem& p, const Traits& traits, const char* reason,
                              std::size_t variant = 0) {
  const MatmulTiledShape* tiles = variant != 0 ? &tile_sets[variant - 1] : choose_tiles(p, traits);
  if (tiles == nullptr || !fits(*tiles, traits)) {
    return Error(Errc::unsupported, "matmul: no tile of the tiled kernel fits this device: " +
                                        std::to_string(traits.max_group_invocations) + " invocations and " +
                                        std::to_string(traits.max_shared_bytes) + " bytes of shared memory");
  }
  MatmulSelection s;
  s.kernel = MatmulKernel::tiled;
  s.reason = reason;
  s.tiles = *tiles;
  s.vectorized = matmul_vectorized(static_cast<std::uint32_t>(p.k), static_cast<std::uint32_t>(p.n));
  s.tile = matmul_tiled_tile(tiles->tile_m, tiles->tile_n);
  s.k_chunk = chunk_of(p.k, traits, [&](std::uint32_t k) { return matmul_tiled_iterations(k, tiles->tile_k); });
  return s;
}

// Elements of a row of W in a vec4 of words, which subgroup_nk takes at a time: weight_chunk of weights.glsl.
constexpr std::uint32_t weight_chunk(DType type) {
  switch (type) {
    case DType::f32: return 4;
    case DType::f16:
    case DType::bf16: return 8;
    case DType::q8_0: return 16;
    case DType::q4_0: return 32;
  }
  return 32;
}

SubgroupTile subgroup_tile_for(const MatmulProblem& p, Span<const SubgroupTile> tiles) {
  if (p.m == 1) return tiles[0];
  return tiles[p.m >= 5 ? 4 : p.m >= 3 ? 3 : 2];
}

Result<MatmulSelection> subgroup(const MatmulProblem& p, const Traits& traits, const char* reason,
                                 std::size_t variant = 0) {
  if (!traits.subgroup_operations || traits.subgroup_size < matmul_subgroup_min_lanes ||
      traits.max_group_invocations < traits.subgroup_size) {
    return Error(Errc::unsupported,
                 "matmul: the subgroup kernel needs subgroup arithmetic and ballots, in subgroups of " +
                     std::to_string(matmul_subgroup_min_lanes) + " or more");
  }
  MatmulSelection s;
  s.kernel = MatmulKernel::subgroup;
  s.reason = reason;
  const MatmulLayout layout = kernel_layout(p.layout);
  const std::uint32_t lanes = traits.subgroup_size;
  s.subgroups = std::max(1u, std::min(64u, traits.max_group_invocations) / lanes);
  s.group_size = s.subgroups * lanes;
  s.depth = 8;
  const Span<const SubgroupTile> tiles = subgroup_tiles(p.layout);
  const SubgroupTile tile = variant != 0 ? tiles[variant - 1] : subgroup_tile_for(p, tiles);
  s.rows = tile.rows;
  s.columns = layout == MatmulLayout::nk ? std::min(lanes, tile.columns) : tile.columns;
  s.tile = {s.rows, layout == MatmulLayout::nk ? s.columns : 4 * lanes * s.columns};
  s.vectorized = matmul_vectorized(static_cast<std::uint32_t>(p.k), static_cast<std::uint32_t>(p.n));
  const std::uint32_t chunk = weight_chunk(p.type);
  s.k_chunk = chunk_of(
      p.k, traits, [&](std::uint32_t k) { return matmul_subgroup_iterations(layout, k, lanes, s.depth, chunk); },
      chunk);
  return s;
}

// The same kernel with the same numbers whatever m is, so that a row's sums are always added up alike.
Result<MatmulSelection> invariant(const MatmulProblem& p, const Traits& traits) {
  constexpr std::uint64_t any_m = 64;
  MatmulProblem same = p;
  same.m = any_m;
  const MatmulTiledShape* tiles = p.type == DType::f32 ? choose_tiles(same, traits) : nullptr;
  if (tiles == nullptr) return naive(p, traits, "the same for every m, as asked, and no tile will do");
  return tiled(p, traits, "the same tiles for every m, as asked", static_cast<std::size_t>(tiles - tile_sets) + 1);
}

Result<MatmulSelection> choose(const MatmulProblem& p, const Traits& traits, MatmulForce forced) {
  if (p.type != DType::f32 && (forced.kernel == MatmulKernel::gemv || forced.kernel == MatmulKernel::tiled)) {
    return Error(Errc::unsupported, std::string("matmul: the ") + to_string(forced.kernel) +
                                        " kernel reads f32 weights, not " + to_string(p.type));
  }
  switch (forced.kernel) {
    case MatmulKernel::naive: return naive(p, traits, "forced");
    case MatmulKernel::gemv: return gemv(p, traits, "forced");
    case MatmulKernel::tiled: return tiled(p, traits, "forced", forced.variant);
    case MatmulKernel::subgroup: return subgroup(p, traits, "forced", forced.variant);
    case MatmulKernel::automatic: break;
  }
  // Its order of summation is the same for every tile.
  if (traits.cpu) {
    auto selection = subgroup(p, traits, "a CPU driver: each subgroup has a tile to itself, without barriers");
    if (selection) return selection;
  }
  if (p.batch_invariant) return invariant(p, traits);
  if (p.type != DType::f32) return naive(p, traits, "weights that are not f32");
  if (p.m == 1) {
    auto selection = gemv(p, traits, "a single row is bound by reading the matrix once: lanes share each row of it");
    if (selection) return selection;
    return naive(p, traits, "a single row, but no shared memory for the gemv kernel");
  }
  // Measured with lavapipe: naive is 4x faster at 8 rows, tiled 2x at 64 and 4x at 1024.
  if (traits.cpu && p.m < 32) {
    return naive(p, traits, "with few rows, workgroup barriers cost more on a CPU driver than tiles save");
  }
  if (p.m * p.n * p.k < 16 * 16 * 16) return naive(p, traits, "too small to fill a tile");
  auto selection = tiled(p, traits, "shared-memory tiles read each operand once per tile, not once per element");
  if (selection) return selection;
  return naive(p, traits, "no tile fits this device's workgroups");
}

}  // namespace

std::size_t matmul_variants(MatmulKernel kernel, Layout layout) noexcept {
  switch (kernel) {
    case MatmulKernel::tiled: return std::size(tile_sets);
    case MatmulKernel::subgroup: return subgroup_tiles(layout).size();
    case MatmulKernel::naive:
    case MatmulKernel::gemv: return 1;
    case MatmulKernel::automatic: break;
  }
  return 0;
}

Result<MatmulSelection> select_matmul(const MatmulProblem& p, const Traits& traits, MatmulForce forced) {
  auto selection = choose(p, traits, forced);
  if (selection) {
    const std::uint64_t row_tiles = (p.m + selection->tile.rows - 1) / selection->tile.rows;
    const std::uint64_t column_tiles = (p.n + selection->tile.columns - 1) / selection->tile.columns;
    selection->groups = (row_tiles * column_tiles + selection->subgroups - 1) / selection->subgroups;
  }
  return selection;
}

MatmulChoice explain(const MatmulProblem& p, const Traits& traits, MatmulForce forced) {
  MatmulChoice choice;
  if (p.m == 0 || p.n == 0) {
    choice.reason = "the product has no elements: nothing runs";
    return choice;
  }
  if (!fits_range(p.m, p.k, traits) || !fits_range(p.k, p.n, traits) || !fits_range(p.m, p.n, traits)) {
    choice.reason = "a matrix of that size is past this device's " + std::to_string(traits.max_storage_range) +
                    " bytes per tensor (maxStorageBufferRange)";
    return choice;
  }
  if (p.k == 0) {
    choice.groups = fill_groups(p.m * p.n, traits);
    choice.dispatches = 1;
    choice.reason = "an empty sum: the product is filled with zeros";
    return choice;
  }
  if (forced.kernel == MatmulKernel::gemv && p.m > 1) {
    choice.reason = "the gemv kernel does a single row, m = 1";
    return choice;
  }
  auto selection = select_matmul(p, traits, forced);
  if (!selection) {
    choice.reason = selection.error().message;
    return choice;
  }
  choice.kernel = selection->kernel;
  choice.groups = selection->groups;
  choice.dispatches = static_cast<std::uint32_t>((p.k + selection->k_chunk - 1) / selection->k_chunk);
  choice.reason = selection->reason;
  if (choice.dispatches > 1) {
    choice.reason += "; k is split into " + std::to_string(choice.dispatches) +
                     " dispatches, because this driver ends long loops early";
  }
  return choice;
}

}  // namespace brontes::plan
