// Command and descriptor pools that finished work gives back, so that a warm program makes none.
#pragma once

#include "vk/handle.hpp"

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
  std::uint32_t uniform = 0;

  bool covers(const DescriptorNeeds& other) const noexcept {
    return sets >= other.sets && storage >= other.storage && texel >= other.texel && uniform >= other.uniform;
  }
};

struct DescriptorSlot {
  DescriptorPool pool;
  DescriptorNeeds room;
  std::uint64_t last_use = 0;  // timeline value
};

/// Thread-safety: any thread. A slot that is taken belongs to one.
class Recycler {
 public:
  explicit Recycler(Context& context) : context_(context) {}

  /// An empty command buffer.
  Result<CommandSlot> take_commands();
  /// A pool with at least this much room.
  Result<DescriptorSlot> take_descriptors(const DescriptorNeeds& needs);

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
