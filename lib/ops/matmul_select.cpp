#include "ops/matmul.hpp"

#include "ops/matmul_coopmat.hpp"
#include "ops/matmul_tiles.hpp"
#include "ops/matmul_tuning.hpp"
#include "plan/plan.hpp"  // fold(), fill_groups()

#include <algorithm>
#include <bit>
#include <cstdio>

namespace brontes {

const char* to_string(MatmulKernel kernel) noexcept {
  switch (kernel) {
    case MatmulKernel::automatic: return "automatic";
    case MatmulKernel::naive: return "naive";
    case MatmulKernel::gemv: return "gemv";
    case MatmulKernel::tiled: return "tiled";
    case MatmulKernel::subgroup: return "subgroup";
    case MatmulKernel::panel: return "panel";
    case MatmulKernel::coopmat: return "coopmat";
  }
  return "unknown";
}

const char* to_string(Precision precision) noexcept {
  switch (precision) {
    case Precision::automatic: return "automatic";
    case Precision::f32: return "f32";
    case Precision::f16: return "f16";
  }
  return "unknown";
}

const char* to_string(Layout layout) noexcept { return layout == Layout::nk ? "nk" : "kn"; }

}  // namespace brontes

namespace brontes::plan {
namespace {

// Vetted tile sets, best first: docs/kernels.md has their figures. All fit the 16 KiB of shared memory that
// every device has, and the last the 128 invocations, too.
constexpr MatmulTiledShape tile_sets[] = {
    {128, 128, 8, 8},
    {64, 64, 8, 4},
    {32, 64, 4, 8},
};
static_assert(tile_sets[0].valid() && tile_sets[1].valid() && tile_sets[2].valid());

// Workgroups that keep a large GPU busy.
constexpr std::uint64_t enough_tiles = 128;
constexpr std::uint64_t enough_gemv_groups = 256;

// Whether an invocation has the registers for them.
bool holds(const MatmulTiledShape& tiles, const Traits& traits) {
  return tiles.micro_m * tiles.micro_n <= matmul_tiles_of(traits).tiled;
}

bool fits(const MatmulTiledShape& tiles, const Traits& traits) {
  return tiles.group_size() <= traits.max_group_invocations &&
         matmul_tiled_shared_bytes(tiles.tile_m, tiles.tile_n) <= traits.max_shared_bytes;
}

// Of all matrices of a batch.
std::uint64_t tiles_of(const MatmulProblem& p, const MatmulTile& tile) {
  return p.batch * ((p.m + tile.rows - 1) / tile.rows) * ((p.n + tile.columns - 1) / tile.columns);
}

// Large tiles reuse more but leave a GPU idle when there are few of them.
const MatmulTiledShape* choose_tiles(const MatmulProblem& p, const Traits& traits) {
  const MatmulTiledShape* smallest = nullptr;
  for (const MatmulTiledShape& tiles : tile_sets) {
    if (!fits(tiles, traits) || !holds(tiles, traits)) continue;
    smallest = &tiles;
    if (tiles_of(p, {tiles.tile_m, tiles.tile_n}) >= enough_tiles) return &tiles;
  }
  return smallest;
}

bool fits_range(std::uint64_t matrices, std::uint64_t rows, std::uint64_t columns, const Traits& traits) {
  const std::uint64_t most = traits.max_storage_range / sizeof(float);
  if (matrices == 0 || columns == 0) return true;
  return rows <= most / columns && rows * columns <= most / matrices;
}

// Elements of W that 16 bytes hold, which kernels take at a time: weight_chunk of weights.glsl.
std::uint32_t chunk_elements(DType type) {
  switch (type) {
    case DType::f32:
    case DType::i32:
    case DType::mask: return 4;
    case DType::f16:
    case DType::bf16: return 8;
    case DType::q8_0: return 16;
    case DType::q4_0: return 32;
  }
  return 4;
}

// The largest chunk of k whose loops stay within the device's allowance. Whole blocks of quantized weights, or
// where not even one of these is allowed, whole units.
template <class Iterations>
std::uint64_t chunk_of(std::uint64_t k, const Traits& traits, Iterations iterations, std::uint64_t unit = 4) {
  constexpr std::uint64_t block = 32;
  // The last chunk may be any shorter, and costs more where elements past a multiple of 4 go one by one.
  auto too_long = [&](std::uint64_t count) {
    return iterations(static_cast<std::uint32_t>(count)) > traits.max_loop_iterations;
  };
  if (k <= unit || !too_long(k)) return k;
  auto round_up = [](std::uint64_t count, std::uint64_t to) { return (count + to - 1) / to * to; };
  std::uint64_t chunk = k > block ? k / block * block : k / unit * unit;
  while (chunk > unit && (too_long(chunk) || too_long(chunk - 1))) {
    chunk = round_up(chunk / 2, chunk / 2 > block ? block : unit);
  }
  return chunk;
}

// Few tiles and a long k leave a GPU idle: then several workgroups share the k of each tile.
void slice(MatmulSelection& s, const MatmulProblem& p, const Traits& traits, std::uint64_t enough,
           std::uint64_t shortest) {
  if (p.batch_invariant) return;  // their number depends on m, and on that of matrices
  constexpr std::uint64_t most_slices = 64;
  const std::uint64_t tiles = tiles_of(p, s.tile);
  // A CPU has few workers, and a dispatch more costs it much.
  if (traits.cpu) enough = 16;
  std::uint64_t slices = std::min({(enough + tiles - 1) / tiles, p.k / shortest, most_slices});
  if (matmul_combine_iterations(most_slices) > traits.max_loop_iterations) slices = 1;
  if (slices < 2 || p.batch * p.m * p.n > traits.max_storage_range / sizeof(float) / slices) return;
  const std::uint64_t even = ((p.k + slices - 1) / slices + 31) / 32 * 32;
  if (s.k_chunk < 32) return;  // slices are whole blocks of quantized weights
  s.k_slice = std::min(s.k_chunk, even);
  s.slices = static_cast<std::uint32_t>(std::min(slices, (p.k + s.k_slice - 1) / s.k_slice));
  s.k_chunk = std::min(p.k, s.k_slice * s.slices);
}

// Tiles of the kernels for CPU drivers: rows, and MatmulSubgroupShape::columns.
struct SubgroupTile {
  std::uint32_t rows, columns;
};
// Vetted, for measurements to choose from. The defaults fit their rows to m.
constexpr SubgroupTile subgroup_tiles_nk[] = {{1, 16}, {1, 8}, {2, 16}, {2, 8}, {4, 8}, {4, 4}, {8, 8}, {8, 4}};
constexpr SubgroupTile subgroup_tiles_kn[] = {{1, 4}, {1, 2}, {2, 4}, {4, 4},  {4, 2},
                                              {8, 4}, {8, 2}, {8, 1}, {16, 4}, {16, 2}};
constexpr SubgroupTile panel_tiles[] = {{16, 8}, {16, 4}, {12, 4}, {8, 8}, {8, 4}, {8, 2}, {4, 8}, {4, 4}, {1, 8}};

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
  s.k_chunk = chunk_of(
      p.k, traits, [](std::uint32_t k) { return matmul_naive_iterations(k); }, chunk_elements(p.type));
  return s;
}

// Some kernels have loops besides that over k, which smaller chunks of k do not shorten.
Error too_many_loops(const char* kernel, std::uint32_t least, const Traits& traits) {
  if (least <= traits.max_loop_iterations) return {};
  return Error(Errc::unsupported, "matmul: the " + std::string(kernel) + " kernel needs " + std::to_string(least) +
                                      " loop iterations, and this device allows " +
                                      std::to_string(traits.max_loop_iterations));
}

Result<MatmulSelection> gemv(const MatmulProblem& p, const Traits& traits, const char* reason) {
  if (p.m > matmul_gemv_max_rows) {
    return Error(Errc::invalid_argument, "matmul: the gemv kernel does up to " + std::to_string(matmul_gemv_max_rows) +
                                             " rows, not " + std::to_string(p.m));
  }
  MatmulSelection s;
  s.kernel = MatmulKernel::gemv;
  s.reason = reason;
  const MatmulLayout layout = kernel_layout(p.layout);
  s.vectorized = matmul_vectorized(static_cast<std::uint32_t>(p.k), static_cast<std::uint32_t>(p.n));
  MatmulGemvShape& g = s.gemv;
  g.subgroups = layout == MatmulLayout::nk && traits.subgroup_operations && traits.subgroup_size >= 4;
  g.rows = std::bit_ceil(static_cast<std::uint32_t>(p.m));
  const std::uint32_t most_sums = p.type == DType::f32 ? 32 : matmul_tiles_of(traits).packed_gemv;
  g.columns = std::min(4u, most_sums / g.rows);
  g.chunk = chunk_elements(p.type);
  // A team has 16 lanes, whose loads are whole cache lines; along k there should be work for all lanes.
  constexpr std::uint32_t team = 16;
  g.group_size = layout == MatmulLayout::nk ? 128u : 256u;
  while (layout == MatmulLayout::nk && g.group_size > 32 && std::uint64_t{g.group_size} * g.chunk > p.k) {
    g.group_size /= 2;
  }
  if (traits.cpu) g.group_size = std::bit_floor(std::max(8u, traits.subgroup_size));
  g.group_size = std::min(g.group_size, std::bit_floor(traits.max_group_invocations));
  // More would keep other workgroups out.
  const std::uint32_t most_shared = std::min(16384u, traits.max_shared_bytes);
  g.teams = 1;
  while (g.group_size > 0 && matmul_gemv_shared_bytes(layout, s.vectorized, g) > most_shared) g.group_size /= 2;
  if (g.group_size == 0) {
    return Error(Errc::unsupported, "matmul: the gemv kernel needs shared memory, and this device has " +
                                        std::to_string(traits.max_shared_bytes) + " bytes");
  }
  if (layout == MatmulLayout::kn && !traits.cpu) g.teams = std::max(1u, g.group_size / team);
  auto iterations = [&](std::uint32_t k) { return matmul_gemv_iterations(layout, k, g); };
  if (Error e = too_many_loops("gemv", iterations(4), traits)) return e;
  s.tile = matmul_gemv_tile(layout, s.vectorized, g);
  s.k_chunk = chunk_of(p.k, traits, iterations, g.chunk);
  slice(s, p, traits, enough_gemv_groups, layout == MatmulLayout::nk ? 2048 : 512);
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
  // What a CPU driver lacks in registers it has in its first-level cache, and who asks for it may wait.
  if (!traits.cpu && !holds(*tiles, traits)) {
    return Error(Errc::unsupported, "matmul: tiles of " + std::to_string(tiles->tile_m) + "x" +
                                        std::to_string(tiles->tile_n) +
                                        " take more registers than this device has: " + matmul_tiles_of(traits).source);
  }
  MatmulSelection s;
  s.kernel = MatmulKernel::tiled;
  s.reason = reason;
  s.tiles = *tiles;
  s.vectorized = matmul_vectorized(static_cast<std::uint32_t>(p.k), static_cast<std::uint32_t>(p.n));
  s.tile = matmul_tiled_tile(tiles->tile_m, tiles->tile_n);
  s.k_chunk = chunk_of(
      p.k, traits, [](std::uint32_t k) { return matmul_tiled_iterations(k); }, chunk_elements(p.type));
  slice(s, p, traits, enough_tiles, 512);
  return s;
}

// By matrix units, whose tiles are in matmul_coopmat.cpp.
Result<MatmulSelection> coopmat(const MatmulProblem& p, const Traits& traits, const char* reason,
                                std::size_t variant = 0) {
  const auto shape = coopmat_shape(p, traits, enough_tiles, variant);
  if (!shape) return shape.error();
  MatmulSelection s;
  s.kernel = MatmulKernel::coopmat;
  s.reason = reason;
  s.coopmat = *shape;
  s.vectorized = matmul_vectorized(static_cast<std::uint32_t>(p.k), static_cast<std::uint32_t>(p.n));
  s.tile = {shape->tile_m(), shape->tile_n()};
  auto iterations = [&](std::uint32_t k) { return matmul_coopmat_iterations(k, *shape); };
  if (Error e = too_many_loops("coopmat", iterations(matmul_coopmat_k), traits)) return e;
  s.k_chunk = chunk_of(p.k, traits, iterations, matmul_coopmat_k);
  slice(s, p, traits, enough_tiles, 512);
  return s;
}

bool has_subgroups(const Traits& traits) {
  return traits.subgroup_operations && traits.exact_subgroups && traits.subgroup_size >= matmul_subgroup_min_lanes &&
         traits.max_group_invocations >= real_lanes(traits);
}

Error no_subgroups(const char* kernel, const Traits& traits) {
  if (traits.subgroup_operations && !traits.exact_subgroups) {
    return Error(Errc::unsupported, "matmul: the " + std::string(kernel) +
                                        " kernel needs subgroups of a known size, and this device neither lets "
                                        "pipelines require one nor has one only");
  }
  return Error(Errc::unsupported, "matmul: the " + std::string(kernel) +
                                      " kernel needs subgroup arithmetic, ballots and shuffles, in subgroups of " +
                                      std::to_string(matmul_subgroup_min_lanes) + " or more");
}

// Lanes that tiles are made for: widths have to be whole vec4s.
std::uint32_t lanes_of(const Traits& traits) { return std::bit_floor(traits.subgroup_size); }

// With narrower subgroups come fewer and smaller registers.
std::uint32_t most_rows(const Traits& traits) { return traits.subgroup_size < 8 ? 8 : 16; }

// Rows of a tile of which as few as can be are past m, in steps that do not ask for a pipeline for each m.
std::uint32_t rows_for(std::uint64_t m, std::uint32_t most) {
  if (m <= 4) return static_cast<std::uint32_t>(m);
  const std::uint64_t bands = (m + most - 1) / most;
  return static_cast<std::uint32_t>(((m + bands - 1) / bands + 1) / 2 * 2);
}

// Narrower while there are too few tiles for a CPU's cores.
template <class Width>
void narrow(SubgroupTile& tile, const MatmulProblem& p, Width width) {
  constexpr std::uint64_t enough = 16;
  while (tile.columns > 1 && tiles_of(p, {tile.rows, width(tile.columns)}) < enough) tile.columns /= 2;
}

// The numbers that kernels which give a subgroup a tile have in common.
void set_subgroup_shape(MatmulSelection& s, const MatmulProblem& p, const Traits& traits, const SubgroupTile& tile,
                        std::uint32_t width) {
  s.vectorized = matmul_vectorized(static_cast<std::uint32_t>(p.k), static_cast<std::uint32_t>(p.n));
  s.tile = {tile.rows, width};
  MatmulSubgroupShape& shape = s.subgroup;
  shape.rows = tile.rows;
  shape.columns = tile.columns;
  shape.width = width;
  const std::uint32_t lanes = real_lanes(traits);
  shape.lanes = lanes;
  // A single row is as quickly loaded as broadcast.
  shape.sources = tile.rows == 1 ? 1 : traits.subgroup_size < 8 ? 4 : 8;
  // A workgroup is what a core takes at a time: several tiles, but not so many that cores go without. Powers of two,
  // for the sake of fewer pipelines.
  constexpr std::uint64_t enough_groups = 32;
  const std::uint32_t most = std::max(1u, std::min(64u, traits.max_group_invocations) / lanes);
  const std::uint64_t wanted = std::clamp<std::uint64_t>(tiles_of(p, s.tile) / enough_groups, 1, most);
  shape.tiles = static_cast<std::uint32_t>(std::bit_floor(wanted));
  shape.group_size = shape.tiles * lanes;
}

SubgroupTile subgroup_tile_nk(const MatmulProblem& p, const Traits& traits) {
  SubgroupTile tile{rows_for(p.m, matmul_subgroup_nk_max_rows), 16};
  // Gathers want more registers than texel fetches, which are calls and empty them all.
  const bool gathers = traits.access.general == kernels::AccessMode::pointer;
  if (tile.rows > 2 || gathers) tile.columns = traits.subgroup_size < 8 ? 4 : 8;
  narrow(tile, p, [](std::uint32_t columns) { return columns; });
  return tile;
}

SubgroupTile subgroup_tile_kn(const MatmulProblem& p, const Traits& traits) {
  SubgroupTile tile{rows_for(p.m, most_rows(traits)), 4};
  if (tile.rows > 8) tile.columns = 2;
  if (traits.subgroup_size < 8) tile.columns = tile.rows > 4 ? 1 : 2;
  narrow(tile, p, [&](std::uint32_t vectors) { return 4 * lanes_of(traits) * vectors; });
  return tile;
}

SubgroupTile panel_tile(const MatmulProblem& p, const Traits& traits) {
  SubgroupTile tile{rows_for(p.m, most_rows(traits)), p.m > 1 ? 4u : 8u};
  narrow(tile, p, [&](std::uint32_t columns) { return lanes_of(traits) * columns; });
  return tile;
}

Result<MatmulSelection> subgroup(const MatmulProblem& p, const Traits& traits, const char* reason,
                                 std::size_t variant = 0) {
  if (!has_subgroups(traits)) return no_subgroups("subgroup", traits);
  MatmulSelection s;
  s.kernel = MatmulKernel::subgroup;
  s.reason = reason;
  const std::uint32_t lanes = lanes_of(traits);
  SubgroupTile tile = variant != 0             ? subgroup_tiles(p.layout)[variant - 1]
                      : p.layout == Layout::nk ? subgroup_tile_nk(p, traits)
                                               : subgroup_tile_kn(p, traits);
  if (p.layout == Layout::nk) {
    tile.columns = std::min(2 * lanes, tile.columns);
    set_subgroup_shape(s, p, traits, tile, tile.columns);
    const std::uint32_t chunk = chunk_elements(p.type);
    s.k_chunk = chunk_of(
        p.k, traits, [&](std::uint32_t k) { return matmul_subgroup_nk_iterations(k, lanes, chunk); }, chunk);
  } else {
    if (Error e = too_many_loops("subgroup", matmul_subgroup_kn_iterations(7), traits)) return e;
    set_subgroup_shape(s, p, traits, tile, 4 * lanes * tile.columns);
    s.k_chunk = chunk_of(p.k, traits, [](std::uint32_t k) { return matmul_subgroup_kn_iterations(k); });
  }
  return s;
}

// Repacking takes dispatches of its own, and as long as some 20 rows of a product with what is in order.
constexpr std::uint64_t repacking_pays = 32;

// Of the products that share a matrix B: it is repacked once for all of them.
std::uint64_t rows_per_matrix(const MatmulProblem& p) { return p.m * p.batch / p.b_matrices; }

Result<MatmulSelection> panel(const MatmulProblem& p, const Traits& traits, const char* reason,
                              std::size_t variant = 0) {
  if (!has_subgroups(traits)) return no_subgroups("panel", traits);
  if (Error e = too_many_loops("panel", matmul_panel_iterations(8, 1), traits)) return e;
  MatmulSelection s;
  s.kernel = MatmulKernel::panel;
  s.reason = reason;
  const SubgroupTile tile = variant != 0 ? panel_tiles[variant - 1] : panel_tile(p, traits);
  set_subgroup_shape(s, p, traits, tile, tile.columns * lanes_of(traits));
  MatmulSubgroupShape& shape = s.subgroup;
  // lavapipe, which likes texels, ends each iteration with a select for every sum; more code at a time is no use to
  // others.
  const bool two = traits.access.panels == kernels::AccessMode::texel && matmul_fours(p.k) % 2 == 0;
  shape.steps = two ? 2 : 1;
  // Loads from storage buffers cost the same wherever they begin.
  const bool whole = p.k % 4 == 0 || traits.access.panels == kernels::AccessMode::storage;
  shape.a_packed = !whole;
  const std::uint64_t most = traits.max_storage_range / sizeof(float);
  const bool b_fits = matmul_packed_elements(p.n, p.k, shape.width) <= most / p.b_matrices;
  // Rows that lie whole pages apart meet in the same sets of a cache, and a panel of them does not fit into these:
  // repacking W pays as soon as it does elsewhere.
  constexpr std::uint64_t page = 4096;
  const bool collide = p.k * sizeof(float) % page == 0 && rows_per_matrix(p) >= repacking_pays && b_fits;
  shape.b_packed = !whole || p.layout == Layout::kn || p.type != DType::f32 || collide;
  if ((shape.a_packed && matmul_packed_elements(p.m, p.k, shape.rows) > most / p.a_matrices) ||
      (shape.b_packed && !b_fits)) {
    return Error(Errc::limit_exceeded, "matmul: an operand repacked for the panel kernel is past this device's " +
                                           std::to_string(traits.max_storage_range) +
                                           " bytes per tensor (maxStorageBufferRange)");
  }
  if (shape.b_packed) {
    // What lower_pack() needs of the grid, too, before another kernel is given up for this one.
    const std::uint64_t groups =
        matmul_pack_groups(traits, kernel_layout(p.layout), p.b_matrices, p.n, p.k, shape.width);
    if (auto folded = fold(groups, traits); !folded) return folded.error();
  }
  s.k_chunk = chunk_of(
      p.k, traits, [&](std::uint32_t k) { return matmul_panel_iterations(k, shape.steps); }, 8);
  return s;
}

// Measured with lavapipe 22 and 25 and with SwiftShader.
bool panel_pays(const MatmulProblem& p, const Traits& traits) {
  const bool nk = p.layout == Layout::nk;
  const bool aligned = (nk ? p.k : p.n) % 4 == 0 || traits.access.panels == kernels::AccessMode::storage;
  if (nk && p.type == DType::f32 && aligned) return p.m > 4 || traits.subgroup_size < 8;
  constexpr std::uint64_t much = 64 * 64 * 64;
  const std::uint64_t rows = rows_per_matrix(p);
  if (p.batch * p.m * p.k * p.n < much) return false;
  if (p.type != DType::f32) return rows >= repacking_pays;
  // A vec4 across texels is two of them, but four gathers.
  const bool gathers = nk && traits.access.general == kernels::AccessMode::pointer;
  return !aligned && rows >= (gathers ? 12 : repacking_pays);
}

Result<MatmulSelection> for_cpu(const MatmulProblem& p, const Traits& traits) {
  // The subgroup kernel adds up in the same order for every tile; panels have another.
  if (!p.batch_invariant && panel_pays(p, traits)) {
    auto selection = panel(p, traits, "a CPU driver: each subgroup has a panel of columns to itself, without barriers");
    if (selection) return selection;
  }
  return subgroup(p, traits, "a CPU driver: each subgroup has a tile to itself, without barriers");
}

// The same kernel with the same numbers whatever m is, so that a row's sums are always added up alike.
Result<MatmulSelection> invariant(const MatmulProblem& p, const Traits& traits) {
  constexpr std::uint64_t any_m = 64;
  MatmulProblem same = p;
  same.m = any_m;
  same.batch = 1;
  const MatmulTiledShape* tiles = choose_tiles(same, traits);
  if (tiles == nullptr) return naive(p, traits, "the same for every m, as asked, and no tile will do");
  return tiled(p, traits, "the same tiles for every m, as asked", static_cast<std::size_t>(tiles - tile_sets) + 1);
}

Result<MatmulSelection> choose(const MatmulProblem& p, const Traits& traits, MatmulForce forced) {
  switch (forced.kernel) {
    case MatmulKernel::naive: return naive(p, traits, "forced");
    case MatmulKernel::gemv: return gemv(p, traits, "forced");
    case MatmulKernel::tiled: return tiled(p, traits, "forced", forced.variant);
    case MatmulKernel::subgroup: return subgroup(p, traits, "forced", forced.variant);
    case MatmulKernel::panel: return panel(p, traits, "forced", forced.variant);
    case MatmulKernel::coopmat: return coopmat(p, traits, "forced", forced.variant);
    case MatmulKernel::automatic: break;
  }
  if (coopmat_refusal(p, traits) == nullptr) {
    auto selection = coopmat(p, traits, "matrix units multiply f16, which the precision allows");
    if (selection) return selection;
  }
  if (traits.cpu) {
    auto selection = for_cpu(p, traits);
    if (selection) return selection;
  }
  if (p.batch_invariant) return invariant(p, traits);
  if (p.m == 1) {
    auto selection = gemv(p, traits, "a single row is bound by reading the matrix once: lanes share each row of it");
    if (selection) return selection;
    return naive(p, traits, "a single row, but no shared memory for the gemv kernel");
  }
  // Measured with lavapipe: naive is 4x faster at 8 rows, tiled 2x at 64 and 4x at 1024.
  if (traits.cpu && p.m < 32) {
    return naive(p, traits, "with few rows, workgroup barriers cost more on a CPU driver than tiles save");
  }
  // However many of them a batch has.
  if (p.m * p.n * p.k < 16 * 16 * 16) return naive(p, traits, "too small to fill a tile");
  if (p.m <= matmul_gemv_max_rows) {
    auto selection = gemv(p, traits, "few rows are bound by reading the matrix, once for all of them");
    if (selection) return selection;
  }
  auto selection = tiled(p, traits, "shared-memory tiles read each operand once per tile, not once per element");
  if (selection) return selection;
  return naive(p, traits, "no tile fits this device's workgroups");
}

// What was measured, where it works on this device, or else the default.
Result<MatmulSelection> choose_measured(const MatmulProblem& p, const Traits& traits) {
  // Measurements differ by m, and are of single products.
  if (traits.tuning == nullptr || p.batch_invariant || p.batch != 1) return choose(p, traits, {});
  const TunedMatmul* tuned = find(*traits.tuning, p, traits.access);
  if (tuned != nullptr && tuned->choice.kernel != MatmulKernel::automatic &&
      tuned->choice.variant <= matmul_variants(tuned->choice.kernel, p.layout)) {
    auto selection = choose(p, traits, tuned->choice);
    if (selection) {
      selection->reason = "measured on this device";
      selection->tuned = tuned;
      return selection;
    }
  }
  auto selection = choose(p, traits, {});
  if (selection && tuned != nullptr && tuned->choice.kernel == MatmulKernel::automatic) selection->tuned = tuned;
  return selection;
}

// What the measurement says, behind the selection's reason.
std::string figures(const TunedMatmul& tuned) {
  auto matrix = [](std::uint64_t rows, std::uint64_t columns) {
    return "[" + std::to_string(rows) + ", " + std::to_string(columns) + "]";
  };
  const std::string product = matrix(tuned.m, tuned.k) + " x " + matrix(tuned.k, tuned.n);
  if (tuned.choice.kernel == MatmulKernel::automatic) {
    return "; measured on this device: nothing was faster at " + product;
  }
  char gain[32];
  std::snprintf(gain, sizeof gain, "%.2f", static_cast<double>(tuned.gain));
  return ": " + std::string(gain) + " times as fast as the default at " + product;
}

}  // namespace

