// Memory that is exported to, or imported from, somebody outside of this device.
#include "vk/context.hpp"
#include "vk/memory.hpp"

#include <string>
#include <utility>

#if !defined(_WIN32)
#  include <fcntl.h>
#  include <unistd.h>
#endif

namespace brontes::vk {
namespace {

#if defined(_WIN32)
int duplicate(int) { return -1; }
#else
int duplicate(int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, 0); }
#endif

constexpr VkExternalMemoryHandleTypeFlagBits type_of(const SharedBlock& block) {
  return block.host != nullptr ? VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT
                               : VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
}

Error unsupported(const Context& context, const std::string& why) {
  return Error(Errc::unsupported, context.info().name + ": " + why);
}

// Whether the device can, and whether it wants memory for one buffer alone.
Result<bool> ask_dedicated(const Context& context, const SharedBlock& block, VkBufferUsageFlags usage) {
  const bool host = block.host != nullptr;
  const char* const extension =
      host ? VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME : VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME;
  const bool offered = host ? context.physical().memory_host : context.physical().memory_fd;
  const bool enabled =
      host ? context.vk().vkGetMemoryHostPointerPropertiesEXT != nullptr : context.vk().vkGetMemoryFdKHR != nullptr;
  if (!offered) return unsupported(context, std::string("the driver has no ") + extension);
  if (!enabled) return unsupported(context, std::string("the VkDevice was created without ") + extension);

  VkPhysicalDeviceExternalBufferInfo info{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO};
  info.usage = usage;
  info.handleType = type_of(block);
  VkExternalBufferProperties properties{VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
  context.instance().table.vkGetPhysicalDeviceExternalBufferProperties(context.physical().handle, &info, &properties);
  const VkExternalMemoryFeatureFlags features = properties.externalMemoryProperties.externalMemoryFeatures;
  const bool import = host || block.fd >= 0;
  if ((features & (import ? VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT : VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT)) ==
      0) {
    return unsupported(context, std::string("the driver has ") + extension + ", but cannot " +
                                    (import ? "import" : "export") + " storage buffers with it");
  }
  return (features & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT) != 0;
}

}  // namespace

void close_descriptor([[maybe_unused]] int fd) noexcept {
#if !defined(_WIN32)
  static_cast<void>(close(fd));
#endif
}

Result<std::shared_ptr<Allocation>> Memory::share_block(std::shared_ptr<Context> owner, const SharedBlock& block) {
  Context& context = *owner;
  if (Error e = context.usable()) return e;
  const DeviceTable& vk = context.vk();
  const VkDevice device = context.device();
  const bool host = block.host != nullptr;
  const bool exports = !host && block.fd < 0;

  VkExternalMemoryBufferCreateInfo external{VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO};
  external.handleTypes = type_of(block);
  VkBufferCreateInfo create{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, &external};
  create.size = (block.bytes + 15) / 16 * 16;
  create.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT |
                 VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT | block.extra_usage;
  if (addresses_) create.usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  auto dedicated_only = ask_dedicated(context, block, create.usage);
  if (!dedicated_only) return dedicated_only.error();

  std::unique_ptr<Allocation> result(new Allocation());
  result->context_ = &context;
  result->bytes_ = block.bytes;
  result->usage_ = create.usage;
  result->exact_ = !exports && block.bytes % 16 != 0;
  result->shared_ = block;
  result->shared_.dedicated = block.dedicated || *dedicated_only;
  if (exports) {
    collect(context);
    if (!take(block.bytes)) {
      reclaim(context);
      if (!take(block.bytes)) return over_cap("brontes exported buffer", block.bytes);
    }
    result->taken_ = true;
    ++buffers_;
  }

  // The Allocation destroys both, once it has both.
  VkBuffer buffer = VK_NULL_HANDLE;
  if (Error e = context.check(vk.vkCreateBuffer(device, &create, vk.callbacks, &buffer), "vkCreateBuffer")) return e;
  struct Unfinished {
    const DeviceTable& vk;
    VkDevice device;
    VkBuffer buffer;
    ~Unfinished() {
      if (buffer != VK_NULL_HANDLE) vk.vkDestroyBuffer(device, buffer, vk.callbacks);
    }
  } unfinished{vk, device, buffer};
  VkMemoryRequirements needs{};
  vk.vkGetBufferMemoryRequirements(device, buffer, &needs);
  VkPhysicalDeviceMemoryProperties memory{};
  context.instance().table.vkGetPhysicalDeviceMemoryProperties(context.physical().handle, &memory);

  std::uint32_t types = needs.memoryTypeBits;
  VkMemoryPropertyFlags wanted = exports ? VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT : 0;
  std::uint64_t bytes = exports ? needs.size : block.allocation_bytes;
  if (host) {
    VkMemoryHostPointerPropertiesEXT pointer{VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
    if (Error e = context.check(vk.vkGetMemoryHostPointerPropertiesEXT(device, type_of(block), block.host, &pointer),
                                "vkGetMemoryHostPointerPropertiesEXT")) {
      return e;
    }
    types &= pointer.memoryTypeBits;
    wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  } else if (!exports) {
    if (block.memory_type >= memory.memoryTypeCount) {
      return Error(Errc::invalid_argument, "import_fd: the device has " + std::to_string(memory.memoryTypeCount) +
                                               " memory types, and none of number " +
                                               std::to_string(block.memory_type));
    }
    types &= 1u << block.memory_type;
  }
  std::uint32_t type = 0;
  while (type < memory.memoryTypeCount &&
         ((types >> type & 1u) == 0 || (memory.memoryTypes[type].propertyFlags & wanted) != wanted)) {
    ++type;
  }
  if (type == memory.memoryTypeCount) return unsupported(context, "no memory type will do for this shared memory");
  if (needs.size > bytes) {
    return Error(Errc::invalid_argument, "the shared memory has " + std::to_string(bytes) +
                                             " bytes, and a buffer for the elements takes " +
                                             std::to_string(needs.size));
  }

  VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  allocate.allocationSize = bytes;
  allocate.memoryTypeIndex = type;
  auto chain = [&](auto& info) {
    info.pNext = allocate.pNext;
    allocate.pNext = &info;
  };
  VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  if (addresses_) chain(flags);
  VkMemoryDedicatedAllocateInfo dedicated{VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO};
  dedicated.buffer = buffer;
  if (result->shared_.dedicated) chain(dedicated);
  VkExportMemoryAllocateInfo exported{VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO};
  exported.handleTypes = type_of(block);
  if (exports) chain(exported);
  VkImportMemoryFdInfoKHR from_fd{VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR};
  from_fd.handleType = type_of(block);
  from_fd.fd = -1;
  if (!host && !exports) chain(from_fd);
  VkImportMemoryHostPointerInfoEXT from_host{VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT};
  from_host.handleType = type_of(block);
  from_host.pHostPointer = block.host;
  if (host) chain(from_host);

  if (!host && !exports) {
    // The driver closes what it imports. Until everything has worked out the caller keeps the descriptor.
    from_fd.fd = duplicate(block.fd);
    if (from_fd.fd < 0) return Error(Errc::invalid_argument, "import_fd: not an open file descriptor");
  }
  VkDeviceMemory made = VK_NULL_HANDLE;
  if (Error e = context.check(vk.vkAllocateMemory(device, &allocate, vk.callbacks, &made), "vkAllocateMemory")) {
    if (from_fd.fd >= 0) close_descriptor(from_fd.fd);
    return e;
  }
  result->buffer_ = std::exchange(unfinished.buffer, VK_NULL_HANDLE);
  result->memory_ = made;
  result->mapped_ = static_cast<std::byte*>(block.host);
  result->cached_ = host;
  result->shared_.allocation_bytes = bytes;
  result->shared_.memory_type = type;
  if (Error e = context.check(vk.vkBindBufferMemory(device, buffer, made, 0), "vkBindBufferMemory")) return e;
  if (addresses_) {
    VkBufferDeviceAddressInfo whose{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
    whose.buffer = buffer;
    result->address_ = vk.vkGetBufferDeviceAddress(device, &whose);
  }
  context.set_name(VK_OBJECT_TYPE_BUFFER, reinterpret_cast<std::uint64_t>(buffer), "brontes shared buffer");
  if (exports) {
    ++allocations;
    result->counted_ = true;
    ++live_buffers;
    live_bytes += block.bytes;
  }
  return share(std::move(result), std::move(owner));
}

}  // namespace brontes::vk
