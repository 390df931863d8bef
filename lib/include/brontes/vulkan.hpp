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
#include <vector>

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
  // Not the function itself: MinGW drops dllimport from functions that are friends.
  friend struct QueueLockAccess;
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

// --- A device of your own ---------------------------------------------------------------------------

/// VkPhysicalDeviceCooperativeMatrixFeaturesKHR, which Vulkan headers before 1.3.255 do not have: the same layout, and
/// fit for the same chains.
struct CooperativeMatrixFeatures {
  VkStructureType sType = static_cast<VkStructureType>(1000506000);
  void* pNext = nullptr;
  VkBool32 cooperativeMatrix = VK_FALSE;
  VkBool32 cooperativeMatrixRobustBufferAccess = VK_FALSE;
};

/// Features and extensions that a VkDevice is created with.
struct DeviceFeatures {
  DeviceFeatures() noexcept {
    vulkan12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    subgroup_size.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT;
  }

  VkPhysicalDeviceFeatures vulkan10{};
  VkPhysicalDeviceVulkan12Features vulkan12{};
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT subgroup_size{};
  CooperativeMatrixFeatures cooperative_matrix;
  /// Names of device extensions: string literals.
  std::vector<const char*> extensions;
};

/// What a VkDevice must have been created with for adopt(), besides an instance for Vulkan 1.2 or later: the
/// timelineSemaphore feature, and no extension. Empty when the host is out of memory.
///
/// Thread-safety: any thread.
BRONTES_API DeviceFeatures required_features();

/// The same, and whatever else Brontes can use and the device offers: bufferDeviceAddress and shaderInt64, for
/// AccessMode::pointer; subgroupSizeControl and computeFullSubgroups of VK_EXT_subgroup_size_control, without which
/// some kernels are left out on devices with more than one subgroup size; cooperativeMatrix of
/// VK_KHR_cooperative_matrix, with shaderFloat16 and vulkanMemoryModel, for products with Precision::f16; and
/// VK_EXT_memory_budget, for messages about memory. Without them it does as well as it can.
/// Errors: invalid_argument for null handles, unsupported for a device that does not have what is required.
///
/// Thread-safety: any thread.
BRONTES_API Result<DeviceFeatures> recommended_features(PFN_vkGetInstanceProcAddr get_instance_proc_addr,
                                                        VkInstance instance, VkPhysicalDevice physical_device);

/// Turns features on in the chain that a VkDevice will be created with, and leaves the others in it as they are:
/// those of Vulkan 1.2 in a VkPhysicalDeviceVulkan12Features, or in the structures of the single features, whichever
/// the chain has. Errc::invalid_argument, which names it, for a feature that no structure of the chain has: then
/// nothing is changed. The features of subgroup_size are left out where the chain has no place for them, which is a
/// VkPhysicalDeviceVulkan13Features or a VkPhysicalDeviceSubgroupSizeControlFeatures; so are shaderFloat16,
/// vulkanMemoryModel and cooperativeMatrix. Extensions are a list of yours;
/// add the names to it that it does not have yet.
///
///     auto wanted = brontes::vulkan::recommended_features(vkGetInstanceProcAddr, instance, gpu).value();
///     VkPhysicalDeviceVulkan12Features features12{...};              // yours
///     VkPhysicalDeviceFeatures2 features{..., &features12};
///     if (auto e = brontes::vulkan::merge(wanted, features)) return fail(e);
///     device_info.pNext = &features;
///     names.insert(names.end(), wanted.extensions.begin(), wanted.extensions.end());
///
/// Thread-safety: any thread.
BRONTES_API Error merge(const DeviceFeatures& wanted, VkPhysicalDeviceFeatures2& chain);

/// What a block of device memory is wanted for.
struct MemoryRequest {
  /// The buffer that will be bound to it.
  VkBuffer buffer = VK_NULL_HANDLE;
  /// Its size, alignment and memory types. Offsets within the VkDeviceMemory keep the alignment.
  VkMemoryRequirements requirements{};
  /// The one of these types that Brontes wants.
  std::uint32_t memory_type = 0;
  /// The host will reach it: MemoryBlock::mapped must be set. The type is then host-coherent.
  bool mapped = false;
  /// Allocated with VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT.
  bool device_address = false;
};

