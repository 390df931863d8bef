#include "host.hpp"

#include <cstring>

namespace brontes::test {

HostVulkan::HostVulkan(const vulkan::Handles& of) : handles(of) {
#define LOAD(function)                                                                                      \
  function = reinterpret_cast<PFN_##function>(handles.get_instance_proc_addr(handles.instance, #function)); \
  REQUIRE(function != nullptr);
  HOST_FUNCTIONS(LOAD)
#undef LOAD
  VkCommandPoolCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  create.queueFamilyIndex = handles.queue_family;
  REQUIRE(vkCreateCommandPool(handles.device, &create, nullptr, &pool_) == VK_SUCCESS);
}

HostVulkan::~HostVulkan() {
  vkDeviceWaitIdle(handles.device);
  for (VkSemaphore semaphore : semaphores_) vkDestroySemaphore(handles.device, semaphore, nullptr);
  vkDestroyCommandPool(handles.device, pool_, nullptr);
}

VkSemaphore HostVulkan::binary() {
  VkSemaphoreCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  semaphores_.emplace_back();
  REQUIRE(vkCreateSemaphore(handles.device, &create, nullptr, &semaphores_.back()) == VK_SUCCESS);
  return semaphores_.back();
}

VkSemaphore HostVulkan::timeline(std::uint64_t value) {
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  type.initialValue = value;
  VkSemaphoreCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  create.pNext = &type;
  semaphores_.emplace_back();
  REQUIRE(vkCreateSemaphore(handles.device, &create, nullptr, &semaphores_.back()) == VK_SUCCESS);
  return semaphores_.back();
}

VkCommandBuffer HostVulkan::begin(VkCommandBufferUsageFlags flags) {
  VkCommandBufferAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  allocate.commandPool = pool_;
  allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocate.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  REQUIRE(vkAllocateCommandBuffers(handles.device, &allocate, &commands) == VK_SUCCESS);
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = flags;
  REQUIRE(vkBeginCommandBuffer(commands, &begin) == VK_SUCCESS);
  return commands;
}

void HostVulkan::end(VkCommandBuffer commands) { REQUIRE(vkEndCommandBuffer(commands) == VK_SUCCESS); }

void HostVulkan::barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkAccessFlags writes,
                         VkPipelineStageFlags to, VkAccessFlags accesses) {
  VkMemoryBarrier memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = writes;
  memory.dstAccessMask = accesses;
  vkCmdPipelineBarrier(commands, from, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

void HostVulkan::fill(VkCommandBuffer commands, const vulkan::BufferRegion& region, float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  vkCmdFillBuffer(commands, region.buffer, region.offset, region.bytes, bits);
}

VkResult HostVulkan::submit(VkCommandBuffer commands, const std::vector<Wait>& waits,
                            const std::vector<Wait>& signals) {
  std::vector<VkSemaphore> wait_semaphores, signal_semaphores;
  std::vector<std::uint64_t> wait_values, signal_values;
  std::vector<VkPipelineStageFlags> stages(waits.size(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  for (const Wait& wait : waits) {
    wait_semaphores.push_back(wait.semaphore);
    wait_values.push_back(wait.value);
  }
  for (const Wait& signal : signals) {
    signal_semaphores.push_back(signal.semaphore);
    signal_values.push_back(signal.value);
  }
  VkTimelineSemaphoreSubmitInfo values{};
  values.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  values.waitSemaphoreValueCount = static_cast<std::uint32_t>(waits.size());
  values.pWaitSemaphoreValues = wait_values.data();
  values.signalSemaphoreValueCount = static_cast<std::uint32_t>(signals.size());
  values.pSignalSemaphoreValues = signal_values.data();
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.pNext = &values;
  info.waitSemaphoreCount = values.waitSemaphoreValueCount;
  info.pWaitSemaphores = wait_semaphores.data();
  info.pWaitDstStageMask = stages.data();
  info.commandBufferCount = commands != VK_NULL_HANDLE ? 1 : 0;
  info.pCommandBuffers = &commands;
  info.signalSemaphoreCount = values.signalSemaphoreValueCount;
  info.pSignalSemaphores = signal_semaphores.data();
  return vkQueueSubmit(handles.queue, 1, &info, VK_NULL_HANDLE);
}

std::uint64_t HostVulkan::counter(VkSemaphore semaphore) {
  std::uint64_t value = 0;
  REQUIRE(vkGetSemaphoreCounterValue(handles.device, semaphore, &value) == VK_SUCCESS);
  return value;
}

bool HostVulkan::reaches(VkSemaphore semaphore, std::uint64_t value) {
  VkSemaphoreWaitInfo wait{};
  wait.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  wait.semaphoreCount = 1;
  wait.pSemaphores = &semaphore;
  wait.pValues = &value;
  return vkWaitSemaphores(handles.device, &wait, std::uint64_t{10'000'000'000}) == VK_SUCCESS &&
         counter(semaphore) == value;
}

void HostVulkan::signal(VkSemaphore semaphore, std::uint64_t value) {
  VkSemaphoreSignalInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO;
  info.semaphore = semaphore;
  info.value = value;
  REQUIRE(vkSignalSemaphore(handles.device, &info) == VK_SUCCESS);
}

namespace {

VKAPI_ATTR VkBool32 VKAPI_CALL forward(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                       const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  (*static_cast<const MessageCallback*>(user))(Severity::error, data->pMessage);
  return VK_FALSE;
}

}  // namespace

Host::Host(const HostOptions& options) : on_message_(checked_options().on_message) {
  external.get_instance_proc_addr =
      options.get != nullptr ? options.get : vulkan::handles(shared_device()).get_instance_proc_addr;
  const auto create_instance = function<PFN_vkCreateInstance>("vkCreateInstance");
  REQUIRE(create_instance != nullptr);
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.apiVersion = options.api_version;
  VkInstanceCreateInfo instance{};
  instance.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  instance.pApplicationInfo = &application;
  const bool validation = options.validation && checked_options().validation == Toggle::on;
  const char* const layers[] = {"VK_LAYER_KHRONOS_validation"};
  std::vector<const char*> extensions;
  if (options.debug_utils) extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  const VkValidationFeatureEnableEXT enables[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  VkValidationFeaturesEXT checks{};
  checks.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
  checks.enabledValidationFeatureCount = 1;
  checks.pEnabledValidationFeatures = enables;
  if (validation) {
    instance.enabledLayerCount = 1;
    instance.ppEnabledLayerNames = layers;
    instance.pNext = &checks;
    extensions.push_back(VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME);
  }
  instance.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  instance.ppEnabledExtensionNames = extensions.data();
  REQUIRE(create_instance(&instance, nullptr, &external.instance) == VK_SUCCESS);
  if (validation && options.debug_utils) {
    VkDebugUtilsMessengerCreateInfoEXT messenger{};
    messenger.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
    messenger.messageSeverity =
        VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
    messenger.pfnUserCallback = forward;
    messenger.pUserData = &on_message_;
    const auto create = function<PFN_vkCreateDebugUtilsMessengerEXT>("vkCreateDebugUtilsMessengerEXT");
    REQUIRE(create(external.instance, &messenger, nullptr, &messenger_) == VK_SUCCESS);
  }

  std::uint32_t count = 1;
  REQUIRE(function<PFN_vkEnumeratePhysicalDevices>("vkEnumeratePhysicalDevices")(external.instance, &count,
                                                                                 &external.physical_device) >= 0);
  REQUIRE(count == 1);
  std::uint32_t family_count = 0;
  const auto families =
      function<PFN_vkGetPhysicalDeviceQueueFamilyProperties>("vkGetPhysicalDeviceQueueFamilyProperties");
  families(external.physical_device, &family_count, nullptr);
  std::vector<VkQueueFamilyProperties> properties(family_count);
  families(external.physical_device, &family_count, properties.data());
  while ((properties.at(external.queue_family).queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) ++external.queue_family;

  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = external.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkPhysicalDeviceVulkan12Features alone{};
  alone.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  alone.timelineSemaphore = VK_TRUE;
  VkDeviceCreateInfo device{};
  device.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  if (options.features != nullptr) {
    device.pNext = options.features;
  } else if (options.timeline) {
    device.pNext = &alone;
  }
  device.queueCreateInfoCount = 1;
  device.pQueueCreateInfos = &queue;
  device.enabledExtensionCount = static_cast<std::uint32_t>(options.extensions.size());
  device.ppEnabledExtensionNames = options.extensions.data();
  REQUIRE(function<PFN_vkCreateDevice>("vkCreateDevice")(external.physical_device, &device, nullptr,
                                                         &external.device) == VK_SUCCESS);
  function<PFN_vkGetDeviceQueue>("vkGetDeviceQueue")(external.device, external.queue_family, 0, &external.queue);
}

Host::~Host() {
  if (external.device != VK_NULL_HANDLE) function<PFN_vkDestroyDevice>("vkDestroyDevice")(external.device, nullptr);
  if (messenger_ != VK_NULL_HANDLE) {
    function<PFN_vkDestroyDebugUtilsMessengerEXT>("vkDestroyDebugUtilsMessengerEXT")(external.instance, messenger_,
                                                                                     nullptr);
  }
  if (external.instance != VK_NULL_HANDLE) {
    function<PFN_vkDestroyInstance>("vkDestroyInstance")(external.instance, nullptr);
  }
}

vulkan::Handles Host::handles() const {
  return {external.get_instance_proc_addr,
          external.instance,
          external.physical_device,
          external.device,
          external.queue,
          external.queue_family};
}

}  // namespace brontes::test
