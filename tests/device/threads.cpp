#include "fixture.hpp"
#include "reference.hpp"
#include "spy.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
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

/// What one of many threads does with a device that all share: something else each time, every result checked. Numbers
/// are whole and small, so that all results are exact.
class Worker {
 public:
  Worker(const Device& device, MatmulCache& cache, unsigned id) : device_(device), cache_(cache), random_(id) {}

  std::string step() {
    // Opening a device takes longer than anything else.
    switch (pick(0, 40)) {
      case 0: return own_device();
      case 1: return forget_program();
      default: break;
    }
    switch (pick(0, 7)) {
      case 0: return batch();
      case 1: return program();
      case 2: return replace();
      case 3: return product();
      case 4: return buffer();
      case 5: return leave_in_flight();
      case 6: return rows_by_index();
      default: return one_shot();
    }
  }

  // The next run of program() makes another one while this one's last run may still be going on.
  std::string forget_program() {
    if (!program_) return {};
    const Result<Submission> submission = program_->submit();
    program_.reset();
    return submission.error().message;
  }

  // Measures the product that product() has, while others plan and run it.
  std::string tune() {
    TuneOptions options;
    options.shapes = {{pick(1, 3), columns, rows, Layout::nk}};
    options.seconds = 0.02;
    options.compare_access = false;
    options.save = false;
    const Error error = tune_matmul(device_, options).error();
    return error ? "tune: " + error.message : "";
  }

  static constexpr std::uint64_t rows = 12;
  static constexpr std::uint64_t columns = 64;

 private:
  unsigned pick(unsigned low, unsigned high) { return std::uniform_int_distribution<unsigned>(low, high)(random_); }
  std::vector<float> numbers(std::size_t count) { return cases::random_integers(count, 100, random_()); }

  std::string batch() {
    const std::vector<float> x = numbers(pick(1, 5000));
    const auto amount = static_cast<float>(pick(0, 9));
    std::vector<float> want;
    for (float v : x) want.push_back(v * 2.0f + amount);
    BatchOptions options;
    options.fuse = pick(0, 1) == 0;
    options.work_per_submit = pick(0, 3) == 0 ? 1 : 0;
    Batch batch(device_, options);
    const Tensor y = batch.keep(batch.offset(batch.scale(batch.upload(x), 2.0f), amount));
    const Tensor total = batch.sum(y);
    if (const Error error = batch.execute()) return "batch: " + error.message;
    if (std::string text = wrong(batch, y, want); !text.empty()) return "batch: " + text;
    return wrong(batch, total, {static_cast<float>(cases::sum(want))});
  }

  std::string program() {
    if (!program_) {
      Batch batch(device_);
      x_ = batch.upload(std::vector<float>(300, 0.0f));
      y_ = batch.neg(batch.add(x_, x_));
      Result<Program> compiled = batch.compile();
      if (!compiled) return "compile: " + compiled.error().message;
      program_.emplace(std::move(*compiled));
    }
    for (int i = 0; i < 3; ++i) {
      std::vector<float> x = numbers(300);
      if (const Error error = program_->write(x_, x)) return "write: " + error.message;
      for (float& v : x) v *= -2.0f;
      if (const Error error = program_->run()) return "run: " + error.message;
      std::vector<float> y(300);
      if (const Error error = program_->read(y_, y)) return "read: " + error.message;
      if (y != x) return "a program gave something else";
    }
    return {};
  }

  std::string name() { return "w" + std::to_string(pick(0, 3)); }

  // All elements of a weight are the same: whoever finds two of them in one product has met half a replacement.
  std::string replace() {
    const std::vector<float> data(rows * columns, static_cast<float>(pick(1, 50)));
    const std::string weight = name();
    const DType type = pick(0, 1) == 0 ? DType::f32 : DType::f16;
    Error error;
    switch (pick(0, 4)) {
      case 0: (void)cache_.evict(weight); break;
      case 1: cache_.trim(); break;
      case 2: error = cache_.replace_weight(weight, data, rows, columns, type); break;
      default: error = cache_.upload_weight(weight, data, rows, columns, type); break;
    }
    if (!error || error.code == Errc::not_found || error.code == Errc::already_exists) return {};
    return "replace: " + error.message;
  }

  std::string product() {
    const std::uint64_t m = pick(1, 3);
    std::vector<float> y(m * rows);
    const Error error = cache_.matmul(name(), std::vector<float>(m * columns, 1.0f), y, m);
    if (error.code == Errc::not_found) return {};
    if (error) return "product: " + error.message;
    const float value = y[0] / static_cast<float>(columns);
    if (!(value >= 1.0f && value <= 50.0f) || value != static_cast<float>(static_cast<int>(value))) {
      return "a product of no weight: " + std::to_string(y[0]);
    }
    return y == std::vector<float>(m * rows, y[0]) ? "" : "a product of two weights";
  }

  std::string buffer() {
    const std::vector<float> x = numbers(pick(1, 3000));
    Result<Buffer> buffer = Buffer::from(device_, x);
    if (!buffer) return "buffer: " + buffer.error().message;
    Batch batch(device_);
    batch.store(batch.neg(batch.import_buffer(*buffer)), *buffer);
    if (const Error error = batch.submit().error()) return "store: " + error.message;
    const Result<std::vector<float>> got = buffer->read();
    if (!got) return "buffer: " + got.error().message;
    std::vector<float> want;
    for (float v : x) want.push_back(-v);
    if (*got != want) return "a buffer holds something else";
    if (const Error error = buffer->write(x)) return "buffer: " + error.message;
    return buffer->read().value() == x ? "" : "a buffer was not written";
  }

