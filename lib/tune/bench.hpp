// Operands on a device, and programs that run on them: what measuring and checking kernels share.
#pragma once

#include "engine/engine.hpp"
#include "ops/matmul_tuning.hpp"
#include "plan/plan.hpp"
#include "submit/program.hpp"

#include <brontes/error.hpp>
#include <brontes/tuning.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

namespace brontes::tune {

using plan::MatmulForce;

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

plan::MatmulProblem problem_of(const MatmulShape& shape);

/// Runs again and again on resident buffers.
struct Candidate {
  MatmulForce choice;  // automatic: the default
  std::unique_ptr<submit::Program> program;
  std::vector<double> samples;  // seconds per run
  bool timestamps = false;  // the device says how long a run takes; elsewhere it is from the first submit to the end

  Error run(std::size_t times, double& seconds);
  Error sample(std::size_t times);
  /// By more than noise, by the fastest and by the median sample.
  bool beats(const Candidate& other) const;
};

double least(const std::vector<double>& samples);
double median(std::vector<double> samples);
/// What a candidate has to be faster by: less is noise.
inline constexpr double margin = 1.1;

/// A device with operands for everything that runs on it: resources 0, 1 and 2, where 2 is the result. Elements of the
/// operands are within +-0.5.
struct Bench {
  std::shared_ptr<engine::Engine> engine;
  submit::Program::Resources resources;

  /// With room for this many elements.
  static Result<Bench> make(std::shared_ptr<engine::Engine> engine, std::uint64_t a, std::uint64_t b, std::uint64_t c);

  /// Without measurements.
  plan::Traits traits() const;
  /// Automatic: the default.
  Result<plan::Plan> product(const MatmulShape& shape, MatmulForce choice) const;
  /// The sum of both operands, element by element, with memory reached in this way.
  Result<plan::Plan> sum(std::uint64_t count, kernels::AccessMode mode) const;
  /// The sum of each row of the first operand.
  Result<plan::Plan> row_sums(std::uint64_t rows, std::uint64_t columns, kernels::AccessMode mode) const;
  Result<Candidate> build(plan::Plan plan, MatmulForce choice = {}) const;
};

}  // namespace brontes::tune
