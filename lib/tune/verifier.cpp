#include "tune/verifier.hpp"

#include "submit/transfer.hpp"
#include "tune/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace brontes::tune {
namespace {

bool same(const MatmulShape& a, const MatmulShape& b) {
  return a.m == b.m && a.k == b.k && a.n == b.n && a.layout == b.layout && a.precision == b.precision;
}

// More rows than any tile of few rows has, and more of k and n than the lanes of a large subgroup take at once, in rows
// that allow the same loads.
MatmulShape small_shape(const plan::TunedMatmul& tuned) {
  return {tuned.choice.kernel == MatmulKernel::gemv ? std::min<std::uint64_t>(tuned.m, 8) : 19, 264 + tuned.k % 8,
          136 + tuned.n % 8, tuned.layout, tuned.f16_inputs ? Precision::f16 : Precision::f32};
}

std::string name_of(const plan::TunedMatmul& tuned) {
  return "variant " + std::to_string(tuned.choice.variant) + " of the " + to_string(tuned.choice.kernel) +
         " matmul kernel, layout " + to_string(tuned.layout);
}

Result<bool> agrees(const std::shared_ptr<engine::Engine>& engine, const plan::TunedMatmul& tuned) {
  if (tuned.type != DType::f32) return Error(Errc::unsupported, "its weights are not f32");  // tune() writes none
  const MatmulShape shape = small_shape(tuned);
  auto bench = Bench::make(engine, shape.m * shape.k, shape.k * shape.n, shape.m * shape.n);
  if (!bench) return bench.error();
  auto plan = bench->product(shape, tuned.choice);
  if (!plan) return plan.error();
  auto candidate = bench->build(std::move(*plan), tuned.choice);
  if (!candidate) return candidate.error();
  return Verifier(*bench).agrees(shape, *candidate);
}

}  // namespace

double verifier_tolerance(std::uint64_t k, Precision precision) noexcept {
  const double terms = static_cast<double>(k);
  const double magnitudes = terms * 0.25;
  const double rounding = precision == Precision::f16 ? std::ldexp(std::sqrt(terms), -11) : 0;
  return std::ldexp(magnitudes, -19) * std::max(1.0, terms / 4096) + rounding;
}

Result<std::vector<float>> Verifier::result_of(const MatmulShape& shape, Candidate& candidate) const {
  // What is not written must not pass for the product of the one before.
  std::vector<float> result(shape.m * shape.n, std::numeric_limits<float>::quiet_NaN());
  const std::uint64_t bytes = result.size() * sizeof(float);
  vk::Allocation& memory = *bench_.resources[2];
  if (Error e = submit::write(memory, 0, result.data(), bytes)) return e;
  double seconds = 0;
  if (Error e = candidate.run(1, seconds)) return e;
  if (Error e = submit::read(memory, 0, result.data(), bytes)) return e;
  return result;
}

Error Verifier::make_reference(const MatmulShape& shape) {
  auto plan = bench_.product(shape, MatmulForce(MatmulKernel::naive, 1));
  if (!plan) return plan.error();
  auto naive = bench_.build(std::move(*plan));
  if (!naive) return naive.error();
  auto result = result_of(shape, *naive);
  if (!result) return result.error();
  reference_ = std::move(*result);
  shape_ = shape;
  return {};
}

Result<bool> Verifier::agrees(const MatmulShape& shape, Candidate& candidate) {
  if (!same(shape_, shape)) {
    if (Error e = make_reference(shape)) return e;
  }
  const auto result = result_of(shape, candidate);
  if (!result) return result.error();
  const double tolerance = verifier_tolerance(shape.k, shape.precision);
  return std::equal(result->begin(), result->end(), reference_.begin(), [&](float is, float should) {
    return std::abs(static_cast<double>(is) - static_cast<double>(should)) <= tolerance;  // false for NaN
  });
}

Result<plan::Plan> make_checked_plan(const std::shared_ptr<engine::Engine>& engine, const record::Graph& graph,
                                     const plan::PlanOptions& options) {
  engine::Measurements& measurements = engine->measurements();
  for (;;) {
    auto plan = plan::make_plan(graph, engine->traits(), options);
    if (plan && calibrate_for(engine, *plan)) continue;
    if (!plan || measurements.checked(plan->tuned)) return plan;
    const std::lock_guard turn(measurements.checking());
    for (const plan::TunedMatmul* tuned : plan->tuned) {
      if (measurements.checked({&tuned, 1})) continue;
      const auto right = agrees(engine, *tuned);
      if (!right && right.error().code == Errc::device_lost) return right.error();
      measurements.judge(*tuned, right && *right);
      if (right && *right) continue;
      engine->context()->instance().report(
          Severity::warning, "tuning: " + name_of(*tuned) +
                                 (right ? " gives wrong results on this device, and is not used"
                                        : " could not be checked, and is not used: " + right.error().message));
    }
  }
}

}  // namespace brontes::tune
