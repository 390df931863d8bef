// Memory types that a device does not have. All of them lie in memory that the driver and the host share, but what the
// library gets to see of it is a copy, which meets the device's only when the specification says so.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <cstdint>

namespace brontes::test {

/// Devices have these memory types from now on, given by their flags; with `count` 0 their own. Those that are
/// DEVICE_LOCAL lie in the first heap, the others in a second one. Set before a device is opened.
void model_memory(const std::uint32_t* flags, std::uint32_t count);

/// The bytes that a flush or an invalidation moves at least, as whole and aligned atoms: nonCoherentAtomSize.
inline constexpr VkDeviceSize model_atom = 256;

/// What to call instead of function `name`, or `real` itself.
PFN_vkVoidFunction modelled(const char* name, PFN_vkVoidFunction real);

}  // namespace brontes::test
