#include "tune/calibration.hpp"

#include "submit/transfer.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

namespace brontes::tune {
namespace {

constexpr std::size_t rounds = 5;

struct Contender {
  kernels::AccessMode mode;
  Candidate candidate;
};

/// What the candidate leaves in the bench's result.
Result<std::vector<float>> result_of(const Bench& bench, Candidate& candidate, std::size_t count) {
  std::vector<float> result(count, std::numeric_limits<float>::quiet_NaN());
  vk::Allocation& memory = *bench.resources[2];
  if (Error e = submit::write(memory, 0, result.data(), count * sizeof(float))) return e;
  double seconds = 0;
  if (Error e = candidate.run(1, seconds)) return e;
  if (Error e = submit::read(memory, 0, result.data(), count * sizeof(float))) return e;
  return result;
}

bool equal(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());  // false for NaN: nothing was written there
}

// The present mode, then the others.
std::vector<kernels::AccessMode> modes_of(const engine::Engine& engine, plan::Family family) {
  std::vector<kernels::AccessMode> modes{engine.traits().access.of(family)};
  for (std::size_t i = kernels::access_modes; i-- > 0;) {
    const auto mode = static_cast<kernels::AccessMode>(i);
    if (mode != modes[0] && engine.has(mode)) modes.push_back(mode);
  }
  return modes;
}

}  // namespace

Result<std::optional<kernels::AccessMode>> fastest_mode(const std::shared_ptr<engine::Engine>& engine,
                                                        plan::Family family, double seconds) {
  const Stopwatch watch;
  const std::vector<kernels::AccessMode> modes = modes_of(*engine, family);
  if (modes.size() < 2) return std::optional<kernels::AccessMode>();
  // Larger than the caches nearest to the cores, and within what can be bound as texels.
  const std::uint64_t count = std::min<std::uint64_t>({std::uint64_t{1} << 20, 4 * engine->traits().max_texel_elements,
                                                       engine->traits().max_storage_range / sizeof(float)}) /
                              1024 * 1024;
  if (count == 0) return std::optional<kernels::AccessMode>();
  const std::size_t results = family == plan::Family::elementwise ? count : count / 1024;
  auto bench = Bench::make(engine, count, count, results);
  if (!bench) return bench.error();

  std::vector<Contender> contenders;
  double longest = 0;
  for (const kernels::AccessMode mode : modes) {
    const double begun = watch.seconds();
    if (!contenders.empty() && begun + longest > seconds) break;
    auto plan =
        family == plan::Family::elementwise ? bench->sum(count, mode) : bench->row_sums(count / 1024, 1024, mode);
    if (!plan) return plan.error();
    auto candidate = bench->build(std::move(*plan));
    if (!candidate) return candidate.error();
    // Some drivers compile when a pipeline first runs.
    double first = 0, once = 0;
    if (Error e = candidate->run(1, first)) return e;
    if (Error e = candidate->run(1, once)) return e;
    longest = std::max(longest, watch.seconds() - begun);
    candidate->samples.push_back(once);
    contenders.push_back({mode, std::move(*candidate)});
  }
  for (std::size_t round = 0; round < rounds && watch.seconds() < seconds; ++round) {
    for (Contender& contender : contenders) {
      if (Error e = contender.candidate.sample(1)) return e;
    }
  }
  // Nothing is known of modes that were not tried, and little after a single sample.
  if (contenders.size() < 2 || contenders[0].candidate.samples.size() < 3) return std::optional<kernels::AccessMode>();
  auto expected = result_of(*bench, contenders[0].candidate, results);
  if (!expected) return expected.error();
  std::size_t best = 0;
  for (std::size_t i = 1; i < contenders.size(); ++i) {
    if (!contenders[i].candidate.beats(contenders[best].candidate)) continue;
    auto result = result_of(*bench, contenders[i].candidate, results);
    if (!result) return result.error();
    if (equal(*result, *expected)) best = i;
  }
  return std::optional(contenders[best].mode);
}

bool calibrate_for(const std::shared_ptr<engine::Engine>& engine, const plan::Plan& plan) {
  const plan::Traits traits = engine->traits();
  const vk::Context& context = *engine->context();
  // A host may hold the lock of its own queue while it compiles.
  if (!traits.cpu || !engine->calibrates() || !context.options().tuning.calibrate || !context.owns_device())
    return false;
  double bytes = 0;
  for (const plan::Dispatch& d : plan.dispatches) {
    if (d.family == plan::Family::elementwise) bytes += plan::cost_of(d).bytes;
  }
  engine::Measurements& measurements = engine->measurements();
  if (!measurements.calibration_due(static_cast<std::uint64_t>(bytes), calibration_bytes)) return false;
  try {
    const std::unique_lock turn(measurements.turn(), std::try_to_lock);
    if (turn) {  // otherwise somebody measures already
      const auto mode = fastest_mode(engine, plan::Family::elementwise, calibration_seconds);
      if (mode && *mode) {
        measurements.set_elementwise(**mode);
        return **mode != traits.access.elementwise;
      }
    }
  } catch (...) {
    // Lack of memory, say: what was to run may still have enough.
  }
  measurements.put_off_calibration();
  return false;
}

}  // namespace brontes::tune
