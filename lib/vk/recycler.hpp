// Command and descriptor pools, the latter with the addresses that descriptors show, and pools of timestamps, which
// finished work gives back: a warm program makes none.
#pragma once

#include "vk/handle.hpp"
#include "vk/memory.hpp"
#include "vk/shelf.hpp"

#include <brontes/error.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace brontes::vk {

class Context;
class Recycler;

struct CommandSlot {
  CommandPool pool;
  VkCommandBuffer buffer = VK_NULL_HANDLE;
  std::uint64_t last_use = 0;  // timeline value
  Recycler* recycler = nullptr;
  std::unique_ptr<CommandSlot> next;  // on the recycler's shelf
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
  Recycler* recycler = nullptr;
  std::unique_ptr<DescriptorSlot> next;  // on the recycler's shelf
};

/// Timestamps that command buffers write while they run, each once between two resets.
struct TimestampSlot {
  QueryPool pool;
  std::uint32_t room = 0;
  std::uint64_t last_use = 0;  // timeline value
  Recycler* recycler = nullptr;
  std::unique_ptr<TimestampSlot> next;  // on the recycler's shelf

  /// Before the first write of a run.
  void reset(VkCommandBuffer commands) const;
  /// Written when everything recorded before it is done. It holds nothing up.
  void write(VkCommandBuffer commands, std::uint32_t index) const;
  /// The ticks of the first ones, once what writes them is done. Only the low Context::timestamp_bits() count.
  Result<std::vector<std::uint64_t>> read(std::size_t count) const;
};

/// Gives a slot back to its recycler.
struct GiveBack {
  void operator()(CommandSlot* slot) const noexcept;
  void operator()(DescriptorSlot* slot) const noexcept;
  void operator()(TimestampSlot* slot) const noexcept;
};

/// Slots go back when their owner does, also while work that uses them is in flight: none is taken again before its
/// last use is over.
using Commands = std::unique_ptr<CommandSlot, GiveBack>;
using Descriptors = std::unique_ptr<DescriptorSlot, GiveBack>;
using Timestamps = std::unique_ptr<TimestampSlot, GiveBack>;

/// Bytes from one dispatch's table of addresses to the next one's.
std::uint64_t address_stride(const Context& context) noexcept;

/// Memory for the tables of so many dispatches, with room for others that come later.
std::uint64_t address_bytes(const Context& context, std::uint32_t dispatches) noexcept;

/// Thread-safety: any thread. A slot that is taken belongs to one.
class Recycler {
 public:
  explicit Recycler(Context& context) : context_(context) {}

  /// An empty command buffer.
  Result<Commands> take_commands();
  /// A pool with at least this much room. Adds to `allocations` what memory it took.
  Result<Descriptors> take_descriptors(const DescriptorNeeds& needs, std::uint64_t* allocations);
  /// At least so many. Errc::unsupported where the queue has none.
  Result<Timestamps> take_timestamps(std::uint32_t count);

  const Context& context() const noexcept { return context_; }

 private:
  friend struct GiveBack;
  template <class Slot, class Fits>
  std::unique_ptr<Slot, GiveBack> take(Shelf<Slot>& idle, Fits fits);
  template <class Slot>
  void put(Shelf<Slot>& idle, std::unique_ptr<Slot> slot) noexcept;

  Context& context_;
  std::mutex mutex_;
  Shelf<CommandSlot> commands_;
  Shelf<DescriptorSlot> descriptors_;
  Shelf<TimestampSlot> timestamps_;
};

}  // namespace brontes::vk
