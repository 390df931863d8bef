// What planning may know of a device, from Vulkan's description of it. Pure functions.
#pragma once

#include "plan/traits.hpp"
#include "vk/physical_device.hpp"

#include <brontes/device.hpp>
#include <brontes/error.hpp>

namespace brontes::engine {

/// How kernels reach memory: as wished, or in the way that is fastest with the driver. Errc::unsupported
/// for addresses where the device has none.
Result<plan::Access> choose_access(const vk::PhysicalDevice& device, AccessMode wish);

/// What planning may use: the device's own limits, lowered by the simulated ones, and known quirks.
plan::Traits traits_of(const vk::PhysicalDevice& device, const SimulatedLimits& simulate);

}  // namespace brontes::engine
