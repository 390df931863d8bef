// Tensors at and past the size a device binds at once.
#include "fixture.hpp"
#include "reference.hpp"

#include <algorithm>
#include <functional>

namespace brontes::test {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

// True when the batch took what was recorded; else its error is a refusal that names the limit.
bool accepted(const Device& device, Batch& batch, bool valid) {
  if (valid) return true;
  const Error error = batch.clear_error();
  INFO(error.message);
  CHECK(error.code == Errc::limit_exceeded);
  CHECK(contains(error.message, "maxStorageBufferRange"));
  CHECK(contains(error.message, std::to_string(device.info().max_storage_range)));
  return false;
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "a tensor of 130 MiB works or is refused with the limit", "[large]") {
  const Device& device = shared_device();
  const std::uint64_t n = 130 * mib / sizeof(float);
  const bool fits = device.info().max_storage_range >= 130 * mib;
  {
    Batch batch(device);
    const Tensor x = batch.fill(1.0f, {n});
    if (accepted(device, batch, x.valid())) {
      const Tensor total = batch.sum(batch.offset(batch.scale(x, 2.0f), -1.0f));
      const Tensor dot = batch.dot(x, x);
      REQUIRE_OK(batch.execute());
      CHECK(read(batch, total) == std::vector<float>{static_cast<float>(n)});
      CHECK(read(batch, dot) == std::vector<float>{static_cast<float>(n)});
    } else {
      CHECK_FALSE(fits);
    }
  }
  {
    std::vector<float> data(n, 1.0f);
    Batch batch(device);
    const Tensor x = batch.upload(data);
    if (!accepted(device, batch, x.valid())) {
      CHECK_FALSE(fits);
      // Nothing was recorded: the batch is as good as new.
      CHECK(batch.num_buffers() == 0);
      CHECK(run(batch, batch.neg(batch.upload({1.f}))) == std::vector<float>{-1});
    }
    const Result<Buffer> buffer = Buffer::from(device, data);
    if (!buffer) {
      CHECK_FALSE(fits);
      CHECK(buffer.error().code == Errc::limit_exceeded);
      CHECK(contains(buffer.error().message, "maxStorageBufferRange"));
    }
  }
  {
    // The operands are small; the product would not be. Where it is nothing special it is not worth its time.
    const std::uint64_t side = 5840;
    Batch batch(device);
    const Tensor product = batch.matmul(batch.fill(1.0f, {side, 1}), batch.fill(1.0f, {1, side}));
    if (accepted(device, batch, product.valid())) {
      if (!fits) CHECK(run(batch, batch.max(product)) == std::vector<float>{1});
    } else {
      CHECK_FALSE(fits);
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "the largest tensor that fits works", "[large]") {
  const Device& device = shared_device();
  const std::uint64_t bytes = std::min<std::uint64_t>(device.info().max_storage_range, 128 * mib);
  const std::uint64_t n = bytes / sizeof(float);
  Batch batch(device);
  const Tensor total = batch.sum(batch.fill(1.0f, {n}));
  CHECK(run(batch, total) == std::vector<float>{static_cast<float>(n)});
}

TEST_CASE_METHOD(DeviceTest, "an arena may be larger than any tensor in it", "[large]") {
  // 5 values of 40 MiB that all live at once, in one allocation of 200 MiB.
  const Device& device = shared_device();
  const std::uint64_t n = 40 * mib / sizeof(float) + 3;
  BatchOptions options;
  options.fuse = false;
  Batch batch(device, options);
  std::vector<Tensor> values;
  for (int i = 0; i < 4; ++i) values.push_back(batch.fill(static_cast<float>(i), {n}));
  Tensor sum = values[0];
  for (std::size_t i = 1; i < values.size(); ++i) sum = batch.add(sum, values[i]);
  const Tensor low = batch.min(sum);
  const Tensor high = batch.max(sum);
  REQUIRE_OK(batch.execute());
  CHECK(batch.stats().arena_bytes > 160 * mib);
  CHECK(read(batch, low) == std::vector<float>{6});
  CHECK(read(batch, high) == std::vector<float>{6});
}

TEST_CASE_METHOD(DeviceTest, "a device with a small range takes what fits, whatever the op", "[large]") {
  DeviceOptions options = checked_options();
  options.simulate.max_storage_range = 4096;
  for (const bool staged : {false, true}) {
    options.simulate.staged_memory = staged;
    const Device device = open_device(options);
    const std::function<Tensor(Batch&, std::uint64_t)> ops[] = {
        [](Batch& b, std::uint64_t n) { return b.relu(b.upload(std::vector<float>(n, 1.0f))); },
        [](Batch& b, std::uint64_t n) { return b.add(b.fill(0.0f, {n}), b.fill(1.0f, {1})); },
        [](Batch& b, std::uint64_t n) { return b.sum(b.scale(b.fill(1.0f, {n}), 1.0f / static_cast<float>(n))); },
        [](Batch& b, std::uint64_t n) {
          const Tensor x = b.fill(1.0f, {n});
          return b.scale(b.dot(x, x), 1.0f / static_cast<float>(n));
        },
        [](Batch& b, std::uint64_t n) {
          return b.matmul(b.fill(1.0f, {1, n}), b.fill(1.0f / static_cast<float>(n), {n, 1}));
        },
        [](Batch& b, std::uint64_t n) {
          return b.gelu(b.offset(b.matmul(b.fill(0.0f, {n, 1}), b.fill(1.0f, {1, 1})), 9));
        },
    };
    for (std::uint64_t n : {1023u, 1024u, 1025u, 5000u}) {
      std::size_t number = 0;
      for (const auto& record : ops) {
        INFO("op " << number << ", " << n << " elements");
        Batch batch(device);
        const Tensor y = record(batch, n);
        if (accepted(device, batch, y.valid())) {
          const std::vector<float> got = run(batch, y);
          const float want = number == 5 ? 9.0f : 1.0f;
          std::size_t wrong = 0;
          for (float v : got) wrong += !(v > want - 1e-3f && v < want + 1e-3f);
          CHECK(wrong == 0);
        } else {
          CHECK(n > 1024);
        }
        ++number;
      }
    }
    // Many tensors, each at the limit.
    Batch batch(device);
    Tensor sum = batch.upload(counting(1024));
    for (int i = 0; i < 20; ++i) sum = batch.add(sum, batch.upload(counting(1024)));
    CHECK(run(batch, sum)[1023] == 21.0f * 1023.0f);
    check_device_works(device);
  }
}

TEST_CASE_METHOD(DeviceTest, "programs of a small device refuse and work alike", "[large]") {
  DeviceOptions options = checked_options();
  options.simulate.max_storage_range = 4096;
  options.simulate.max_group_count = 16;
  options.simulate.max_loop_iterations = 64;
  const Device device = open_device(options);
  Batch batch(device);
  const Tensor x = batch.upload(counting(1024));
  const Tensor y = batch.scale(x, 2.0f);
  const Tensor total = batch.sum(y);
  Program program = batch.compile().value();
  for (int i = 0; i < 3; ++i) {
    REQUIRE_OK(program.write(x, std::vector<float>(1024, static_cast<float>(i))));
    REQUIRE_OK(program.run());
    CHECK(program.read(total).value() == std::vector<float>{static_cast<float>(2048 * i)});
  }
  CHECK(Buffer::create(device, {1025}).error().code == Errc::limit_exceeded);
}

}  // namespace brontes::test
