// The device's queue and its timeline: every submit raises the timeline by one when it is done.
#pragma once

#include "vk/handle.hpp"

#include <brontes/error.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace brontes::vk {
class Context;
}

namespace brontes::submit {

inline constexpr std::uint64_t forever = ~std::uint64_t{0};

/// Thread-safety: any thread.
class Queue {
 public:
  explicit Queue(const vk::Context& context) : context_(context) {}
  Error open(VkQueue queue);

  VkQueue handle() const noexcept { return queue_; }
  /// Vulkan wants submits serialised; hold it for any use of handle().
  std::mutex& mutex() noexcept { return mutex_; }

  /// One vkQueueSubmit. The timeline value it will reach.
  Result<std::uint64_t> submit(VkCommandBuffer commands);

  /// Errc::timeout when `value` is not reached in time.
  Error wait(std::uint64_t value, std::uint64_t nanoseconds = forever) const;

  std::atomic<std::uint64_t> submits{0};

 private:
  const vk::Context& context_;
  VkQueue queue_ = VK_NULL_HANDLE;
  vk::Semaphore timeline_;
  std::mutex mutex_;
  std::uint64_t last_value_ = 0;
};

}  // namespace brontes::submit
