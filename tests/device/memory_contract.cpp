// How much device memory is taken: predicted, capped and told.
#include "fixture.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace brontes::test {
namespace {

constexpr std::uint64_t kibibyte = 1024;

Device open_capped(std::uint64_t cap, bool staged = false) {
  DeviceOptions options = checked_options();
  options.memory_cap = cap;
  options.simulate.staged_memory = staged;
  return open_device(options);
}

Shape kibibytes(std::uint64_t count) { return Shape(count * kibibyte / sizeof(float)); }

struct Recording {
  const char* name;
  std::function<void(Batch&)> record;
};

std::vector<Recording> recordings() {
  return {
      {"nothing", [](Batch&) {}},
      {"only an upload", [](Batch& b) { (void)b.upload(counting(10)); }},
      {"a chain", [](Batch& b) { (void)b.add(b.relu(b.upload(counting(1000))), b.upload(counting(1000))); }},
      {"a value kept", [](Batch& b) { (void)b.sum(b.keep(b.gelu(b.upload(counting(777))))); }},
      {"a layer",
       [](Batch& b) {
         const Tensor x = b.upload(counting(64 * 50), {64, 50});
         const Tensor y = b.softmax(b.linear(x, b.upload(counting(33 * 50), {33, 50})));
         (void)b.matmul(b.transpose(y), y);
       }},
      {"many temporaries",
       [](Batch& b) {
         Tensor x = b.upload(counting(300), {300});
         for (int i = 0; i < 10; ++i) x = b.div(x, b.reshape(b.sum(x), {1}));
       }},
  };
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "the memory predicted for a batch is the memory that compiling it allocates", "[memory]") {
  for (bool staged : {false, true}) {
    for (AccessMode access : {AccessMode::automatic, AccessMode::pointer}) {
      DeviceOptions options = checked_options();
      options.access = access;
      options.simulate.staged_memory = staged;
      Result<Device> device = Device::open(options);
      if (!device && access == AccessMode::pointer && device.error().code == Errc::unsupported) continue;
      (void)shared_device();
      REQUIRE_OK(device.error());
      for (const Recording& r : recordings()) {
        INFO(r.name << (staged ? ", staged" : ", mapped") << ", " << to_string(device->info().access));
        Batch batch(*device);
        r.record(batch);
        const DeviceMemory idle = device->memory();
        const auto predicted = batch.predict_memory();
        REQUIRE_OK(predicted.error());
        CHECK(device->memory().used_bytes == idle.used_bytes);

        const DeviceStats before = device->stats();
        const Program program = batch.compile().value();
        const DeviceStats after = device->stats();
        CHECK(after.live_bytes - before.live_bytes == predicted->bytes());
        CHECK(after.live_buffers - before.live_buffers == predicted->buffers);
        CHECK(program.memory().bytes() == predicted->bytes());
        CHECK(program.stats().arena_bytes == predicted->device_bytes);
        if (device->info().mapped_memory) CHECK(predicted->bytes() == predicted->device_bytes);
        const std::uint64_t tables = device->memory().used_bytes - idle.used_bytes - predicted->bytes();
        CHECK(tables <= predicted->table_bytes);
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "a batch that cannot be planned has no predicted memory", "[memory]") {
  Batch batch(shared_device());
  (void)batch.add(batch.upload({1.f, 2.f}), batch.upload({1.f, 2.f, 3.f}));
  CHECK(batch.predict_memory().error().code == Errc::shape_mismatch);
}

TEST_CASE_METHOD(DeviceTest, "a Device takes no more than its cap, and says what was asked, used and allowed",
                 "[memory]") {
  for (bool staged : {false, true}) {
    const Device device = open_capped(1024 * kibibyte, staged);
    CHECK(device.memory().cap_bytes == 1024 * kibibyte);
    std::vector<Buffer> buffers;
    for (int i = 0; i < 4; ++i) buffers.push_back(Buffer::create(device, kibibytes(250)).value());
    const std::uint64_t used = device.memory().used_bytes;
    CHECK(used == 1000 * kibibyte);
    const Error error = Buffer::create(device, kibibytes(50)).error();
    INFO(error.message);
    CHECK(error.code == Errc::out_of_memory);
    CHECK(contains(error.message, "51200 bytes asked for"));
    CHECK(contains(error.message, "1024000 of the 1048576 allowed"));
    CHECK(contains(error.message, "memory_cap"));
    CHECK(device.memory().used_bytes == used);
    // To the byte.
    CHECK(Buffer::create(device, Shape(24 * kibibyte / 4 + 1)).error().code == Errc::out_of_memory);
    CHECK(Buffer::create(device, kibibytes(24)));
    buffers.pop_back();
    check_device_works(device);
    CHECK(Buffer::create(device, kibibytes(50)));
  }
}

TEST_CASE_METHOD(DeviceTest, "a batch fits under the cap if and only if the prediction does", "[memory]") {
  for (bool staged : {false, true}) {
    MemoryNeeds needs;
    auto record = [](Batch& batch) { return batch.softmax(batch.upload(counting(100 * 100), {100, 100})); };
    {
      const Device device = open_capped(0, staged);
      Batch batch(device);
      (void)record(batch);
      needs = batch.predict_memory().value();
    }
    if (needs.table_bytes != 0) SKIP("tables of addresses count, too, and may be shared");
    for (std::uint64_t cap : {needs.bytes() - 1, needs.bytes()}) {
      INFO("a cap of " << cap);
      const Device device = open_capped(cap, staged);
      Batch batch(device);
      const Tensor y = record(batch);
      CHECK(batch.predict_memory().value().bytes() == needs.bytes());
      const Error compiled = batch.compile().error();
      const Error executed = batch.execute();
      CHECK(compiled.code == (cap < needs.bytes() ? Errc::out_of_memory : Errc::ok));
      CHECK(executed.code == compiled.code);
      if (executed) CHECK(device.memory().used_bytes == 0);
      if (!executed) CHECK(read(batch, y).size() == 100 * 100);
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "memory that is kept for later is given back before the cap is an error", "[memory]") {
  const Device device = open_capped(1024 * kibibyte);
  Batch batch(device);
  (void)batch.neg(batch.upload(std::vector<float>(100 * kibibyte / 4, 1.0f)));
  REQUIRE_OK(batch.execute());
  batch.reset();
  CHECK(device.memory().used_bytes >= 200 * kibibyte);  // the arena, for the next execute()
  const auto large = Buffer::create(device, kibibytes(1000));
  REQUIRE_OK(large.error());
  CHECK(device.memory().used_bytes == 1000 * kibibyte);
  const Tensor y = batch.neg(batch.upload({1.f}));
  CHECK(run(batch, y) == std::vector<float>{-1.f});
}

TEST_CASE_METHOD(DeviceTest, "the memory of work in flight is waited for before the cap is an error", "[memory]") {
  const Device device = open_capped(1024 * kibibyte);
  for (int i = 0; i < 20; ++i) {
    Batch batch(device);
    (void)batch.gelu(batch.upload(std::vector<float>(200 * kibibyte / 4, 1.0f)));
    REQUIRE_OK(batch.submit().error());
  }
}

TEST_CASE_METHOD(DeviceTest, "threads together stay under the cap", "[memory][threads]") {
  const Device device = open_capped(512 * kibibyte);
  std::atomic<std::uint64_t> most{0};
  std::atomic<int> other_errors{0};
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      std::vector<Buffer> mine;
      for (int i = 0; i < 60; ++i) {
        auto made = Buffer::create(device, kibibytes(40));
        const std::uint64_t used = device.memory().used_bytes;
        std::uint64_t seen = most;
        while (seen < used && !most.compare_exchange_weak(seen, used)) {
        }
        if (made) {
          mine.push_back(std::move(*made));
        } else {
          ++(made.error().code == Errc::out_of_memory ? refused : other_errors);
          mine.clear();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(other_errors == 0);
  CHECK(refused > 0);
  CHECK(most <= 512 * kibibyte);
  CHECK(device.memory().used_bytes == 0);
  CHECK(device.memory().buffers == 0);
}

TEST_CASE_METHOD(DeviceTest, "a Device tells what memory it has from the driver", "[memory]") {
  const Device device = open_device();
  const DeviceMemory fresh = device.memory();
  CHECK(fresh.cap_bytes == 0);
  CHECK(fresh.used_bytes == 0);
  CHECK(fresh.heap_bytes > 0);
  const Buffer small = Buffer::create(device, {5}).value();
  const Buffer large = Buffer::create(device, kibibytes(3000)).value();
  const DeviceMemory now = device.memory();
  CHECK(now.buffers == fresh.buffers + 2);
  CHECK(now.used_bytes == 20 + 3000 * kibibyte);
  CHECK(now.blocks >= 1);
  CHECK(now.block_bytes >= now.used_bytes);
  CHECK(now.heap_budget > 0);
  CHECK(now.heap_budget <= now.heap_bytes);
  CHECK(now.heap_usage >= now.used_bytes);
}

}  // namespace brontes::test
