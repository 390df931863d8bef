// SPDX-License-Identifier: MIT
#pragma once

#include <brontes/device.hpp>
#include <brontes/export.hpp>

#include <cstdint>
#include <string>

namespace brontes {

/// How the second operand of a matmul lies in memory, always row-major.
enum class Layout : std::uint8_t {
  kn,  ///< B[K, N]: C = A x B
  nk,  ///< W[N, K]: C = A x W^T, the way model files store a linear layer
};

/// The kernels of the selector. Every one of them gives the same product for every shape.
enum class MatmulKernel : std::uint8_t {
  automatic,  ///< the selector decides
  naive,      ///< one invocation per element; the reference
  gemv,       ///< up to eight rows (M <= 8): reads the matrix once for all of them
  tiled,      ///< shared-memory tiles with register blocking
  subgroup,   ///< a subgroup per tile, no shared memory: for CPU drivers
  panel,      ///< likewise, for more rows; repacks operands first that do not lie as it wants them
};

/// "naive", "gemv" and so on. Never null.
BRONTES_API const char* to_string(MatmulKernel kernel) noexcept;
BRONTES_API const char* to_string(Layout layout) noexcept;

struct MatmulOptions {
  /// C = alpha * A x B. Part of the kernel on every path.
  float alpha = 1.0f;
  Layout layout = Layout::kn;
  /// A forced choice, for tests and benchmarks. Errc::invalid_argument where the kernel cannot do
  /// the shape (gemv with M > 8).
  MatmulKernel kernel = MatmulKernel::automatic;
  /// Of the vetted tiles of a forced kernel, 1 to matmul_variants(); 0 for the one that suits the shape. Without
  /// a forced kernel, or past the last: Errc::invalid_argument when it is planned.
  std::uint32_t variant = 0;
};

/// How many sets of tiles a kernel has for a layout. All of them give the same product; tune_matmul() tries all.
BRONTES_API std::uint32_t matmul_variants(MatmulKernel kernel, Layout layout) noexcept;

/// What the selector chose for a product, and why.
struct MatmulChoice {
  MatmulKernel kernel = MatmulKernel::automatic;  ///< automatic: nothing to compute
  std::uint64_t groups = 0;                       ///< workgroups of one dispatch
  std::uint32_t dispatches = 0;                   ///< more than one when K is split or an operand is repacked
  std::uint32_t slices = 1;                       ///< of K, side by side in one dispatch; another adds them up
  std::string reason;                             ///< one sentence, for people
};

/// What Batch::matmul would run on this device for an [m, k] x [k, n] product.
/// Thread-safety: as Device.
BRONTES_API MatmulChoice explain_matmul(const Device& device, std::uint64_t m, std::uint64_t k, std::uint64_t n,
                                        const MatmulOptions& options = {});

}  // namespace brontes
