// The device's queue and its timeline: every submit raises the timeline by one when it is done.
#pragma once

#include "vk/handle.hpp"

#include <brontes/error.hpp>
#include <brontes/tensor.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace brontes::vk {

class Context;

inline constexpr std::uint64_t forever = ~std::uint64_t{0};

/// Makes a timeline value at least `to`.
void raise(std::atomic<std::uint64_t>& value, std::uint64_t to) noexcept;

/// Thread-safety: any thread.
class Queue {
 public:
  explicit Queue(const Context& context) : context_(context) {}
  Error open(VkQueue queue);

  VkQueue handle() const noexcept { return queue_; }
  /// Vulkan wants submits serialised; hold it for any use of handle().
  std::mutex& mutex() noexcept { return mutex_; }

  /// One vkQueueSubmit for all parts of a run, in order, which begins when the timeline has reached `after`: either
  /// all of them are submitted or none. The value the last part will reach.
  Result<std::uint64_t> submit(Span<const VkCommandBuffer> parts, std::uint64_t after = 0);

  /// True when the timeline has reached `value`: what was to raise it so far uses nothing any more. Never blocks. Once
  /// the device is lost, only for what was known before.
  bool reached(std::uint64_t value) const noexcept;

  /// Errc::timeout when `value` is not reached in time, Errc::device_lost when it never will be.
  Error wait(std::uint64_t value, std::uint64_t nanoseconds = forever) const;
  /// Waits for everything that was submitted. False when the driver cannot say when that is done.
  bool drain() noexcept;

  std::atomic<std::uint64_t> submits{0};

 private:
  VkResult await(std::uint64_t value, std::uint64_t nanoseconds) const noexcept;

  const Context& context_;
  VkQueue queue_ = VK_NULL_HANDLE;
  Semaphore timeline_;
  std::mutex mutex_;
  std::atomic<std::uint64_t> last_value_{0};
  mutable std::atomic<std::uint64_t> reached_{0};  // the highest value seen so far
  // Of submit(), kept so that a warm one allocates nothing. Under mutex_.
  std::vector<std::uint64_t> values_;
  std::vector<VkTimelineSemaphoreSubmitInfo> timelines_;
  std::vector<VkSubmitInfo> infos_;
};

}  // namespace brontes::vk
