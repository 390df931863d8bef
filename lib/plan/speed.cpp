#include "plan/speed.hpp"

#include <algorithm>

namespace brontes::plan {

double estimate(const Cost& cost, const Speed& speed) noexcept {
  return cost.work / speed.work + cost.bytes / speed.bytes;
}

Speed refined(const Speed& speed, const Cost& cost, double seconds, bool at_most) noexcept {
  const double expected = estimate(cost, speed);
  if (expected <= 0 || seconds <= 0 || (at_most && seconds >= expected)) return speed;
  const double off = std::clamp(seconds / expected, 0.125, 8.0) - 1;
  auto corrected = [&](double per_second, double amount) {
    const double share = amount / per_second / expected;
    return per_second / (1 + 0.5 * share * off);
  };
  return {corrected(speed.work, cost.work), corrected(speed.bytes, cost.bytes)};
}

Speed SpeedGauge::speed() const noexcept { return {work_, bytes_}; }

void SpeedGauge::observe(const Cost& cost, double seconds, bool at_most) noexcept {
  // One of several that come at once will do.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  const Speed now = refined(speed(), cost, seconds, at_most);
  work_ = now.work;
  bytes_ = now.bytes;
}

}  // namespace brontes::plan
