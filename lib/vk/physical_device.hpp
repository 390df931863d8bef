// Describing and choosing devices. Choosing is a pure function over descriptions.
#pragma once

#include "plan/traits.hpp"
#include "vk/loader.hpp"

#include <brontes/device.hpp>
#include <brontes/error.hpp>
#include <brontes/tensor.hpp>

#include <string>
#include <vector>

namespace brontes::vk {

struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  DeviceInfo info;
  std::uint32_t queue_family = 0;
  VkPhysicalDeviceLimits limits{};
  bool pointers = false;             // buffer device addresses, and 64-bit integers to load by
  bool subgroup_operations = false;  // basic, arithmetic and ballot, in compute
  VkDriverId driver_id{};
  std::array<std::uint8_t, 16> driver_uuid{};
  std::array<std::uint8_t, 16> pipeline_cache_uuid{};
};

std::vector<VkQueueFamilyProperties> queue_families(const Instance& instance, VkPhysicalDevice device);
PhysicalDevice describe(const Instance& instance, VkPhysicalDevice device, std::uint32_t index);
Result<std::vector<PhysicalDevice>> describe_all(const Instance& instance);

/// The index of the device the options ask for. `wish` is DeviceOptions::select or BRONTES_DEVICE.
Result<std::size_t> choose_device(Span<const DeviceInfo> devices, const std::string& wish, bool allow_cpu);

/// How kernels reach memory: as wished, or in the way that is fastest with the driver. Errc::unsupported
/// for addresses where the device has none.
Result<plan::Access> choose_access(const PhysicalDevice& device, AccessMode wish);

/// What planning may use: the device's own limits, lowered by the simulated ones, and known quirks.
plan::Traits traits_of(const PhysicalDevice& device, const SimulatedLimits& simulate);

}  // namespace brontes::vk
