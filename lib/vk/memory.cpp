#include "vk/memory.hpp"

#include "vk/context.hpp"
#include "vk/result.hpp"

// The allocator lives in a namespace of ours with internal linkage, so that an application that links
// the static library can have a VMA of its own, of any version. Its standard headers come first.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <type_traits>
#include <utility>

#define VMA_IMPLEMENTATION
#define VMA_STATIC_VULKAN_FUNCTIONS 0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 0
#define VMA_SYSTEM_ALIGNED_MALLOC(size, alignment) ::brontes::vk::HostReserve::allocate(size)
#define VMA_SYSTEM_ALIGNED_FREE(pointer) ::brontes::vk::HostReserve::free(pointer)
#define VMA_VULKAN_VERSION 1002000
#define VMA_STATS_STRING_ENABLED 0
#define VMA_CALL_PRE static
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
namespace brontes::vk::vma {
#include <vk_mem_alloc.h>
}
#pragma GCC diagnostic pop

namespace brontes::vk {
namespace {

vma::VmaAllocator allocator_of(void* pointer) { return static_cast<vma::VmaAllocator>(pointer); }
vma::VmaAllocation block_of(void* pointer) { return static_cast<vma::VmaAllocation>(pointer); }

// Memory types for what kernels reach that have these flags, too. A small window into a larger heap (a 256 MiB BAR)
// does not count.
std::uint32_t local_types(const VkPhysicalDeviceMemoryProperties& memory, VkMemoryPropertyFlags flags) {
  flags |= VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  VkDeviceSize largest = 0;
  for (std::uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    if ((memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0) {
      largest = std::max(largest, memory.memoryHeaps[i].size);
    }
  }
  std::uint32_t types = 0;
  for (std::uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    const VkMemoryType& type = memory.memoryTypes[i];
    if ((type.propertyFlags & flags) == flags && memory.memoryHeaps[type.heapIndex].size == largest) types |= 1u << i;
  }
  return types;
}

struct Mapping {
  HostAccess access = HostAccess::none;
  std::uint32_t types = 0;
};

Mapping choose_mapping(const VkPhysicalDeviceMemoryProperties& memory, const SimulatedLimits& simulate,
                       VkMemoryPropertyFlags besides) {
  if (simulate.staged_memory) return {};
  const std::uint32_t visible = local_types(memory, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | besides);
  const std::uint32_t cached =
      local_types(memory, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT | besides);
  if (cached != 0 && !simulate.uncached_memory) return {HostAccess::full, cached};
  if (visible != 0) return {HostAccess::write_only, visible};
  return {};
}

}  // namespace

Memory::~Memory() {
  if (allocator_ != nullptr && !abandoned_) vma::vmaDestroyAllocator(allocator_of(allocator_));
}

void Memory::close(bool abandon) noexcept {
  abandoned_ = abandon;
  if (abandon) reserve_.abandon();
  retired_.clear();
}

Error Memory::open(const Context& context, vulkan::MemoryAllocator host, bool addresses) {
  const Instance& instance = context.instance();
  const VkPhysicalDevice physical = context.physical().handle;
  vma::VmaVulkanFunctions functions{};
  functions.vkGetPhysicalDeviceProperties = instance.table.vkGetPhysicalDeviceProperties;
  functions.vkGetPhysicalDeviceMemoryProperties = instance.table.vkGetPhysicalDeviceMemoryProperties;
  functions.vkGetPhysicalDeviceMemoryProperties2KHR = instance.table.vkGetPhysicalDeviceMemoryProperties2;
#define BRONTES_USE(function) functions.function = context.vk().function;
  BRONTES_USE(vkAllocateMemory)
  BRONTES_USE(vkBindBufferMemory)
  BRONTES_USE(vkBindImageMemory)
  BRONTES_USE(vkCmdCopyBuffer)
  BRONTES_USE(vkCreateBuffer)
  BRONTES_USE(vkCreateImage)
  BRONTES_USE(vkDestroyBuffer)
  BRONTES_USE(vkDestroyImage)
  BRONTES_USE(vkFlushMappedMemoryRanges)
  BRONTES_USE(vkFreeMemory)
  BRONTES_USE(vkGetBufferMemoryRequirements)
  BRONTES_USE(vkGetImageMemoryRequirements)
  BRONTES_USE(vkInvalidateMappedMemoryRanges)
  BRONTES_USE(vkMapMemory)
  BRONTES_USE(vkUnmapMemory)
#undef BRONTES_USE
  functions.vkBindBufferMemory2KHR = context.vk().vkBindBufferMemory2;
  functions.vkBindImageMemory2KHR = context.vk().vkBindImageMemory2;
  functions.vkGetBufferMemoryRequirements2KHR = context.vk().vkGetBufferMemoryRequirements2;
  functions.vkGetImageMemoryRequirements2KHR = context.vk().vkGetImageMemoryRequirements2;
  vma::VmaAllocatorCreateInfo create{};
  create.physicalDevice = physical;
  create.device = context.device();
  create.instance = instance.handle;
  create.pVulkanFunctions = &functions;
  create.vulkanApiVersion = VK_API_VERSION_1_2;
  host_ = std::move(host);
  if (context.vk().callbacks != nullptr) reserve_.use(*context.vk().callbacks);
  create.pAllocationCallbacks = reserve_.callbacks();
  addresses_ = addresses;
  cap_ = context.options().memory_cap;
  // Blocks of 256 MiB, the allocator's usual ones, would make little of a small cap.
  if (cap_ != 0) create.preferredLargeHeapBlockSize = std::clamp<std::uint64_t>(cap_ / 8, 64 << 10, 256 << 20);
  if (addresses) create.flags |= vma::VMA_ALLOCATOR_CREATE_BUFFER_DEVICE_ADDRESS_BIT;
  if (context.memory_budget()) create.flags |= vma::VMA_ALLOCATOR_CREATE_EXT_MEMORY_BUDGET_BIT;
  vma::VmaAllocator allocator = nullptr;
  {
    const HostReserve::Use reserve(reserve_);
    if (Error e = context.check(vma::vmaCreateAllocator(&create, &allocator), "vmaCreateAllocator")) return e;
  }
  allocator_ = allocator;

  VkPhysicalDeviceMemoryProperties memory{};
  instance.table.vkGetPhysicalDeviceMemoryProperties(physical, &memory);
  // Neighbours of a block of the host's are not ours to flush.
  const VkMemoryPropertyFlags besides = host_.allocate ? VK_MEMORY_PROPERTY_HOST_COHERENT_BIT : 0;
  const Mapping mapping = choose_mapping(memory, context.options().simulate, besides);
  host_access_ = mapping.access;
  mapped_types_ = mapping.types;
  for (std::uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    if ((memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) == 0) continue;
    if (memory.memoryHeaps[i].size <= heap_bytes_) continue;
    heap_ = i;
    heap_bytes_ = memory.memoryHeaps[i].size;
  }

  VkPhysicalDeviceMaintenance3Properties maintenance{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &maintenance};
  instance.table.vkGetPhysicalDeviceProperties2(physical, &properties);
  max_bytes_ = maintenance.maxMemoryAllocationSize;
  return {};
}

Result<std::shared_ptr<Allocation>> Memory::allocate(std::shared_ptr<Context> context, std::uint64_t bytes,
                                                     MemoryUse use, const char* name, VkBufferUsageFlags extra_usage) {
  auto made = allocate(*context, bytes, use, name, extra_usage);
  if (!made) return made.error();
  (*made)->counted_ = true;
  ++live_buffers;
  live_bytes += bytes;
  return share(std::move(*made), std::move(context));
}

std::shared_ptr<Allocation> Memory::share(std::unique_ptr<Allocation> allocation, std::shared_ptr<Context> context) {
  return std::shared_ptr<Allocation>(allocation.release(), [owner = std::move(context)](Allocation* last) {
    retire(std::unique_ptr<Allocation>(last));
  });
}

Result<std::unique_ptr<Allocation>> Memory::allocate(Context& context, std::uint64_t bytes, MemoryUse use,
                                                     const char* name, VkBufferUsageFlags extra_usage) {
  if (Error e = context.usable()) return e;
  if (bytes > max_bytes_) {
    return Error(Errc::limit_exceeded, std::string(name) + ": " + std::to_string(bytes) +
                                           " bytes are more than this device gives in one piece, " +
                                           std::to_string(max_bytes_) + " (maxMemoryAllocationSize)");
  }
  VkBufferCreateInfo buffer{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  // A vec4 access to the last element must stay inside, and no buffer may be empty.
  buffer.size = (std::max<std::uint64_t>(bytes, 1) + 15) / 16 * 16;
  if (use == MemoryUse::device && !context.sharing().empty()) {
    buffer.sharingMode = VK_SHARING_MODE_CONCURRENT;
    buffer.queueFamilyIndexCount = static_cast<std::uint32_t>(context.sharing().size());
    buffer.pQueueFamilyIndices = context.sharing().data();
  }
  vma::VmaAllocationCreateInfo create{};
  create.usage = vma::VMA_MEMORY_USAGE_AUTO;
  switch (use) {
    case MemoryUse::device:
      buffer.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT |
                     VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
      if (addresses_) buffer.usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
      create.memoryTypeBits = mapped_types_;
      switch (host_access_) {
        case HostAccess::none: create.requiredFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT; break;
        case HostAccess::write_only:
          create.flags =
              vma::VMA_ALLOCATION_CREATE_MAPPED_BIT | vma::VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT;
          break;
        case HostAccess::full:
          create.flags = vma::VMA_ALLOCATION_CREATE_MAPPED_BIT | vma::VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT;
          break;
      }
      break;
    case MemoryUse::upload:
      buffer.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT;
      create.usage = vma::VMA_MEMORY_USAGE_AUTO_PREFER_HOST;
      create.flags =
          vma::VMA_ALLOCATION_CREATE_MAPPED_BIT | vma::VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT;
      break;
    case MemoryUse::readback:
      buffer.usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT;
      create.usage = vma::VMA_MEMORY_USAGE_AUTO_PREFER_HOST;
      create.flags = vma::VMA_ALLOCATION_CREATE_MAPPED_BIT | vma::VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT;
      break;
    case MemoryUse::uniform:
      buffer.usage = VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT;
      create.flags =
          vma::VMA_ALLOCATION_CREATE_MAPPED_BIT | vma::VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT;
      break;
  }
  buffer.usage |= extra_usage;
  // Beyond the budget the driver would have to move other memory out, or fail.
  if (context.memory_budget()) create.flags |= vma::VMA_ALLOCATION_CREATE_WITHIN_BUDGET_BIT;

  std::unique_ptr<Allocation> result(new Allocation());
  result->context_ = &context;
  collect(context);
  if (!take(bytes)) {
    reclaim(context);
    if (!take(bytes)) {
      return over_cap(name, bytes);
    }
  }
  // Counted from here on; given up where it comes to nothing.
  struct Taken {
    std::atomic<std::uint64_t>& used;
    std::uint64_t bytes;
    ~Taken() { used -= bytes; }
  } taken{used_, bytes};
  vma::VmaAllocation block = nullptr;
  vma::VmaAllocationInfo info{};
  const bool want_mapped = (create.flags & vma::VMA_ALLOCATION_CREATE_MAPPED_BIT) != 0;
  auto make = [&] {
    const HostReserve::Use reserve(reserve_);
    if (host_.allocate) {
      if (want_mapped) create.requiredFlags |= VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
      std::uint32_t type = 0;
      const VkResult found =
          vma::vmaFindMemoryTypeIndexForBufferInfo(allocator_of(allocator_), &buffer, &create, &type);
      return found != VK_SUCCESS ? found : context.note(make_hosted(context, buffer, type, want_mapped, *result));
    }
    return context.note(
        vma::vmaCreateBuffer(allocator_of(allocator_), &buffer, &create, &result->buffer_, &block, &info));
  };
  VkResult made = make();
  if (made == VK_ERROR_OUT_OF_DEVICE_MEMORY || made == VK_ERROR_OUT_OF_HOST_MEMORY ||
      made == VK_ERROR_TOO_MANY_OBJECTS) {
    reclaim(context);
    made = make();
  }
  if (Error e = check(made, host_.allocate ? "ExternalDevice::memory" : "vmaCreateBuffer")) {
    e.message =
        std::string(name) + ": no memory for " + std::to_string(bytes) + " bytes; " + what_is_left() + ": " + e.message;
    return e;
  }
  result->block_ = block;
  result->taken_ = true;
  taken.bytes = 0;
  ++buffers_;
  result->mapped_ = static_cast<std::byte*>(host_.allocate ? result->host_block_.mapped : info.pMappedData);
  result->cached_ = use == MemoryUse::readback || (use == MemoryUse::device && host_access_ == HostAccess::full);
  result->bytes_ = bytes;
  result->usage_ = buffer.usage;
  if (use == MemoryUse::device && addresses_) {
    VkBufferDeviceAddressInfo whose{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
    whose.buffer = result->buffer_;
    result->address_ = context.vk().vkGetBufferDeviceAddress(context.device(), &whose);
  }
  context.set_name(VK_OBJECT_TYPE_BUFFER, reinterpret_cast<std::uint64_t>(result->buffer_), name);
  ++allocations;
  return result;
}

VkResult Memory::make_hosted(const Context& context, const VkBufferCreateInfo& create, std::uint32_t memory_type,
                             bool mapped, Allocation& to) {
  const DeviceTable& vk = context.vk();
  VkBuffer buffer = VK_NULL_HANDLE;
  if (const VkResult made = vk.vkCreateBuffer(context.device(), &create, vk.callbacks, &buffer); made != VK_SUCCESS)
    return made;
  vulkan::MemoryRequest wanted;
  wanted.buffer = buffer;
  vk.vkGetBufferMemoryRequirements(context.device(), buffer, &wanted.requirements);
  wanted.memory_type = memory_type;
  wanted.mapped = mapped;
  wanted.device_address = (create.usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT) != 0;
  vulkan::MemoryBlock block;
  VkResult result = host_.allocate(wanted, block);
  if (result >= 0) {
    const bool usable = block.memory != VK_NULL_HANDLE && (!mapped || block.mapped != nullptr);
    result = usable ? vk.vkBindBufferMemory(context.device(), buffer, block.memory, block.offset)
                    : VK_ERROR_MEMORY_MAP_FAILED;
    if (result == VK_SUCCESS) {
      to.buffer_ = buffer;
      to.host_block_ = block;
      return result;
    }
    if (block.memory != VK_NULL_HANDLE) host_.free(block);
  }
  vk.vkDestroyBuffer(context.device(), buffer, vk.callbacks);
  return result;
}

std::string Memory::what_is_left() const {
  std::array<vma::VmaBudget, VK_MAX_MEMORY_HEAPS> budgets{};
  vma::vmaGetHeapBudgets(allocator_of(allocator_), budgets.data());
  const vma::VmaBudget& budget = budgets[heap_];
  const std::uint64_t left = budget.budget > budget.usage ? budget.budget - budget.usage : 0;
  return "of " + std::to_string(heap_bytes_) + " bytes of device memory about " + std::to_string(left) +
         " are left, and " + std::to_string(live_bytes) + " are in buffers of this Device";
}

Error Memory::over_cap(const char* name, std::uint64_t bytes) const {
  return Error(Errc::out_of_memory, std::string(name) + ": " + std::to_string(bytes) + " bytes asked for, and " +
                                        std::to_string(used_) + " of the " + std::to_string(cap_) +
                                        " allowed are in use (DeviceOptions::memory_cap)");
}

bool Memory::take(std::uint64_t bytes) noexcept {
  std::uint64_t used = used_;
  do {
    if (cap_ != 0 && (used > cap_ || bytes > cap_ - used)) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes));
  return true;
}

DeviceMemory Memory::describe(const Context& context) const noexcept {
  std::array<vma::VmaBudget, VK_MAX_MEMORY_HEAPS> budgets{};
  vma::vmaGetHeapBudgets(allocator_of(allocator_), budgets.data());
  DeviceMemory memory;
  memory.buffers = buffers_;
  memory.used_bytes = used_;
  memory.cap_bytes = cap_;
  for (const vma::VmaBudget& budget : budgets) {
    memory.blocks += budget.statistics.blockCount;
    memory.block_bytes += budget.statistics.blockBytes;
  }
  memory.heap_bytes = heap_bytes_;
  memory.heap_usage = budgets[heap_].usage;
  memory.heap_budget = budgets[heap_].budget;
  memory.budget_reported = context.memory_budget();
  return memory;
}

void Memory::retire(std::unique_ptr<Allocation> allocation) noexcept {
  const Context& context = *allocation->context_;
  Memory& self = allocation->context_->memory();
  if (context.abandoned() || allocation->context_->queue().reached(allocation->last_use)) return;
  std::lock_guard lock(self.retired_mutex_);
  self.retired_.put(std::move(allocation));
}

void Memory::collect(Context& context) noexcept {
  // Destroyed outside of the lock.
  for (;;) {
    std::unique_ptr<Allocation> done;
    {
      std::lock_guard lock(retired_mutex_);
      done = retired_.take([&](const Allocation& a) { return context.queue().reached(a.last_use); });
    }
    if (!done) return;
  }
}

void Memory::reclaim(Context& context) {
  context.instance().report(Severity::warning, "memory is short: what is kept for later is given back");
  {
    std::lock_guard lock(reclaimers_mutex_);
    for (Reclaimer* reclaimer : reclaimers_) reclaimer->reclaim();
  }
  // Work in flight holds on to what was set aside; it will be done soon.
  std::uint64_t last_use = 0;
  {
    std::lock_guard lock(retired_mutex_);
    retired_.take([&](const Allocation& a) {
      last_use = std::max(last_use, a.last_use.load());
      return false;
    });
  }
  static_cast<void>(context.queue().wait(last_use));
  collect(context);
}

void Memory::add(const Context& context, Reclaimer& reclaimer) {
  if (context.abandoned()) return;
  std::lock_guard lock(reclaimers_mutex_);
  reclaimers_.push_back(&reclaimer);
}

void Memory::remove(const Context& context, Reclaimer& reclaimer) noexcept {
  if (context.abandoned()) return;
  std::lock_guard lock(reclaimers_mutex_);
  std::erase(reclaimers_, &reclaimer);
}

Allocation::~Allocation() {
  Memory& memory = context_->memory();
  if (taken_) {
    memory.used_ -= bytes_;
    --memory.buffers_;
  }
  if (buffer_ == VK_NULL_HANDLE) return;
  if (context_->abandoned()) {
    for (auto& [range, view] : views_) view.release();
  } else {
    views_.clear();
    if (block_ != nullptr) vma::vmaDestroyBuffer(allocator_of(memory.allocator_), buffer_, block_of(block_));
    const DeviceTable& vk = context_->vk();
    if (memory_ != VK_NULL_HANDLE) {
      vk.vkDestroyBuffer(context_->device(), buffer_, vk.callbacks);
      vk.vkFreeMemory(context_->device(), memory_, vk.callbacks);
    }
    if (host_block_.memory != VK_NULL_HANDLE) {
      vk.vkDestroyBuffer(context_->device(), buffer_, vk.callbacks);
      memory.host_.free(host_block_);
    }
  }
  if (!counted_) return;
  --memory.live_buffers;
  memory.live_bytes -= bytes_;
}

Result<VkBufferView> Allocation::view(std::uint64_t offset, std::uint64_t bytes) {
  std::lock_guard lock(views_mutex_);
  BufferView& known = views_[{offset, bytes}];  // stays empty where making it fails
  if (known) return known.get();
  VkBufferViewCreateInfo create{VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO};
  create.buffer = buffer_;
  create.format = VK_FORMAT_R32G32B32A32_SFLOAT;
  create.offset = offset_ + offset;
  create.range = bytes;
  VkBufferView view = VK_NULL_HANDLE;
  const VkResult made = context_->vk().vkCreateBufferView(context_->device(), &create, context_->vk().callbacks, &view);
  if (Error e = context_->check(made, "vkCreateBufferView")) return e;
  known = BufferView(context_->device(), context_->vk(), view);
  context_->set_name(VK_OBJECT_TYPE_BUFFER_VIEW, reinterpret_cast<std::uint64_t>(view), "brontes texels");
  return view;
}

Error Allocation::write(std::uint64_t offset, const void* data, std::uint64_t bytes) {
  if (bytes == 0) return {};
  // Atoms begin at multiples of their size from the memory on, which the allocator aligns buffers to.
  const std::uint64_t atom = context_->physical().limits.nonCoherentAtomSize;
  const std::uint64_t end = offset + bytes;
  if (offset % atom != 0) {
    if (Error e = invalidate(offset, 1)) return e;
  }
  if (end % atom != 0) {
    if (Error e = invalidate(end - 1, 1)) return e;
  }
  std::memcpy(mapped_ + offset, data, bytes);
  return flush(offset, bytes);
}

Error Allocation::read(std::uint64_t offset, void* data, std::uint64_t bytes) const {
  if (bytes == 0) return {};
  if (Error e = invalidate(offset, bytes)) return e;
  std::memcpy(data, mapped_ + offset, bytes);
  return {};
}

Error Allocation::flush(std::uint64_t bytes) const { return flush(0, bytes); }

// Both move whole atoms, and do nothing where memory is coherent.
Error Allocation::flush(std::uint64_t offset, std::uint64_t bytes) const {
  if (block_ == nullptr) return {};  // coherent
  const auto allocator = allocator_of(context_->memory().allocator_);
  return context_->check(vma::vmaFlushAllocation(allocator, block_of(block_), offset, bytes), "vmaFlushAllocation");
}

Error Allocation::invalidate(std::uint64_t offset, std::uint64_t bytes) const {
  if (block_ == nullptr) return {};  // coherent
  const auto allocator = allocator_of(context_->memory().allocator_);
  return context_->check(vma::vmaInvalidateAllocation(allocator, block_of(block_), offset, bytes),
                         "vmaInvalidateAllocation");
}

}  // namespace brontes::vk
