#include "vk/recycler.hpp"

#include "vk/context.hpp"
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
  // Too many: the oldest goes, if its work is done.
  if (idle.size() > most_idle && context_.queue().reached(idle.front().last_use)) idle.erase(idle.begin());
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

Result<DescriptorSlot> Recycler::take_descriptors(std::uint32_t sets, std::uint32_t descriptors) {
  const DeviceTable& vk = context_.vk();
  DescriptorSlot slot =
      take(descriptors_, [&](const DescriptorSlot& s) { return s.sets >= sets && s.descriptors >= descriptors; });
  if (slot.pool) {
    if (Error e = check(vk.vkResetDescriptorPool(context_.device(), slot.pool.get(), 0), "vkResetDescriptorPool")) {
      return e;
    }
    return slot;
  }
  slot.sets = std::bit_ceil(std::max(sets, 16u));
  slot.descriptors = std::bit_ceil(std::max(descriptors, 64u));
  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, slot.descriptors};
  VkDescriptorPoolCreateInfo create{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  create.maxSets = slot.sets;
  create.poolSizeCount = 1;
  create.pPoolSizes = &size;
  VkDescriptorPool pool = VK_NULL_HANDLE;
  if (Error e =
          check(vk.vkCreateDescriptorPool(context_.device(), &create, nullptr, &pool), "vkCreateDescriptorPool")) {
    return e;
  }
  slot.pool = DescriptorPool(context_.device(), vk, pool);
  context_.set_name(VK_OBJECT_TYPE_DESCRIPTOR_POOL, reinterpret_cast<std::uint64_t>(pool), "brontes descriptors");
  return slot;
}

void Recycler::give(CommandSlot slot) { put(commands_, std::move(slot)); }
void Recycler::give(DescriptorSlot slot) { put(descriptors_, std::move(slot)); }

}  // namespace brontes::vk
