#include "tune/tuner.hpp"

#include "tune/bench.hpp"
#include "tune/calibration.hpp"
#include "tune/verifier.hpp"
#include "util/hex.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <tuple>
#include <utility>

namespace brontes::tune {
namespace {

constexpr double slow_build_seconds = 2;
/// A sample consists of as many runs as take this long, or of one.
constexpr double sample_seconds = 2e-3;
constexpr std::size_t search_rounds = 3;
constexpr std::size_t confirm_rounds = 5;

std::size_t runs_per_sample(double seconds_per_run) {
  return static_cast<std::size_t>(std::clamp(std::ceil(sample_seconds / seconds_per_run), 1.0, 64.0));
}

/// True when both would run the very same dispatches.
bool same(const plan::Plan& a, const plan::Plan& b) {
  return std::equal(a.dispatches.begin(), a.dispatches.end(), b.dispatches.begin(), b.dispatches.end(),
                    [](const plan::Dispatch& x, const plan::Dispatch& y) {
                      return x.kernel == y.kernel && x.constants == y.constants && x.groups == y.groups &&
                             x.push == y.push;
                    });
}

bool fatal(const Error& e) { return e.code == Errc::device_lost; }

/// Measures products on one bench.
class Tuner {
 public:
  Tuner(const Bench& bench, std::function<bool()> late) : bench_(bench), late_(std::move(late)) {}

  /// False when time ran out: nothing is known of the shape then.
  Result<bool> measure(const MatmulShape& shape, TunedShape& result) {
    auto plan = bench_.product(shape, {});
    if (!plan) return plan.error();
    const plan::Plan default_plan = *plan;
    auto first = bench_.build(std::move(*plan));
    if (!first) return first.error();
    std::vector<Candidate> candidates;
    candidates.push_back(std::move(*first));
    double once = 0;
    if (Error e = warm(candidates[0], once)) return e;
    const std::size_t times = runs_per_sample(once);

    for (MatmulForce choice : plan::every_variant(shape.layout)) {
      if (late_()) return false;
      if (Error e = consider(shape, choice, default_plan, once, candidates); e && fatal(e)) return e;
    }
    for (std::size_t round = 0; round < search_rounds; ++round) {
      for (Candidate& candidate : candidates) {
        if (late_()) return false;
        if (Error e = candidate.sample(times)) return e;
      }
    }
    auto best = fastest_right(shape, candidates);
    if (!best) return best.error();
    Candidate& standard = candidates[0];
    Candidate& winner = candidates[*best];
    bool changed = *best != 0;
    if (changed) {
      // The best of many is partly the luckiest, so it has to win again.
      standard.samples.clear();
      winner.samples.clear();
      for (std::size_t round = 0; round < confirm_rounds; ++round) {
        if (late_()) return false;
        if (Error e = standard.sample(times)) return e;
        if (Error e = winner.sample(times)) return e;
      }
      changed = winner.beats(standard);
    }
    result = describe(shape, standard, changed ? winner : standard);
    return true;
  }

 private:
  Error warm(Candidate& candidate, double& once) {
    if (Error e = candidate.run(1, once)) return e;
    return candidate.run(1, once);
  }

  // The index of the fastest that is right and beats the default, or else 0, the default's. One that is wrong must not
  // win, be it for skipping work: it is gone for good.
  Result<std::size_t> fastest_right(const MatmulShape& shape, std::vector<Candidate>& candidates) {
    for (;;) {
      const auto fastest =
          std::min_element(candidates.begin(), candidates.end(),
                           [](const Candidate& a, const Candidate& b) { return least(a.samples) < least(b.samples); });
      if (fastest == candidates.begin() || !fastest->beats(candidates[0])) return std::size_t{0};
      const auto right = verifier_.agrees(shape, *fastest);
      if (!right) return right.error();
      if (*right) return static_cast<std::size_t>(fastest - candidates.begin());
      wrong_.insert({fastest->choice.kernel, fastest->choice.variant, shape.layout});
      bench_.engine->context()->instance().report(
          Severity::warning, "tune_matmul: variant " + std::to_string(fastest->choice.variant) + " of the " +
                                 to_string(fastest->choice.kernel) + " kernel, layout " + to_string(shape.layout) +
                                 ", gives wrong results on this device, and is left out");
      candidates.erase(fastest);
    }
  }

