// The counts are claims: one submit, two transfers, each pipeline once, barriers only where needed.
#include "fixture.hpp"
#include "reference.hpp"

namespace brontes::test {
namespace {

BatchOptions unfused() {
  BatchOptions options;
  options.fuse = false;
  return options;
}

// The barriers of one unfused execute of what `record` records.
template <class Record>
std::uint64_t barriers_of(Record record) {
  Batch batch(shared_device(), unfused());
  record(batch);
  REQUIRE_OK(batch.execute());
  return batch.stats().barriers;
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "relu -> scale -> add is one submit and two transfers", "[stats]") {
  const std::uint64_t submits = shared_device().stats().submits;
  Batch batch(shared_device());
  const std::size_t n = 1000;
  const Tensor x = batch.upload(counting(n));
  const Tensor b = batch.upload(std::vector<float>(n, 0.5f));
  const Tensor y = batch.add(batch.scale(batch.relu(x), 2.f), b);
  REQUIRE_OK(batch.execute());
  const BatchStats stats = batch.stats();
  CHECK(stats.operations == 3);
  CHECK(stats.values == 5);
  CHECK(stats.submits == 1);
  CHECK(shared_device().stats().submits == submits + 1);
  CHECK(stats.transfers_up == 1);
  CHECK(stats.transfers_down == 1);
  CHECK(stats.bytes_up == 2 * n * sizeof(float));
  CHECK(stats.bytes_down == n * sizeof(float));
  CHECK(stats.dispatches == 1);
  CHECK(stats.barriers == 0);
  CHECK(stats.fused_operations == 2);
  CHECK(stats.arena_bytes >= 3 * n * sizeof(float));
  CHECK(stats.allocations >= 1);
  CHECK(read(batch, y)[999] == 1998.5f);
  CHECK(shared_device().stats().submits == submits + 1);
}

TEST_CASE_METHOD(DeviceTest, "without fusion every op is a dispatch, with barriers between dependent ones", "[stats]") {
  Batch batch(shared_device(), unfused());
  const Tensor x = batch.upload(counting(1000));
  (void)batch.add(batch.scale(batch.relu(x), 2.f), batch.upload(std::vector<float>(1000, 0.5f)));
  REQUIRE_OK(batch.execute());
  CHECK(batch.stats().dispatches == 3);
  CHECK(batch.stats().barriers == 2);
  CHECK(batch.stats().fused_operations == 0);
  CHECK(batch.stats().submits == 1);
}

TEST_CASE_METHOD(DeviceTest, "the same chain op by op is three submits and six transfers", "[stats]") {
  const std::vector<float> b(100, 0.5f);
  std::vector<float> values = counting(100);
  std::uint64_t transfers = 0;
  std::uint64_t submits = 0;
  for (int op = 0; op < 3; ++op) {
    Batch batch(shared_device());
    const Tensor x = batch.upload(values);
    const Tensor y = op == 0 ? batch.relu(x) : op == 1 ? batch.scale(x, 2.f) : batch.add(x, batch.upload(b));
    values = run(batch, y);
    transfers += batch.stats().transfers_up + batch.stats().transfers_down;
    submits += batch.stats().submits;
  }
  CHECK(transfers == 6);
  CHECK(submits == 3);
  CHECK(values[99] == 198.5f);

  const std::uint64_t before = shared_device().stats().submits;
  std::vector<float> one_shot = counting(100);
  REQUIRE_OK(ops::relu(shared_device(), one_shot, one_shot));
  REQUIRE_OK(ops::scale(shared_device(), one_shot, 2.f, one_shot));
  REQUIRE_OK(ops::add(shared_device(), one_shot, b, one_shot));
  CHECK(shared_device().stats().submits == before + 3);
  CHECK(one_shot == values);
}

TEST_CASE_METHOD(DeviceTest, "many ops are still one submit", "[stats]") {
  Batch batch(shared_device());
  Tensor x = batch.upload(counting(64));
  for (int i = 0; i < 1000; ++i) x = batch.offset(x, 1.0f);
  CHECK(run(batch, x)[0] == 1000.0f);
  CHECK(batch.stats().submits == 1);
  CHECK(batch.stats().operations == 1000);
}

TEST_CASE_METHOD(DeviceTest, "independent ops share the gap between two barriers", "[stats]") {
  CHECK(barriers_of([](Batch& b) { (void)b.relu(b.upload({1.f})); }) == 0);
  CHECK(barriers_of([](Batch& b) {
          for (int i = 0; i < 8; ++i) (void)b.relu(b.upload({1.f}));
        }) == 0);
  CHECK(barriers_of([](Batch& b) {
          const Tensor x = b.upload({1.f});
          for (int i = 0; i < 8; ++i) (void)b.scale(x, static_cast<float>(i));
        }) == 0);
  CHECK(barriers_of([](Batch& b) {
          for (int i = 0; i < 8; ++i) (void)b.neg(b.relu(b.upload({1.f})));
        }) == 1);
  CHECK(barriers_of([](Batch& b) {
          for (int i = 0; i < 4; ++i) (void)b.sqrt(b.abs(b.neg(b.relu(b.upload({1.f})))));
        }) == 3);
  CHECK(barriers_of([](Batch& b) {
          const Tensor x = b.upload({1.f});
          (void)b.add(b.relu(x), b.neg(x));
        }) == 1);
}

TEST_CASE_METHOD(DeviceTest, "a write after a read of a buffer gets a barrier, and so does a write after a write",
                 "[stats]") {
  const Buffer buffer = Buffer::create(shared_device(), {16}).value();
  CHECK(barriers_of([&](Batch& b) {
          const Tensor x = b.import_buffer(buffer);
          (void)b.neg(x);
          b.store(b.upload(counting(16)), buffer);
        }) == 1);
  CHECK(barriers_of([&](Batch& b) {
          b.store(b.upload(counting(16)), buffer);
          b.store(b.upload(std::vector<float>(16, 3.0f)), buffer);
        }) == 1);
  CHECK(buffer.read().value() == std::vector<float>(16, 3.0f));
}

TEST_CASE_METHOD(DeviceTest, "a pipeline is created once for the life of the device", "[stats]") {
  const Device device = open_device();
  CHECK(device.stats().pipelines_created == 0);
  std::uint64_t created = 0;
  for (int i = 0; i < 3; ++i) {
    Batch batch(device, unfused());
    const Tensor x = batch.upload(counting(64));
    (void)batch.neg(batch.relu(batch.relu(x)));
    REQUIRE_OK(batch.execute());
    if (i == 0) {
      created = device.stats().pipelines_created;
      CHECK(created == 2);
      CHECK(batch.stats().pipelines_created == 2);
    } else {
      CHECK(batch.stats().pipelines_created == 0);
    }
  }
  CHECK(device.stats().pipelines_created == created);
  CHECK(device.stats().pipelines_requested >= 9);
}

TEST_CASE_METHOD(DeviceTest, "scalars and sizes do not make new pipelines", "[stats]") {
  const Device device = open_device();
  Batch batch(device, unfused());
  const Tensor x = batch.upload(counting(64));
  for (int i = 0; i < 10; ++i) (void)batch.scale(x, static_cast<float>(i));
  (void)batch.scale(batch.upload(counting(128)), 1.0f);
  REQUIRE_OK(batch.execute());
  CHECK(device.stats().pipelines_created == 1);
}

TEST_CASE_METHOD(DeviceTest, "imports are not transfers, and a batch nobody can read from brings nothing down",
                 "[stats]") {
  const Buffer in = Buffer::from(shared_device(), counting(64)).value();
  const Buffer out = Buffer::create(shared_device(), {64}).value();
  Batch batch(shared_device());
  batch.store(batch.neg(batch.import_buffer(in)), out);
  REQUIRE_OK(batch.execute());
  CHECK(batch.stats().transfers_up == 0);
  CHECK(batch.stats().transfers_down == 0);
  CHECK(batch.stats().bytes_down == 0);
  CHECK(batch.stats().submits == 1);
  CHECK(out.read().value()[63] == -63.0f);
}

TEST_CASE_METHOD(DeviceTest, "all uploads of an execute are one transfer, and all results one", "[stats]") {
  Batch batch(shared_device());
  for (int i = 0; i < 10; ++i) (void)batch.neg(batch.upload(counting(100)));
  REQUIRE_OK(batch.execute());
  CHECK(batch.stats().transfers_up == 1);
  CHECK(batch.stats().transfers_down == 1);
  CHECK(batch.stats().bytes_up == 4000);
  CHECK(batch.stats().bytes_down == 4000);
}

}  // namespace brontes::test
