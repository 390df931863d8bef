/* Vulkan's own objects, in and out. */
#define VK_NO_PROTOTYPES
#include <brontes/brontes_vulkan.h>

#include "check.h"

static const float four[] = {1, 2, -3, 4};

static void adopted(void) {
  brontes_error error;
  brontes_vulkan_device objects = {0};
  objects.struct_size = sizeof objects;
  CHECK_OK(brontes_vulkan_get_handles(device, &objects, &error));
  CHECK(objects.get_instance_proc_addr != NULL && objects.instance != VK_NULL_HANDLE &&
        objects.queue != VK_NULL_HANDLE);

  brontes_device* adopted_device = NULL;
  brontes_device_options options = {0};
  options.struct_size = sizeof options;
  options.no_pipeline_cache = 1;
  CHECK_OK(brontes_vulkan_adopt(&objects, &options, &adopted_device, &error));
  brontes_vulkan_device again = {0};
  again.struct_size = sizeof again;
  CHECK_OK(brontes_vulkan_get_handles(adopted_device, &again, &error));
  CHECK(again.device == objects.device && again.queue == objects.queue && again.queue_family == objects.queue_family);

  brontes_batch* batch = NULL;
  CHECK_OK(brontes_batch_create(adopted_device, NULL, &batch, &error));
  brontes_tensor x = brontes_upload(batch, four, 4, NULL, 0);
  brontes_tensor y = brontes_relu(batch, x);
  CHECK_OK(brontes_batch_execute(batch, &error));
  EXPECT(batch, y, 1, 2, 0, 4);
  brontes_batch_destroy(batch);
  brontes_device_destroy(adopted_device);

  brontes_vulkan_device without = objects;
  without.queue = VK_NULL_HANDLE;
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_vulkan_adopt(&without, NULL, &adopted_device, &error));
  CHECK(adopted_device == NULL);
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_vulkan_adopt(NULL, NULL, &adopted_device, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_vulkan_get_handles(NULL, &objects, &error));
}

static void queue_is_locked(void) {
  brontes_error error;
  brontes_vulkan_device objects = {0};
  objects.struct_size = sizeof objects;
  CHECK_OK(brontes_vulkan_get_handles(device, &objects, &error));
  const PFN_vkGetDeviceProcAddr get_device_proc =
      (PFN_vkGetDeviceProcAddr)objects.get_instance_proc_addr(objects.instance, "vkGetDeviceProcAddr");
  const PFN_vkQueueSubmit submit = (PFN_vkQueueSubmit)get_device_proc(objects.device, "vkQueueSubmit");
  brontes_queue_lock* lock = NULL;
  CHECK_OK(brontes_vulkan_lock_queue(device, &lock, &error));
  CHECK(lock != NULL && submit(objects.queue, 0, NULL, VK_NULL_HANDLE) == VK_SUCCESS);
  brontes_vulkan_unlock_queue(lock);
  /* It can be had again, and the device goes on. */
  CHECK_OK(brontes_vulkan_lock_queue(device, &lock, &error));
  brontes_vulkan_unlock_queue(lock);
  brontes_vulkan_unlock_queue(NULL);
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_vulkan_lock_queue(NULL, &lock, &error));
  CHECK(lock == NULL);
}

static void regions(void) {
  brontes_error error;
  brontes_buffer* buffer = NULL;
  CHECK_OK(brontes_buffer_from(device, four, 4, NULL, 0, &buffer, &error));
  brontes_vulkan_region region = {0};
  region.struct_size = sizeof region;
  CHECK_OK(brontes_vulkan_buffer_region(buffer, &region, &error));
  CHECK(region.buffer != VK_NULL_HANDLE && region.bytes == sizeof four);
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_vulkan_buffer_region(NULL, &region, &error));
  brontes_buffer_destroy(buffer);
}

void vulkan_tests(void) {
  run("a Vulkan device of one's own is adopted", adopted);
  run("the queue is locked and unlocked", queue_is_locked);
  run("the Vulkan buffer behind a buffer is shown", regions);
}
