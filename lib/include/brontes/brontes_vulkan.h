/* SPDX-License-Identifier: MIT */
#ifndef BRONTES_BRONTES_VULKAN_H
#define BRONTES_BRONTES_VULKAN_H

/** Brontes for C programs that use Vulkan themselves. The rules of brontes/brontes.h hold here, too. */
#include <vulkan/vulkan.h>

#include <brontes/brontes.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a block of device memory is wanted for. This struct may grow at its end. */
typedef struct brontes_vulkan_memory_request {
  VkBuffer buffer;                   /**< the buffer that will be bound to it */
  VkMemoryRequirements requirements; /**< its size, alignment and memory types */
  uint32_t memory_type;              /**< the one of these types that is wanted */
  int32_t mapped;                    /**< the block's `mapped` must be set; the type is then host-coherent */
  int32_t device_address;            /**< allocated with VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT */
} brontes_vulkan_memory_request;

/** A VkDeviceMemory of its own, or a part of one. */
typedef struct brontes_vulkan_memory_block {
  VkDeviceMemory memory;
  VkDeviceSize offset;
  void* mapped; /**< where the block begins, for the host; until it is freed */
  void* user;   /**< whatever finds the block again when it is freed */
} brontes_vulkan_memory_block;

/** Vulkan objects of a device: those behind a brontes_device, or those to make one of. */
typedef struct brontes_vulkan_device {
  size_t struct_size;
  PFN_vkGetInstanceProcAddr get_instance_proc_addr;
  VkInstance instance;
  VkPhysicalDevice physical_device;
  /** To be adopted: created with Vulkan 1.2 or later and the timelineSemaphore feature. */
  VkDevice device;
  /** A queue with compute support. Access to it is serialised with brontes_vulkan_lock_queue(). */
  VkQueue queue;
  uint32_t queue_family;
  /** To be adopted: the device was created with the bufferDeviceAddress and shaderInt64 features, so that
   *  BRONTES_ACCESS_POINTER may be used. Not looked at where `features` says what it was created with. */
  int32_t pointers;
  /* All that follows is for a device to be adopted, and 0 in what brontes_vulkan_get_handles() gives. */
  /** How your application locks the queue, where it has a lock of its own: called around every use of the queue, on the
   *  thread that uses it. They must not call the library, and no thread may call the library while it holds that lock.
   *  Both or neither. */
  void (*lock)(void* user_data);
  void (*unlock)(void* user_data);
  void* lock_user_data;
  /** What the device was created with: the chain, and the names of extensions. Needed only during the call. What is not
   *  there is not used; without a chain that is everything optional. */
  const VkPhysicalDeviceFeatures2* features;
  const char* const* extensions;
  size_t extension_count;
  /** Queue families, besides queue_family, whose queues use the library's buffers: these are then shared by all of them
   *  (VK_SHARING_MODE_CONCURRENT). Needed only during the call. */
  const uint32_t* queue_families;
  size_t queue_family_count;
  /** VkApplicationInfo::apiVersion of the instance, where you know it; 0: the library finds out as far as it can. */
  uint32_t api_version;
  /** VkDeviceQueueCreateInfo::flags of the queue. With VK_DEVICE_QUEUE_CREATE_INTERNALLY_SYNCHRONIZED_BIT_KHR (4) any
   *  thread may use it without a lock, and neither `lock` nor `unlock` is called. */
  VkDeviceQueueCreateFlags queue_flags;
  /** For the host memory that the driver takes for the library's Vulkan objects. Copied; what pUserData points to lives
   *  as long as the handles. */
  const VkAllocationCallbacks* allocation_callbacks;
  /** Where the memory of the library's buffers comes from, if not from vkAllocateMemory; both or neither. May be called
   *  on any thread that uses the device, several at once, and must not call the library. A VkResult below 0 is a
   *  failure. vulkan::MemoryAllocator in <brontes/vulkan.hpp> has the rules in full. */
  VkResult (*allocate_memory)(void* user_data, const brontes_vulkan_memory_request* wanted,
                              brontes_vulkan_memory_block* block);
  void (*free_memory)(void* user_data, const brontes_vulkan_memory_block* block);
  void* memory_user_data;
} brontes_vulkan_device;

/* --- Features of a device of your own ---------------------------------------------------------------------------- */

/** The most extensions that are ever wanted. */
#define BRONTES_VULKAN_MAX_EXTENSIONS 8

