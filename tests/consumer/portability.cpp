// A Vulkan loader, for BRONTES_VULKAN_LIBRARY, whose devices are layered on another API as on macOS: they are shown
// only to instances that ask for such devices, have VK_KHR_portability_subset, and insist that it is enabled.
#include <vulkan/vulkan.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <dlfcn.h>

namespace {

constexpr const char* subset = "VK_KHR_portability_subset";
constexpr const char* enumeration = "VK_KHR_portability_enumeration";
constexpr VkInstanceCreateFlags enumerate_bit = 1;

PFN_vkGetInstanceProcAddr next() {
  static const auto found = reinterpret_cast<PFN_vkGetInstanceProcAddr>(
      dlsym(dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL), "vkGetInstanceProcAddr"));
  return found;
}

PFN_vkEnumerateDeviceExtensionProperties next_extensions = nullptr;
PFN_vkCreateDevice next_create_device = nullptr;

VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* info, const VkAllocationCallbacks* callbacks,
                                               VkInstance* instance) {
  bool asks = false;
  for (std::uint32_t i = 0; i < info->enabledExtensionCount; ++i) {
    asks = asks || std::strcmp(info->ppEnabledExtensionNames[i], enumeration) == 0;
  }
  if (!asks || (info->flags & enumerate_bit) == 0) {
    std::fprintf(stderr, "the instance does not ask for layered devices\n");
    return VK_ERROR_INCOMPATIBLE_DRIVER;
  }
  return reinterpret_cast<PFN_vkCreateInstance>(next()(nullptr, "vkCreateInstance"))(info, callbacks, instance);
}

VKAPI_ATTR VkResult VKAPI_CALL extensions(VkPhysicalDevice device, const char* layer, std::uint32_t* count,
                                          VkExtensionProperties* out) {
  std::uint32_t own = 0;
  VkResult result = next_extensions(device, layer, &own, nullptr);
  if (result != VK_SUCCESS || layer != nullptr) return next_extensions(device, layer, count, out);
  std::vector<VkExtensionProperties> all(own);
  result = next_extensions(device, layer, &own, all.data());
  if (result != VK_SUCCESS) return result;
  VkExtensionProperties more{};
  std::strcpy(more.extensionName, subset);
  more.specVersion = 1;
  all.push_back(more);
  if (out == nullptr) {
    *count = own + 1;
    return VK_SUCCESS;
  }
  const bool fits = *count > own;
  *count = fits ? own + 1 : *count;
  std::memcpy(out, all.data(), *count * sizeof more);
  return fits ? VK_SUCCESS : VK_INCOMPLETE;
}

// The driver below knows nothing of it.
VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                                             const VkAllocationCallbacks* callbacks, VkDevice* device) {
  std::vector<const char*> names;
  for (std::uint32_t i = 0; i < info->enabledExtensionCount; ++i) {
    if (std::strcmp(info->ppEnabledExtensionNames[i], subset) != 0) names.push_back(info->ppEnabledExtensionNames[i]);
  }
  if (names.size() + 1 != info->enabledExtensionCount) {
    std::fprintf(stderr, "the device is not created with %s\n", subset);
    return VK_ERROR_INITIALIZATION_FAILED;
  }
  VkDeviceCreateInfo own = *info;
  own.enabledExtensionCount = static_cast<std::uint32_t>(names.size());
  own.ppEnabledExtensionNames = names.data();
  std::printf("a device with %s is created\n", subset);
  return next_create_device(physical, &own, callbacks, device);
}

template <class Function, class Next>
PFN_vkVoidFunction instead(PFN_vkVoidFunction found, Function function, Next& next_function) {
  next_function = reinterpret_cast<Next>(found);
  return reinterpret_cast<PFN_vkVoidFunction>(function);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL
vkGetInstanceProcAddr(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction found = next()(instance, name);
  const std::string wanted = name;
  if (wanted == "vkGetInstanceProcAddr") return reinterpret_cast<PFN_vkVoidFunction>(&vkGetInstanceProcAddr);
  if (wanted == "vkCreateInstance") return reinterpret_cast<PFN_vkVoidFunction>(&create_instance);
  if (wanted == "vkEnumerateDeviceExtensionProperties") return instead(found, &extensions, next_extensions);
  if (wanted == "vkCreateDevice") return instead(found, &create_device, next_create_device);
  return found;
}
