#include "profile/cost.hpp"

#include <algorithm>

namespace brontes::profile {

Cost cost_of(const plan::Dispatch& dispatch) noexcept {
  Cost cost;
  cost.flops = 2.0 * static_cast<double>(dispatch.multiply_adds);
  for (std::size_t b = 0; b < dispatch.binding_count; ++b) {
    const int accesses = (dispatch.reads(b) ? 1 : 0) + (dispatch.writes(b) ? 1 : 0);
    cost.bytes += accesses * static_cast<double>(dispatch.bindings[b].bytes);
  }
  return cost;
}

double least_seconds(const Cost& cost, const ProfileLimits& limits) noexcept {
  double seconds = 0;
  if (limits.flops_per_second > 0) seconds = cost.flops / limits.flops_per_second;
  if (limits.bytes_per_second > 0) seconds = std::max(seconds, cost.bytes / limits.bytes_per_second);
  return seconds;
}

}  // namespace brontes::profile
