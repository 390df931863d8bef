// SPDX-License-Identifier: MIT
#pragma once

#include <brontes/device.hpp>
#include <brontes/export.hpp>
#include <brontes/tensor.hpp>

#include <cstdint>
#include <string>

namespace brontes {

/// Memory layout of the second operand of a matmul, always row-major.
enum class Layout : std::uint8_t {
  kn,  ///< B[K, N]: C = A x B
  nk,  ///< W[N, K]: C = A x W^T, the way model files store a linear layer
};

/// The kernels to choose from. Each computes the same product for every shape.
enum class MatmulKernel : std::uint8_t {
  automatic,  ///< the selector decides
  naive,      ///< one invocation per element; the reference
  gemv,       ///< up to eight rows (M <= 8): reads the matrix once for all of them
  tiled,      ///< shared-memory tiles with register blocking
  subgroup,   ///< a subgroup per tile, no shared memory: for CPU drivers
  panel,      ///< likewise, for more rows; repacks operands into its own layout if needed
  coopmat,    ///< matrix units (VK_KHR_cooperative_matrix); takes Precision::f16
};

/// How closely a product is computed. Sums are f32 in any case.
enum class Precision : std::uint8_t {
  automatic,  ///< what BatchOptions or MatmulCacheOptions say; there it means f32
  f32,        ///< operands are taken as they are: within (K + 2) * 2^-24 of the product of magnitudes
  /// Operands may be rounded to f16, which the matrix units of GPUs take. An element x then counts as one that differs
  /// by up to 2^-11 * |x|, or is 0 if |x| is below 2^-14, and as infinite from 65520 on. So for elements in that range
  /// the product differs by up to (2^-10 + 2^-22 + (K + 2) * 2^-24) times the product of magnitudes. This is a
  /// permission: kernels that take f32 may still run. Stored weights are decoded first, and rounded like any
  /// other operand; f16 weights are exact.
  f16,
};

/// "naive", "gemv" and so on. Never null.
BRONTES_API const char* to_string(MatmulKernel kernel) noexcept;
BRONTES_API const char* to_string(Layout layout) noexcept;
BRONTES_API const char* to_string(Precision precision) noexcept;

struct MatmulOptions {
  /// C = alpha * (A x B). Every kernel applies it once, to the complete sum, including where alpha is infinite or
  /// NaN and where K is 0.
  float alpha = 1.0f;
  Layout layout = Layout::kn;
  /// Forces a kernel, for tests and benchmarks. Errc::invalid_argument if the kernel does not support
  /// the shape (gemv with M > 8, where M includes leading dims that only A has, as in Batch::matmul), or the precision
  /// (coopmat without Precision::f16).
  MatmulKernel kernel = MatmulKernel::automatic;
  /// Which tile sizes of a forced kernel, 1 to matmul_variants(); 0 picks them by the shape. Without a forced
  /// kernel, or past the last: Errc::invalid_argument when the batch is planned.
  std::uint32_t variant = 0;
  /// Precision::f16 lets GPUs with matrix units use them for products of more than eight rows.
  Precision precision = Precision::automatic;
};

/// How many tile sizes a kernel has for a layout. All compute the same product; tune_matmul() tries all.
BRONTES_API std::uint32_t matmul_variants(MatmulKernel kernel, Layout layout) noexcept;

/// What the selector chose for a product, and why.
struct MatmulChoice {
  MatmulKernel kernel = MatmulKernel::automatic;  ///< automatic: nothing to compute
  std::uint64_t groups = 0;                       ///< workgroups of one dispatch
  std::uint32_t dispatches = 0;                   ///< more than one when K is split or an operand is repacked
  std::uint32_t slices = 1;                       ///< split-K: slices in one dispatch; a second dispatch adds them up
  std::string reason;                             ///< one sentence, for people
};

/// What Batch::matmul would run on this device for operands of these shapes, batched or not. Shapes that do not fit are
/// said to be so in the reason.
/// Thread-safety: as Device.
BRONTES_API MatmulChoice explain_matmul(const Device& device, const Shape& a, const Shape& b,
                                        const MatmulOptions& options = {});

/// What Batch::matmul would run on this device for an [m, k] x [k, n] product.
/// Thread-safety: as Device.
BRONTES_API MatmulChoice explain_matmul(const Device& device, std::uint64_t m, std::uint64_t k, std::uint64_t n,
                                        const MatmulOptions& options = {});

}  // namespace brontes
