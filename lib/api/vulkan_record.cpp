#define VK_NO_PROTOTYPES
#include <brontes/vulkan.hpp>

#include "api/access.hpp"

namespace brontes::vulkan {
namespace {

constexpr VkPipelineStageFlags any_stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
constexpr VkAccessFlags any_access = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;

Error transfer(const char* call, const Buffer& buffer, VkCommandBuffer commands, VkAccessFlags before,
               VkAccessFlags after, std::uint32_t from, std::uint32_t to) {
  return guarded(call, [&]() -> Error {
    const auto& memory = BufferAccess::memory(buffer);
    if (!memory) return Error(Errc::invalid_argument, std::string(call) + ": the Buffer has been moved from");
    if (commands == VK_NULL_HANDLE) {
      return Error(Errc::invalid_argument, std::string(call) + ": the command buffer is VK_NULL_HANDLE");
    }
    vk::Context& context = memory->context();
    if (Error e = context.usable()) return e;
    const BufferRegion where = region(buffer);
    VkBufferMemoryBarrier barrier{VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER};
    barrier.srcAccessMask = before;
    barrier.dstAccessMask = after;
    // A buffer that the families share has no owner.
    const bool owned = from != to && context.sharing().empty();
    barrier.srcQueueFamilyIndex = owned ? from : VK_QUEUE_FAMILY_IGNORED;
    barrier.dstQueueFamilyIndex = owned ? to : VK_QUEUE_FAMILY_IGNORED;
    barrier.buffer = where.buffer;
    barrier.offset = where.offset;
    barrier.size = where.bytes == 0 ? VK_WHOLE_SIZE : where.bytes;
    context.vk().vkCmdPipelineBarrier(commands, any_stage, any_stage, 0, 0, nullptr, 1, &barrier, 0, nullptr);
    return {};
  });
}

}  // namespace

Error record(Program& program, VkCommandBuffer commands, const RecordOptions& options) {
  return guarded("record", [&]() -> Error {
    if (commands == VK_NULL_HANDLE) {
      return Error(Errc::invalid_argument, "record: the command buffer is VK_NULL_HANDLE");
    }
    if (options.before_stages == 0 || options.after_stages == 0) {
      return Error(Errc::invalid_argument, "record: no stages before or after the run; ALL_COMMANDS is always right");
    }
    return RunAccess::record(program, commands, options);
  });
}

Error release(const Buffer& buffer, VkCommandBuffer commands, std::uint32_t from, std::uint32_t to) {
  return transfer("release", buffer, commands, VK_ACCESS_MEMORY_WRITE_BIT, from == to ? any_access : 0, from, to);
}

Error acquire(const Buffer& buffer, VkCommandBuffer commands, std::uint32_t from, std::uint32_t to) {
  return transfer("acquire", buffer, commands, from == to ? VK_ACCESS_MEMORY_WRITE_BIT : 0, any_access, from, to);
}

void set_name(const Buffer& buffer, const char* name) {
  const auto& memory = BufferAccess::memory(buffer);
  if (!memory || name == nullptr || memory->context().abandoned()) return;
  memory->context().set_name(VK_OBJECT_TYPE_BUFFER, reinterpret_cast<std::uint64_t>(memory->buffer()), name);
}

void set_name(Program& program, const char* name) {
  if (name == nullptr) return;
  value_or_empty([&] {
    RunAccess::set_name(program, name);
    return 0;
  });
}

}  // namespace brontes::vulkan
