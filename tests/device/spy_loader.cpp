#include "spy_loader.hpp"

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <atomic>
#include <cstring>
#include <mutex>

#include <dlfcn.h>

namespace {

// Can fail.
#define FALLIBLE_FUNCTIONS(X)    \
  X(vkAllocateCommandBuffers)    \
  X(vkAllocateDescriptorSets)    \
  X(vkAllocateMemory)            \
  X(vkBeginCommandBuffer)        \
  X(vkBindBufferMemory)          \
  X(vkBindBufferMemory2)         \
  X(vkCreateBuffer)              \
  X(vkCreateCommandPool)         \
  X(vkCreateComputePipelines)    \
  X(vkCreateDescriptorPool)      \
  X(vkCreateDescriptorSetLayout) \
  X(vkCreateDevice)              \
  X(vkCreateInstance)            \
  X(vkCreatePipelineCache)       \
  X(vkCreatePipelineLayout)      \
  X(vkCreateSemaphore)           \
  X(vkCreateShaderModule)        \
  X(vkEndCommandBuffer)          \
  X(vkEnumeratePhysicalDevices)  \
  X(vkGetPipelineCacheData)      \
  X(vkMapMemory)                 \
  X(vkQueueSubmit)               \
  X(vkQueueSubmit2)              \
  X(vkResetCommandPool)          \
  X(vkResetDescriptorPool)       \
  X(vkWaitSemaphores)

// Cannot.
#define OTHER_FUNCTIONS(X) \
  X(vkCmdCopyBuffer)       \
  X(vkCmdDispatch)         \
  X(vkCmdFillBuffer)       \
  X(vkCmdPipelineBarrier)

struct Plan {
  std::mutex mutex;
  const char* name = nullptr;
  std::uint64_t skip = 0;
  VkResult result = VK_SUCCESS;
  bool armed = false;
  const char* failed = nullptr;
};
Plan plan;
std::atomic<std::uint32_t> reported_version{0};

bool fails(const char* name, VkResult& result) {
  const std::lock_guard lock(plan.mutex);
  if (!plan.armed || (plan.name != nullptr && std::strcmp(plan.name, name) != 0)) return false;
  if (plan.skip-- > 0) return false;
  plan.armed = false;
  plan.failed = name;
  result = plan.result;
  return true;
}

template <class Tag, class Function>
struct Hook;

template <class Tag, class... Arguments>
struct Hook<Tag, VkResult(VKAPI_PTR*)(Arguments...)> {
  static inline std::atomic<VkResult(VKAPI_PTR*)(Arguments...)> real{nullptr};
  static inline std::atomic<std::uint64_t> calls{0};
  static VKAPI_ATTR VkResult VKAPI_CALL call(Arguments... arguments) {
    ++calls;
    VkResult result = VK_SUCCESS;
    if (fails(Tag::name, result)) return result;
    return real.load()(arguments...);
  }
};

template <class Tag, class... Arguments>
struct Hook<Tag, void(VKAPI_PTR*)(Arguments...)> {
  static inline std::atomic<void(VKAPI_PTR*)(Arguments...)> real{nullptr};
  static inline std::atomic<std::uint64_t> calls{0};
  static VKAPI_ATTR void VKAPI_CALL call(Arguments... arguments) {
    ++calls;
    real.load()(arguments...);
  }
};

#define DEFINE(function)                                     \
  struct function##_tag {                                    \
    [[maybe_unused]] static constexpr auto name = #function; \
  };                                                         \
  using function##_hook = Hook<function##_tag, PFN_##function>;
FALLIBLE_FUNCTIONS(DEFINE)
OTHER_FUNCTIONS(DEFINE)
#undef DEFINE

PFN_vkGetInstanceProcAddr real_instance_proc() {
  static const auto function = [] {
    void* library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    return library == nullptr ? nullptr
                              : reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  }();
  return function;
}

