/* Semaphores, command buffers and memory that are shared with the program that embeds the library. */
#define VK_NO_PROTOTYPES
#include <brontes/brontes_vulkan.h>

#include "check.h"

#include <stddef.h>

static const float four[] = {1, 2, -3, 4};

/* Vulkan as the embedding program has it. */
static brontes_vulkan_device objects;
static PFN_vkGetDeviceProcAddr get_device_proc;
#define DEVICE_FUNCTION(name) ((PFN_##name)get_device_proc(objects.device, #name))

static void look_at_device(void) {
  brontes_error error;
  memset(&objects, 0, sizeof objects);
  objects.struct_size = sizeof objects;
  CHECK_OK(brontes_vulkan_get_handles(device, &objects, &error));
  get_device_proc = (PFN_vkGetDeviceProcAddr)objects.get_instance_proc_addr(objects.instance, "vkGetDeviceProcAddr");
}

static VkSemaphore new_timeline(void) {
  VkSemaphoreTypeCreateInfo type = {VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, NULL, VK_SEMAPHORE_TYPE_TIMELINE, 0};
  VkSemaphoreCreateInfo create = {VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type, 0};
  VkSemaphore made = VK_NULL_HANDLE;
  CHECK(DEVICE_FUNCTION(vkCreateSemaphore)(objects.device, &create, NULL, &made) == VK_SUCCESS);
  return made;
}

static brontes_buffer* new_buffer(void) {
  brontes_error error;
  brontes_buffer* made = NULL;
  CHECK_OK(brontes_buffer_from(device, four, 4, NULL, 0, &made, &error));
  return made;
}

static int holds(const brontes_buffer* buffer, const float* expected) {
  brontes_error error;
  float found[4] = {0};
  CHECK_OK(brontes_buffer_read(buffer, found, 4, 0, &error));
  return memcmp(found, expected, sizeof found) == 0;
}

/* buffer = relu(buffer) * 2, as a batch. */
static brontes_batch* doubling(const brontes_buffer* buffer) {
  brontes_batch* const batch = new_batch();
  const brontes_tensor x = brontes_import_buffer(batch, buffer);
  brontes_store(batch, brontes_scale(batch, brontes_relu(batch, x), 2), buffer);
  return batch;
}

static int names_extension(const brontes_vulkan_features* features, const char* name) {
  for (size_t i = 0; i < features->extension_count; ++i) {
    if (strcmp(features->extensions[i], name) == 0) return 1;
  }
  return 0;
}

/* What the driver offers of subgroup sizes is recommended, and merged where the chain has room for it. */
static void subgroup_sizes(const brontes_vulkan_features* recommended) {
  brontes_error error;
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT offered = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT};
  VkPhysicalDeviceFeatures2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &offered};
  const PFN_vkGetPhysicalDeviceFeatures2 get = (PFN_vkGetPhysicalDeviceFeatures2)objects.get_instance_proc_addr(
      objects.instance, "vkGetPhysicalDeviceFeatures2");
  get(objects.physical_device, &all);
  const int some = recommended->subgroup_size_control || recommended->compute_full_subgroups;
  CHECK(!recommended->compute_full_subgroups || offered.computeFullSubgroups == VK_TRUE);
  CHECK(!recommended->subgroup_size_control || offered.subgroupSizeControl == VK_TRUE);
  CHECK(recommended->compute_full_subgroups || offered.computeFullSubgroups == VK_FALSE);
  CHECK(some == names_extension(recommended, "VK_EXT_subgroup_size_control"));

  brontes_vulkan_features wanted = {0};
  wanted.struct_size = sizeof wanted;
  wanted.subgroup_size_control = wanted.compute_full_subgroups = VK_TRUE;
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT mine = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT};
  VkPhysicalDeviceFeatures2 chain = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  CHECK_OK(brontes_vulkan_merge_features(&wanted, &chain, &error));
  chain.pNext = &mine;
  CHECK_OK(brontes_vulkan_merge_features(&wanted, &chain, &error));
  CHECK(mine.subgroupSizeControl == VK_TRUE && mine.computeFullSubgroups == VK_TRUE);
  /* A program that was compiled before the members were there asks for neither. */
  mine.subgroupSizeControl = mine.computeFullSubgroups = VK_FALSE;
  wanted.struct_size = offsetof(brontes_vulkan_features, subgroup_size_control);
  CHECK_OK(brontes_vulkan_merge_features(&wanted, &chain, &error));
  CHECK(mine.subgroupSizeControl == VK_FALSE && mine.computeFullSubgroups == VK_FALSE);
}

