#include "vk/physical_device.hpp"

#include "kernels.hpp"
#include "util/cpu.hpp"
#include "util/hash.hpp"
#include "util/hex.hpp"
#include "vk/cooperative_matrix.hpp"
#include "vk/result.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>
#include <utility>

namespace brontes::vk {
namespace {

DeviceType type_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return DeviceType::integrated_gpu;
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return DeviceType::discrete_gpu;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return DeviceType::virtual_gpu;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return DeviceType::cpu;
    default: return DeviceType::other;
  }
}

int rank_of(DeviceType type) {
  switch (type) {
    case DeviceType::discrete_gpu: return 4;
    case DeviceType::integrated_gpu: return 3;
    case DeviceType::virtual_gpu: return 2;
    case DeviceType::other: return 1;  // an accelerator, say
    case DeviceType::cpu: break;
  }
  return 0;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Whether timestamps can be compared with std::chrono::steady_clock.
bool has_host_clock(const Instance& instance, VkPhysicalDevice device) {
  const auto list = instance.table.vkGetPhysicalDeviceCalibrateableTimeDomainsEXT;
  if (list == nullptr) return false;
  const auto domains = enumerate<VkTimeDomainEXT>(
      [&](std::uint32_t* count, VkTimeDomainEXT* items) { return list(device, count, items); });
  auto has = [&](VkTimeDomainEXT domain) { return std::find(domains.begin(), domains.end(), domain) != domains.end(); };
  return has(VK_TIME_DOMAIN_DEVICE_EXT) && has(VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT);
}

std::vector<MatrixSize> matrices_of(const Instance& instance, VkPhysicalDevice device) {
  const auto list = instance.table.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR;
  if (list == nullptr) return {};
  VkPhysicalDeviceCooperativeMatrixPropertiesKHR stages{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_PROPERTIES_KHR};
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &stages};
  instance.table.vkGetPhysicalDeviceProperties2(device, &properties);
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR};
  VkPhysicalDeviceShaderFloat16Int8Features halves{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES,
                                                   &matrices};
  VkPhysicalDeviceVulkanMemoryModelFeatures model{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES,
                                                  &halves};
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &model};
  instance.table.vkGetPhysicalDeviceFeatures2(device, &features);
  if (matrices.cooperativeMatrix != VK_TRUE || halves.shaderFloat16 != VK_TRUE || model.vulkanMemoryModel != VK_TRUE ||
      (stages.cooperativeMatrixSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) == 0) {
    return {};
  }
  std::uint32_t count = 0;
  if (list(device, &count, nullptr) != VK_SUCCESS) return {};
  std::vector<VkCooperativeMatrixPropertiesKHR> all(count, {VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR});
  if (list(device, &count, all.data()) < 0) return {};
  all.resize(std::min<std::size_t>(count, all.size()));
  std::vector<MatrixSize> sizes;
  for (const VkCooperativeMatrixPropertiesKHR& p : all) {
    if (p.scope == VK_SCOPE_SUBGROUP_KHR && p.AType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
        p.BType == VK_COMPONENT_TYPE_FLOAT16_KHR && p.CType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
        p.ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR) {
      sizes.push_back({p.MSize, p.NSize, p.KSize});
    }
  }
  return sizes;
}

// A compute queue without graphics is not shared with a window system; any compute queue will do.
std::optional<std::uint32_t> compute_family(const std::vector<VkQueueFamilyProperties>& families) {
  std::optional<std::uint32_t> found;
  for (std::uint32_t i = 0; i < families.size(); ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0 || families[i].queueCount == 0) continue;
    if ((families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT) == 0) return i;
    if (!found) found = i;
  }
  return found;
}

std::string version_text(std::uint32_t version) {
  return std::to_string(VK_API_VERSION_MAJOR(version)) + "." + std::to_string(VK_API_VERSION_MINOR(version));
}

// Pipelines that require a size run up to this many subgroups in a workgroup.
constexpr std::uint32_t most_required_subgroups = 16;

