#include "vk/physical_device.hpp"

#include "vk/result.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <optional>

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
    case DeviceType::cpu: return 1;
    case DeviceType::other: break;
  }
  return 0;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string hex(const std::array<std::uint8_t, 16>& bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (std::uint8_t b : bytes) {
    text += digits[b >> 4];
    text += digits[b & 15];
  }
  return text;
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

  VkPhysicalDeviceSubgroupProperties subgroup{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  VkPhysicalDeviceDriverProperties driver{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES, &subgroup};
  VkPhysicalDeviceIDProperties ids{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES, &driver};
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &ids};
  instance.table.vkGetPhysicalDeviceProperties2(handle, &properties);
  info.subgroup_size = subgroup.subgroupSize;
  constexpr VkSubgroupFeatureFlags needed =
      VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT | VK_SUBGROUP_FEATURE_BALLOT_BIT;
  device.subgroup_operations = (subgroup.supportedOperations & needed) == needed &&
                               (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
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

  const auto family = compute_family(queue_families(instance, handle));
  if (!family) {
    info.unsuitable_because = "it has no compute queue";
  } else if (timeline.timelineSemaphore == VK_FALSE) {
    info.unsuitable_because = "it has no timeline semaphores";
  } else {
    device.queue_family = *family;
    info.suitable = true;
  }
  return device;
}

Result<std::vector<PhysicalDevice>> describe_all(const Instance& instance) {
  std::uint32_t count = 0;
  VkResult result = instance.table.vkEnumeratePhysicalDevices(instance.handle, &count, nullptr);
  std::vector<VkPhysicalDevice> handles(count);
  if (result == VK_SUCCESS && count != 0) {
    result = instance.table.vkEnumeratePhysicalDevices(instance.handle, &count, handles.data());
    handles.resize(count);
  }
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
      if (hex(devices[i].uuid) == digits) matches.push_back(i);
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

namespace {

// lavapipe before Mesa 25. Which release between 22 and 25 changed its ways is unknown, so all before 25 are
// treated alike. Its driverVersion is always 1; driverInfo begins with "Mesa 25.0.7".
bool old_lavapipe(const PhysicalDevice& device) {
  if (device.driver_id != VK_DRIVER_ID_MESA_LLVMPIPE) return false;
  const std::size_t at = device.info.driver.find("Mesa ");
  return at == std::string::npos || std::atoi(device.info.driver.c_str() + at + 5) < 25;
}

}  // namespace

Result<plan::Access> choose_access(const PhysicalDevice& device, AccessMode wish) {
  using kernels::AccessMode;
  auto always = [](AccessMode mode) { return plan::Access{mode, mode}; };
  switch (wish) {
    case brontes::AccessMode::storage: return always(AccessMode::storage);
    case brontes::AccessMode::texel: return always(AccessMode::texel);
    case brontes::AccessMode::pointer:
      if (device.pointers) return always(AccessMode::pointer);
      return Error(Errc::unsupported,
                   device.info.name + " lacks buffer device addresses or 64-bit integers in shaders");
    case brontes::AccessMode::automatic: break;
  }
  if (device.driver_id != VK_DRIVER_ID_MESA_LLVMPIPE) return always(AccessMode::storage);
  if (old_lavapipe(device) || !device.pointers) return always(AccessMode::texel);
  // By addresses an elementwise op moves 1.8 times as much; with texels the panels of a product go 1.4 times as fast.
  return plan::Access{AccessMode::pointer, AccessMode::texel};
}

plan::Traits traits_of(const PhysicalDevice& device, const SimulatedLimits& simulate) {
  auto lowered = [](auto own, auto wish) { return wish == 0 ? own : std::min<decltype(own)>(own, wish); };
  plan::Traits traits;
  for (std::size_t i = 0; i < 3; ++i) {
    traits.max_group_count[i] = lowered(device.info.max_group_count[i], simulate.max_group_count);
  }
  traits.max_group_invocations = lowered(device.info.max_group_invocations, simulate.max_group_invocations);
  traits.max_shared_bytes = lowered(device.info.max_shared_bytes, simulate.max_shared_bytes);
  // Ranges are bound in whole vec4s.
  traits.max_storage_range = lowered(device.info.max_storage_range, simulate.max_storage_range) / 16 * 16;
  // Reserved ranges end on this alignment, so it also has to hold a vec4.
  traits.storage_alignment = static_cast<std::uint32_t>(std::max<VkDeviceSize>(
      {16, device.limits.minStorageBufferOffsetAlignment, device.limits.minTexelBufferOffsetAlignment}));
  traits.max_texel_elements = device.limits.maxTexelBufferElements;
  traits.subgroup_size = std::max(1u, lowered(device.info.subgroup_size, simulate.subgroup_size));
  traits.real_subgroup_size = std::max(1u, device.info.subgroup_size);
  traits.subgroup_operations = device.subgroup_operations && !simulate.no_subgroup_operations;
  // lavapipe of Mesa 22 makes a loop over lanes of each broadcast.
  traits.broadcasts = !old_lavapipe(device);
  traits.cpu = device.info.type == DeviceType::cpu;
  // lavapipe of Mesa 22 ends loops after about 65535 iterations; 25 does not.
  if (old_lavapipe(device)) traits.max_loop_iterations = 60000;
  traits.max_loop_iterations = lowered(traits.max_loop_iterations, simulate.max_loop_iterations);
  return traits;
}

}  // namespace brontes::vk
