// What docs/embedding.md quotes on sharing a GPU, and that it does what it says.
#include "host.hpp"

#include <atomic>
#include <cstring>

namespace brontes::test {
namespace {

// snippet: frames
brontes::Error filter_frame(brontes::Program& filter, VkSemaphore rendered, VkSemaphore filtered, std::uint64_t frame) {
  const brontes::vulkan::SemaphoreWait wait{rendered, frame};
  const brontes::vulkan::SemaphoreSignal signal{filtered, frame};
  brontes::vulkan::SubmitInfo info;
  info.waits = {&wait, 1};
  info.signals = {&signal, 1};
  return brontes::vulkan::submit(filter, info).error();
}
// end

// snippet: timeline
VkResult submit_after(const brontes::Submission& filtered, VkSubmitInfo draw, PFN_vkQueueSubmit queue_submit,
                      VkQueue queue) {
  const brontes::vulkan::TimelinePoint point = brontes::vulkan::timeline(filtered);
  const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  VkTimelineSemaphoreSubmitInfo values{};
  values.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  values.waitSemaphoreValueCount = 1;
  values.pWaitSemaphoreValues = &point.value;
  draw.pNext = &values;
  draw.waitSemaphoreCount = 1;
  draw.pWaitSemaphores = &point.semaphore;
  draw.pWaitDstStageMask = &stage;
  return queue_submit(queue, 1, &draw, VK_NULL_HANDLE);
}
// end

// snippet: record
brontes::Error record_frame(brontes::Program& filter, VkCommandBuffer commands, const brontes::Buffer& image,
                            float brightness, PFN_vkCmdFillBuffer fill) {
  const brontes::vulkan::BufferRegion region = brontes::vulkan::region(image);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &brightness, sizeof bits);
  fill(commands, region.buffer, region.offset, region.bytes, bits);  // your rendering
  return brontes::vulkan::record(filter, commands);                  // its barriers are all that is needed
}
// end

// snippet: features
brontes::Error add_features(PFN_vkGetInstanceProcAddr get_proc, VkInstance instance, VkPhysicalDevice gpu,
                            VkPhysicalDeviceFeatures2& chain, std::vector<const char*>& extensions) {
  auto wanted = brontes::vulkan::recommended_features(get_proc, instance, gpu);
  if (!wanted) return wanted.error();
  extensions.insert(extensions.end(), wanted->extensions.begin(), wanted->extensions.end());
  return brontes::vulkan::merge(*wanted, chain);
}
// end

// snippet: prepare
brontes::Result<brontes::Program> load_in_background(brontes::Batch& batch, const std::atomic<bool>& cancelled) {
  brontes::PrepareOptions options;
  options.on_progress = [&](std::size_t, std::size_t) { return !cancelled; };
  auto prepared = brontes::prepare(batch, options);
  if (!prepared) return prepared.error();
  return batch.compile();  // creates no pipeline unless it was cancelled
}
// end

}  // namespace

TEST_CASE_METHOD(DeviceTest, "the snippets on sharing do what they say", "[vulkan][snippets]") {
  const vulkan::Handles shared = vulkan::handles(shared_device());
  VkPhysicalDeviceVulkan12Features features12{};
  features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  VkPhysicalDeviceFeatures2 chain{};
  chain.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  chain.pNext = &features12;
  HostOptions options;
  options.features = &chain;
  REQUIRE_OK(
      add_features(shared.get_instance_proc_addr, shared.instance, shared.physical_device, chain, options.extensions));
  Host host(options);
  host.external.features = &chain;
  host.external.extensions = options.extensions;
  const Device device = vulkan::adopt(host.external, checked_options()).value();

  const Buffer image = Buffer::create(device, {64}).value();
  const Buffer out = Buffer::create(device, {64}).value();
  Batch batch(device);
  batch.store(batch.scale(batch.import_buffer(image), 2.0f), out);
  const std::atomic<bool> cancelled{false};
  Result<Program> filter = load_in_background(batch, cancelled);
  REQUIRE_OK(filter.error());
  CHECK(filter->stats().pipelines_created == 0);

  HostVulkan vulkan(host.handles());
  const VkSemaphore rendered = vulkan.timeline(1);
  const VkSemaphore filtered = vulkan.timeline();
  const VkCommandBuffer commands = vulkan.begin();
  REQUIRE_OK(record_frame(*filter, commands, image, 3.0f, vulkan.vkCmdFillBuffer));
  vulkan.end(commands);
  REQUIRE_OK(filter_frame(*filter, rendered, filtered, 1));
  const Submission run = filter->submit().value();
  VkSubmitInfo draw{};
  draw.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  draw.commandBufferCount = 1;
  draw.pCommandBuffers = &commands;
  {
    const auto lock = vulkan::lock_queue(device);
    REQUIRE(submit_after(run, draw, vulkan.vkQueueSubmit, host.external.queue) == VK_SUCCESS);
    REQUIRE(vulkan.vkQueueWaitIdle(host.external.queue) == VK_SUCCESS);
  }
  CHECK(vulkan.reaches(filtered, 1));
  CHECK(out.read().value() == std::vector<float>(64, 6.0f));
}

}  // namespace brontes::test
