#include "loader.hpp"

#include "memory_model.hpp"

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include <dlfcn.h>

namespace {

// What functions can fail with, by the specification's lists.
constexpr VkResult memory[] = {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY};
constexpr VkResult mapping[] = {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_MEMORY_MAP_FAILED};
constexpr VkResult losing[] = {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_DEVICE_LOST};
constexpr VkResult host_memory[] = {VK_ERROR_OUT_OF_HOST_MEMORY};
constexpr VkResult device_memory_only[] = {VK_ERROR_OUT_OF_DEVICE_MEMORY};
constexpr VkResult listing[] = {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_INCOMPLETE};
constexpr VkResult devices[] = {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY,
                                VK_ERROR_INITIALIZATION_FAILED, VK_INCOMPLETE};
constexpr VkResult allocating[] = {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY,
                                   VK_ERROR_TOO_MANY_OBJECTS};
constexpr VkResult pools[] = {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_FRAGMENTATION};
constexpr VkResult sets[] = {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_FRAGMENTED_POOL,
                             VK_ERROR_OUT_OF_POOL_MEMORY};
constexpr VkResult instance[] = {VK_ERROR_OUT_OF_HOST_MEMORY,    VK_ERROR_OUT_OF_DEVICE_MEMORY,
                                 VK_ERROR_INITIALIZATION_FAILED, VK_ERROR_LAYER_NOT_PRESENT,
                                 VK_ERROR_EXTENSION_NOT_PRESENT, VK_ERROR_INCOMPATIBLE_DRIVER};
constexpr VkResult device[] = {VK_ERROR_OUT_OF_HOST_MEMORY,
                               VK_ERROR_OUT_OF_DEVICE_MEMORY,
                               VK_ERROR_INITIALIZATION_FAILED,
                               VK_ERROR_EXTENSION_NOT_PRESENT,
                               VK_ERROR_FEATURE_NOT_PRESENT,
                               VK_ERROR_TOO_MANY_OBJECTS,
                               VK_ERROR_DEVICE_LOST};

// Can fail.
#define FALLIBLE_FUNCTIONS(X)                        \
  X(vkAllocateCommandBuffers, memory)                \
  X(vkAllocateDescriptorSets, sets)                  \
  X(vkAllocateMemory, allocating)                    \
  X(vkBeginCommandBuffer, memory)                    \
  X(vkBindBufferMemory, memory)                      \
  X(vkBindBufferMemory2, memory)                     \
  X(vkCreateBuffer, memory)                          \
  X(vkCreateBufferView, memory)                      \
  X(vkCreateCommandPool, memory)                     \
  X(vkCreateComputePipelines, memory)                \
  X(vkCreateDebugUtilsMessengerEXT, host_memory)     \
  X(vkCreateDescriptorPool, pools)                   \
  X(vkCreateDescriptorSetLayout, memory)             \
  X(vkCreateDevice, device)                          \
  X(vkCreateInstance, instance)                      \
  X(vkCreatePipelineCache, memory)                   \
  X(vkCreatePipelineLayout, memory)                  \
  X(vkCreateQueryPool, memory)                       \
  X(vkCreateSemaphore, memory)                       \
  X(vkCreateShaderModule, memory)                    \
  X(vkEndCommandBuffer, memory)                      \
  X(vkEnumerateDeviceExtensionProperties, listing)   \
  X(vkEnumerateInstanceExtensionProperties, listing) \
  X(vkEnumerateInstanceLayerProperties, listing)     \
  X(vkEnumeratePhysicalDevices, devices)             \
  X(vkFlushMappedMemoryRanges, memory)               \
  X(vkGetPipelineCacheData, listing)                 \
  X(vkGetQueryPoolResults, losing)                   \
  X(vkGetSemaphoreCounterValue, losing)              \
  X(vkInvalidateMappedMemoryRanges, memory)          \
  X(vkMapMemory, mapping)                            \
  X(vkMergePipelineCaches, memory)                   \
  X(vkQueueSubmit, losing)                           \
  X(vkQueueWaitIdle, losing)                         \
  X(vkResetCommandPool, device_memory_only)          \
  X(vkResetDescriptorPool, memory)                   \
  X(vkSetDebugUtilsObjectNameEXT, memory)            \
  X(vkWaitSemaphores, losing)

// Cannot, or are not worth failing.
#define OTHER_FUNCTIONS(X)                    \
  X(vkCmdBindDescriptorSets)                  \
  X(vkCmdBindPipeline)                        \
  X(vkCmdCopyBuffer)                          \
  X(vkCmdDispatch)                            \
  X(vkCmdDispatchBase)                        \
  X(vkCmdFillBuffer)                          \
  X(vkCmdPipelineBarrier)                     \
  X(vkCmdPushConstants)                       \
  X(vkCmdResetQueryPool)                      \
  X(vkCmdWriteTimestamp)                      \
  X(vkDestroyBuffer)                          \
  X(vkDestroyBufferView)                      \
  X(vkDestroyCommandPool)                     \
  X(vkDestroyDebugUtilsMessengerEXT)          \
  X(vkDestroyDescriptorPool)                  \
  X(vkDestroyDescriptorSetLayout)             \
  X(vkDestroyDevice)                          \
  X(vkDestroyInstance)                        \
  X(vkDestroyPipeline)                        \
  X(vkDestroyPipelineCache)                   \
  X(vkDestroyPipelineLayout)                  \
  X(vkDestroyQueryPool)                       \
  X(vkDestroySemaphore)                       \
  X(vkDestroyShaderModule)                    \
  X(vkEnumerateInstanceVersion)               \
  X(vkFreeMemory)                             \
  X(vkGetBufferDeviceAddress)                 \
  X(vkGetBufferMemoryRequirements)            \
  X(vkGetBufferMemoryRequirements2)           \
  X(vkGetDeviceQueue)                         \
  X(vkGetPhysicalDeviceFeatures2)             \
  X(vkGetPhysicalDeviceMemoryProperties)      \
  X(vkGetPhysicalDeviceMemoryProperties2)     \
  X(vkGetPhysicalDeviceProperties)            \
  X(vkGetPhysicalDeviceProperties2)           \
  X(vkGetPhysicalDeviceQueueFamilyProperties) \
  X(vkUnmapMemory)                            \
  X(vkUpdateDescriptorSets)

// Kinds of objects: name, what makes one, what destroys it.
#define OBJECT_KINDS(X)                                                           \
  X("buffer", vkCreateBuffer, vkDestroyBuffer)                                    \
  X("buffer view", vkCreateBufferView, vkDestroyBufferView)                       \
  X("command pool", vkCreateCommandPool, vkDestroyCommandPool)                    \
  X("descriptor pool", vkCreateDescriptorPool, vkDestroyDescriptorPool)           \
  X("set layout", vkCreateDescriptorSetLayout, vkDestroyDescriptorSetLayout)      \
  X("device", vkCreateDevice, vkDestroyDevice)                                    \
  X("instance", vkCreateInstance, vkDestroyInstance)                              \
  X("memory", vkAllocateMemory, vkFreeMemory)                                     \
  X("messenger", vkCreateDebugUtilsMessengerEXT, vkDestroyDebugUtilsMessengerEXT) \
  X("pipeline", vkCreateComputePipelines, vkDestroyPipeline)                      \
  X("pipeline cache", vkCreatePipelineCache, vkDestroyPipelineCache)              \
  X("pipeline layout", vkCreatePipelineLayout, vkDestroyPipelineLayout)           \
  X("query pool", vkCreateQueryPool, vkDestroyQueryPool)                          \
  X("semaphore", vkCreateSemaphore, vkDestroySemaphore)                           \
  X("shader module", vkCreateShaderModule, vkDestroyShaderModule)

struct Kind {
  const char* name;
  const char* create;
  const char* destroy;
};
constexpr Kind kinds[] = {
#define KIND(name, create, destroy) {name, #create, #destroy},
    OBJECT_KINDS(KIND)
#undef KIND
};
std::array<std::atomic<std::int64_t>, std::size(kinds)> live;

constexpr bool same(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) {
    ++a;
    ++b;
  }
  return *a == *b;
}

