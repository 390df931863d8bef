#include "trace/recorder.hpp"

#include "util/json.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <new>

namespace brontes::trace {
namespace {

// Names thrown at add() may need memory that is not there: a span is lost then, and nothing else.
template <class Body>
bool try_to(Body body) noexcept {
  try {
    body();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// Microseconds, to the nanosecond.
std::string microseconds(double nanoseconds) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.3f", nanoseconds / 1e3);
  return text.data();
}

constexpr int host = 1;
constexpr int device_process = 2;

std::string metadata(const char* what, int process, std::uint32_t thread, const std::string& name) {
  return "{\"ph\": \"M\", \"name\": \"" + std::string(what) + "\", \"pid\": " + std::to_string(process) +
         ", \"tid\": " + std::to_string(thread) + ", \"args\": {\"name\": " + util::json_string(name) + "}}";
}

}  // namespace

const char* to_string(Stage stage) noexcept {
  switch (stage) {
    case Stage::record: return "record";
    case Stage::plan: return "plan";
    case Stage::encode: return "encode";
    case Stage::write: return "write";
    case Stage::submit: return "submit";
    case Stage::wait: return "wait";
    case Stage::read: break;
  }
  return "read";
}

double now() noexcept {
  return static_cast<double>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

bool Recorder::start(std::size_t most) {
  const std::lock_guard lock(mutex_);
  if (on()) return false;
  events_.clear();
  threads_.clear();
  pending_.clear();
  seen_.clear();
  first_tick_.reset();
  bounded_ = false;
  dropped_ = 0;
  most_ = most;
  start_ = now();
  on_ = true;
  return true;
}

void Recorder::collect_all() noexcept {
  std::vector<std::shared_ptr<DeviceRun>> pending;
  {
    const std::lock_guard lock(mutex_);
    pending.swap(pending_);
  }
  for (const auto& run : pending) fetch(*run);
}

// Without memory for its times a run is left out.
void Recorder::fetch(DeviceRun& run) noexcept {
  if (try_to([&] { run.collect(*this); })) return;
  const std::lock_guard lock(mutex_);
  ++dropped_;
}

std::string Recorder::stop(const std::string& device, const std::string& clock, std::optional<double> offset) {
  const std::lock_guard lock(mutex_);
  if (!on()) return {};
  std::string text = write(device, clock, offset.value_or(estimated_offset()));
  on_ = false;
  events_ = {};
  return text;
}

std::uint64_t Recorder::first_tick(std::uint64_t tick) noexcept {
  const std::lock_guard lock(mutex_);
  if (!first_tick_) first_tick_ = tick;
  return *first_tick_;
}

std::optional<std::uint64_t> Recorder::known_first_tick() const noexcept {
  const std::lock_guard lock(mutex_);
  return first_tick_;
}

void Recorder::bound_offset(double least, double most) noexcept {
  const std::lock_guard lock(mutex_);
  least_offset_ = bounded_ ? std::max(least_offset_, least) : least;
  most_offset_ = bounded_ ? std::min(most_offset_, most) : most;
  bounded_ = true;
}

// One for all runs, so that they keep their order and their distances.
double Recorder::estimated_offset() const noexcept { return (least_offset_ + most_offset_) / 2; }

void Recorder::add(const char* category, std::string_view name, std::string_view kernel, double begin, double end,
                   bool device, std::uint64_t run) noexcept {
  const std::lock_guard lock(mutex_);
  if (!on()) return;
  const bool added = events_.size() < most_ && try_to([&] {
                       std::uint32_t thread = 0;
                       if (!device) {
                         const auto next = static_cast<std::uint32_t>(threads_.size() + 1);
                         thread = threads_.emplace(std::this_thread::get_id(), next).first->second;
                       }
                       events_.push_back({std::string(name), std::string(kernel), category, begin, end, thread, run});
                     });
  if (!added) ++dropped_;
}

void Recorder::add_host(Stage stage, const char* name, double begin, double end, std::uint64_t run) noexcept {
  add(to_string(stage), name, {}, begin, end, false, run);
}

void Recorder::add_device(const std::string& name, const std::string& kernel, double begin, double end,
                          std::uint64_t run) noexcept {
  add("device", name, kernel, begin, end, true, run);
}

bool Recorder::expect(std::shared_ptr<DeviceRun> run) noexcept {
  const std::lock_guard lock(mutex_);
  if (!on()) return false;
  const bool kept = try_to([&] { pending_.push_back(std::move(run)); });
  if (!kept) ++dropped_;
  return kept;
}

void Recorder::collect(DeviceRun& run) noexcept {
  std::shared_ptr<DeviceRun> found;
  {
    const std::lock_guard lock(mutex_);
    const auto at = std::find_if(pending_.begin(), pending_.end(), [&](const auto& p) { return p.get() == &run; });
    if (at == pending_.end()) return;
    found = std::move(*at);
    pending_.erase(at);
  }
  fetch(*found);
}

void Recorder::saw(std::uint64_t value, double when) noexcept {
  const std::lock_guard lock(mutex_);
  if (!on() || (!seen_.empty() && seen_.back().first >= value)) return;
  try_to([&] { seen_.emplace_back(value, when); });
}

double Recorder::seen(std::uint64_t value) const noexcept {
  const std::lock_guard lock(mutex_);
  const auto at = std::lower_bound(seen_.begin(), seen_.end(), value,
                                   [](const auto& entry, std::uint64_t wanted) { return entry.first < wanted; });
  return at == seen_.end() ? now() : at->second;
}

std::string Recorder::write(const std::string& device, const std::string& clock, double offset) {
  auto begin_of = [&](const Event& e) { return e.thread == 0 ? e.begin + offset : e.begin; };
  // What begins first comes first, and what contains others before them.
  std::stable_sort(events_.begin(), events_.end(), [&](const Event& a, const Event& b) {
    return begin_of(a) != begin_of(b) ? begin_of(a) < begin_of(b) : a.end - a.begin > b.end - b.begin;
  });
  std::string text = "{\n\"displayTimeUnit\": \"ns\",\n\"otherData\": {\"clock\": " + util::json_string(clock) +
                     ", \"dropped_spans\": " + std::to_string(dropped_) + "},\n\"traceEvents\": [\n";
  text += metadata("process_name", host, 0, "host") + ",\n" + metadata("process_name", device_process, 0, device) +
          ",\n" + metadata("thread_name", device_process, 0, "queue");
  for (std::uint32_t thread = 1; thread <= threads_.size(); ++thread) {
    text += ",\n" + metadata("thread_name", host, thread, "thread " + std::to_string(thread));
  }
  for (const Event& e : events_) {
    const bool on_device = e.thread == 0;
    text += ",\n{\"ph\": \"X\", \"name\": " + util::json_string(e.name) + ", \"cat\": \"" + e.category +
            "\", \"pid\": " + std::to_string(on_device ? device_process : host) +
            ", \"tid\": " + std::to_string(e.thread) + ", \"ts\": " + microseconds(begin_of(e) - start_) +
            ", \"dur\": " + microseconds(std::max(0.0, e.end - e.begin)) + ", \"args\": {";
    if (e.run != 0) text += "\"run\": " + std::to_string(e.run);
    if (!e.kernel.empty()) text += std::string(e.run != 0 ? ", " : "") + "\"kernel\": " + util::json_string(e.kernel);
    text += "}}";
  }
  return text + "\n]\n}\n";
}

}  // namespace brontes::trace
