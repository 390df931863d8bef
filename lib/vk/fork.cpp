#include "vk/fork.hpp"

#include <atomic>

#if !defined(_WIN32)
#  include <pthread.h>
#endif

namespace brontes::vk {
namespace {

std::atomic<std::uint32_t> generation{0};

#if !defined(_WIN32)
bool watch_forks() noexcept {
  return pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); }) == 0;
}
#endif

}  // namespace

std::uint32_t fork_generation() noexcept {
#if !defined(_WIN32)
  [[maybe_unused]] static const bool watched = watch_forks();
#endif
  return generation.load(std::memory_order_relaxed);
}

}  // namespace brontes::vk
