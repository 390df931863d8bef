// Command pools, descriptor pools with their sets and the addresses that these show, and pools of timestamps, which
// finished work gives back: a warm program makes none.
#pragma once

#include "vk/handle.hpp"
#include "vk/memory.hpp"
#include "vk/pipelines.hpp"
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

/// A pool and the sets that were allocated from it. They stay allocated when the slot goes back, since some drivers map
/// memory for each: whoever takes the slot next writes them anew.
struct DescriptorSlot {
  DescriptorPool pool;
  DescriptorNeeds room;
  DescriptorNeeds taken;  // of it, by sets
  struct Sets {
    VkDescriptorSetLayout layout;
    std::vector<VkDescriptorSet> all;
    std::size_t used = 0;     // by the plan that has the slot
    std::size_t written = 0;  // those that show their table of addresses; it is the same for good
  };
  std::vector<Sets> sets;                 // few
  std::unique_ptr<Allocation> addresses;  // tables for room.uniform, address_stride() apart; null for none
  std::uint64_t last_use = 0;             // timeline value
  Recycler* recycler = nullptr;
  std::unique_ptr<DescriptorSlot> next;  // on the recycler's shelf

  /// Those of a layout; adds none.
  Sets& of(VkDescriptorSetLayout layout) noexcept;
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
  /// Sets of a layout, each of which takes `each`.
  struct SetsWanted {
    VkDescriptorSetLayout layout;
    DescriptorNeeds each;
    std::uint32_t count = 0;
  };
  /// A pool with these sets, and perhaps others. Adds to `allocations` what memory it took.
  Result<Descriptors> take_descriptors(Span<const SetsWanted> wanted, std::uint64_t* allocations);
  /// At least so many. Errc::unsupported where the queue has none.
  Result<Timestamps> take_timestamps(std::uint32_t count);

  const Context& context() const noexcept { return context_; }

 private:
  friend struct GiveBack;
  template <class Slot, class Fits>
  std::unique_ptr<Slot, GiveBack> take(Shelf<Slot>& idle, Fits fits);
  template <class Slot>
  void put(Shelf<Slot>& idle, std::unique_ptr<Slot> slot) noexcept;
  Error make_pool(const DescriptorNeeds& needs, DescriptorSlot& slot, std::uint64_t* allocations);
  Error allocate_sets(Span<const SetsWanted> wanted, DescriptorSlot& slot);

  Context& context_;
  std::mutex mutex_;
  Shelf<CommandSlot> commands_;
  Shelf<DescriptorSlot> descriptors_;
  Shelf<TimestampSlot> timestamps_;
};

}  // namespace brontes::vk
