// Which features a VkDevice has, needs and could use, and which version its instance is for.
#pragma once

#include "vk/loader.hpp"
#include "vk/physical_device.hpp"

#include <brontes/error.hpp>

#include <cstdint>

namespace brontes::vk {

struct EnabledFeatures {
  bool timeline_semaphore = false;
  bool buffer_device_address = false;
  bool int64 = false;
  bool subgroup_size_control = false;
  bool full_subgroups = false;
  bool float16 = false;
  bool memory_model = false;
  bool cooperative_matrix = false;
};

/// Of a chain that a VkDevice was created with.
EnabledFeatures enabled_features(const VkPhysicalDeviceFeatures2& chain) noexcept;

/// Turns features on in a chain, or changes nothing and says which of them no structure of it has.
Error enable_features(const EnabledFeatures& wanted, VkPhysicalDeviceFeatures2& chain);

/// Why the device cannot be used, if so: by itself, or because of the instance.
Error check_suitable(const char* call, const PhysicalDevice& device);

/// Why an instance for this version of Vulkan will not do, if so. 0 is unknown.
Error check_instance_version(std::uint32_t api_version);
/// The same, by what the driver gives for the instance: no functions of Vulkan 1.2, though the device has them.
Error check_instance_version(const Instance& instance, VkPhysicalDevice physical, VkDevice device);

}  // namespace brontes::vk
