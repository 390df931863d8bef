// Pipelines before they are needed, and the cache as bytes.
#include "fixture.hpp"

#include <atomic>
#include <thread>
#include <utility>

namespace brontes::test {
namespace {

// Several pipelines.
Tensor record_some(Batch& batch) {
  const Tensor x = batch.upload(std::vector<float>(8 * 8, 1.0f), {8, 8});
  return batch.softmax(batch.matmul(x, batch.cumsum(batch.keep(batch.neg(x)))));
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "after prepare() neither execute() nor compile() creates a pipeline", "[prepare]") {
  const Device device = open_device();
  Batch batch(device);
  const Tensor y = record_some(batch);
  const std::uint64_t allocations = device.stats().allocations;
  std::vector<std::pair<std::size_t, std::size_t>> told;
  PrepareOptions options;
  options.on_progress = [&](std::size_t ready, std::size_t total) {
    told.emplace_back(ready, total);
    return true;
  };
  const Result<Prepared> prepared = prepare(batch, options);
  REQUIRE_OK(prepared.error());
  CHECK(prepared->complete());
  CHECK(prepared->total >= 3);
  CHECK(prepared->created == prepared->total);
  CHECK(device.stats().pipelines_created == prepared->created);
  CHECK(device.stats().submits == 0);
  CHECK(device.stats().allocations == allocations);
  REQUIRE(told.size() == prepared->total + 1);
  for (std::size_t i = 0; i < told.size(); ++i) CHECK(told[i] == std::make_pair(i, prepared->total));

  const Result<Program> program = batch.compile();
  REQUIRE_OK(program.error());
  REQUIRE_OK(batch.execute());
  CHECK(batch.stats().pipelines_created == 0);
  CHECK(program->stats().pipelines_created == 0);
  CHECK(device.stats().pipelines_created == prepared->created);
  CHECK(read(batch, y).size() == 64);
  Batch again(device);
  (void)record_some(again);
  CHECK(prepare(again).value().created == 0);
}

TEST_CASE_METHOD(DeviceTest, "prepare() runs on another thread and can be cancelled", "[prepare]") {
  const Device device = open_device();
  Batch batch(device);
  (void)record_some(batch);
  std::atomic<bool> cancel{false};
  Result<Prepared> first = Prepared();
  std::thread([&] {
    PrepareOptions options;
    options.on_progress = [&](std::size_t ready, std::size_t) {
      if (ready == 1) cancel = true;
      return !cancel;
    };
    first = prepare(batch, options);
  }).join();
  REQUIRE_OK(first.error());
  CHECK_FALSE(first->complete());
  CHECK(first->ready == 1);
  CHECK(first->created == 1);
  // It goes on where it was.
  const Prepared rest = prepare(batch).value();
  CHECK(rest.complete());
  CHECK(rest.created == rest.total - 1);
}

TEST_CASE_METHOD(DeviceTest, "a batch that cannot be compiled cannot be prepared", "[prepare]") {
  const Device& device = shared_device();
  Batch batch(device);
  CHECK(prepare(batch).value().total == 0);
  (void)batch.add(batch.upload({1.0f, 2.0f}), batch.upload({1.0f, 2.0f, 3.0f}));
  CHECK(prepare(batch).error().code == Errc::shape_mismatch);
  const Batch moved = std::move(batch);
  CHECK(prepare(batch).error().code == Errc::invalid_argument);  // NOLINT: moved from on purpose
}

TEST_CASE_METHOD(DeviceTest, "the pipeline cache goes through bytes of the application's", "[prepare]") {
  std::vector<std::uint8_t> bytes;
  {
    const Device device = open_device();
    check_device_works(device);
    bytes = save_pipelines(device).value();
    CHECK(bytes.size() > 108);
  }
  const Device device = open_device();
  REQUIRE_OK(load_pipelines(device, bytes));
  check_device_works(device);
  // What was loaded is there when it is saved again.
  CHECK(save_pipelines(device).value().size() >= bytes.size());

  CHECK(load_pipelines(device, {}).code == Errc::invalid_argument);
  CHECK(load_pipelines(device, {static_cast<const std::uint8_t*>(nullptr), 5}).code == Errc::null_data);
  for (std::size_t at : {std::size_t{0}, std::size_t{20}, bytes.size() - 1}) {
    std::vector<std::uint8_t> damaged = bytes;
    damaged[at] ^= 1;
    CHECK(load_pipelines(device, damaged).code == Errc::invalid_argument);
  }
  std::vector<std::uint8_t> cut = bytes;
  cut.pop_back();
  CHECK(load_pipelines(device, cut).code == Errc::invalid_argument);
  check_device_works(device);
}

}  // namespace brontes::test