static void features_as_data(void) {
  brontes_error error;
  brontes_vulkan_features required = {0};
  brontes_vulkan_features recommended = {0};
  required.struct_size = recommended.struct_size = sizeof required;
  CHECK_OK(brontes_vulkan_required_features(&required, &error));
  CHECK(required.vulkan12.timelineSemaphore == VK_TRUE && required.extension_count == 0);
  CHECK_OK(brontes_vulkan_recommended_features(objects.get_instance_proc_addr, objects.instance,
                                               objects.physical_device, &recommended, &error));
  CHECK(recommended.vulkan12.timelineSemaphore == VK_TRUE);
  CHECK(recommended.extension_count <= BRONTES_VULKAN_MAX_EXTENSIONS);
  subgroup_sizes(&recommended);

  VkPhysicalDeviceVulkan12Features mine12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceFeatures2 mine = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  mine.features.samplerAnisotropy = VK_TRUE;
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_vulkan_merge_features(&required, &mine, &error));
  CHECK(strstr(error.message, "timelineSemaphore") != NULL);
  mine.pNext = &mine12;
  CHECK_OK(brontes_vulkan_merge_features(&required, &mine, &error));
  CHECK(mine12.timelineSemaphore == VK_TRUE && mine.features.samplerAnisotropy == VK_TRUE);
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_vulkan_merge_features(NULL, &mine, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT,
               brontes_vulkan_recommended_features(NULL, NULL, NULL, &recommended, &error));
}

struct host_lock {
  int held;
  int taken;
  int nested;
};

static void lock_host(void* user_data) {
  struct host_lock* const lock = user_data;
  lock->nested += lock->held;
  lock->held = 1;
  ++lock->taken;
}

static void unlock_host(void* user_data) { ((struct host_lock*)user_data)->held = 0; }

static void adopted_with_a_lock(void) {
  brontes_error error;
  struct host_lock lock = {0, 0, 0};
  VkPhysicalDeviceVulkan12Features features12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  features12.timelineSemaphore = VK_TRUE;
  VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  features.pNext = &features12;
  brontes_vulkan_device external = objects;
  external.features = &features;
  external.api_version = VK_API_VERSION_1_2;
  external.lock = lock_host;
  external.unlock = unlock_host;
  external.lock_user_data = &lock;
  brontes_device_options options = {0};
  options.struct_size = sizeof options;
  options.no_pipeline_cache = 1;
  brontes_device* adopted = NULL;
  CHECK_OK(brontes_vulkan_adopt(&external, &options, &adopted, &error));
  brontes_batch* batch = NULL;
  CHECK_OK(brontes_batch_create(adopted, NULL, &batch, &error));
  const brontes_tensor y = brontes_relu(batch, brontes_upload(batch, four, 4, NULL, 0));
  CHECK_OK(brontes_batch_execute(batch, &error));
  EXPECT(batch, y, 1, 2, 0, 4);
  brontes_batch_destroy(batch);
  brontes_device_destroy(adopted);
  CHECK(lock.taken > 0 && lock.held == 0 && lock.nested == 0);

  external.unlock = NULL;
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_vulkan_adopt(&external, &options, &adopted, &error));
  external.unlock = unlock_host;
  external.api_version = VK_API_VERSION_1_1;
  CHECK_STATUS(BRONTES_ERROR_UNSUPPORTED, brontes_vulkan_adopt(&external, &options, &adopted, &error));
  external.api_version = 0;
  external.extension_count = 1;
  CHECK_STATUS(BRONTES_ERROR_NULL_DATA, brontes_vulkan_adopt(&external, &options, &adopted, &error));
}

