#include "submit/queue.hpp"

#include "vk/context.hpp"
#include "vk/result.hpp"

namespace brontes::submit {

Error Queue::open(VkQueue queue) {
  queue_ = queue;
  VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo create{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type};
  VkSemaphore semaphore = VK_NULL_HANDLE;
  if (Error e = vk::check(context_.vk().vkCreateSemaphore(context_.device(), &create, nullptr, &semaphore),
                          "vkCreateSemaphore")) {
    return e;
  }
  timeline_ = vk::Semaphore(context_.device(), context_.vk(), semaphore);
  context_.set_name(VK_OBJECT_TYPE_SEMAPHORE, reinterpret_cast<std::uint64_t>(semaphore), "brontes timeline");
  return {};
}

Result<std::uint64_t> Queue::submit(VkCommandBuffer commands, std::uint64_t after) {
  std::lock_guard lock(mutex_);
  const std::uint64_t value = last_value_ + 1;
  const VkSemaphore semaphore = timeline_.get();
  VkTimelineSemaphoreSubmitInfo timeline{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  timeline.signalSemaphoreValueCount = 1;
  timeline.pSignalSemaphoreValues = &value;
  timeline.waitSemaphoreValueCount = after != 0 ? 1 : 0;
  timeline.pWaitSemaphoreValues = &after;
  const VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO, &timeline};
  info.waitSemaphoreCount = timeline.waitSemaphoreValueCount;
  info.pWaitSemaphores = &semaphore;
  info.pWaitDstStageMask = &stages;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &semaphore;
  if (Error e = vk::check(context_.vk().vkQueueSubmit(queue_, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit")) return e;
  last_value_ = value;
  ++submits;
  return value;
}

bool Queue::reached(std::uint64_t value) const {
  if (value <= reached_) return true;
  std::uint64_t now = 0;
  if (context_.vk().vkGetSemaphoreCounterValue(context_.device(), timeline_.get(), &now) != VK_SUCCESS) return false;
  raise(reached_, now);
  return value <= now;
}

Error Queue::wait(std::uint64_t value, std::uint64_t nanoseconds) const {
  if (value <= reached_) return {};
  const VkSemaphore semaphore = timeline_.get();
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore;
  info.pValues = &value;
  if (Error e = vk::check(context_.vk().vkWaitSemaphores(context_.device(), &info, nanoseconds), "vkWaitSemaphores")) {
    return e;
  }
  raise(reached_, value);
  return {};
}

void Queue::drain() const {
  // A lost device has nothing left to wait for; any other failure to wait gets a second chance.
  if (wait(last_value_)) static_cast<void>(context_.vk().vkDeviceWaitIdle(context_.device()));
}

void raise(std::atomic<std::uint64_t>& value, std::uint64_t to) {
  std::uint64_t seen = value;
  while (seen < to && !value.compare_exchange_weak(seen, to)) {
  }
}

}  // namespace brontes::submit
