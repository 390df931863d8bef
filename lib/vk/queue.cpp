#include "vk/queue.hpp"

#include "vk/context.hpp"
#include "vk/result.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace brontes::vk {
namespace {

constexpr int drain_attempts = 10;
constexpr std::chrono::milliseconds drain_pause{5};
constexpr std::chrono::milliseconds lost_grace{20};

/// Where runs do their work.
constexpr VkPipelineStageFlags work_stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;

}  // namespace

Error Queue::open(const OpenQueue& queue) {
  const bool shared = !queue.internally_synchronized;
  std::shared_ptr<QueueMutex> mutex = shared ? mutex_of(queue.handle) : std::make_shared<QueueMutex>();
  VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo create{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type};
  VkSemaphore semaphore = VK_NULL_HANDLE;
  if (Error e = context_.check(
          context_.vk().vkCreateSemaphore(context_.device(), &create, context_.vk().callbacks, &semaphore),
          "vkCreateSemaphore")) {
    return e;
  }
  queue_ = queue.handle;
  mutex_ = std::move(mutex);
  if (shared) host_ = queue.host;
  timeline_ = Semaphore(context_.device(), context_.vk(), semaphore);
  context_.set_name(VK_OBJECT_TYPE_SEMAPHORE, reinterpret_cast<std::uint64_t>(semaphore), "brontes timeline");
  return {};
}

void Queue::lock() {
  mutex_->lock();
  if (!host_.lock) return;
  struct Undo {
    ~Undo() {
      if (mutex != nullptr) mutex->unlock();
    }
    QueueMutex* mutex;
  } undo{mutex_.get()};
  host_.lock();
  undo.mutex = nullptr;
}

void Queue::unlock() noexcept {
  if (host_.unlock) host_.unlock();
  mutex_->unlock();
}

Error Queue::check_semaphores(const Dependencies& dependencies) const {
  for (const vulkan::SemaphoreWait& wait : dependencies.waits) {
    if (wait.semaphore == VK_NULL_HANDLE) {
      return Error(Errc::invalid_argument, "submit: a semaphore to wait for is VK_NULL_HANDLE");
    }
    // Whatever a run does comes after a barrier with these stages in its first scope.
    if ((wait.stages & (work_stages | VK_PIPELINE_STAGE_ALL_COMMANDS_BIT)) == 0) {
      return Error(Errc::invalid_argument,
                   "submit: the stages of a wait have neither compute shaders nor transfers, so nothing would wait");
    }
    if (wait.semaphore == timeline_.get() && wait.value > last_value_) {
      return Error(Errc::invalid_argument, "submit: a wait for value " + std::to_string(wait.value) +
                                               " of the device's own timeline, of which " +
                                               std::to_string(last_value_) + " was submitted last");
    }
  }
  for (const vulkan::SemaphoreSignal& signal : dependencies.signals) {
    if (signal.semaphore == VK_NULL_HANDLE) {
      return Error(Errc::invalid_argument, "submit: a semaphore to signal is VK_NULL_HANDLE");
    }
    if (signal.semaphore == timeline_.get()) {
      return Error(Errc::invalid_argument, "submit: the device's own timeline is to be signalled");
    }
  }
  return {};
}

Result<std::uint64_t> Queue::submit(Span<const VkCommandBuffer> parts, const Dependencies& dependencies,
                                    const std::shared_ptr<RunTimer>& timer) {
  if (Error e = context_.usable()) return e;
  if (mine()) {
    return Error(Errc::invalid_argument,
                 "the queue is locked by this thread (vulkan::lock_queue); unlock it before work is submitted");
  }
  std::lock_guard lock(*this);
  if (Error e = check_semaphores(dependencies)) return e;
  const std::size_t count = std::max<std::size_t>(parts.size(), 1);

  const std::size_t own_waits = dependencies.after != 0 ? 1 : 0;
  waits_.assign(own_waits, timeline_.get());
  wait_values_.assign(own_waits, dependencies.after);
  wait_stages_.assign(own_waits, work_stages);
  for (const vulkan::SemaphoreWait& wait : dependencies.waits) {
    waits_.push_back(wait.semaphore);
    wait_values_.push_back(wait.value);
    wait_stages_.push_back(wait.stages);
  }
  // Each part raises the timeline, which also keeps drivers from joining parts into one job. It comes last, so that
  // drivers that signal one by one are done with the others when it is seen.
  signals_.clear();
  values_.resize(count - 1);
  for (std::size_t i = 0; i + 1 < count; ++i) values_[i] = last_value_ + 1 + i;
  for (const vulkan::SemaphoreSignal& signal : dependencies.signals) {
    signals_.push_back(signal.semaphore);
    values_.push_back(signal.value);
  }
  signals_.push_back(timeline_.get());
  values_.push_back(last_value_ + count);

  timelines_.resize(count);
  infos_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    // What the first part waits for, all commands behind it in submission order wait for, too.
    const auto waits = static_cast<std::uint32_t>(i == 0 ? waits_.size() : own_waits);
    const bool last = i + 1 == count;
    const auto signals = static_cast<std::uint32_t>(last ? signals_.size() : 1);
    VkTimelineSemaphoreSubmitInfo& timeline = timelines_[i];
    timeline = {VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
    timeline.waitSemaphoreValueCount = waits;
    timeline.pWaitSemaphoreValues = wait_values_.data();
    timeline.signalSemaphoreValueCount = signals;
    timeline.pSignalSemaphoreValues = &values_[i];
    VkSubmitInfo& info = infos_[i];
    info = {VK_STRUCTURE_TYPE_SUBMIT_INFO, &timeline};
    info.waitSemaphoreCount = waits;
    info.pWaitSemaphores = waits_.data();
    info.pWaitDstStageMask = wait_stages_.data();
    info.commandBufferCount = parts.empty() ? 0 : 1;
    info.pCommandBuffers = parts.empty() ? nullptr : &parts[i];
    info.signalSemaphoreCount = signals;
    info.pSignalSemaphores = last ? signals_.data() : &signals_.back();
  }
  const bool timed = timer && dependencies.empty() && timed_value_ == 0 && reached(last_value_);
  const Clock::time_point since = timed ? Clock::now() : Clock::time_point();
  const VkResult result =
      context_.vk().vkQueueSubmit(queue_, static_cast<std::uint32_t>(count), infos_.data(), VK_NULL_HANDLE);
  if (Error e = context_.check(result, "vkQueueSubmit")) return e;
  last_value_ += count;
  submits += parts.size();
  if (timed) {
    const std::lock_guard timing(timed_mutex_);
    timed_ = {timer, last_value_, since};
    timed_value_ = last_value_.load();
  }
  return last_value_.load();
}

