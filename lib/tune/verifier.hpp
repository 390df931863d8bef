// Whether a kernel computes what it should on this device. A variant that skips work is the fastest of all.
#pragma once

#include "tune/bench.hpp"

#include <vector>

namespace brontes::tune {

/// What a product with operands of a Bench may differ by from that of the naive kernel: twice what the tests hold every
/// kernel to, which is 2^-20 of the sum of magnitudes for up to 4096 of k, and no more than k / 4.
/// With operands that may be rounded to f16, sqrt(k) * 2^-11 more: some 17 standard deviations of what that makes of
/// elements that are spread evenly.
double verifier_tolerance(std::uint64_t k, Precision precision = Precision::f32) noexcept;

/// Compares products with that of the naive kernel, which needs neither subgroups nor shared memory.
class Verifier {
 public:
  explicit Verifier(const Bench& bench) : bench_(bench) {}

  /// Runs the candidate, which writes the product of this shape to the bench's result: true if it wrote every element,
  /// and each within the tolerance.
  Result<bool> agrees(const MatmulShape& shape, Candidate& candidate);

 private:
  Result<std::vector<float>> result_of(const MatmulShape& shape, Candidate& candidate) const;
  Error make_reference(const MatmulShape& shape);

  const Bench& bench_;
  MatmulShape shape_{0, 0, 0, Layout::kn};
  std::vector<float> reference_;  // of shape_
};

/// Plans, and runs what the plan goes by of measurements from a file on a small product first, each choice once per
/// device and process: one that is wrong is dropped with a warning, and the plan made without it.
Result<plan::Plan> make_checked_plan(const std::shared_ptr<engine::Engine>& engine, const record::Graph& graph,
                                     const plan::PlanOptions& options);

}  // namespace brontes::tune
