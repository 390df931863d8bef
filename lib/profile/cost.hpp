// What a dispatch must do at least, by its plan.
#pragma once

#include "plan/plan.hpp"

#include <brontes/profile.hpp>

namespace brontes::profile {

struct Cost {
  double flops = 0;  // of products
  double bytes = 0;  // bound memory, each byte once per binding that reads or writes it
};
Cost cost_of(const plan::Dispatch& dispatch) noexcept;

/// The least time that the limits allow for it, in seconds; 0 if they do not say.
double least_seconds(const Cost& cost, const ProfileLimits& limits) noexcept;

}  // namespace brontes::profile
