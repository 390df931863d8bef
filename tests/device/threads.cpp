#include "fixture.hpp"
#include "reference.hpp"

#include <atomic>
#include <optional>
#include <thread>

namespace brontes::test {
namespace {

// Catch2's assertions are not for other threads: each thread returns what it found wrong.
template <class Work>
void run_threads(int count, Work work) {
  std::vector<std::string> problems(static_cast<std::size_t>(count));
  std::atomic<int> waiting{count};
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      // All start together, so that first uses of a pipeline meet.
      --waiting;
      while (waiting.load() > 0) std::this_thread::yield();
      problems[static_cast<std::size_t>(i)] = work(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < count; ++i) {
    INFO("thread " << i);
    CHECK(problems[static_cast<std::size_t>(i)] == "");
  }
}

std::string wrong(const Batch& batch, Tensor x, const std::vector<float>& want) {
  const Result<std::vector<float>> got = batch.read(x);
  return got ? cases::mismatch(*got, want) : got.error().message;
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "several threads, each with its own batch, share one device", "[threads]") {
  const Device& device = shared_device();
  run_threads(4, [&](int id) -> std::string {
    for (int round = 0; round < 12; ++round) {
      const auto n = static_cast<std::size_t>(1 + 997 * ((id + round) % 5));
      const std::vector<float> x = cases::random_integers(n, 100, static_cast<std::uint64_t>(id * 100 + round));
      std::vector<float> want;
      for (float v : x) want.push_back(v * 2.0f + static_cast<float>(id));
      Batch batch(device);
      const Tensor y = batch.offset(batch.scale(batch.upload(x), 2.0f), static_cast<float>(id));
      const Tensor total = batch.sum(y);
      (void)batch.keep(y);
      if (const Error error = batch.execute()) return error.message;
      if (std::string text = wrong(batch, y, want); !text.empty()) return text;
      if (std::string text = wrong(batch, total, {static_cast<float>(cases::sum(want))}); !text.empty()) return text;
    }
    return {};
  });
}

TEST_CASE_METHOD(DeviceTest, "threads that need a pipeline at the same moment get one pipeline", "[threads]") {
  const Device device = open_device();
  std::atomic<std::uint64_t> created{0};
  run_threads(8, [&](int id) -> std::string {
    BatchOptions unfused;
    unfused.fuse = false;
    Batch batch(device, unfused);
    const Tensor x = batch.upload(counting(64));
    const Tensor y = batch.keep(batch.neg(x));
    const Tensor z = batch.sum(batch.gelu(y));
    if (const Error error = batch.execute()) return error.message;
    created += batch.stats().pipelines_created;
    (void)id;
    (void)z;
    return wrong(batch, y, [] {
      std::vector<float> want = counting(64);
      for (float& v : want) v = -v;
      return want;
    }());
  });
  // neg, gelu and one reduction.
  CHECK(device.stats().pipelines_created == 3);
  CHECK(created == 3);
  CHECK(device.stats().submits == 8);
}

TEST_CASE_METHOD(DeviceTest, "one-shots, buffers, explain and stats run from any thread", "[threads]") {
  const Device& device = shared_device();
  run_threads(4, [&](int id) -> std::string {
    for (int round = 0; round < 6; ++round) {
      std::vector<float> x = counting(100);
      if (const Error error = ops::scale(device, x, static_cast<float>(id), x)) return error.message;
      if (x[99] != static_cast<float>(99 * id)) return "scale is wrong";
      const Result<Buffer> buffer = Buffer::from(device, x);
      if (!buffer) return buffer.error().message;
      if (buffer->read().value() != x) return "the buffer is wrong";
      if (device.stats().submits == 0) return "no submits counted";
      if (explain_matmul(device, 4, 4, 4).reason.empty()) return "no reason";
    }
    return {};
  });
}

TEST_CASE_METHOD(DeviceTest, "a buffer may be read by several batches at once", "[threads]") {
  const Device& device = shared_device();
  const Buffer buffer = Buffer::from(device, counting(5000)).value();
  run_threads(4, [&](int id) -> std::string {
    for (int round = 0; round < 8; ++round) {
      Batch batch(device);
      const Tensor y = batch.offset(batch.import_buffer(buffer), static_cast<float>(id));
      if (const Error error = batch.execute()) return error.message;
      const Result<std::vector<float>> got = batch.read(y);
      if (!got) return got.error().message;
      if ((*got)[4999] != static_cast<float>(4999 + id)) return "the last element is wrong";
    }
    return {};
  });
}

TEST_CASE_METHOD(DeviceTest, "a batch may move between threads", "[threads]") {
  Batch batch(shared_device());
  Tensor y = batch.upload(counting(10));
  for (int i = 0; i < 3; ++i) {
    std::thread([&] {
      y = batch.keep(batch.offset(y, 1.0f));
      (void)batch.execute();
    }).join();
  }
  CHECK(read(batch, y)[9] == 12.0f);
}

TEST_CASE_METHOD(DeviceTest, "a device may be destroyed while other threads still use batches of it", "[threads]") {
  std::optional<Device> device = open_device();
  std::vector<Batch> batches;
  for (int i = 0; i < 4; ++i) batches.emplace_back(*device);
  std::atomic<int> running{0};
  std::vector<std::string> problems(batches.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    threads.emplace_back([&, i] {
      Batch batch = std::move(batches[i]);
      for (int round = 0; round < 10; ++round) {
        batch.reset();
        const Tensor y = batch.neg(batch.upload(counting(100)));
        if (const Error error = batch.execute()) {
          problems[i] = error.message;
          return;
        }
        if (batch.read(y).value()[99] != -99.0f) problems[i] = "wrong";
        ++running;
      }
    });
  }
  while (running.load() == 0) std::this_thread::yield();
  device.reset();
  for (std::thread& thread : threads) thread.join();
  for (const std::string& problem : problems) CHECK(problem == "");
}

TEST_CASE_METHOD(DeviceTest, "devices open and close on several threads at once", "[threads]") {
  (void)shared_device();
  run_threads(3, [&](int) -> std::string {
    const Result<Device> device = Device::open(checked_options());
    if (!device) return device.error().message;
    std::vector<float> x = {-1, 1};
    if (const Error error = ops::relu(*device, x, x)) return error.message;
    return x[0] == 0.0f ? "" : "relu is wrong";
  });
}

}  // namespace brontes::test
