#define VK_NO_PROTOTYPES
#include <brontes/vulkan.hpp>

#include "api/access.hpp"
#include "submit/transfer.hpp"

#include <cstdint>
#include <string>
#include <utility>

namespace brontes::vulkan {
namespace {

Error refused(const char* call, const std::string& why) {
  return Error(Errc::invalid_argument, std::string(call) + ": " + why);
}

Error check(const ExternalBuffer& external, std::uint64_t bytes, std::uint64_t alignment) {
  const char* const call = "import_buffer";
  auto text = [](std::uint64_t number) { return std::to_string(number); };
  if (external.buffer == VK_NULL_HANDLE) return refused(call, "ExternalBuffer::buffer is null");
  if (bytes == 0) return refused(call, "a range without elements");
  if ((external.usage & VK_BUFFER_USAGE_STORAGE_BUFFER_BIT) == 0) {
    return refused(call, "the VkBuffer was created without VK_BUFFER_USAGE_STORAGE_BUFFER_BIT");
  }
  if (external.offset % alignment != 0) {
    return refused(call, "the offset " + text(external.offset) + " is not a multiple of " + text(alignment) +
                             ", which this device needs (minStorageBufferOffsetAlignment, "
                             "minTexelBufferOffsetAlignment, and 16)");
  }
  if (external.bytes != 0 && external.bytes < bytes) {
    return refused(call, "a range of " + text(external.bytes) + " bytes for elements that take " + text(bytes));
  }
  // Kernels read whole vec4s, whatever they may write.
  const std::uint64_t whole = (bytes + 15) / 16 * 16;
  const std::uint64_t needed = external.bytes > whole ? external.bytes : whole;
  if (external.offset > external.buffer_bytes || needed > external.buffer_bytes - external.offset) {
    return refused(call, "the VkBuffer has " + text(external.buffer_bytes) + " bytes, and the range takes " +
                             text(needed) + " from offset " + text(external.offset) + " on" +
                             (needed == bytes ? "" : ", since kernels read 16 bytes at a time"));
  }
  return {};
}

Error check_usage(const char* call, const Device& device, VkBufferUsageFlags extra) {
  const auto context = DeviceAccess::context(device);
  if (!context || (extra & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT) == 0 || context->memory().addresses()) return {};
  return Error(Errc::unsupported, std::string(call) +
                                      ": VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT on a Device that does not use "
                                      "addresses; open or adopt it with AccessMode::pointer");
}

}  // namespace

VkDeviceSize import_alignment(const Device& device) noexcept {
  const auto& engine = DeviceAccess::engine(device);
  return engine ? engine->traits().storage_alignment : 0;
}

Result<Buffer> import_buffer(const Device& device, const ExternalBuffer& external, Shape shape, DType dtype) {
  return guarded("import_buffer", [&]() -> Result<Buffer> {
    const auto bytes = BufferAccess::bytes_of("import_buffer", device, shape, dtype);
    if (!bytes) return bytes.error();
    if (Error e = check(external, *bytes, import_alignment(device))) return e;
    const auto context = DeviceAccess::context(device);
    vk::BorrowedBuffer borrowed;
    borrowed.buffer = external.buffer;
    borrowed.usage = external.usage;
    borrowed.offset = external.offset;
    borrowed.bytes = *bytes;
    borrowed.writable = external.bytes != 0 ? external.bytes : *bytes;
    auto memory = context->memory().borrow(context, borrowed);
    if (!memory) return memory.error();
    return BufferAccess::make(std::move(*memory), shape, dtype);
  });
}

Submission last_use(const Buffer& buffer) noexcept {
  const auto& memory = BufferAccess::memory(buffer);
  if (!memory || memory->last_use == 0) return {};
  return SubmissionAccess::make(memory->context().shared_from_this(), memory->last_use);
}

Result<Buffer> create_buffer(const Device& device, Shape shape, DType dtype, VkBufferUsageFlags extra_usage) {
  return guarded("create_buffer", [&]() -> Result<Buffer> {
    if (Error e = check_usage("create_buffer", device, extra_usage)) return e;
    return BufferAccess::create("create_buffer", device, shape, dtype, extra_usage);
  });
}

VkDeviceSize host_memory_alignment(const Device& device) noexcept {
  const auto& engine = DeviceAccess::engine(device);
  if (!engine || engine->context()->vk().vkGetMemoryHostPointerPropertiesEXT == nullptr) return 0;
  return engine->context()->physical().host_pointer_alignment;
}

Result<Buffer> import_host_memory(const Device& device, void* data, std::size_t bytes, Shape shape, DType dtype) {
  return guarded("import_host_memory", [&]() -> Result<Buffer> {
    const auto needed = BufferAccess::bytes_of("import_host_memory", device, shape, dtype);
    if (!needed) return needed.error();
    if (data == nullptr) return refused("import_host_memory", "a null pointer");
    if (*needed == 0) return refused("import_host_memory", "a range without elements");
    const VkDeviceSize alignment = host_memory_alignment(device);
    const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(data));
    if (alignment != 0 && (address % alignment != 0 || bytes % alignment != 0)) {
      return refused("import_host_memory", "the address and the size, " + std::to_string(bytes) +
                                               " bytes, have to be multiples of " + std::to_string(alignment) +
                                               " (minImportedHostPointerAlignment)");
    }
    if (*needed > bytes) {
      return refused("import_host_memory",
                     std::to_string(bytes) + " bytes for elements that take " + std::to_string(*needed));
    }
    vk::SharedBlock block;
    block.bytes = *needed;
    block.host = data;
    block.allocation_bytes = bytes;
    const auto context = DeviceAccess::context(device);
    auto memory = context->memory().share_block(context, block);
    if (!memory) return memory.error();
    return BufferAccess::make(std::move(*memory), shape, dtype);
  });
}

