// Where the time of a run goes: every dispatch is named and timed, and nothing else changes.
#include "fixture.hpp"
#include "on_devices.hpp"
#include "reference.hpp"
#include "spy.hpp"

#include <cmath>

namespace brontes::test {
namespace {

constexpr std::size_t rows = 33, inputs = 40, outputs = 24;

struct Layer {
  explicit Layer(const Device& device, const BatchOptions& options = {}) : batch(device, options) {
    const std::vector<float> data = cases::random_values(rows * inputs, -1, 1, 1);
    const std::vector<float> weight = cases::random_values(inputs * outputs, -1, 1, 2);
    x = batch.upload(data, {rows, inputs});
    h = batch.relu(batch.matmul(x, batch.upload(weight, {inputs, outputs})));
    y = batch.softmax(h);
  }
  Batch batch;
  Tensor x, h, y;
};

double sum_of_shares(const Profile& profile) {
  double sum = 0;
  for (const ProfileEntry& e : profile.entries) sum += e.share;
  return sum;
}

const ProfileEntry* find(const Profile& profile, const std::string& op) {
  for (const ProfileEntry& e : profile.entries) {
    if (contains(e.op, op)) return &e;
  }
  return nullptr;
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "a profile has every dispatch of a program once, and their times add up", "[profile]") {
  on_devices([](const Device& device) {
    Layer layer(device);
    auto program = layer.batch.compile();
    REQUIRE(program.has_value());
    ProfileOptions options;
    options.runs = 3;
    const auto profile = program->profile(options);
    INFO((profile ? profile->text() : profile.error().message));
    REQUIRE(profile.has_value());
    CHECK(profile->runs == 3);
    std::size_t dispatches = 0;
    double seconds = 0;
    for (const ProfileEntry& e : profile->entries) {
      CHECK(e.seconds >= 0);
      CHECK(e.bytes > 0);
      seconds += e.seconds;
      if (e.kernel.empty()) continue;
      CHECK(e.dispatch == dispatches++);
      CHECK(contains(program->dump(), "#" + std::to_string(e.dispatch) + " " + e.kernel + " "));
    }
    CHECK(dispatches == program->stats().dispatches / 3);
    CHECK(profile->entries.size() == dispatches + program->stats().copy_commands / 3);
    CHECK(std::fabs(seconds - profile->seconds) <= 1e-12 + 1e-9 * seconds);
    if (profile->seconds > 0) CHECK(std::fabs(sum_of_shares(*profile) - 1) < 1e-9);
    // All parts of the product together.
    double flops = 0;
    for (const ProfileEntry& e : profile->entries) flops += e.flops;
    CHECK(flops == 2.0 * rows * inputs * outputs);
    REQUIRE(find(*profile, "softmax") != nullptr);
    CHECK(find(*profile, "softmax")->flops == 0);
  });
}

TEST_CASE_METHOD(DeviceTest, "a profile changes no result, bit for bit, and its runs count as runs", "[profile]") {
  on_devices([](const Device& device) {
    Layer layer(device);
    auto program = layer.batch.compile();
    REQUIRE(program.has_value());
    REQUIRE_OK(program->run());
    const std::vector<float> plain = program->read(layer.y).value();
    const BatchStats before = program->stats();
    ProfileOptions options;
    options.runs = 2;
    REQUIRE(program->profile(options).has_value());
    CHECK(program->read(layer.y).value() == plain);
    CHECK(program->stats().dispatches == 3 * before.dispatches);
    CHECK(program->stats().submits == 3 * before.submits);
    CHECK(program->stats().barriers == 3 * before.barriers);
    CHECK(program->stats().allocations == before.allocations);
    REQUIRE_OK(program->run());
    CHECK(program->read(layer.y).value() == plain);
  });
}

TEST_CASE_METHOD(DeviceTest, "timestamps add no barrier, and are only written when asked for", "[profile]") {
  const Spy spy;
  const Device device = open_device();
  Layer layer(device);
  spy.reset();
  auto program = layer.batch.compile();
  REQUIRE(program.has_value());
  REQUIRE_OK(program->run());
  const std::uint64_t barriers = spy.calls("vkCmdPipelineBarrier");
  CHECK(barriers > 0);
  CHECK(spy.calls("vkCmdWriteTimestamp") == 0);
  CHECK(spy.calls("vkCreateQueryPool") == 0);

  spy.reset();
  ProfileOptions options;
  options.runs = 4;
  const auto profile = program->profile(options);
  REQUIRE(profile.has_value());
  CHECK(spy.calls("vkCmdPipelineBarrier") == barriers);
  CHECK(spy.calls("vkCmdWriteTimestamp") == profile->entries.size() + 1);
  CHECK(spy.calls("vkCreateQueryPool") == 1);
  // The pool is used again, and a run without a profile is what it was.
  REQUIRE(program->profile(options).has_value());
  CHECK(spy.calls("vkCreateQueryPool") == 1);
  spy.reset();
  REQUIRE_OK(program->run());
  CHECK(spy.calls("vkCmdWriteTimestamp") == 0);
}

TEST_CASE_METHOD(DeviceTest, "a run in several submits is profiled as a whole", "[profile]") {
  BatchOptions options;
  options.work_per_submit = 1;
  options.fuse = false;
  Layer layer(shared_device(), options);
  auto program = layer.batch.compile();
  REQUIRE(program.has_value());
  const auto profile = program->profile();
  REQUIRE(profile.has_value());
  const BatchStats stats = program->stats();
  CHECK(stats.submits / profile->runs > 1);
  std::uint64_t dispatches = 0;
  for (const ProfileEntry& e : profile->entries) dispatches += e.kernel.empty() ? 0 : 1;
  CHECK(dispatches == stats.dispatches / profile->runs);
}

TEST_CASE_METHOD(DeviceTest, "each part of a dispatch in several submits has its share of the work", "[profile]") {
  BatchOptions options;
  options.work_per_submit = 4096;
  Batch batch(shared_device(), options);
  const std::size_t count = 1 << 20;
  const Tensor y = batch.relu(batch.upload(std::vector<float>(count, 1.0f)));
  auto program = batch.compile();
  REQUIRE(program.has_value());
  const auto profile = program->profile();
  REQUIRE(profile.has_value());
  const BatchStats stats = program->stats();
  // More of them than there would be timestamps for the dispatch, its copies and its submits alone.
  CHECK(stats.submits / profile->runs > 16);
  CHECK(stats.dispatches / profile->runs > 16);
  double bytes = 0;
  std::uint64_t parts = 0;
  for (const ProfileEntry& e : profile->entries) {
    if (e.kernel.empty()) continue;
    ++parts;
    bytes += e.bytes;
  }
  CHECK(parts == stats.dispatches / profile->runs);
  CHECK(std::abs(bytes - 2.0 * count * sizeof(float)) < 1.0);
  CHECK(program->read(y).value()[count - 1] == 1.0f);
}

TEST_CASE_METHOD(DeviceTest, "a program without dispatches has a profile without entries", "[profile]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload(counting(8));
  auto program = batch.compile();
  REQUIRE(program.has_value());
  const auto profile = program->profile();
  REQUIRE(profile.has_value());
  for (const ProfileEntry& e : profile->entries) CHECK(e.kernel.empty());
  CHECK(program->read(x).value() == counting(8));
}

TEST_CASE_METHOD(DeviceTest, "stores are applied in every run of a profile", "[profile]") {
  const Buffer counter = Buffer::from(shared_device(), std::vector<float>(16, 0.0f)).value();
  Batch batch(shared_device());
  batch.store(batch.offset(batch.import_buffer(counter), 1), counter);
  auto program = batch.compile();
  REQUIRE(program.has_value());
  ProfileOptions options;
  options.runs = 7;
  REQUIRE(program->profile(options).has_value());
  std::vector<float> out(16);
  REQUIRE_OK(counter.read(out));
  CHECK(out == std::vector<float>(16, 7.0f));
}

TEST_CASE_METHOD(DeviceTest, "without timestamps a profile is a clear error, and the program still runs", "[profile]") {
  DeviceOptions options = checked_options();
  options.simulate.no_timestamps = true;
  const Device device = open_device(options);
  Layer layer(device);
  auto program = layer.batch.compile();
  REQUIRE(program.has_value());
  const auto profile = program->profile();
  REQUIRE(!profile.has_value());
  CHECK(profile.error().code == Errc::unsupported);
  CHECK(contains(profile.error().message, "timestamps"));
  CHECK(program->stats().submits == 0);
  REQUIRE_OK(program->run());
}

TEST_CASE_METHOD(DeviceTest, "a profile of no runs, and of a program that was moved from, is refused", "[profile]") {
  Layer layer(shared_device());
  auto program = layer.batch.compile();
  REQUIRE(program.has_value());
  ProfileOptions options;
  options.runs = 0;
  CHECK(program->profile(options).error().code == Errc::invalid_argument);
  const Program taken = std::move(*program);
  CHECK(program->profile().error().code == Errc::invalid_argument);
}

TEST_CASE_METHOD(DeviceTest, "a profile that fails in the driver leaves a program that runs", "[profile]") {
  const Spy spy;
  const Device device = open_device();
  for (const char* call : {"vkCreateQueryPool", "vkGetQueryPoolResults", "vkBeginCommandBuffer", "vkQueueSubmit"}) {
    Layer layer(device);
    auto program = layer.batch.compile();
    REQUIRE(program.has_value());
    spy.fail(call, 0, -1);  // VK_ERROR_OUT_OF_HOST_MEMORY
    INFO(call);
    const auto profile = program->profile();
    // A pool of before may be there.
    if (std::string(call) != "vkCreateQueryPool") CHECK(!profile.has_value());
    if (!profile) CHECK(profile.error().code == Errc::out_of_memory);
    spy.disarm();
    REQUIRE_OK(program->run());
    CHECK(program->profile().has_value());
  }
}

TEST_CASE_METHOD(DeviceTest, "the limits of a device are measured, and entries compared with them", "[profile]") {
  const auto limits = measure_limits(shared_device());
  REQUIRE(limits.has_value());
  CHECK(limits->flops_per_second > 0);
  CHECK(limits->bytes_per_second > 0);

  Layer layer(shared_device());
  auto program = layer.batch.compile();
  REQUIRE(program.has_value());
  ProfileOptions options;
  options.limits = *limits;
  const auto profile = program->profile(options);
  REQUIRE(profile.has_value());
  for (const ProfileEntry& e : profile->entries) {
    if (e.seconds > 0) CHECK(e.share_of_limit > 0);
  }
  CHECK(contains(profile->text(), "of limit"));
}

}  // namespace brontes::test
