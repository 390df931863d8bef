// Nothing grows: memory, file descriptors and Vulkan objects are the same after many runs as after some.
#include "fixture.hpp"
#include "sanitizers.hpp"
#include "spy.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>

#include <unistd.h>

namespace brontes::test {
namespace {

/// Resident memory of this process in bytes.
std::int64_t resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) SKIP("there is no /proc/self/statm");
  long total = 0;
  long resident = 0;
  const int found = std::fscanf(file, "%ld %ld", &total, &resident);
  std::fclose(file);
  REQUIRE(found == 2);
  return std::int64_t{resident} * sysconf(_SC_PAGESIZE);
}

std::size_t open_files() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// What is no leak: a thread of the driver's pool that gets work for the first time takes some MiB, once. So memory is
// looked at after each of several parts of the runs, and may not grow in most of them. The slack of a part is for the
// heap, which leaves its holes in other places each time; with 2,000 runs in a part, 33 bytes per run are past it.
constexpr std::int64_t slack = 64 << 10;
constexpr std::size_t parts = 5;
// They keep freed memory, or records of it.
constexpr bool resident_means_live = !address_sanitizer && !thread_sanitizer;

/// No validation: the layer keeps a history of its own.
DeviceOptions plain_options() {
  DeviceOptions options = checked_options();
  options.validation = Toggle::off;
  return options;
}

/// With a device of each kind of memory.
void with_each_memory(const std::function<void(const Device&)>& test) {
  (void)shared_device();  // skips where there is none
  for (const bool staged : {false, true}) {
    INFO((staged ? "staged" : "mapped") << " memory");
    DeviceOptions options = plain_options();
    options.simulate.staged_memory = staged;
    test(open_device(options));
  }
}

struct Sizes {
  explicit Sizes(const Device& device) : resident(resident_bytes()), files(open_files()) {
    // Whoever allocates frees what was set aside while work in flight used it.
    REQUIRE_OK(Buffer::create(device, {1}).error());
    stats = device.stats();
  }
  std::int64_t resident;
  std::size_t files;
  DeviceStats stats;
};

/// Runs `work` some times, and `count` times more during which nothing may grow.
void check_flat(const Device& device, std::size_t count, const std::function<bool()>& work) {
  std::size_t failed = 0;
  for (std::size_t i = 0; i < count / parts; ++i) failed += work() ? 0 : 1;
  const Sizes before(device);
  std::vector<std::int64_t> grown;
  for (std::int64_t last = before.resident; grown.size() < parts;) {
    for (std::size_t i = 0; i < count / parts; ++i) failed += work() ? 0 : 1;
    const std::int64_t now = resident_bytes();
    grown.push_back(now - std::exchange(last, now));
  }
  const Sizes after(device);
  CHECK(failed == 0);
  CAPTURE(count, grown);
  std::sort(grown.begin(), grown.end());
  if (resident_means_live) CHECK(grown[parts / 2] < slack);
  CHECK(after.files == before.files);
  CHECK(after.stats.live_buffers == before.stats.live_buffers);
  CHECK(after.stats.live_bytes == before.stats.live_bytes);
  CHECK(after.stats.pipelines_created == before.stats.pipelines_created);
}

/// y = 2x + 1 for 64 elements, every time with other data.
struct SmallProgram {
  explicit SmallProgram(const Device& device) : batch(device), data(64), result(64) {
    x = batch.upload(data);
    y = batch.offset(batch.scale(x, 2.0f), 1.0f);
    program.emplace(batch.compile().value());
  }
  bool run() {
    data[63] += 1.0f;
    if (program->write(x, data) || program->run() || program->read(y, result)) return false;
    return result[63] == 2.0f * data[63] + 1.0f;
  }
  Batch batch;
  std::vector<float> data, result;
  Tensor x, y;
  std::optional<Program> program;
};

bool run_batch(const Device& device) {
  Batch batch(device);
  const Tensor x = batch.upload(counting(1000));
  const Tensor y = batch.keep(batch.neg(x));
  const Tensor total = batch.sum(batch.relu(x));
  if (batch.execute()) return false;
  const Result<std::vector<float>> got = batch.read(y);
  const Result<std::vector<float>> sum = batch.read(total);
  return got && sum && (*got)[999] == -999.0f && (*sum)[0] == 499500.0f;
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "a program that runs for ever takes no more memory or files", "[leaks]") {
  with_each_memory([](const Device& device) {
    SmallProgram program(device);
    check_flat(device, soak() ? 500'000 : 10'000, [&] { return program.run(); });
  });
}

TEST_CASE_METHOD(DeviceTest, "batch after batch takes no more memory or files", "[leaks]") {
  with_each_memory([](const Device& device) {
    check_flat(device, soak() ? 100'000 : 1'000, [&] { return run_batch(device); });
    // One that is reset, with programs that come and go, and buffers.
    Batch batch(device);
    check_flat(device, soak() ? 100'000 : 1'000, [&] {
      batch.reset();
      const Result<Buffer> buffer = Buffer::from(device, counting(100));
      if (!buffer) return false;
      const Tensor y = batch.neg(batch.import_buffer(*buffer));
      Result<Program> program = batch.compile();
      if (!program || program->run() || batch.execute()) return false;
      return program->read(y).value() == batch.read(y).value();
    });
  });
}

TEST_CASE_METHOD(DeviceTest, "a cache whose weights come and go takes no more memory or files", "[leaks]") {
  (void)shared_device();  // skips where there is none
  const Device device = open_device(plain_options());
  MatmulCache cache(device, {2, MatmulKernel::automatic});
  const std::vector<float> data(8 * 32, 1.0f);
  std::vector<float> y(8);
  check_flat(device, soak() ? 100'000 : 1'000, [&] {
    for (const char* name : {"a", "b", "c"}) {
      if (cache.upload_weight(name, data, 8, 32, DType::q8_0, std::vector<float>(8, 1.0f))) return false;
      if (cache.replace_weight(name, data, 8, 32)) return false;
      if (cache.matmul(name, Span<const float>(data.data(), 32), y, 1) || y[7] != 32.0f) return false;
    }
    cache.clear();
    return true;
  });
}

TEST_CASE_METHOD(DeviceTest, "devices that open and close leave no files behind", "[leaks]") {
  const Device& device = shared_device();  // skips where there is none
  const auto use = [] {
    const Result<Device> other = Device::open(plain_options());
    std::vector<float> x = {-1};
    return other && !ops::relu(*other, x, x) && x[0] == 0.0f;
  };
  REQUIRE(use());
  const Sizes before(device);
  const int count = soak() ? 1000 : 20;
  for (int i = 0; i < count; ++i) REQUIRE(use());
  const Sizes after(device);
  CHECK(after.files == before.files);
}

TEST_CASE_METHOD(DeviceTest, "many runs leave no more Vulkan objects than some", "[leaks]") {
  (void)shared_device();  // skips where there is none
  const Spy spy;
  {
    const Device device = open_device();
    SmallProgram program(device);
    const auto work = [&] {
      CHECK(program.run());
      CHECK(run_batch(device));
    };
    for (int i = 0; i < 20; ++i) work();
    const std::string before = spy.alive();
    const std::uint64_t memory = spy.memory();
    for (int i = 0; i < 300; ++i) work();
    CHECK(spy.alive() == before);
    CHECK(spy.memory() == memory);
  }
  CHECK(spy.alive() == "");
  CHECK(spy.memory() == 0);
}

}  // namespace brontes::test
