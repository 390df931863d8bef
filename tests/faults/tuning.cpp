// Failures while tune_matmul() compares access modes. That takes too long to fail every call of it.
#include "injector.hpp"
#include "spy.hpp"

#include <catch2/catch_test_macros.hpp>

namespace brontes::test {
namespace {

constexpr std::int32_t out_of_device_memory = -2;

struct Failure {
  const char* where;
  const char* function;
  std::uint64_t skip;
  SpyMode mode;
};

}  // namespace

TEST_CASE("what fails while access modes are compared is reported, and tuning works afterwards", "[faults][tuning]") {
  const Spy spy;
  DeviceOptions options = world_options();
  options.tuning.enabled = true;
  options.tuning.path = "/nowhere/tuning";  // never saved
  TuneOptions tune;
  tune.shapes = {{1, 32, 32, Layout::nk}};
  tune.seconds = 0.02;
  tune.save = false;
  {
    Result<Device> device = Device::open(options);
    const Errc code = device.error().code;
    if (code == Errc::no_device || code == Errc::no_driver || code == Errc::no_loader) SKIP(device.error().message);
    REQUIRE(device);
    // There are up to four modes, each with four programs that run twice before they are measured.
    for (const Failure& failure : {Failure{"the operands", "vkCreateBuffer", 0, spy_from_then_on},
                                   Failure{"a program", "vkCreateDescriptorPool", 0, spy_once},
                                   Failure{"its first run", "vkQueueSubmit", 0, spy_once},
                                   Failure{"measuring", "vkQueueSubmit", 4 * 4 * 2, spy_once}}) {
      INFO(failure.where);
      spy.fail(failure.function, failure.skip, out_of_device_memory, failure.mode);
      const Error error = tune_matmul(*device, tune).error();
      const char* failed = spy.failed();
      spy.reset();
      INFO(error.message);
      CHECK(failed != nullptr);
      CHECK(error.code == Errc::out_of_memory);
    }
    CHECK_FALSE(tune_matmul(*device, tune).error());
    Batch batch(*device);
    const Tensor y = batch.neg(batch.upload({1.f}));
    CHECK_FALSE(batch.execute());
    CHECK(batch.read(y).value()[0] == -1.0f);
  }
  CHECK(spy.alive() == "");
}

}  // namespace brontes::test
