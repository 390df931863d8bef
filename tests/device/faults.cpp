// Failing Vulkan calls, and calls counted where they are made: Brontes runs on the spy. tests/faults fails them all.
#include "fixture.hpp"
#include "spy.hpp"

#include <set>
#include <string>

namespace brontes::test {
namespace {

constexpr std::int32_t out_of_host_memory = -1;
constexpr std::int32_t out_of_device_memory = -2;
constexpr std::int32_t initialization_failed = -3;
constexpr std::int32_t device_lost = -4;
constexpr std::int32_t unknown = -13;

// Functions whose failure need not be reported, because there is another way: memory kept for later is released and
// the allocation tried again, memory whose last use is unknown is set aside, names are for debugging, extensions are
// optional, and a wait is repeated.
bool has_another_way(const std::string& function) {
  for (const char* name :
       {"vkAllocateMemory", "vkBindBufferMemory", "vkBindBufferMemory2", "vkCreateBuffer", "vkMapMemory",
        "vkGetSemaphoreCounterValue", "vkSetDebugUtilsObjectNameEXT", "vkEnumerateDeviceExtensionProperties",
        "vkEnumerateInstanceExtensionProperties", "vkQueueWaitIdle"}) {
    if (function == name) return true;
  }
  return false;
}

DeviceOptions staged_options(bool staged) {
  DeviceOptions options = checked_options();
  options.simulate.staged_memory = staged;
  return options;
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "the counts of stats() are the Vulkan calls that were made", "[faults]") {
  (void)shared_device();  // skips where there is none
  const Spy spy;
  for (bool staged : {false, true}) {
    INFO((staged ? "staged" : "mapped") << " memory");
    const Device device = open_device(staged_options(staged));
    spy.reset();
    Batch batch(device);
    const Tensor x = batch.upload(counting(1000));
    const Tensor y = batch.keep(batch.add(batch.scale(batch.relu(x), 2.f), batch.upload({0.5f})));
    (void)batch.sum(y);
    (void)batch.matmul(x, x, 1, 1000, 1);
    REQUIRE_OK(batch.execute());
    const BatchStats stats = batch.stats();
    CHECK(spy.calls("vkQueueSubmit") + spy.calls("vkQueueSubmit2") == 1);
    CHECK(stats.submits == 1);
    CHECK(spy.calls("vkCmdDispatch") == stats.dispatches);
    CHECK(spy.calls("vkCmdPipelineBarrier") == stats.barriers + stats.boundary_barriers);
    CHECK(spy.calls("vkCmdCopyBuffer") == stats.copy_commands);
    CHECK(spy.calls("vkCreateComputePipelines") == stats.pipelines_created);
    CHECK(stats.pipelines_created == device.stats().pipelines_created);
    (void)read(batch, y);
    REQUIRE_OK(batch.execute());
    CHECK(spy.calls("vkQueueSubmit") + spy.calls("vkQueueSubmit2") == 1);
    CHECK(device.stats().submits == 1);
  }
}

TEST_CASE_METHOD(DeviceTest, "a warm batch of the same shape creates no pipelines", "[faults]") {
  (void)shared_device();  // skips where there is none
  const Spy spy;
  const Device device = open_device();
  for (int round = 0; round < 3; ++round) {
    Batch batch(device);
    (void)batch.neg(batch.relu(batch.upload(counting(100))));
    REQUIRE_OK(batch.execute());
  }
  CHECK(spy.calls("vkCreateComputePipelines") == 1);  // neg and relu share one
  CHECK(spy.calls("vkQueueSubmit") + spy.calls("vkQueueSubmit2") == 3);
}

TEST_CASE_METHOD(DeviceTest, "whichever Vulkan call of an execute fails, the error is reported and a retry succeeds",
                 "[faults]") {
  (void)shared_device();  // skips where there is none
  const Spy spy;
  // Which calls an execute makes depends on what the device did before, so each failure has a device of its own. In
  // mapped memory it is a new one, which has to make pools and layouts; in staged memory one that has them.
  for (bool staged : {false, true}) {
    std::set<std::string> all_failed;
    bool finished = false;
    for (std::uint64_t call = 0; call < 200 && !finished; ++call) {
      const Device device = open_device(staged_options(staged));
      if (staged) check_device_works(device);
      Batch batch(device);
      const Tensor y = batch.neg(batch.upload(counting(300)));
      spy.fail(nullptr, call, out_of_device_memory);
      const Error error = batch.execute();
      const char* failed = spy.failed();
      spy.reset();
      finished = failed == nullptr;
      if (!finished) all_failed.insert(failed);
      INFO((staged ? "staged" : "mapped") << " memory, call " << call << ": " << (finished ? "none" : failed));
      INFO(error.message);
      if (finished) {
        CHECK(error.code == Errc::ok);
      } else if (error.code == Errc::ok) {
        CHECK(has_another_way(failed));
      } else {
        CHECK(error.code == Errc::out_of_memory);
        CHECK(error.vk_result == out_of_device_memory);
        CHECK_FALSE(error.message.empty());
        if (std::string(failed) == "vkWaitSemaphores") {
          // The work is under way: a read waits for it again.
          CHECK(batch.stats().submits == 1);
          CHECK(read(batch, y)[299] == -299.0f);
        } else {
          CHECK(batch.stats().submits == 0);
          CHECK(batch.read(y).error().code == Errc::not_executed);
        }
      }
      REQUIRE_OK(batch.execute());
      CHECK(read(batch, y)[299] == -299.0f);
      for (const std::string& message : take_messages()) FAIL_CHECK("validation: " << message);
    }
    CHECK(finished);
    for (const char* name : {"vkCreateBuffer", "vkBeginCommandBuffer", "vkEndCommandBuffer", "vkQueueSubmit",
                             staged ? "vkGetSemaphoreCounterValue" : "vkWaitSemaphores"}) {
      INFO(name);
      CHECK(all_failed.count(name) == 1);
    }
  }
}

TEST_CASE_METHOD(DeviceTest,
                 "whichever Vulkan call of Device::open fails, the error is reported and the next open works",
                 "[faults]") {
  (void)shared_device();  // skips where there is none
  const Spy spy;
  bool finished = false;
  for (std::uint64_t call = 0; call < 100 && !finished; ++call) {
    spy.fail(nullptr, call, initialization_failed);
    const Error error = Device::open(checked_options()).error();
    const char* failed = spy.failed();
    spy.reset();
    finished = failed == nullptr;
    INFO("call " << call << ": " << (finished ? "none" : failed));
    INFO(error.message);
    if (finished) {
      CHECK(error.code == Errc::ok);
    } else if (error.code == Errc::ok) {
      CHECK(has_another_way(failed));
    } else {
      CHECK_FALSE(error.message.empty());
    }
    for (const std::string& message : take_messages()) FAIL_CHECK("validation: " << message);
  }
  CHECK(finished);
  check_device_works(open_device());
}

TEST_CASE_METHOD(DeviceTest, "whichever Vulkan call of a Buffer fails, the error is reported and a retry succeeds",
                 "[faults]") {
  (void)shared_device();  // skips where there is none
  const Spy spy;
  for (bool staged : {false, true}) {
    bool finished = false;
    const Device device = open_device(staged_options(staged));
    for (std::uint64_t call = 0; call < 100 && !finished; ++call) {
      spy.fail(nullptr, call, out_of_host_memory);
      Error error;
      {
        const Result<Buffer> buffer = Buffer::from(device, counting(100));
        error = buffer.error();
        if (!error) error = buffer->read().error();
      }
      const char* failed = spy.failed();
      spy.reset();
      finished = failed == nullptr;
      INFO((staged ? "staged" : "mapped") << " memory, call " << call << ": " << (finished ? "none" : failed));
      if (error) CHECK(error.code == Errc::out_of_memory);
      if (finished) CHECK_FALSE(error);
      const Buffer retry = Buffer::from(device, counting(100)).value();
      CHECK(retry.read().value() == counting(100));
      for (const std::string& message : take_messages()) FAIL_CHECK("validation: " << message);
    }
    CHECK(finished);
  }
}

TEST_CASE_METHOD(DeviceTest, "whichever Vulkan call of a MatmulCache fails, its weights stay and a retry succeeds",
                 "[faults][matmul_cache]") {
  (void)shared_device();  // skips where there is none
  const Spy spy;
  const std::vector<float> w{1, 2, 3, 4};
  const std::vector<float> ones(200, 1.0f);
  for (bool staged : {false, true}) {
    const Device device = open_device(staged_options(staged));
    bool finished = false;
    for (std::uint64_t call = 0; call < 200 && !finished; ++call) {
      MatmulCache cache(device);
      REQUIRE_OK(cache.upload_weight("w", w, 2, 2));
      std::vector<float> y(2);
      REQUIRE_OK(cache.matmul("w", Span<const float>(ones.data(), 2), y, 1));

      // A weight comes, another is replaced, and the buffers grow.
      std::vector<float> many(200);
      const auto work = [&]() -> Error {
        if (Error e = cache.contains("v") ? Error() : cache.upload_weight("v", w, 1, 4, DType::f16)) return e;
        if (Error e = cache.replace_weight("v", w, 2, 2, DType::f32, std::vector<float>{10, 20})) return e;
        return cache.matmul("v", ones, many, 100);
      };
      spy.fail(nullptr, call, out_of_device_memory);
      const Error error = work();
      const char* failed = spy.failed();
      spy.reset();
      finished = failed == nullptr;
      INFO((staged ? "staged" : "mapped") << " memory, call " << call << ": " << (finished ? "none" : failed));
      INFO(error.message);
      if (error) {
        CHECK_FALSE(finished);
        CHECK(error.code == Errc::out_of_memory);
        CHECK(contains(error.message, "'v'"));
      }
      REQUIRE(cache.contains("w"));
      REQUIRE_OK(cache.matmul("w", Span<const float>(ones.data(), 2), y, 1));
      CHECK(y == std::vector<float>{3, 7});
      REQUIRE_OK(work());
      CHECK(many[198] == 13.0f);
      CHECK(many[199] == 27.0f);
      for (const std::string& message : take_messages()) FAIL_CHECK("validation: " << message);
    }
    CHECK(finished);
  }
}

TEST_CASE_METHOD(DeviceTest, "a lost device is reported as device_lost", "[faults]") {
  (void)shared_device();  // skips where there is none
  const Spy spy;
  for (const char* function : {"vkQueueSubmit", "vkWaitSemaphores"}) {
    INFO(function);
    const Device device = open_device();
    Batch batch(device);
    const Tensor y = batch.neg(batch.upload({1.f}));
    spy.fail(function, 0, device_lost);
    const Error error = batch.execute();
    CHECK(error.code == Errc::device_lost);
    CHECK(error.vk_result == device_lost);
    CHECK(contains(error.message, function));
    // As far as the batch knows, what was submitted may still arrive: the wait is repeated.
    if (std::string(function) == "vkWaitSemaphores") spy.fail(function, 0, device_lost);
    const Errc unread = std::string(function) == "vkQueueSubmit" ? Errc::not_executed : Errc::device_lost;
    CHECK(batch.read(y).error().code == unread);
  }
}

TEST_CASE_METHOD(DeviceTest, "a Vulkan error without a code of its own keeps its VkResult", "[faults]") {
  (void)shared_device();  // skips where there is none
  const Spy spy;
  const Device device = open_device();
  Batch batch(device);
  const Tensor y = batch.neg(batch.upload({1.f}));
  spy.fail("vkCreateComputePipelines", 0, unknown);
  const Error error = batch.execute();
  CHECK(error.code == Errc::vulkan);
  CHECK(error.vk_result == unknown);
  CHECK(contains(error.message, "vkCreateComputePipelines"));
  // A pipeline that could not be made is tried again.
  CHECK(run(batch, y) == std::vector<float>{-1});
  CHECK(device.stats().pipelines_created == 1);
}

TEST_CASE_METHOD(DeviceTest, "a device below Vulkan 1.2 is listed as unsuitable and not opened", "[faults]") {
  (void)shared_device();  // skips where there is none
  const Spy spy;
  spy.version(1u << 22 | 1u << 12);
  const std::vector<DeviceInfo> devices = Device::list().value();
  REQUIRE_FALSE(devices.empty());
  CHECK_FALSE(devices[0].suitable);
  CHECK(contains(devices[0].unsuitable_because, "1.1"));
  const Error error = Device::open(checked_options()).error();
  CHECK(error.code == Errc::no_device);
  CHECK(contains(error.message, devices[0].name));
  CHECK(contains(error.message, "1.2"));
}

}  // namespace brontes::test
