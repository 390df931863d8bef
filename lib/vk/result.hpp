// Where VkResult becomes Error.
#pragma once

#include "vk/table.hpp"

#include <brontes/error.hpp>

namespace brontes::vk {

/// "VK_ERROR_DEVICE_LOST". Never null.
const char* result_name(VkResult result) noexcept;

/// No error for success codes. `what` names the call and what it was for: "vkQueueSubmit".
Error check(VkResult result, const char* what);

}  // namespace brontes::vk
