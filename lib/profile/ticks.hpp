// What a device's timestamps mean. Pure functions.
#pragma once

#include <brontes/tensor.hpp>

#include <cstdint>
#include <vector>

namespace brontes::profile {

/// How a device counts.
struct Ticks {
  double nanoseconds = 1;   // of one tick
  std::uint32_t bits = 64;  // those that count; the others mean nothing

  /// From one timestamp to a later one, less than a full turn of the counter behind it.
  double between(std::uint64_t from, std::uint64_t to) const noexcept {
    const std::uint64_t mask = bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    return static_cast<double>((to - from) & mask) * nanoseconds;
  }

  /// The same for timestamps in either order, less than half a turn apart: negative where `to` is earlier.
  double apart(std::uint64_t from, std::uint64_t to) const noexcept {
    const double forward = between(from, to);
    const double backward = between(to, from);
    return forward <= backward ? forward : -backward;
  }

  /// Nanoseconds from the first to each, in order.
  std::vector<double> since_first(Span<const std::uint64_t> ticks) const {
    std::vector<double> times;
    times.reserve(ticks.size());
    double now = 0;
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      if (i != 0) now += between(ticks[i - 1], ticks[i]);
      times.push_back(now);
    }
    return times;
  }
};

}  // namespace brontes::profile