static void semaphores_in_and_out(void) {
  brontes_error error;
  brontes_buffer* const buffer = new_buffer();
  brontes_batch* const batch = doubling(buffer);
  VkSemaphore before = new_timeline();
  VkSemaphore after = new_timeline();
  const brontes_vulkan_wait wait = {before, 1, 0, 0};
  const brontes_vulkan_signal signal = {after, 7};
  brontes_vulkan_submit_info info = {0};
  info.struct_size = sizeof info;
  info.waits = &wait;
  info.wait_count = 1;
  info.signals = &signal;
  info.signal_count = 1;
  brontes_submission* submission = NULL;
  CHECK_OK(brontes_vulkan_submit_batch(batch, &info, &submission, &error));
  CHECK(!brontes_submission_ready(submission));
  const VkSemaphoreSignalInfo go = {VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, NULL, before, 1};
  CHECK(DEVICE_FUNCTION(vkSignalSemaphore)(objects.device, &go) == VK_SUCCESS);

  VkSemaphore timeline = VK_NULL_HANDLE;
  uint64_t value = 0;
  CHECK_OK(brontes_vulkan_timeline(submission, &timeline, &value, &error));
  CHECK(timeline != VK_NULL_HANDLE && value > 0);
  const VkSemaphore both[] = {after, timeline};
  const uint64_t values[] = {7, value};
  const VkSemaphoreWaitInfo done = {VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, NULL, 0, 2, both, values};
  CHECK(DEVICE_FUNCTION(vkWaitSemaphores)(objects.device, &done, UINT64_MAX) == VK_SUCCESS);
  CHECK(brontes_submission_ready(submission));
  const float doubled[] = {2, 4, 0, 8};
  CHECK(holds(buffer, doubled));

  /* A program, after what the batch did. */
  brontes_batch* const again = doubling(buffer);
  brontes_program* program = NULL;
  CHECK_OK(brontes_batch_compile(again, &program, &error));
  const brontes_vulkan_signal next = {after, 8};
  brontes_vulkan_submit_info following = {0};
  following.struct_size = sizeof following;
  following.signals = &next;
  following.signal_count = 1;
  following.after = submission;
  brontes_submission* second = NULL;
  CHECK_OK(brontes_vulkan_submit_program(program, &following, &second, &error));
  CHECK_OK(brontes_submission_wait(second, UINT64_MAX, &error));
  const float fourfold[] = {4, 8, 0, 16};
  CHECK(holds(buffer, fourfold));

  info.signals = NULL;
  CHECK_STATUS(BRONTES_ERROR_NULL_DATA, brontes_vulkan_submit_program(program, &info, NULL, &error));
  info.signal_count = 0;
  const brontes_vulkan_wait nothing = {VK_NULL_HANDLE, 1, 0, 0};
  info.waits = &nothing;
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_vulkan_submit_program(program, &info, NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_vulkan_timeline(NULL, &timeline, &value, &error));

  brontes_submission_destroy(submission);
  brontes_submission_destroy(second);
  brontes_program_destroy(program);
  brontes_batch_destroy(again);
  brontes_batch_destroy(batch);
  brontes_buffer_destroy(buffer);
  DEVICE_FUNCTION(vkDestroySemaphore)(objects.device, before, NULL);
  DEVICE_FUNCTION(vkDestroySemaphore)(objects.device, after, NULL);
}

