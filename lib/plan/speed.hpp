// How long work takes on a device: an estimate, which gets better as work is timed.
#pragma once

#include <atomic>
#include <mutex>

namespace brontes::plan {

/// What a dispatch, or several, ask of a device.
struct Cost {
  double work = 0;   // multiply-adds or elements
  double bytes = 0;  // read and written

  Cost& operator+=(const Cost& more) noexcept {
    work += more.work;
    bytes += more.bytes;
    return *this;
  }
};

/// What a device does in a second. Too low a guess makes submits shorter than they need be, too high a guess longer
/// than they should: without knowing better, that of a slow GPU.
struct Speed {
  double work = 5e9;
  double bytes = 5e9;
};

/// In seconds.
double estimate(const Cost& cost, const Speed& speed) noexcept;

/// After something has taken so many seconds, or at most so many, each of the two is corrected by its share in the
/// estimate: by half of what it was off, and by no more than a factor of eight at once.
Speed refined(const Speed& speed, const Cost& cost, double seconds, bool at_most) noexcept;

/// Thread-safety: any thread; also in a forked process, where a thread that does not exist may have the mutex.
class SpeedGauge {
 public:
  explicit SpeedGauge(const Speed& guess) : work_(guess.work), bytes_(guess.bytes) {}

  Speed speed() const noexcept;
  void observe(const Cost& cost, double seconds, bool at_most) noexcept;

 private:
  std::mutex mutex_;  // for changing them
  std::atomic<double> work_;
  std::atomic<double> bytes_;
};

}  // namespace brontes::plan
