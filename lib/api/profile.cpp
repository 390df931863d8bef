#include <brontes/profile.hpp>

#include "api/access.hpp"
#include "api/program.hpp"
#include "plan/labels.hpp"
#include "profile/cost.hpp"

#include <brontes/batch.hpp>

#include <algorithm>
#include <vector>

namespace brontes {
namespace {

using encode::Marks;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

class Entries {
 public:
  Entries(const plan::Plan& plan, const record::Graph& graph)
      : plan_(plan), labels_(plan::dispatch_labels(plan, graph)) {}

  ProfileEntry make(const Marks::Mark& mark) const {
    if (mark.what == Marks::What::upload) return copy("upload", plan_.upload_bytes);
    if (mark.what == Marks::What::readback) return copy("read back", plan_.readback_bytes());
    const plan::Dispatch& d = plan_.dispatches[mark.dispatch];
    ProfileEntry entry;
    entry.op = labels_[mark.dispatch].op;
    entry.result = labels_[mark.dispatch].result;
    entry.kernel = kernels::get(d.kernel).name;
    entry.dispatch = mark.dispatch;
    const profile::Cost cost = profile::cost_of(d);
    entry.flops = cost.flops * mark.share;
    entry.bytes = cost.bytes * mark.share;
    return entry;
  }

 private:
  static ProfileEntry copy(const char* op, std::uint64_t bytes) {
    ProfileEntry entry;
    entry.op = op;
    entry.bytes = 2 * static_cast<double>(bytes);
    return entry;
  }

  const plan::Plan& plan_;
  std::vector<plan::DispatchLabel> labels_;
};

}  // namespace

Result<Profile> Program::State::profile(const ProfileOptions& options) {
  if (options.runs == 0) return Error(Errc::invalid_argument, "profile: 0 runs");
  auto timing = program->time(options.runs);
  if (!timing) return timing.error();
  ran = true;

  Profile result;
  result.runs = options.runs;
  result.limits = options.limits;
  const Entries entries(program->plan(), graph);
  std::vector<double> times(timing->runs.size());
  for (std::size_t i = 1; i < timing->marks.size(); ++i) {
    if (timing->marks[i].what == Marks::What::begin) continue;
    ProfileEntry entry = entries.make(timing->marks[i]);
    for (std::size_t run = 0; run < times.size(); ++run) times[run] = timing->runs[run][i] - timing->runs[run][i - 1];
    entry.seconds = median(times) * 1e-9;
    result.seconds += entry.seconds;
    result.entries.push_back(std::move(entry));
  }
  for (ProfileEntry& e : result.entries) {
    if (e.seconds <= 0) continue;
    e.share = e.seconds / result.seconds;
    e.share_of_limit = profile::least_seconds({e.flops, e.bytes}, options.limits) / e.seconds;
  }
  return result;
}

Result<Profile> Program::profile(const ProfileOptions& options) {
  return guarded("profile", [&]() -> Result<Profile> {
    if (!state_) return Error(Errc::invalid_argument, "profile: the Program has been moved from");
    return state_->profile(options);
  });
}

namespace {

constexpr std::uint32_t limit_runs = 3;

// The time of the only dispatch of a batch that has the rest of its operands on the device.
template <class Record>
Result<ProfileEntry> time_alone(const Device& device, Record record) {
  BatchOptions options;
  options.keep_marked_only = true;
  Batch batch(device, options);
  if (Error e = record(batch)) return e;
  auto program = batch.compile();
  if (!program) return program.error();
  ProfileOptions profiling;
  profiling.runs = limit_runs;
  auto profile = program->profile(profiling);
  if (!profile) return profile.error();
  const auto longest = std::max_element(profile->entries.begin(), profile->entries.end(),
                                        [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  if (longest == profile->entries.end()) return ProfileEntry();
  return *longest;
}

Result<Buffer> ones(const Device& device, const Shape& shape) {
  return Buffer::from(device, std::vector<float>(shape.count(), 1.0f), shape);
}

// Larger and larger products, until they are no faster.
Error measure_products(const Device& device, ProfileLimits& limits) {
  constexpr std::uint64_t largest = 2048;
  constexpr double long_enough = 0.25;
  for (std::uint64_t n = 256; n <= largest; n *= 2) {
    auto a = ones(device, Shape(n, n));
    if (!a) return a.error();
    auto c = Buffer::create(device, Shape(n, n));
    if (!c) return c.error();
    auto entry = time_alone(device, [&](Batch& batch) {
      const Tensor x = batch.import_buffer(*a);
      batch.store(batch.matmul(x, x), *c);
      return batch.error();
    });
    if (!entry) return entry.error();
    const double before = limits.flops_per_second;
    limits.flops_per_second = std::max(before, entry->flops_per_second());
    if (entry->seconds > long_enough || limits.flops_per_second < 1.05 * before) break;
  }
  return {};
}

// 64 MiB each, or what the device can have.
Error measure_memory(const Device& device, ProfileLimits& limits) {
  constexpr std::uint64_t wanted = std::uint64_t{1} << 24;
  const Shape shape(std::min<std::uint64_t>(wanted, device.info().max_storage_range / sizeof(float)));
  auto a = ones(device, shape);
  if (!a) return a.error();
  auto b = ones(device, shape);
  if (!b) return b.error();
  auto c = Buffer::create(device, shape);
  if (!c) return c.error();
  auto entry = time_alone(device, [&](Batch& batch) {
    batch.store(batch.add(batch.import_buffer(*a), batch.import_buffer(*b)), *c);
    return batch.error();
  });
  if (!entry) return entry.error();
  limits.bytes_per_second = entry->bytes_per_second();
  return {};
}

}  // namespace

Result<ProfileLimits> measure_limits(const Device& device) {
  return guarded("measure_limits", [&]() -> Result<ProfileLimits> {
    ProfileLimits limits;
    if (Error e = measure_products(device, limits)) return e;
    if (Error e = measure_memory(device, limits)) return e;
    return limits;
  });
}

}  // namespace brontes
