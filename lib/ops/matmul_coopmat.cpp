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
    {8, 16, 16, {{4, 4, 2, 2}, {4, 2, 2, 2}, {2, 2, 2, 1}}, "Intel from Xe2 on: 16 lanes, 128 registers of 64 bytes"},
    {8, 8, 16, {{4, 4, 2, 2}, {4, 4, 1, 2}, {4, 4, 1, 1}}, "Intel's Xe-HPG: 8 lanes, 128 registers of 32 bytes"},
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
  std::uint32_t matrix_n;  // 0 for any
  const char* refusal;     // null: allowed
  const char* source;
};
constexpr Allowed allowed[] = {
    {Vendor::nvidia, 0, nullptr, "ExecuTorch pull request 22899: q4 weights 4.1 to 6.2 times as fast on an RTX 5090"},
    {Vendor::amd, 0, nullptr, "RDNA3 and later: one v_wmma for 16x16x16; nothing published by others, none refuses it"},
    {Vendor::intel, 16, "no tiles are known that its compiler does not spill",
     "ANV 26.2.6 for Lunar Lake: 316 spills with eight matrices of sums; those above have not been compiled. Worth "
     "another look: llama.cpp pull request 14001 has 3.3 times as fast on a B580, 2.8 on a 268V"},
    {Vendor::intel, 8, "on this architecture they are no faster", "llama.cpp pull request 14001: 1.0 on an A770"},
    {Vendor::cpu, 0, "a CPU driver only emulates them", "lavapipe of Mesa 26"},
    {Vendor::other, 0, "nothing is known of this vendor's", ""},
};

const Allowed& allowed_of(const Traits& traits) {
  for (const Allowed& row : allowed) {
    if (row.vendor == traits.vendor && (row.matrix_n == 0 || row.matrix_n == traits.matrices.n)) return row;
  }
  return allowed[std::size(allowed) - 1];
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
