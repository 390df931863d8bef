// How a device's timestamps count.
#pragma once

#include "profile/ticks.hpp"
#include "vk/context.hpp"

namespace brontes::submit {

inline profile::Ticks ticks_of(const vk::Context& context) noexcept {
  return {static_cast<double>(context.physical().limits.timestampPeriod), context.timestamp_bits()};
}

}  // namespace brontes::submit
