#include "plan/matmul.hpp"

#include "plan/plan.hpp"

#include <algorithm>
#include <bit>

namespace brontes {

const char* to_string(MatmulKernel kernel) noexcept {
  switch (kernel) {
    case MatmulKernel::automatic: return "automatic";
    case MatmulKernel::naive: return "naive";
    case MatmulKernel::gemv: return "gemv";
    case MatmulKernel::tiled: return "tiled";
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

MatmulLayout kernel_layout(Layout layout) { return layout == Layout::nk ? MatmulLayout::nk : MatmulLayout::kn; }

// The largest chunk of k whose loops stay within the device's allowance.
template <class Iterations>
std::uint64_t chunk_of(std::uint64_t k, const Traits& traits, Iterations iterations) {
  // The last chunk may be any shorter, and costs more where elements past a multiple of 4 go one by one.
  auto too_long = [&](std::uint64_t count) {
    return iterations(static_cast<std::uint32_t>(count)) > traits.max_loop_iterations;
  };
  if (k <= 4 || !too_long(k)) return k;
  std::uint64_t chunk = k / 4 * 4;
  while (chunk > 4 && (too_long(chunk) || too_long(chunk - 1))) chunk = (chunk / 2 + 3) / 4 * 4;
  return chunk;
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

Result<MatmulSelection> tiled(const MatmulProblem& p, const Traits& traits, const char* reason) {
  const MatmulTiledShape* tiles = choose_tiles(p, traits);
  if (tiles == nullptr) {
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

Result<MatmulSelection> choose(const MatmulProblem& p, const Traits& traits, MatmulKernel forced) {
  switch (forced) {
    case MatmulKernel::naive: return naive(p, traits, "forced");
    case MatmulKernel::gemv: return gemv(p, traits, "forced");
    case MatmulKernel::tiled: return tiled(p, traits, "forced");
    case MatmulKernel::automatic: break;
  }
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

Result<MatmulSelection> select_matmul(const MatmulProblem& p, const Traits& traits, MatmulKernel forced) {
  auto selection = choose(p, traits, forced);
  if (selection) {
    const std::uint64_t row_tiles = (p.m + selection->tile.rows - 1) / selection->tile.rows;
    const std::uint64_t column_tiles = (p.n + selection->tile.columns - 1) / selection->tile.columns;
    selection->groups = row_tiles * column_tiles;
  }
  return selection;
}

MatmulChoice explain(const MatmulProblem& p, const Traits& traits, MatmulKernel forced) {
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
  if (forced == MatmulKernel::gemv && p.m > 1) {
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

namespace {

// Every matmul kernel calls its operands alike.
using kernels::matmul_naive::Binding;
static_assert(kernels::matmul_gemv::a + 0u == Binding::a && kernels::matmul_tiled::a + 0u == Binding::a);
static_assert(kernels::matmul_gemv::b + 0u == Binding::b && kernels::matmul_tiled::b + 0u == Binding::b);
static_assert(kernels::matmul_gemv::c + 0u == Binding::c && kernels::matmul_tiled::c + 0u == Binding::c);

// The kernel of a selection with its specialization constants.
Dispatch specialized(const MatmulSelection& s, Layout layout, std::uint32_t group) {
  const auto b_layout = static_cast<std::uint32_t>(kernel_layout(layout));
  switch (s.kernel) {
    case MatmulKernel::gemv: {
      namespace kernel = kernels::matmul_gemv;
      Dispatch d(kernels::Id::matmul_gemv, group);
      d.set(kernel::group_size, s.group_size);
      d.set(kernel::b_layout, b_layout);
      d.set(kernel::vectorized, s.vectorized);
      d.set(kernel::rows, s.rows);
      d.set(kernel::slices, s.slices);
      return d;
    }
    case MatmulKernel::tiled: {
      namespace kernel = kernels::matmul_tiled;
      Dispatch d(kernels::Id::matmul_tiled, group);
      d.set(kernel::group_size, s.tiles.group_size());
      d.set(kernel::b_layout, b_layout);
      d.set(kernel::vectorized, s.vectorized);
      d.set(kernel::tile_m, s.tiles.tile_m);
      d.set(kernel::tile_n, s.tiles.tile_n);
      d.set(kernel::tile_k, s.tiles.tile_k);
      d.set(kernel::micro_m, s.tiles.micro_m);
      d.set(kernel::micro_n, s.tiles.micro_n);
      return d;
    }
    case MatmulKernel::naive:
    case MatmulKernel::automatic: break;
  }
  namespace kernel = kernels::matmul_naive;
  Dispatch d(kernels::Id::matmul_naive, group);
  d.set(kernel::group_x, s.group_x);
  d.set(kernel::group_y, s.group_y);
  d.set(kernel::b_layout, b_layout);
  return d;
}

}  // namespace

Error lower_matmul(Lowering& to, std::uint32_t index) {
  const Group& group = to.grouping.groups[index];
  const record::Node& node = to.graph.nodes()[group.root];
  const record::MatmulNode& op = node.matmul;
  const Region& c = to.region(to.grouping.result(group, to.graph));
  if (op.m == 0 || op.n == 0) return {};
  if (op.k == 0) return lower_fill(to, index, 0.0f, c, op.m * op.n);

  auto selected = select_matmul({op.m, op.k, op.n, op.layout}, to.traits, op.kernel);
  if (!selected) return selected.error();
  auto groups = fold(selected->groups, to.traits);
  if (!groups) return groups.error();

  Dispatch dispatch = specialized(*selected, op.layout, index);
  dispatch.groups = *groups;
  dispatch.bind(Binding::a, to.region(node.inputs[0]));
  dispatch.bind(Binding::b, to.region(node.inputs[1]));
  dispatch.bind(Binding::c, c);

  MatmulParams params{};
  params.m = static_cast<std::uint32_t>(op.m);
  params.k = static_cast<std::uint32_t>(op.k);
  params.n = static_cast<std::uint32_t>(op.n);
  params.alpha = op.alpha;
  params.groups = static_cast<std::uint32_t>(selected->groups);
  for (std::uint64_t k_begin = 0; k_begin < op.k; k_begin += selected->k_chunk) {
    params.k_begin = static_cast<std::uint32_t>(k_begin);
    params.k_count = static_cast<std::uint32_t>(std::min(selected->k_chunk, op.k - k_begin));
    params.accumulate = k_begin == 0 ? 0 : 1;
    dispatch.overwrites(Binding::c, k_begin == 0);
    if (k_begin + params.k_count == op.k) set_epilogue(to, index, dispatch, params.epilogue);
    dispatch.work = op.m * op.n * params.k_count;
    dispatch.params(params);
    to.dispatches.push_back(dispatch);
    to.dispatches.back().close();
  }
  return {};
}

}  // namespace brontes::plan
