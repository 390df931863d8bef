#define VK_NO_PROTOTYPES
#include <brontes/vulkan.hpp>

#include "api/access.hpp"
#include "vk/cooperative_matrix.hpp"
#include "vk/features.hpp"

namespace brontes::vulkan {

DeviceFeatures required_features() {
  DeviceFeatures features;
  features.vulkan12.timelineSemaphore = VK_TRUE;
  return features;
}

Result<DeviceFeatures> recommended_features(PFN_vkGetInstanceProcAddr get_instance_proc_addr, VkInstance instance,
                                            VkPhysicalDevice physical_device) {
  return guarded("recommended_features", [&]() -> Result<DeviceFeatures> {
    if (get_instance_proc_addr == nullptr || instance == VK_NULL_HANDLE || physical_device == VK_NULL_HANDLE) {
      return Error(Errc::invalid_argument, "recommended_features: every handle must be given");
    }
    auto adopted = vk::Instance::adopt(get_instance_proc_addr, instance, {});
    if (!adopted) return adopted.error();
    const vk::PhysicalDevice physical = vk::describe(**adopted, physical_device, 0);
    if (Error e = vk::check_suitable("recommended_features", physical)) return e;
    DeviceFeatures features = required_features();
    if (physical.pointers) {
      features.vulkan12.bufferDeviceAddress = VK_TRUE;
      features.vulkan10.shaderInt64 = VK_TRUE;
    }
    if (physical.required_subgroup_size || physical.full_subgroups) {
      features.subgroup_size.subgroupSizeControl = physical.required_subgroup_size ? VK_TRUE : VK_FALSE;
      features.subgroup_size.computeFullSubgroups = physical.full_subgroups ? VK_TRUE : VK_FALSE;
      features.extensions.push_back(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
    }
    if (!physical.matrices.empty()) {
      features.vulkan12.shaderFloat16 = features.vulkan12.vulkanMemoryModel = VK_TRUE;
      features.cooperative_matrix.cooperativeMatrix = VK_TRUE;
      features.extensions.push_back(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
    }
    if (physical.memory_budget) features.extensions.push_back(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    return features;
  });
}

Error merge(const DeviceFeatures& wanted, VkPhysicalDeviceFeatures2& chain) {
  return guarded("merge", [&]() -> Error {
    vk::EnabledFeatures features;
    features.timeline_semaphore = wanted.vulkan12.timelineSemaphore == VK_TRUE;
    features.buffer_device_address = wanted.vulkan12.bufferDeviceAddress == VK_TRUE;
    features.int64 = wanted.vulkan10.shaderInt64 == VK_TRUE;
    features.subgroup_size_control = wanted.subgroup_size.subgroupSizeControl == VK_TRUE;
    features.full_subgroups = wanted.subgroup_size.computeFullSubgroups == VK_TRUE;
    features.float16 = wanted.vulkan12.shaderFloat16 == VK_TRUE;
    features.memory_model = wanted.vulkan12.vulkanMemoryModel == VK_TRUE;
    features.cooperative_matrix = wanted.cooperative_matrix.cooperativeMatrix == VK_TRUE;
    return vk::enable_features(features, chain);
  });
}

}  // namespace brontes::vulkan
