// What happens when, on the host and on the device, as Chrome's trace event format has it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace brontes::trace {

/// What the host does. Also the categories of its spans.
enum class Stage : std::uint8_t { record, plan, encode, write, submit, wait, read };
const char* to_string(Stage stage) noexcept;

/// Nanoseconds of std::chrono::steady_clock, which is CLOCK_MONOTONIC where there is one.
double now() noexcept;

class Recorder;

/// Work on the device whose times are fetched when it is done.
class DeviceRun {
 public:
  virtual ~DeviceRun() = default;
  /// Adds what is known of it. Called once, when it is done.
  virtual void collect(Recorder& recorder) = 0;
};

/// Collects spans while it is on.
///
/// Thread-safety: any thread.
class Recorder {
 public:
  bool on() const noexcept { return on_.load(std::memory_order_relaxed); }

  /// False when it is on already. Spans past `most` are counted and not kept.
  bool start(std::size_t most);
  /// Collects what is pending: it is done by now.
  void collect_all() noexcept;
  /// The trace, as JSON; empty when it was not on. Where that lacks memory and throws, it is on still. `device` is what
  /// the device's track is called. `offset` is what its clock is behind the host's, if that is known; else it is
  /// estimated. `clock` says which.
  std::string stop(const std::string& device, const std::string& clock, std::optional<double> offset);

  /// What a span is about: 0 for nothing, else a value of the queue's timeline.
  void add_host(Stage stage, const char* name, double begin, double end, std::uint64_t run) noexcept;
  /// In nanoseconds of the device's clock, since its first tick of the trace.
  void add_device(const std::string& name, const std::string& kernel, double begin, double end,
                  std::uint64_t run) noexcept;
  /// That tick: `tick` if none is known yet.
  std::uint64_t first_tick(std::uint64_t tick) noexcept;
  /// Nothing if the device did nothing.
  std::optional<std::uint64_t> known_first_tick() const noexcept;
  /// What the device's clock is behind the host's lies between these: a run began after its submit, and was over when
  /// that was seen. The true offset is within the bounds of every run.
  void bound_offset(double least, double most) noexcept;

  /// Kept until it is collected. False when nobody will: the recorder is off.
  bool expect(std::shared_ptr<DeviceRun> run) noexcept;
  /// Collects one that is done, if nobody has.
  void collect(DeviceRun& run) noexcept;

  /// The timeline was seen to have reached this.
  void saw(std::uint64_t value, double when) noexcept;
  /// When it was first seen to have reached `value`; now if it was not.
  double seen(std::uint64_t value) const noexcept;

 private:
  struct Event {
    std::string name;
    std::string kernel;  // of a dispatch
    const char* category;
    double begin, end;
    std::uint32_t thread;  // 0 for the device
    std::uint64_t run;
  };
  void add(const char* category, std::string_view name, std::string_view kernel, double begin, double end, bool device,
           std::uint64_t run) noexcept;
  void fetch(DeviceRun& run) noexcept;
  double estimated_offset() const noexcept;
  std::string write(const std::string& device, const std::string& clock, double offset);

  std::atomic<bool> on_{false};
  mutable std::mutex mutex_;  // for all that follows
  std::vector<Event> events_;
  std::size_t most_ = 0;
  std::uint64_t dropped_ = 0;
  double start_ = 0;
  std::unordered_map<std::thread::id, std::uint32_t> threads_;
  std::vector<std::shared_ptr<DeviceRun>> pending_;
  std::vector<std::pair<std::uint64_t, double>> seen_;
  std::optional<std::uint64_t> first_tick_;
  double least_offset_ = 0;
  double most_offset_ = 0;
  bool bounded_ = false;
};

/// A span of the host's, from here to the end of the scope. Costs a load while the recorder is off.
class Span {
 public:
  Span(Recorder& recorder, Stage stage, const char* name)
      : recorder_(recorder.on() ? &recorder : nullptr), stage_(stage), name_(name) {
    if (recorder_ != nullptr) begin_ = now();
  }
  ~Span() {
    if (recorder_ != nullptr) recorder_->add_host(stage_, name_, begin_, now(), run_);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

  bool on() const noexcept { return recorder_ != nullptr; }
  double begin() const noexcept { return begin_; }
  void about(std::uint64_t run) noexcept { run_ = run; }

 private:
  Recorder* recorder_;
  Stage stage_;
  const char* name_;
  double begin_ = 0;
  std::uint64_t run_ = 0;
};

}  // namespace brontes::trace
