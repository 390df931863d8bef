#include "vk/features.hpp"

#include "vk/cooperative_matrix.hpp"
#include "vk/loader_lock.hpp"

#include <string>

namespace brontes::vk {
namespace {

// Both are an sType and a pNext, and then what the sType says.
struct Link {
  VkStructureType type;
  void* next;
};

// Calls `visit(feature, place)` with the VkBool32 of each feature that Brontes knows, wherever the chain has it.
enum class Feature : std::uint8_t {
  timeline_semaphore,
  buffer_device_address,
  int64,
  subgroup_size_control,
  full_subgroups,
  float16,
  memory_model,
  cooperative_matrix
};
template <class Visit>
void visit(VkPhysicalDeviceFeatures2& chain, Visit visit) {
  visit(Feature::int64, chain.features.shaderInt64);
  for (void* at = chain.pNext; at != nullptr; at = static_cast<Link*>(at)->next) {
    // No enumerator in older headers.
    if (static_cast<Link*>(at)->type == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR) {
      visit(Feature::cooperative_matrix,
            static_cast<VkPhysicalDeviceCooperativeMatrixFeaturesKHR*>(at)->cooperativeMatrix);
    }
    switch (static_cast<Link*>(at)->type) {
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES: {
        auto& features = *static_cast<VkPhysicalDeviceVulkan12Features*>(at);
        visit(Feature::timeline_semaphore, features.timelineSemaphore);
        visit(Feature::buffer_device_address, features.bufferDeviceAddress);
        visit(Feature::float16, features.shaderFloat16);
        visit(Feature::memory_model, features.vulkanMemoryModel);
        break;
      }
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES:
        visit(Feature::float16, static_cast<VkPhysicalDeviceShaderFloat16Int8Features*>(at)->shaderFloat16);
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES:
        visit(Feature::memory_model, static_cast<VkPhysicalDeviceVulkanMemoryModelFeatures*>(at)->vulkanMemoryModel);
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES:
        visit(Feature::timeline_semaphore,
              static_cast<VkPhysicalDeviceTimelineSemaphoreFeatures*>(at)->timelineSemaphore);
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES:
        visit(Feature::buffer_device_address,
              static_cast<VkPhysicalDeviceBufferDeviceAddressFeatures*>(at)->bufferDeviceAddress);
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES: {
        auto& features = *static_cast<VkPhysicalDeviceVulkan13Features*>(at);
        visit(Feature::subgroup_size_control, features.subgroupSizeControl);
        visit(Feature::full_subgroups, features.computeFullSubgroups);
        break;
      }
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES: {
        auto& features = *static_cast<VkPhysicalDeviceSubgroupSizeControlFeatures*>(at);
        visit(Feature::subgroup_size_control, features.subgroupSizeControl);
        visit(Feature::full_subgroups, features.computeFullSubgroups);
        break;
      }
      default: break;
    }
  }
}

bool& member(EnabledFeatures& features, Feature feature) {
  switch (feature) {
    case Feature::timeline_semaphore: return features.timeline_semaphore;
    case Feature::buffer_device_address: return features.buffer_device_address;
    case Feature::subgroup_size_control: return features.subgroup_size_control;
    case Feature::full_subgroups: return features.full_subgroups;
    case Feature::float16: return features.float16;
    case Feature::memory_model: return features.memory_model;
    case Feature::cooperative_matrix: return features.cooperative_matrix;
    case Feature::int64: break;
  }
  return features.int64;
}

Error too_old(const std::string& version) {
  return Error(Errc::unsupported, "adopt: the VkInstance was created for Vulkan " + version +
                                      " (VkApplicationInfo::apiVersion), and 1.2 is needed");
}

}  // namespace

EnabledFeatures enabled_features(const VkPhysicalDeviceFeatures2& chain) noexcept {
  EnabledFeatures enabled;
  // Only looked at.
  visit(const_cast<VkPhysicalDeviceFeatures2&>(chain), [&](Feature feature, const VkBool32& value) {
    if (value == VK_TRUE) member(enabled, feature) = true;
  });
  return enabled;
}

Error enable_features(const EnabledFeatures& wanted, VkPhysicalDeviceFeatures2& chain) {
  EnabledFeatures places;
  visit(chain, [&](Feature feature, const VkBool32&) { member(places, feature) = true; });
  auto missing = [](const char* feature) {
    return Error(Errc::invalid_argument,
                 std::string("merge: the chain has no structure with ") + feature +
                     "; add a VkPhysicalDeviceVulkan12Features or the structure of that feature");
  };
  if (wanted.timeline_semaphore && !places.timeline_semaphore) return missing("timelineSemaphore");
  if (wanted.buffer_device_address && !places.buffer_device_address) return missing("bufferDeviceAddress");
  EnabledFeatures on = wanted;
  visit(chain, [&](Feature feature, VkBool32& value) {
    if (member(on, feature)) value = VK_TRUE;
  });
  return {};
}

Error check_suitable(const char* call, const PhysicalDevice& device) {
  if (device.info.suitable) return {};
  // Every device with Vulkan 1.2 has timeline semaphores. Where the driver does not say so, it was not asked: the
  // loader answers for instances of Vulkan 1.0.
  const bool not_asked = device.info.api_version >= VK_API_VERSION_1_2 &&
                         device.info.unsuitable_because == "it has no timeline semaphores";
  if (not_asked) return too_old("1.0 or 1.1");
  return Error(Errc::unsupported,
               std::string(call) + ": " + device.info.name + " cannot be used: " + device.info.unsuitable_because);
}

Error check_instance_version(std::uint32_t api_version) {
  if (api_version == 0 || api_version >= VK_API_VERSION_1_2) return {};
  return too_old(std::to_string(VK_API_VERSION_MAJOR(api_version)) + "." +
                 std::to_string(VK_API_VERSION_MINOR(api_version)));
}

Error check_instance_version(const Instance& instance, VkPhysicalDevice physical, VkDevice device) {
  VkPhysicalDeviceProperties properties{};
  instance.table.vkGetPhysicalDeviceProperties(physical, &properties);
  if (properties.apiVersion < VK_API_VERSION_1_2) return {};  // the device is to blame
  const LoaderLookup lock(loader_mutex());
  for (const char* function : {"vkWaitSemaphores", "vkGetSemaphoreCounterValue", "vkGetBufferDeviceAddress"}) {
    if (instance.table.vkGetDeviceProcAddr(device, function) == nullptr) return too_old("1.0 or 1.1");
  }
  return {};
}

}  // namespace brontes::vk
