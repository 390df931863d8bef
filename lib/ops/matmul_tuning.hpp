// What was measured on a device: where another matmul kernel than the selector's own choice is faster.
// Plain data; tune/ measures it.
#pragma once

#include "ops/matmul.hpp"

#include <brontes/error.hpp>
#include <brontes/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace brontes::plan {

/// What came of measuring one product.
struct TunedMatmul {
  std::uint64_t m = 1, k = 1, n = 1;
  Layout layout = Layout::kn;
  DType type = DType::f32;  // of B
  /// Automatic: nothing was faster than the selector's own choice by more than noise. That is worth
  /// keeping too, or the neighbours would speak for this shape.
  MatmulForce choice;
  float gain = 1;           // how many times as fast as the selector's own choice
  bool f16_inputs = false;  // measured where operands may be rounded to f16

  friend bool operator==(const TunedMatmul&, const TunedMatmul&) = default;
};

struct Tuning {
  static constexpr std::size_t max_matmuls = 65536;

  /// How products reached memory: general and panels count. In another way the measurements mean nothing and are not
  /// used.
  Access access;
  bool access_compared = false;  // and it was faster than what the driver gets by default
  /// The fastest way to reach memory for these families, where it was measured.
  std::optional<kernels::AccessMode> elementwise, reductions;
  std::vector<TunedMatmul> matmuls;

  std::optional<kernels::AccessMode> calibrated(Family family) const noexcept {
    if (family == Family::elementwise) return elementwise;
    return family == Family::reductions ? reductions : std::nullopt;
  }
  bool reached_by(const Access& other) const noexcept {
    return access.general == other.general && access.panels == other.panels;
  }

  friend bool operator==(const Tuning&, const Tuning&) = default;
};

/// The measurement that speaks for a product, or null. It has the same layout and type, and row lengths
/// that allow the same vector loads; m rounded up by less than a factor of two (row tiles are as good for
/// less rows, but not for more); k and n both nearer than a factor of two, and within the range of what
/// was measured. Of several it is the nearest, by the sum of the distances in log space.
const TunedMatmul* find(const Tuning& tuning, const MatmulProblem& problem, const Access& access) noexcept;

/// Replaces measurements by newer ones; those of other products stay if memory was reached the same way.
void merge(Tuning& tuning, Tuning newer);

/// A measurement that says just this: forces a choice on one product, and so a way to measure it.
Tuning forcing(const MatmulProblem& problem, MatmulForce choice, const Access& access);

/// Every vetted variant of every kernel for a layout.
std::vector<MatmulForce> every_variant(Layout layout);

/// Changes with the kernels, their variants and what these consist of: measurements of others say nothing.
std::uint64_t variants_fingerprint();

/// As bytes: a version, the fingerprint, the access modes, and 32 bytes per measurement, all little-endian.
std::vector<std::uint8_t> serialize(const Tuning& tuning);
/// Believes nothing: Errc::io, and the reason, for whatever serialize() of this build would not write.
Result<Tuning> parse_tuning(Span<const std::uint8_t> bytes);

}  // namespace brontes::plan
