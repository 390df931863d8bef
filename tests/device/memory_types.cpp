// Memory as other devices have it: the spy keeps the host's copy and the device's apart (tests/spy/memory_model.hpp).
#include "fixture.hpp"
#include "reference.hpp"
#include "spy.hpp"

#include <brontes/vulkan.hpp>

#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace brontes::test {
namespace {

constexpr std::uint32_t local = 1;
constexpr std::uint32_t visible = 2;
constexpr std::uint32_t coherent = 4;
constexpr std::uint32_t cached = 8;

struct World {
  const char* name;
  std::vector<std::uint32_t> types;
  bool staged = false;
};

// Memory that is not coherent: only such, which is stricter than Vulkan allows, and beside others, as on Meteor Lake.
std::vector<World> incoherent_worlds() {
  return {{"nothing is coherent", {local | visible | cached}},
          {"nothing is coherent, staged", {local, visible | cached}},
          {"nothing is coherent, staging simulated", {local | visible | cached}, true},
          {"cached or coherent", {local, local | visible | coherent, local | visible | cached}}};
}

// Memory that the host can write, but had better not read: a card with a resizable BAR, and an APU.
std::vector<World> uncached_worlds() {
  return {{"a resizable BAR", {local, local | visible | coherent, visible | coherent, visible | coherent | cached}},
          {"an APU", {local | visible | coherent, visible | coherent | cached}}};
}

// Runs the test on a device of each world, in those of the access modes that it has.
void in_worlds(const std::vector<World>& worlds, const std::function<void(const Device&)>& test,
               const std::vector<AccessMode>& accesses = {AccessMode::automatic}) {
  (void)shared_device();  // skips where there is none
  const Spy spy;
  for (const World& world : worlds) {
    for (AccessMode access : accesses) {
      spy.memory_types(world.types);
      DeviceOptions options = checked_options();
      options.access = access;
      options.simulate.staged_memory = world.staged;
      options.memory_cap = std::uint64_t{16} << 20;  // small blocks, which the model compares with every submit
      const Result<Device> device = Device::open(options);
      if (!device && device.error().code == Errc::unsupported && access == AccessMode::pointer) continue;
      REQUIRE_OK(device.error());
      INFO(world.name << ", " << to_string(access));
      test(*device);
    }
  }
}

std::vector<World> all_worlds() {
  std::vector<World> worlds = incoherent_worlds();
  for (World& world : uncached_worlds()) worlds.push_back(std::move(world));
  return worlds;
}

std::vector<float> some(std::size_t count, std::uint32_t seed) { return cases::random_values(count, -2, 2, seed); }

// buffer := buffer + 1, on the device.
void increment(const Device& device, const Buffer& buffer) {
  Batch batch(device);
  batch.store(batch.offset(batch.import_buffer(buffer), 1.0f), buffer);
  REQUIRE_OK(batch.execute());
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "writing a part of a buffer keeps what the device wrote beside it", "[memory-types]") {
  in_worlds(all_worlds(), [](const Device& device) {
    Buffer buffer = Buffer::from(device, counting(200)).value();
    std::vector<float> expected = counting(200);
    increment(device, buffer);
    for (float& e : expected) e += 1;
    // The first element, some in the middle of an atom, some over its end, and the last one.
    for (const auto& [first, count] : {std::pair<std::size_t, std::size_t>{0, 1}, {20, 5}, {60, 10}, {199, 1}}) {
      const std::vector<float> data = some(count, static_cast<std::uint32_t>(first));
      REQUIRE_OK(buffer.write(data, first));
      std::copy(data.begin(), data.end(), expected.begin() + static_cast<std::ptrdiff_t>(first));
      increment(device, buffer);
      for (float& e : expected) e += 1;
    }
    CHECK(buffer.read().value() == expected);
  });
}

TEST_CASE_METHOD(DeviceTest, "buffers hold what was written last, whoever wrote it", "[memory-types]") {
  in_worlds(all_worlds(), [](const Device& device) {
    std::minstd_rand random(7);
    auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random()) % bound; };
    // Neighbours in one block of memory.
    std::vector<Buffer> buffers;
    std::vector<std::vector<float>> expected;
    for (const std::size_t size : {5u, 64u, 1u, 130u, 67u}) {
      expected.push_back(some(size, static_cast<std::uint32_t>(size)));
      buffers.push_back(Buffer::from(device, expected.back()).value());
    }
    for (int step = 0; step < 300; ++step) {
      const std::size_t which = below(buffers.size());
      std::vector<float>& now = expected[which];
      const std::size_t first = below(now.size());
      const std::size_t count = 1 + below(now.size() - first);
      INFO("step " << step << ", buffer " << which << ", " << count << " from " << first << " on");
      switch (below(3)) {
        case 0: {
          const std::vector<float> data = some(count, static_cast<std::uint32_t>(step));
          REQUIRE_OK(buffers[which].write(data, first));
          std::copy(data.begin(), data.end(), now.begin() + static_cast<std::ptrdiff_t>(first));
          break;
        }
        case 1: {
          // All of it, or the second half.
          const std::size_t from = below(2) * (now.size() / 2);
          Batch batch(device);
          const std::vector<Range> range{{static_cast<std::int64_t>(from), static_cast<std::int64_t>(now.size()), 1}};
          batch.store(batch.neg(batch.import_buffer(buffers[which], range)), buffers[which], range);
          REQUIRE_OK(batch.execute());
          for (std::size_t i = from; i < now.size(); ++i) now[i] = -now[i];
          break;
        }
        default: {
          std::vector<float> out(count);
          REQUIRE_OK(buffers[which].read(out, first));
          REQUIRE(out == std::vector<float>(now.begin() + static_cast<std::ptrdiff_t>(first),
                                            now.begin() + static_cast<std::ptrdiff_t>(first + count)));
        }
      }
    }
    for (std::size_t i = 0; i < buffers.size(); ++i) CHECK(buffers[i].read().value() == expected[i]);
  });
}

