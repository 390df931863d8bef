// Runs compute modules, each as it is, on one device.
#pragma once

#include "corpus.hpp"

#include "vk/handle.hpp"
#include "vk/loader.hpp"
#include "vk/physical_device.hpp"

#include <array>
#include <memory>

namespace brontes::test {

/// What is in the storage buffers 0, 1 and 2 of set 0.
using Contents = std::array<Words, 3>;

class Runner {
 public:
  /// Skips the test where there is no device.
  Runner();
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Whether the device has what the module declares that it needs.
  bool can_run(const Module& module) const;

  /// Executes four workgroups of the module on the contents, up to 64 kB each, and returns what they are
  /// then. `values` are for the driver. Fails the test on any error.
  Contents run(const Words& module, const std::vector<spirv::ConstantValue>& values, const Contents& before);

  /// What the validation layer said since the last call.
  std::vector<std::string> take_messages();

 private:
  struct Functions;

  std::vector<std::string> messages_;
  std::shared_ptr<vk::Instance> instance_;
  vk::PhysicalDevice physical_;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  vk::DeviceTable table_;
  std::unique_ptr<Functions> functions_;
  bool has_int64_ = false, has_int16_ = false, has_int8_ = false;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  std::uint32_t* mapped_ = nullptr;
  VkDeviceSize stride_ = 0;  // between the buffers, in bytes
  std::array<VkBuffer, 3> buffers_{};
  vk::DescriptorSetLayout set_layout_;
  vk::PipelineLayout layout_;
  vk::DescriptorPool descriptor_pool_;
  VkDescriptorSet set_ = VK_NULL_HANDLE;
  vk::CommandPool command_pool_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
};

}  // namespace brontes::test
