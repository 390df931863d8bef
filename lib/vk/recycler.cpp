#include "vk/recycler.hpp"

#include "vk/context.hpp"
#include "vk/pipelines.hpp"
#include "vk/result.hpp"

#include <algorithm>
#include <bit>

namespace brontes::vk {
namespace {
constexpr std::size_t most_idle = 8;
}

// An idle slot that fits and is not in use any more, or an empty one.
template <class Slot, class Fits>
Slot Recycler::take(std::vector<Slot>& idle, Fits fits) {
  std::lock_guard lock(mutex_);
  auto usable = [&](const Slot& slot) { return fits(slot) && context_.queue().reached(slot.last_use); };
  auto it = std::find_if(idle.begin(), idle.end(), usable);
  if (it == idle.end()) return {};
  Slot slot = std::move(*it);
  idle.erase(it);
  return slot;
}

template <class Slot>
void Recycler::put(std::vector<Slot>& idle, Slot slot) {
  if (!slot.pool) return;
  std::lock_guard lock(mutex_);
  idle.push_back(std::move(slot));
  // Too many: the oldest go, if their work is done.
  while (idle.size() > most_idle && context_.queue().reached(idle.front().last_use)) idle.erase(idle.begin());
}

Result<CommandSlot> Recycler::take_commands() {
  const DeviceTable& vk = context_.vk();
  CommandSlot slot = take(commands_, [](const CommandSlot&) { return true; });
  if (slot.pool) {
    if (Error e = check(vk.vkResetCommandPool(context_.device(), slot.pool.get(), 0), "vkResetCommandPool")) return e;
    return slot;
  }
  VkCommandPoolCreateInfo create{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  create.queueFamilyIndex = context_.physical().queue_family;
  VkCommandPool pool = VK_NULL_HANDLE;
  if (Error e = check(vk.vkCreateCommandPool(context_.device(), &create, nullptr, &pool), "vkCreateCommandPool")) {
    return e;
  }
  slot.pool = CommandPool(context_.device(), vk, pool);
  VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  allocate.commandPool = pool;
  allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocate.commandBufferCount = 1;
  if (Error e =
          check(vk.vkAllocateCommandBuffers(context_.device(), &allocate, &slot.buffer), "vkAllocateCommandBuffers")) {
    return e;
  }
  context_.set_name(VK_OBJECT_TYPE_COMMAND_POOL, reinterpret_cast<std::uint64_t>(pool), "brontes commands");
  context_.set_name(VK_OBJECT_TYPE_COMMAND_BUFFER, reinterpret_cast<std::uint64_t>(slot.buffer), "brontes batch");
  return slot;
}

std::uint64_t address_stride(const Context& context) noexcept {
  return std::max<std::uint64_t>(address_table_bytes, context.physical().limits.minUniformBufferOffsetAlignment);
}

Result<DescriptorSlot> Recycler::take_descriptors(const DescriptorNeeds& needs, std::uint64_t* allocations) {
  const DeviceTable& vk = context_.vk();
  DescriptorSlot slot = take(descriptors_, [&](const DescriptorSlot& s) { return s.room.covers(needs); });
  if (slot.pool) {
    if (Error e = check(vk.vkResetDescriptorPool(context_.device(), slot.pool.get(), 0), "vkResetDescriptorPool")) {
      return e;
    }
    return slot;
  }
  // Powers of two, so that programs of about the same size fit in each other's.
  auto rounded = [](std::uint32_t count) { return count == 0 ? 0u : std::bit_ceil(std::max(count, 64u)); };
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
  VkDescriptorPool pool = VK_NULL_HANDLE;
  if (Error e =
          check(vk.vkCreateDescriptorPool(context_.device(), &create, nullptr, &pool), "vkCreateDescriptorPool")) {
    return e;
  }
  slot.pool = DescriptorPool(context_.device(), vk, pool);
  context_.set_name(VK_OBJECT_TYPE_DESCRIPTOR_POOL, reinterpret_cast<std::uint64_t>(pool), "brontes descriptors");
  if (slot.room.uniform != 0) {
    auto tables = context_.memory().allocate(context_, slot.room.uniform * address_stride(context_), MemoryUse::uniform,
                                             "brontes addresses");
    if (!tables) return tables.error();
    slot.addresses = std::move(*tables);
    ++*allocations;
  }
  return slot;
}

void Recycler::give(CommandSlot slot) { put(commands_, std::move(slot)); }
void Recycler::give(DescriptorSlot slot) { put(descriptors_, std::move(slot)); }

}  // namespace brontes::vk