/** Features and extensions that a VkDevice is created with. The names need not be freed. */
typedef struct brontes_vulkan_features {
  size_t struct_size;
  size_t extension_count;
  const char* extensions[BRONTES_VULKAN_MAX_EXTENSIONS];
  VkPhysicalDeviceVulkan12Features vulkan12; /**< pNext is null */
  VkPhysicalDeviceFeatures vulkan10;
  /** VkPhysicalDeviceCooperativeMatrixFeaturesKHR::cooperativeMatrix, of VK_KHR_cooperative_matrix */
  VkBool32 cooperative_matrix;
  /** Of VkPhysicalDeviceSubgroupSizeControlFeatures: VK_EXT_subgroup_size_control */
  VkBool32 subgroup_size_control;
  VkBool32 compute_full_subgroups;
} brontes_vulkan_features;

/** What a VkDevice must have been created with to be adopted, besides an instance for Vulkan 1.2 or later.
 *  Thread-safety: any thread. */
BRONTES_API brontes_status brontes_vulkan_required_features(brontes_vulkan_features* features, brontes_error* error);

/** The same, and whatever else the library can use and the device offers. invalid_argument for null handles,
 *  unsupported for a device that does not have what is required. Thread-safety: any thread. */
BRONTES_API brontes_status brontes_vulkan_recommended_features(PFN_vkGetInstanceProcAddr get_instance_proc_addr,
                                                               VkInstance instance, VkPhysicalDevice physical_device,
                                                               brontes_vulkan_features* features, brontes_error* error);

/** Turns features on in the chain that a VkDevice will be created with, and leaves the others in it as they are.
 *  invalid_argument, which names it, for a feature that no structure of the chain has: then nothing is changed.
 *  Features of subgroup sizes and for matrix units are left out where the chain has no place for them. Extensions are a
 *  list of yours. Thread-safety: any thread. */
BRONTES_API brontes_status brontes_vulkan_merge_features(const brontes_vulkan_features* wanted,
                                                         VkPhysicalDeviceFeatures2* chain, brontes_error* error);

/** Opens a device that runs on Vulkan objects of your own, which must outlive it and everything made from it. The
 *  options select, no_cpu and validation have no effect. invalid_argument for null handles and for a queue family
 *  without compute, unsupported below the baseline. */
BRONTES_API brontes_status brontes_vulkan_adopt(const brontes_vulkan_device* external,
                                                const brontes_device_options* options, brontes_device** device,
                                                brontes_error* error);

/** The Vulkan objects behind a device. They belong to it: destroy none of them, and do not use them after the device
 *  and everything made from it are destroyed. Thread-safety: any thread. */
BRONTES_API brontes_status brontes_vulkan_get_handles(const brontes_device* device, brontes_vulkan_device* handles,
                                                      brontes_error* error);

/** The right to use the queue. */
typedef struct brontes_queue_lock brontes_queue_lock;

/** Vulkan wants queue access serialised. Hold this while you submit to the queue yourself; keep it short, as runs on
 *  other threads wait for it, and execute nothing on the device from this thread meanwhile. The thread that locked
 *  unlocks, and does so before it destroys the device. */
BRONTES_API brontes_status brontes_vulkan_lock_queue(const brontes_device* device, brontes_queue_lock** lock,
                                                     brontes_error* error);
/** Unlocks and destroys. Null is fine. */
BRONTES_API void brontes_vulkan_unlock_queue(brontes_queue_lock* lock);

/** The VkBuffer behind a buffer, and where its elements begin in it. */
typedef struct brontes_vulkan_region {
  size_t struct_size;
  VkBuffer buffer;
  VkDeviceSize offset;
  VkDeviceSize bytes;
} brontes_vulkan_region;

/** Usable as storage buffer, and as source and destination of transfers. You synchronise your own use; work that
 *  brontes_batch_execute() has finished is visible to later submits on the same queue. */
BRONTES_API brontes_status brontes_vulkan_buffer_region(const brontes_buffer* buffer, brontes_vulkan_region* region,
                                                        brontes_error* error);

/* --- Waiting on the GPU, not on the CPU ---------------------------------------------------------------------------
 *
 * On one queue barriers are enough: a run works in the stages COMPUTE_SHADER and TRANSFER, begins with a barrier from
 * those to those, and is one submission in submission order. Between queues use semaphores. <brontes/vulkan.hpp> has
 * the guarantees in full. */

/** A semaphore that a run waits for. */
typedef struct brontes_vulkan_wait {
  VkSemaphore semaphore;
  uint64_t value;              /**< of a timeline semaphore; ignored for binary ones */
  VkPipelineStageFlags stages; /**< COMPUTE_SHADER, TRANSFER or both; 0: both */
  uint32_t reserved;           /**< 0 */
} brontes_vulkan_wait;

/** A semaphore that a run signals when all of it is done. */
typedef struct brontes_vulkan_signal {
  VkSemaphore semaphore;
  uint64_t value; /**< of a timeline semaphore; ignored for binary ones */
} brontes_vulkan_signal;