Result<MatmulSelection> select_matmul(const MatmulProblem& p, const Traits& traits, MatmulForce forced) {
  if (forced.variant > matmul_variants(forced.kernel, p.layout)) {
    return Error(Errc::invalid_argument, "matmul: variant " + std::to_string(forced.variant) + " of the " +
                                             to_string(forced.kernel) + " kernel, which has " +
                                             std::to_string(matmul_variants(forced.kernel, p.layout)));
  }
  auto selection = forced.kernel == MatmulKernel::automatic ? choose_measured(p, traits) : choose(p, traits, forced);
  if (selection) {
    const std::uint64_t per_group = std::max(1u, selection->subgroup.tiles);
    selection->groups = (tiles_of(p, selection->tile) + per_group - 1) / per_group;
    if (selection->k_slice == 0) selection->k_slice = selection->k_chunk;
  }
  return selection;
}

MatmulChoice explain(const MatmulProblem& p, const Traits& traits, MatmulForce forced) {
  MatmulChoice choice;
  if (p.batch == 0 || p.m == 0 || p.n == 0) {
    choice.reason = "the product has no elements: nothing runs";
    return choice;
  }
  if (!fits_range(p.a_matrices, p.m, p.k, traits) || !fits_range(p.b_matrices, p.k, p.n, traits) ||
      !fits_range(p.batch, p.m, p.n, traits)) {
    choice.reason = "a matrix of that size is past this device's " + std::to_string(traits.max_storage_range) +
                    " bytes per tensor (maxStorageBufferRange)";
    return choice;
  }
  if (p.k == 0) {
    choice.groups = fill_groups(p.batch * p.m * p.n, traits);
    choice.dispatches = 1;
    choice.reason = "an empty sum: the product is filled with zeros, times alpha";
    return choice;
  }
  auto selection = select_matmul(p, traits, forced);
  if (!selection) {
    choice.reason = selection.error().message;
    return choice;
  }
  choice.kernel = selection->kernel;
  choice.slices = selection->slices;
  choice.groups = selection->groups * selection->slices;
  const std::uint64_t chunks = (p.k + selection->k_chunk - 1) / selection->k_chunk;
  choice.dispatches = static_cast<std::uint32_t>(selection->slices > 1 ? 2 * chunks : chunks);
  const MatmulSubgroupShape& shape = selection->subgroup;
  choice.dispatches += (shape.a_packed ? 1u : 0u) + (shape.b_packed ? 1u : 0u);
  choice.reason = selection->reason;
  if (p.batch > 1) choice.reason += "; all " + std::to_string(p.batch) + " matrices of the batch run side by side";
  if (shape.a_packed || shape.b_packed) {
    choice.reason += shape.a_packed ? "; both operands are repacked first" : "; the second operand is repacked first";
  }
  if (selection->tuned != nullptr) choice.reason += figures(*selection->tuned);
  if (selection->kernel != MatmulKernel::coopmat && forced.kernel == MatmulKernel::automatic &&
      (traits.matrices || p.f16_inputs)) {
    if (const char* refusal = coopmat_refusal(p, traits)) {
      choice.reason += std::string("; not by matrix units, because ") + refusal;
    }
  }
  if (selection->slices > 1) {
    choice.reason += "; k is split into " + std::to_string(selection->slices) +
                     " slices side by side, which a second dispatch adds up, because " +
                     std::to_string(selection->groups) + (selection->groups == 1 ? " workgroup" : " workgroups") +
                     " would leave the device idle";
  }
  if (chunks > 1) {
    choice.reason +=
        "; k is split into " + std::to_string(chunks) + " parts in turn, because this driver ends long loops early";
  }
  return choice;
}

}  // namespace brontes::plan

namespace brontes {

std::uint32_t matmul_variants(MatmulKernel kernel, Layout layout) noexcept {
  switch (kernel) {
    case MatmulKernel::tiled: return static_cast<std::uint32_t>(std::size(plan::tile_sets));
    case MatmulKernel::subgroup: return static_cast<std::uint32_t>(plan::subgroup_tiles(layout).size());
    case MatmulKernel::panel: return static_cast<std::uint32_t>(std::size(plan::panel_tiles));
    case MatmulKernel::coopmat: return plan::coopmat_variants;
    case MatmulKernel::naive:
    case MatmulKernel::gemv: return 1;
    case MatmulKernel::automatic: break;
  }
  return 0;
}

}  // namespace brontes
