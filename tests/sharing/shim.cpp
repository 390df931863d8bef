#include "shim.hpp"

#include <cstring>
#include <mutex>

namespace brontes::test::shim {
namespace {

std::mutex mutex;
Seen noted;
std::uint32_t more_families = 0;
bool synchronized_queues = false;
std::mutex queue_mutex;

PFN_vkGetInstanceProcAddr next_instance_proc = nullptr;
PFN_vkGetDeviceProcAddr next_device_proc = nullptr;
PFN_vkGetPhysicalDeviceQueueFamilyProperties next_families = nullptr;
PFN_vkEnumerateDeviceExtensionProperties next_extensions = nullptr;
PFN_vkGetPhysicalDeviceFeatures2 next_features = nullptr;
PFN_vkQueueSubmit next_submit = nullptr;
PFN_vkQueueWaitIdle next_wait_idle = nullptr;
PFN_vkCreateBuffer next_create_buffer = nullptr;
PFN_vkCmdPipelineBarrier next_barrier = nullptr;
PFN_vkCmdBeginDebugUtilsLabelEXT next_begin = nullptr;
PFN_vkCmdEndDebugUtilsLabelEXT next_end = nullptr;
PFN_vkSetDebugUtilsObjectNameEXT next_name = nullptr;

VKAPI_ATTR void VKAPI_CALL families(VkPhysicalDevice device, std::uint32_t* count, VkQueueFamilyProperties* out) {
  std::uint32_t own = 0;
  next_families(device, &own, nullptr);
  if (out == nullptr) {
    *count = own + more_families;
    return;
  }
  std::vector<VkQueueFamilyProperties> all(own);
  next_families(device, &own, all.data());
  all.resize(own + more_families, all.front());
  if (all.size() < *count) *count = static_cast<std::uint32_t>(all.size());
  std::memcpy(out, all.data(), *count * sizeof(VkQueueFamilyProperties));
}

VKAPI_ATTR VkResult VKAPI_CALL extensions(VkPhysicalDevice device, const char* layer, std::uint32_t* count,
                                          VkExtensionProperties* out) {
  std::uint32_t own = 0;
  VkResult result = next_extensions(device, layer, &own, nullptr);
  std::vector<VkExtensionProperties> all(own);
  if (result == VK_SUCCESS) result = next_extensions(device, layer, &own, all.data());
  if (result != VK_SUCCESS) return result;
  // Some SwiftShaders have it.
  constexpr const char* name = "VK_KHR_internally_synchronized_queues";
  std::erase_if(all, [&](const VkExtensionProperties& e) { return std::strcmp(e.extensionName, name) == 0; });
  if (synchronized_queues && layer == nullptr) all.push_back({"VK_KHR_internally_synchronized_queues", 1});
  const auto size = static_cast<std::uint32_t>(all.size());
  if (out == nullptr) {
    *count = size;
    return VK_SUCCESS;
  }
  const bool fits = *count >= size;
  *count = fits ? size : *count;
  std::memcpy(out, all.data(), *count * sizeof(VkExtensionProperties));
  return fits ? VK_SUCCESS : VK_INCOMPLETE;
}

// Of the extension, which the headers may not have.
struct SynchronizedQueues {
  VkStructureType type;
  void* next;
  VkBool32 offered;
};

VKAPI_ATTR void VKAPI_CALL features(VkPhysicalDevice device, VkPhysicalDeviceFeatures2* chain) {
  next_features(device, chain);
  if (!synchronized_queues) return;
  for (void* at = chain->pNext; at != nullptr;) {
    auto* link = static_cast<SynchronizedQueues*>(at);
    if (link->type == static_cast<VkStructureType>(1000504000)) link->offered = VK_TRUE;
    at = link->next;
  }
}

VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, std::uint32_t count, const VkSubmitInfo* infos, VkFence fence) {
  std::unique_lock lock(queue_mutex, std::defer_lock);
  if (synchronized_queues) lock.lock();
  return next_submit(queue, count, infos, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL wait_idle(VkQueue queue) {
  std::unique_lock lock(queue_mutex, std::defer_lock);
  if (synchronized_queues) lock.lock();
  return next_wait_idle(queue);
}

VKAPI_ATTR VkResult VKAPI_CALL create_buffer(VkDevice device, const VkBufferCreateInfo* info,
                                             const VkAllocationCallbacks* callbacks, VkBuffer* made) {
  VkBufferCreateInfo own = *info;
  {
    const std::lock_guard lock(mutex);
    noted.sharing.push_back(info->sharingMode);
    noted.families.emplace_back(info->pQueueFamilyIndices, info->pQueueFamilyIndices + info->queueFamilyIndexCount);
  }
  if (more_families != 0) {
    own.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
    own.queueFamilyIndexCount = 0;
    own.pQueueFamilyIndices = nullptr;
  }
  return next_create_buffer(device, &own, callbacks, made);
}

VKAPI_ATTR void VKAPI_CALL barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkPipelineStageFlags to,
                                   VkDependencyFlags flags, std::uint32_t memories, const VkMemoryBarrier* memory,
                                   std::uint32_t buffers, const VkBufferMemoryBarrier* buffer, std::uint32_t images,
                                   const VkImageMemoryBarrier* image) {
  for (std::uint32_t i = 0; i < buffers; ++i) {
    if (buffer[i].srcQueueFamilyIndex == buffer[i].dstQueueFamilyIndex) continue;
    const std::lock_guard lock(mutex);
    noted.transfers.push_back(buffer[i]);
    return;
  }
  next_barrier(commands, from, to, flags, memories, memory, buffers, buffer, images, image);
}

VKAPI_ATTR void VKAPI_CALL begin_label(VkCommandBuffer commands, const VkDebugUtilsLabelEXT* label) {
  {
    const std::lock_guard lock(mutex);
    noted.labels.emplace_back(label->pLabelName);
  }
  next_begin(commands, label);
}

VKAPI_ATTR void VKAPI_CALL end_label(VkCommandBuffer commands) {
  {
    const std::lock_guard lock(mutex);
    ++noted.ended;
  }
  next_end(commands);
}

VKAPI_ATTR VkResult VKAPI_CALL set_name(VkDevice device, const VkDebugUtilsObjectNameInfoEXT* info) {
  {
    const std::lock_guard lock(mutex);
    noted.names.emplace_back(info->pObjectName);
  }
  return next_name(device, info);
}

PFN_vkVoidFunction hook(const char* name, PFN_vkVoidFunction real) {
  if (real == nullptr) return nullptr;
#define HOOK(function, next, mine)                                                  \
  if (std::strcmp(name, #function) == 0) {                                          \
    (next) = reinterpret_cast<PFN_##function>(real);                                \
    return reinterpret_cast<PFN_vkVoidFunction>(static_cast<PFN_##function>(mine)); \
  }
  HOOK(vkGetPhysicalDeviceQueueFamilyProperties, next_families, families)
  HOOK(vkEnumerateDeviceExtensionProperties, next_extensions, extensions)
  HOOK(vkGetPhysicalDeviceFeatures2, next_features, features)
  HOOK(vkQueueSubmit, next_submit, submit)
  HOOK(vkQueueWaitIdle, next_wait_idle, wait_idle)
  HOOK(vkCreateBuffer, next_create_buffer, create_buffer)
  HOOK(vkCmdPipelineBarrier, next_barrier, barrier)
  HOOK(vkCmdBeginDebugUtilsLabelEXT, next_begin, begin_label)
  HOOK(vkCmdEndDebugUtilsLabelEXT, next_end, end_label)
  HOOK(vkSetDebugUtilsObjectNameEXT, next_name, set_name)
#undef HOOK
  return real;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_proc(VkDevice device, const char* name) {
  return hook(name, next_device_proc(device, name));
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_proc(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction real = next_instance_proc(instance, name);
  if (real != nullptr && std::strcmp(name, "vkGetDeviceProcAddr") == 0) {
    next_device_proc = reinterpret_cast<PFN_vkGetDeviceProcAddr>(real);
    return reinterpret_cast<PFN_vkVoidFunction>(static_cast<PFN_vkGetDeviceProcAddr>(device_proc));
  }
  return hook(name, real);
}

}  // namespace

Seen seen() {
  const std::lock_guard lock(mutex);
  return noted;
}

void forget() {
  const std::lock_guard lock(mutex);
  noted = {};
}

void show_more_families(std::uint32_t count) { more_families = count; }
void offer_synchronized_queues(bool offered) { synchronized_queues = offered; }

PFN_vkGetInstanceProcAddr get_instance_proc_addr(PFN_vkGetInstanceProcAddr next) {
  next_instance_proc = next;
  return instance_proc;
}

}  // namespace brontes::test::shim
