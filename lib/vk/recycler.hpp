// Command and descriptor pools, the latter with the addresses that descriptors show, which finished work gives back: a
// warm program makes none.
#pragma once

#include "vk/handle.hpp"
#include "vk/memory.hpp"

#include <brontes/error.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace brontes::vk {

class Context;

struct CommandSlot {
  CommandPool pool;
  VkCommandBuffer buffer = VK_NULL_HANDLE;
  std::uint64_t last_use = 0;  // timeline value
};

struct DescriptorNeeds {
  std::uint32_t sets = 0;
  std::uint32_t storage = 0;
  std::uint32_t texel = 0;
  std::uint32_t uniform = 0;  // a table of addresses each

  bool covers(const DescriptorNeeds& other) const noexcept {
    return sets >= other.sets && storage >= other.storage && texel >= other.texel && uniform >= other.uniform;
  }
};

struct DescriptorSlot {
  DescriptorPool pool;
  DescriptorNeeds room;
  std::unique_ptr<Allocation> addresses;  // tables for room.uniform, address_stride() apart; null for none
  std::uint64_t last_use = 0;             // timeline value
};

/// Bytes from one dispatch's table of addresses to the next one's.
std::uint64_t address_stride(const Context& context) noexcept;

/// Thread-safety: any thread. A slot that is taken belongs to one.
class Recycler {
 public:
  explicit Recycler(Context& context) : context_(context) {}

  /// An empty command buffer.
  Result<CommandSlot> take_commands();
  /// A pool with at least this much room. Adds to `allocations` what memory it took.
  Result<DescriptorSlot> take_descriptors(const DescriptorNeeds& needs, std::uint64_t* allocations);

  /// Also for work in flight: a slot is not taken again before its last use is over.
  void give(CommandSlot slot);
  void give(DescriptorSlot slot);

 private:
  template <class Slot, class Fits>
  Slot take(std::vector<Slot>& idle, Fits fits);
  template <class Slot>
  void put(std::vector<Slot>& idle, Slot slot);

  Context& context_;
  std::mutex mutex_;
  std::vector<CommandSlot> commands_;
  std::vector<DescriptorSlot> descriptors_;
};

}  // namespace brontes::vk