void describe_subgroups(const Instance& instance, bool extension, PhysicalDevice& device) {
  device.min_subgroup_size = device.info.subgroup_size;
  if (!extension) return;
  VkPhysicalDeviceSubgroupSizeControlProperties sizes{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &sizes};
  instance.table.vkGetPhysicalDeviceProperties2(device.handle, &properties);
  VkPhysicalDeviceSubgroupSizeControlFeatures control{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &control};
  instance.table.vkGetPhysicalDeviceFeatures2(device.handle, &features);
  device.min_subgroup_size = sizes.minSubgroupSize;
  device.one_subgroup_size =
      sizes.minSubgroupSize == device.info.subgroup_size && sizes.maxSubgroupSize == device.info.subgroup_size;
  device.full_subgroups = control.computeFullSubgroups == VK_TRUE;
  device.required_subgroup_size =
      control.subgroupSizeControl == VK_TRUE && (sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
      sizes.minSubgroupSize <= device.info.subgroup_size && device.info.subgroup_size <= sizes.maxSubgroupSize &&
      sizes.maxComputeWorkgroupSubgroups >= most_required_subgroups;
}

std::string describe_refusals(Span<const DeviceInfo> devices, bool allow_cpu) {
  std::string text;
  for (const DeviceInfo& d : devices) {
    text += "\n  " + std::to_string(d.index) + ": " + d.name + " (" + to_string(d.type) + ")";
    if (!d.suitable) {
      text += ", unsuitable: " + d.unsuitable_because;
    } else if (d.type == DeviceType::cpu && !allow_cpu) {
      text += ", refused: CPU drivers are not allowed";
    }
  }
  return text;
}

}  // namespace

std::string missing_bindings(const VkPhysicalDeviceLimits& limits) {
  std::size_t most = 0;
  for (std::size_t i = 0; i < kernels::count; ++i) {
    most = std::max(most, kernels::get(static_cast<kernels::Id>(i)).bindings.size);
  }
  for (const auto& [own, name] : {std::pair(limits.maxPerStageDescriptorStorageBuffers, "storage buffers"),
                                  std::pair(limits.maxDescriptorSetStorageBuffers, "storage buffers in a set"),
                                  std::pair(limits.maxPerStageResources, "resources")}) {
    if (own < most) {
      return "its shaders have " + std::to_string(own) + " " + name + ", and " + std::to_string(most) + " are needed";
    }
  }
  return {};
}

std::vector<VkQueueFamilyProperties> queue_families(const Instance& instance, VkPhysicalDevice device) {
  std::uint32_t count = 0;
  instance.table.vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  instance.table.vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  return families;
}