// Which kind's number a function changes, or -1.
constexpr int kind_of(const char* function) {
  for (std::size_t i = 0; i < std::size(kinds); ++i) {
    if (same(kinds[i].create, function) || same(kinds[i].destroy, function)) return static_cast<int>(i);
  }
  return -1;
}

struct DeviceMemory {
  std::mutex mutex;
  std::uint64_t limit = 0;
  std::uint64_t bytes = 0;
  std::map<VkDeviceMemory, std::uint64_t> sizes;
};
DeviceMemory device_memory;

// Of vkAllocateMemory and vkFreeMemory. True where the limit is passed.
bool over_limit(VkDevice, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks*, VkDeviceMemory*) {
  const std::lock_guard lock(device_memory.mutex);
  return device_memory.limit != 0 && device_memory.bytes + info->allocationSize > device_memory.limit;
}
void note_allocated(VkDevice, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks*, VkDeviceMemory* made) {
  const std::lock_guard lock(device_memory.mutex);
  device_memory.sizes[*made] = info->allocationSize;
  device_memory.bytes += info->allocationSize;
}
void note_freed(VkDevice, VkDeviceMemory gone, const VkAllocationCallbacks*) {
  const std::lock_guard lock(device_memory.mutex);
  const auto found = device_memory.sizes.find(gone);
  if (found == device_memory.sizes.end()) return;
  device_memory.bytes -= found->second;
  device_memory.sizes.erase(found);
}