  // Adds the variant to the candidates if it can run, differs from the default and is no hopeless case.
  Error consider(const MatmulShape& shape, MatmulForce choice, const plan::Plan& default_plan, double default_once,
                 std::vector<Candidate>& candidates) {
    const auto key = std::tuple(choice.kernel, choice.variant, shape.layout);
    if (slow_to_build_.count(key) != 0 || wrong_.count(key) != 0) return {};
    if (!plan::select_matmul(problem_of(shape), bench_.traits(), choice)) return {};
    auto plan = bench_.product(shape, choice);
    if (!plan || same(*plan, default_plan)) return {};
    const Stopwatch watch;
    auto candidate = bench_.build(std::move(*plan), choice);
    if (!candidate) return candidate.error();
    double once = 0;
    // Some drivers compile when a pipeline first runs.
    if (Error e = candidate->run(1, once)) return e;
    if (watch.seconds() > slow_build_seconds + default_once) {
      slow_to_build_.insert(key);
      return {};
    }
    // So the first run says nothing of a small product.
    if (Error e = candidate->run(1, once)) return e;
    if (once < 1.5 * default_once) candidates.push_back(std::move(*candidate));
    return {};
  }

  TunedShape describe(const MatmulShape& shape, const Candidate& standard, const Candidate& chosen) const {
    const plan::MatmulProblem problem = problem_of(shape);
    TunedShape result;
    result.shape = shape;
    if (auto selection = plan::select_matmul(problem, bench_.traits())) result.default_kernel = selection->kernel;
    result.kernel = &chosen == &standard ? result.default_kernel : chosen.choice.kernel;
    result.variant = chosen.choice.variant;
    result.default_seconds = least(standard.samples);
    result.seconds = least(chosen.samples);
    result.gain = result.default_seconds / result.seconds;
    return result;
  }

  const Bench& bench_;
  std::function<bool()> late_;
  Verifier verifier_{bench_};
  std::set<std::tuple<MatmulKernel, std::size_t, Layout>> slow_to_build_, wrong_;
};

/// Compares ways to reach memory on a few products.
class AccessProbe {
 public:
  static constexpr std::uint64_t elements = 1u << 20;

  static Result<AccessProbe> make(std::shared_ptr<engine::Engine> engine) {
    auto bench = Bench::make(std::move(engine), elements, elements, elements);
    if (!bench) return bench.error();
    AccessProbe probe(std::move(*bench));
    std::vector<Result<plan::Plan>> plans;
    for (const MatmulShape& shape : {MatmulShape{1, 1024, 1024, Layout::nk}, MatmulShape{8, 1024, 1024, Layout::nk},
                                     MatmulShape{64, 256, 256, Layout::kn}}) {
      plans.push_back(probe.bench_.product(shape, {}));
    }
    for (Result<plan::Plan>& plan : plans) {
      if (!plan) return plan.error();
      auto candidate = probe.bench_.build(std::move(*plan));
      if (!candidate) return candidate.error();
      double once = 0;
      for (int i = 0; i < 2; ++i) {
        if (Error e = candidate->run(1, once)) return e;
      }
      probe.times_.push_back(runs_per_sample(once));
      probe.work_.push_back(std::move(*candidate));
    }
    return probe;
  }

  Error sample() {
    for (std::size_t i = 0; i < work_.size(); ++i) {
      if (Error e = work_[i].sample(times_[i])) return e;
    }
    return {};
  }

  /// Faster on the whole, and nowhere slower, by more than noise.
  bool beats(const AccessProbe& other) const {
    double by_least = 1, by_median = 1;
    for (std::size_t i = 0; i < work_.size(); ++i) {
      if (other.work_[i].beats(work_[i])) return false;
      by_least *= least(other.work_[i].samples) / least(work_[i].samples);
      by_median *= median(other.work_[i].samples) / median(work_[i].samples);
    }
    const double needed = std::pow(margin, static_cast<double>(work_.size()));
    return by_least > needed && by_median > needed;
  }

