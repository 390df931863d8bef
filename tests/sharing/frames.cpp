// A renderer and Brontes take turns with buffers, frame after frame; and buffers between queue families.
#include "host.hpp"
#include "shim.hpp"
#include "spy.hpp"

namespace brontes::test {
namespace {

constexpr std::uint32_t width = 64;

// Two of everything, so that frames can overlap.
struct Slot {
  Buffer in;
  Buffer out;
};

Slot slot_of(const Device& device) {
  return {Buffer::create(device, {width}).value(), Buffer::create(device, {width}).value()};
}

// The renderer: fills an image, and copies what came of it to a row of the history.
class Renderer {
 public:
  Renderer(const Device& device, std::uint32_t frames)
      : device_(device), host_(vulkan::handles(device)), history(Buffer::create(device, {frames, width}).value()) {}

  void prepare(const Slot& slot, std::uint32_t frame) {
    const VkCommandBuffer draw = host_.begin();
    host_.fill(draw, vulkan::region(slot.in), static_cast<float>(frame));
    host_.end(draw);
    draws_.push_back(draw);
    const VkCommandBuffer show = host_.begin();
    const VkBufferCopy row{0, std::uint64_t{frame} * width * 4, width * 4};
    host_.vkCmdCopyBuffer(show, vulkan::region(slot.out).buffer, vulkan::region(history).buffer, 1, &row);
    host_.end(show);
    shows_.push_back(show);
  }

  // The image of frame k - 2 has been filtered when frame k is drawn over it.
  void draw(std::uint32_t frame) {
    const auto lock = vulkan::lock_queue(device_);
    std::vector<HostVulkan::Wait> waits;
    if (frame >= 2) waits.push_back({filtered, frame - 1});
    REQUIRE(host_.submit(draws_[frame], waits, {{rendered, frame + 1}}) == VK_SUCCESS);
  }
  void show(std::uint32_t frame) {
    const auto lock = vulkan::lock_queue(device_);
    REQUIRE(host_.submit(shows_[frame], {{filtered, frame + 1}}, {{shown, frame + 1}}) == VK_SUCCESS);
  }

  // Brontes: image * 2 + 1, when it is drawn and what came of frame k - 2 has been shown.
  template <class Work>
  Result<Submission> filter(Work& work, std::uint32_t frame) {
    const vulkan::SemaphoreWait waits[] = {{rendered, frame + 1}, {shown, frame >= 2 ? frame - 1 : 0}};
    const vulkan::SemaphoreSignal signal{filtered, frame + 1};
    vulkan::SubmitInfo info;
    info.waits = waits;
    info.signals = {&signal, 1};
    return vulkan::submit(work, info);
  }

  std::uint32_t wrong_frames(std::uint32_t frames) {
    REQUIRE(host_.reaches(shown, frames));
    const std::vector<float> all = history.read().value();
    std::uint32_t wrong = 0;
    for (std::uint32_t frame = 0; frame < frames; ++frame) {
      for (std::uint32_t x = 0; x < width; ++x) {
        if (all[frame * width + x] == 2.0f * static_cast<float>(frame) + 1.0f) continue;
        ++wrong;
        break;
      }
    }
    return wrong;
  }

 private:
  const Device& device_;
  HostVulkan host_;

 public:
  Buffer history;
  VkSemaphore rendered = host_.timeline();
  VkSemaphore filtered = host_.timeline();
  VkSemaphore shown = host_.timeline();