// What spy_break() has shader modules do instead.
std::atomic<std::uint32_t> broken_opcode{0};
std::atomic<std::uint32_t> opcode_instead{0};

VkResult create_module(PFN_vkCreateShaderModule real, VkDevice owner, const VkShaderModuleCreateInfo* info,
                       const VkAllocationCallbacks* callbacks, VkShaderModule* made) {
  if (broken_opcode == 0) return real(owner, info, callbacks, made);
  std::vector<std::uint32_t> code(info->pCode, info->pCode + info->codeSize / 4);
  for (std::size_t at = 5; at < code.size() && code[at] >> 16 != 0; at += code[at] >> 16) {
    if ((code[at] & 0xffffu) == broken_opcode) code[at] = (code[at] & 0xffff0000u) | opcode_instead;
  }
  VkShaderModuleCreateInfo broken = *info;
  broken.pCode = code.data();
  return real(owner, &broken, callbacks, made);
}

// Pipelines whose dispatches are recorded more or less than once.
struct Repeated {
  std::mutex mutex;
  std::string part_of_name;
  std::uint32_t times = 1;
  std::set<VkPipeline> pipelines;
  std::set<VkCommandBuffer> bound;  // with one of them
};
Repeated repeated;

void note_name(VkDevice, const VkDebugUtilsObjectNameInfoEXT* info) {
  const std::lock_guard lock(repeated.mutex);
  if (info->objectType != VK_OBJECT_TYPE_PIPELINE || repeated.part_of_name.empty()) return;
  const auto pipeline = reinterpret_cast<VkPipeline>(info->objectHandle);
  if (std::strstr(info->pObjectName, repeated.part_of_name.c_str()) != nullptr) {
    repeated.pipelines.insert(pipeline);
  } else {
    repeated.pipelines.erase(pipeline);
  }
}
void note_bound(VkCommandBuffer buffer, VkPipelineBindPoint, VkPipeline pipeline) {
  const std::lock_guard lock(repeated.mutex);
  if (repeated.pipelines.count(pipeline) != 0) {
    repeated.bound.insert(buffer);
  } else {
    repeated.bound.erase(buffer);
  }
}
std::uint32_t times_of(VkCommandBuffer buffer, std::uint32_t, std::uint32_t, std::uint32_t) {
  const std::lock_guard lock(repeated.mutex);
  return repeated.bound.count(buffer) != 0 ? repeated.times : 1;
}

struct Results {
  const VkResult* first;
  std::size_t count;
  bool has(VkResult result) const { return std::find(first, first + count, result) != first + count; }
};

struct Plan {
  std::mutex mutex;
  bool armed = false;
  bool failing = false;  // for good
  const char* name = nullptr;
  std::uint64_t skip = 0;
  VkResult result = VK_SUCCESS;
  SpyMode mode = spy_once;
  const char* failed = nullptr;
  std::vector<const char*> trace;
};
Plan plan;
std::atomic<const char*> hidden{nullptr};
std::atomic<std::uint32_t> reported_version{0};
thread_local int depth = 0;

struct InDriver {
  InDriver() { ++depth; }
  ~InDriver() { --depth; }
};

