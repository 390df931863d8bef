// A renderer and Brontes on one device: frames chained by semaphores or barriers, without a wait on the CPU, and runs
// in the renderer's own command buffers.
#include "application.hpp"

using app::Application;
using brontes::Batch;
using brontes::Buffer;
using brontes::Device;
using brontes::Program;
using brontes::Submission;
namespace vulkan = brontes::vulkan;

namespace {

constexpr std::uint32_t width = 64;
constexpr VkPipelineStageFlags runs = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags run_accesses =
    VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags run_writes = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;

Buffer buffer_of(const Device& device, brontes::Shape shape = {width}) { return Buffer::create(device, shape).value(); }

// out = in * 2 + 1.
void record_filter(Batch& batch, const Buffer& in, const Buffer& out) {
  batch.store(batch.offset(batch.scale(batch.import_buffer(in), 2), 1), out);
}

Program filter_of(const Device& device, const Buffer& in, const Buffer& out) {
  Batch batch(device);
  record_filter(batch, in, out);
  return batch.compile().value();
}

// A thousand frames of fill, filter and copy, two in flight, on timelines of the renderer's.
void frames_by_semaphores() {
  constexpr std::uint32_t frames = 1000;
  Application renderer;
  const Device device = renderer.adopt();
  const Buffer ins[] = {buffer_of(device), buffer_of(device)};
  const Buffer outs[] = {buffer_of(device), buffer_of(device)};
  const Buffer history = buffer_of(device, {frames, width});
  Program filters[] = {filter_of(device, ins[0], outs[0]), filter_of(device, ins[1], outs[1])};
  std::vector<VkCommandBuffer> draws, shows;
  for (std::uint32_t frame = 0; frame < frames; ++frame) {
    draws.push_back(renderer.begin());
    renderer.fill(draws.back(), ins[frame % 2], static_cast<float>(frame));
    renderer.end(draws.back());
    shows.push_back(renderer.begin());
    renderer.copy(shows.back(), outs[frame % 2], history, frame * width * sizeof(float));
    renderer.end(shows.back());
  }
  const VkSemaphore rendered = renderer.semaphore(VK_SEMAPHORE_TYPE_TIMELINE);
  const VkSemaphore filtered = renderer.semaphore(VK_SEMAPHORE_TYPE_TIMELINE);
  const VkSemaphore shown = renderer.semaphore(VK_SEMAPHORE_TYPE_TIMELINE);

  const std::uint64_t waits = app::host_waits(), submits = app::Count_vkQueueSubmit::calls;
  for (std::uint64_t frame = 0; frame < frames; ++frame) {
    // What a slot had two frames ago has been filtered, and shown, before it is drawn or filtered again.
    const std::uint64_t before = frame >= 2 ? frame - 1 : 0;
    renderer.submit(device, draws[frame], {{filtered, before}}, {{rendered, frame + 1}});
    const vulkan::SemaphoreWait wait[] = {{rendered, frame + 1}, {shown, before}};
    const vulkan::SemaphoreSignal signal[] = {{filtered, frame + 1}};
    vulkan::SubmitInfo info;
    info.waits = wait;
    info.signals = signal;
    if (!CHECK_OK(vulkan::submit(filters[frame % 2], info).error())) return;
    renderer.submit(device, shows[frame], {{filtered, frame + 1}}, {{shown, frame + 1}});
  }
  CHECK(app::host_waits() == waits);
  CHECK(app::Count_vkQueueSubmit::calls - submits == frames);  // Brontes' own: the renderer has another table
  renderer.finish(device);
  const std::vector<float> all = history.read().value();
  std::uint32_t wrong = 0;
  for (std::uint32_t frame = 0; frame < frames; ++frame) {
    for (std::uint32_t x = 0; x < width; ++x) {
      if (all[frame * width + x] == 2 * static_cast<float>(frame) + 1) continue;
      ++wrong;
      break;
    }
  }
  CHECK(wrong == 0);
}

// Binary semaphores around a batch, and the timeline behind its Submission for a second copy.
void one_batch_between_semaphores() {
  Application renderer;
  const Device device = renderer.adopt();
  const Buffer in = buffer_of(device), out = buffer_of(device), first = buffer_of(device), second = buffer_of(device);
  const VkSemaphore rendered = renderer.semaphore(VK_SEMAPHORE_TYPE_BINARY);
  const VkSemaphore filtered = renderer.semaphore(VK_SEMAPHORE_TYPE_BINARY);
  const VkCommandBuffer draw = renderer.begin();
  renderer.fill(draw, in, 20);
  renderer.end(draw);
  VkCommandBuffer shows[] = {renderer.begin(), renderer.begin()};
  renderer.copy(shows[0], out, first);
  renderer.copy(shows[1], out, second);
  for (VkCommandBuffer show : shows) renderer.end(show);

  Batch batch(device);
  record_filter(batch, in, out);
  const std::uint64_t waits = app::host_waits();
  renderer.submit(device, draw, {}, {{rendered, 0}});
  vulkan::SemaphoreWait wait{rendered};
  wait.stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  const vulkan::SemaphoreSignal signal{filtered};
  vulkan::SubmitInfo info;
  info.waits = {&wait, 1};
  info.signals = {&signal, 1};
  const auto submission = vulkan::submit(batch, info);
  if (!CHECK_OK(submission.error())) return;
  const vulkan::TimelinePoint point = vulkan::timeline(*submission);
  CHECK(point.semaphore != VK_NULL_HANDLE && point.value > 0);
  renderer.submit(device, shows[0], {{filtered, 0}});
  renderer.submit(device, shows[1], {{point.semaphore, point.value}});
  CHECK(app::host_waits() == waits);
  renderer.finish(device);
  CHECK(app::holds(first, 41));
  CHECK(app::holds(second, 41));
  CHECK(submission->ready());

  vulkan::SubmitInfo nothing;
  const vulkan::SemaphoreWait null{};
  nothing.waits = {&null, 1};
  CHECK(vulkan::submit(batch, nothing).error().code == brontes::Errc::invalid_argument);
}

// On one queue, barriers of the stages that vulkan.hpp names are all there is between them.
void barriers_alone() {
  Application renderer;
  const Device device = renderer.adopt();
  const Buffer in = buffer_of(device), out = buffer_of(device), copy = buffer_of(device);
  Program filter = filter_of(device, in, out);
  for (int frame = 0; frame < 20; ++frame) {
    const VkCommandBuffer draw = renderer.begin();
    renderer.barrier(draw, runs, run_accesses, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT);
    renderer.fill(draw, in, static_cast<float>(frame));
    renderer.barrier(draw, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, runs, run_accesses);
    renderer.end(draw);
    const VkCommandBuffer show = renderer.begin();
    renderer.barrier(show, runs, run_writes, VK_PIPELINE_STAGE_TRANSFER_BIT,
                     VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
    renderer.copy(show, out, copy);
    renderer.end(show);
    renderer.submit(device, draw);
    const auto submission = filter.submit();
    if (!CHECK_OK(submission.error())) return;
    renderer.submit(device, show);
    renderer.finish(device);
    if (!CHECK(app::holds(copy, 2 * static_cast<float>(frame) + 1))) return;
  }
}

// A run inside of the renderer's command buffer, which is submitted again while it is in flight.
void recorded_runs() {
  Application renderer;
  const Device device = renderer.adopt();
  const Buffer in = buffer_of(device), out = buffer_of(device), copy = buffer_of(device);
  Program filter = filter_of(device, in, out);
  const std::uint64_t waits = app::host_waits(), submits = app::Count_vkQueueSubmit::calls;
  const VkCommandBuffer once = renderer.begin();
  renderer.fill(once, in, 3);
  CHECK_OK(vulkan::record(filter, once));
  renderer.copy(once, out, copy);
  renderer.end(once);
  CHECK(app::host_waits() == waits && app::Count_vkQueueSubmit::calls == submits);
  renderer.submit(device, once);
  renderer.finish(device);
  CHECK(app::holds(copy, 7));

  Batch batch(device);
  batch.store(batch.offset(batch.import_buffer(in), 1), in);
  Program increment = batch.compile().value();
  const VkCommandBuffer again = renderer.begin(VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT);
  CHECK_OK(vulkan::record(increment, again));
  renderer.end(again);
  for (int i = 0; i < 10; ++i) renderer.submit(device, again);
  CHECK_OK(increment.submit().error());  // by itself, behind them
  renderer.finish(device);
  CHECK(app::holds(in, 14));
  CHECK(vulkan::record(increment, VK_NULL_HANDLE).code == brontes::Errc::invalid_argument);
}

// One family is what CPU drivers have: release and acquire are barriers there, and the buffers work as before.
void queue_families() {
  Application renderer;
  vulkan::ExternalDevice external = renderer.external();
  const std::uint32_t families[] = {renderer.family};
  external.queue_families = families;
  const Device device = renderer.adopt(external);
  const Buffer in = buffer_of(device), out = buffer_of(device), copy = buffer_of(device);
  const VkCommandBuffer commands = renderer.begin();
  renderer.fill(commands, in, 4);
  CHECK_OK(vulkan::release(in, commands, renderer.family, renderer.family));
  CHECK_OK(vulkan::acquire(in, commands, renderer.family, renderer.family));
  renderer.copy(commands, in, copy);
  renderer.end(commands);
  renderer.submit(device, commands);
  renderer.finish(device);
  CHECK(app::holds(copy, 4));
  const std::uint32_t missing[] = {1000};
  external.queue_families = missing;
  CHECK(vulkan::adopt(external).error().code == brontes::Errc::invalid_argument);
}

}  // namespace

int main() {
  return app::run_all({{"1000 frames by semaphores, without a wait on the host", frames_by_semaphores},
                       {"a batch between binary semaphores, and its timeline", one_batch_between_semaphores},
                       {"barriers alone on one queue", barriers_alone},
                       {"runs in command buffers of the renderer's", recorded_runs},
                       {"queue families", queue_families}});
}
