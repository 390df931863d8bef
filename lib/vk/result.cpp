#include "vk/result.hpp"

namespace brontes::vk {

const char* result_name(VkResult result) noexcept {
  switch (result) {
#define BRONTES_NAME(code) \
  case code: return #code;
    BRONTES_NAME(VK_SUCCESS)
    BRONTES_NAME(VK_NOT_READY)
    BRONTES_NAME(VK_TIMEOUT)
    BRONTES_NAME(VK_INCOMPLETE)
    BRONTES_NAME(VK_ERROR_OUT_OF_HOST_MEMORY)
    BRONTES_NAME(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    BRONTES_NAME(VK_ERROR_INITIALIZATION_FAILED)
    BRONTES_NAME(VK_ERROR_DEVICE_LOST)
    BRONTES_NAME(VK_ERROR_MEMORY_MAP_FAILED)
    BRONTES_NAME(VK_ERROR_LAYER_NOT_PRESENT)
    BRONTES_NAME(VK_ERROR_EXTENSION_NOT_PRESENT)
    BRONTES_NAME(VK_ERROR_FEATURE_NOT_PRESENT)
    BRONTES_NAME(VK_ERROR_INCOMPATIBLE_DRIVER)
    BRONTES_NAME(VK_ERROR_TOO_MANY_OBJECTS)
    BRONTES_NAME(VK_ERROR_FRAGMENTED_POOL)
    BRONTES_NAME(VK_ERROR_OUT_OF_POOL_MEMORY)
    BRONTES_NAME(VK_ERROR_FRAGMENTATION)
    BRONTES_NAME(VK_ERROR_UNKNOWN)
#undef BRONTES_NAME
    default: return "an unnamed VkResult";
  }
}

Error check(VkResult result, const char* what) {
  if (result >= 0 && result != VK_TIMEOUT) return {};
  Errc code = Errc::vulkan;
  switch (result) {
    case VK_TIMEOUT: code = Errc::timeout; break;
    case VK_ERROR_DEVICE_LOST: code = Errc::device_lost; break;
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS: code = Errc::out_of_memory; break;
    case VK_ERROR_LAYER_NOT_PRESENT:
    case VK_ERROR_EXTENSION_NOT_PRESENT:
    case VK_ERROR_FEATURE_NOT_PRESENT: code = Errc::unsupported; break;
    default: break;
  }
  return Error(code, std::string(what) + ": " + result_name(result) + " (" + std::to_string(result) + ")",
               static_cast<std::int32_t>(result));
}

}  // namespace brontes::vk
