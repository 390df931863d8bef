// The lock of a VkQueue: one for the whole process, however many Devices run on the queue.
#pragma once

#include "vk/table.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

namespace brontes::vk {

/// A mutex that can tell its owner. Thread-safety: any thread.
class QueueMutex {
 public:
  /// Whether the calling thread holds it.
  bool mine() const noexcept { return owner_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }

  void lock() {
    mutex_.lock();
    owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  void unlock() noexcept {
    owner_.store(std::thread::id(), std::memory_order_relaxed);
    mutex_.unlock();
  }

 private:
  std::mutex mutex_;
  std::atomic<std::thread::id> owner_{};
};

/// The lock of this queue, the same for everybody who asks while anybody has it.
///
/// Thread-safety: any thread.
std::shared_ptr<QueueMutex> mutex_of(VkQueue queue);

}  // namespace brontes::vk
