/* SPDX-License-Identifier: MIT */
#ifndef BRONTES_BRONTES_VULKAN_H
#define BRONTES_BRONTES_VULKAN_H

/** Brontes for C programs that use Vulkan themselves. The rules of brontes/brontes.h hold here, too. */
#include <vulkan/vulkan.h>

#include <brontes/brontes.h>

#ifdef __cplusplus
extern "C" {
#endif

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
   *  BRONTES_ACCESS_POINTER may be used. 0 in what brontes_vulkan_get_handles() gives. */
  int32_t pointers;
} brontes_vulkan_device;

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

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