TEST_CASE_METHOD(DeviceTest, "a program's inputs and results do not disturb each other", "[memory-types]") {
  in_worlds(all_worlds(), [](const Device& device) {
    Batch batch(device);
    // Small ones, of which several share an atom; some can be read, some cannot.
    std::vector<Tensor> inputs;
    std::vector<Tensor> outputs;
    std::vector<std::vector<float>> written;
    for (const std::size_t size : {3u, 20u, 70u, 5u, 1u, 9u}) {
      written.push_back(some(size, static_cast<std::uint32_t>(size)));
      inputs.push_back(batch.upload(written.back()));
      if (size % 2 == 0) batch.keep(inputs.back());
      outputs.push_back(batch.scale(inputs.back(), 2.0f));
    }
    Program program = batch.compile().value();
    REQUIRE_OK(program.run());
    std::vector<std::vector<float>> ran = written;
    std::minstd_rand random(11);
    auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random()) % bound; };
    for (int step = 0; step < 200; ++step) {
      const std::size_t which = below(inputs.size());
      INFO("step " << step << ", input " << which);
      switch (below(4)) {
        case 0:
          REQUIRE_OK(program.run());
          ran = written;
          break;
        case 1:
        case 2:
          written[which] = some(written[which].size(), static_cast<std::uint32_t>(step));
          REQUIRE_OK(program.write(inputs[which], written[which]));
          break;
        default: {
          // Results of the last run, though inputs may have been written since.
          std::vector<float> expected = ran[which];
          for (float& e : expected) e *= 2;
          REQUIRE(program.read(outputs[which]).value() == expected);
        }
      }
    }
  });
}

