// The device's queue and its timeline: every submit raises the timeline by one when it is done.
#pragma once

#include "vk/handle.hpp"
#include "vk/queue_lock.hpp"

#include <brontes/error.hpp>
#include <brontes/tensor.hpp>
#include <brontes/vulkan.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace brontes::vk {

class Context;

inline constexpr std::uint64_t forever = ~std::uint64_t{0};

/// Makes a timeline value at least `to`.
void raise(std::atomic<std::uint64_t>& value, std::uint64_t to) noexcept;

/// What a run waits for, and what it signals when it is done besides the timeline.
struct Dependencies {
  std::uint64_t after = 0;  // on the timeline
  Span<const vulkan::SemaphoreWait> waits;
  Span<const vulkan::SemaphoreSignal> signals;

  bool empty() const noexcept { return after == 0 && waits.empty() && signals.empty(); }
};

/// Is told how long a run took.
class RunTimer {
 public:
  virtual ~RunTimer() = default;
  /// `at_most`: it may have been done earlier, when nobody was waiting for it.
  virtual void took(double seconds, bool at_most) noexcept = 0;
};

/// The lock callbacks of whoever owns the queue, both empty or neither.
struct HostLock {
  std::function<void()> lock;
  std::function<void()> unlock;
};

/// A queue to be used.
struct OpenQueue {
  VkQueue handle = VK_NULL_HANDLE;
  /// Any thread may use it at any time: nobody else's lock is needed, neither the process's nor the host's.
  bool internally_synchronized = false;
  HostLock host;
};

/// Thread-safety: any thread.
class Queue {
 public:
  explicit Queue(const Context& context) : context_(context) {}
  Error open(const OpenQueue& queue);

  VkQueue handle() const noexcept { return queue_; }
  VkSemaphore timeline() const noexcept { return timeline_.get(); }

  /// Vulkan wants submits serialised: hold the lock for any use of handle(). First comes that of the process, then the
  /// host's own. Where the queue is internally synchronized it is this Queue's alone, and keeps the values of its
  /// timeline in the order of the submits.
  void lock();
  void unlock() noexcept;
  /// The calling thread holds it, so that locking would never return.
  bool mine() const noexcept { return mutex_->mine(); }

  /// One vkQueueSubmit for all parts of a run, in order, which begins when what it depends on is done: either all of
  /// them are submitted or none. Without a part it only waits and signals. The value the last part will reach.
  /// `timer` is told how long it took when that has been waited for, unless the queue has other work before, or
  /// something else to wait for. One run at a time is timed.
  Result<std::uint64_t> submit(Span<const VkCommandBuffer> parts, const Dependencies& dependencies = {},
                               const std::shared_ptr<RunTimer>& timer = nullptr);

  /// True when the timeline has reached `value`: what was to raise it so far uses nothing any more. Never blocks. Once
  /// the device is lost, only for what was known before.
  bool reached(std::uint64_t value) const noexcept;

  /// Errc::timeout when `value` is not reached in time, Errc::device_lost when it never will be.
  Error wait(std::uint64_t value, std::uint64_t nanoseconds = forever) const;
  /// Waits for everything that was submitted so far.
  Error wait_all() const { return wait(last_value_); }
  /// Waits for everything that was submitted. False when the driver cannot say when that is done.
  bool drain() noexcept;

  std::atomic<std::uint64_t> submits{0};

 private:
  using Clock = std::chrono::steady_clock;
  VkResult await(std::uint64_t value, std::uint64_t nanoseconds) const noexcept;
  void stop_timing(std::uint64_t reached, Clock::time_point waited_since) const noexcept;
  Error check_semaphores(const Dependencies& dependencies) const;

  const Context& context_;
  VkQueue queue_ = VK_NULL_HANDLE;
  Semaphore timeline_;
  std::shared_ptr<QueueMutex> mutex_;
  HostLock host_;
  std::atomic<std::uint64_t> last_value_{0};
  mutable std::atomic<std::uint64_t> reached_{0};  // the highest value seen so far
  // Of submit(), kept so that a warm one allocates nothing. Under the lock.
  std::vector<VkSemaphore> waits_;
  std::vector<std::uint64_t> wait_values_;
  std::vector<VkPipelineStageFlags> wait_stages_;
  std::vector<VkSemaphore> signals_;
  std::vector<std::uint64_t> values_;  // of the timeline by part, but those of the other semaphores before the last
  std::vector<VkTimelineSemaphoreSubmitInfo> timelines_;
  std::vector<VkSubmitInfo> infos_;
  struct Timed {
    std::shared_ptr<RunTimer> timer;
    std::uint64_t value = 0;
    Clock::time_point since;
  };
  mutable std::mutex timed_mutex_;
  mutable Timed timed_;
  mutable std::atomic<std::uint64_t> timed_value_{0};  // that of timed_, or 0
};

}  // namespace brontes::vk
