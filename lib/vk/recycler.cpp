#include "vk/recycler.hpp"

#include "vk/context.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace brontes::vk {
namespace {
constexpr std::size_t most_idle = 8;
}

// An idle slot that fits and is not in use any more, or an empty one.
template <class Slot, class Fits>
std::unique_ptr<Slot, GiveBack> Recycler::take(Shelf<Slot>& idle, Fits fits) {
  {
    std::lock_guard lock(mutex_);
    auto usable = [&](const Slot& slot) { return fits(slot) && context_.queue().reached(slot.last_use); };
    if (auto slot = idle.take(usable)) return std::unique_ptr<Slot, GiveBack>(slot.release());
  }
  std::unique_ptr<Slot, GiveBack> fresh(new Slot);
  fresh->recycler = this;
  return fresh;
}

template <class Slot>
void Recycler::put(Shelf<Slot>& idle, std::unique_ptr<Slot> slot) noexcept {
  if (!slot->pool) return;
  if (context_.abandoned()) {
    slot->pool.release();
    return;
  }
  std::lock_guard lock(mutex_);
  idle.put(std::move(slot));
  // Too many: the oldest go, if their work is done.
  while (idle.size() > most_idle && context_.queue().reached(idle.front().last_use)) {
    idle.take([](const Slot&) { return true; });
  }
}

void GiveBack::operator()(CommandSlot* slot) const noexcept {
  slot->recycler->put(slot->recycler->commands_, std::unique_ptr<CommandSlot>(slot));
}

void GiveBack::operator()(DescriptorSlot* slot) const noexcept {
  slot->recycler->put(slot->recycler->descriptors_, std::unique_ptr<DescriptorSlot>(slot));
}

void GiveBack::operator()(TimestampSlot* slot) const noexcept {
  slot->recycler->put(slot->recycler->timestamps_, std::unique_ptr<TimestampSlot>(slot));
}

