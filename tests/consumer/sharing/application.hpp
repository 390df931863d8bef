// An application that has a Vulkan device of its own, and what it counts of Brontes' calls. For the programs beside
// this file, which know nothing of Brontes but what is installed.
#pragma once

#define VK_NO_PROTOTYPES
#include <brontes/brontes.hpp>
#include <brontes/vulkan.hpp>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <dlfcn.h>

namespace app {

inline int failures = 0;

inline bool check(bool holds, const char* what, const char* file, int line) {
  if (!holds) {
    ++failures;
    std::fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
  }
  return holds;
}
inline bool check_ok(const brontes::Error& error, const char* what, const char* file, int line) {
  if (error) std::fprintf(stderr, "%s\n", error.message.c_str());
  return check(!error, what, file, line);
}
#define CHECK(...) ::app::check((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
#define CHECK_OK(...) ::app::check_ok((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)

inline bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

inline bool holds(const brontes::Buffer& buffer, float value) {
  const auto found = buffer.read();
  if (!CHECK_OK(found.error())) return false;
  for (float f : *found) {
    if (f != value) {
      std::fprintf(stderr, "%g instead of %g\n", static_cast<double>(f), static_cast<double>(value));
      return false;
    }
  }
  return true;
}

// --- The function table that Brontes is given -------------------------------------------------------

template <class Tag, class Function>
struct Counted;
template <class Tag, class Result, class... Arguments>
struct Counted<Tag, Result(VKAPI_PTR*)(Arguments...)> {
  static inline Result(VKAPI_PTR* next)(Arguments...) = nullptr;
  static inline std::atomic<std::uint64_t> calls{0};
  static VKAPI_ATTR Result VKAPI_CALL call(Arguments... arguments) {
    ++calls;
    return next(arguments...);
  }
};

// Everything that can wait, and what is worth counting besides.
#define COUNTED_FUNCTIONS(X)  \
  X(vkCreateComputePipelines) \
  X(vkDeviceWaitIdle)         \
  X(vkQueueSubmit)            \
  X(vkQueueWaitIdle)          \
  X(vkWaitForFences)          \
  X(vkWaitSemaphores)
#define COUNT(function)     \
  struct Tag_##function {}; \
  using Count_##function = Counted<Tag_##function, PFN_##function>;
COUNTED_FUNCTIONS(COUNT)
#undef COUNT

inline std::uint64_t host_waits() {
  return Count_vkDeviceWaitIdle::calls + Count_vkQueueWaitIdle::calls + Count_vkWaitForFences::calls +
         Count_vkWaitSemaphores::calls;
}

inline std::mutex text_mutex;
inline std::vector<std::string> labels, names;
inline PFN_vkGetInstanceProcAddr next_instance_proc = nullptr;
inline PFN_vkGetDeviceProcAddr next_device_proc = nullptr;
inline PFN_vkCmdBeginDebugUtilsLabelEXT next_label = nullptr;
inline PFN_vkSetDebugUtilsObjectNameEXT next_name = nullptr;

inline VKAPI_ATTR void VKAPI_CALL note_label(VkCommandBuffer commands, const VkDebugUtilsLabelEXT* label) {
  {
    const std::lock_guard<std::mutex> lock(text_mutex);
    labels.emplace_back(label->pLabelName);
  }
  next_label(commands, label);
}

inline VKAPI_ATTR VkResult VKAPI_CALL note_name(VkDevice device, const VkDebugUtilsObjectNameInfoEXT* name) {
  {
    const std::lock_guard<std::mutex> lock(text_mutex);
    if (name->pObjectName != nullptr) names.emplace_back(name->pObjectName);
  }
  return next_name(device, name);
}

inline bool has(const std::vector<std::string>& all, const char* part) {
  for (const std::string& text : all) {
    if (contains(text, part)) return true;
  }
  return false;
}

inline PFN_vkVoidFunction wrapped(const char* name, PFN_vkVoidFunction found) {
  if (found == nullptr) return nullptr;
#define WRAP(function)                                                    \
  if (std::strcmp(name, #function) == 0) {                                \
    Count_##function::next = reinterpret_cast<PFN_##function>(found);     \
    return reinterpret_cast<PFN_vkVoidFunction>(&Count_##function::call); \
  }
  COUNTED_FUNCTIONS(WRAP)
#undef WRAP
  if (std::strcmp(name, "vkCmdBeginDebugUtilsLabelEXT") == 0) {
    next_label = reinterpret_cast<PFN_vkCmdBeginDebugUtilsLabelEXT>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(&note_label);
  }
  if (std::strcmp(name, "vkSetDebugUtilsObjectNameEXT") == 0) {
    next_name = reinterpret_cast<PFN_vkSetDebugUtilsObjectNameEXT>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(&note_name);
  }
  return found;
}

inline VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_proc(VkDevice device, const char* name) {
  return wrapped(name, next_device_proc(device, name));
}

inline VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_proc(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction found = next_instance_proc(instance, name);
  if (found != nullptr && std::strcmp(name, "vkGetDeviceProcAddr") == 0) {
    next_device_proc = reinterpret_cast<PFN_vkGetDeviceProcAddr>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(&device_proc);
  }
  return wrapped(name, found);
}

// --- The application's own Vulkan -------------------------------------------------------------------

inline int messages = 0;

inline VKAPI_ATTR VkBool32 VKAPI_CALL on_validation(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                                    VkDebugUtilsMessageTypeFlagsEXT,
                                                    const VkDebugUtilsMessengerCallbackDataEXT* data, void*) {
  ++messages;
  std::fprintf(stderr, "%s\n", data->pMessage);
  return VK_FALSE;
}

#define APPLICATION_FUNCTIONS(X)   \
  X(vkAllocateCommandBuffers)      \
  X(vkAllocateMemory)              \
  X(vkBeginCommandBuffer)          \
  X(vkBindBufferMemory)            \
  X(vkCmdBindVertexBuffers)        \
  X(vkCmdCopyBuffer)               \
  X(vkCmdFillBuffer)               \
  X(vkCmdPipelineBarrier)          \
  X(vkCreateBuffer)                \
  X(vkCreateCommandPool)           \
  X(vkCreateSemaphore)             \
  X(vkDestroyBuffer)               \
  X(vkDestroyCommandPool)          \
  X(vkDestroyDevice)               \
  X(vkDestroySemaphore)            \
  X(vkDeviceWaitIdle)              \
  X(vkEndCommandBuffer)            \
  X(vkFreeMemory)                  \
  X(vkGetBufferMemoryRequirements) \
  X(vkGetDeviceQueue)              \
  X(vkMapMemory)                   \
  X(vkQueueSubmit)                 \
  X(vkQueueWaitIdle)

struct Options {
  std::uint32_t api_version = VK_API_VERSION_1_2;
  bool recommended = true;  // features and extensions; otherwise what is required, or nothing before Vulkan 1.2
};

/// Instance, device and queue. With BRONTES_VALIDATION=1 the validation layer looks on, synchronization included.
class Application {
 public:
  explicit Application(const Options& options = {}) {
    void* const library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) die("there is no Vulkan loader");
    next_instance_proc = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
    make_instance(options);
    std::uint32_t count = 1;
    if (get<PFN_vkEnumeratePhysicalDevices>("vkEnumeratePhysicalDevices")(instance, &count, &gpu) < 0 || count == 0)
      die("there is no device");
    make_device(options);
#define LOAD(function)                                                             \
  function = reinterpret_cast<PFN_##function>(device_function(device, #function)); \
  if (function == nullptr) die(#function);
    APPLICATION_FUNCTIONS(LOAD)
#undef LOAD
    vkGetDeviceQueue(device, family, 0, &queue);
    VkCommandPoolCreateInfo create{};
    create.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    create.queueFamilyIndex = family;
    require(vkCreateCommandPool(device, &create, nullptr, &pool_), "vkCreateCommandPool");
  }
  ~Application() {
    vkDeviceWaitIdle(device);
    for (VkSemaphore semaphore : semaphores_) vkDestroySemaphore(device, semaphore, nullptr);
    vkDestroyCommandPool(device, pool_, nullptr);
    vkDestroyDevice(device, nullptr);
    if (messenger_ != VK_NULL_HANDLE) {
      get<PFN_vkDestroyDebugUtilsMessengerEXT>("vkDestroyDebugUtilsMessengerEXT")(instance, messenger_, nullptr);
    }
    get<PFN_vkDestroyInstance>("vkDestroyInstance")(instance, nullptr);
  }
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  /// For adopt(), with the counting function table.
  brontes::vulkan::ExternalDevice external() const {
    brontes::vulkan::ExternalDevice to;
    to.get_instance_proc_addr = instance_proc;
    to.instance = instance;
    to.physical_device = gpu;
    to.device = device;
    to.queue = queue;
    to.queue_family = family;
    to.features = &features;
    to.extensions = extensions;
    return to;
  }
  brontes::Device adopt(const brontes::vulkan::ExternalDevice& from, brontes::DeviceOptions options = {}) const {
    options.pipeline_cache.enabled = false;
    auto made = brontes::vulkan::adopt(from, options);
    if (!made) die(made.error().message);
    return std::move(*made);
  }
  brontes::Device adopt() const { return adopt(external()); }

  bool has_extension(const char* name) const {
    for (const char* own : extensions) {
      if (std::strcmp(own, name) == 0) return true;
    }
    return false;
  }

  VkSemaphore semaphore(VkSemaphoreType type) {
    VkSemaphoreTypeCreateInfo kind{};
    kind.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
    kind.semaphoreType = type;
    VkSemaphoreCreateInfo create{};
    create.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
    create.pNext = &kind;
    semaphores_.emplace_back();
    require(vkCreateSemaphore(device, &create, nullptr, &semaphores_.back()), "vkCreateSemaphore");
    return semaphores_.back();
  }

  VkCommandBuffer begin(VkCommandBufferUsageFlags flags = 0) {
    VkCommandBufferAllocateInfo allocate{};
    allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    allocate.commandPool = pool_;
    allocate.commandBufferCount = 1;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    require(vkAllocateCommandBuffers(device, &allocate, &commands), "vkAllocateCommandBuffers");
    VkCommandBufferBeginInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    info.flags = flags;
    require(vkBeginCommandBuffer(commands, &info), "vkBeginCommandBuffer");
    return commands;
  }
  void end(VkCommandBuffer commands) { require(vkEndCommandBuffer(commands), "vkEndCommandBuffer"); }

  void fill(VkCommandBuffer commands, const brontes::Buffer& buffer, float value) {
    const brontes::vulkan::BufferRegion region = brontes::vulkan::region(buffer);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    vkCmdFillBuffer(commands, region.buffer, region.offset, region.bytes, bits);
  }
  void copy(VkCommandBuffer commands, const brontes::Buffer& from, const brontes::Buffer& to, VkDeviceSize at = 0) {
    const brontes::vulkan::BufferRegion source = brontes::vulkan::region(from), target = brontes::vulkan::region(to);
    const VkBufferCopy part{source.offset, target.offset + at, source.bytes};
    vkCmdCopyBuffer(commands, source.buffer, target.buffer, 1, &part);
  }
  void barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkAccessFlags writes, VkPipelineStageFlags to,
               VkAccessFlags accesses) {
    VkMemoryBarrier memory{};
    memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    memory.srcAccessMask = writes;
    memory.dstAccessMask = accesses;
    vkCmdPipelineBarrier(commands, from, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
  }

  struct Point {
    VkSemaphore semaphore;
    std::uint64_t value;  // of a timeline
  };
  void submit(const brontes::Device& brontes, VkCommandBuffer commands, const std::vector<Point>& waits = {},
              const std::vector<Point>& signals = {}) {
    std::vector<VkSemaphore> wait_for, signal;
    std::vector<std::uint64_t> wait_values, signal_values;
    const std::vector<VkPipelineStageFlags> stages(waits.size(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
    for (const Point& point : waits) {
      wait_for.push_back(point.semaphore);
      wait_values.push_back(point.value);
    }
    for (const Point& point : signals) {
      signal.push_back(point.semaphore);
      signal_values.push_back(point.value);
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
    info.pWaitSemaphores = wait_for.data();
    info.pWaitDstStageMask = stages.data();
    info.commandBufferCount = 1;
    info.pCommandBuffers = &commands;
    info.signalSemaphoreCount = values.signalSemaphoreValueCount;
    info.pSignalSemaphores = signal.data();
    const auto lock = brontes::vulkan::lock_queue(brontes);
    require(vkQueueSubmit(queue, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit");
  }
  void finish(const brontes::Device& brontes) {
    const auto lock = brontes::vulkan::lock_queue(brontes);
    require(vkQueueWaitIdle(queue), "vkQueueWaitIdle");
  }

  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice gpu = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  std::uint32_t family = 0;
  VkPhysicalDeviceFeatures2 features{};
  VkPhysicalDeviceVulkan12Features features12{};
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT subgroup_sizes{};
  std::vector<const char*> extensions;
#define MEMBER(function) PFN_##function function = nullptr;
  APPLICATION_FUNCTIONS(MEMBER)
#undef MEMBER

  template <class Function>
  Function get(const char* name) const {
    return reinterpret_cast<Function>(next_instance_proc(instance, name));
  }

  [[noreturn]] static void die(const std::string& what) {
    std::fprintf(stderr, "%s\n", what.c_str());
    std::exit(1);
  }
  static void require(VkResult result, const char* call) {
    if (result != VK_SUCCESS) die(std::string(call) + ": " + std::to_string(result));
  }

 private:
  void make_instance(const Options& options) {
    const char* const wish = std::getenv("BRONTES_VALIDATION");
    const bool validation = options.api_version >= VK_API_VERSION_1_2 && wish != nullptr && std::strcmp(wish, "1") == 0;
    VkApplicationInfo application{};
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.apiVersion = options.api_version;
    VkInstanceCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &application;
    const char* const layer = "VK_LAYER_KHRONOS_validation";
    std::vector<const char*> wanted = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
    const VkValidationFeatureEnableEXT synchronization = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
    VkValidationFeaturesEXT checks{};
    checks.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
    checks.enabledValidationFeatureCount = 1;
    checks.pEnabledValidationFeatures = &synchronization;
    if (validation) {
      info.pNext = &checks;
      info.enabledLayerCount = 1;
      info.ppEnabledLayerNames = &layer;
      wanted.push_back(VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME);
    }
    info.enabledExtensionCount = static_cast<std::uint32_t>(wanted.size());
    info.ppEnabledExtensionNames = wanted.data();
    require(get<PFN_vkCreateInstance>("vkCreateInstance")(&info, nullptr, &instance), "vkCreateInstance");
    if (!validation) return;
    VkDebugUtilsMessengerCreateInfoEXT create{};
    create.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
    create.messageSeverity =
        VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    create.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
    create.pfnUserCallback = on_validation;
    require(get<PFN_vkCreateDebugUtilsMessengerEXT>("vkCreateDebugUtilsMessengerEXT")(instance, &create, nullptr,
                                                                                      &messenger_),
            "vkCreateDebugUtilsMessengerEXT");
  }

  bool offers(const char* name) const {
    const auto list = get<PFN_vkEnumerateDeviceExtensionProperties>("vkEnumerateDeviceExtensionProperties");
    std::uint32_t count = 0;
    list(gpu, nullptr, &count, nullptr);
    std::vector<VkExtensionProperties> all(count);
    list(gpu, nullptr, &count, all.data());
    for (const VkExtensionProperties& one : all) {
      if (std::strcmp(one.extensionName, name) == 0) return true;
    }
    return false;
  }

  // The application's own wishes, merged with Brontes'.
  void make_device(const Options& options) {
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    subgroup_sizes.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT;
    VkDeviceCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    if (options.api_version >= VK_API_VERSION_1_2) {
      brontes::vulkan::DeviceFeatures wanted = brontes::vulkan::required_features();
      features.pNext = &features12;
      if (options.recommended) {
        auto found = brontes::vulkan::recommended_features(next_instance_proc, instance, gpu);
        if (!found) die(found.error().message);
        wanted = std::move(*found);
        features12.pNext = &subgroup_sizes;
        for (const char* name :
             {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME}) {
          if (offers(name)) extensions.push_back(name);
        }
      }
      extensions.insert(extensions.end(), wanted.extensions.begin(), wanted.extensions.end());
      CHECK_OK(brontes::vulkan::merge(wanted, features));
      info.pNext = &features;
    }
    info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
    info.ppEnabledExtensionNames = extensions.data();

    std::uint32_t count = 0;
    const auto list = get<PFN_vkGetPhysicalDeviceQueueFamilyProperties>("vkGetPhysicalDeviceQueueFamilyProperties");
    list(gpu, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    list(gpu, &count, families.data());
    while (family < count && (families[family].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) ++family;
    const float priority = 1;
    VkDeviceQueueCreateInfo own{};
    own.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    own.queueFamilyIndex = family;
    own.queueCount = 1;
    own.pQueuePriorities = &priority;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &own;
    require(get<PFN_vkCreateDevice>("vkCreateDevice")(gpu, &info, nullptr, &device), "vkCreateDevice");
    device_function = get<PFN_vkGetDeviceProcAddr>("vkGetDeviceProcAddr");
  }

  PFN_vkGetDeviceProcAddr device_function = nullptr;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  std::vector<VkSemaphore> semaphores_;
};

/// Runs the parts of a program: its exit status.
inline int run_all(std::initializer_list<std::pair<const char*, void (*)()>> parts) {
  for (const auto& [name, part] : parts) {
    const int before = failures;
    part();
    std::printf("%s: %s\n", failures == before ? "ok" : "FAILED", name);
  }
  CHECK(messages == 0);
  return failures == 0 ? 0 : 1;
}

}  // namespace app
