#define VK_NO_PROTOTYPES
#include <brontes/vulkan.hpp>

#include "api/access.hpp"

#include <string>

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
    const auto context = DeviceAccess::context(device);
    if (context && (extra_usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT) != 0 && !context->memory().addresses()) {
      return Error(Errc::unsupported,
                   "create_buffer: VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT on a Device that does not use addresses; "
                   "open or adopt it with AccessMode::pointer");
    }
    return BufferAccess::create("create_buffer", device, shape, dtype, extra_usage);
  });
}

}  // namespace brontes::vulkan