/// A block of device memory: a VkDeviceMemory of its own, or a part of one.
struct MemoryBlock {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkDeviceSize offset = 0;
  /// Where the block begins, for the host. It stays mapped until the block is freed.
  void* mapped = nullptr;
  /// Whatever finds the block again when it is freed.
  void* user = nullptr;
};

/// Where device memory comes from, if not from vkAllocateMemory: your own allocator. With a VmaAllocator, say:
///
///     external.memory.allocate = [vma](const MemoryRequest& wanted, MemoryBlock& block) {
///       VmaAllocationCreateInfo how{};
///       how.memoryTypeBits = 1u << wanted.memory_type;
///       if (wanted.mapped) how.flags = VMA_ALLOCATION_CREATE_MAPPED_BIT;
///       VmaAllocation made;
///       VmaAllocationInfo info;
///       VkResult result = vmaAllocateMemory(vma, &wanted.requirements, &how, &made, &info);
///       if (result == VK_SUCCESS) block = {info.deviceMemory, info.offset, info.pMappedData, made};
///       return result;
///     };
///     external.memory.free = [vma](const MemoryBlock& block) { vmaFreeMemory(vma, VmaAllocation(block.user)); };
///
/// Both may be called on any thread that uses the Device, several at once, and free also after the Device is gone, as
/// long as something made from it is alive. They must not throw, nor call the library. Any VkResult below 0 is a
/// failure; where it says that memory is short Brontes gives back what it keeps for later and asks once more. Brontes
/// frees each block once, after the work that uses it is done.
struct MemoryAllocator {
  std::function<VkResult(const MemoryRequest& wanted, MemoryBlock& block)> allocate;
  std::function<void(const MemoryBlock& block)> free;
};

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
  /// The device was created with the bufferDeviceAddress and shaderInt64 features: AccessMode::pointer may be used. Not
  /// looked at where `features` says what it was created with.
  bool pointers = false;
  /// How your application locks the queue, where it has a lock of its own: called around every use of the queue, on the
  /// thread that uses it, and never nested by one Device. They must not throw, nor call the library. A thread must not
  /// call the library while it holds that lock, unless it got it from lock_queue() or the lock is recursive: Brontes
  /// cannot see it, and would wait for ever. Give both or neither.
  std::function<void()> lock;
  std::function<void()> unlock;
  /// What the device was created with: the chain, and the names of extensions. Needed only during adopt(). What is not
  /// there is not used; without a chain that is everything optional.
  const VkPhysicalDeviceFeatures2* features = nullptr;
  Span<const char* const> extensions;
  /// VkApplicationInfo::apiVersion of the instance, where you know it: one below 1.2 is then an error that says so.
  /// With 0 Brontes finds out as far as it can.
  std::uint32_t api_version = 0;
  /// VkDeviceQueueCreateInfo::flags of the queue. With VK_DEVICE_QUEUE_CREATE_INTERNALLY_SYNCHRONIZED_BIT_KHR (4) any
  /// thread may use it without a lock: Brontes calls neither `lock` nor `unlock`, and Devices on the queue do not wait
  /// for each other. The bit is an error where the device does not offer VK_KHR_internally_synchronized_queues.
  VkDeviceQueueCreateFlags queue_flags = 0;
  /// Queue families, besides queue_family, whose queues use Brontes' buffers. Buffers are shared by all of them
  /// (VK_SHARING_MODE_CONCURRENT), so no ownership has to be transferred. Needed only during adopt().
  Span<const std::uint32_t> queue_families;
  /// For the host memory that the driver takes for Brontes' Vulkan objects: passed to every call that creates or
  /// destroys one. The struct is copied; what its pUserData points to lives as long as the handles. Brontes' own data
  /// is in memory of operator new.
  const VkAllocationCallbacks* allocation_callbacks = nullptr;
  /// For the memory of Brontes' buffers; give both functions or neither. Memory that is exported or imported by file
  /// descriptor or host pointer is not from here. Device::memory() then has blocks of your allocator in `used_bytes`,
  /// not in `block_bytes`.
  MemoryAllocator memory;
};

