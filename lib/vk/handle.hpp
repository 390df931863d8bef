// The one way Vulkan objects are owned.
#pragma once

#include "vk/table.hpp"

#include <utility>

namespace brontes::vk {

/// Owns one object of a device and destroys it through the device's table.
template <class T, auto Destroy>
class Handle {
 public:
  Handle() = default;
  Handle(VkDevice device, const DeviceTable& table, T object) noexcept
      : device_(device), table_(&table), object_(object) {}
  Handle(Handle&& other) noexcept
      : device_(other.device_), table_(other.table_), object_(std::exchange(other.object_, VK_NULL_HANDLE)) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      device_ = other.device_;
      table_ = other.table_;
      object_ = std::exchange(other.object_, VK_NULL_HANDLE);
    }
    return *this;
  }
  ~Handle() { reset(); }

  T get() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != VK_NULL_HANDLE; }
  /// Lets go of the object without destroying it.
  void release() noexcept { object_ = VK_NULL_HANDLE; }
  void reset() noexcept {
    if (object_ != VK_NULL_HANDLE)
      (table_->*Destroy)(device_, std::exchange(object_, VK_NULL_HANDLE), table_->callbacks);
  }

 private:
  VkDevice device_ = VK_NULL_HANDLE;
  const DeviceTable* table_ = nullptr;
  T object_ = VK_NULL_HANDLE;
};

using BufferView = Handle<VkBufferView, &DeviceTable::vkDestroyBufferView>;
using CommandPool = Handle<VkCommandPool, &DeviceTable::vkDestroyCommandPool>;
using DescriptorPool = Handle<VkDescriptorPool, &DeviceTable::vkDestroyDescriptorPool>;
using DescriptorSetLayout = Handle<VkDescriptorSetLayout, &DeviceTable::vkDestroyDescriptorSetLayout>;
using Pipeline = Handle<VkPipeline, &DeviceTable::vkDestroyPipeline>;
using PipelineCache = Handle<VkPipelineCache, &DeviceTable::vkDestroyPipelineCache>;
using PipelineLayout = Handle<VkPipelineLayout, &DeviceTable::vkDestroyPipelineLayout>;
using QueryPool = Handle<VkQueryPool, &DeviceTable::vkDestroyQueryPool>;
using Semaphore = Handle<VkSemaphore, &DeviceTable::vkDestroySemaphore>;
using ShaderModule = Handle<VkShaderModule, &DeviceTable::vkDestroyShaderModule>;

}  // namespace brontes::vk