Result<Commands> Recycler::take_commands() {
  if (Error e = context_.usable()) return e;
  const DeviceTable& vk = context_.vk();
  Commands slot = take(commands_, [](const CommandSlot&) { return true; });
  if (slot->pool) {
    if (Error e = context_.check(vk.vkResetCommandPool(context_.device(), slot->pool.get(), 0), "vkResetCommandPool")) {
      return e;
    }
    return slot;
  }
  VkCommandPoolCreateInfo create{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  create.queueFamilyIndex = context_.physical().queue_family;
  VkCommandPool made = VK_NULL_HANDLE;
  if (Error e = context_.check(vk.vkCreateCommandPool(context_.device(), &create, vk.callbacks, &made),
                               "vkCreateCommandPool")) {
    return e;
  }
  CommandPool pool(context_.device(), vk, made);
  VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  allocate.commandPool = made;
  allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocate.commandBufferCount = 1;
  if (Error e = context_.check(vk.vkAllocateCommandBuffers(context_.device(), &allocate, &slot->buffer),
                               "vkAllocateCommandBuffers")) {
    return e;
  }
  context_.set_name(VK_OBJECT_TYPE_COMMAND_POOL, reinterpret_cast<std::uint64_t>(made), "brontes commands");
  context_.set_name(VK_OBJECT_TYPE_COMMAND_BUFFER, reinterpret_cast<std::uint64_t>(slot->buffer), "brontes batch");
  slot->pool = std::move(pool);  // last: without a pool the slot is no slot and goes
  return slot;
}

std::uint64_t address_stride(const Context& context) noexcept {
  return std::max<std::uint64_t>(address_table_bytes, context.physical().limits.minUniformBufferOffsetAlignment);
}

namespace {

// Powers of two, so that programs of about the same size fit in each other's.
std::uint32_t rounded(std::uint32_t count) noexcept { return count == 0 ? 0u : std::bit_ceil(std::max(count, 64u)); }

}  // namespace

std::uint64_t address_bytes(const Context& context, std::uint32_t dispatches) noexcept {
  return rounded(dispatches) * address_stride(context);
}

DescriptorSlot::Sets& DescriptorSlot::of(VkDescriptorSetLayout layout) noexcept {
  auto found = std::find_if(sets.begin(), sets.end(), [&](const Sets& s) { return s.layout == layout; });
  assert(found != sets.end());
  return *found;
}

Result<Descriptors> Recycler::take_descriptors(Span<const SetsWanted> wanted, std::uint64_t* allocations) {
  if (Error e = context_.usable()) return e;
  DescriptorNeeds needs;
  for (const SetsWanted& w : wanted) needs += w.count * w.each;
  Descriptors slot = take(descriptors_, [&](const DescriptorSlot& s) { return s.room.covers(needs); });
  if (!slot->pool) {
    if (Error e = make_pool(needs, *slot, allocations)) return e;
  }
  if (Error e = allocate_sets(wanted, *slot)) return e;
  return slot;
}

Error Recycler::make_pool(const DescriptorNeeds& needs, DescriptorSlot& slot, std::uint64_t* allocations) {
  const DeviceTable& vk = context_.vk();
  slot.room = {std::bit_ceil(std::max(needs.sets, 16u)), rounded(std::max(needs.storage, 1u)), rounded(needs.texel),
               rounded(needs.uniform)};
  VkDescriptorPoolSize sizes[3];
  std::uint32_t kinds = 0;
  auto add = [&](VkDescriptorType type, std::uint32_t count) {
    if (count != 0) sizes[kinds++] = {type, count};
  };
  add(VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, slot.room.storage);
  add(VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, slot.room.texel);
  add(VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, slot.room.uniform);
  VkDescriptorPoolCreateInfo create{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  create.maxSets = slot.room.sets;
  create.poolSizeCount = kinds;
  create.pPoolSizes = sizes;
  VkDescriptorPool made = VK_NULL_HANDLE;
  if (Error e = context_.check(vk.vkCreateDescriptorPool(context_.device(), &create, vk.callbacks, &made),
                               "vkCreateDescriptorPool")) {
    return e;
  }
  DescriptorPool pool(context_.device(), vk, made);
  context_.set_name(VK_OBJECT_TYPE_DESCRIPTOR_POOL, reinterpret_cast<std::uint64_t>(made), "brontes descriptors");
  if (slot.room.uniform != 0) {
    auto tables = context_.memory().allocate(context_, address_bytes(context_, slot.room.uniform), MemoryUse::uniform,
                                             "brontes addresses");
    if (!tables) return tables.error();
    slot.addresses = std::move(*tables);
    ++*allocations;
  }
  slot.pool = std::move(pool);  // last: without a pool the slot is no slot and goes
  return {};
}

// Those that are there are used again; where the others do not fit beside them, all are allocated anew.
Error Recycler::allocate_sets(Span<const SetsWanted> wanted, DescriptorSlot& slot) {
  const DeviceTable& vk = context_.vk();
  DescriptorNeeds missing;
  std::uint32_t most = 0;
  for (DescriptorSlot::Sets& known : slot.sets) known.used = 0;
  for (const SetsWanted& w : wanted) {
    auto known = std::find_if(slot.sets.begin(), slot.sets.end(),
                              [&](const DescriptorSlot::Sets& s) { return s.layout == w.layout; });
    if (known == slot.sets.end()) known = slot.sets.insert(known, {w.layout, {}, 0, 0});
    known->all.reserve(w.count);
    const auto there = static_cast<std::uint32_t>(std::min<std::size_t>(known->all.size(), w.count));
    missing += (w.count - there) * w.each;
    most = std::max(most, w.count);
  }
  if (missing.sets == 0) return {};
  if (!slot.room.covers(slot.taken + missing)) {
    for (DescriptorSlot::Sets& known : slot.sets) {
      known.all.clear();
      known.written = 0;
    }
    slot.taken = {};
    if (Error e =
            context_.check(vk.vkResetDescriptorPool(context_.device(), slot.pool.get(), 0), "vkResetDescriptorPool")) {
      slot.pool.reset();  // what it has is not known any more
      return e;
    }
  }
  std::vector<VkDescriptorSetLayout> layouts;
  layouts.reserve(most);
  std::vector<VkDescriptorSet> made;
  made.reserve(most);
  for (const SetsWanted& w : wanted) {
    std::vector<VkDescriptorSet>& all = slot.of(w.layout).all;
    if (all.size() >= w.count) continue;
    const auto count = static_cast<std::uint32_t>(w.count - all.size());
    layouts.assign(count, w.layout);
    made.resize(count);
    VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate.descriptorPool = slot.pool.get();
    allocate.descriptorSetCount = count;
    allocate.pSetLayouts = layouts.data();
    if (Error e = context_.check(vk.vkAllocateDescriptorSets(context_.device(), &allocate, made.data()),
                                 "vkAllocateDescriptorSets")) {
      return e;
    }
    all.insert(all.end(), made.begin(), made.end());
    slot.taken += count * w.each;
  }
  return {};
}

Result<Timestamps> Recycler::take_timestamps(std::uint32_t count) {
  if (Error e = context_.usable()) return e;
  if (context_.timestamp_bits() == 0) {
    return Error(Errc::unsupported, context_.info().name + ": the compute queue has no timestamps");
  }
  Timestamps slot = take(timestamps_, [&](const TimestampSlot& s) { return s.room >= count; });
  if (slot->pool) return slot;
  VkQueryPoolCreateInfo create{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
  create.queryType = VK_QUERY_TYPE_TIMESTAMP;
  create.queryCount = slot->room = rounded(count);
  VkQueryPool made = VK_NULL_HANDLE;
  const DeviceTable& vk = context_.vk();
  if (Error e =
          context_.check(vk.vkCreateQueryPool(context_.device(), &create, vk.callbacks, &made), "vkCreateQueryPool")) {
    return e;
  }
  slot->pool = QueryPool(context_.device(), vk, made);
  context_.set_name(VK_OBJECT_TYPE_QUERY_POOL, reinterpret_cast<std::uint64_t>(made), "brontes timestamps");
  return slot;
}

void TimestampSlot::reset(VkCommandBuffer commands) const {
  recycler->context().vk().vkCmdResetQueryPool(commands, pool.get(), 0, room);
}

void TimestampSlot::write(VkCommandBuffer commands, std::uint32_t index) const {
  recycler->context().vk().vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool.get(), index);
}

Result<std::vector<std::uint64_t>> TimestampSlot::read(std::size_t count) const {
  std::vector<std::uint64_t> ticks(count);
  if (count == 0) return ticks;
  const Context& context = recycler->context();
  const VkResult result = context.vk().vkGetQueryPoolResults(
      context.device(), pool.get(), 0, static_cast<std::uint32_t>(count), count * sizeof(ticks[0]), ticks.data(),
      sizeof(ticks[0]), VK_QUERY_RESULT_64_BIT);
  if (result == VK_NOT_READY) return Error(Errc::vulkan, "vkGetQueryPoolResults: a timestamp was not written", result);
  if (Error e = context.check(result, "vkGetQueryPoolResults")) return e;
  return ticks;
}

}  // namespace brontes::vk