// The loader's lists of instances and devices: who changes them must be alone, who walks them among those who walk.
std::atomic<int> changing{0};
std::atomic<int> walking{0};
std::atomic<std::uint64_t> overlaps{0};

struct Change {
  Change() {
    if (changing++ != 0 || walking != 0) ++overlaps;
  }
  ~Change() { --changing; }
};
struct Walk {
  Walk() {
    ++walking;
    if (changing != 0) ++overlaps;
  }
  ~Walk() { --walking; }
};
struct Neither {};
template <class Tag>
using ListUse =
    std::conditional_t<same(Tag::name, "vkCreateInstance") || same(Tag::name, "vkDestroyInstance") ||
                           same(Tag::name, "vkCreateDevice") || same(Tag::name, "vkDestroyDevice"),
                       Change, std::conditional_t<same(Tag::name, "vkSetDebugUtilsObjectNameEXT"), Walk, Neither>>;

enum class Fate { call, fail, finish_and_fail };

Fate fate_of(const char* name, const Results& results, VkResult& result) {
  const std::lock_guard lock(plan.mutex);
  plan.trace.push_back(name);
  const bool waits = std::strcmp(name, "vkWaitSemaphores") == 0 || std::strcmp(name, "vkQueueWaitIdle") == 0;
  auto fails = [&] {
    result = plan.result;
    if (plan.failed == nullptr) plan.failed = name;
    // An incomplete list is a list all the same.
    return (plan.mode == spy_lost && waits) || result == VK_INCOMPLETE ? Fate::finish_and_fail : Fate::fail;
  };
  if (plan.failing) {
    if (plan.name != nullptr && std::strcmp(plan.name, name) != 0) return Fate::call;
    return results.has(plan.result) || plan.result == VK_ERROR_UNKNOWN ? fails() : Fate::call;
  }
  if (!plan.armed || (plan.name != nullptr && std::strcmp(plan.name, name) != 0)) return Fate::call;
  if (plan.skip-- > 0) return Fate::call;
  plan.armed = false;
  plan.failing = plan.mode != spy_once;
  return fails();
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
    const InDriver inside;
    [[maybe_unused]] const ListUse<Tag> use;
    switch (fate_of(Tag::name, Tag::results(), result)) {
      case Fate::fail: return result;
      case Fate::finish_and_fail: static_cast<void>(real.load()(arguments...)); return result;
      case Fate::call: break;
    }
    if constexpr (same(Tag::name, "vkAllocateMemory")) {
      if (over_limit(arguments...)) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    if constexpr (same(Tag::name, "vkCreateShaderModule")) {
      result = create_module(real.load(), arguments...);
    } else {
      result = real.load()(arguments...);
    }
    if constexpr (same(Tag::name, "vkAllocateMemory")) {
      if (result == VK_SUCCESS) note_allocated(arguments...);
    }
    if constexpr (same(Tag::name, "vkSetDebugUtilsObjectNameEXT")) note_name(arguments...);
    if constexpr (kind_of(Tag::name) >= 0) {
      if (result == VK_SUCCESS) ++live[static_cast<std::size_t>(kind_of(Tag::name))];
    }
    return result;
  }
};

template <class Tag, class Return, class... Arguments>
struct Hook<Tag, Return(VKAPI_PTR*)(Arguments...)> {
  static inline std::atomic<Return(VKAPI_PTR*)(Arguments...)> real{nullptr};
  static inline std::atomic<std::uint64_t> calls{0};
  static VKAPI_ATTR Return VKAPI_CALL call(Arguments... arguments) {
    ++calls;
    const InDriver inside;
    [[maybe_unused]] const ListUse<Tag> use;
    if constexpr (kind_of(Tag::name) >= 0) --live[static_cast<std::size_t>(kind_of(Tag::name))];
    if constexpr (same(Tag::name, "vkFreeMemory")) note_freed(arguments...);
    // What fails for good ends with the device.
    if constexpr (same(Tag::name, "vkDestroyDevice")) {
      const std::lock_guard lock(plan.mutex);
      plan.failing = false;
    }
    if constexpr (same(Tag::name, "vkCmdBindPipeline")) note_bound(arguments...);
    if constexpr (same(Tag::name, "vkCmdDispatch")) {
      for (std::uint32_t i = times_of(arguments...); i > 0; --i) real.load()(arguments...);
      return;
    } else {
      return real.load()(arguments...);
    }
  }
};

