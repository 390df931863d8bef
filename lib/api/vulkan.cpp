#define VK_NO_PROTOTYPES
#include <brontes/vulkan.hpp>

#include "api/access.hpp"

namespace brontes::vulkan {

Handles handles(const Device& device) noexcept {
  if (!DeviceAccess::engine(device)) return {};
  vk::Context& context = *DeviceAccess::context(device);
  return {context.instance().get_instance_proc_addr,
          context.instance().handle,
          context.physical().handle,
          context.device(),
          context.queue().handle(),
          context.physical().queue_family};
}

QueueLock::QueueLock(QueueLock&& other) noexcept : context_(std::move(other.context_)) {}

QueueLock& QueueLock::operator=(QueueLock&& other) noexcept {
  if (this != &other) {
    unlock();
    context_ = std::move(other.context_);
  }
  return *this;
}

QueueLock::~QueueLock() { unlock(); }

void QueueLock::unlock() noexcept {
  if (!context_) return;
  if (!context_->abandoned()) context_->queue().unlock();
  // Last: it may be what keeps the Device open, and closing that takes the lock.
  context_.reset();
}

struct QueueLockAccess {
  static void hold(QueueLock& lock, std::shared_ptr<vk::Context> context) noexcept {
    lock.context_ = std::move(context);
  }
};

QueueLock lock_queue(const Device& device) {
  QueueLock lock;
  std::shared_ptr<vk::Context> context = DeviceAccess::context(device);
  // A thread of the parent may have held it when the process forked.
  if (!context || context->abandoned() || context->queue().mine()) return lock;
  context->queue().lock();
  QueueLockAccess::hold(lock, std::move(context));
  return lock;
}

Result<Device> adopt(const ExternalDevice& external, const DeviceOptions& options) {
  return guarded("adopt", [&]() -> Result<Device> {
    if (external.get_instance_proc_addr == nullptr || external.instance == VK_NULL_HANDLE ||
        external.physical_device == VK_NULL_HANDLE || external.device == VK_NULL_HANDLE ||
        external.queue == VK_NULL_HANDLE) {
      return Error(Errc::invalid_argument, "adopt: every handle of ExternalDevice must be given");
    }
    if (static_cast<bool>(external.lock) != static_cast<bool>(external.unlock)) {
      return Error(Errc::invalid_argument, "adopt: ExternalDevice has one of lock and unlock; give both or neither");
    }
    if (static_cast<bool>(external.memory.allocate) != static_cast<bool>(external.memory.free)) {
      return Error(Errc::invalid_argument,
                   "adopt: ExternalDevice::memory has one of allocate and free; give both or neither");
    }
    auto engine = engine::Engine::adopt(external, options);
    if (!engine) return engine.error();
    return DeviceAccess::make(std::move(*engine));
  });
}

BufferRegion region(const Buffer& buffer) noexcept {
  if (!BufferAccess::memory(buffer)) return {};
  const vk::Allocation& memory = *BufferAccess::memory(buffer);
  return {memory.buffer(), memory.offset(), buffer.bytes()};
}

}  // namespace brontes::vulkan
