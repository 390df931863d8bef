// Describing and choosing devices. Choosing is a pure function over descriptions.
#pragma once

#include "files/keyed_file.hpp"
#include "vk/loader.hpp"

#include <brontes/device.hpp>
#include <brontes/error.hpp>
#include <brontes/tensor.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace brontes::vk {

/// Vulkan's headers have the name only for who enables beta extensions.
inline constexpr const char* portability_subset_extension = "VK_KHR_portability_subset";

/// VK_KHR_internally_synchronized_queues, which headers before 2026 do not have.
inline constexpr const char* synchronized_queues_extension = "VK_KHR_internally_synchronized_queues";
inline constexpr VkDeviceQueueCreateFlags synchronized_queue_bit = 0x4;
struct SynchronizedQueuesFeatures {
  VkStructureType sType = static_cast<VkStructureType>(1000504000);
  void* pNext = nullptr;
  VkBool32 internallySynchronizedQueues = VK_FALSE;
};

/// Matrices of f16 that a subgroup multiplies at once, m x k by k x n, with sums in f32.
struct MatrixSize {
  std::uint32_t m = 0, n = 0, k = 0;
};

struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  DeviceInfo info;
  std::uint32_t queue_family = 0;
  std::uint32_t timestamp_bits = 0;  // of that family; 0 where it has no timestamps
  VkPhysicalDeviceLimits limits{};
  VkDeviceSize max_allocation = ~VkDeviceSize{0};  // maxMemoryAllocationSize
  bool pointers = false;                           // buffer device addresses, and 64-bit integers to load by
  bool subgroup_operations = false;                // basic, arithmetic and ballot, in compute
  std::uint32_t min_subgroup_size = 0;             // of any pipeline; DeviceInfo::subgroup_size where nothing is said
  bool one_subgroup_size = false;                  // it says that it has no other
  bool required_subgroup_size = false;             // compute pipelines can require one
  bool full_subgroups = false;                     // and that all lanes of each run
  VkSubgroupFeatureFlags subgroup_features = 0;    // in compute
  bool portability_subset = false;                 // VK_KHR_portability_subset: Vulkan on top of something else
  bool memory_budget = false;                      // VK_EXT_memory_budget
  bool memory_fd = false;                          // VK_KHR_external_memory_fd
  bool memory_host = false;                        // VK_EXT_external_memory_host
  std::uint64_t host_pointer_alignment = 0;        // minImportedHostPointerAlignment
  bool float_controls = false;                     // shaders can ask for NaN, infinities and signed zeros to be kept
  bool half_denormals = false;                     // and denormal 16-bit floats
  /// VK_KHR_cooperative_matrix in compute, with the features that its modules take besides: shaderFloat16 and
  /// vulkanMemoryModel. Empty where one of them is missing.
  std::vector<MatrixSize> matrices;
  bool calibrated_timestamps = false;  // VK_EXT_calibrated_timestamps, with the clock of trace::now()
  bool synchronized_queues = false;    // VK_KHR_internally_synchronized_queues, and its feature
  VkDriverId driver_id{};
  std::array<std::uint8_t, 16> driver_uuid{};
  std::array<std::uint8_t, 16> pipeline_cache_uuid{};
};

/// Why a device with these limits cannot run every kernel of the library; empty if it can.
std::string missing_bindings(const VkPhysicalDeviceLimits& limits);

std::vector<VkQueueFamilyProperties> queue_families(const Instance& instance, VkPhysicalDevice device);
PhysicalDevice describe(const Instance& instance, VkPhysicalDevice device, std::uint32_t index);
Result<std::vector<PhysicalDevice>> describe_all(const Instance& instance);

/// The index of the device the options ask for. `wish` is DeviceOptions::select or BRONTES_DEVICE.
Result<std::size_t> choose_device(Span<const DeviceInfo> devices, const std::string& wish, bool allow_cpu);

/// What files that are good for this device and driver only are marked with.
files::FileIdentity identity_of(const PhysicalDevice& device);

}  // namespace brontes::vk
