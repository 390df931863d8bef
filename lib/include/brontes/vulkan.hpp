// SPDX-License-Identifier: MIT
#pragma once

/// For programs that use Vulkan themselves. The only public header that includes Vulkan's.
#include <vulkan/vulkan.h>

#include <brontes/buffer.hpp>
#include <brontes/device.hpp>
#include <brontes/export.hpp>
#include <brontes/program.hpp>

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

/// Thread-safety: any thread.
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

// Sharing memory.

/// A VkBuffer of your own, or a range of one, for Brontes to work in.
struct ExternalBuffer {
  /// Of the device that Brontes runs on, bound to memory, and owned by handles().queue_family or shared with it
  /// (VK_SHARING_MODE_CONCURRENT).
  VkBuffer buffer = VK_NULL_HANDLE;
  /// The size it was created with (VkBufferCreateInfo::size).
  VkDeviceSize buffer_bytes = 0;
  /// The usage it was created with. STORAGE_BUFFER is needed. TRANSFER_SRC is for Buffer::read(), TRANSFER_DST for
  /// Buffer::write(). Kernels use UNIFORM_TEXEL_BUFFER and SHADER_DEVICE_ADDRESS where AccessMode asks for them and
  /// both are there, and do without otherwise.
  VkBufferUsageFlags usage = 0;
  /// Where the first element lies: a multiple of import_alignment().
  VkDeviceSize offset = 0;
  /// Bytes from `offset` on that Brontes may write to; 0 for the elements alone. Kernels write 16 bytes at a time. With
  /// room up to the next multiple of 16, what lies behind the elements there has no meaning after a store(). Without
  /// it nothing behind them is touched, and store() takes a dispatch of its own that writes element by element.
  VkDeviceSize bytes = 0;
};

/// What ExternalBuffer::offset has to be a multiple of: 16, or the device's minStorageBufferOffsetAlignment or
/// minTexelBufferOffsetAlignment where that is more. 0 for a Device that was moved from.
///
/// Thread-safety: any thread.
BRONTES_API VkDeviceSize import_alignment(const Device& device) noexcept;

/// A Buffer that is a range of `external`, row by row in `shape`: for Batch::import_buffer(), store() and
/// Program::rebind(), without a copy. Masks are words of 0 and 1.
///
/// **The VkBuffer stays yours.** Brontes neither destroys it nor frees its memory. Keep both until the Buffer is
/// destroyed or no longer used, no Batch or Program that has it will run again, and last_use() is ready. When the
/// device is lost, wait for the VkDevice to be idle, as for objects of your own.
///
/// **Ordering.** What you submitted to the same queue before is finished and visible before Brontes' work begins, and
/// the other way round if your commands begin with a barrier. Reads go up to the next multiple of 16 bytes; what lies
/// behind the elements there does not matter, but must be inside of the VkBuffer.
///
/// **One range, one Buffer.** Within a batch or program, ranges of one VkBuffer that are stored to must not overlap
/// others that it uses: Errc::invalid_argument when it is built. Brontes cannot know of two VkBuffers that share
/// memory.
///
/// Errc::invalid_argument, naming what is missing: a null handle, a usage without STORAGE_BUFFER, an offset that is not
/// aligned, a range that is not inside of the VkBuffer, no elements. Errc::limit_exceeded past maxStorageBufferRange.
///
/// Thread-safety: any thread.
BRONTES_API Result<Buffer> import_buffer(const Device& device, const ExternalBuffer& external, Shape shape,
                                         DType dtype = DType::f32);

/// The last submitted work that may use the memory of a buffer; empty, hence ready, for one that nothing has used. Work
/// submitted later is not included.
///
/// Thread-safety: any thread.
BRONTES_API Submission last_use(const Buffer& buffer) noexcept;

/// As Buffer::create(), with further usage flags for region().buffer: vertex, index, indirect and so on.
/// Errc::unsupported for SHADER_DEVICE_ADDRESS on a Device that does not use addresses itself (AccessMode::pointer).
/// Flags of an extension need a device that was created with it.
///
/// Thread-safety: any thread.
BRONTES_API Result<Buffer> create_buffer(const Device& device, Shape shape, DType dtype,
                                         VkBufferUsageFlags extra_usage);

/// What the address and size given to import_host_memory() have to be multiples of; 0 where the device cannot import
/// host memory (VK_EXT_external_memory_host), or was adopted without that extension.
///
/// Thread-safety: any thread.
BRONTES_API VkDeviceSize host_memory_alignment(const Device& device) noexcept;

/// A Buffer in host memory of yours, without a copy: the first elements of `data`, which has `bytes` bytes. What lies
/// behind the elements is not written.
///
/// You may touch the memory while no work that uses the Buffer is in flight, and see what such work stored once it is
/// done. Keep it until last_use() is ready and then the Buffer, and every Batch and Program that has it, is destroyed,
/// in this order: only then has the driver let go of it.
///
/// Errc::unsupported, with the cause, where the device or the driver cannot; Errc::invalid_argument for null, for
/// addresses and sizes that are not aligned, and for elements that do not fit.
///
/// Thread-safety: any thread.
BRONTES_API Result<Buffer> import_host_memory(const Device& device, void* data, std::size_t bytes, Shape shape,
                                              DType dtype = DType::f32);

/// Device memory that another device, process or API can import, by an opaque file descriptor
/// (VK_KHR_external_memory_fd). Both must be of the same physical device and driver.
struct MemoryFd {
  int fd = -1;
  VkDeviceSize allocation_bytes = 0;  ///< VkMemoryAllocateInfo::allocationSize
  std::uint32_t memory_type = 0;      ///< VkMemoryAllocateInfo::memoryTypeIndex
  bool dedicated = false;             ///< allocated with VkMemoryDedicatedAllocateInfo, for one buffer
};

/// As create_buffer(), in memory of its own that export_fd() can export. Errc::unsupported where the device cannot, or
/// was adopted without VK_KHR_external_memory_fd.
///
/// Thread-safety: any thread.
BRONTES_API Result<Buffer> create_exportable_buffer(const Device& device, Shape shape, DType dtype = DType::f32,
                                                    VkBufferUsageFlags extra_usage = 0);

/// A new file descriptor of the memory of a Buffer of create_exportable_buffer(), whose elements begin at its first
/// byte. It is yours: close it, or let an import take it. It keeps the memory alive, also after the Buffer.
/// Errc::invalid_argument for any other Buffer.
///
/// Thread-safety: any thread.
BRONTES_API Result<MemoryFd> export_fd(const Buffer& buffer);

/// A Buffer in memory that was exported elsewhere, from its first byte on. What lies behind the elements is not
/// written. When it succeeds the descriptor belongs to the driver; when it fails it is still yours. The numbers must be
/// those of the exporter, which Vulkan cannot check. Errc::unsupported where the device cannot, Errc::invalid_argument
/// for a negative descriptor, a memory type that the device does not have and elements that do not fit.
///
/// Thread-safety: any thread.
BRONTES_API Result<Buffer> import_fd(const Device& device, const MemoryFd& memory, Shape shape,
                                     DType dtype = DType::f32);

}  // namespace brontes::vulkan
