#include "ops/matmul_coopmat.hpp"

#include <string>

namespace brontes::plan {
namespace {

struct Tiles {
  std::uint32_t subgroups_m, subgroups_n, matrices_m, matrices_n;
};

// By the size of matrices, the last row for those of which nothing is known. The suite gpu-compilers holds those that
// the selector offers to no spills.
struct TileSets {
  std::uint32_t m, n, k;
  Tiles sets[coopmat_variants];
  const char* source;
};
constexpr TileSets tile_sets[] = {
    {16, 16, 16, {{2, 4, 4, 2}, {2, 2, 2, 2}, {1, 2, 2, 2}}, "AMD from RDNA3 on, NVIDIA from Turing on: 32 lanes"},
    {8, 16, 16, {{4, 8, 2, 1}, {4, 4, 2, 1}, {2, 2, 2, 1}}, "Intel from Xe2 on: 16 lanes, 128 registers of 64 bytes"},
    {8, 8, 16, {{8, 4, 1, 2}, {4, 4, 1, 2}, {4, 4, 1, 1}}, "Intel's Xe-HPG: 8 lanes, 128 registers of 32 bytes"},
    {8, 8, 8, {{2, 4, 4, 2}, {2, 2, 2, 2}, {1, 2, 2, 1}}, "lavapipe of Mesa 26: 8 lanes"},
    {0, 0, 0, {{2, 2, 2, 2}, {2, 2, 2, 1}, {2, 2, 1, 1}}, "nothing is known of it"},
};

const TileSets& tile_sets_of(const MatrixUnits& units) {
  for (const TileSets& row : tile_sets) {
    if (row.m == units.m && row.n == units.n && row.k == units.k) return row;
  }
  return tile_sets[std::size(tile_sets) - 1];
}

// Who uses matrix units unasked, and why: they are not faster everywhere. Anybody else can be told to by a forced
// kernel, or by measurements.
struct Allowed {
  Vendor vendor;
  Architecture architecture;  // `unknown` speaks for all that have no row of their own
  const char* refusal;        // null: allowed
  const char* source;
};
constexpr Allowed allowed[] = {
    {Vendor::other, Architecture::unknown, "nothing is known of this vendor's", ""},
    {Vendor::nvidia, Architecture::nvidia_turing, nullptr,
     "ExecuTorch pull request 22899: q4 weights 4.1 to 6.2 times as fast on an RTX 5090"},
    {Vendor::amd, Architecture::amd_rdna3, nullptr,
     "one v_wmma for 16x16x16; nothing published by others, none refuses it"},
    {Vendor::amd, Architecture::amd_rdna4, nullptr, "as amd_rdna3"},
    {Vendor::intel, Architecture::intel_xe2, nullptr,
     "llama.cpp pull request 14001: 3.3 times as fast on a B580, 2.8 on a 268V. ANV 26.2.6 for Lunar Lake does not "
     "spill the "
     "tiles above, with two matrices of sums; four spill a little with an epilogue, eight spilled 316 times"},
    {Vendor::intel, Architecture::intel_xe_hpg, "on this architecture they are no faster",
     "llama.cpp pull request 14001: 1.0 on an A770"},
    {Vendor::cpu, Architecture::unknown, "a CPU driver only emulates them", "lavapipe of Mesa 26"},
};

const Allowed& allowed_of(const Traits& traits) {
  const Allowed* found = &allowed[0];
  for (const Allowed& row : allowed) {
    if (row.vendor != traits.vendor) continue;
    if (row.architecture == Architecture::unknown || row.architecture == traits.architecture) found = &row;
  }
  return *found;
}

bool built() { return kernels::get(kernels::Id::matmul_coopmat).has(kernels::AccessMode::storage); }

MatmulCoopmatShape shape_of(const MatrixUnits& units, const Tiles& tiles) {
  return {units.m,           units.n,           units.k,          units.lanes,
          tiles.subgroups_m, tiles.subgroups_n, tiles.matrices_m, tiles.matrices_n};
}

bool fits(const MatmulCoopmatShape& shape, Layout layout, const Traits& traits) {
  return shape.valid() && shape.group_size() <= traits.max_group_invocations &&
         matmul_coopmat_shared_bytes(kernel_layout(layout), shape) <= traits.max_shared_bytes;
}

}  // namespace

const char* coopmat_refusal(const MatmulProblem& p, const Traits& traits) noexcept {
  if (!traits.matrices) return "the device has none for f16 with sums in f32, or does not let pipelines use them";
  if (!p.f16_inputs) return "they round operands to f16, which Precision::f32 does not allow";
  if (!built()) return "this build of the library has no kernel for them";
  if (p.batch_invariant) return "results must not depend on the number of rows";
  if (p.m <= matmul_gemv_max_rows) return "so few rows are bound by reading the matrix";
  return allowed_of(traits).refusal;
}

Result<MatmulCoopmatShape> coopmat_shape(const MatmulProblem& p, const Traits& traits, std::uint64_t enough,
                                         std::size_t variant) {
  if (!p.f16_inputs) {
    return Error(Errc::invalid_argument,
                 "matmul: the coopmat kernel rounds its operands to f16, which takes Precision::f16");
  }
  if (!built()) {
    return Error(Errc::unsupported,
                 "matmul: the library was built without the coopmat kernel, for want of a glslang "
                 "that knows GL_KHR_cooperative_matrix");
  }
  if (!traits.matrices) {
    return Error(Errc::unsupported,
                 "matmul: the coopmat kernel needs VK_KHR_cooperative_matrix, with matrices of f16 whose sums are f32, "
                 "and subgroups of a known size");
  }
  const MatmulCoopmatShape* chosen = nullptr;
  MatmulCoopmatShape shapes[coopmat_variants];
  for (std::size_t i = 0; i < coopmat_variants; ++i) {
    shapes[i] = shape_of(traits.matrices, tile_sets_of(traits.matrices).sets[i]);
    if ((variant != 0 && variant != i + 1) || !fits(shapes[i], p.layout, traits)) continue;
    chosen = &shapes[i];
    const std::uint64_t tiles_m = (p.m + chosen->tile_m() - 1) / chosen->tile_m();
    const std::uint64_t tiles_n = (p.n + chosen->tile_n() - 1) / chosen->tile_n();
    if (p.batch * tiles_m * tiles_n >= enough) break;
  }
  if (chosen == nullptr) {
    return Error(Errc::unsupported, "matmul: no tile of the coopmat kernel fits this device: " +
                                        std::to_string(traits.max_group_invocations) + " invocations and " +
                                        std::to_string(traits.max_shared_bytes) + " bytes of shared memory");
  }
  return *chosen;
}

}  // namespace brontes::plan
