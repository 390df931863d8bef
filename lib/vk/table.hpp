// Vulkan's functions, loaded at run time into tables of our own: no global vk* symbol exists.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <cstdint>

// Of a function that headers before 1.3.255 do not have; cooperative_matrix.hpp has the rest.
#ifndef VK_KHR_cooperative_matrix
struct VkCooperativeMatrixPropertiesKHR;
using PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR = VkResult(VKAPI_PTR*)(VkPhysicalDevice, std::uint32_t*,
                                                                                   VkCooperativeMatrixPropertiesKHR*);
#endif

#define BRONTES_GLOBAL_FUNCTIONS(X)         \
  X(vkCreateInstance)                       \
  X(vkEnumerateInstanceExtensionProperties) \
  X(vkEnumerateInstanceLayerProperties)     \
  X(vkEnumerateInstanceVersion)

#define BRONTES_INSTANCE_FUNCTIONS(X)            \
  X(vkCreateDevice)                              \
  X(vkDestroyInstance)                           \
  X(vkEnumerateDeviceExtensionProperties)        \
  X(vkEnumeratePhysicalDevices)                  \
  X(vkGetDeviceProcAddr)                         \
  X(vkGetPhysicalDeviceExternalBufferProperties) \
  X(vkGetPhysicalDeviceFeatures2)                \
  X(vkGetPhysicalDeviceMemoryProperties)         \
  X(vkGetPhysicalDeviceMemoryProperties2)        \
  X(vkGetPhysicalDeviceProperties)               \
  X(vkGetPhysicalDeviceProperties2)              \
  X(vkGetPhysicalDeviceQueueFamilyProperties)

// Null where the extension is not enabled.
#define BRONTES_INSTANCE_EXTENSION_FUNCTIONS(X)        \
  X(vkCmdBeginDebugUtilsLabelEXT)                      \
  X(vkCmdEndDebugUtilsLabelEXT)                        \
  X(vkCreateDebugUtilsMessengerEXT)                    \
  X(vkDestroyDebugUtilsMessengerEXT)                   \
  X(vkGetPhysicalDeviceCalibrateableTimeDomainsEXT)    \
  X(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR) \
  X(vkSetDebugUtilsObjectNameEXT)

// Those for images are never called: the allocator (memory.cpp) asks for them.
#define BRONTES_DEVICE_FUNCTIONS(X) \
  X(vkAllocateCommandBuffers)       \
  X(vkAllocateDescriptorSets)       \
  X(vkAllocateMemory)               \
  X(vkBeginCommandBuffer)           \
  X(vkBindBufferMemory)             \
  X(vkBindBufferMemory2)            \
  X(vkBindImageMemory)              \
  X(vkBindImageMemory2)             \
  X(vkCmdBindDescriptorSets)        \
  X(vkCmdBindPipeline)              \
  X(vkCmdCopyBuffer)                \
  X(vkCmdDispatch)                  \
  X(vkCmdDispatchBase)              \
  X(vkCmdFillBuffer)                \
  X(vkCmdPipelineBarrier)           \
  X(vkCmdPushConstants)             \
  X(vkCmdResetQueryPool)            \
  X(vkCmdWriteTimestamp)            \
  X(vkCreateBuffer)                 \
  X(vkCreateBufferView)             \
  X(vkCreateCommandPool)            \
  X(vkCreateComputePipelines)       \
  X(vkCreateDescriptorPool)         \
  X(vkCreateDescriptorSetLayout)    \
  X(vkCreateImage)                  \
  X(vkCreatePipelineCache)          \
  X(vkCreatePipelineLayout)         \
  X(vkCreateQueryPool)              \
  X(vkCreateSemaphore)              \
  X(vkCreateShaderModule)           \
  X(vkDestroyBuffer)                \
  X(vkDestroyBufferView)            \
  X(vkDestroyCommandPool)           \
  X(vkDestroyDescriptorPool)        \
  X(vkDestroyDescriptorSetLayout)   \
  X(vkDestroyDevice)                \
  X(vkDestroyImage)                 \
  X(vkDestroyPipeline)              \
  X(vkDestroyPipelineCache)         \
  X(vkDestroyPipelineLayout)        \
  X(vkDestroyQueryPool)             \
  X(vkDestroySemaphore)             \
  X(vkDestroyShaderModule)          \
  X(vkEndCommandBuffer)             \
  X(vkFlushMappedMemoryRanges)      \
  X(vkFreeMemory)                   \
  X(vkGetBufferDeviceAddress)       \
  X(vkGetBufferMemoryRequirements)  \
  X(vkGetBufferMemoryRequirements2) \
  X(vkGetDeviceQueue)               \
  X(vkGetImageMemoryRequirements)   \
  X(vkGetImageMemoryRequirements2)  \
  X(vkGetPipelineCacheData)         \
  X(vkGetQueryPoolResults)          \
  X(vkGetSemaphoreCounterValue)     \
  X(vkInvalidateMappedMemoryRanges) \
  X(vkMapMemory)                    \
  X(vkMergePipelineCaches)          \
  X(vkQueueSubmit)                  \
  X(vkQueueWaitIdle)                \
  X(vkResetCommandPool)             \
  X(vkResetDescriptorPool)          \
  X(vkUnmapMemory)                  \
  X(vkUpdateDescriptorSets)         \
  X(vkWaitSemaphores)

// Null where the extension is not enabled.
#define BRONTES_DEVICE_EXTENSION_FUNCTIONS(X) \
  X(vkGetCalibratedTimestampsEXT)             \
  X(vkGetMemoryFdKHR)                         \
  X(vkGetMemoryHostPointerPropertiesEXT)

namespace brontes::vk {

#define BRONTES_MEMBER(function) PFN_##function function = nullptr;

struct GlobalTable {
  BRONTES_GLOBAL_FUNCTIONS(BRONTES_MEMBER)
};

struct InstanceTable {
  BRONTES_INSTANCE_FUNCTIONS(BRONTES_MEMBER)
  BRONTES_INSTANCE_EXTENSION_FUNCTIONS(BRONTES_MEMBER)
};

struct DeviceTable {
  const VkAllocationCallbacks* callbacks = nullptr;  // for whatever is created and destroyed; null: the driver's own
  BRONTES_DEVICE_FUNCTIONS(BRONTES_MEMBER)
  BRONTES_DEVICE_EXTENSION_FUNCTIONS(BRONTES_MEMBER)
};

#undef BRONTES_MEMBER

}  // namespace brontes::vk
