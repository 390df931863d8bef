// Running a batch: execution step by step, reset, and moving it about.
#include "fixture.hpp"
#include "reference.hpp"
#include "spy.hpp"

#include <catch2/generators/catch_generators.hpp>

#include <cmath>
#include <optional>

namespace brontes::test {

TEST_CASE_METHOD(DeviceTest, "a second execute with nothing new does nothing", "[batch]") {
  Batch batch(shared_device());
  const Tensor y = batch.relu(batch.upload({-1.f, 2.f}));
  REQUIRE_OK(batch.execute());
  const BatchStats once = batch.stats();
  REQUIRE_OK(batch.execute());
  const BatchStats twice = batch.stats();
  CHECK(twice.submits == once.submits);
  CHECK(twice.dispatches == once.dispatches);
  CHECK(twice.transfers_up == once.transfers_up);
  CHECK(twice.transfers_down == once.transfers_down);
  CHECK(read(batch, y) == std::vector<float>{0, 2});
}

TEST_CASE_METHOD(DeviceTest, "an execute runs and uploads only what is new", "[batch]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload(counting(1000));
  const Tensor y = batch.keep(batch.scale(x, 2.0f));
  REQUIRE_OK(batch.execute());
  const BatchStats first = batch.stats();
  CHECK(first.dispatches == 1);
  CHECK(first.bytes_up == 4000);

  const Tensor z = batch.add(y, batch.upload({0.5f}));
  REQUIRE_OK(batch.execute());
  const BatchStats second = batch.stats();
  CHECK(second.submits == first.submits + 1);
  CHECK(second.dispatches == first.dispatches + 1);
  CHECK(second.transfers_up == first.transfers_up + 1);
  CHECK(second.bytes_up == first.bytes_up + 4);
  CHECK(read(batch, z)[999] == 1998.5f);
  CHECK(read(batch, y)[999] == 1998.0f);
}

TEST_CASE_METHOD(DeviceTest, "a run counts the pipelines it binds, their SPIR-V and the fused programs", "[batch]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload(counting(1000));
  const Tensor fused = batch.scale(batch.relu(x), 2.0f);
  const Tensor alone = batch.sqrt(batch.upload(counting(500)));
  const Tensor again = batch.sqrt(batch.upload(counting(700)));
  REQUIRE_OK(batch.execute());
  const BatchStats stats = batch.stats();
  CHECK(stats.dispatches == 3);
  CHECK(stats.pipelines_used == 2);
  CHECK(stats.fused_programs == 1);
  CHECK(stats.spirv_bytes > 1000);
  CHECK(stats.spirv_bytes % 4 == 0);
  CHECK(read(batch, fused)[999] == 1998.0f);
  CHECK(read(batch, alone).size() + read(batch, again).size() == 1200);
}

TEST_CASE_METHOD(DeviceTest, "a device adds up what its runs have cost", "[batch]") {
  const Device& device = shared_device();
  Batch batch(device);
  const Tensor x = batch.upload(counting(1000));
  const Tensor y = batch.scale(batch.add(x, batch.max(x)), 2.0f);
  auto program = batch.compile();
  REQUIRE_OK(program.error());
  const BatchStats before = device.stats().runs;
  REQUIRE_OK(program->run());
  REQUIRE_OK(program->write(x, counting(1000)));
  REQUIRE_OK(program->run());
  REQUIRE(program->read(y)->at(1) == 2000.0f);
  const BatchStats after = device.stats().runs;
  const BatchStats own = program->stats();
  CHECK(after.submits - before.submits == 2);
  CHECK(after.dispatches - before.dispatches == own.dispatches);
  CHECK(after.barriers - before.barriers == own.barriers);
  CHECK(own.barriers > 0);
  CHECK(after.boundary_barriers - before.boundary_barriers == own.boundary_barriers);
  CHECK(after.bytes_up - before.bytes_up == 4000);
  CHECK(after.bytes_down - before.bytes_down == own.bytes_down);
  CHECK(after.transfers_down - before.transfers_down == own.transfers_down);
  CHECK(after.arena_bytes - before.arena_bytes == 2 * own.arena_bytes);
  CHECK(after.pipelines_used - before.pipelines_used == own.pipelines_used);
  CHECK(after.spirv_bytes - before.spirv_bytes == own.spirv_bytes);
}

TEST_CASE_METHOD(DeviceTest, "later ops may use earlier uploads, imports and readable results", "[batch]") {
  const Buffer buffer = Buffer::from(shared_device(), counting(3)).value();
  Batch batch(shared_device());
  const Tensor uploaded = batch.upload({1.f, 2.f, 3.f});
  const Tensor imported = batch.import_buffer(buffer);
  const Tensor result = batch.add(uploaded, imported);
  REQUIRE_OK(batch.execute());
  const Tensor next = batch.add(batch.mul(result, uploaded), imported);
  REQUIRE_OK(batch.execute());
  CHECK(read(batch, next) == std::vector<float>{1, 7, 17});
  const Tensor last = batch.sum(next);
  REQUIRE_OK(batch.execute());
  CHECK(read(batch, last) == std::vector<float>{25});
}

TEST_CASE_METHOD(DeviceTest, "a new op on a value that execution dropped is refused", "[batch]") {
  Batch batch(shared_device());
  const Tensor dropped = batch.relu(batch.upload({1.f, 2.f}));
  const Tensor y = batch.neg(dropped);
  REQUIRE_OK(batch.execute());
  const Tensor bad = batch.scale(dropped, 2.0f);
  CHECK_FALSE(bad.valid());
  const Error error = batch.execute();
  CHECK(error.code == Errc::not_kept);
  CHECK(contains(error.message, "scale"));
  CHECK(contains(error.message, "keep"));
  CHECK(read(batch, y) == std::vector<float>{-1, -2});
}

TEST_CASE_METHOD(DeviceTest, "executing step by step gives what executing at once gives", "[batch]") {
  const std::vector<float> data = cases::random_values(777, -1, 1, 5);
  std::vector<float> results[2];
  for (bool stepwise : {false, true}) {
    Batch batch(shared_device());
    Tensor x = batch.upload(data);
    for (int i = 0; i < 6; ++i) {
      x = batch.keep(batch.tanh(batch.scale(batch.add(x, x), 0.75f)));
      if (stepwise) REQUIRE_OK(batch.execute());
    }
    REQUIRE_OK(batch.execute());
    results[stepwise ? 1 : 0] = read(batch, x);
  }
  CHECK(results[0] == results[1]);
}

TEST_CASE_METHOD(DeviceTest, "executing an empty batch succeeds and submits nothing", "[batch]") {
  Batch batch(shared_device());
  REQUIRE_OK(batch.execute());
  CHECK(batch.stats().submits == 0);
}

TEST_CASE_METHOD(DeviceTest, "reset forgets everything and makes tensors stale", "[batch]") {
  Batch batch(shared_device());
  const Tensor old = batch.relu(batch.upload({1.f, 2.f}));
  REQUIRE_OK(batch.execute());
  batch.reset();
  CHECK(batch.num_operations() == 0);
  CHECK(batch.num_buffers() == 0);
  CHECK(batch.stats().submits == 0);
  CHECK(batch.stats().dispatches == 0);
  CHECK(batch.read(old).error().code == Errc::stale_tensor);

  // The same index exists again, and is another value.
  const Tensor fresh = batch.neg(batch.upload({5.f, 6.f}));
  CHECK(fresh != old);
  CHECK(run(batch, fresh) == std::vector<float>{-5, -6});
  CHECK(batch.read(old).error().code == Errc::stale_tensor);
  CHECK_FALSE(batch.relu(old).valid());
  CHECK(batch.error().code == Errc::stale_tensor);
  CHECK(contains(batch.error().message, "relu"));
}

TEST_CASE_METHOD(DeviceTest, "reset clears an error", "[batch]") {
  Batch batch(shared_device());
  (void)batch.relu(Tensor());
  CHECK(batch.error());
  batch.reset();
  CHECK_FALSE(batch.error());
  REQUIRE_OK(batch.execute());
}

TEST_CASE_METHOD(DeviceTest, "a batch keeps its memory over reset", "[batch]") {
  DeviceOptions options = checked_options();
  const auto [staged, access] = GENERATE(table<bool, AccessMode>(
      {{false, AccessMode::automatic}, {true, AccessMode::automatic}, {false, AccessMode::pointer}}));
  options.simulate.staged_memory = staged;
  options.access = access;
  const auto device = Device::open(options);
  if (!device && access == AccessMode::pointer) {
    CHECK(device.error().code == Errc::unsupported);
  } else {
    REQUIRE(device);
    Batch batch(*device);
    for (int i = 0; i < 4; ++i) {
      batch.reset();
      // Of about the same size each time; the third is larger than what is there.
      const std::size_t n = i == 2 ? 50000 : 20000 - static_cast<std::size_t>(i);
      std::vector<float> x = counting(n);
      const Tensor y = batch.neg(batch.upload(x));
      x.assign(n, 0.0f);
      REQUIRE_OK(batch.execute());
      const std::vector<float> got = read(batch, y);
      REQUIRE(got.size() == n);
      CHECK(got[n - 1] == -static_cast<float>(n - 1));
      CHECK(got[1] == -1.0f);
      if (device->info().mapped_memory) CHECK((batch.stats().allocations == 0) == (i == 1 || i == 3));
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "uploads after a reset are right wherever they land", "[batch]") {
  Batch batch(shared_device());
  // Sizes that fit what is there and that do not; uploads that can be read, which a plan wants in another place; one
  // that runs by a Program; two executions of one recording.
  const std::vector<float> long_one = counting(30000);
  for (int round = 0; round < 12; ++round) {
    INFO("round " << round);
    batch.reset();
    const std::size_t n = 1000 + 977 * static_cast<std::size_t>(round * 5 % 7);
    std::vector<float> a = counting(n);
    std::vector<float> b(n, static_cast<float>(round));
    const Tensor x = batch.upload(a);
    if (round % 3 == 1) batch.keep(x);
    const Tensor y = batch.upload(b);
    const Tensor unused = round % 4 == 2 ? batch.upload(long_one) : Tensor();
    const Tensor sum = batch.add(x, y);
    a.assign(n, -1.0f);
    b.assign(n, -1.0f);
    if (round % 5 == 3) {
      auto program = batch.compile();
      REQUIRE(program);
      REQUIRE_OK(program->run());
      CHECK(program->read(sum).value()[n - 1] == static_cast<float>(n - 1) + static_cast<float>(round));
    }
    REQUIRE_OK(batch.execute());
    const std::vector<float> got = read(batch, sum);
    REQUIRE(got.size() == n);
    CHECK(got[0] == static_cast<float>(round));
    CHECK(got[n - 1] == static_cast<float>(n - 1) + static_cast<float>(round));
    if (round % 3 == 1) CHECK(read(batch, x) == counting(n));
    if (unused.valid()) CHECK(read(batch, unused) == long_one);
    const Tensor again = batch.mul(batch.upload(std::vector<float>(n, 2.0f)), x);
    REQUIRE_OK(batch.execute());
    CHECK(read(batch, again)[n - 1] == 2 * static_cast<float>(n - 1));
  }
}

TEST_CASE_METHOD(DeviceTest, "uploads that landed survive an execution that fails", "[batch]") {
  Batch batch(shared_device());
  for (int round = 0; round < 3; ++round) {
    batch.reset();
    const Tensor y = batch.neg(batch.upload(counting(5000)));
    (void)batch.relu(Tensor());
    CHECK(batch.execute());
    CHECK(batch.clear_error());
    REQUIRE_OK(batch.execute());
    CHECK(read(batch, y)[4999] == -4999.0f);
  }
}

TEST_CASE_METHOD(DeviceTest, "an arena that uploads landed in makes room for a larger one", "[batch]") {
  DeviceOptions options = checked_options();
  options.memory_cap = std::uint64_t{3} << 20;
  const auto device = Device::open(options);
  REQUIRE(device);
  Batch batch(*device);
  constexpr std::size_t small = 100000;  // 0.8 of 3 MiB with its result
  REQUIRE_OK((batch.neg(batch.upload(counting(small))), batch.execute()));
  batch.reset();
  // Its first upload lands; with the second one it takes 2.4 MiB, and not both arenas fit.
  const Tensor x = batch.upload(counting(small));
  const Tensor y = batch.upload(std::vector<float>(2 * small, 1.0f));
  const Tensor sum = batch.sum(x);
  const Tensor other = batch.neg(y);
  REQUIRE_OK(batch.execute());
  CHECK(read(batch, other)[2 * small - 1] == -1.0f);
  CHECK(std::abs(static_cast<double>(read(batch, sum)[0]) - 4999950000.0) < 5e4);
}

TEST_CASE_METHOD(DeviceTest, "a batch that is recorded again makes no descriptor sets", "[batch]") {
  const AccessMode access = GENERATE(AccessMode::automatic, AccessMode::storage, AccessMode::pointer);
  const Spy spy;
  DeviceOptions options = checked_options();
  options.access = access;
  const auto device = Device::open(options);
  if (!device && access == AccessMode::pointer) {
    CHECK(device.error().code == Errc::unsupported);
    return;
  }
  REQUIRE(device);
  auto work = [&](std::size_t ops) {
    Batch batch(*device);
    const Tensor x = batch.upload(counting(64));
    std::vector<Tensor> all;
    for (std::size_t i = 0; i < ops; ++i) all.push_back(batch.offset(x, static_cast<float>(i)));
    const Tensor sum = batch.sum(batch.neg(x));
    REQUIRE_OK(batch.execute());
    CHECK(read(batch, all[ops - 1])[63] == 63 + static_cast<float>(ops - 1));
    CHECK(read(batch, sum)[0] == -2016.0f);
  };
  work(90);
  spy.reset();
  // As many, and fewer.
  work(90);
  work(40);
  CHECK(spy.calls("vkAllocateDescriptorSets") == 0);
  CHECK(spy.calls("vkCreateDescriptorPool") == 0);
  CHECK(spy.calls("vkResetDescriptorPool") == 0);
  // More than there are, beside those or instead of them.
  work(200);
  work(2000);
  CHECK(spy.calls("vkAllocateDescriptorSets") > 0);
}

TEST_CASE_METHOD(DeviceTest, "memory in use is not taken by the next recording", "[batch]") {
  Batch batch(shared_device());
  std::vector<Submission> submissions;
  for (int i = 0; i < 8; ++i) {
    batch.reset();
    const Tensor y = batch.scale(batch.upload(std::vector<float>(100000, 1.0f)), static_cast<float>(i));
    submissions.push_back(batch.submit().value());
    if (i == 7) CHECK(read(batch, y)[99999] == 7.0f);
  }
  for (const Submission& s : submissions) REQUIRE_OK(s.wait());
}

TEST_CASE_METHOD(DeviceTest, "a batch can be reset and used many times", "[batch]") {
  Batch batch(shared_device());
  for (int i = 0; i < 20; ++i) {
    batch.reset();
    const Tensor y = batch.offset(batch.upload(counting(500)), static_cast<float>(i));
    CHECK(run(batch, y)[499] == static_cast<float>(499 + i));
  }
  CHECK(batch.stats().submits == 1);
}

TEST_CASE_METHOD(DeviceTest, "a moved batch goes on where it was, and its tensors stay valid", "[batch]") {
  Batch first(shared_device());
  const Tensor x = first.upload({1.f, 2.f});
  Batch second(std::move(first));
  const Tensor y = second.neg(x);
  CHECK(run(second, y) == std::vector<float>{-1, -2});
  Batch third(shared_device());
  third = std::move(second);
  CHECK(read(third, y) == std::vector<float>{-1, -2});
}

TEST_CASE_METHOD(DeviceTest, "operations and values are counted as they are recorded", "[batch]") {
  Batch batch(shared_device());
  CHECK(batch.num_operations() == 0);
  CHECK(batch.num_buffers() == 0);
  const Tensor x = batch.upload({1.f, 2.f});
  CHECK(batch.num_operations() == 0);
  CHECK(batch.num_buffers() == 1);
  const Tensor y = batch.relu(x);
  (void)batch.add(x, y);
  CHECK(batch.num_operations() == 2);
  CHECK(batch.num_buffers() == 3);
  (void)batch.relu(Tensor());
  CHECK(batch.num_operations() == 2);
  CHECK(batch.num_buffers() == 3);
  CHECK(batch.stats().operations == 2);
  CHECK(batch.stats().values == 3);
}

TEST_CASE_METHOD(DeviceTest, "dump shows what would run, and that nothing would after execute", "[batch]") {
  Batch batch(shared_device());
  (void)batch.relu(batch.scale(batch.upload({1.f, 2.f}), 3.0f));
  const Result<std::string> before = batch.dump();
  REQUIRE_OK(before.error());
  CHECK(contains(*before, "relu"));
  CHECK(contains(*before, "scale"));
  CHECK(contains(*before, "barrier"));
  REQUIRE_OK(batch.execute());
  const Result<std::string> after = batch.dump();
  REQUIRE_OK(after.error());
  CHECK_FALSE(contains(*after, "relu"));
}

TEST_CASE_METHOD(DeviceTest, "what was recorded can be dumped before anything is planned", "[batch]") {
  Batch batch(shared_device());
  const Buffer weights = Buffer::create(shared_device(), {2}).value();
  const Tensor x = batch.upload({1.f, 2.f});
  const Tensor w = batch.import_buffer(weights);
  const Tensor y = batch.keep(batch.scale(batch.mul(x, w), 3.0f));
  batch.store(batch.relu(y), weights);
  const std::string expected = R"(recorded: 4 ops, 2 inputs
upload %0 [2]
import %1 [2] in buffer 0
mul %0, %1 -> %2 [2]
scale %2, 3 -> %3 [2] keep
relu %3 -> %4 [2]
store %4 -> buffer 0
)";
  CHECK(batch.dump(DumpFormat::text, DumpStage::recorded).value() == expected);
  CHECK(batch.dump(DumpFormat::dot, DumpStage::recorded).value().rfind("digraph recorded {", 0) == 0);
  CHECK(contains(batch.dump(DumpFormat::json, DumpStage::recorded).value(), "\"stage\": \"recorded\""));

  // An op that is refused is not in it, and does not stand in its way.
  (void)batch.relu(Tensor());
  CHECK(batch.dump().error().code == Errc::invalid_tensor);
  CHECK(batch.dump(DumpFormat::text, DumpStage::recorded).value() == expected);
  (void)batch.clear_error();
  REQUIRE_OK(batch.execute());
  CHECK(batch.dump(DumpFormat::text, DumpStage::recorded).value() == "recorded: 0 ops, 0 inputs\n");
}

TEST_CASE_METHOD(DeviceTest, "a batch outlives its device object", "[batch]") {
  std::optional<Device> device = open_device();
  Batch batch(*device);
  const Buffer buffer = Buffer::from(*device, counting(10)).value();
  const Tensor y = batch.neg(batch.import_buffer(buffer));
  device.reset();
  CHECK(run(batch, y)[9] == -9.0f);
  CHECK(buffer.read().value() == counting(10));
}

TEST_CASE_METHOD(DeviceTest, "a small MLP agrees with double precision", "[batch]") {
  const std::uint64_t rows = 9, in = 33, hidden = 65, out = 10;
  const std::vector<float> x = cases::random_values(rows * in, -1, 1, 1);
  const std::vector<float> w1 = cases::random_values(hidden * in, -0.5f, 0.5f, 2);
  const std::vector<float> b1 = cases::random_values(hidden, -0.5f, 0.5f, 3);
  const std::vector<float> w2 = cases::random_values(out * hidden, -0.5f, 0.5f, 4);
  const std::vector<float> b2 = cases::random_values(out, -0.5f, 0.5f, 5);
  Batch batch(shared_device());
  const Tensor h =
      batch.relu(batch.linear(batch.upload(x, {rows, in}), batch.upload(w1, {hidden, in}), batch.upload(b1)));
  const Tensor y = batch.linear(h, batch.upload(w2, {out, hidden}), batch.upload(b2));
  const std::vector<float> got = run(batch, y);
  REQUIRE(got.size() == rows * out);
  for (std::uint64_t r = 0; r < rows; ++r) {
    std::vector<double> activations(hidden);
    for (std::uint64_t j = 0; j < hidden; ++j) {
      double total = static_cast<double>(b1[j]);
      for (std::uint64_t i = 0; i < in; ++i)
        total += static_cast<double>(x[r * in + i]) * static_cast<double>(w1[j * in + i]);
      activations[j] = total < 0 ? 0 : total;
    }
    for (std::uint64_t j = 0; j < out; ++j) {
      double total = static_cast<double>(b2[j]);
      for (std::uint64_t i = 0; i < hidden; ++i) total += activations[i] * static_cast<double>(w2[j * hidden + i]);
      CHECK(cases::close(got[r * out + j], total, {1e-5, 1e-5}));
    }
  }
}

}  // namespace brontes::test
