// Device memory that runs out, and drivers that lack functions.
#include "injector.hpp"
#include "spy.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstring>
#include <string>
#include <vector>

namespace brontes::test {
namespace {

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Device open_world() {
  Result<Device> device = Device::open(world_options());
  const Errc code = device.error().code;
  if (code == Errc::no_device || code == Errc::no_driver || code == Errc::no_loader) SKIP(device.error().message);
  return std::move(device).value();
}

Shape mebibytes(std::uint64_t count) { return Shape(count * mebibyte / sizeof(float)); }

/// Buffers of so many MiB until there is no memory for another.
std::vector<Buffer> fill(const Device& device, std::uint64_t size = 16) {
  std::vector<Buffer> buffers;
  for (;;) {
    auto buffer = Buffer::create(device, mebibytes(size));
    if (!buffer) return buffers;
    buffers.push_back(std::move(*buffer));
    REQUIRE(buffers.size() < 200);
  }
}

}  // namespace

TEST_CASE("where device memory runs out, the error says what was asked for and what is left, and work goes on",
          "[pressure]") {
  const Spy spy;
  const Device device = open_world();
  const Buffer early = Buffer::create(device, mebibytes(4)).value();
  spy.limit_memory(spy.memory() + 200 * mebibyte);
  std::vector<Buffer> buffers = fill(device);
  const Error error = Buffer::create(device, mebibytes(16)).error();
  INFO(error.message);
  CHECK(error.code == Errc::out_of_memory);
  CHECK(contains(error.message, std::to_string(16 * mebibyte)));
  CHECK(contains(error.message, "bytes of device memory about"));
  CHECK(contains(error.message, std::to_string(device.stats().live_bytes)));

  Batch batch(device);
  const Tensor y = batch.neg(batch.upload({1.f, 2.f}));
  CHECK_FALSE(batch.execute());
  CHECK(batch.read(y).value() == std::vector<float>{-1.f, -2.f});
  buffers.pop_back();
  CHECK(Buffer::create(device, mebibytes(16)));
}

TEST_CASE("arenas that batches keep for later give way to allocations that need the memory", "[pressure]") {
  const Spy spy;
  const Device device = open_world();
  const std::vector<float> data(32 * mebibyte / sizeof(float), 1.0f);
  Batch batch(device);
  (void)batch.neg(batch.upload(data));
  REQUIRE_FALSE(batch.execute());
  batch.reset();
  const std::uint64_t kept = device.stats().live_bytes;
  CHECK(kept >= 32 * mebibyte);
  spy.limit_memory(spy.memory() + 64 * mebibyte);

  std::vector<Buffer> buffers = fill(device);
  CHECK(device.stats().live_bytes == buffers.size() * 16 * mebibyte);
  buffers.pop_back();
  // The batch does without.
  const Tensor y = batch.neg(batch.upload({1.f}));
  REQUIRE_FALSE(batch.execute());
  CHECK(batch.read(y).value()[0] == -1.0f);
}

TEST_CASE("the buffers of an idle MatmulCache give way to allocations that need the memory", "[pressure]") {
  const Spy spy;
  const Device device = open_world();
  MatmulCache cache(device);
  const std::vector<float> ones(1024, 1.0f);
  REQUIRE_FALSE(cache.upload_weight("w", ones, 1024, 1));
  std::vector<float> out(1024 * 16384);
  const std::vector<float> in(16384, 1.0f);
  REQUIRE_FALSE(cache.matmul("w", in, out, 16384));
  CHECK(cache.io_bytes() >= 64 * mebibyte);
  spy.limit_memory(spy.memory() + 64 * mebibyte);

  std::vector<Buffer> buffers = fill(device);
  CHECK(cache.io_bytes() == 0);
  buffers.pop_back();
  std::vector<float> row(1024);
  REQUIRE_FALSE(cache.matmul("w", Span<const float>(ones.data(), 1), row, 1));
  CHECK(row[1023] == 1.0f);
}

TEST_CASE("memory of work in flight is waited for when there is no other", "[pressure]") {
  const Spy spy;
  const Device device = open_world();
  const std::vector<float> data(32 * mebibyte / sizeof(float), 1.0f);
  spy.limit_memory(spy.memory() + 100 * mebibyte);
  for (int i = 0; i < 6; ++i) {
    Batch batch(device);
    (void)batch.gelu(batch.upload(data));
    const Result<Submission> submission = batch.submit();
    INFO(submission.error().message);
    CHECK(submission);
  }
}

TEST_CASE("in a fragmented heap the holes are used, what fits nowhere is an error, and nothing is lost for good",
          "[pressure]") {
  const Spy spy;
  const Device device = open_world();
  const std::vector<float> data(12 * mebibyte / sizeof(float), 1.0f);
  spy.limit_memory(spy.memory() + 100 * mebibyte);
  std::size_t fitted = 0;
  for (int round = 0; round < 3; ++round) {
    INFO("round " << round);
    std::vector<Buffer> buffers = fill(device, 1);
    if (round == 0) fitted = buffers.size();
    CHECK(fitted >= 90);
    CHECK(buffers.size() + 1 >= fitted);  // one place may have gone to the pools that batches share

    // Every other one goes: half of the memory is free, in holes of 1 MiB.
    std::vector<Buffer> left;
    for (std::size_t i = 0; i < buffers.size(); i += 2) left.push_back(std::move(buffers[i]));
    buffers.clear();
    const Error error = Buffer::create(device, mebibytes(24)).error();
    INFO(error.message);
    CHECK(error.code == Errc::out_of_memory);
    CHECK(contains(error.message, std::to_string(24 * mebibyte)));
    CHECK(contains(error.message, std::to_string(left.size() * mebibyte) + " are in buffers of this Device"));

    Batch batch(device);
    const Tensor y = batch.neg(batch.upload(data));
    CHECK(batch.execute().code == Errc::out_of_memory);
    Batch small(device);
    const Tensor z = small.neg(small.upload({1.f}));
    CHECK_FALSE(small.execute());
    CHECK(small.read(z).value()[0] == -1.0f);
    // Those that went have room again, but for what the small batch took.
    std::vector<Buffer> again;
    for (std::size_t i = 0; i + 3 < left.size(); ++i) {
      auto buffer = Buffer::create(device, mebibytes(1));
      INFO("hole " << i << ": " << buffer.error().message);
      REQUIRE(buffer);
      again.push_back(std::move(*buffer));
    }
    again.clear();
    left.clear();
    CHECK_FALSE(batch.execute());
    CHECK(batch.read(y).value().back() == -1.0f);
  }
}

TEST_CASE("a compiled program runs where no memory is left, and what needs some works once there is", "[pressure]") {
  const Spy spy;
  for (const bool staged : {false, true}) {
    INFO((staged ? "staged" : "mapped") << " memory");
    DeviceOptions options = world_options();
    options.simulate.staged_memory = staged;
    const Result<Device> opened = Device::open(options);
    if (!opened) SKIP(opened.error().message);
    const Device& device = *opened;
    Batch batch(device);
    const Tensor x = batch.upload(std::vector<float>(1000, 1.0f));
    const Tensor y = batch.neg(x);
    Program program = batch.compile().value();

    // Other programs took all of it.
    spy.limit_memory(1);
    const std::vector<Buffer> holes = fill(device, 1);  // of blocks that the Device has
    for (int run = 0; run < 3; ++run) {
      CHECK_FALSE(program.write(x, std::vector<float>(1000, static_cast<float>(run))));
      CHECK_FALSE(program.run());
      CHECK(program.read(y).value()[999] == static_cast<float>(-run));
    }
    const std::vector<float> more(mebibyte, 1.0f);
    Batch other(device);
    const Tensor z = other.scale(other.upload(more), 3.0f);
    CHECK(other.execute().code == Errc::out_of_memory);
    CHECK(other.execute().code == Errc::out_of_memory);
    spy.limit_memory(0);
    CHECK_FALSE(other.execute());
    CHECK(other.read(z).value().back() == 3.0f);
  }
}

TEST_CASE("a driver that lacks a function is refused or does without it, and nothing leaks", "[missing]") {
  const Spy spy;
  (void)open_world();
  std::size_t refused = 0;
  for (std::uint32_t i = 0; spy.function(i) != nullptr; ++i) {
    const char* name = spy.function(i);
    // Without these nobody can destroy a device or an instance.
    if (std::strcmp(name, "vkDestroyDevice") == 0 || std::strcmp(name, "vkDestroyInstance") == 0) continue;
    INFO(name);
    spy.hide(name);
    {
      const Result<Device> device = Device::open(world_options());
      if (device) {
        Batch batch(*device);
        const Tensor y = batch.neg(batch.upload({1.f}));
        CHECK_FALSE(batch.execute());
        CHECK(batch.read(y).value()[0] == -1.0f);
      } else {
        ++refused;
        CHECK((device.error().code == Errc::unsupported || device.error().code == Errc::no_loader));
        CHECK((contains(device.error().message, name) || device.error().code == Errc::no_loader));
      }
    }
    spy.hide(nullptr);
    CHECK(spy.alive() == "");
  }
  CHECK(refused > 20);
}

}  // namespace brontes::test
