#include "vk/loader_lock.hpp"

#include <cstddef>
#include <new>

#if !defined(_WIN32)
#  include <pthread.h>
#endif

namespace brontes::vk {
namespace {

// Never destroyed: devices may be closed while the process ends.
alignas(std::shared_mutex) std::byte storage[sizeof(std::shared_mutex)];

std::shared_mutex* make() noexcept {
#if !defined(_WIN32)
  // A thread that is not there any more may hold it in a forked process. It is not taken before a fork instead, because
  // drivers fork, too: some start a helper program while an instance is created.
  pthread_atfork(nullptr, nullptr, [] { new (storage) std::shared_mutex; });
#endif
  return new (storage) std::shared_mutex;
}

}  // namespace

std::shared_mutex& loader_mutex() noexcept {
  static std::shared_mutex* const mutex = make();
  return *mutex;
}

}  // namespace brontes::vk
