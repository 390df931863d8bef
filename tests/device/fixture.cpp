#include "fixture.hpp"

#include <cstdlib>
#include <mutex>
#include <numeric>
#include <optional>

namespace brontes::test {
namespace {

struct Recorder {
  std::mutex mutex;
  std::vector<std::string> messages;
};

Recorder& recorder() {
  static Recorder instance;
  return instance;
}

std::optional<Device>& shared() {
  static std::optional<Device> device;
  return device;
}

bool environment_is(const char* name, const char* value) {
  const char* text = std::getenv(name);
  return text != nullptr && std::string(text) == value;
}

}  // namespace

std::vector<std::string> take_messages() {
  Recorder& r = recorder();
  const std::lock_guard lock(r.mutex);
  return std::exchange(r.messages, {});
}

DeviceOptions checked_options() {
  DeviceOptions options;
  options.validation = environment_is("BRONTES_VALIDATION", "0") ? Toggle::off : Toggle::on;
  options.pipeline_cache.enabled = false;
  options.tuning.enabled = false;
  options.on_message = [](Severity severity, const std::string& text) {
    if (severity == Severity::info || text.rfind("brontes: ", 0) == 0) return;  // the library's own
    Recorder& r = recorder();
    const std::lock_guard lock(r.mutex);
    r.messages.push_back(text);
  };
  return options;
}

Device open_device(const DeviceOptions& options) {
  Result<Device> device = Device::open(options);
  const Error error = device.error();
  if (error.code == Errc::no_loader || error.code == Errc::no_driver || error.code == Errc::no_device) {
    SKIP(error.message);
  }
  INFO(error.message);
  REQUIRE(error.code == Errc::ok);
  return std::move(device).value();
}

const Device& shared_device() {
  if (!shared()) {
    DeviceOptions options = checked_options();
    // Which programs other tests have used up must not matter.
    options.max_fused_programs = 100'000;
    shared().emplace(open_device(options));
  }
  return *shared();
}

void close_shared_device() { shared().reset(); }

bool soak() { return environment_is("BRONTES_SOAK", "1"); }

DeviceTest::~DeviceTest() noexcept(false) {
  for (const std::string& message : take_messages()) FAIL_CHECK("validation: " << message);
}

std::vector<float> run(Batch& batch, Tensor x) {
  REQUIRE_OK(batch.execute());
  return read(batch, x);
}

std::vector<float> read(const Batch& batch, Tensor x) {
  Result<std::vector<float>> values = batch.read(x);
  REQUIRE_OK(values.error());
  return std::move(values).value();
}

void check_device_works(const Device& device) {
  // One pipeline: some drivers take long to compile one, and many tests call this on a device of their own.
  Batch batch(device);
  const Tensor out = batch.neg(batch.keep(batch.neg(batch.upload({1.f, 2.f, -3.f, 4.f}))));
  CHECK(run(batch, out) == std::vector<float>{1.f, 2.f, -3.f, 4.f});
}

std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace brontes::test
