// A run of a program with timestamps, for the trace.
#pragma once

#include "encode/encoded_plan.hpp"
#include "trace/recorder.hpp"
#include "vk/context.hpp"

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace brontes::submit {

/// Its timestamps are those of one run at a time: it is idle again when they have been collected.
///
/// Thread-safety: collect() may be called from any thread, once per run.
class TracedRun final : public trace::DeviceRun {
 public:
  struct Name {
    std::string op;
    std::string kernel;  // empty for copies
  };
  /// Names by mark.
  TracedRun(vk::Context& context, encode::TimedRun run, std::vector<Name> names);

  const encode::CommandBuffers& commands() const noexcept { return run_; }
  bool idle() const noexcept { return !pending_.load(std::memory_order_acquire); }
  /// Of the run that is pending, on the timeline.
  std::uint64_t value() const noexcept { return value_; }

  /// `when` the host began to submit it.
  void submitted(std::uint64_t value, double when) noexcept;
  void forget() noexcept { pending_.store(false, std::memory_order_release); }
  void collect(trace::Recorder& recorder) override;

 private:
  vk::Context& context_;
  encode::TimedRun run_;
  std::vector<Name> names_;
  std::atomic<bool> pending_{false};
  std::uint64_t value_ = 0;
  double submitted_ = 0;
};

}  // namespace brontes::submit
