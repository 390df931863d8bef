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
#include <shared_mutex>
#include <type_traits>
#include <utility>

#define VMA_IMPLEMENTATION
#define VMA_STATIC_VULKAN_FUNCTIONS 0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 1
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

constexpr VkMemoryPropertyFlags mapped_flags =
    VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

// Memory types the device and the host reach equally well. A small window into a larger heap (a
// 256 MiB BAR) does not count.
std::uint32_t find_mapped_types(const VkPhysicalDeviceMemoryProperties& memory) {
  VkDeviceSize largest = 0;
  for (std::uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    if ((memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0) {
      largest = std::max(largest, memory.memoryHeaps[i].size);
    }
  }
  std::uint32_t types = 0;
  for (std::uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    const VkMemoryType& type = memory.memoryTypes[i];
    if ((type.propertyFlags & mapped_flags) == mapped_flags && memory.memoryHeaps[type.heapIndex].size == largest) {
      types |= 1u << i;
    }
  }
  return types;
}

}  // namespace

Memory::~Memory() {
  if (allocator_ != nullptr) vma::vmaDestroyAllocator(allocator_of(allocator_));
}

Error Memory::open(const Instance& instance, VkPhysicalDevice physical, VkDevice device,
                   PFN_vkGetDeviceProcAddr get_device_proc, bool staged, bool addresses) {
  vma::VmaVulkanFunctions functions{};
  functions.vkGetInstanceProcAddr = instance.get_instance_proc_addr;
  functions.vkGetDeviceProcAddr = get_device_proc;
  vma::VmaAllocatorCreateInfo create{};
  create.physicalDevice = physical;
  create.device = device;
  create.instance = instance.handle;
  create.pVulkanFunctions = &functions;
  create.vulkanApiVersion = VK_API_VERSION_1_2;
  addresses_ = addresses;
  if (addresses) create.flags = vma::VMA_ALLOCATOR_CREATE_BUFFER_DEVICE_ADDRESS_BIT;
  vma::VmaAllocator allocator = nullptr;
  if (Error e = check(vma::vmaCreateAllocator(&create, &allocator), "vmaCreateAllocator")) return e;
  allocator_ = allocator;

  VkPhysicalDeviceMemoryProperties memory{};
  instance.table.vkGetPhysicalDeviceMemoryProperties(physical, &memory);
  mapped_types_ = staged ? 0 : find_mapped_types(memory);
  mapped_ = mapped_types_ != 0;

  VkPhysicalDeviceMaintenance3Properties maintenance{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &maintenance};
  instance.table.vkGetPhysicalDeviceProperties2(physical, &properties);
  max_bytes_ = maintenance.maxMemoryAllocationSize;
  return {};
}

Result<std::shared_ptr<Allocation>> Memory::allocate(std::shared_ptr<Context> context, std::uint64_t bytes,
                                                     MemoryUse use, const char* name) {
  auto made = allocate(*context, bytes, use, name);
  if (!made) return made.error();
  (*made)->counted_ = true;
  ++live_buffers;
  live_bytes += bytes;
  return std::shared_ptr<Allocation>(made->release(), [owner = std::move(context)](Allocation* allocation) {
    owner->memory().retire(std::unique_ptr<Allocation>(allocation));
  });
}