void Queue::stop_timing(std::uint64_t reached, Clock::time_point waited_since) const noexcept {
  const Clock::time_point now = Clock::now();
  Timed done;
  {
    // In a forked process a thread that does not exist may have it; elsewhere another wait is just doing this.
    const std::unique_lock lock(timed_mutex_, std::try_to_lock);
    if (!lock || timed_value_ == 0 || reached < timed_value_) return;
    std::swap(done, timed_);
    timed_value_ = 0;
  }
  const std::chrono::duration<double> took = now - done.since;
  // Whoever came late to wait, or waited for more, cannot tell when this was done.
  const bool late = (now - waited_since) * 2 < now - done.since;
  done.timer->took(took.count(), late || reached != done.value);
}

VkResult Queue::await(std::uint64_t value, std::uint64_t nanoseconds) const noexcept {
  const bool timed = timed_value_ != 0 && value >= timed_value_;
  const Clock::time_point begin = timed ? Clock::now() : Clock::time_point();
  if (value <= reached_) {
    if (timed) stop_timing(value, begin);
    return VK_SUCCESS;
  }
  const VkSemaphore semaphore = timeline_.get();
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore;
  info.pValues = &value;
  trace::Span span(context_.trace(), trace::Stage::wait, "wait");
  span.about(value);
  const VkResult result = context_.note(context_.vk().vkWaitSemaphores(context_.device(), &info, nanoseconds));
  if (result == VK_SUCCESS) {
    raise(reached_, value);
    if (span.on()) context_.trace().saw(value, trace::now());
    if (timed) stop_timing(value, begin);
    context_.work_done();
  }
  return result;
}

bool Queue::reached(std::uint64_t value) const noexcept {
  if (value <= reached_) return true;
  if (context_.lost()) return false;
  std::uint64_t now = 0;
  const auto counter = context_.vk().vkGetSemaphoreCounterValue;
  if (context_.note(counter(context_.device(), timeline_.get(), &now)) == VK_SUCCESS) {
    raise(reached_, now);
    if (context_.trace().on()) context_.trace().saw(now, trace::now());
  }
  return value <= reached_;
}

Error Queue::wait(std::uint64_t value, std::uint64_t nanoseconds) const {
  if (Error e = context_.usable()) return e;
  return check(await(value, nanoseconds), "vkWaitSemaphores");
}

bool Queue::drain() noexcept {
  const std::uint64_t last = last_value_;
  // A wait may fail for lack of memory. Whoever closes a device cannot try again later, so this does.
  for (int attempt = 0; attempt < drain_attempts; ++attempt) {
    if (attempt != 0) std::this_thread::sleep_for(drain_pause);
    await(last, forever);
    // The timeline alone is not enough: Mesa's submit thread (22.3) touches the semaphores of a submit a moment longer
    // than the wait for them lasts, and they are about to be destroyed.
    // Where one of several Devices on a queue is closed by a thread that has the lock, that is enough.
    std::unique_lock<Queue> lock(*this, std::defer_lock);
    if (!mine()) lock.lock();
    const VkResult result = context_.note(context_.vk().vkQueueWaitIdle(queue_));
    if (result == VK_SUCCESS) return true;
    if (result == VK_ERROR_DEVICE_LOST) {
      // Nothing is in use any more then, says the specification. There is no asking a driver that speaks too soon,
      // so it gets a moment.
      std::this_thread::sleep_for(lost_grace);
      return true;
    }
  }
  return reached(last);
}

void raise(std::atomic<std::uint64_t>& value, std::uint64_t to) noexcept {
  std::uint64_t seen = value;
  while (seen < to && !value.compare_exchange_weak(seen, to)) {
  }
}

}  // namespace brontes::vk
