// How long work takes on a device: an estimate, which gets better as work is timed.
#pragma once

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

/// Thread-safety: any thread.
class SpeedGauge {
 public:
  explicit SpeedGauge(const Speed& guess) : speed_(guess) {}

  Speed speed() const noexcept;
  void observe(const Cost& cost, double seconds, bool at_most) noexcept;

 private:
  mutable std::mutex mutex_;
  Speed speed_;
};

}  // namespace brontes::plan