  const std::shared_ptr<engine::Engine>& engine() const { return bench_.engine; }
  const DeviceInfo& info() const { return engine()->context()->info(); }

 private:
  explicit AccessProbe(Bench bench) : bench_(std::move(bench)) {}

  Bench bench_;
  std::vector<Candidate> work_;
  std::vector<std::size_t> times_;
};

/// The device itself, or one of the same device with a way to reach memory that is clearly faster.
Result<std::shared_ptr<engine::Engine>> fastest_access(const std::shared_ptr<engine::Engine>& own) {
  auto mine = AccessProbe::make(own);
  if (!mine) return mine.error();
  std::vector<AccessProbe> probes;
  probes.push_back(std::move(*mine));
  // Automatic: what the driver gets by default may be a mixture.
  for (AccessMode mode : {AccessMode::automatic, AccessMode::storage, AccessMode::texel, AccessMode::pointer}) {
    DeviceOptions options = own->context()->options();
    options.select = util::hex(own->context()->info().uuid);
    options.access = mode;
    options.tuning.enabled = false;
    options.pipeline_cache.save_on_close = false;
    auto engine = engine::Engine::open(options);
    if (!engine) continue;  // it does not have this mode
    const bool known = std::any_of(probes.begin(), probes.end(), [&](const AccessProbe& probe) {
      return probe.info().access == (*engine)->context()->info().access;
    });
    if (known) continue;
    auto probe = AccessProbe::make(std::move(*engine));
    if (probe) probes.push_back(std::move(*probe));
  }
  for (std::size_t round = 0; round < confirm_rounds && probes.size() > 1; ++round) {
    for (AccessProbe& probe : probes) {
      if (Error e = probe.sample()) return e;
    }
  }
  std::size_t best = 0;
  for (std::size_t i = 1; i < probes.size(); ++i) {
    if (probes[i].beats(probes[best])) best = i;
  }
  return probes[best].engine();
}

// Sizes that no product of two of them overflows, and that fit the device.
bool fits(const MatmulShape& s, const plan::Traits& traits) {
  const std::uint64_t most = traits.max_storage_range / sizeof(float);
  auto matrix = [&](std::uint64_t rows, std::uint64_t columns) { return rows <= most / columns; };
  return matrix(s.m, s.k) && matrix(s.k, s.n) && matrix(s.m, s.n);
}

Error check(const std::vector<MatmulShape>& shapes, const TuneOptions& options) {
  if (!(options.seconds > 0)) {
    return Error(Errc::invalid_argument, "tune_matmul: " + std::to_string(options.seconds) + " seconds to measure in");
  }
  for (const MatmulShape& s : shapes) {
    if (s.m != 0 && s.k != 0 && s.n != 0) continue;
    return Error(Errc::invalid_argument, "tune_matmul: a product with m = " + std::to_string(s.m) +
                                             ", k = " + std::to_string(s.k) + ", n = " + std::to_string(s.n) +
                                             "; every size must be above 0");
  }
  return {};
}

plan::TunedMatmul entry_of(const TunedShape& t) {
  const MatmulForce choice = t.variant == 0 ? MatmulForce() : MatmulForce(t.kernel, t.variant);
  return {t.shape.m,
          t.shape.k,
          t.shape.n,
          t.shape.layout,
          DType::f32,
          choice,
          static_cast<float>(t.gain),
          t.shape.precision == Precision::f16};
}

}  // namespace

std::vector<MatmulShape> usual_shapes(bool quick) {
  std::vector<MatmulShape> shapes;
  auto add = [&](std::uint64_t m, std::uint64_t k, std::uint64_t n) {
    // What would take too long on a slow device, for rows that hardly anybody has.
    if (m * k * n > std::uint64_t{1} << 31) return;
    for (Layout layout : {Layout::nk, Layout::kn}) shapes.push_back({m, k, n, layout});
  };
  if (quick) {
    for (std::uint64_t m : {1u, 4u, 8u, 64u}) add(m, 1024, 1024);
  } else {
    for (std::uint64_t m = 1; m <= 1024; m *= 2) {
      for (std::uint64_t size : {256u, 512u, 1024u, 2048u, 4096u}) add(m, size, size);
      add(m, 1024, 4096);
      add(m, 4096, 1024);
    }
  }
  std::stable_sort(shapes.begin(), shapes.end(),
                   [](const MatmulShape& a, const MatmulShape& b) { return a.m * a.k * a.n < b.m * b.k * b.n; });
  return shapes;
}

Result<TuneReport> tune(const std::shared_ptr<engine::Engine>& own, const TuneOptions& options) {
  const vk::Context& device = *own->context();
  if (Error e = device.usable()) return e;
  if (!device.options().tuning.enabled) {
    return Error(Errc::invalid_argument, "tune_matmul: DeviceOptions::tuning is disabled");
  }
  std::vector<MatmulShape> shapes = options.shapes.empty() ? usual_shapes(false) : options.shapes;
  if (Error e = check(shapes, options)) return e;
  const std::lock_guard turn(own->measurements().turn());
  const Stopwatch watch;
  auto late = [&] { return watch.seconds() > options.seconds; };

  TuneReport report;
  report.access_now = device.info().access;
  const std::size_t total = shapes.size();
  const plan::Traits traits = own->traits();
  shapes.erase(std::remove_if(shapes.begin(), shapes.end(), [&](const MatmulShape& s) { return !fits(s, traits); }),
               shapes.end());

  const std::size_t too_large = total - shapes.size();
  auto go_on = [&](std::size_t done) {
    if (!options.on_progress || shapes.empty()) return true;
    return options.on_progress({too_large + done, total, shapes[std::min(done, shapes.size() - 1)], watch.seconds()});
  };
  if (!go_on(0)) {
    report.skipped = total;
    report.stopped = true;
    report.note = "nothing was measured";
    return report;
  }

  plan::Tuning tuning;
  std::shared_ptr<engine::Engine> engine = own;
  const bool room = traits.max_storage_range >= AccessProbe::elements * sizeof(float);
  if (options.compare_access && device.options().access == AccessMode::automatic && device.owns_device() && room) {
    auto fastest = fastest_access(own);
    if (!fastest) return fastest.error();
    engine = std::move(*fastest);
    tuning.access_compared = engine != own;
  }
  tuning.access.general = engine->traits().access.general;
  tuning.access.panels = engine->traits().access.panels;
  report.access = engine->context()->info().access;

  if (options.compare_access && own->calibrates()) {
    for (auto [family, mode] : {std::pair(plan::Family::elementwise, &tuning.elementwise),
                                std::pair(plan::Family::reductions, &tuning.reductions)}) {
      auto fastest = fastest_mode(own, family, options.seconds);
      if (!fastest) return fastest.error();
      *mode = *fastest;
    }
  }

  std::uint64_t a = 1, b = 1, c = 1;
  for (const MatmulShape& s : shapes) {
    a = std::max(a, s.m * s.k);
    b = std::max(b, s.k * s.n);
    c = std::max(c, s.m * s.n);
  }
  auto bench = Bench::make(engine, a, b, c);
  if (!bench) return bench.error();
  Tuner tuner(*bench, late);
  std::size_t done = 0;
  for (; done < shapes.size() && !late(); ++done) {
    if (!go_on(done)) {
      report.stopped = true;
      break;
    }
    TunedShape result;
    auto measured = tuner.measure(shapes[done], result);
    if (!measured) return measured.error();
    if (!*measured) break;
    tuning.matmuls.push_back(entry_of(result));
    report.shapes.push_back(result);
  }
  report.skipped = total - report.shapes.size();
  if (!report.stopped) static_cast<void>(go_on(shapes.size()));

  if (tuning.matmuls.empty() && !tuning.access_compared && !tuning.elementwise && !tuning.reductions) {
    report.note = "nothing was measured";
    return report;
  }
  own->measurements().add(std::move(tuning));
  if (!options.save) {
    report.note = "not asked for";
  } else if (Error e = own->measurements().save()) {
    report.note = e.message;
  } else {
    report.path = own->measurements().status().path;
  }
  return report;
}

}  // namespace brontes::tune
