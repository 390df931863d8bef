// A host application: what it does with Vulkan itself, beside Brontes.
#pragma once

#include "fixture.hpp"

#include <brontes/vulkan.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace brontes::test {

#define HOST_FUNCTIONS(X)       \
  X(vkAllocateCommandBuffers)   \
  X(vkAllocateMemory)           \
  X(vkBeginCommandBuffer)       \
  X(vkBindBufferMemory)         \
  X(vkCmdCopyBuffer)            \
  X(vkCmdFillBuffer)            \
  X(vkCmdPipelineBarrier)       \
  X(vkCmdUpdateBuffer)          \
  X(vkCreateBuffer)             \
  X(vkCreateCommandPool)        \
  X(vkCreateFence)              \
  X(vkCreateSemaphore)          \
  X(vkDestroyBuffer)            \
  X(vkDestroyCommandPool)       \
  X(vkDestroyFence)             \
  X(vkDestroySemaphore)         \
  X(vkDeviceWaitIdle)           \
  X(vkEndCommandBuffer)         \
  X(vkGetSemaphoreCounterValue) \
  X(vkQueueSubmit)              \
  X(vkQueueWaitIdle)            \
  X(vkSignalSemaphore)          \
  X(vkWaitForFences)            \
  X(vkWaitSemaphores)

/// Vulkan as the host uses it, on the device behind `handles`. What it makes lives as long as it does.
class HostVulkan {
 public:
  explicit HostVulkan(const vulkan::Handles& handles);
  ~HostVulkan();
  HostVulkan(const HostVulkan&) = delete;
  HostVulkan& operator=(const HostVulkan&) = delete;

#define MEMBER(function) PFN_##function function = nullptr;
  HOST_FUNCTIONS(MEMBER)
#undef MEMBER
  vulkan::Handles handles;

  VkSemaphore binary();
  VkSemaphore timeline(std::uint64_t value = 0);
  /// A command buffer that is being recorded.
  VkCommandBuffer begin(VkCommandBufferUsageFlags flags = 0);
  void end(VkCommandBuffer commands);
  void barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkAccessFlags writes, VkPipelineStageFlags to,
               VkAccessFlags accesses);
  /// Fills a region with a float.
  void fill(VkCommandBuffer commands, const vulkan::BufferRegion& region, float value);

  struct Wait {
    VkSemaphore semaphore;
    std::uint64_t value;
  };
  /// To the queue of `handles`, without a lock.
  VkResult submit(VkCommandBuffer commands, const std::vector<Wait>& waits, const std::vector<Wait>& signals);
  std::uint64_t counter(VkSemaphore semaphore);
  /// Waits on the host until a timeline semaphore has the value, or ten seconds.
  bool reaches(VkSemaphore semaphore, std::uint64_t value);
  void signal(VkSemaphore semaphore, std::uint64_t value);

 private:
  VkCommandPool pool_ = VK_NULL_HANDLE;
  std::vector<VkSemaphore> semaphores_;
};

struct HostOptions {
  std::uint32_t api_version = VK_API_VERSION_1_2;
  /// What the device is created with; null: timeline semaphores alone.
  const VkPhysicalDeviceFeatures2* features = nullptr;
  std::vector<const char*> extensions;
  bool timeline = true;
  bool debug_utils = true;
  /// The validation layer, as for checked_options().
  bool validation = true;
  /// Null: the loader's own.
  PFN_vkGetInstanceProcAddr get = nullptr;
};

/// An instance and a device as an application makes them, without Brontes.
class Host {
 public:
  explicit Host(const HostOptions& options = {});
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  vulkan::ExternalDevice external;
  vulkan::Handles handles() const;

 private:
  template <class Function>
  Function function(const char* name) const {
    return reinterpret_cast<Function>(external.get_instance_proc_addr(external.instance, name));
  }
  MessageCallback on_message_;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
};

}  // namespace brontes::test
