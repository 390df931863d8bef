// SPDX-License-Identifier: MIT
#pragma once

/// For programs that use Vulkan themselves. The only public header that includes Vulkan's.
#include <vulkan/vulkan.h>

#include <brontes/buffer.hpp>
#include <brontes/device.hpp>
#include <brontes/export.hpp>

#include <memory>
#include <mutex>

namespace brontes::vulkan {

/// The Vulkan objects behind a Device. They belong to it: destroy none of them, and do not use them
/// after the last Device, Batch and Buffer made from it are gone.
struct Handles {
  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  std::uint32_t queue_family = 0;
};

/// All null if the Device was moved from. Thread-safety: any thread.
BRONTES_API Handles handles(const Device& device) noexcept;

/// Vulkan wants queue access serialised. Hold this while you submit to handles().queue yourself;
/// keep it short, as execute() on other threads waits for it.
///
///     auto lock = brontes::vulkan::lock_queue(device);
///     vkQueueSubmit(queue, ...);
///
/// In a forked process there is no queue to use: the lock returned owns nothing.
///
/// Thread-safety: any thread.
BRONTES_API std::unique_lock<std::mutex> lock_queue(const Device& device);

/// A device of your own for Brontes to run on. All handles must outlive the Device made from them
/// and everything made from that.
struct ExternalDevice {
  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  /// Created with Vulkan 1.2 or later and the timelineSemaphore feature.
  VkDevice device = VK_NULL_HANDLE;
  /// A queue with compute support. Brontes locks it with lock_queue(); so must you.
  VkQueue queue = VK_NULL_HANDLE;
  std::uint32_t queue_family = 0;
  /// The device was created with the bufferDeviceAddress and shaderInt64 features: AccessMode::pointer may be used.
  bool pointers = false;
};

/// Opens a Device that runs on `external`. `options.select`, `allow_cpu` and `validation`
/// have no effect. Errc::invalid_argument for null handles and for a queue family without compute,
/// Errc::unsupported below the baseline.
BRONTES_API Result<Device> adopt(const ExternalDevice& external, const DeviceOptions& options = {});

/// The VkBuffer behind a Buffer, and where its elements begin in it.
struct BufferRegion {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceSize offset = 0;
  VkDeviceSize bytes = 0;
};

/// Usable as storage buffer, and as source and destination of transfers. You synchronise your own
/// use; work that execute() has finished is visible to later submits on the same queue.
BRONTES_API BufferRegion region(const Buffer& buffer) noexcept;

}  // namespace brontes::vulkan
