#include "vk/queue_lock.hpp"

#include <cstddef>
#include <map>
#include <new>

#if !defined(_WIN32)
#  include <pthread.h>
#endif

namespace brontes::vk {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<VkQueue, std::weak_ptr<QueueMutex>> locks;
};

// Never destroyed: devices may be closed while the process ends.
alignas(Registry) std::byte storage[sizeof(Registry)];

Registry* make() noexcept {
#if !defined(_WIN32)
  // In a forked process a thread that is not there any more may be changing it; its queues are not there either.
  pthread_atfork(nullptr, nullptr, [] { new (storage) Registry; });
#endif
  return new (storage) Registry;
}

}  // namespace

std::shared_ptr<QueueMutex> mutex_of(VkQueue queue) {
  static Registry* const registry = make();
  const std::lock_guard lock(registry->mutex);
  // A queue of a device that is gone may come again as another one's.
  std::erase_if(registry->locks, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<QueueMutex>& known = registry->locks[queue];
  std::shared_ptr<QueueMutex> found = known.lock();
  if (!found) {
    found = std::make_shared<QueueMutex>();
    known = found;
  }
  return found;
}

}  // namespace brontes::vk
