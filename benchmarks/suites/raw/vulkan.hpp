// Vulkan by hand: a device, buffers, one pipeline and command buffers, and nothing that a batch would do for one.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace brontes::bench::raw {

#define BRONTES_RAW_INSTANCE_FUNCTIONS(DO)     \
  DO(vkDestroyInstance)                        \
  DO(vkEnumeratePhysicalDevices)               \
  DO(vkGetPhysicalDeviceMemoryProperties)      \
  DO(vkGetPhysicalDeviceQueueFamilyProperties) \
  DO(vkCreateDevice)                           \
  DO(vkGetDeviceProcAddr)

#define BRONTES_RAW_DEVICE_FUNCTIONS(DO) \
  DO(vkDestroyDevice)                    \
  DO(vkGetDeviceQueue)                   \
  DO(vkDeviceWaitIdle)                   \
  DO(vkCreateBuffer)                     \
  DO(vkDestroyBuffer)                    \
  DO(vkGetBufferMemoryRequirements)      \
  DO(vkAllocateMemory)                   \
  DO(vkFreeMemory)                       \
  DO(vkBindBufferMemory)                 \
  DO(vkMapMemory)                        \
  DO(vkCreateShaderModule)               \
  DO(vkDestroyShaderModule)              \
  DO(vkCreateDescriptorSetLayout)        \
  DO(vkDestroyDescriptorSetLayout)       \
  DO(vkCreatePipelineLayout)             \
  DO(vkDestroyPipelineLayout)            \
  DO(vkCreateComputePipelines)           \
  DO(vkDestroyPipeline)                  \
  DO(vkCreateDescriptorPool)             \
  DO(vkDestroyDescriptorPool)            \
  DO(vkResetDescriptorPool)              \
  DO(vkAllocateDescriptorSets)           \
  DO(vkUpdateDescriptorSets)             \
  DO(vkCreateCommandPool)                \
  DO(vkDestroyCommandPool)               \
  DO(vkAllocateCommandBuffers)           \
  DO(vkBeginCommandBuffer)               \
  DO(vkEndCommandBuffer)                 \
  DO(vkCmdBindPipeline)                  \
  DO(vkCmdBindDescriptorSets)            \
  DO(vkCmdPushConstants)                 \
  DO(vkCmdDispatch)                      \
  DO(vkCmdPipelineBarrier)               \
  DO(vkCreateFence)                      \
  DO(vkDestroyFence)                     \
  DO(vkWaitForFences)                    \
  DO(vkResetFences)                      \
  DO(vkQueueSubmit)

/// A device of its own, with one compute queue.
class Vulkan {
 public:
  /// `index`: which of the loader's devices. Throws Failure.
  explicit Vulkan(std::uint32_t index);
  ~Vulkan();
  Vulkan(const Vulkan&) = delete;
  Vulkan& operator=(const Vulkan&) = delete;

  struct Buffer {
    VkBuffer handle = VK_NULL_HANDLE;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    float* data = nullptr;  // mapped and coherent
  };
  /// Lives as long as the device.
  Buffer buffer(std::size_t floats);

  struct Params {
    std::uint32_t count, from, to;
    float amount;
  };

  /// A set with two buffers, from a pool that has room for `max_sets`.
  VkDescriptorSet set(const Buffer& x, const Buffer& y);
  /// Ranges of them, in floats.
  VkDescriptorSet set(const Buffer& x, const Buffer& y, std::size_t y_from, std::size_t y_count);
  void reset_sets();

  /// Commands are recorded between these two, into the one command buffer there is.
  void begin(bool once);
  void end();
  void bind_pipeline();
  void bind(VkDescriptorSet set);
  void dispatch(const Params& params);
  /// Between dispatches that depend on each other.
  void barrier();
  void barrier_to_host();

  void submit_and_wait();

#define BRONTES_RAW_MEMBER(name) PFN_##name name = nullptr;
  BRONTES_RAW_INSTANCE_FUNCTIONS(BRONTES_RAW_MEMBER)
  BRONTES_RAW_DEVICE_FUNCTIONS(BRONTES_RAW_MEMBER)
#undef BRONTES_RAW_MEMBER

  static constexpr std::uint32_t max_sets = 1024;

 private:
  void open(std::uint32_t index);
  void make_pipeline();
  void make_commands();
  void close() noexcept;

  void* library_ = nullptr;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::uint32_t family_ = 0;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
  VkDescriptorPool descriptors_ = VK_NULL_HANDLE;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
  std::vector<Buffer> buffers_;
};

}  // namespace brontes::bench::raw