Result<Buffer> create_exportable_buffer(const Device& device, Shape shape, DType dtype,
                                        VkBufferUsageFlags extra_usage) {
  return guarded("create_exportable_buffer", [&]() -> Result<Buffer> {
    const auto bytes = BufferAccess::bytes_of("create_exportable_buffer", device, shape, dtype);
    if (!bytes) return bytes.error();
    if (*bytes == 0) return refused("create_exportable_buffer", "a buffer without elements");
    if (Error e = check_usage("create_exportable_buffer", device, extra_usage)) return e;
    vk::SharedBlock block;
    block.bytes = *bytes;
    block.extra_usage = extra_usage;
    const auto context = DeviceAccess::context(device);
    auto memory = context->memory().share_block(context, block);
    if (!memory) return memory.error();
    if (Error e = submit::clear(**memory)) return e;
    return BufferAccess::make(std::move(*memory), shape, dtype);
  });
}

Result<MemoryFd> export_fd(const Buffer& buffer) {
  return guarded("export_fd", [&]() -> Result<MemoryFd> {
    const auto& memory = BufferAccess::memory(buffer);
    if (!memory) return refused("export_fd", "the Buffer has been moved from");
    const vk::SharedBlock& block = memory->shared();
    if (memory->memory() == VK_NULL_HANDLE || block.host != nullptr || block.fd >= 0) {
      return refused("export_fd", "the Buffer is not one of create_exportable_buffer()");
    }
    const vk::Context& context = memory->context();
    if (Error e = context.usable()) return e;
    VkMemoryGetFdInfoKHR info{VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR};
    info.memory = memory->memory();
    info.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    MemoryFd out;
    if (Error e = context.check(context.vk().vkGetMemoryFdKHR(context.device(), &info, &out.fd), "vkGetMemoryFdKHR")) {
      return e;
    }
    out.allocation_bytes = block.allocation_bytes;
    out.memory_type = block.memory_type;
    out.dedicated = block.dedicated;
    return out;
  });
}

Result<Buffer> import_fd(const Device& device, const MemoryFd& exported, Shape shape, DType dtype) {
  return guarded("import_fd", [&]() -> Result<Buffer> {
    const auto bytes = BufferAccess::bytes_of("import_fd", device, shape, dtype);
    if (!bytes) return bytes.error();
    if (*bytes == 0) return refused("import_fd", "a range without elements");
    if (exported.fd < 0) return refused("import_fd", "not an open file descriptor");
    if (*bytes > exported.allocation_bytes) {
      return refused("import_fd", std::to_string(exported.allocation_bytes) + " bytes for elements that take " +
                                      std::to_string(*bytes));
    }
    vk::SharedBlock block;
    block.bytes = *bytes;
    block.fd = exported.fd;
    block.allocation_bytes = exported.allocation_bytes;
    block.memory_type = exported.memory_type;
    block.dedicated = exported.dedicated;
    const auto context = DeviceAccess::context(device);
    auto memory = context->memory().share_block(context, block);
    if (!memory) return memory.error();
    vk::close_descriptor(exported.fd);
    return BufferAccess::make(std::move(*memory), shape, dtype);
  });
}

}  // namespace brontes::vulkan
