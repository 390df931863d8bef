// Stands between Brontes and the functions of a device that it adopts: sees some calls, and shows a device with more
// queue families than it has.
#pragma once

#include <vulkan/vulkan.h>

#include <cstdint>
#include <string>
#include <vector>

namespace brontes::test::shim {

/// What was seen since forget().
struct Seen {
  std::vector<std::string> labels;  // in the order they began
  std::uint64_t ended = 0;
  std::vector<std::string> names;
  std::vector<VkSharingMode> sharing;                // of each buffer that was created
  std::vector<std::vector<std::uint32_t>> families;  // likewise
  std::vector<VkBufferMemoryBarrier> transfers;      // barriers between different families; the driver never sees them
};
Seen seen();
void forget();

/// Families that are shown besides the device's own, each like its first.
void show_more_families(std::uint32_t count);

/// Offers VK_KHR_internally_synchronized_queues, and synchronizes vkQueueSubmit and vkQueueWaitIdle as a driver with it
/// does.
void offer_synchronized_queues(bool offered);

/// To be adopted with. `next` is the loader's.
PFN_vkGetInstanceProcAddr get_instance_proc_addr(PFN_vkGetInstanceProcAddr next);

}  // namespace brontes::test::shim