/// Opens a Device that runs on `external`. `options.select`, `allow_cpu` and `validation`
/// have no effect. Errc::invalid_argument for null handles and for a queue family without compute,
/// Errc::unsupported below the baseline. Names and labels for debuggers are set if the instance has VK_EXT_debug_utils.
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

// --- Runs in command buffers of your own ------------------------------------------------------------

/// What comes before a recorded run in submission order and what comes after it: the other sides of its two barriers.
/// The defaults are right for whatever comes; narrow ones let a GPU overlap more.
struct RecordOptions {
  VkPipelineStageFlags before_stages = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  VkAccessFlags before_writes = VK_ACCESS_MEMORY_WRITE_BIT;
  VkPipelineStageFlags after_stages = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  VkAccessFlags after_accesses = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
};

/// Records a run of the program into a command buffer that is being recorded, outside of a render pass, for a queue
/// with compute support. Nothing is submitted and nothing waits.
///
/// **Barriers.** The run begins with a memory barrier from `before_*` to COMPUTE_SHADER and TRANSFER, and ends with one
/// from these to `after_*` and the host. In between it is what submit() would run, in one piece whatever
/// milliseconds_per_submit and work_per_submit say: keep long runs out of command buffers of your own, or make several
/// programs of them. It leaves another compute pipeline, descriptor set 0 and push constants bound.
///
/// **Lifetime.** The command buffer uses the program's memory, descriptors and imported buffers. Until it is done for
/// good keep the Program, and do not rebind() it: either makes the command buffer invalid. Brontes does not know when
/// the command buffer runs, so whatever waits for a run (write(), read(), ~Program) does not wait for it: you do.
///
/// **Replays.** The command buffer may be submitted any number of times, also while earlier submits of it, or of others
/// the program is recorded in, are in flight: on one queue they follow each other by their barriers, and so do runs by
/// submit() on the same queue. On different queues they need semaphores in between, as they share the program's memory.
/// Data written by write() is used by runs that are submitted afterwards; write() only while none is in flight.
///
/// **Results.** Values stored to buffers are where submit() would put them. read() gives what the last finished run
/// left.
///
/// Errors: invalid_argument for a null command buffer or a program that was moved from, device_lost, out_of_memory.
///
/// Thread-safety: as Program; the command buffer's pool is used, too.
BRONTES_API Error record(Program& program, VkCommandBuffer commands, const RecordOptions& options = {});

// --- Queue families ---------------------------------------------------------------------------------
//
// A Buffer is Brontes' own queue family's, unless ExternalDevice::queue_families has it shared. To use one on a queue
// of another family all the same, hand it over and back by these, each recorded on either side: release on the queue
// that has it, then acquire on the one that gets it, with a semaphore in between. On Brontes' side submit them to
// handles().queue under lock_queue(). Where both families are the same they are plain barriers.

/// Records the release of a buffer by queue family `from` to family `to`.
/// Errc::invalid_argument for a null command buffer or a Buffer that was moved from.
BRONTES_API Error release(const Buffer& buffer, VkCommandBuffer commands, std::uint32_t from, std::uint32_t to);
/// Records that family `to` takes over what family `from` has released.
BRONTES_API Error acquire(const Buffer& buffer, VkCommandBuffer commands, std::uint32_t from, std::uint32_t to);

// --- Names for debuggers ----------------------------------------------------------------------------
//
// Where VK_EXT_debug_utils is enabled (on devices that Brontes opens: with validation), objects have names that begin
// with "brontes", and dispatches are labelled with the ops they run: "matmul+add+gelu %7".

/// The name of a Buffer, or of a Program: its memory and command buffers, and the label around what record() records.
/// Without the extension nothing happens.
BRONTES_API void set_name(const Buffer& buffer, const char* name);
BRONTES_API void set_name(Program& program, const char* name);

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
  /// it nothing behind them is touched, and store() takes a dispatch of its own that writes element by element. An odd
  /// number of f16 ends within a word, whose other half is written as it is.
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
