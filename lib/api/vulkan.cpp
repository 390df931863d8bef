#define VK_NO_PROTOTYPES
#include <brontes/vulkan.hpp>

#include "api/access.hpp"

namespace brontes::vulkan {

Handles handles(const Device& device) noexcept {
  vk::Context& context = *DeviceAccess::context(device);
  return {context.instance().get_instance_proc_addr,
          context.instance().handle,
          context.physical().handle,
          context.device(),
          context.queue().handle(),
          context.physical().queue_family};
}

std::unique_lock<std::mutex> lock_queue(const Device& device) {
  vk::Context& context = *DeviceAccess::context(device);
  // A thread of the parent may have held it when the process forked.
  if (context.abandoned()) return {};
  return std::unique_lock(context.queue().mutex());
}

Result<Device> adopt(const ExternalDevice& external, const DeviceOptions& options) {
  return guarded("adopt", [&]() -> Result<Device> {
    if (external.get_instance_proc_addr == nullptr || external.instance == VK_NULL_HANDLE ||
        external.physical_device == VK_NULL_HANDLE || external.device == VK_NULL_HANDLE ||
        external.queue == VK_NULL_HANDLE) {
      return Error(Errc::invalid_argument, "adopt: every handle of ExternalDevice must be given");
    }
    auto engine = engine::Engine::adopt(external, options);
    if (!engine) return engine.error();
    return DeviceAccess::make(std::move(*engine));
  });
}

BufferRegion region(const Buffer& buffer) noexcept {
  const vk::Allocation& memory = *BufferAccess::memory(buffer);
  return {memory.buffer(), memory.offset(), buffer.bytes()};
}

}  // namespace brontes::vulkan