typedef struct brontes_vulkan_submit_info {
  size_t struct_size;
  const brontes_vulkan_wait* waits;
  size_t wait_count;
  const brontes_vulkan_signal* signals;
  size_t signal_count;
  const brontes_submission* after; /**< other work of the same device that the run follows; null: none */
} brontes_vulkan_submit_info;

/** brontes_batch_submit() and brontes_program_submit() that wait for semaphores and signal others, all in the one
 *  vkQueueSubmit: if the call fails nothing has run, and no semaphore is waited for or signalled. Where there is
 *  nothing to run they are waited for and signalled all the same. No call waits on the host. Vulkan's rules for
 *  semaphores are yours to keep, and so are the semaphores until the run is done. `submission` may be null.
 *
 *  invalid_argument for a null semaphore, for stages in which a run does nothing, and for a value of the device's own
 *  timeline that nothing submitted so far will reach. */
BRONTES_API brontes_status brontes_vulkan_submit_batch(brontes_batch* batch, const brontes_vulkan_submit_info* info,
                                                       brontes_submission** submission, brontes_error* error);
BRONTES_API brontes_status brontes_vulkan_submit_program(brontes_program* program,
                                                         const brontes_vulkan_submit_info* info,
                                                         brontes_submission** submission, brontes_error* error);

/** What a submission waits for: the timeline semaphore of the device, and a value that it reaches when the work is
 *  done. Wait for it in a vkQueueSubmit of your own; do not signal it. The semaphore lives as long as the device and
 *  whatever was made from it. VK_NULL_HANDLE and 0 in a forked process. Thread-safety: any thread. */
BRONTES_API brontes_status brontes_vulkan_timeline(const brontes_submission* submission, VkSemaphore* semaphore,
                                                   uint64_t* value, brontes_error* error);

/* --- Runs in command buffers of your own ------------------------------------------------------------------------- */

/** What comes before a recorded run and what comes after it: the other sides of its two barriers. Stages of 0 stand for
 *  all commands, and accesses of 0 for all of them. */
typedef struct brontes_vulkan_record_options {
  size_t struct_size;
  VkPipelineStageFlags before_stages;
  VkAccessFlags before_writes;
  VkPipelineStageFlags after_stages;
  VkAccessFlags after_accesses;
} brontes_vulkan_record_options;

/** Records a run of the program into a command buffer that is being recorded, outside of a render pass, for a queue
 *  with compute support. Nothing is submitted and nothing waits. Until the command buffer is done for good keep the
 *  program and do not rebind it; whatever waits for a run does not wait for this one. It may be submitted any number of
 *  times. vulkan::record() in <brontes/vulkan.hpp> has the rules in full. */
BRONTES_API brontes_status brontes_vulkan_record(brontes_program* program, VkCommandBuffer commands,
                                                 const brontes_vulkan_record_options* options, brontes_error* error);

/** Records the release of a buffer by queue family `from` to family `to`, or that `to` takes over what `from` has
 *  released: one on either queue, with a semaphore in between. Where both are the same it is a plain barrier. */
BRONTES_API brontes_status brontes_vulkan_release(const brontes_buffer* buffer, VkCommandBuffer commands, uint32_t from,
                                                  uint32_t to, brontes_error* error);
BRONTES_API brontes_status brontes_vulkan_acquire(const brontes_buffer* buffer, VkCommandBuffer commands, uint32_t from,
                                                  uint32_t to, brontes_error* error);

/** The name of a buffer, or of a program, for debuggers. Without VK_EXT_debug_utils nothing happens. */
BRONTES_API brontes_status brontes_vulkan_name_buffer(const brontes_buffer* buffer, const char* name,
                                                      brontes_error* error);
BRONTES_API brontes_status brontes_vulkan_name_program(brontes_program* program, const char* name,
                                                       brontes_error* error);

/* --- Sharing memory ---------------------------------------------------------------------------------------------- */

/** A VkBuffer of your own, or a range of one. */
typedef struct brontes_vulkan_buffer {
  size_t struct_size;
  /** Of the device that the library runs on, bound to memory, and owned by its queue family or shared with it. */
  VkBuffer buffer;
  VkDeviceSize buffer_bytes; /**< the size it was created with */
  VkDeviceSize offset;       /**< of the first element: a multiple of brontes_vulkan_import_alignment() */
  /** Bytes from `offset` on that the library may write to; 0 for the elements alone. With room up to the next multiple
   *  of 16 a store to it needs no dispatch of its own. */
  VkDeviceSize bytes;
  /** The usage it was created with: STORAGE_BUFFER, and for brontes_buffer_read() TRANSFER_SRC, for
   *  brontes_buffer_write() TRANSFER_DST. */
  VkBufferUsageFlags usage;
  uint32_t reserved; /**< 0 */
} brontes_vulkan_buffer;

