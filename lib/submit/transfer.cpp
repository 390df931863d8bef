#include "submit/transfer.hpp"

#include "encode/encoder.hpp"
#include "vk/context.hpp"
#include "vk/result.hpp"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string>

namespace brontes::submit {
namespace {

constexpr std::uint64_t piece_bytes = std::uint64_t{16} << 20;

// Records with `record(encoder)`, submits and waits. `used` is what the commands touch: it outlives them
// even when the wait fails.
template <class Record>
Error run(vk::Context& context, std::initializer_list<vk::Allocation*> used, Record record) {
  auto taken = context.recycler().take_commands();
  if (!taken) return taken.error();
  vk::CommandSlot& slot = **taken;
  encode::Encoder encoder(context, slot.buffer);
  if (Error e = encoder.begin(encode::Use::once)) return e;
  record(encoder);
  if (Error e = encoder.end()) return e;
  auto value = context.queue().submit({&slot.buffer, 1});
  if (!value) return value.error();
  slot.last_use = *value;
  for (vk::Allocation* memory : used) vk::raise(memory->last_use, *value);
  return context.queue().wait(*value);
}

// Somebody else's buffer may not have been made for copies.
Error check_usage(const vk::Allocation& memory, VkBufferUsageFlags wanted, const char* call, const char* flag) {
  if ((memory.usage() & wanted) != 0) return {};
  return Error(Errc::invalid_argument, std::string(call) + ": the imported VkBuffer was created without " + flag);
}

}  // namespace

Error write(vk::Allocation& memory, std::uint64_t offset, const void* data, std::uint64_t bytes) {
  if (bytes == 0) return {};
  vk::Context& context = memory.context();
  const trace::Span span(context.trace(), trace::Stage::write, "write a buffer");
  if (memory.mapped() == nullptr) {
    if (Error e = check_usage(memory, VK_BUFFER_USAGE_TRANSFER_DST_BIT, "write", "VK_BUFFER_USAGE_TRANSFER_DST_BIT"))
      return e;
  }
  if (Error e = context.queue().wait(memory.last_use)) return e;
  if (memory.mapped() != nullptr) return memory.write(offset, data, bytes);
  auto staging = context.memory().allocate(context.shared_from_this(), std::min(bytes, piece_bytes),
                                           vk::MemoryUse::upload, "brontes staging");
  if (!staging) return staging.error();
  for (std::uint64_t done = 0; done < bytes; done += piece_bytes) {
    const std::uint64_t now = std::min(piece_bytes, bytes - done);
    if (Error e = (*staging)->write(0, static_cast<const std::byte*>(data) + done, now)) return e;
    Error e = run(context, {&memory, staging->get()}, [&](encode::Encoder& encoder) {
      encoder.barrier(encode::Stage::all, encode::Stage::transfer);
      encoder.copy(**staging, 0, memory, offset + done, now);
    });
    if (e) return e;
  }
  return {};
}

Error read(vk::Allocation& memory, std::uint64_t offset, void* data, std::uint64_t bytes) {
  if (bytes == 0) return {};
  vk::Context& context = memory.context();
  const trace::Span span(context.trace(), trace::Stage::read, "read a buffer");
  if (memory.mapped() == nullptr) {
    if (Error e = check_usage(memory, VK_BUFFER_USAGE_TRANSFER_SRC_BIT, "read", "VK_BUFFER_USAGE_TRANSFER_SRC_BIT"))
      return e;
  }
  if (Error e = context.queue().wait(memory.last_use)) return e;
  if (memory.mapped() != nullptr) return memory.read(offset, data, bytes);
  auto staging = context.memory().allocate(context.shared_from_this(), std::min(bytes, piece_bytes),
                                           vk::MemoryUse::readback, "brontes staging");
  if (!staging) return staging.error();
  for (std::uint64_t done = 0; done < bytes; done += piece_bytes) {
    const std::uint64_t now = std::min(piece_bytes, bytes - done);
    Error e = run(context, {&memory, staging->get()}, [&](encode::Encoder& encoder) {
      encoder.barrier(encode::Stage::all, encode::Stage::transfer);
      encoder.copy(memory, offset + done, **staging, 0, now);
      encoder.barrier(encode::Stage::transfer, encode::Stage::host);
    });
    if (e) return e;
    if (Error unread = (*staging)->read(0, static_cast<std::byte*>(data) + done, now)) return unread;
  }
  return {};
}

Error clear(vk::Allocation& memory) {
  if (memory.mapped() != nullptr) {
    std::memset(memory.mapped(), 0, memory.bytes());
    return memory.flush(memory.bytes());
  }
  return run(memory.context(), {&memory}, [&](encode::Encoder& encoder) { encoder.zero(memory); });
}

}  // namespace brontes::submit