static void command_buffers(void) {
  brontes_error error;
  brontes_buffer* const buffer = new_buffer();
  brontes_batch* const batch = doubling(buffer);
  brontes_program* program = NULL;
  CHECK_OK(brontes_batch_compile(batch, &program, &error));
  CHECK_OK(brontes_vulkan_name_program(program, "doubling", &error));
  CHECK_OK(brontes_vulkan_name_buffer(buffer, "doubled", &error));
  CHECK_STATUS(BRONTES_ERROR_NULL_DATA, brontes_vulkan_name_buffer(buffer, NULL, &error));

  const VkCommandPoolCreateInfo pool_create = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, NULL, 0,
                                               objects.queue_family};
  VkCommandPool pool = VK_NULL_HANDLE;
  CHECK(DEVICE_FUNCTION(vkCreateCommandPool)(objects.device, &pool_create, NULL, &pool) == VK_SUCCESS);
  const VkCommandBufferAllocateInfo allocate = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, NULL, pool,
                                                VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
  VkCommandBuffer commands = VK_NULL_HANDLE;
  CHECK(DEVICE_FUNCTION(vkAllocateCommandBuffers)(objects.device, &allocate, &commands) == VK_SUCCESS);
  const VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, NULL, 0, NULL};
  CHECK(DEVICE_FUNCTION(vkBeginCommandBuffer)(commands, &begin) == VK_SUCCESS);
  brontes_vulkan_record_options options = {0};
  options.struct_size = sizeof options;
  CHECK_OK(brontes_vulkan_record(program, commands, NULL, &error));
  CHECK_OK(brontes_vulkan_record(program, commands, &options, &error));
  CHECK_OK(brontes_vulkan_release(buffer, commands, objects.queue_family, objects.queue_family, &error));
  CHECK_OK(brontes_vulkan_acquire(buffer, commands, objects.queue_family, objects.queue_family, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_vulkan_record(program, NULL, NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_vulkan_release(NULL, commands, 0, 0, &error));
  CHECK(DEVICE_FUNCTION(vkEndCommandBuffer)(commands) == VK_SUCCESS);

  brontes_queue_lock* lock = NULL;
  CHECK_OK(brontes_vulkan_lock_queue(device, &lock, &error));
  VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO};
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands;
  CHECK(DEVICE_FUNCTION(vkQueueSubmit)(objects.queue, 1, &submit, VK_NULL_HANDLE) == VK_SUCCESS);
  CHECK(DEVICE_FUNCTION(vkQueueWaitIdle)(objects.queue) == VK_SUCCESS);
  brontes_vulkan_unlock_queue(lock);
  const float fourfold[] = {4, 8, 0, 16};
  CHECK(holds(buffer, fourfold));

  DEVICE_FUNCTION(vkDestroyCommandPool)(objects.device, pool, NULL);
  brontes_program_destroy(program);
  brontes_batch_destroy(batch);
  brontes_buffer_destroy(buffer);
}

static void buffers_imported(void) {
  brontes_error error;
  const VkDeviceSize alignment = brontes_vulkan_import_alignment(device);
  CHECK(alignment >= 16 && brontes_vulkan_import_alignment(NULL) == 0);

  /* One of the library's own stands in for a buffer of the program's. */
  brontes_buffer* lent = NULL;
  const uint64_t elements = alignment / sizeof(float) + 4;
  CHECK_OK(brontes_vulkan_create_buffer(device, &elements, 1, BRONTES_DTYPE_F32, VK_BUFFER_USAGE_VERTEX_BUFFER_BIT,
                                        &lent, &error));
  CHECK_OK(brontes_buffer_write(lent, four, 4, alignment / sizeof(float), &error));
  brontes_vulkan_region region = {0};
  region.struct_size = sizeof region;
  CHECK_OK(brontes_vulkan_buffer_region(lent, &region, &error));
  brontes_vulkan_buffer external = {0};
  external.struct_size = sizeof external;
  external.buffer = region.buffer;
  external.buffer_bytes = region.offset + region.bytes;
  external.offset = region.offset + alignment;
  external.usage =
      VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  brontes_buffer* imported = NULL;
  CHECK_OK(brontes_vulkan_import_buffer(device, &external, BRONTES_SHAPE(4), BRONTES_DTYPE_F32, &imported, &error));
  brontes_submission* use = NULL;
  CHECK_OK(brontes_vulkan_last_use(imported, &use, &error));
  CHECK(brontes_submission_ready(use));
  brontes_submission_destroy(use);

  brontes_batch* const batch = doubling(imported);
  CHECK_OK(brontes_batch_submit(batch, NULL, &error));
  CHECK_OK(brontes_vulkan_last_use(imported, &use, &error));
  CHECK_OK(brontes_submission_wait(use, UINT64_MAX, &error));
  brontes_submission_destroy(use);
  float found[4] = {0};
  CHECK_OK(brontes_buffer_read(lent, found, 4, alignment / sizeof(float), &error));
  CHECK(found[0] == 2 && found[1] == 4 && found[2] == 0 && found[3] == 8);

  brontes_buffer* refused = imported;
  external.usage = VK_BUFFER_USAGE_VERTEX_BUFFER_BIT;
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT,
               brontes_vulkan_import_buffer(device, &external, BRONTES_SHAPE(4), BRONTES_DTYPE_F32, &refused, &error));
  CHECK(refused == NULL && strstr(error.message, "STORAGE_BUFFER") != NULL);
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT,
               brontes_vulkan_import_buffer(device, NULL, BRONTES_SHAPE(4), BRONTES_DTYPE_F32, &refused, &error));

  brontes_batch_destroy(batch);
  brontes_buffer_destroy(imported);
  brontes_buffer_destroy(lent);
}

