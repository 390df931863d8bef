// Buffers whose memory is not the allocator's.
#include "vk/context.hpp"
#include "vk/memory.hpp"

#include <utility>

namespace brontes::vk {

Result<std::shared_ptr<Allocation>> Memory::borrow(std::shared_ptr<Context> context,
                                                   const BorrowedBuffer& buffer) const {
  if (Error e = context->usable()) return e;
  std::unique_ptr<Allocation> result(new Allocation());
  result->context_ = context.get();
  result->buffer_ = buffer.buffer;
  result->borrowed_ = true;
  result->offset_ = buffer.offset;
  result->bytes_ = buffer.bytes;
  result->usage_ = buffer.usage;
  result->exact_ = buffer.writable < (buffer.bytes + 15) / 16 * 16;
  if (addresses_ && (buffer.usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT) != 0) {
    VkBufferDeviceAddressInfo whose{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
    whose.buffer = buffer.buffer;
    const VkDeviceAddress begin = context->vk().vkGetBufferDeviceAddress(context->device(), &whose);
    if (begin % 16 == 0) result->address_ = begin + buffer.offset;  // kernels load vec4s by it
  }
  return share(std::move(result), std::move(context));
}

bool Allocation::overlaps(const Allocation& other) const noexcept {
  if (buffer_ != other.buffer_) return false;
  auto end = [](const Allocation& a) { return a.offset_ + (a.exact_ ? a.bytes_ : (a.bytes_ + 15) / 16 * 16); };
  return offset_ < end(other) && other.offset_ < end(*this);
}

}  // namespace brontes::vk
