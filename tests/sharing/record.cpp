// Runs in command buffers of the host's.
#include "host.hpp"
#include "spy.hpp"

namespace brontes::test {
namespace {

Device device_with(bool staged) {
  DeviceOptions options = checked_options();
  options.simulate.staged_memory = staged;
  return open_device(options);
}

void run_and_wait(HostVulkan& host, const Device& device, VkCommandBuffer commands, int times = 1) {
  const auto lock = vulkan::lock_queue(device);
  for (int i = 0; i < times; ++i) REQUIRE(host.submit(commands, {}, {}) == VK_SUCCESS);
  REQUIRE(host.vkQueueWaitIdle(host.handles.queue) == VK_SUCCESS);
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "a program recorded into the host's command buffer needs no barriers of the host's",
                 "[vulkan][record]") {
  for (bool staged : {false, true}) {
    const Device device = device_with(staged);
    const Buffer in = Buffer::create(device, {64}).value();
    const Buffer out = Buffer::create(device, {64}).value();
    const Buffer copy = Buffer::create(device, {64}).value();
    Batch batch(device);
    const Tensor offset = batch.upload({10.0f});
    const Tensor y = batch.add(batch.import_buffer(in), offset);
    batch.store(y, out);
    const Tensor total = batch.sum(y);
    Program program = batch.compile().value();
    CHECK(program.read(total).error().code == Errc::not_executed);
    HostVulkan host(vulkan::handles(device));
    const std::uint64_t submits = device.stats().submits;

    const VkCommandBuffer commands = host.begin();
    host.fill(commands, vulkan::region(in), 3.0f);
    REQUIRE_OK(vulkan::record(program, commands));
    const VkBufferCopy all{0, 0, 256};
    host.vkCmdCopyBuffer(commands, vulkan::region(out).buffer, vulkan::region(copy).buffer, 1, &all);
    host.end(commands);
    CHECK(device.stats().submits == submits);
    run_and_wait(host, device, commands);
    CHECK(copy.read().value() == std::vector<float>(64, 13.0f));
    CHECK(program.read(total).value() == std::vector<float>{13.0f * 64});

    // Data that is written afterwards is that of the next submit.
    REQUIRE_OK(program.write(offset, std::vector<float>{20.0f}));
    run_and_wait(host, device, commands);
    CHECK(copy.read().value() == std::vector<float>(64, 23.0f));
    CHECK(program.read(total).value() == std::vector<float>{23.0f * 64});
    // The program runs by itself as before.
    REQUIRE_OK(program.run());
    CHECK(program.read(total).value() == std::vector<float>{23.0f * 64});
  }
}

TEST_CASE_METHOD(DeviceTest, "a recorded run may be submitted again while it is in flight", "[vulkan][record]") {
  const Device& device = shared_device();
  const Buffer state = Buffer::create(device, {256}).value();
  BatchOptions options;
  options.work_per_submit = 1;  // one piece all the same
  options.fuse = false;
  Batch batch(device, options);
  batch.store(batch.offset(batch.offset(batch.import_buffer(state), 2.0f), -1.0f), state);
  Program program = batch.compile().value();
  HostVulkan host(vulkan::handles(device));
  const VkCommandBuffer commands = host.begin(VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT);
  REQUIRE_OK(vulkan::record(program, commands));
  REQUIRE_OK(vulkan::record(program, commands));
  host.end(commands);
  for (int round = 0; round < 10; ++round) {
    {
      const auto lock = vulkan::lock_queue(device);
      REQUIRE(host.submit(commands, {}, {}) == VK_SUCCESS);
      REQUIRE(host.submit(commands, {}, {}) == VK_SUCCESS);
    }
    REQUIRE_OK(program.submit().error());
  }
  {
    const auto lock = vulkan::lock_queue(device);
    REQUIRE(host.vkQueueWaitIdle(host.handles.queue) == VK_SUCCESS);
  }
  CHECK(state.read().value() == std::vector<float>(256, 50.0f));
}

TEST_CASE_METHOD(DeviceTest, "recording submits nothing and waits for nothing", "[vulkan][record]") {
  (void)shared_device();
  const Spy spy;
  const Device device = open_device();
  const Buffer state = Buffer::create(device, {256}).value();
  Batch batch(device);
  batch.store(batch.offset(batch.sum(batch.import_buffer(state), -1, true), 2.0f), Buffer::create(device, {1}).value());
  Program program = batch.compile().value();
  HostVulkan host(vulkan::handles(device));
  const VkCommandBuffer commands = host.begin();
  spy.reset();
  vulkan::RecordOptions narrow;
  narrow.before_stages = VK_PIPELINE_STAGE_TRANSFER_BIT;
  narrow.before_writes = VK_ACCESS_TRANSFER_WRITE_BIT;
  narrow.after_stages = VK_PIPELINE_STAGE_TRANSFER_BIT;
  narrow.after_accesses = VK_ACCESS_TRANSFER_READ_BIT;
  REQUIRE_OK(vulkan::record(program, commands, narrow));
  CHECK(spy.calls("vkCmdDispatch") > 0);
  for (const char* none : {"vkQueueSubmit", "vkWaitSemaphores", "vkQueueWaitIdle", "vkBeginCommandBuffer",
                           "vkEndCommandBuffer", "vkAllocateDescriptorSets", "vkCreateComputePipelines"}) {
    INFO(none);
    CHECK(spy.calls(none) == 0);
  }
  host.end(commands);
  run_and_wait(host, device, commands);
}

TEST_CASE_METHOD(DeviceTest, "what cannot be recorded is an error", "[vulkan][record]") {
  const Device& device = shared_device();
  Batch batch(device);
  Program nothing = batch.compile().value();
  CHECK(vulkan::record(nothing, VK_NULL_HANDLE).code == Errc::invalid_argument);
  HostVulkan host(vulkan::handles(device));
  const VkCommandBuffer commands = host.begin();
  REQUIRE_OK(vulkan::record(nothing, commands));
  vulkan::RecordOptions none;
  none.before_stages = 0;
  CHECK(vulkan::record(nothing, commands, none).code == Errc::invalid_argument);
  const Program moved = std::move(nothing);
  CHECK(vulkan::record(nothing, commands).code == Errc::invalid_argument);  // NOLINT: moved from on purpose
  const Buffer buffer = Buffer::create(device, {4}).value();
  CHECK(vulkan::release(buffer, VK_NULL_HANDLE, 0, 0).code == Errc::invalid_argument);
  host.end(commands);
}

}  // namespace brontes::test