 private:
  std::vector<VkCommandBuffer> draws_, shows_;
};

void record_filter(Batch& batch, const Slot& slot) {
  batch.store(batch.offset(batch.scale(batch.import_buffer(slot.in), 2.0f), 1.0f), slot.out);
}

// Every function that can block, of those that Brontes loads and those of the renderer's here.
std::uint64_t host_waits(const Spy& spy) { return spy.calls("vkWaitSemaphores") + spy.calls("vkQueueWaitIdle"); }

}  // namespace

TEST_CASE_METHOD(DeviceTest, "a renderer and a program take turns for 1000 frames by semaphores only",
                 "[vulkan][frames]") {
  (void)shared_device();
  const Spy spy;
  const Device device = open_device();
  constexpr std::uint32_t frames = 1000;
  const Slot slots[] = {slot_of(device), slot_of(device)};
  std::vector<Program> filters;
  for (const Slot& slot : slots) {
    Batch batch(device);
    record_filter(batch, slot);
    filters.push_back(batch.compile().value());
  }
  Renderer renderer(device, frames);
  for (std::uint32_t frame = 0; frame < frames; ++frame) renderer.prepare(slots[frame % 2], frame);
  spy.reset();
  const DeviceStats before = device.stats();
  for (std::uint32_t frame = 0; frame < frames; ++frame) {
    renderer.draw(frame);
    REQUIRE_OK(renderer.filter(filters[frame % 2], frame).error());
    renderer.show(frame);
  }
  CHECK(host_waits(spy) == 0);
  CHECK(spy.calls("vkQueueSubmit") == 3 * frames);
  CHECK(device.stats().allocations == before.allocations);
  CHECK(renderer.wrong_frames(frames) == 0);
}

TEST_CASE_METHOD(DeviceTest, "a batch per frame waits on the host no more than a program does", "[vulkan][frames]") {
  (void)shared_device();
  const Spy spy;
  for (bool staged : {false, true}) {
    DeviceOptions options = checked_options();
    options.simulate.staged_memory = staged;
    const Device device = open_device(options);
    constexpr std::uint32_t frames = 60;
    const Slot slots[] = {slot_of(device), slot_of(device)};
    Renderer renderer(device, frames);
    for (std::uint32_t frame = 0; frame < frames; ++frame) renderer.prepare(slots[frame % 2], frame);
    spy.reset();
    for (std::uint32_t frame = 0; frame < frames; ++frame) {
      renderer.draw(frame);
      Batch batch(device);
      const Tensor twice = batch.mul(batch.import_buffer(slots[frame % 2].in), batch.upload({2.0f}));
      batch.store(batch.offset(twice, 1.0f), slots[frame % 2].out);
      REQUIRE_OK(renderer.filter(batch, frame).error());
      renderer.show(frame);
    }
    CHECK(host_waits(spy) == 0);
    CHECK(renderer.wrong_frames(frames) == 0);
  }
}

TEST_CASE_METHOD(DeviceTest, "buffers are shared by the queue families that the host names", "[vulkan][frames]") {
  HostOptions options;
  options.validation = false;  // it would see the families that are not there
  Host host(options);
  host.external.get_instance_proc_addr = shim::get_instance_proc_addr(host.external.get_instance_proc_addr);
  const std::uint32_t own = host.external.queue_family;
  {
    const std::uint32_t same[] = {own, own};
    host.external.queue_families = same;
    const Device device = vulkan::adopt(host.external, checked_options()).value();
    shim::forget();
    const Buffer buffer = Buffer::create(device, {64}).value();
    CHECK(shim::seen().sharing == std::vector<VkSharingMode>{VK_SHARING_MODE_EXCLUSIVE});
  }
  shim::show_more_families(2);
  std::uint32_t count = 0;
  reinterpret_cast<PFN_vkGetPhysicalDeviceQueueFamilyProperties>(
      host.external.get_instance_proc_addr(host.external.instance, "vkGetPhysicalDeviceQueueFamilyProperties"))(
      host.external.physical_device, &count, nullptr);
  {
    const std::uint32_t missing[] = {count};
    host.external.queue_families = missing;
    CHECK(vulkan::adopt(host.external, checked_options()).error().code == Errc::invalid_argument);
  }
  {
    const std::uint32_t others[] = {count - 1, own};
    host.external.queue_families = others;
    const Device device = vulkan::adopt(host.external, checked_options()).value();
    shim::forget();
    const Buffer buffer = Buffer::create(device, {64}).value();
    CHECK(shim::seen().sharing == std::vector<VkSharingMode>{VK_SHARING_MODE_CONCURRENT});
    CHECK(shim::seen().families.at(0) == std::vector<std::uint32_t>{own, count - 1});
    check_device_works(device);
  }
  shim::show_more_families(0);
}

TEST_CASE_METHOD(DeviceTest, "a buffer is released to another queue family and acquired back", "[vulkan][frames]") {
  HostOptions options;
  options.validation = false;
  Host host(options);
  host.external.get_instance_proc_addr = shim::get_instance_proc_addr(host.external.get_instance_proc_addr);
  const Device device = vulkan::adopt(host.external, checked_options()).value();
  const Buffer buffer = Buffer::create(device, {64}).value();
  HostVulkan own(host.handles());
  const VkCommandBuffer commands = own.begin();
  shim::forget();
  REQUIRE_OK(vulkan::release(buffer, commands, 0, 3));
  REQUIRE_OK(vulkan::acquire(buffer, commands, 3, 0));
  const std::vector<VkBufferMemoryBarrier> transfers = shim::seen().transfers;
  REQUIRE(transfers.size() == 2);
  CHECK(transfers[0].srcQueueFamilyIndex == 0);
  CHECK(transfers[0].dstQueueFamilyIndex == 3);
  CHECK(transfers[0].buffer == vulkan::region(buffer).buffer);
  CHECK(transfers[0].size == 256);
  CHECK(transfers[1].srcQueueFamilyIndex == 3);
  CHECK(transfers[1].dstQueueFamilyIndex == 0);
  own.end(commands);
}

TEST_CASE_METHOD(DeviceTest, "within one queue family release and acquire are barriers", "[vulkan][frames]") {
  const Device& device = shared_device();
  const Buffer buffer = Buffer::create(device, {64}).value();
  const Buffer copy = Buffer::create(device, {64}).value();
  HostVulkan host(vulkan::handles(device));
  const std::uint32_t family = host.handles.queue_family;
  const VkCommandBuffer commands = host.begin();
  host.fill(commands, vulkan::region(buffer), 3.0f);
  REQUIRE_OK(vulkan::release(buffer, commands, family, family));
  const VkBufferCopy all{0, 0, 256};
  host.vkCmdCopyBuffer(commands, vulkan::region(buffer).buffer, vulkan::region(copy).buffer, 1, &all);
  REQUIRE_OK(vulkan::acquire(buffer, commands, family, family));
  host.fill(commands, vulkan::region(buffer), 4.0f);
  host.end(commands);
  {
    const auto lock = vulkan::lock_queue(device);
    REQUIRE(host.submit(commands, {}, {}) == VK_SUCCESS);
    REQUIRE(host.vkQueueWaitIdle(host.handles.queue) == VK_SUCCESS);
  }
  CHECK(copy.read().value() == std::vector<float>(64, 3.0f));
  CHECK(buffer.read().value() == std::vector<float>(64, 4.0f));
}

}  // namespace brontes::test