PFN_vkGetDeviceProcAddr real_device_proc = nullptr;
PFN_vkGetPhysicalDeviceProperties real_properties = nullptr;
PFN_vkGetPhysicalDeviceProperties2 real_properties2 = nullptr;

VKAPI_ATTR void VKAPI_CALL properties(VkPhysicalDevice device, VkPhysicalDeviceProperties* out) {
  real_properties(device, out);
  if (reported_version != 0) out->apiVersion = reported_version;
}
VKAPI_ATTR void VKAPI_CALL properties2(VkPhysicalDevice device, VkPhysicalDeviceProperties2* out) {
  real_properties2(device, out);
  if (reported_version != 0) out->properties.apiVersion = reported_version;
}

// What to hand out instead of `real`.
PFN_vkVoidFunction hooked(const char* name, PFN_vkVoidFunction real) {
  if (real == nullptr) return nullptr;
#define HOOK(function)                                                                               \
  if (std::strcmp(name, #function) == 0) {                                                           \
    function##_hook::real = reinterpret_cast<PFN_##function>(real);                                  \
    return reinterpret_cast<PFN_vkVoidFunction>(static_cast<PFN_##function>(function##_hook::call)); \
  }
  FALLIBLE_FUNCTIONS(HOOK)
  OTHER_FUNCTIONS(HOOK)
#undef HOOK
  return real;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_proc(VkDevice device, const char* name) {
  return hooked(name, real_device_proc(device, name));
}

}  // namespace

extern "C" {

#define SPY_EXPORT __attribute__((visibility("default")))

SPY_EXPORT VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance, const char* name);

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance, const char* name) {
  if (real_instance_proc() == nullptr) return nullptr;
  const PFN_vkVoidFunction real = real_instance_proc()(instance, name);
  if (real == nullptr) return nullptr;
  if (std::strcmp(name, "vkGetInstanceProcAddr") == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(vkGetInstanceProcAddr);
  }
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) {
    real_device_proc = reinterpret_cast<PFN_vkGetDeviceProcAddr>(real);
    return reinterpret_cast<PFN_vkVoidFunction>(device_proc);
  }
  if (std::strcmp(name, "vkGetPhysicalDeviceProperties") == 0) {
    real_properties = reinterpret_cast<PFN_vkGetPhysicalDeviceProperties>(real);
    return reinterpret_cast<PFN_vkVoidFunction>(properties);
  }
  if (std::strcmp(name, "vkGetPhysicalDeviceProperties2") == 0) {
    real_properties2 = reinterpret_cast<PFN_vkGetPhysicalDeviceProperties2>(real);
    return reinterpret_cast<PFN_vkVoidFunction>(properties2);
  }
  return hooked(name, real);
}

SPY_EXPORT std::uint64_t spy_calls(const char* name) {
#define COUNT(function) \
  if (std::strcmp(name, #function) == 0) return function##_hook::calls;
  FALLIBLE_FUNCTIONS(COUNT)
  OTHER_FUNCTIONS(COUNT)
#undef COUNT
  return 0;
}

SPY_EXPORT void spy_fail(const char* name, std::uint64_t skip, std::int32_t result) {
  const std::lock_guard lock(plan.mutex);
  plan.name = name;
  plan.skip = skip;
  plan.result = static_cast<VkResult>(result);
  plan.armed = true;
  plan.failed = nullptr;
}

SPY_EXPORT const char* spy_failed() {
  const std::lock_guard lock(plan.mutex);
  return plan.failed;
}

SPY_EXPORT void spy_reset() {
  const std::lock_guard lock(plan.mutex);
  plan.armed = false;
  plan.failed = nullptr;
#define ZERO(function) function##_hook::calls = 0;
  FALLIBLE_FUNCTIONS(ZERO)
  OTHER_FUNCTIONS(ZERO)
#undef ZERO
}

SPY_EXPORT void spy_version(std::uint32_t api_version) { reported_version = api_version; }
}