Result<std::unique_ptr<Allocation>> Memory::allocate(Context& context, std::uint64_t bytes, MemoryUse use,
                                                     const char* name) {
  if (bytes > max_bytes_) {
    return Error(Errc::limit_exceeded, std::string(name) + ": " + std::to_string(bytes) +
                                           " bytes are more than this device gives in one piece, " +
                                           std::to_string(max_bytes_) + " (maxMemoryAllocationSize)");
  }
  VkBufferCreateInfo buffer{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  // A vec4 access to the last element must stay inside, and no buffer may be empty.
  buffer.size = (std::max<std::uint64_t>(bytes, 1) + 15) / 16 * 16;
  vma::VmaAllocationCreateInfo create{};
  create.usage = vma::VMA_MEMORY_USAGE_AUTO;
  switch (use) {
    case MemoryUse::device:
      buffer.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT |
                     VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
      if (addresses_) buffer.usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
      if (mapped_) {
        create.flags = vma::VMA_ALLOCATION_CREATE_MAPPED_BIT | vma::VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT;
        create.memoryTypeBits = mapped_types_;
      } else {
        create.requiredFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
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

  std::unique_ptr<Allocation> result(new Allocation());
  result->context_ = &context;
  vma::VmaAllocation block = nullptr;
  vma::VmaAllocationInfo info{};
  const VkResult made =
      vma::vmaCreateBuffer(allocator_of(allocator_), &buffer, &create, &result->buffer_, &block, &info);
  if (Error e = check(made, "vmaCreateBuffer")) {
    e.message = std::string(name) + ": no memory for " + std::to_string(bytes) + " bytes: " + e.message;
    return e;
  }
  result->block_ = block;
  const bool want_mapped = use != MemoryUse::device || mapped_;
  result->mapped_ = want_mapped ? static_cast<std::byte*>(info.pMappedData) : nullptr;
  result->bytes_ = bytes;
  if (use == MemoryUse::device && addresses_) {
    VkBufferDeviceAddressInfo whose{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
    whose.buffer = result->buffer_;
    result->address_ = context.vk().vkGetBufferDeviceAddress(context.device(), &whose);
  }
  context.set_name(VK_OBJECT_TYPE_BUFFER, reinterpret_cast<std::uint64_t>(result->buffer_), name);
  ++allocations;
  collect();
  return result;
}

void Memory::retire(std::unique_ptr<Allocation> allocation) {
  if (allocation->context_->queue().reached(allocation->last_use)) return;
  std::lock_guard lock(retired_mutex_);
  retired_.push_back(std::move(allocation));
}

void Memory::collect() {
  std::lock_guard lock(retired_mutex_);
  std::erase_if(retired_, [](const auto& a) { return a->context_->queue().reached(a->last_use); });
}

void Memory::clear() {
  std::lock_guard lock(retired_mutex_);
  retired_.clear();
}

Allocation::~Allocation() {
  if (buffer_ == VK_NULL_HANDLE) return;
  Memory& memory = context_->memory();
  views_.clear();
  vma::vmaDestroyBuffer(allocator_of(memory.allocator_), buffer_, block_of(block_));
  if (!counted_) return;
  --memory.live_buffers;
  memory.live_bytes -= bytes_;
}

Result<VkBufferView> Allocation::view(std::uint64_t offset, std::uint64_t bytes) {
  std::lock_guard lock(views_mutex_);
  BufferView& known = views_[{offset, bytes}];
  if (known) return known.get();
  VkBufferViewCreateInfo create{VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO};
  create.buffer = buffer_;
  create.format = VK_FORMAT_R32G32B32A32_SFLOAT;
  create.offset = offset;
  create.range = bytes;
  VkBufferView view = VK_NULL_HANDLE;
  const VkResult made = context_->vk().vkCreateBufferView(context_->device(), &create, nullptr, &view);
  if (Error e = check(made, "vkCreateBufferView")) return e;
  known = BufferView(context_->device(), context_->vk(), view);
  context_->set_name(VK_OBJECT_TYPE_BUFFER_VIEW, reinterpret_cast<std::uint64_t>(view), "brontes texels");
  return view;
}

Error Allocation::flush(std::uint64_t offset, std::uint64_t bytes) const {
  return check(vma::vmaFlushAllocation(allocator_of(context_->memory().allocator_), block_of(block_), offset, bytes),
               "vmaFlushAllocation");
}

Error Allocation::invalidate(std::uint64_t offset, std::uint64_t bytes) const {
  return check(
      vma::vmaInvalidateAllocation(allocator_of(context_->memory().allocator_), block_of(block_), offset, bytes),
      "vmaInvalidateAllocation");
}

}  // namespace brontes::vk