  // The batch, its input and its program go while the device works on them.
  std::string leave_in_flight() {
    const Buffer result = Buffer::create(device_, {64, 64}).value();
    Submission submission;
    {
      const Buffer ones = Buffer::from(device_, std::vector<float>(64 * 64, 1.0f), {64, 64}).value();
      Batch batch(device_);
      Tensor x = batch.import_buffer(ones);
      for (int i = 0; i < 3; ++i) x = batch.scale(batch.matmul(x, x), 1.0f / 64.0f);
      batch.store(x, result);
      Result<Submission> submitted = batch.submit();
      if (!submitted) return "submit: " + submitted.error().message;
      submission = *submitted;
    }
    if (pick(0, 1) == 0) {
      if (const Error error = submission.wait()) return "wait: " + error.message;
    }
    return result.read().value() == std::vector<float>(64 * 64, 1.0f) ? "" : "what was in flight went wrong";
  }

  // Rows of a table in some order, turned into columns and added up.
  std::string rows_by_index() {
    const std::vector<std::int32_t> index{2, 0, 3, static_cast<std::int32_t>(pick(0, 3))};
    const std::vector<float> x = numbers(4 * 8);
    std::vector<float> want;
    for (std::size_t column = 8; column-- > 0;) {
      float total = 0;
      for (const std::int32_t row : index) want.push_back(total += x[static_cast<std::size_t>(row) * 8 + column]);
    }
    Batch batch(device_);
    const Tensor some = batch.gather(batch.upload(x, {4, 8}), batch.upload(index));
    const Tensor turned = batch.slice(batch.transpose(some), {Range::reversed()});
    const Tensor y = batch.cumsum(turned);
    if (const Error error = batch.execute()) return "rows: " + error.message;
    return wrong(batch, y, want);
  }

  std::string one_shot() {
    const std::vector<float> x = numbers(500);
    const Result<float> total = ops::sum(device_, x);
    if (!total) return "one-shot: " + total.error().message;
    return *total == static_cast<float>(cases::sum(x)) ? "" : "a one-shot sum is wrong";
  }

  // It is closed by whoever lets go last: the submission, when its work is done. Without validation: the layer of 2023
  // looks up devices without a lock while others come and go (Vulkan-ValidationLayers 4391), and reports valid ones.
  static std::string own_device() {
    Submission submission;
    {
      DeviceOptions options = checked_options();
      options.validation = Toggle::off;
      Result<Device> device = Device::open(options);
      if (!device) return "open: " + device.error().message;
      Batch batch(*device);
      (void)batch.neg(batch.upload(counting(1000)));
      Result<Submission> submitted = batch.submit();
      if (!submitted) return "submit: " + submitted.error().message;
      submission = *submitted;
    }
    return submission.wait().message;
  }

  const Device& device_;
  MatmulCache& cache_;
  std::mt19937 random_;
  std::optional<Program> program_;
  Tensor x_, y_;
};

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

// The loader's lists of instances and devices are not safe against that (vk/loader_lock.hpp).
TEST_CASE_METHOD(DeviceTest, "devices are opened and closed one at a time, whatever the number of threads",
                 "[threads]") {
  const Spy spy;
  DeviceOptions options = checked_options();
  options.validation = Toggle::off;
  run_threads(4, [&](int) -> std::string {
    for (int round = 0; round < 10; ++round) {
      if (const Error error = Device::open(options).error()) return error.message;
    }
    return {};
  });
  CHECK(spy.calls("vkCreateDevice") == 40);
  CHECK(spy.overlaps() == 0);
}

TEST_CASE_METHOD(DeviceTest, "objects get their names while other threads open and close devices", "[threads]") {
  const Device& device = shared_device();
  DeviceOptions plain = checked_options();
  plain.validation = Toggle::off;
  std::atomic<int> opening{4};
  run_threads(8, [&](int id) -> std::string {
    if (id >= 4) {
      while (opening > 0) {
        if (const Error error = Buffer::create(device, {1}).error()) return error.message;
      }
      return {};
    }
    std::string problem;
    for (int round = 0; round < (soak() ? 1000 : 10) && problem.empty(); ++round) {
      problem = Device::open(plain).error().message;
    }
    --opening;
    return problem;
  });
}

TEST_CASE_METHOD(DeviceTest, "eight threads of mixed work on one device all get their own results", "[threads]") {
  using namespace std::chrono;
  // SwiftShader builds pipelines for seconds before it comes to the point.
  const bool slow = contains(shared_device().info().name, "SwiftShader");
  const auto time = soak() ? seconds(180) : seconds(slow ? 2 : 5);
  for (const bool staged : {false, true}) {
    INFO((staged ? "staged" : "mapped") << " memory");
    DeviceOptions options = checked_options();
    options.simulate.staged_memory = staged;
    options.tuning.enabled = true;
    options.tuning.path = "/nowhere/tuning";  // never saved
    const Device device = open_device(options);
    {
      MatmulCache cache(device, {4, MatmulKernel::automatic});
      const auto end = steady_clock::now() + time / 2;
      run_threads(8, [&](int id) -> std::string {
        Worker worker(device, cache, static_cast<unsigned>(id));
        unsigned own_steps = 0;
        do {
          if (id == 0 && own_steps % 500 == 0) {
            if (std::string text = worker.tune(); !text.empty()) return text;
          }
          if (std::string text = worker.step(); !text.empty()) return text;
          ++own_steps;
          // Some in any case, where a busy machine has left no time.
        } while (steady_clock::now() < end || own_steps < 5);
        return worker.forget_program();
      });
    }
    // A worker may have left its last run in flight. This one comes after all of them, and is waited for.
    check_device_works(device);
    // Whoever allocates frees what work in flight had kept from being freed.
    const Buffer last = Buffer::create(device, {1}).value();
    CHECK(device.stats().live_buffers == 1);
  }
}

}  // namespace brontes::test