namespace {

// What a device gives, by every way that data takes to it and back.
std::vector<std::vector<float>> results_of(const Device& device) {
  std::vector<std::vector<float>> all;
  BatchOptions options;
  options.matmul = MatmulKernel::naive;  // the quickest to compile
  MatmulCacheOptions cache_options;
  cache_options.kernel = MatmulKernel::naive;
  // Incremental, with an arena that is used again.
  Batch batch(device, options);
  for (int round = 0; round < 3; ++round) {
    const Tensor x = batch.upload(some(33 * 7, 1), {33, 7});
    const Tensor y = batch.keep(batch.linear(x, batch.upload(some(5 * 7, 2), {5, 7})));
    REQUIRE_OK(batch.execute());
    const Tensor z = batch.softmax(batch.add(y, batch.upload(some(5, 3))));
    REQUIRE_OK(batch.execute());
    all.push_back(read(batch, z));
    all.push_back(read(batch, y));
    batch.reset();
  }
  for (const DType type : {DType::f32, DType::bf16, DType::q4_0}) {
    const Weight weight = Weight::from(device, some(9 * 64, 4), 9, 64, type).value();
    Batch product(device, options);
    const Tensor x = product.upload(some(3 * 64, 5), {3, 64});
    all.push_back(run(product, product.linear(x, product.import_weight(weight))));
    MatmulCache cache(device, cache_options);
    REQUIRE_OK(cache.upload_weight("w", some(9 * 64, 4), 9, 64, type));
    for (const std::uint64_t m : {1u, 4u, 2u, 1u}) {
      all.emplace_back(m * 9);
      REQUIRE_OK(cache.matmul("w", some(m * 64, 6), all.back(), m));
    }
  }
  all.emplace_back(100);
  REQUIRE_OK(ops::add(device, some(100, 7), some(100, 8), all.back()));
  return all;
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "batches, weights and caches give the same in any memory", "[memory-types]") {
  std::map<AccessMode, std::vector<std::vector<float>>> own;
  for (AccessMode access : {AccessMode::automatic, AccessMode::pointer}) {
    DeviceOptions options = checked_options();
    options.access = access;
    if (const auto device = Device::open(options)) own[device->info().access] = results_of(*device);
  }
  auto same = [&](const Device& device) { CHECK(results_of(device) == own[device.info().access]); };
  in_worlds(incoherent_worlds(), same);
  // Addresses are written by the host, too.
  in_worlds({incoherent_worlds().front()}, same, {AccessMode::pointer});
  in_worlds(uncached_worlds(), same);
}

TEST_CASE_METHOD(DeviceTest, "uploads go straight into uncached memory, and results come back through a cached buffer",
                 "[memory-types]") {
  auto check = [](const Device& device) {
    CHECK_FALSE(device.info().mapped_memory);
    Batch batch(device);
    const Tensor y = batch.neg(batch.upload(counting(1000)));
    const MemoryNeeds needs = batch.predict_memory().value();
    CHECK(needs.upload_bytes == 0);
    CHECK(needs.readback_bytes != 0);
    CHECK(run(batch, y)[999] == -999.0f);
    CHECK(batch.stats().copy_commands == 1);
    CHECK(batch.stats().transfers_up == 1);
    CHECK(batch.stats().submits == 1);
    // Nothing is submitted to fill a buffer or a weight, and one copy to read it.
    const std::uint64_t before = device.stats().submits;
    Buffer buffer = Buffer::from(device, counting(5000)).value();
    REQUIRE_OK(buffer.write(std::vector<float>{-1, -2}, 7));
    const Weight weight = Weight::from(device, some(9 * 64, 4), 9, 64, DType::q4_0).value();
    CHECK(device.stats().submits == before);
    std::vector<float> expected = counting(5000);
    expected[7] = -1;
    expected[8] = -2;
    CHECK(buffer.read().value() == expected);
    CHECK(device.stats().submits == before + 1);
  };
  in_worlds(uncached_worlds(), check);
  DeviceOptions options = checked_options();
  options.simulate.uncached_memory = true;
  check(open_device(options));
}

TEST_CASE_METHOD(DeviceTest, "memory that the host cannot see is reached through staging", "[memory-types]") {
  in_worlds({{"a card", {local, visible | coherent, visible | coherent | cached}}}, [](const Device& device) {
    Batch batch(device);
    const Tensor y = batch.neg(batch.upload(counting(1000)));
    CHECK(run(batch, y)[999] == -999.0f);
    CHECK(batch.stats().copy_commands == 2);
  });
}

TEST_CASE_METHOD(DeviceTest, "two pieces of a staged transfer are in flight at once", "[memory-types]") {
  (void)shared_device();
  const Spy spy;
  DeviceOptions options = checked_options();
  options.simulate.staged_memory = true;
  const Device device = open_device(options);
  const std::vector<float> data = counting((std::size_t{9} << 20) + 5);  // 36 MiB: five pieces
  Buffer buffer = Buffer::create(device, {data.size()}).value();
  // The order of submits and waits.
  auto order = [&] {
    std::string text;
    for (std::uint64_t i = 0; i < spy.fallible_calls(); ++i) {
      const std::string call = spy.traced(i);
      if (call == "vkQueueSubmit") text += 's';
      if (call == "vkWaitSemaphores") text += 'w';
    }
    return text;
  };
  spy.reset();
  REQUIRE_OK(buffer.write(data));
  // One by one they would be "swswsw...". How many more waits there are is a matter of time.
  CHECK(order().substr(0, 2) == "ss");
  CHECK(device.stats().submits >= 5);
  spy.reset();
  CHECK(buffer.read().value() == data);
  CHECK(order().substr(0, 2) == "ss");
}

TEST_CASE_METHOD(DeviceTest, "host memory is imported as coherent memory or not at all", "[memory-types]") {
  (void)shared_device();
  const Spy spy;
  spy.memory_types({local | visible | cached});
  const Device device = open_device();
  const std::size_t page = vulkan::host_memory_alignment(device);
  if (page == 0) SKIP("the driver does not import host memory");
  void* memory = std::aligned_alloc(page, page);
  REQUIRE(memory != nullptr);
  const auto imported = vulkan::import_host_memory(device, memory, page, {8});
  CHECK(imported.error().code == Errc::unsupported);
  std::free(memory);
}

}  // namespace brontes::test