static void host_memory(void) {
  brontes_error error;
  brontes_buffer* buffer = NULL;
  const size_t alignment = (size_t)brontes_vulkan_host_memory_alignment(device);
  if (alignment == 0) {
    float data[4] = {0};
    CHECK_STATUS(BRONTES_ERROR_UNSUPPORTED,
                 brontes_vulkan_import_host_memory(device, data, sizeof data, BRONTES_SHAPE(4), BRONTES_DTYPE_F32,
                                                   &buffer, &error));
    return;
  }
  char* const block = malloc(2 * alignment);
  float* const data = (float*)(block + (alignment - (uintptr_t)block % alignment) % alignment);
  memcpy(data, four, sizeof four);
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT,
               brontes_vulkan_import_host_memory(device, data + 1, alignment, BRONTES_SHAPE(4), BRONTES_DTYPE_F32,
                                                 &buffer, &error));
  const brontes_status status =
      brontes_vulkan_import_host_memory(device, data, alignment, BRONTES_SHAPE(4), BRONTES_DTYPE_F32, &buffer, &error);
  CHECK(status == BRONTES_OK || status == BRONTES_ERROR_UNSUPPORTED); /* a driver may refuse the pages */
  if (status == BRONTES_OK) {
    brontes_batch* const batch = doubling(buffer);
    CHECK_OK(brontes_batch_execute(batch, &error));
    CHECK(data[0] == 2 && data[1] == 4 && data[2] == 0 && data[3] == 8);
    brontes_batch_destroy(batch);
  }
  brontes_buffer_destroy(buffer);
  free(block);
}

static void file_descriptors(void) {
  brontes_error error;
  brontes_buffer* exportable = NULL;
  const brontes_status status =
      brontes_vulkan_create_exportable_buffer(device, BRONTES_SHAPE(4), BRONTES_DTYPE_F32, 0, &exportable, &error);
  CHECK(status == BRONTES_OK || status == BRONTES_ERROR_UNSUPPORTED);
  brontes_vulkan_memory_fd memory = {0};
  memory.struct_size = sizeof memory;
  if (status == BRONTES_OK) {
    CHECK_OK(brontes_buffer_write(exportable, four, 4, 0, &error));
    CHECK_OK(brontes_vulkan_export_fd(exportable, &memory, &error));
    brontes_buffer* imported = NULL;
    CHECK_OK(brontes_vulkan_import_fd(device, &memory, BRONTES_SHAPE(4), BRONTES_DTYPE_F32, &imported, &error));
    CHECK(holds(imported, four));
    brontes_buffer_destroy(imported);
  }
  brontes_buffer* const plain = new_buffer();
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_vulkan_export_fd(plain, &memory, &error));
  brontes_buffer* refused = NULL;
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT,
               brontes_vulkan_import_fd(device, NULL, BRONTES_SHAPE(4), BRONTES_DTYPE_F32, &refused, &error));
  brontes_buffer_destroy(plain);
  brontes_buffer_destroy(exportable);
}

void sharing_tests(void) {
  look_at_device();
  run("features and extensions are data", features_as_data);
  run("a device is adopted with the program's own lock", adopted_with_a_lock);
  run("runs wait for semaphores and signal others", semaphores_in_and_out);
  run("runs are recorded into the program's command buffers", command_buffers);
  run("a Vulkan buffer is imported", buffers_imported);
  run("host memory is imported", host_memory);
  run("memory is exported and imported by file descriptors", file_descriptors);
}
