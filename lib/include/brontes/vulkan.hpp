// SPDX-License-Identifier: MIT
#pragma once

/// For programs that use Vulkan themselves. The only public header that includes Vulkan's.
#include <vulkan/vulkan.h>

#include <brontes/batch.hpp>
#include <brontes/buffer.hpp>
#include <brontes/device.hpp>
#include <brontes/export.hpp>
#include <brontes/program.hpp>
#include <brontes/tensor.hpp>

#include <cstdint>
#include <functional>
#include <memory>

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

/// Holds the lock of a Device's queue, and the Device, until it is unlocked or destroyed: on the thread that locked it.
///
/// Thread-safety: one thread.
class BRONTES_API QueueLock {
 public:
  /// Owns nothing.
  QueueLock() noexcept = default;
  QueueLock(QueueLock&& other) noexcept;
  QueueLock& operator=(QueueLock&& other) noexcept;
  ~QueueLock();

  bool owns_lock() const noexcept { return context_ != nullptr; }
  explicit operator bool() const noexcept { return owns_lock(); }
  void unlock() noexcept;

 private:
  friend QueueLock lock_queue(const Device& device);
  std::shared_ptr<vk::Context> context_;
};

/// Vulkan wants queue access serialised. Hold this while you submit to handles().queue yourself;
/// keep it short, as execute() on other threads waits for it.
///
///     auto lock = brontes::vulkan::lock_queue(device);
///     vkQueueSubmit(queue, ...);
///
/// There is one lock per VkQueue and process, which all Devices on that queue share. With the callbacks of an
/// ExternalDevice it is taken first and the host's own lock second.
///
/// A call of the library that would submit work while its own thread has the lock fails with Errc::invalid_argument; it
/// does not hang. A thread that has the lock and asks for it again gets one that owns nothing, and keeps what it has.
/// In a forked process there is no queue to use: the lock returned owns nothing.
///
/// Thread-safety: any thread.
BRONTES_API QueueLock lock_queue(const Device& device);

/// A device of your own for Brontes to run on. All handles must outlive the Device made from them
/// and everything made from that.
struct ExternalDevice {
  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  /// Created with Vulkan 1.2 or later and the timelineSemaphore feature.
  VkDevice device = VK_NULL_HANDLE;
  /// A queue with compute support. Brontes locks it as lock_queue() does; so must you, or give the callbacks below.
  VkQueue queue = VK_NULL_HANDLE;
  std::uint32_t queue_family = 0;
  /// The device was created with the bufferDeviceAddress and shaderInt64 features: AccessMode::pointer may be used.
  bool pointers = false;
  /// How your application locks the queue, where it has a lock of its own: called around every use of the queue, on the
  /// thread that uses it, and never nested by one Device. They must not throw, nor call the library. A thread must not
  /// call the library while it holds that lock, unless it got it from lock_queue() or the lock is recursive: Brontes
  /// cannot see it, and would wait for ever. Give both or neither.
  std::function<void()> lock;
  std::function<void()> unlock;
};

/// Opens a Device that runs on `external`. `options.select`, `allow_cpu` and `validation`
/// have no effect. Errc::invalid_argument for null handles and for a queue family without compute,
/// Errc::unsupported below the baseline.
BRONTES_API Result<Device> adopt(const ExternalDevice& external, const DeviceOptions& options = {});

// --- Waiting on the GPU, not on the CPU -------------------------------------------------------------
//
// A run of Brontes works in the stages COMPUTE_SHADER and TRANSFER only, with SHADER_READ, SHADER_WRITE, TRANSFER_READ
// and TRANSFER_WRITE. It begins with a barrier from those stages to those stages, and what it does is one submission in
// Vulkan's submission order. These are guarantees:
//
//   - On the same queue no semaphore is needed. Brontes sees what was submitted before it if your commands end with a
//     barrier to the stages and accesses above. Your commands that are submitted after it see what it wrote if they
//     begin with a barrier from COMPUTE_SHADER and TRANSFER with SHADER_WRITE and TRANSFER_WRITE.
//   - On another queue, use semaphores, which need no barriers besides, as long as the queue families are the same or
//     the buffer is shared by them.
//
// Work of yours that uses a Buffer is not known to Brontes: keep the Buffer until it is done, and do not write() or
// read() it from the host meanwhile.

/// A semaphore that a run waits for.
struct SemaphoreWait {
  VkSemaphore semaphore = VK_NULL_HANDLE;
  /// Of a timeline semaphore; ignored for binary ones.
  std::uint64_t value = 0;
  /// What of the run waits: compute shaders, transfers or both. Where one of them waits, what follows it does, too.
  VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
};

/// A semaphore that a run signals when all of it is done.
struct SemaphoreSignal {
  VkSemaphore semaphore = VK_NULL_HANDLE;
  /// Of a timeline semaphore; ignored for binary ones.
  std::uint64_t value = 0;
};

struct SubmitInfo {
  Span<const SemaphoreWait> waits;
  Span<const SemaphoreSignal> signals;
  /// Other work of the same device that the run follows.
  Submission after;
};

/// Batch::submit() and Program::submit() that wait for semaphores and signal others, all in the one vkQueueSubmit: if
/// the call fails nothing has run, and no semaphore is waited for or signalled. Where there is nothing to run the
/// semaphores are waited for and signalled all the same. Neither call waits on the host.
///
/// The semaphores belong to the same VkDevice, and Vulkan's rules for them are yours to keep: a binary one has its
/// signal submitted before its wait; on one queue the signal of a timeline value is submitted before the wait for it,
/// or the queue stands still. Keep semaphores until the run is done. Whatever waits for the run on the host (read(),
/// write(), Submission::wait(), the end of the Device) also waits for what the run waits for.
///
/// Errors: those of submit(); invalid_argument for a null semaphore, for stages in which a run does nothing, and for a
/// value of the Device's own timeline() that nothing submitted so far will reach.
///
/// Thread-safety: as Batch and Program.
BRONTES_API Result<Submission> submit(Batch& batch, const SubmitInfo& info);
BRONTES_API Result<Submission> submit(Program& program, const SubmitInfo& info);

/// What a Submission waits for: the timeline semaphore of the Device and a value that it reaches when the work is done.
/// Wait for it in a vkQueueSubmit of your own; do not signal it. The semaphore lives as long as the Device and whatever
/// was made from it. VK_NULL_HANDLE and 0 for an empty Submission, and in a forked process.
struct TimelinePoint {
  VkSemaphore semaphore = VK_NULL_HANDLE;
  std::uint64_t value = 0;
};

/// Thread-safety: any thread.
BRONTES_API TimelinePoint timeline(const Submission& submission) noexcept;

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
