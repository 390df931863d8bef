#define ANKERL_NANOBENCH_IMPLEMENT
#include <nanobench.h>

#include "interrupt.hpp"
#include "machine.hpp"
#include "measure.hpp"
#include "support.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <optional>
#include <thread>

namespace bench {
namespace {

using ankerl::nanobench::Bench;
using Measure = ankerl::nanobench::Result::Measure;

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// A case on its way: it has been checked, and an epoch is `iterations` of it.
struct Running {
  std::size_t index;  // in the group
  const Case* what;
  Bench bench;
  double checked_in = 0;  // seconds its check took: a cold run and the reference
  int epochs = 0;
  Measurement result;
};

void settle(const Case& what) {
  if (what.settle_seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(what.settle_seconds));
}

// One epoch. Without a number of iterations yet, nanobench finds one that takes long enough.
double epoch(Running& running) {
  running.bench.epochIterations(running.result.iterations);
  running.bench.run(running.result.name, running.what->run);
  const auto& taken = running.bench.results().back();
  running.result.iterations = static_cast<std::uint64_t>(taken.get(0, Measure::iterations));
  settle(*running.what);
  return taken.get(0, Measure::elapsed);
}

// Whatever ran before left the caches full of its own, or the cores asleep: a turn begins with iterations that do not
// count, for as long as an epoch takes. One that is longer by itself gets there on its own.
void warm_up(Running& running, const Effort& effort) {
  if (running.result.iterations <= 1) return;
  const auto begin = std::chrono::steady_clock::now();
  do running.what->run();
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < effort.epoch_seconds);
}

void calibrate(Running& running, const Effort& effort) {
  running.bench.output(nullptr).performanceCounters(false).epochs(1);
  running.bench.minEpochTime(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(effort.epoch_seconds)));
  running.bench.maxEpochTime(std::chrono::hours(1));

  // Not worth a run to find out what is known.
  if (running.checked_in > effort.budget) {
    running.result.iterations = 1;
    running.epochs = 1;
    return;
  }
  // The check ran it once; this is the second time, warm, and tells whether there is time for more.
  const auto begin = std::chrono::steady_clock::now();
  running.what->run();
  const double once = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (once >= effort.epoch_seconds) {
    running.result.iterations = 1;
    settle(*running.what);
  } else {
    epoch(running);
  }
  const double seconds = std::max(once * static_cast<double>(running.result.iterations), effort.epoch_seconds);
  const double affordable = std::clamp(effort.budget / seconds, 1.0, static_cast<double>(effort.epochs));
  running.epochs = static_cast<int>(affordable);
  if (once < effort.budget) running.epochs = std::max(running.epochs, std::min(effort.least_epochs, effort.epochs));
}

void summarise(Measurement& m) {
  m.median = median_of(m.samples);
  m.minimum = *std::min_element(m.samples.begin(), m.samples.end());
  std::vector<double> errors;
  for (double sample : m.samples) errors.push_back(std::abs(sample - m.median) / sample);
  m.error = median_of(std::move(errors));
}

// Why the case cannot be timed, if so.
std::optional<std::string> problem_of(const Case& what) {
  try {
    const std::string wrong = what.check();
    if (wrong.empty()) return std::nullopt;
    return "wrong result: " + wrong;
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace

GroupResult measure(const std::string& suite, const Group& group, const std::vector<bool>& wanted,
                    const Environment& environment, const Effort& effort) {
  GroupResult out;
  std::vector<Case> cases;
  try {
    cases = group.prepare(environment);
  } catch (const std::exception& e) {
    out.failed.push_back({group.name, e.what()});
    return out;
  }

  std::vector<Running> running;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!wanted[i]) continue;
    if (tool::interrupted()) break;
    const std::string name = group.name + "/" + group.variants[i];
    if (!cases[i].unavailable.empty()) {
      out.skipped.push_back({name, cases[i].unavailable});
      continue;
    }
    const auto begin = std::chrono::steady_clock::now();
    if (auto problem = problem_of(cases[i])) {
      out.failed.push_back({name, *problem});
      continue;
    }
    Running& r = running.emplace_back();
    r.index = i;
    r.what = &cases[i];
    r.checked_in = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    r.result.name = name;
    r.result.suite = suite;
    r.result.bytes = cases[i].bytes;
    r.result.flops = cases[i].flops;
    r.result.items = cases[i].items;
    r.result.item = cases[i].item;
  }

  const Bystander bystander;
  try {
    int rounds = 0;
    for (Running& r : running) {
      if (tool::interrupted()) break;
      calibrate(r, effort);
      rounds = std::max(rounds, r.epochs);
    }
    // Cases take turns, and every other round in reverse, so that none always follows the same one.
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t turn = 0; turn < running.size(); ++turn) {
        Running& r = running[round % 2 == 0 ? turn : running.size() - 1 - turn];
        // A case with fewer epochs spreads them over all rounds.
        if (round * r.epochs / rounds == (round + 1) * r.epochs / rounds) continue;
        if (tool::interrupted()) break;
        warm_up(r, effort);
        r.result.samples.push_back(epoch(r));
      }
    }
  } catch (const std::exception& e) {
    out.failed.push_back({group.name, e.what()});
    return out;
  }

  if (tool::interrupted()) {
    out.interrupted = true;
    return out;
  }

  const double others = bystander.others();
  for (Running& r : running) {
    summarise(r.result);
    r.result.others = others;
  }
  for (const Comparison& comparison : group.comparisons) {
    const Measurement* variant = nullptr;
    const Measurement* baseline = nullptr;
    for (const Running& r : running) {
      if (group.variants[r.index] == comparison.variant) variant = &r.result;
      if (group.variants[r.index] == comparison.baseline) baseline = &r.result;
    }
    if (variant == nullptr || baseline == nullptr) continue;
    out.ratios.push_back({group.name, comparison.variant, comparison.baseline, baseline->median / variant->median,
                          baseline->minimum / variant->minimum, comparison.goal});
  }
  for (Running& r : running) out.measurements.push_back(std::move(r.result));
  return out;
}

}  // namespace bench
