#include "memory_model.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace brontes::test {
namespace {

// What nobody has written yet: on the host, a stale line of the cache. A word of it stands for no data of a test.
constexpr auto stale = std::byte{0xA5};
constexpr std::uint32_t stale_word = 0xA5A5A5A5;

// A block that the library has mapped. `host` is what it sees.
//
// Memory that is not coherent: whole atoms are copied when they are flushed or invalidated.
// Memory that is coherent and not cached: what the host has written goes to the device with the next submit, and what
// the device writes never comes back. A real device would send it, slowly; here whoever reads it gets stale bytes.
struct Block {
  VkMemoryPropertyFlags flags = 0;
  VkDeviceSize bytes = 0;
  std::byte* device = nullptr;
  std::vector<std::byte> host;

  bool coherent() const { return (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0; }
  bool cached() const { return (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0; }
  bool apart() const { return !coherent() || !cached(); }
};

std::mutex mutex;
std::vector<VkMemoryPropertyFlags> types;
std::map<VkDeviceMemory, Block> blocks;

// The driver's functions by name, kept when they are handed out.
#define MODELLED_FUNCTIONS(X)             \
  X(vkAllocateMemory)                     \
  X(vkFlushMappedMemoryRanges)            \
  X(vkFreeMemory)                         \
  X(vkGetBufferMemoryRequirements)        \
  X(vkGetBufferMemoryRequirements2)       \
  X(vkGetPhysicalDeviceMemoryProperties)  \
  X(vkGetPhysicalDeviceMemoryProperties2) \
  X(vkGetPhysicalDeviceProperties)        \
  X(vkGetPhysicalDeviceProperties2)       \
  X(vkInvalidateMappedMemoryRanges)       \
  X(vkMapMemory)                          \
  X(vkQueueSubmit)                        \
  X(vkUnmapMemory)
#define REAL(function) std::atomic<PFN_##function> real_##function{nullptr};
MODELLED_FUNCTIONS(REAL)
#undef REAL

void describe(VkPhysicalDeviceMemoryProperties& memory) {
  const std::lock_guard lock(mutex);
  if (types.empty()) return;
  memory.memoryHeapCount = 2;
  memory.memoryHeaps[0].flags = VK_MEMORY_HEAP_DEVICE_LOCAL_BIT;
  memory.memoryHeaps[1] = {memory.memoryHeaps[0].size, 0};
  memory.memoryTypeCount = static_cast<std::uint32_t>(types.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    memory.memoryTypes[i] = {types[i], (types[i] & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0 ? 0u : 1u};
  }
}

VKAPI_ATTR void VKAPI_CALL memory_properties(VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties* out) {
  real_vkGetPhysicalDeviceMemoryProperties.load()(device, out);
  describe(*out);
}

VKAPI_ATTR void VKAPI_CALL memory_properties2(VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties2* out) {
  real_vkGetPhysicalDeviceMemoryProperties2.load()(device, out);
  describe(out->memoryProperties);
  for (auto* next = static_cast<VkBaseOutStructure*>(out->pNext); next != nullptr; next = next->pNext) {
    if (next->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT) continue;
    auto* budget = reinterpret_cast<VkPhysicalDeviceMemoryBudgetPropertiesEXT*>(next);
    budget->heapBudget[1] = budget->heapBudget[0];
    budget->heapUsage[1] = budget->heapUsage[0];
  }
}

void widen_atom(VkPhysicalDeviceLimits& limits) {
  const std::lock_guard lock(mutex);
  if (!types.empty()) limits.nonCoherentAtomSize = std::max(limits.nonCoherentAtomSize, model_atom);
}

VKAPI_ATTR void VKAPI_CALL properties(VkPhysicalDevice device, VkPhysicalDeviceProperties* out) {
  real_vkGetPhysicalDeviceProperties.load()(device, out);
  widen_atom(out->limits);
}

VKAPI_ATTR void VKAPI_CALL properties2(VkPhysicalDevice device, VkPhysicalDeviceProperties2* out) {
  real_vkGetPhysicalDeviceProperties2.load()(device, out);
  widen_atom(out->properties.limits);
}

void widen_types(VkMemoryRequirements& requirements) {
  const std::lock_guard lock(mutex);
  if (!types.empty()) requirements.memoryTypeBits = (1u << types.size()) - 1;
}

VKAPI_ATTR void VKAPI_CALL requirements(VkDevice device, VkBuffer buffer, VkMemoryRequirements* out) {
  real_vkGetBufferMemoryRequirements.load()(device, buffer, out);
  widen_types(*out);
}

VKAPI_ATTR void VKAPI_CALL requirements2(VkDevice device, const VkBufferMemoryRequirementsInfo2* info,
                                         VkMemoryRequirements2* out) {
  real_vkGetBufferMemoryRequirements2.load()(device, info, out);
  widen_types(out->memoryRequirements);
}

// CPU drivers have one memory type, which every type of the model stands for.
VKAPI_ATTR VkResult VKAPI_CALL allocate(VkDevice device, const VkMemoryAllocateInfo* info,
                                        const VkAllocationCallbacks* callbacks, VkDeviceMemory* made) {
  VkMemoryAllocateInfo own = *info;
  const std::lock_guard lock(mutex);
  if (!types.empty()) own.memoryTypeIndex = 0;
  const VkResult result = real_vkAllocateMemory.load()(device, &own, callbacks, made);
  if (result != VK_SUCCESS || types.empty()) return result;
  Block block;
  block.flags = types[info->memoryTypeIndex];
  block.bytes = info->allocationSize;
  blocks[*made] = std::move(block);
  return result;
}

VKAPI_ATTR void VKAPI_CALL free_memory(VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks* callbacks) {
  {
    const std::lock_guard lock(mutex);
    blocks.erase(memory);
  }
  real_vkFreeMemory.load()(device, memory, callbacks);
}

VKAPI_ATTR VkResult VKAPI_CALL map(VkDevice device, VkDeviceMemory memory, VkDeviceSize offset, VkDeviceSize size,
                                   VkMemoryMapFlags flags, void** data) {
  const std::lock_guard lock(mutex);
  const auto found = blocks.find(memory);
  if (found == blocks.end() || !found->second.apart()) {
    return real_vkMapMemory.load()(device, memory, offset, size, flags, data);
  }
  Block& block = found->second;
  if ((block.flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) == 0) return VK_ERROR_MEMORY_MAP_FAILED;
  void* whole = nullptr;
  const VkResult result = real_vkMapMemory.load()(device, memory, 0, VK_WHOLE_SIZE, flags, &whole);
  if (result != VK_SUCCESS) return result;
  block.device = static_cast<std::byte*>(whole);
  block.host.assign(block.bytes, stale);
  *data = block.host.data() + offset;
  return result;
}

// Under the lock. What was sent is stale again: a later write of the same is seen, and a read is not served.
void send(Block& block) {
  if (!block.coherent()) return;
  static const std::vector<std::byte> untouched(std::size_t{64} << 10, stale);
  for (std::size_t page = 0; page < block.host.size(); page += untouched.size()) {
    const std::size_t end = std::min(page + untouched.size(), block.host.size());
    if (std::memcmp(&block.host[page], untouched.data(), end - page) == 0) continue;
    for (std::size_t i = page; i + sizeof stale_word <= end; i += sizeof stale_word) {
      if (std::memcmp(&block.host[i], &stale_word, sizeof stale_word) == 0) continue;
      std::memcpy(block.device + i, &block.host[i], sizeof stale_word);
      std::memcpy(&block.host[i], &stale_word, sizeof stale_word);
    }
  }
}

VKAPI_ATTR void VKAPI_CALL unmap(VkDevice device, VkDeviceMemory memory) {
  {
    const std::lock_guard lock(mutex);
    if (const auto found = blocks.find(memory); found != blocks.end()) {
      send(found->second);
      found->second.host.clear();
    }
  }
  real_vkUnmapMemory.load()(device, memory);
}

// Copies each range with `copy(block, offset, bytes)`.
template <class Copy>
VkResult whole_atoms(std::uint32_t count, const VkMappedMemoryRange* ranges, Copy copy) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::lock_guard lock(mutex);
    const auto found = blocks.find(ranges[i].memory);
    if (found == blocks.end() || found->second.host.empty()) continue;
    Block& block = found->second;
    const VkDeviceSize offset = ranges[i].offset;
    const VkDeviceSize bytes = ranges[i].size == VK_WHOLE_SIZE ? block.bytes - offset : ranges[i].size;
    const bool aligned = offset % model_atom == 0 && (bytes % model_atom == 0 || offset + bytes == block.bytes);
    if (!aligned || offset + bytes > block.bytes) return VK_ERROR_VALIDATION_FAILED_EXT;
    if (!block.coherent()) copy(block, offset, bytes);
  }
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL flush(VkDevice, std::uint32_t count, const VkMappedMemoryRange* ranges) {
  return whole_atoms(count, ranges, [](Block& block, VkDeviceSize offset, VkDeviceSize bytes) {
    std::memcpy(block.device + offset, block.host.data() + offset, bytes);
  });
}

VKAPI_ATTR VkResult VKAPI_CALL invalidate(VkDevice, std::uint32_t count, const VkMappedMemoryRange* ranges) {
  return whole_atoms(count, ranges, [](Block& block, VkDeviceSize offset, VkDeviceSize bytes) {
    std::memcpy(block.host.data() + offset, block.device + offset, bytes);
  });
}

VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, std::uint32_t count, const VkSubmitInfo* infos, VkFence fence) {
  {
    const std::lock_guard lock(mutex);
    for (auto& [memory, block] : blocks) send(block);
  }
  return real_vkQueueSubmit.load()(queue, count, infos, fence);
}

}  // namespace

void model_memory(const std::uint32_t* flags, std::uint32_t count) {
  const std::lock_guard lock(mutex);
  types.assign(flags, flags + count);
}

PFN_vkVoidFunction modelled(const char* name, PFN_vkVoidFunction real) {
  struct Row {
    const char* name;
    PFN_vkVoidFunction ours;
  };
#define OURS(function, ours) \
  { #function, reinterpret_cast < PFN_vkVoidFunction>(static_cast <PFN_##function>(ours)) }
  static const Row rows[] = {
      OURS(vkAllocateMemory, allocate),
      OURS(vkFlushMappedMemoryRanges, flush),
      OURS(vkFreeMemory, free_memory),
      OURS(vkGetBufferMemoryRequirements, requirements),
      OURS(vkGetBufferMemoryRequirements2, requirements2),
      OURS(vkGetPhysicalDeviceMemoryProperties, memory_properties),
      OURS(vkGetPhysicalDeviceMemoryProperties2, memory_properties2),
      OURS(vkGetPhysicalDeviceProperties, properties),
      OURS(vkGetPhysicalDeviceProperties2, properties2),
      OURS(vkInvalidateMappedMemoryRanges, invalidate),
      OURS(vkMapMemory, map),
      OURS(vkQueueSubmit, submit),
      OURS(vkUnmapMemory, unmap),
  };
#undef OURS
  const auto row =
      std::find_if(std::begin(rows), std::end(rows), [&](const Row& r) { return !std::strcmp(r.name, name); });
  if (row == std::end(rows)) return real;
#define KEEP(function) \
  if (std::strcmp(name, #function) == 0) real_##function = reinterpret_cast<PFN_##function>(real);
  MODELLED_FUNCTIONS(KEEP)
#undef KEEP
  return row->ours;
}

}  // namespace brontes::test
