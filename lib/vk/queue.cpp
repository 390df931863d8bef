#include "vk/queue.hpp"

#include "vk/context.hpp"
#include "vk/result.hpp"

#include <chrono>
#include <thread>

namespace brontes::vk {
namespace {

constexpr int drain_attempts = 10;
constexpr std::chrono::milliseconds drain_pause{5};
constexpr std::chrono::milliseconds lost_grace{20};

}  // namespace

Error Queue::open(VkQueue queue) {
  VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo create{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type};
  VkSemaphore semaphore = VK_NULL_HANDLE;
  if (Error e = context_.check(context_.vk().vkCreateSemaphore(context_.device(), &create, nullptr, &semaphore),
                               "vkCreateSemaphore")) {
    return e;
  }
  queue_ = queue;
  timeline_ = Semaphore(context_.device(), context_.vk(), semaphore);
  context_.set_name(VK_OBJECT_TYPE_SEMAPHORE, reinterpret_cast<std::uint64_t>(semaphore), "brontes timeline");
  return {};
}

Result<std::uint64_t> Queue::submit(Span<const VkCommandBuffer> parts, std::uint64_t after) {
  if (Error e = context_.usable()) return e;
  std::lock_guard lock(mutex_);
  const std::size_t count = parts.size();
  values_.resize(count);
  timelines_.resize(count);
  infos_.resize(count);
  const VkSemaphore semaphore = timeline_.get();
  const VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  for (std::size_t i = 0; i < count; ++i) {
    // Each part raises the timeline, which also keeps drivers from joining parts into one job.
    values_[i] = last_value_ + 1 + i;
    VkTimelineSemaphoreSubmitInfo& timeline = timelines_[i];
    timeline = {VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
    timeline.signalSemaphoreValueCount = 1;
    timeline.pSignalSemaphoreValues = &values_[i];
    timeline.waitSemaphoreValueCount = after != 0 ? 1 : 0;
    timeline.pWaitSemaphoreValues = &after;
    VkSubmitInfo& info = infos_[i];
    info = {VK_STRUCTURE_TYPE_SUBMIT_INFO, &timeline};
    info.waitSemaphoreCount = timeline.waitSemaphoreValueCount;
    info.pWaitSemaphores = &semaphore;
    info.pWaitDstStageMask = &stages;
    info.commandBufferCount = 1;
    info.pCommandBuffers = &parts[i];
    info.signalSemaphoreCount = 1;
    info.pSignalSemaphores = &semaphore;
  }
  const VkResult result =
      context_.vk().vkQueueSubmit(queue_, static_cast<std::uint32_t>(count), infos_.data(), VK_NULL_HANDLE);
  if (Error e = context_.check(result, "vkQueueSubmit")) return e;
  last_value_ += count;
  submits += count;
  return last_value_.load();
}

VkResult Queue::await(std::uint64_t value, std::uint64_t nanoseconds) const noexcept {
  if (value <= reached_) return VK_SUCCESS;
  const VkSemaphore semaphore = timeline_.get();
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore;
  info.pValues = &value;
  const VkResult result = context_.note(context_.vk().vkWaitSemaphores(context_.device(), &info, nanoseconds));
  if (result == VK_SUCCESS) {
    raise(reached_, value);
    context_.work_done();
  }
  return result;
}

bool Queue::reached(std::uint64_t value) const noexcept {
  if (value <= reached_) return true;
  if (context_.lost()) return false;
  std::uint64_t now = 0;
  const auto counter = context_.vk().vkGetSemaphoreCounterValue;
  if (context_.note(counter(context_.device(), timeline_.get(), &now)) == VK_SUCCESS) raise(reached_, now);
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
    std::lock_guard lock(mutex_);
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
