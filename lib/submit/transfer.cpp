#include "submit/transfer.hpp"

#include "encode/encoder.hpp"
#include "vk/context.hpp"
#include "vk/result.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

namespace brontes::submit {
namespace {

constexpr std::uint64_t piece_bytes = std::uint64_t{8} << 20;

// Records with `record(encoder)` and submits. `used` is what the commands touch: it outlives them even when nobody can
// wait for them. The timeline value at which they are done.
template <class Record>
Result<std::uint64_t> start(vk::Context& context, std::initializer_list<vk::Allocation*> used, Record record) {
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
  return value;
}

// Staging buffers for the pieces of a transfer, which take turns: the device copies one while the host copies the
// other.
class Pieces {
 public:
  static Result<Pieces> make(vk::Context& context, std::uint64_t bytes, vk::MemoryUse use) {
    Pieces self(context, bytes);
    for (std::size_t i = 0; i < std::min<std::uint64_t>(self.count(), 2); ++i) {
      auto staging =
          context.memory().allocate(context.shared_from_this(), std::min(bytes, piece_bytes), use, "brontes staging");
      if (!staging) return staging.error();
      self.staging_[i] = std::move(*staging);
    }
    return self;
  }

  std::uint64_t count() const { return bytes_ / piece_bytes + (bytes_ % piece_bytes != 0); }
  std::uint64_t begin(std::uint64_t piece) const { return piece * piece_bytes; }
  std::uint64_t size(std::uint64_t piece) const { return std::min(piece_bytes, bytes_ - begin(piece)); }
  vk::Allocation& staging(std::uint64_t piece) const { return *staging_[piece % 2]; }
  /// Until the device has done with the staging buffer of a piece, if it had begun.
  Error wait(std::uint64_t piece) const { return context_->queue().wait(staging(piece).last_use); }

 private:
  Pieces(vk::Context& context, std::uint64_t bytes) : context_(&context), bytes_(bytes) {}

  vk::Context* context_;
  std::uint64_t bytes_;
  std::array<std::shared_ptr<vk::Allocation>, 2> staging_;
};

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
  auto pieces = Pieces::make(context, bytes, vk::MemoryUse::upload);
  if (!pieces) return pieces.error();
  for (std::uint64_t i = 0; i < pieces->count(); ++i) {
    vk::Allocation& staging = pieces->staging(i);
    if (Error e = pieces->wait(i)) return e;
    const std::uint64_t begin = pieces->begin(i);
    if (Error e = staging.write(0, static_cast<const std::byte*>(data) + begin, pieces->size(i))) return e;
    auto started = start(context, {&memory, &staging}, [&](encode::Encoder& encoder) {
      encoder.barrier(encode::Stage::all, encode::Stage::transfer);
      encoder.copy(staging, 0, memory, offset + begin, pieces->size(i));
    });
    if (!started) return started.error();
  }
  return context.queue().wait(memory.last_use);
}

Error read(vk::Allocation& memory, std::uint64_t offset, void* data, std::uint64_t bytes) {
  if (bytes == 0) return {};
  vk::Context& context = memory.context();
  const trace::Span span(context.trace(), trace::Stage::read, "read a buffer");
  if (!memory.readable()) {
    if (Error e = check_usage(memory, VK_BUFFER_USAGE_TRANSFER_SRC_BIT, "read", "VK_BUFFER_USAGE_TRANSFER_SRC_BIT"))
      return e;
  }
  if (Error e = context.queue().wait(memory.last_use)) return e;
  if (memory.readable()) return memory.read(offset, data, bytes);
  auto pieces = Pieces::make(context, bytes, vk::MemoryUse::readback);
  if (!pieces) return pieces.error();
  auto fetch = [&](std::uint64_t i) {
    return start(context, {&memory, &pieces->staging(i)}, [&](encode::Encoder& encoder) {
      encoder.barrier(encode::Stage::all, encode::Stage::transfer);
      encoder.copy(memory, offset + pieces->begin(i), pieces->staging(i), 0, pieces->size(i));
      encoder.barrier(encode::Stage::transfer, encode::Stage::host);
    });
  };
  if (auto first = fetch(0); !first) return first.error();
  for (std::uint64_t i = 0; i < pieces->count(); ++i) {
    if (i + 1 < pieces->count()) {
      if (auto next = fetch(i + 1); !next) return next.error();
    }
    if (Error e = pieces->wait(i)) return e;
    if (Error e = pieces->staging(i).read(0, static_cast<std::byte*>(data) + pieces->begin(i), pieces->size(i)))
      return e;
  }
  return {};
}

Error clear(vk::Allocation& memory) {
  if (memory.mapped() != nullptr) {
    std::memset(memory.mapped(), 0, memory.bytes());
    return memory.flush(memory.bytes());
  }
  auto started = start(memory.context(), {&memory}, [&](encode::Encoder& encoder) { encoder.zero(memory); });
  return started ? memory.context().queue().wait(*started) : started.error();
}

}  // namespace brontes::submit
