// A lost device: a state in which every call says so, nothing hangs, and everything can go.
#include "everything.hpp"
#include "spy.hpp"

#include <atomic>
#include <chrono>
#include <thread>

namespace brontes::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::int32_t device_lost = -4;
// "At once", on a machine that does other things too, under a sanitizer.
constexpr auto at_once = 10s;

DeviceOptions staged_options(bool staged) {
  DeviceOptions options = checked_options();
  options.simulate.staged_memory = staged;
  return options;
}

/// What notices first that the device is gone.
const char* const discoverers[] = {"vkQueueSubmit", "vkWaitSemaphores", "vkGetSemaphoreCounterValue"};

// The calls that find out. Work may be in flight when they return.
Error lose(const Spy& spy, Everything& all, const std::string& discoverer) {
  if (discoverer == "vkQueueSubmit") {
    spy.fail("vkQueueSubmit", 0, device_lost, spy_lost);
    return all.program->run();
  }
  if (discoverer == "vkWaitSemaphores") {
    spy.fail("vkWaitSemaphores", 0, device_lost, spy_lost);
    return all.program->run();
  }
  spy.fail("vkGetSemaphoreCounterValue", 0, device_lost, spy_lost);
  const Submission submission = all.program->submit().value();
  CHECK(submission.ready());
  return submission.wait();
}

void check_lost(Everything& all) {
  const auto start = Clock::now();
  for (const Everything::Answer& answer : all.call_all()) {
    INFO(answer.call << ": " << answer.error.message);
    CHECK(answer.error.code == Errc::device_lost);
    CHECK(contains(answer.error.message, "lost"));
    CHECK(contains(answer.error.message, "open a new Device"));
  }
  CHECK(Clock::now() - start < at_once);
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "once the device is lost, every call says so at once and none reaches the driver",
                 "[lost]") {
  (void)shared_device();  // skips where there is none
  const Spy spy;
  for (const bool staged : {false, true}) {
    for (const char* discoverer : discoverers) {
      INFO(discoverer << ", " << (staged ? "staged" : "mapped") << " memory");
      int said = 0;
      {
        DeviceOptions options = staged_options(staged);
        options.on_message = [&said, recorded = options.on_message](Severity severity, const std::string& text) {
          if (severity == Severity::error && text.find("the device is lost") != std::string::npos) ++said;
          recorded(severity, text);
        };
        Everything all(options);
        const Error error = lose(spy, all, discoverer);
        INFO(error.message);
        CHECK(error.code == Errc::device_lost);
        CHECK(error.vk_result == device_lost);
        REQUIRE(spy.failed() != nullptr);
        CHECK(spy.failed() == std::string(discoverer));

        std::uint64_t before = spy.fallible_calls();
        check_lost(all);
        CHECK(spy.fallible_calls() == before);
        // Nor does it come back, should the driver change its mind.
        spy.disarm();
        before = spy.fallible_calls();
        check_lost(all);
        CHECK(spy.fallible_calls() == before);
        CHECK(all.record() == "");
        CHECK(all.pending->num_operations() == 1);
      }
      CHECK(said == 1);
      CHECK(spy.alive() == "");
      check_device_works(open_device());
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "what a lost device leaves behind can be destroyed in any order, with work in flight",
                 "[lost]") {
  (void)shared_device();  // skips where there is none
  const Spy spy;
  // Each part goes first once and last once; the steps have no common divisor with their number.
  for (unsigned order = 0; order < Everything::parts; ++order) {
    const unsigned step = order % 2 == 0 ? 1 : Everything::parts - 1;
    const char* discoverer = discoverers[order % 3];
    INFO(discoverer << ", part " << order << " first, step " << step);
    {
      Everything all(staged_options(order % 4 < 2));
      for (int i = 0; i < 3; ++i) REQUIRE_OK(all.program->submit().error());
      CHECK(lose(spy, all, discoverer).code == Errc::device_lost);
      const auto start = Clock::now();
      for (unsigned i = 0; i < Everything::parts; ++i) all.destroy((order + i * step) % Everything::parts);
      CHECK(Clock::now() - start < at_once);
    }
    CHECK(spy.alive() == "");
    for (const std::string& message : take_messages()) FAIL_CHECK("validation: " << message);
  }
  check_device_works(open_device());
}

TEST_CASE_METHOD(DeviceTest, "a new device works beside the lost one and after it", "[lost]") {
  (void)shared_device();  // skips where there is none
  const Spy spy;
  for (const char* discoverer : discoverers) {
    INFO(discoverer);
    Everything all(checked_options());
    CHECK(lose(spy, all, discoverer).code == Errc::device_lost);
    spy.disarm();
    const Device next = open_device();
    check_device_works(next);
    check_lost(all);
    Batch stranger(next);
    (void)stranger.neg(stranger.import_buffer(*all.buffer));
    CHECK(stranger.execute().code == Errc::invalid_argument);
    for (unsigned part = 0; part < Everything::parts; ++part) all.destroy(part);
    check_device_works(next);
  }
}

TEST_CASE_METHOD(DeviceTest, "threads at work when the device is lost all hear of it", "[lost]") {
  (void)shared_device();  // skips where there is none
  const Spy spy;
  for (const char* discoverer : {"vkQueueSubmit", "vkWaitSemaphores"}) {
    INFO(discoverer);
    constexpr std::size_t count = 4;
    Error errors[count];
    {
      const Device device = open_device();
      MatmulCache cache(device);
      REQUIRE_OK(cache.upload_weight("w", counting(4 * 8), 4, 8));
      spy.fail(discoverer, 60, device_lost, spy_lost);
      std::vector<std::thread> threads;
      for (std::size_t id = 0; id < count; ++id) {
        threads.emplace_back([&, id] {
          const auto start = Clock::now();
          const std::vector<float> x = counting(8);
          std::vector<float> y(8);
          while (!errors[id] && Clock::now() - start < 60s) {
            switch (id) {
              case 0: errors[id] = cache.matmul("w", x, Span<float>(y.data(), 4), 1); break;
              case 1: errors[id] = ops::neg(device, x, y); break;
              case 2: {
                Batch batch(device);
                (void)batch.relu(batch.upload(x));
                const Result<Submission> submission = batch.submit();
                errors[id] = submission.error();
                if (errors[id]) break;
                while (!submission->ready()) std::this_thread::yield();
                errors[id] = submission->wait();
                break;
              }
              default: {
                const Result<Buffer> buffer = Buffer::from(device, x);
                errors[id] = buffer ? buffer->read(y) : buffer.error();
                break;
              }
            }
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      spy.disarm();
    }
    for (std::size_t id = 0; id < count; ++id) {
      INFO("thread " << id << ": " << errors[id].message);
      CHECK(errors[id].code == Errc::device_lost);
    }
    CHECK(spy.alive() == "");
    check_device_works(open_device());
  }
}

}  // namespace brontes::test