PhysicalDevice describe(const Instance& instance, VkPhysicalDevice handle, std::uint32_t index) {
  PhysicalDevice device;
  device.handle = handle;
  DeviceInfo& info = device.info;
  info.index = index;

  VkPhysicalDeviceProperties basic{};
  instance.table.vkGetPhysicalDeviceProperties(handle, &basic);
  info.name = basic.deviceName;
  info.type = type_of(basic.deviceType);
  info.vendor_id = basic.vendorID;
  info.device_id = basic.deviceID;
  info.driver_version = basic.driverVersion;
  info.api_version = basic.apiVersion;
  info.max_group_invocations =
      std::min(basic.limits.maxComputeWorkGroupInvocations, basic.limits.maxComputeWorkGroupSize[0]);
  info.max_shared_bytes = basic.limits.maxComputeSharedMemorySize;
  std::copy_n(basic.limits.maxComputeWorkGroupCount, 3, info.max_group_count.begin());
  info.max_storage_range = basic.limits.maxStorageBufferRange;
  device.limits = basic.limits;
  std::memcpy(device.pipeline_cache_uuid.data(), basic.pipelineCacheUUID, 16);

  if (basic.apiVersion < VK_API_VERSION_1_2) {
    info.unsuitable_because = "it offers Vulkan " + version_text(basic.apiVersion) + ", and 1.2 is needed";
    return device;
  }

  VkPhysicalDeviceMaintenance3Properties sizes{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
  VkPhysicalDeviceFloatControlsProperties floats{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES, &sizes};
  VkPhysicalDeviceSubgroupProperties subgroup{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES, &floats};
  VkPhysicalDeviceDriverProperties driver{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES, &subgroup};
  VkPhysicalDeviceIDProperties ids{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES, &driver};
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &ids};
  instance.table.vkGetPhysicalDeviceProperties2(handle, &properties);
  info.subgroup_size = subgroup.subgroupSize;
  if (sizes.maxMemoryAllocationSize != 0) device.max_allocation = sizes.maxMemoryAllocationSize;
  constexpr VkSubgroupFeatureFlags needed = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT |
                                            VK_SUBGROUP_FEATURE_BALLOT_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  device.subgroup_operations = (subgroup.supportedOperations & needed) == needed &&
                               (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  if ((subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0) {
    device.subgroup_features = subgroup.supportedOperations;
  }
  // SwiftShader has them too, but everything takes twice as long then, and what is `precise` keeps special values
  // there.
  device.float_controls =
      floats.shaderSignedZeroInfNanPreserveFloat32 == VK_TRUE && driver.driverID != VK_DRIVER_ID_GOOGLE_SWIFTSHADER;
  device.half_denormals = floats.shaderDenormPreserveFloat16 == VK_TRUE;
  info.driver = driver.driverName;
  if (driver.driverInfo[0] != '\0') info.driver += std::string(" ") + driver.driverInfo;
  device.driver_id = driver.driverID;
  std::memcpy(info.uuid.data(), ids.deviceUUID, 16);
  std::memcpy(device.driver_uuid.data(), ids.driverUUID, 16);

  VkPhysicalDeviceTimelineSemaphoreFeatures timeline{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES};
  VkPhysicalDeviceBufferDeviceAddressFeatures addresses{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES, &timeline};
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &addresses};
  instance.table.vkGetPhysicalDeviceFeatures2(handle, &features);
  device.pointers = addresses.bufferDeviceAddress == VK_TRUE && features.features.shaderInt64 == VK_TRUE;

  const auto extensions = enumerate<VkExtensionProperties>([&](std::uint32_t* count, VkExtensionProperties* items) {
    return instance.table.vkEnumerateDeviceExtensionProperties(handle, nullptr, count, items);
  });
  describe_subgroups(instance, has_extension(extensions, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME), device);
  if (has_extension(extensions, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME))
    device.matrices = matrices_of(instance, handle);
  device.portability_subset = has_extension(extensions, portability_subset_extension);
  if (has_extension(extensions, synchronized_queues_extension)) {
    SynchronizedQueuesFeatures queues;
    VkPhysicalDeviceFeatures2 more{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &queues};
    instance.table.vkGetPhysicalDeviceFeatures2(handle, &more);
    device.synchronized_queues = queues.internallySynchronizedQueues == VK_TRUE;
  }
  device.memory_budget = has_extension(extensions, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  device.calibrated_timestamps =
      has_extension(extensions, VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME) && has_host_clock(instance, handle);
  device.memory_fd = has_extension(extensions, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
  device.memory_host = has_extension(extensions, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  if (device.memory_host) {
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT host{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
    VkPhysicalDeviceProperties2 more{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &host};
    instance.table.vkGetPhysicalDeviceProperties2(handle, &more);
    device.host_pointer_alignment = host.minImportedHostPointerAlignment;
  }

  const auto families = queue_families(instance, handle);
  const auto family = compute_family(families);
  if (!family) {
    info.unsuitable_because = "it has no compute queue";
  } else if (timeline.timelineSemaphore == VK_FALSE) {
    info.unsuitable_because = "it has no timeline semaphores";
  } else if (std::string missing = missing_bindings(basic.limits); !missing.empty()) {
    info.unsuitable_because = std::move(missing);
  } else {
    device.queue_family = *family;
    device.timestamp_bits = families[*family].timestampValidBits;
    info.suitable = true;
  }
  return device;
}

Result<std::vector<PhysicalDevice>> describe_all(const Instance& instance) {
  std::vector<VkPhysicalDevice> handles;
  const VkResult result = enumerate(handles, [&](std::uint32_t* count, VkPhysicalDevice* items) {
    return instance.table.vkEnumeratePhysicalDevices(instance.handle, count, items);
  });
  std::erase(handles, VkPhysicalDevice{VK_NULL_HANDLE});
  if (result == VK_ERROR_INITIALIZATION_FAILED || (result >= 0 && handles.empty())) {
    return Error(Errc::no_driver, "the Vulkan loader found no working driver", result);
  }
  if (Error e = check(result, "vkEnumeratePhysicalDevices")) return e;
  std::vector<PhysicalDevice> devices;
  for (std::uint32_t i = 0; i < handles.size(); ++i) devices.push_back(describe(instance, handles[i], i));
  return devices;
}

Result<std::size_t> choose_device(Span<const DeviceInfo> devices, const std::string& wish, bool allow_cpu) {
  auto acceptable = [&](const DeviceInfo& d) { return d.suitable && (allow_cpu || d.type != DeviceType::cpu); };

  if (wish.empty()) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (acceptable(devices[i]) && (!best || rank_of(devices[i].type) > rank_of(devices[*best].type))) best = i;
    }
    if (best) return *best;
    return Error(Errc::no_device, "none of the " + std::to_string(devices.size()) +
                                      " devices can be used:" + describe_refusals(devices, allow_cpu));
  }

  // An index, a UUID, or a part of the name: the first reading that matches anything counts.
  std::vector<std::size_t> matches;
  const bool number =
      wish.size() <= 4 && std::all_of(wish.begin(), wish.end(), [](unsigned char c) { return std::isdigit(c); });
  if (number) {
    const auto index = static_cast<std::size_t>(std::stoul(wish));
    if (index < devices.size()) matches.push_back(index);
  }
  if (matches.empty()) {
    std::string digits = lower(wish);
    digits.erase(std::remove(digits.begin(), digits.end(), '-'), digits.end());
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (util::hex(devices[i].uuid) == digits) matches.push_back(i);
    }
  }
  if (matches.empty()) {
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (lower(devices[i].name).find(lower(wish)) != std::string::npos) matches.push_back(i);
    }
  }
  for (std::size_t i : matches) {
    if (acceptable(devices[i])) return i;
  }
  return Error(Errc::no_device, (matches.empty() ? "no device matches \"" : "no usable device matches \"") + wish +
                                    "\"; there are:" + describe_refusals(devices, allow_cpu));
}

files::FileIdentity identity_of(const PhysicalDevice& device) {
  files::FileIdentity identity;
  identity.vendor_id = device.info.vendor_id;
  identity.device_id = device.info.device_id;
  identity.driver_id = static_cast<std::uint32_t>(device.driver_id);
  identity.driver_version = device.info.driver_version;
  identity.pipeline_cache_uuid = device.pipeline_cache_uuid;
  identity.device_uuid = device.info.uuid;
  identity.driver_uuid = device.driver_uuid;
  if (device.info.type == DeviceType::cpu) {
    // CPU drivers have the same UUIDs on every CPU and with every vector width, and a cache folder may travel in an
    // image. What was measured or compiled for one is not for the other.
    util::Hash hash;
    hash.add(util::cpu_fingerprint());
    hash.add(device.info.name.c_str());
    hash.add(std::uint64_t{device.info.subgroup_size});
    std::uint64_t bits = util::finish(hash.value());
    for (std::uint8_t& byte : identity.device_uuid) {
      byte = static_cast<std::uint8_t>(byte ^ (bits & 0xff));
      bits = bits >> 8 | bits << 56;
    }
  }
  return identity;
}

}  // namespace brontes::vk
