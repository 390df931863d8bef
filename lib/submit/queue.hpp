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

/// Makes a timeline value at least `to`.
void raise(std::atomic<std::uint64_t>& value, std::uint64_t to);

/// Thread-safety: any thread.
class Queue {
 public:
  explicit Queue(const vk::Context& context) : context_(context) {}
  Error open(VkQueue queue);

  VkQueue handle() const noexcept { return queue_; }
  /// Vulkan wants submits serialised; hold it for any use of handle().
  std::mutex& mutex() noexcept { return mutex_; }

  /// One vkQueueSubmit, which begins when the timeline has reached `after`. The value it will reach.
  Result<std::uint64_t> submit(VkCommandBuffer commands, std::uint64_t after = 0);

  /// True when the timeline has reached `value`. Never blocks; false too when the device is lost.
  bool reached(std::uint64_t value) const;

  /// Errc::timeout when `value` is not reached in time.
  Error wait(std::uint64_t value, std::uint64_t nanoseconds = forever) const;
  /// Waits for everything that was submitted.
  void drain() const;

  std::atomic<std::uint64_t> submits{0};

 private:
  const vk::Context& context_;
  VkQueue queue_ = VK_NULL_HANDLE;
  vk::Semaphore timeline_;
  std::mutex mutex_;
  std::atomic<std::uint64_t> last_value_{0};
  mutable std::atomic<std::uint64_t> reached_{0};  // the highest value seen so far
};

}  // namespace brontes::submit