/** What the offset of a buffer to import is a multiple of. 0 for a null device. Thread-safety: any thread. */
BRONTES_API VkDeviceSize brontes_vulkan_import_alignment(const brontes_device* device);

/** A buffer that is a range of `external`, row by row, without a copy. The VkBuffer stays yours: keep it, and its
 *  memory, until this buffer is destroyed or no longer used, nothing that has it will run again, and
 *  brontes_vulkan_last_use() is done. Ranges of one VkBuffer that are stored to must not overlap others that a batch
 *  uses. invalid_argument names what is missing; limit_exceeded past maxStorageBufferRange. Thread-safety: any thread.
 */
BRONTES_API brontes_status brontes_vulkan_import_buffer(const brontes_device* device,
                                                        const brontes_vulkan_buffer* external, const uint64_t* dims,
                                                        size_t rank, brontes_dtype dtype, brontes_buffer** buffer,
                                                        brontes_error* error);

/** The last submitted work that may use the memory of a buffer; done at once where there is none. Thread-safety: any
 *  thread. */
BRONTES_API brontes_status brontes_vulkan_last_use(const brontes_buffer* buffer, brontes_submission** submission,
                                                   brontes_error* error);

/** As brontes_buffer_create(), with further usage flags for the VkBuffer: vertex, index, indirect and so on.
 *  Thread-safety: any thread. */
BRONTES_API brontes_status brontes_vulkan_create_buffer(const brontes_device* device, const uint64_t* dims, size_t rank,
                                                        brontes_dtype dtype, VkBufferUsageFlags extra_usage,
                                                        brontes_buffer** buffer, brontes_error* error);

/** What address and size of host memory to import are multiples of; 0 where the device cannot import any.
 * Thread-safety: any thread. */
BRONTES_API VkDeviceSize brontes_vulkan_host_memory_alignment(const brontes_device* device);

/** A buffer in host memory of yours, without a copy: the first elements of `data`. Touch the memory only while no work
 *  that uses it is in flight. Keep it until brontes_vulkan_last_use() is done and then the buffer, and every batch and
 *  program that has it, is destroyed. unsupported, with the cause, where the device cannot; invalid_argument for what
 *  is not aligned or does not fit. Thread-safety: any thread. */
BRONTES_API brontes_status brontes_vulkan_import_host_memory(const brontes_device* device, void* data, size_t bytes,
                                                             const uint64_t* dims, size_t rank, brontes_dtype dtype,
                                                             brontes_buffer** buffer, brontes_error* error);

/** Device memory that another device, process or API can import by a file descriptor (VK_KHR_external_memory_fd). Both
 *  must be of the same physical device and driver. */
typedef struct brontes_vulkan_memory_fd {
  size_t struct_size;
  VkDeviceSize allocation_bytes; /**< VkMemoryAllocateInfo::allocationSize */
  uint32_t memory_type;          /**< VkMemoryAllocateInfo::memoryTypeIndex */
  int32_t fd;
  int32_t dedicated; /**< allocated with VkMemoryDedicatedAllocateInfo, for one buffer */
  uint32_t reserved; /**< 0 */
} brontes_vulkan_memory_fd;

/** As brontes_vulkan_create_buffer(), in memory of its own that can be exported. unsupported where the device cannot.
 *  Thread-safety: any thread. */
BRONTES_API brontes_status brontes_vulkan_create_exportable_buffer(const brontes_device* device, const uint64_t* dims,
                                                                   size_t rank, brontes_dtype dtype,
                                                                   VkBufferUsageFlags extra_usage,
                                                                   brontes_buffer** buffer, brontes_error* error);

/** A new file descriptor of the memory of an exportable buffer, whose elements begin at its first byte. It is yours:
 *  close it, or let an import take it. invalid_argument for any other buffer. Thread-safety: any thread. */
BRONTES_API brontes_status brontes_vulkan_export_fd(const brontes_buffer* buffer, brontes_vulkan_memory_fd* memory,
                                                    brontes_error* error);

/** A buffer in memory that was exported elsewhere, from its first byte on. When it succeeds the descriptor belongs to
 *  the driver; when it fails it is still yours. Thread-safety: any thread. */
BRONTES_API brontes_status brontes_vulkan_import_fd(const brontes_device* device,
                                                    const brontes_vulkan_memory_fd* memory, const uint64_t* dims,
                                                    size_t rank, brontes_dtype dtype, brontes_buffer** buffer,
                                                    brontes_error* error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
