#define VK_NO_PROTOTYPES
#include <brontes/brontes_vulkan.h>
#include <brontes/vulkan.hpp>

#include "capi/device.hpp"
#include "capi/handles.hpp"
#include "capi/structs.hpp"

#include <algorithm>

using namespace brontes;
using namespace brontes::capi;

BRONTES_FULL(brontes_vulkan_device, memory_user_data);
BRONTES_FULL(brontes_vulkan_features, compute_full_subgroups);

struct brontes_queue_lock : Handle<Kind::queue_lock> {
  explicit brontes_queue_lock(decltype(vulkan::lock_queue(std::declval<const Device&>())) held) noexcept
      : lock(std::move(held)) {}
  decltype(vulkan::lock_queue(std::declval<const Device&>())) lock;
};

namespace {

vulkan::MemoryAllocator memory_allocator(const brontes_vulkan_device& given) {
  vulkan::MemoryAllocator to;
  if (given.allocate_memory != nullptr) {
    to.allocate = [given](const vulkan::MemoryRequest& wanted, vulkan::MemoryBlock& block) {
      const brontes_vulkan_memory_request request{wanted.buffer, wanted.requirements, wanted.memory_type,
                                                  wanted.mapped ? 1 : 0, wanted.device_address ? 1 : 0};
      brontes_vulkan_memory_block made{};
      const VkResult result = given.allocate_memory(given.memory_user_data, &request, &made);
      block = {made.memory, made.offset, made.mapped, made.user};
      return result;
    };
  }
  if (given.free_memory != nullptr) {
    to.free = [given](const vulkan::MemoryBlock& block) {
      const brontes_vulkan_memory_block freed{block.memory, block.offset, block.mapped, block.user};
      given.free_memory(given.memory_user_data, &freed);
    };
  }
  return to;
}

Error write_features(const char* call, const vulkan::DeviceFeatures& from, brontes_vulkan_features* to) {
  brontes_vulkan_features features{};
  if (from.extensions.size() > BRONTES_VULKAN_MAX_EXTENSIONS)
    return invalid(call, "too many extensions for the struct");
  std::copy(from.extensions.begin(), from.extensions.end(), features.extensions);
  features.extension_count = from.extensions.size();
  features.vulkan12 = from.vulkan12;
  features.vulkan10 = from.vulkan10;
  features.cooperative_matrix = from.cooperative_matrix.cooperativeMatrix;
  features.subgroup_size_control = from.subgroup_size.subgroupSizeControl;
  features.compute_full_subgroups = from.subgroup_size.computeFullSubgroups;
  return BRONTES_RESULT(call, brontes_vulkan_features, features, to);
}

}  // namespace

brontes_status brontes_vulkan_required_features(brontes_vulkan_features* features, brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&] { return write_features(call, vulkan::required_features(), features); });
}

brontes_status brontes_vulkan_recommended_features(PFN_vkGetInstanceProcAddr get_instance_proc_addr,
                                                   VkInstance instance, VkPhysicalDevice physical_device,
                                                   brontes_vulkan_features* features, brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    const auto found = vulkan::recommended_features(get_instance_proc_addr, instance, physical_device);
    return found ? write_features(call, *found, features) : found.error();
  });
}

brontes_status brontes_vulkan_merge_features(const brontes_vulkan_features* wanted, VkPhysicalDeviceFeatures2* chain,
                                             brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (wanted == nullptr || chain == nullptr) return invalid(call, "a null pointer");
    brontes_vulkan_features given;
    if (Error e = BRONTES_STRUCT(call, brontes_vulkan_features, wanted, given)) return e;
    vulkan::DeviceFeatures features;
    features.vulkan10 = given.vulkan10;
    features.vulkan12 = given.vulkan12;
    features.cooperative_matrix.cooperativeMatrix = given.cooperative_matrix;
    features.subgroup_size.subgroupSizeControl = given.subgroup_size_control;
    features.subgroup_size.computeFullSubgroups = given.compute_full_subgroups;
    return vulkan::merge(features, *chain);
  });
}

brontes_status brontes_vulkan_adopt(const brontes_vulkan_device* external, const brontes_device_options* options,
                                    brontes_device** device, brontes_error* error) {
  const char* const call = __func__;
  return make(call, device, error, [&](brontes_device*& out) -> Error {
    brontes_vulkan_device given;
    if (Error e = BRONTES_STRUCT(call, brontes_vulkan_device, external, given)) return e;
    DeviceOptions opening;
    if (Error e = device_options(call, options, opening)) return e;
    vulkan::ExternalDevice from;
    from.get_instance_proc_addr = given.get_instance_proc_addr;
    from.instance = given.instance;
    from.physical_device = given.physical_device;
    from.device = given.device;
    from.queue = given.queue;
    from.queue_family = given.queue_family;
    from.pointers = given.pointers != 0;
    if (given.lock != nullptr) from.lock = [given] { given.lock(given.lock_user_data); };
    if (given.unlock != nullptr) from.unlock = [given] { given.unlock(given.lock_user_data); };
    from.features = given.features;
    if (given.extension_count != 0 && given.extensions == nullptr) return null_data(call, "names of extensions");
    from.extensions = {given.extensions, given.extension_count};
    if (given.queue_family_count != 0 && given.queue_families == nullptr) return null_data(call, "queue families");
    from.queue_families = {given.queue_families, given.queue_family_count};
    from.api_version = given.api_version;
    from.allocation_callbacks = given.allocation_callbacks;
    from.memory = memory_allocator(given);
    from.queue_flags = given.queue_flags;
    return wrap(vulkan::adopt(from, opening), out);
  });
}

brontes_status brontes_vulkan_get_handles(const brontes_device* device, brontes_vulkan_device* handles,
                                          brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, device, "device")) return e;
    const vulkan::Handles of = vulkan::handles(device->device);
    brontes_vulkan_device to{};
    to.get_instance_proc_addr = of.get_instance_proc_addr;
    to.instance = of.instance;
    to.physical_device = of.physical_device;
    to.device = of.device;
    to.queue = of.queue;
    to.queue_family = of.queue_family;
    return BRONTES_RESULT(call, brontes_vulkan_device, to, handles);
  });
}

brontes_status brontes_vulkan_lock_queue(const brontes_device* device, brontes_queue_lock** lock,
                                         brontes_error* error) {
  const char* const call = __func__;
  return make(call, lock, error, [&](brontes_queue_lock*& out) -> Error {
    if (Error e = check(call, device, "device")) return e;
    out = new brontes_queue_lock(vulkan::lock_queue(device->device));
    return {};
  });
}

void brontes_vulkan_unlock_queue(brontes_queue_lock* lock) { destroy(lock); }