#define DEFINE_FALLIBLE(function, list)                          \
  struct function##_tag {                                        \
    static constexpr auto name = #function;                      \
    static Results results() { return {list, std::size(list)}; } \
  };                                                             \
  using function##_hook = Hook<function##_tag, PFN_##function>;
FALLIBLE_FUNCTIONS(DEFINE_FALLIBLE)
#undef DEFINE_FALLIBLE

#define DEFINE_OTHER(function)                               \
  struct function##_tag {                                    \
    static constexpr auto name = #function;                  \
    [[maybe_unused]] static Results results() { return {}; } \
  };                                                         \
  using function##_hook = Hook<function##_tag, PFN_##function>;
OTHER_FUNCTIONS(DEFINE_OTHER)
#undef DEFINE_OTHER

PFN_vkGetInstanceProcAddr real_instance_proc() {
  static const auto function = [] {
    void* library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    return library == nullptr ? nullptr
                              : reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  }();
  return function;
}

std::atomic<PFN_vkGetDeviceProcAddr> real_device_proc{nullptr};
std::atomic<PFN_vkGetPhysicalDeviceProperties> real_properties{nullptr};
std::atomic<PFN_vkGetPhysicalDeviceProperties2> real_properties2{nullptr};

VKAPI_ATTR void VKAPI_CALL properties(VkPhysicalDevice physical, VkPhysicalDeviceProperties* out) {
  const InDriver inside;
  real_properties.load()(physical, out);
  if (reported_version != 0) out->apiVersion = reported_version;
}
VKAPI_ATTR void VKAPI_CALL properties2(VkPhysicalDevice physical, VkPhysicalDeviceProperties2* out) {
  const InDriver inside;
  real_properties2.load()(physical, out);
  if (reported_version != 0) out->properties.apiVersion = reported_version;
}

bool is_hidden(const char* name) {
  const char* none = hidden;
  return none != nullptr && std::strcmp(none, name) == 0;
}

// What to hand out instead of `real`.
PFN_vkVoidFunction hooked(const char* name, PFN_vkVoidFunction real) {
  if (real == nullptr || is_hidden(name)) return nullptr;
  real = brontes::test::modelled(name, real);
#define HOOK(function, ...)                                                                          \
  if (std::strcmp(name, #function) == 0) {                                                           \
    function##_hook::real = reinterpret_cast<PFN_##function>(real);                                  \
    return reinterpret_cast<PFN_vkVoidFunction>(static_cast<PFN_##function>(function##_hook::call)); \
  }
  FALLIBLE_FUNCTIONS(HOOK)
  OTHER_FUNCTIONS(HOOK)
#undef HOOK
  return real;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_proc(VkDevice owner, const char* name) {
  const InDriver inside;
  const Walk walk;
  return hooked(name, real_device_proc.load()(owner, name));
}

}  // namespace

extern "C" {

#define SPY_EXPORT __attribute__((visibility("default")))

SPY_EXPORT VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance owner, const char* name);

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance owner, const char* name) {
  const InDriver inside;
  if (real_instance_proc() == nullptr || is_hidden(name)) return nullptr;
  const PFN_vkVoidFunction real = real_instance_proc()(owner, name);
  if (real == nullptr) return nullptr;
  if (std::strcmp(name, "vkGetInstanceProcAddr") == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(vkGetInstanceProcAddr);
  }
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) {
    real_device_proc = reinterpret_cast<PFN_vkGetDeviceProcAddr>(real);
    return reinterpret_cast<PFN_vkVoidFunction>(device_proc);
  }
  if (std::strcmp(name, "vkGetPhysicalDeviceProperties") == 0) {
    real_properties = reinterpret_cast<PFN_vkGetPhysicalDeviceProperties>(brontes::test::modelled(name, real));
    return reinterpret_cast<PFN_vkVoidFunction>(properties);
  }
  if (std::strcmp(name, "vkGetPhysicalDeviceProperties2") == 0) {
    real_properties2 = reinterpret_cast<PFN_vkGetPhysicalDeviceProperties2>(brontes::test::modelled(name, real));
    return reinterpret_cast<PFN_vkVoidFunction>(properties2);
  }
  return hooked(name, real);
}

