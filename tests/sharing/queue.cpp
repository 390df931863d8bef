// Brontes and a host application on one queue: semaphores, the lock, ordering by barriers.
#include "host.hpp"
#include "shim.hpp"
#include "spy.hpp"

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

namespace brontes::test {
namespace {

constexpr VkPipelineStageFlags work_stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags work_writes = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags work_accesses =
    VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;

// out = in + in.
Program doubling(const Device& device, const Buffer& in, const Buffer& out) {
  Batch batch(device);
  const Tensor x = batch.import_buffer(in);
  batch.store(batch.add(x, x), out);
  Result<Program> program = batch.compile();
  REQUIRE_OK(program.error());
  return std::move(program).value();
}

template <class Work>
Result<Submission> submit(Work& work, const std::vector<vulkan::SemaphoreWait>& waits,
                          const std::vector<vulkan::SemaphoreSignal>& signals) {
  vulkan::SubmitInfo info;
  info.waits = waits;
  info.signals = signals;
  return vulkan::submit(work, info);
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "a program waits for a timeline semaphore of the host's and signals another",
                 "[vulkan][sharing]") {
  const Device& device = shared_device();
  const Buffer in = Buffer::from(device, std::vector<float>(64, 3.0f)).value();
  const Buffer out = Buffer::create(device, {64}).value();
  Program program = doubling(device, in, out);
  HostVulkan host(vulkan::handles(device));
  const VkSemaphore go = host.timeline();
  const VkSemaphore done = host.timeline(10);

  const Result<Submission> run = submit(program, {{go, 5}}, {{done, 11}});
  REQUIRE_OK(run.error());
  // It cannot have run, however long it takes.
  CHECK(run->wait(std::chrono::milliseconds(20)).code == Errc::timeout);
  CHECK_FALSE(run->ready());
  CHECK(host.counter(done) == 10);
  host.signal(go, 5);
  REQUIRE_OK(run->wait());
  CHECK(host.reaches(done, 11));
  CHECK(out.read().value() == std::vector<float>(64, 6.0f));
}

TEST_CASE_METHOD(DeviceTest, "a batch waits for a binary semaphore and signals one that the host's commands wait for",
                 "[vulkan][sharing]") {
  const Device& device = shared_device();
  const Buffer in = Buffer::create(device, {64}).value();
  const Buffer out = Buffer::create(device, {64}).value();
  const Buffer copy = Buffer::create(device, {64}).value();
  HostVulkan host(vulkan::handles(device));
  const VkSemaphore filled = host.binary();
  const VkSemaphore doubled = host.binary();
  const VkSemaphore copied = host.timeline();

  const VkCommandBuffer fill = host.begin();
  host.fill(fill, vulkan::region(in), 4.0f);
  host.end(fill);
  const VkCommandBuffer take = host.begin();
  const VkBufferCopy all{0, 0, 256};
  host.vkCmdCopyBuffer(take, vulkan::region(out).buffer, vulkan::region(copy).buffer, 1, &all);
  host.end(take);
  {
    const auto lock = vulkan::lock_queue(device);
    REQUIRE(host.submit(fill, {}, {{filled, 0}}) == VK_SUCCESS);
  }
  Batch batch(device);
  const Tensor x = batch.import_buffer(in);
  batch.store(batch.add(x, x), out);
  REQUIRE_OK(submit(batch, {{filled}}, {{doubled}}).error());
  {
    const auto lock = vulkan::lock_queue(device);
    REQUIRE(host.submit(take, {{doubled, 0}}, {{copied, 1}}) == VK_SUCCESS);
  }
  REQUIRE(host.reaches(copied, 1));
  CHECK(copy.read().value() == std::vector<float>(64, 8.0f));
}

TEST_CASE_METHOD(DeviceTest, "the host's commands wait for the timeline behind a submission", "[vulkan][sharing]") {
  const Device& device = shared_device();
  const Buffer in = Buffer::from(device, std::vector<float>(64, 5.0f)).value();
  const Buffer out = Buffer::create(device, {64}).value();
  const Buffer copy = Buffer::create(device, {64}).value();
  Program program = doubling(device, in, out);
  HostVulkan host(vulkan::handles(device));
  const VkCommandBuffer take = host.begin();
  const VkBufferCopy all{0, 0, 256};
  host.vkCmdCopyBuffer(take, vulkan::region(out).buffer, vulkan::region(copy).buffer, 1, &all);
  host.end(take);

  const Result<Submission> run = program.submit();
  REQUIRE_OK(run.error());
  const vulkan::TimelinePoint point = vulkan::timeline(*run);
  REQUIRE(point.semaphore != VK_NULL_HANDLE);
  CHECK(point.value > 0);
  {
    const auto lock = vulkan::lock_queue(device);
    REQUIRE(host.submit(take, {{point.semaphore, point.value}}, {}) == VK_SUCCESS);
    REQUIRE(host.vkQueueWaitIdle(host.handles.queue) == VK_SUCCESS);
  }
  CHECK(host.counter(point.semaphore) >= point.value);
  CHECK(copy.read().value() == std::vector<float>(64, 10.0f));
  CHECK(vulkan::timeline(Submission()).semaphore == VK_NULL_HANDLE);
}

TEST_CASE_METHOD(DeviceTest, "semaphores are waited for and signalled where there is nothing to run",
                 "[vulkan][sharing]") {
  const Device& device = shared_device();
  HostVulkan host(vulkan::handles(device));
  const VkSemaphore a = host.timeline();
  const VkSemaphore b = host.timeline();
  const VkSemaphore c = host.timeline();
  const std::uint64_t submits = device.stats().submits;

  Batch batch(device);
  const Result<Submission> nothing = submit(batch, {}, {{a, 1}});
  REQUIRE_OK(nothing.error());
  REQUIRE_OK(nothing->wait());
  CHECK(host.reaches(a, 1));
  Program program = batch.compile().value();
  const Result<Submission> empty = submit(program, {{a, 1}}, {{b, 7}});
  REQUIRE_OK(empty.error());
  REQUIRE_OK(empty->wait());
  CHECK(host.reaches(b, 7));
  CHECK(device.stats().submits == submits);  // no command buffer

  vulkan::SubmitInfo after;
  after.after = *empty;
  const vulkan::SemaphoreSignal signal{c, 2};
  after.signals = {&signal, 1};
  REQUIRE_OK(vulkan::submit(batch, after).value().wait());
  CHECK(host.reaches(c, 2));
}

TEST_CASE_METHOD(DeviceTest, "the parts of a split run wait and signal as one", "[vulkan][sharing]") {
  const Device& device = shared_device();
  const Buffer state = Buffer::from(device, std::vector<float>(64, 1.0f)).value();
  BatchOptions options;
  options.work_per_submit = 1;
  options.fuse = false;
  Batch batch(device, options);
  const Tensor x = batch.import_buffer(state);
  batch.store(batch.offset(batch.offset(batch.offset(x, 1.0f), 1.0f), 1.0f), state);
  HostVulkan host(vulkan::handles(device));
  const VkSemaphore binary = host.binary();
  const VkSemaphore go = host.timeline();
  const VkSemaphore done = host.timeline();
  {
    const auto lock = vulkan::lock_queue(device);
    REQUIRE(host.submit(VK_NULL_HANDLE, {}, {{binary, 0}}) == VK_SUCCESS);
  }
  const Result<Submission> run = submit(batch, {{go, 1}, {binary}}, {{done, 1}});
  REQUIRE_OK(run.error());
  CHECK(batch.stats().submits >= 3);
  CHECK(run->wait(std::chrono::milliseconds(5)).code == Errc::timeout);
  CHECK(host.counter(done) == 0);
  host.signal(go, 1);
  REQUIRE_OK(run->wait());
  CHECK(host.reaches(done, 1));
  CHECK(state.read().value() == std::vector<float>(64, 4.0f));
}

TEST_CASE_METHOD(DeviceTest, "semaphores that cannot be right are refused, and nothing runs", "[vulkan][sharing]") {
  const Device& device = shared_device();
  const Buffer in = Buffer::from(device, std::vector<float>(64, 5.0f)).value();
  const Buffer out = Buffer::create(device, {64}).value();
  Program program = doubling(device, in, out);
  HostVulkan host(vulkan::handles(device));
  const VkSemaphore semaphore = host.timeline(1);
  const vulkan::TimelinePoint last = [&] {
    Batch batch(device);
    batch.store(batch.fill(0.0f, {64}), out);
    return vulkan::timeline(batch.submit().value());
  }();
  CHECK(submit(program, {{VK_NULL_HANDLE, 1}}, {}).error().code == Errc::invalid_argument);
  CHECK(submit(program, {}, {{VK_NULL_HANDLE, 1}}).error().code == Errc::invalid_argument);
  CHECK(submit(program, {{semaphore, 1, VK_PIPELINE_STAGE_VERTEX_SHADER_BIT}}, {}).error().code ==
        Errc::invalid_argument);
  CHECK(submit(program, {{semaphore, 1, 0}}, {}).error().code == Errc::invalid_argument);
  CHECK(submit(program, {{last.semaphore, last.value + 1}}, {}).error().code == Errc::invalid_argument);
  CHECK(submit(program, {}, {{last.semaphore, last.value + 10}}).error().code == Errc::invalid_argument);
  vulkan::SubmitInfo null;
  null.waits = {static_cast<const vulkan::SemaphoreWait*>(nullptr), 1};
  CHECK(vulkan::submit(program, null).error().code == Errc::null_data);
  const Device other = open_device();
  Batch elsewhere(other);
  (void)elsewhere.neg(elsewhere.upload({1.0f}));
  vulkan::SubmitInfo foreign;
  foreign.after = elsewhere.submit().value();
  CHECK(vulkan::submit(program, foreign).error().code == Errc::invalid_argument);
  Batch batch(device);
  CHECK(vulkan::submit(batch, foreign).error().code == Errc::invalid_argument);
  CHECK(out.read().value() == std::vector<float>(64, 0.0f));
  // The same program is none the worse for it.
  REQUIRE_OK(
      submit(program, {{semaphore, 1, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT}, {last.semaphore, last.value}}, {}).error());
  CHECK(out.read().value() == std::vector<float>(64, 10.0f));
}

TEST_CASE_METHOD(DeviceTest, "a vkQueueSubmit that fails leaves semaphores and batch as they were",
                 "[vulkan][sharing][faults]") {
  (void)shared_device();
  const Spy spy;
  const Device device = open_device();
  const Buffer state = Buffer::from(device, std::vector<float>(64, 1.0f)).value();
  Batch batch(device);
  batch.store(batch.offset(batch.import_buffer(state), 1.0f), state);
  HostVulkan host(vulkan::handles(device));
  const VkSemaphore done = host.timeline();
  spy.fail("vkQueueSubmit", 0, VK_ERROR_OUT_OF_HOST_MEMORY);
  CHECK(submit(batch, {}, {{done, 1}}).error().code == Errc::out_of_memory);
  CHECK(host.counter(done) == 0);
  REQUIRE_OK(submit(batch, {}, {{done, 1}}).value().wait());
  CHECK(host.reaches(done, 1));
  CHECK(state.read().value() == std::vector<float>(64, 2.0f));
}

TEST_CASE_METHOD(DeviceTest, "on one queue barriers alone order the host's commands and Brontes'",
                 "[vulkan][sharing]") {
  const Device& device = shared_device();
  const Buffer in = Buffer::create(device, {256}).value();
  const Buffer out = Buffer::create(device, {256}).value();
  constexpr std::uint32_t frames = 20;
  const Buffer history = Buffer::create(device, {frames, 256}).value();
  Program program = doubling(device, in, out);
  HostVulkan host(vulkan::handles(device));
  for (std::uint32_t frame = 0; frame < frames; ++frame) {
    const VkCommandBuffer before = host.begin(VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
    host.barrier(before, work_stages, 0, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT);
    host.fill(before, vulkan::region(in), static_cast<float>(frame));
    host.barrier(before, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, work_stages, work_accesses);
    host.end(before);
    const VkCommandBuffer after = host.begin(VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
    host.barrier(after, work_stages, work_writes, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT);
    const VkBufferCopy row{0, frame * 1024, 1024};
    host.vkCmdCopyBuffer(after, vulkan::region(out).buffer, vulkan::region(history).buffer, 1, &row);
    host.end(after);
    {
      const auto lock = vulkan::lock_queue(device);
      REQUIRE(host.submit(before, {}, {}) == VK_SUCCESS);
    }
    REQUIRE_OK(program.submit().error());
    {
      const auto lock = vulkan::lock_queue(device);
      REQUIRE(host.submit(after, {}, {}) == VK_SUCCESS);
    }
  }
  {
    const auto lock = vulkan::lock_queue(device);
    REQUIRE(host.vkQueueWaitIdle(host.handles.queue) == VK_SUCCESS);
  }
  const std::vector<float> all = history.read().value();
  for (std::uint32_t frame = 0; frame < frames; ++frame) {
    CHECK(all[frame * 256] == 2.0f * static_cast<float>(frame));
    CHECK(all[frame * 256 + 255] == 2.0f * static_cast<float>(frame));
  }
}

TEST_CASE_METHOD(DeviceTest, "work that is submitted under one's own lock of the queue is an error and no hang",
                 "[vulkan][sharing]") {
  for (bool staged : {false, true}) {
    DeviceOptions options = checked_options();
    options.simulate.staged_memory = staged;
    const Device device = open_device(options);
    const Buffer in = Buffer::from(device, std::vector<float>(64, 5.0f)).value();
    Buffer out = Buffer::create(device, {64}).value();
    Program program = doubling(device, in, out);
    Batch batch(device);
    const Tensor y = batch.neg(batch.import_buffer(in));
    {
      auto lock = vulkan::lock_queue(device);
      REQUIRE(lock.owns_lock());
      CHECK(batch.execute().code == Errc::invalid_argument);
      CHECK(program.run().code == Errc::invalid_argument);
      CHECK(submit(program, {}, {}).error().code == Errc::invalid_argument);
      // Through staging a read is a submit, too.
      CHECK(out.read().error().code == (staged ? Errc::invalid_argument : Errc::ok));
      // The same thread has it already.
      CHECK_FALSE(vulkan::lock_queue(device).owns_lock());
      CHECK(program.submit().error().code == Errc::invalid_argument);
      lock.unlock();
      CHECK_FALSE(lock.owns_lock());
      REQUIRE_OK(program.run());
      lock = vulkan::lock_queue(device);
      REQUIRE(lock.owns_lock());
      CHECK(program.submit().error().code == Errc::invalid_argument);
    }
    REQUIRE_OK(batch.execute());
    CHECK(read(batch, y) == std::vector<float>(64, -5.0f));
    REQUIRE_OK(program.run());
    CHECK(out.read().value() == std::vector<float>(64, 10.0f));
  }
}

TEST_CASE_METHOD(DeviceTest, "devices on one queue share its lock", "[vulkan][sharing]") {
  Host host;
  Result<Device> first = vulkan::adopt(host.external, checked_options());
  REQUIRE_OK(first.error());
  {
    const Device second = vulkan::adopt(host.external, checked_options()).value();
    const auto lock = vulkan::lock_queue(*first);
    REQUIRE(lock.owns_lock());
    CHECK_FALSE(vulkan::lock_queue(second).owns_lock());  // this thread has it
    Batch batch(second);
    (void)batch.neg(batch.upload({1.0f}));
    CHECK(batch.execute().code == Errc::invalid_argument);
    std::atomic<bool> ran{false};
    std::thread other([&] {
      Batch mine(second);
      (void)mine.neg(mine.upload({1.0f}));
      if (!mine.execute()) ran = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    CHECK_FALSE(ran);
    const_cast<vulkan::QueueLock&>(lock).unlock();
    other.join();
    CHECK(ran);
    // Closing a Device on the queue while this thread has its lock does not hang either.
    const auto again = vulkan::lock_queue(*first);
    Result<Device> third = vulkan::adopt(host.external, checked_options());
    REQUIRE_OK(third.error());
  }
  check_device_works(*first);
  // A lock keeps what it locks, and does not wait for itself when it is the last to go.
  auto last = vulkan::lock_queue(*first);
  { const Device gone = std::move(first).value(); }
  CHECK(last.owns_lock());
}

TEST_CASE_METHOD(DeviceTest, "the host's own lock is held around every use of the queue", "[vulkan][sharing]") {
  Host host;
  std::mutex mutex;
  std::atomic<int> locked{0};
  std::atomic<int> times{0};
  host.external.lock = [&] {
    mutex.lock();
    if (++locked != 1) times = -1000;
    ++times;
  };
  CHECK(vulkan::adopt(host.external, checked_options()).error().code == Errc::invalid_argument);
  host.external.unlock = [&] {
    --locked;
    mutex.unlock();
  };
  {
    const Result<Device> device = vulkan::adopt(host.external, checked_options());
    REQUIRE_OK(device.error());
    check_device_works(*device);
    CHECK(times == 1);
    {
      const auto lock = vulkan::lock_queue(*device);
      CHECK(times == 2);
      CHECK(locked == 1);
    }
    CHECK(locked == 0);
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < 5; ++round) {
          Batch batch(*device);
          (void)batch.neg(batch.upload({1.0f}));
          if (batch.execute()) times = -1000;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(times == 17);
  }
  CHECK(locked == 0);
  CHECK(times == 18);  // the queue was idle when the Device went
}

TEST_CASE_METHOD(DeviceTest, "a queue that the driver synchronizes is not locked", "[vulkan][sharing]") {
  HostOptions options;
  options.validation = false;  // it does not know the extension
  Host host(options);
  host.external.get_instance_proc_addr = shim::get_instance_proc_addr(host.external.get_instance_proc_addr);
  std::atomic<int> locks{0};
  host.external.lock = host.external.unlock = [&] { ++locks; };
  host.external.queue_flags = 0x4;  // VK_DEVICE_QUEUE_CREATE_INTERNALLY_SYNCHRONIZED_BIT_KHR
  const Error refused = vulkan::adopt(host.external, checked_options()).error();
  CHECK(refused.code == Errc::invalid_argument);
  CHECK(refused.message.find("VK_KHR_internally_synchronized_queues") != std::string::npos);

  shim::offer_synchronized_queues(true);
  {
    const Result<Device> first = vulkan::adopt(host.external, checked_options());
    REQUIRE_OK(first.error());
    const Device second = vulkan::adopt(host.external, checked_options()).value();
    check_device_works(*first);
    {
      // Neither waits for the other, even on one thread; the same Device would refuse to.
      const auto lock = vulkan::lock_queue(*first);
      REQUIRE(lock.owns_lock());
      check_device_works(second);
    }
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        for (int round = 0; round < 20; ++round) {
          Batch batch(i % 2 == 0 ? *first : second);
          const Tensor y = batch.neg(batch.upload({static_cast<float>(round)}));
          if (batch.execute() || batch.read(y).value() != std::vector<float>{-static_cast<float>(round)}) ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
  }
  CHECK(locks == 0);
  shim::offer_synchronized_queues(false);
}

}  // namespace brontes::test
