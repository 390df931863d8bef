// The same results on devices that can do less: staging instead of mapped memory, and lower limits.
#include "fixture.hpp"
#include "reference.hpp"

#include <functional>

namespace brontes::test {
namespace {

// A little of everything; results in a fixed order.
std::vector<std::vector<float>> representative(const Device& device) {
  const Buffer state = Buffer::from(device, counting(300), {3, 100}).value();
  const Buffer sink = Buffer::create(device, {3, 100}).value();
  Batch batch(device);
  const Tensor s = batch.import_buffer(state);
  const Tensor row = batch.upload(cases::random_integers(100, 9, 1));
  const Tensor shifted = batch.keep(batch.sub(s, row));
  const Tensor product = batch.matmul(shifted, batch.upload(cases::random_integers(100 * 17, 3, 2), {100, 17}));
  const Tensor weight = batch.linear(row, batch.upload(cases::random_integers(5 * 100, 3, 3), {5, 100}));
  const Tensor total = batch.sum(shifted);
  const Tensor top = batch.max(product);
  const Tensor activated = batch.sigmoid(batch.upload(cases::random_values(70001, -5, 5, 4)));
  const Tensor ones = batch.fill(1.0f, {70001});
  const Tensor counted = batch.dot(ones, ones);
  const Tensor untouched = batch.upload({1.f, 2.f, 3.f});
  batch.store(batch.neg(shifted), sink);
  const Tensor again = batch.scale(batch.import_buffer(sink), 0.5f);
  REQUIRE_OK(batch.execute());
  std::vector<std::vector<float>> results;
  for (Tensor t : {shifted, product, weight, total, top, activated, counted, untouched, again}) {
    if (t == product) continue;  // consumed by max
    results.push_back(read(batch, t));
  }
  const Tensor next = batch.offset(batch.mul(shifted, s), 1.0f);
  REQUIRE_OK(batch.execute());
  results.push_back(read(batch, next));
  results.push_back(sink.read().value());
  std::vector<float> part(7);
  REQUIRE_OK(sink.read(part, 200));
  results.push_back(part);
  return results;
}

void check_same(const Device& device) {
  const auto want = representative(shared_device());
  const auto got = representative(device);
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("result " << i);
    CHECK(cases::mismatch(got[i], want[i]) == "");
  }
}

Device open_simulated(const std::function<void(SimulatedLimits&)>& set) {
  DeviceOptions options = checked_options();
  set(options.simulate);
  return open_device(options);
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "staged memory gives the same results as mapped memory", "[modes]") {
  const Device device = open_simulated([](SimulatedLimits& limits) { limits.staged_memory = true; });
  CHECK_FALSE(device.info().mapped_memory);
  check_same(device);
}

TEST_CASE_METHOD(DeviceTest, "every access mode gives the same results", "[modes]") {
  CHECK(shared_device().info().access != AccessMode::automatic);
  for (const bool staged : {false, true}) {
    for (const AccessMode mode : {AccessMode::storage, AccessMode::texel, AccessMode::pointer}) {
      INFO(to_string(mode) << (staged ? " with staged memory" : ""));
      DeviceOptions options = checked_options();
      options.access = mode;
      options.simulate.staged_memory = staged;
      auto device = Device::open(options);
      if (!device && mode == AccessMode::pointer) {
        CHECK(device.error().code == Errc::unsupported);
        continue;
      }
      REQUIRE(device);
      CHECK(device->info().access == mode);
      check_same(*device);
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "a program with addresses can be replayed and bound to other buffers", "[modes]") {
  DeviceOptions options = checked_options();
  options.access = AccessMode::pointer;
  auto device = Device::open(options);
  if (!device) SKIP("no buffer device addresses, or no 64-bit integers");
  const Buffer first = Buffer::from(*device, counting(1003)).value();
  const Buffer second = Buffer::from(*device, std::vector<float>(1003, 5.0f)).value();
  Batch batch(*device);
  const Tensor x = batch.import_buffer(first);
  const Tensor y = batch.sum(batch.scale(x, 2.0f));
  Program program = batch.compile().value();
  REQUIRE_OK(program.run());
  CHECK(program.read(y).value()[0] == 1002.0f * 1003.0f);
  REQUIRE_OK(program.rebind(x, second));
  for (int i = 0; i < 3; ++i) {
    REQUIRE_OK(program.run());
    CHECK(program.read(y).value()[0] == 10030.0f);
  }
}

TEST_CASE_METHOD(DeviceTest, "devices without subgroup operations multiply all the same", "[modes][matmul]") {
  const Device device = open_simulated([](SimulatedLimits& limits) { limits.no_subgroup_operations = true; });
  CHECK(explain_matmul(device, 4, 4, 4).kernel != MatmulKernel::subgroup);
  check_same(device);
}

TEST_CASE_METHOD(DeviceTest, "devices whose subgroup size is not known multiply all the same, by other kernels",
                 "[modes][matmul]") {
  const Device device = open_simulated([](SimulatedLimits& limits) { limits.no_subgroup_size_control = true; });
  check_same(device);
  for (const MatmulKernel kernel : {MatmulKernel::subgroup, MatmulKernel::panel}) {
    Batch batch(device);
    const Tensor a = batch.upload(counting(64));
    (void)batch.matmul(a, a, 8, 8, 8, {1.0f, Layout::nk, kernel});
    const Error refused = batch.execute();
    CHECK(refused.code == Errc::unsupported);
    CHECK(contains(refused.message, "needs subgroups of a known size"));
    CHECK(explain_matmul(device, 64, 64, 64).kernel != kernel);
  }
}

TEST_CASE_METHOD(DeviceTest, "the kernels that each vendor's devices get multiply right", "[modes][matmul]") {
  for (const std::uint32_t vendor : {0x1002u, 0x106bu, 0x10deu, 0x13b5u, 0x5143u, 0x8086u}) {
    INFO("vendor " << vendor);
    const Device device = open_simulated([&](SimulatedLimits& limits) { limits.vendor_id = vendor; });
    for (const std::uint64_t m : {1u, 8u, 70u}) {
      const std::uint64_t k = 68, n = 132;
      const std::vector<float> a = cases::random_integers(m * k, 3, 1);
      const std::vector<float> b = cases::random_integers(k * n, 3, 2);
      Batch batch(device);
      const Tensor c = batch.matmul(batch.upload(a), batch.upload(b), m, k, n, {1.0f, Layout::nk});
      CHECK(cases::mismatch(run(batch, c), cases::matmul(a, b, m, k, n, Layout::nk), 0) == "");
    }
  }
  const Device intel = open_simulated([](SimulatedLimits& limits) { limits.vendor_id = 0x8086; });
  Batch batch(intel);
  const Tensor a = batch.upload(counting(64));
  MatmulOptions options;
  options.kernel = MatmulKernel::tiled;
  options.variant = 1;
  (void)batch.matmul(a, a, 8, 8, 8, options);
  CHECK(batch.execute().code == Errc::unsupported);
}

TEST_CASE_METHOD(DeviceTest, "a smaller subgroup than the device has, when simulated, changes no product",
                 "[modes][matmul]") {
  const Device device = open_simulated([](SimulatedLimits& limits) { limits.subgroup_size = 4; });
  check_same(device);
  for (const MatmulKernel kernel : {MatmulKernel::automatic, MatmulKernel::subgroup, MatmulKernel::panel}) {
    for (const Layout layout : {Layout::kn, Layout::nk}) {
      for (const std::uint64_t m : {std::uint64_t{1}, std::uint64_t{33}}) {
        const std::uint64_t k = 68, n = 1030;
        const std::vector<float> a = cases::random_integers(m * k, 3, 1);
        const std::vector<float> b = cases::random_integers(k * n, 3, 2);
        INFO(to_string(kernel) << " " << to_string(layout) << " m = " << m);
        Batch batch(device);
        const Tensor product = batch.matmul(batch.upload(a), batch.upload(b), m, k, n, {1.0f, layout, kernel});
        CHECK(cases::mismatch(run(batch, product), cases::matmul(a, b, m, k, n, layout), 0) == "");
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "staging copies once up and once down; mapped memory copies nothing", "[modes]") {
  const Device staged = open_simulated([](SimulatedLimits& limits) { limits.staged_memory = true; });
  Batch batch(staged);
  const Tensor a = batch.neg(batch.upload(counting(1000)));
  const Tensor b = batch.relu(batch.upload(counting(500)));
  REQUIRE_OK(batch.execute());
  CHECK(batch.stats().copy_commands == 2);
  CHECK(batch.stats().transfers_up == 1);
  CHECK(batch.stats().transfers_down == 1);
  CHECK(batch.stats().submits == 1);
  CHECK(read(batch, a)[999] == -999.0f);
  CHECK(read(batch, b)[499] == 499.0f);
  CHECK(batch.stats().submits == 1);

  if (shared_device().info().mapped_memory) {
    Batch mapped(shared_device());
    const Tensor y = mapped.neg(mapped.upload(counting(1000)));
    CHECK(run(mapped, y)[999] == -999.0f);
    CHECK(mapped.stats().copy_commands == 0);
    CHECK(mapped.stats().submits == 1);
  }
}

TEST_CASE_METHOD(DeviceTest, "CPU drivers have mapped memory", "[modes]") {
  if (shared_device().info().type != DeviceType::cpu) SKIP("the device is no CPU driver");
  CHECK(shared_device().info().mapped_memory);
}

TEST_CASE_METHOD(DeviceTest, "staged buffers larger than a staging piece arrive whole", "[modes]") {
  const Device device = open_simulated([](SimulatedLimits& limits) { limits.staged_memory = true; });
  const std::size_t n = (std::size_t{9} << 20) + 5;  // 36 MiB
  std::vector<float> data(n);
  for (std::size_t i = 0; i < n; ++i) data[i] = static_cast<float>(i % 16777213);
  Buffer buffer = Buffer::from(device, data).value();
  CHECK(cases::mismatch(buffer.read().value(), data) == "");
  REQUIRE_OK(buffer.write(std::vector<float>(3, -1.0f), n - 4));
  std::vector<float> end(5);
  REQUIRE_OK(buffer.read(end, n - 5));
  CHECK(end == std::vector<float>{data[n - 5], -1, -1, -1, data[n - 1]});
}

TEST_CASE_METHOD(DeviceTest, "a staged batch can be executed step by step, reset and used again", "[modes]") {
  const Device device = open_simulated([](SimulatedLimits& limits) { limits.staged_memory = true; });
  Batch batch(device);
  for (int round = 0; round < 3; ++round) {
    batch.reset();
    const Tensor x = batch.upload(counting(100));
    const Tensor y = batch.keep(batch.offset(x, static_cast<float>(round)));
    REQUIRE_OK(batch.execute());
    const Tensor z = batch.add(y, x);
    REQUIRE_OK(batch.execute());
    CHECK(read(batch, y)[99] == static_cast<float>(99 + round));
    CHECK(read(batch, z)[99] == static_cast<float>(198 + round));
  }
}

TEST_CASE_METHOD(DeviceTest, "small workgroups give the same results", "[modes]") {
  for (std::uint32_t size : {1u, 7u}) {
    INFO(size << " invocations");
    const Device device = open_simulated([=](SimulatedLimits& limits) { limits.max_group_invocations = size; });
    CHECK(device.info().max_group_invocations == size);
    check_same(device);
  }
}

TEST_CASE_METHOD(DeviceTest, "little shared memory gives the same results", "[modes]") {
  const Device device = open_simulated([](SimulatedLimits& limits) { limits.max_shared_bytes = 64; });
  CHECK(device.info().max_shared_bytes == 64);
  check_same(device);
}

TEST_CASE_METHOD(DeviceTest, "few groups and short loops together give the same results", "[modes]") {
  const Device device = open_simulated([](SimulatedLimits& limits) {
    limits.max_group_count = 29;
    limits.max_loop_iterations = 64;
    limits.staged_memory = true;
  });
  check_same(device);
}

TEST_CASE_METHOD(DeviceTest, "a kernel too large for the device is refused when forced, and avoided when not",
                 "[modes]") {
  const Device device = open_simulated([](SimulatedLimits& limits) {
    limits.max_shared_bytes = 256;
    limits.no_subgroup_operations = true;
  });
  Batch batch(device);
  const Tensor a = batch.fill(1, {32, 32});
  (void)batch.matmul(a, a, {1.0f, Layout::kn, MatmulKernel::tiled});
  const Error error = batch.execute();
  CHECK(error.code == Errc::unsupported);
  CHECK(contains(error.message, "tiled"));
  CHECK(contains(error.message, "256"));
  Batch second(device);
  const Tensor b = second.fill(1, {32, 32});
  CHECK(run(second, second.matmul(b, b)) == std::vector<float>(1024, 32.0f));
  CHECK(explain_matmul(device, 1024, 1024, 1024).kernel == MatmulKernel::naive);
}

TEST_CASE_METHOD(DeviceTest, "a small storage range refuses larger tensors and names the limit", "[modes]") {
  const Device device = open_simulated([](SimulatedLimits& limits) { limits.max_storage_range = 4096; });
  CHECK(device.info().max_storage_range == 4096);
  {
    Batch batch(device);
    const Tensor y = batch.neg(batch.upload(counting(1024)));
    CHECK(run(batch, y)[1023] == -1023.0f);
  }
  const std::function<Tensor(Batch&)> too_large[] = {
      [](Batch& b) { return b.upload(counting(1025)); },
      [](Batch& b) {
        return b.fill(0, {33, 32});
      },
      [](Batch& b) {
        return b.matmul(b.fill(1, {64, 2}), b.fill(1, {2, 64}));
      },
      [](Batch& b) {
        return b.add(b.fill(1, {64, 1}), b.fill(1, {64}));
      },
  };
  for (const auto& record : too_large) {
    Batch batch(device);
    CHECK_FALSE(record(batch).valid());
    INFO(batch.error().message);
    CHECK(batch.error().code == Errc::limit_exceeded);
    CHECK(contains(batch.error().message, "4096"));
    CHECK(contains(batch.error().message, "maxStorageBufferRange"));
  }
  CHECK(Buffer::create(device, {1025}).error().code == Errc::limit_exceeded);
  check_device_works(device);
}

TEST_CASE_METHOD(DeviceTest, "more groups than three axes hold is an error, not a wrong answer", "[modes]") {
  const Device device = open_simulated([](SimulatedLimits& limits) {
    limits.max_group_count = 1;
    limits.max_group_invocations = 4;
  });
  Batch batch(device);
  (void)batch.neg(batch.upload(counting(70001)));
  const Error error = batch.execute();
  CHECK(error.code == Errc::limit_exceeded);
  CHECK(contains(error.message, "groups"));
  check_device_works(device);
}

TEST_CASE_METHOD(DeviceTest, "simulated limits above the device's own change nothing", "[modes]") {
  const Device device = open_simulated([](SimulatedLimits& limits) {
    limits.max_group_count = ~0u;
    limits.max_group_invocations = ~0u;
    limits.max_shared_bytes = ~0u;
    limits.max_storage_range = ~std::uint64_t{0};
  });
  const DeviceInfo& own = shared_device().info();
  CHECK(device.info().max_group_count == own.max_group_count);
  CHECK(device.info().max_group_invocations == own.max_group_invocations);
  CHECK(device.info().max_shared_bytes == own.max_shared_bytes);
  CHECK(device.info().max_storage_range == own.max_storage_range);
}

}  // namespace brontes::test