SPY_EXPORT std::uint64_t spy_calls(const char* name) {
#define COUNT(function, ...) \
  if (std::strcmp(name, #function) == 0) return function##_hook::calls;
  FALLIBLE_FUNCTIONS(COUNT)
  OTHER_FUNCTIONS(COUNT)
#undef COUNT
  return 0;
}

SPY_EXPORT std::uint64_t spy_fallible_calls() {
  const std::lock_guard lock(plan.mutex);
  return plan.trace.size();
}

SPY_EXPORT const char* spy_traced(std::uint64_t index) {
  const std::lock_guard lock(plan.mutex);
  return index < plan.trace.size() ? plan.trace[index] : nullptr;
}

SPY_EXPORT std::uint32_t spy_results(const char* name, std::int32_t* results, std::uint32_t room) {
  std::uint32_t count = 0;
#define RESULTS(function, list)                                               \
  if (std::strcmp(name, #function) == 0) {                                    \
    for (VkResult result : list) {                                            \
      if (count < room) results[count++] = static_cast<std::int32_t>(result); \
    }                                                                         \
  }
  FALLIBLE_FUNCTIONS(RESULTS)
#undef RESULTS
  return count;
}

SPY_EXPORT void spy_fail(const char* name, std::uint64_t skip, std::int32_t result, std::int32_t mode) {
  const std::lock_guard lock(plan.mutex);
  plan.armed = true;
  plan.failing = false;
  plan.name = name;
  plan.skip = skip;
  plan.result = static_cast<VkResult>(result);
  plan.mode = static_cast<SpyMode>(mode);
  plan.failed = nullptr;
}

SPY_EXPORT const char* spy_failed() {
  const std::lock_guard lock(plan.mutex);
  return plan.failed;
}

SPY_EXPORT void spy_disarm() {
  const std::lock_guard lock(plan.mutex);
  plan.armed = false;
  plan.failing = false;
}

SPY_EXPORT void spy_reset() {
  {
    const std::lock_guard lock(plan.mutex);
    plan.armed = false;
    plan.failing = false;
    plan.failed = nullptr;
    plan.trace.clear();
  }
  overlaps = 0;
#define ZERO(function, ...) function##_hook::calls = 0;
  FALLIBLE_FUNCTIONS(ZERO)
  OTHER_FUNCTIONS(ZERO)
#undef ZERO
}

SPY_EXPORT std::uint32_t spy_kinds() { return static_cast<std::uint32_t>(std::size(kinds)); }
SPY_EXPORT const char* spy_kind(std::uint32_t kind) { return kinds[kind].name; }
SPY_EXPORT std::int64_t spy_live(std::uint32_t kind) { return live[kind]; }

SPY_EXPORT void spy_version(std::uint32_t api_version) { reported_version = api_version; }
SPY_EXPORT void spy_break(std::uint32_t opcode, std::uint32_t instead) {
  opcode_instead = instead;
  broken_opcode = opcode;
}
SPY_EXPORT void spy_hide(const char* name) { hidden = name; }
SPY_EXPORT const char* spy_function(std::uint32_t index) {
  static constexpr const char* names[] = {
#define NAME(function, ...) #function,
      FALLIBLE_FUNCTIONS(NAME) OTHER_FUNCTIONS(NAME)
#undef NAME
  };
  return index < std::size(names) ? names[index] : nullptr;
}
SPY_EXPORT void spy_limit_memory(std::uint64_t bytes) {
  const std::lock_guard lock(device_memory.mutex);
  device_memory.limit = bytes;
}
SPY_EXPORT std::uint64_t spy_memory() {
  const std::lock_guard lock(device_memory.mutex);
  return device_memory.bytes;
}
SPY_EXPORT void spy_repeat_dispatches(const char* pipelines, std::uint32_t times) {
  const std::lock_guard lock(repeated.mutex);
  repeated.part_of_name = pipelines == nullptr ? "" : pipelines;
  repeated.times = times;
  repeated.pipelines.clear();
  repeated.bound.clear();
}
SPY_EXPORT void spy_memory_types(const std::uint32_t* flags, std::uint32_t count) {
  brontes::test::model_memory(flags, count);
}
SPY_EXPORT bool spy_in_driver() { return depth > 0; }
SPY_EXPORT std::uint64_t spy_overlaps() { return overlaps; }
}
