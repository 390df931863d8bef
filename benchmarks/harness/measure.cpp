#define ANKERL_NANOBENCH_IMPLEMENT
#include <nanobench.h>

#include "callgrind.hpp"
#include "counts.hpp"
#include "instructions.hpp"
#include "interrupt.hpp"
#include "machine.hpp"
#include "measure.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <optional>
#include <thread>

namespace brontes::bench {
namespace {

using ankerl::nanobench::Bench;
using Measure = ankerl::nanobench::Result::Measure;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double seconds_of(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return seconds_since(begin);
}

// Counts of a case that takes no longer are made several times.
constexpr double quick_seconds = 0.25;
constexpr int counted_iterations = 2;

// A dump of thousands of ops is kept up to here.
constexpr std::size_t dump_lines = 400;

// A case on its way: it has been checked, and an epoch is `iterations` of it.
struct Running {
  std::size_t index;  // in the group
  const Case* what;
  Bench bench;
  double once = 0;  // seconds an iteration takes; first those of its check, a cold run and the reference
  int epochs = 0;
  CaseResult result;
  Run timed;
};

void settle(const Case& what) {
  if (what.settle_seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(what.settle_seconds));
}

// One epoch. Without a number of iterations yet, nanobench finds one that takes long enough.
double epoch(Running& running) {
  running.bench.epochIterations(running.timed.iterations);
  running.bench.run(running.result.name, running.what->run);
  const auto& taken = running.bench.results().back();
  running.timed.iterations = static_cast<std::uint64_t>(taken.get(0, Measure::iterations));
  settle(*running.what);
  return taken.get(0, Measure::elapsed);
}

// Whatever ran before left the caches full of its own, or the cores asleep: a turn begins with iterations that do not
// count, for as long as an epoch takes. One that is longer by itself gets there on its own.
void warm_up(Running& running, const Effort& effort) {
  if (running.timed.iterations <= 1) return;
  const auto begin = std::chrono::steady_clock::now();
  do running.what->run();
  while (seconds_since(begin) < effort.epoch_seconds);
}

void calibrate(Running& running, const Effort& effort) {
  running.bench.output(nullptr).performanceCounters(false).epochs(1);
  running.bench.minEpochTime(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(effort.epoch_seconds)));
  running.bench.maxEpochTime(std::chrono::hours(1));

  // Not worth a run to find out what is known.
  if (running.once > effort.budget) {
    running.timed.iterations = 1;
    running.epochs = 1;
    return;
  }
  // Warm, it tells whether there is time for more.
  const double once = seconds_of(running.what->run);
  if (once >= effort.epoch_seconds) {
    running.timed.iterations = 1;
    settle(*running.what);
  } else {
    epoch(running);
  }
  const double seconds = std::max(once * static_cast<double>(running.timed.iterations), effort.epoch_seconds);
  const double affordable = std::clamp(effort.budget / seconds, 1.0, static_cast<double>(effort.epochs));
  running.epochs = static_cast<int>(affordable);
  if (once < effort.budget) running.epochs = std::max(running.epochs, std::min(effort.least_epochs, effort.epochs));
}

std::string shortened(const std::string& dump) {
  std::size_t end = 0;
  for (std::size_t line = 0; line < dump_lines; ++line) {
    end = dump.find('\n', end);
    if (end == std::string::npos) return dump;
    ++end;
  }
  const auto more = std::count(dump.begin() + static_cast<std::ptrdiff_t>(end), dump.end(), '\n');
  return more == 0 ? dump : dump.substr(0, end) + "... " + std::to_string(more) + " more lines\n";
}

// After the check and another run everything is warm.
void count_warm(Running& running, const Device& device, const Effort& effort) {
  const Case& what = *running.what;
  if (!what.counted) return;
  if (running.once <= effort.budget) what.run();
  running.once = seconds_of([&] { running.result.counts = count(device, what.run, 1); });
  if (running.once < quick_seconds) add_least(running.result.counts, count(device, what.run, counted_iterations));
  if (what.dump) running.result.dump = shortened(what.dump());
  if (const Instructions instructions; instructions.available()) {
    const std::uint64_t before = instructions.count();
    what.run();
    running.timed.instructions = static_cast<double>(instructions.count() - before);
  }
}

Ratio ratio_of(const std::string& group, const Comparison& asked, const CaseResult& variant,
               const CaseResult& baseline) {
  return {group,
          asked.variant,
          asked.baseline,
          baseline.median() / variant.median(),
          baseline.minimum() / variant.minimum(),
          asked.goal};
}

// Why the case cannot be timed, if so.
std::optional<std::string> problem_of(const Case& what) {
  try {
    if (!what.check) {
      what.run();
      return std::nullopt;
    }
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
    if (cases.size() != group.variants.size()) {
      throw Failure(std::to_string(cases.size()) + " cases for " + std::to_string(group.variants.size()) + " variants");
    }
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
    r.once = seconds_since(begin);
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
      count_warm(r, environment.device, effort);
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
        r.timed.samples.push_back(epoch(r));
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
  std::map<std::string, const CaseResult*> by_variant;
  for (Running& r : running) {
    r.timed.others = others;
    r.timed.summarise();
    r.result.runs = {std::move(r.timed)};
    by_variant[group.variants[r.index]] = &r.result;
  }
  for (const Comparison& comparison : group.comparisons) {
    const CaseResult* variant = by_variant[comparison.variant];
    const CaseResult* baseline = by_variant[comparison.baseline];
    if (variant != nullptr && baseline != nullptr) {
      out.ratios.push_back(ratio_of(group.name, comparison, *variant, *baseline));
    }
  }
  for (Running& r : running) out.cases.push_back(std::move(r.result));
  return out;
}

void count_instructions(const Group& group, const std::vector<bool>& wanted, const Environment& environment) {
  const std::vector<Case> cases = group.prepare(environment);
  for (std::size_t i = 0; i < cases.size() && i < wanted.size(); ++i) {
    if (!wanted[i] || !cases[i].counted || !cases[i].unavailable.empty() || tool::interrupted()) continue;
    const std::string name = group.name + "/" + group.variants[i];
    if (const auto problem = problem_of(cases[i])) throw Failure(name + ": " + *problem);
    cases[i].run();
    // Buffers that grow and pools that fill up are no part of it.
    for (int time = 0; time < 5; ++time) count_under_valgrind(name, cases[i].run);
  }
}

}  // namespace brontes::bench
