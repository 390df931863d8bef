// vulkan.hpp: the objects behind a Device, and a Device on objects of the caller's.
#include "fixture.hpp"

#include <brontes/vulkan.hpp>

#include <cstring>
#include <optional>

namespace brontes::test {
namespace {

template <class Function>
Function instance_function(PFN_vkGetInstanceProcAddr get, VkInstance instance, const char* name) {
  return reinterpret_cast<Function>(get(instance, name));
}
#define INSTANCE_FUNCTION(handles, name) \
  instance_function<PFN_##name>((handles).get_instance_proc_addr, (handles).instance, #name)

// An instance and a device as an application would make them, without Brontes.
class OwnDevice {
 public:
  OwnDevice(PFN_vkGetInstanceProcAddr get, bool timeline) {
    external.get_instance_proc_addr = get;
    const auto create_instance = instance_function<PFN_vkCreateInstance>(get, nullptr, "vkCreateInstance");
    REQUIRE(create_instance != nullptr);
    VkApplicationInfo application{};
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.apiVersion = VK_API_VERSION_1_2;
    VkInstanceCreateInfo instance_info{};
    instance_info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    instance_info.pApplicationInfo = &application;
    REQUIRE(create_instance(&instance_info, nullptr, &external.instance) == VK_SUCCESS);

    std::uint32_t count = 1;
    const VkResult listed =
        INSTANCE_FUNCTION(external, vkEnumeratePhysicalDevices)(external.instance, &count, &external.physical_device);
    REQUIRE(listed >= 0);
    REQUIRE(count == 1);
    std::uint32_t family_count = 0;
    const auto families = INSTANCE_FUNCTION(external, vkGetPhysicalDeviceQueueFamilyProperties);
    families(external.physical_device, &family_count, nullptr);
    std::vector<VkQueueFamilyProperties> properties(family_count);
    families(external.physical_device, &family_count, properties.data());
    while ((properties.at(external.queue_family).queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) ++external.queue_family;

    const float priority = 1.0f;
    VkDeviceQueueCreateInfo queue_info{};
    queue_info.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue_info.queueFamilyIndex = external.queue_family;
    queue_info.queueCount = 1;
    queue_info.pQueuePriorities = &priority;
    VkPhysicalDeviceVulkan12Features features{};
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    features.timelineSemaphore = timeline ? VK_TRUE : VK_FALSE;
    VkDeviceCreateInfo device_info{};
    device_info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    device_info.pNext = &features;
    device_info.queueCreateInfoCount = 1;
    device_info.pQueueCreateInfos = &queue_info;
    REQUIRE(INSTANCE_FUNCTION(external, vkCreateDevice)(external.physical_device, &device_info, nullptr,
                                                        &external.device) == VK_SUCCESS);
    INSTANCE_FUNCTION(external, vkGetDeviceQueue)(external.device, external.queue_family, 0, &external.queue);
  }
  ~OwnDevice() {
    if (external.device != VK_NULL_HANDLE) INSTANCE_FUNCTION(external, vkDestroyDevice)(external.device, nullptr);
    if (external.instance != VK_NULL_HANDLE) INSTANCE_FUNCTION(external, vkDestroyInstance)(external.instance, nullptr);
  }
  OwnDevice(const OwnDevice&) = delete;
  OwnDevice& operator=(const OwnDevice&) = delete;

  vulkan::ExternalDevice external;
};

}  // namespace

TEST_CASE_METHOD(DeviceTest, "the handles of a device are those of a live Vulkan device", "[vulkan]") {
  const vulkan::Handles handles = vulkan::handles(shared_device());
  REQUIRE(handles.get_instance_proc_addr != nullptr);
  REQUIRE(handles.instance != VK_NULL_HANDLE);
  REQUIRE(handles.physical_device != VK_NULL_HANDLE);
  REQUIRE(handles.device != VK_NULL_HANDLE);
  REQUIRE(handles.queue != VK_NULL_HANDLE);
  VkPhysicalDeviceProperties properties{};
  INSTANCE_FUNCTION(handles, vkGetPhysicalDeviceProperties)(handles.physical_device, &properties);
  CHECK(shared_device().info().name == properties.deviceName);
  VkQueue queue = VK_NULL_HANDLE;
  INSTANCE_FUNCTION(handles, vkGetDeviceQueue)(handles.device, handles.queue_family, 0, &queue);
  CHECK(queue == handles.queue);
}

TEST_CASE_METHOD(DeviceTest, "a validation message reaches the callback", "[vulkan]") {
  // Without this, the check after every test case could be checking nothing.
  const vulkan::Handles handles = vulkan::handles(shared_device());
  if (checked_options().validation == Toggle::off) SKIP("BRONTES_VALIDATION=0");
  CHECK(take_messages().empty());
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = 0;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  VkBuffer buffer = VK_NULL_HANDLE;
  const VkResult made = INSTANCE_FUNCTION(handles, vkCreateBuffer)(handles.device, &info, nullptr, &buffer);
  const std::vector<std::string> messages = take_messages();
  REQUIRE_FALSE(messages.empty());
  CHECK(contains(messages[0], "VUID-VkBufferCreateInfo-size"));
  if (made == VK_SUCCESS) INSTANCE_FUNCTION(handles, vkDestroyBuffer)(handles.device, buffer, nullptr);
  (void)take_messages();
}

TEST_CASE_METHOD(DeviceTest, "the queue can be locked and used by the application", "[vulkan]") {
  const vulkan::Handles handles = vulkan::handles(shared_device());
  {
    const auto lock = vulkan::lock_queue(shared_device());
    CHECK(lock.owns_lock());
    CHECK(INSTANCE_FUNCTION(handles, vkQueueSubmit)(handles.queue, 0, nullptr, VK_NULL_HANDLE) == VK_SUCCESS);
    CHECK(INSTANCE_FUNCTION(handles, vkQueueWaitIdle)(handles.queue) == VK_SUCCESS);
  }
  check_device_works(shared_device());
}

TEST_CASE_METHOD(DeviceTest, "the application's own commands can fill a buffer that a batch then reads", "[vulkan]") {
  const Device& device = shared_device();
  const Buffer buffer = Buffer::create(device, {100}).value();
  const vulkan::BufferRegion region = vulkan::region(buffer);
  REQUIRE(region.buffer != VK_NULL_HANDLE);
  CHECK(region.bytes == 400);
  const vulkan::Handles h = vulkan::handles(device);

  VkCommandPoolCreateInfo pool_info{};
  pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool_info.queueFamilyIndex = h.queue_family;
  VkCommandPool pool = VK_NULL_HANDLE;
  REQUIRE(INSTANCE_FUNCTION(h, vkCreateCommandPool)(h.device, &pool_info, nullptr, &pool) == VK_SUCCESS);
  VkCommandBufferAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  allocate.commandPool = pool;
  allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocate.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  REQUIRE(INSTANCE_FUNCTION(h, vkAllocateCommandBuffers)(h.device, &allocate, &commands) == VK_SUCCESS);
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  REQUIRE(INSTANCE_FUNCTION(h, vkBeginCommandBuffer)(commands, &begin) == VK_SUCCESS);
  const float value = 2.5f;
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  INSTANCE_FUNCTION(h, vkCmdFillBuffer)(commands, region.buffer, region.offset, region.bytes, bits);
  REQUIRE(INSTANCE_FUNCTION(h, vkEndCommandBuffer)(commands) == VK_SUCCESS);
  {
    const auto lock = vulkan::lock_queue(device);
    VkSubmitInfo submit{};
    submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    REQUIRE(INSTANCE_FUNCTION(h, vkQueueSubmit)(h.queue, 1, &submit, VK_NULL_HANDLE) == VK_SUCCESS);
    REQUIRE(INSTANCE_FUNCTION(h, vkQueueWaitIdle)(h.queue) == VK_SUCCESS);
  }
  INSTANCE_FUNCTION(h, vkDestroyCommandPool)(h.device, pool, nullptr);

  Batch batch(device);
  const Tensor total = batch.sum(batch.import_buffer(buffer));
  CHECK(run(batch, total) == std::vector<float>{250});
}

TEST_CASE_METHOD(DeviceTest, "a device of the application's can be adopted, and is left alone afterwards", "[vulkan]") {
  const vulkan::Handles shared = vulkan::handles(shared_device());
  OwnDevice own(shared.get_instance_proc_addr, true);
  {
    const Result<Device> adopted = vulkan::adopt(own.external, checked_options());
    REQUIRE_OK(adopted.error());
    const vulkan::Handles handles = vulkan::handles(*adopted);
    CHECK(handles.device == own.external.device);
    CHECK(handles.queue == own.external.queue);
    CHECK(handles.instance == own.external.instance);
    CHECK(adopted->info().suitable);
    check_device_works(*adopted);
    Batch batch(*adopted);
    const Tensor a = batch.fill(1, {20, 30});
    const Tensor b = batch.fill(2, {30, 5});
    CHECK(run(batch, batch.matmul(a, b)) == std::vector<float>(100, 60.0f));
  }
  CHECK(INSTANCE_FUNCTION(own.external, vkDeviceWaitIdle)(own.external.device) == VK_SUCCESS);
  // And again: nothing of it was used up.
  const Result<Device> again = vulkan::adopt(own.external, checked_options());
  REQUIRE_OK(again.error());
  check_device_works(*again);
}

TEST_CASE_METHOD(DeviceTest, "adopting null handles is refused", "[vulkan]") {
  const vulkan::Handles h = vulkan::handles(shared_device());
  const vulkan::ExternalDevice whole{
      h.get_instance_proc_addr, h.instance, h.physical_device, h.device, h.queue, h.queue_family};
  for (int missing = 0; missing < 5; ++missing) {
    vulkan::ExternalDevice external = whole;
    if (missing == 0) external.get_instance_proc_addr = nullptr;
    if (missing == 1) external.instance = VK_NULL_HANDLE;
    if (missing == 2) external.physical_device = VK_NULL_HANDLE;
    if (missing == 3) external.device = VK_NULL_HANDLE;
    if (missing == 4) external.queue = VK_NULL_HANDLE;
    INFO("handle " << missing);
    CHECK(vulkan::adopt(external, checked_options()).error().code == Errc::invalid_argument);
  }
  vulkan::ExternalDevice family = whole;
  family.queue_family = 1000;
  CHECK(vulkan::adopt(family, checked_options()).error().code == Errc::invalid_argument);
}

}  // namespace brontes::test
