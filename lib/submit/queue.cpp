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

Result<std::uint64_t> Queue::submit(VkCommandBuffer commands) {
  std::lock_guard lock(mutex_);
  const std::uint64_t value = last_value_ + 1;
  const VkSemaphore semaphore = timeline_.get();
  VkTimelineSemaphoreSubmitInfo timeline{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  timeline.signalSemaphoreValueCount = 1;
  timeline.pSignalSemaphoreValues = &value;
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO, &timeline};
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &semaphore;
  if (Error e = vk::check(context_.vk().vkQueueSubmit(queue_, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit")) return e;
  last_value_ = value;
  ++submits;
  return value;
}

Error Queue::wait(std::uint64_t value, std::uint64_t nanoseconds) const {
  if (value == 0) return {};
  const VkSemaphore semaphore = timeline_.get();
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore;
  info.pValues = &value;
  return vk::check(context_.vk().vkWaitSemaphores(context_.device(), &info, nanoseconds), "vkWaitSemaphores");
}

}  // namespace brontes::submit
