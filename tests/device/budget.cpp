// A work budget splits a run over several submits; nothing else changes.
#include "fixture.hpp"
#include "reference.hpp"
#include "spy.hpp"

#include <cstring>
#include <limits>
#include <random>

namespace brontes::test {
namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

struct Run {
  std::vector<std::vector<float>> results;
  BatchStats stats;
};

struct Network {
  explicit Network(const Device& device, const BatchOptions& options)
      : state(Buffer::from(device, cases::random_values(24 * 24, -1, 1, 1), {24, 24}).value()), batch(device, options) {
    x = batch.upload(cases::random_values(40 * 24, -1, 1, 2), {40, 24});
    const Tensor s = batch.import_buffer(state);
    Tensor h = x;
    for (int i = 0; i < 4; ++i) {
      h = batch.gelu(batch.add(batch.matmul(h, s), batch.upload(cases::random_values(24, -1, 1, 3))));
      readable.push_back(batch.scale(batch.sum(h), 0.5f));
    }
    readable.push_back(batch.keep(h));
    readable.push_back(batch.max(batch.upload(cases::random_values(70000, -1, 1, 4))));
    batch.store(batch.tanh(batch.matmul(s, s)), state);
  }
  std::vector<std::vector<float>> results(const Program* program) const {
    std::vector<std::vector<float>> all;
    for (Tensor t : readable) all.push_back(program != nullptr ? program->read(t).value() : read(batch, t));
    all.push_back(state.read().value());
    return all;
  }

  Buffer state;
  Batch batch;
  Tensor x;
  std::vector<Tensor> readable;
};

BatchOptions with_budget(std::uint64_t budget, bool fuse = true) {
  BatchOptions options;
  options.work_per_submit = budget;
  options.fuse = fuse;
  options.matmul = MatmulKernel::naive;  // the quickest to compile
  return options;
}

DeviceOptions staged_options() {
  DeviceOptions options = checked_options();
  options.simulate.staged_memory = true;
  return options;
}

Run execute(const Device& device, const BatchOptions& options) {
  Network network(device, options);
  const std::uint64_t before = device.stats().submits;
  REQUIRE_OK(network.batch.execute());
  Run run{{}, network.batch.stats()};
  CHECK(device.stats().submits == before + run.stats.submits);
  run.results = network.results(nullptr);
  return run;
}

// Ops of all kinds on matrices of 24 by 24, each on results of earlier ones: the same for the same seed. All results
// can be read.
std::vector<std::vector<float>> run_random(const Device& device, const BatchOptions& options, unsigned seed,
                                           BatchStats& stats) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const Buffer state = Buffer::from(device, cases::random_values(24 * 24, -1, 1, seed), {24, 24}).value();
  Batch batch(device, options);
  std::vector<Tensor> made{batch.upload(cases::random_values(24 * 24, -1, 1, seed + 1), {24, 24}),
                           batch.import_buffer(state)};
  for (std::size_t i = 4 + below(12); i > 0; --i) {
    const Tensor x = made[below(made.size())];
    const Tensor y = made[below(made.size())];
    switch (below(10)) {
      case 0: made.push_back(batch.add(x, y)); break;
      case 1: made.push_back(batch.gelu(batch.scale(x, 0.75f))); break;
      case 2: made.push_back(batch.matmul(x, y)); break;
      case 3: made.push_back(batch.tanh(batch.linear(x, y))); break;
      case 4: made.push_back(batch.softmax(x)); break;
      case 5: made.push_back(batch.mul(x, batch.sum(y))); break;
      case 6: made.push_back(batch.transpose(x)); break;
      case 7: made.push_back(batch.cumsum(x, 0)); break;
      case 8: made.push_back(batch.sub(x, batch.slice(y, 0, {0, 1}))); break;
      default: batch.store(batch.sigmoid(x), state); break;
    }
  }
  for (std::size_t i = 2; i < made.size(); ++i) batch.keep(made[i]);
  REQUIRE_OK(batch.execute());
  stats = batch.stats();
  std::vector<std::vector<float>> results;
  for (std::size_t i = 2; i < made.size(); ++i) results.push_back(read(batch, made[i]));
  results.push_back(state.read().value());
  return results;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "a budget of one and no budget give the same bits", "[budget]") {
  const Device staged = open_device(staged_options());
  for (const Device* device : {&shared_device(), &staged}) {
    for (const bool fuse : {true, false}) {
      const Run whole = execute(*device, with_budget(0, fuse));
      const Run parts = execute(*device, with_budget(1, fuse));
      const Run endless = execute(*device, with_budget(unlimited, fuse));
      CHECK(whole.results == parts.results);
      CHECK(whole.results == endless.results);
      CHECK(whole.stats.submits == 1);
      CHECK(endless.stats.submits == 1);
      CHECK(parts.stats.submits == parts.stats.dispatches);
      CHECK(parts.stats.dispatches > whole.stats.dispatches);  // some are split themselves
      CHECK(parts.stats.transfers_up == 1);
      CHECK(parts.stats.transfers_down == 1);
      CHECK(parts.stats.copy_commands == whole.stats.copy_commands);
      CHECK(parts.stats.arena_bytes == whole.stats.arena_bytes);
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "random batches give the same bits however they are split", "[budget]") {
  std::size_t split = 0;
  for (unsigned seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    BatchStats whole, parts;
    const auto expected = run_random(shared_device(), with_budget(unlimited), seed, whole);
    for (const std::uint64_t budget : {1u, 300u, 5000u}) {
      const auto got = run_random(shared_device(), with_budget(budget), seed, parts);
      REQUIRE(got.size() == expected.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        CHECK(std::memcmp(got[i].data(), expected[i].data(), got[i].size() * sizeof(float)) == 0);  // NaN, too
      }
      split += parts.submits > whole.submits ? 1 : 0;
    }
  }
  CHECK(split > 60);
}

TEST_CASE_METHOD(DeviceTest, "a smaller budget never means fewer submits", "[budget]") {
  std::uint64_t last = unlimited;
  for (std::uint64_t budget : {1u, 100u, 10000u, 30000u, 100000u, 1000000u, 1000000000u}) {
    const Run run = execute(shared_device(), with_budget(budget));
    INFO(budget);
    CHECK(run.stats.submits <= last);
    CHECK(run.stats.submits >= 1);
    last = run.stats.submits;
  }
  CHECK(last == 1);
}

TEST_CASE_METHOD(DeviceTest, "a program keeps to its budget in every run", "[budget]") {
  const Device staged = open_device(staged_options());
  for (const Device* device : {&shared_device(), &staged}) {
    Network whole(*device, with_budget(0));
    Network parts(*device, with_budget(1));
    Program one = whole.batch.compile().value();
    Program many = parts.batch.compile().value();
    for (std::uint64_t i = 0; i < 5; ++i) {
      const std::vector<float> x = cases::random_values(40 * 24, -1, 1, i);
      REQUIRE_OK(one.write(whole.x, x));
      REQUIRE_OK(many.write(parts.x, x));
      REQUIRE_OK(one.run());
      REQUIRE_OK(many.run());
      CHECK(whole.results(&one) == parts.results(&many));  // the state too, which goes from run to run
    }
    CHECK(one.stats().submits == 5);
    CHECK(many.stats().submits == many.stats().dispatches);
    // Several split runs in flight.
    for (int i = 0; i < 5; ++i) {
      REQUIRE_OK(one.submit().error());
      REQUIRE_OK(many.submit().error());
    }
    CHECK(whole.results(&one) == parts.results(&many));
    CHECK(one.stats().submits == 10);
  }
}

TEST_CASE_METHOD(DeviceTest, "the dump shows where a run is split", "[budget]") {
  Network parts(shared_device(), with_budget(1));
  const std::string text = parts.batch.dump().value();
  const std::string json = parts.batch.dump(DumpFormat::json).value();
  REQUIRE_OK(parts.batch.execute());
  CHECK(count(text, "\nsubmit ") == parts.batch.stats().submits - 1);
  CHECK(contains(json, "\"submits\": [[0, 1"));
  Network whole(shared_device(), with_budget(0));
  CHECK(count(whole.batch.dump().value(), "\nsubmit ") == 0);
}

namespace {

BatchOptions with_milliseconds(std::uint32_t milliseconds) {
  BatchOptions options;
  options.milliseconds_per_submit = milliseconds;
  options.matmul = MatmulKernel::naive;
  return options;
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "a run that is estimated to take long is split, with the same bits", "[budget]") {
  // A fresh device knows nothing of its speed: both ops take some 4 ms by its guess.
  const std::vector<float> a = cases::random_values(2048 * 1024, -1, 1, 1);
  auto record = [&](Batch& batch) {
    return batch.softmax(batch.keep(batch.offset(batch.upload(a, {2048, 1024}), 1.0f)));
  };
  const Device device = open_device();
  Batch whole(device, with_milliseconds(BatchOptions::unlimited));
  const std::vector<float> expected = run(whole, record(whole));
  CHECK(whole.stats().submits == 1);
  Batch parts(device, with_milliseconds(1));
  const Tensor y = record(parts);
  const std::string text = parts.dump().value();
  CHECK(contains(text, "from row"));
  CHECK(run(parts, y) == expected);
  CHECK(parts.stats().submits > 5);
  CHECK(parts.stats().dispatches > whole.stats().dispatches);
  // Short runs stay whole under the same bound.
  Batch small(device, with_milliseconds(250));
  (void)run(small, small.neg(small.upload(counting(10000))));
  CHECK(small.stats().submits == 1);
}

TEST_CASE_METHOD(DeviceTest, "CPU drivers have no watchdog, and no bound unless one is given", "[budget]") {
  if (shared_device().info().type != DeviceType::cpu) SKIP("the device is no CPU driver");
  Batch batch(shared_device());
  // By the guess of a fresh device this takes a second and a half.
  Tensor x = batch.fill(1.0f, {1 << 20});
  for (int i = 0; i < 300; ++i) x = batch.keep(batch.sqrt(x));
  CHECK(batch.dump().value().find("submit") == std::string::npos);
  BatchOptions bound;
  bound.milliseconds_per_submit = 250;
  Batch bounded(shared_device(), bound);
  Tensor y = bounded.fill(1.0f, {1 << 20});
  for (int i = 0; i < 300; ++i) y = bounded.keep(bounded.sqrt(y));
  CHECK(contains(bounded.dump().value(), "\nsubmit 1\n"));
}

TEST_CASE_METHOD(DeviceTest, "the estimate gets better as runs are waited for", "[budget]") {
  const Device device = open_device();
  // 1.8 ms by the guess of a fresh device, which no CPU driver keeps to.
  auto submits = [&] {
    Batch batch(device, with_milliseconds(1));
    const Tensor x = batch.upload(cases::random_values(256 * 256, -1, 1, 1), {256, 256});
    const Tensor y = batch.upload(cases::random_values(256 * 128, -1, 1, 2), {256, 128});
    (void)batch.matmul(x, y);
    REQUIRE_OK(batch.execute());
    return batch.stats().submits;
  };
  const std::uint64_t first = submits();
  CHECK(first > 1);
  std::uint64_t last = first;
  for (int i = 0; i < 3; ++i) last = submits();
  CHECK(last != first);
}

TEST_CASE_METHOD(DeviceTest, "a split run is submitted by one call, or not at all", "[budget]") {
  (void)shared_device();
  const Spy spy;
  const Device device = open_device();
  const Buffer state = Buffer::from(device, counting(100000)).value();
  BatchOptions options;
  options.work_per_submit = 10000;
  Batch batch(device, options);
  batch.store(batch.offset(batch.import_buffer(state), 1.0f), state);
  spy.reset();
  spy.fail("vkQueueSubmit", 0, -2);
  CHECK(batch.execute().code == Errc::out_of_memory);
  spy.disarm();
  CHECK(state.read().value() == counting(100000));
  REQUIRE_OK(batch.execute());
  CHECK(spy.calls("vkQueueSubmit") == 2);
  CHECK(spy.calls("vkCmdDispatchBase") >= 10);
  CHECK(batch.stats().submits >= 10);
  std::vector<float> expected = counting(100000);
  for (float& e : expected) e += 1;
  CHECK(state.read().value() == expected);
}

TEST_CASE_METHOD(DeviceTest, "a budget and an empty batch are fine together", "[budget]") {
  Batch batch(shared_device(), with_budget(1));
  const Tensor x = batch.upload({1.f, 2.f});
  const Tensor none = batch.neg(batch.upload({}, {0}));
  REQUIRE_OK(batch.execute());
  CHECK(read(batch, x) == std::vector<float>{1, 2});
  CHECK(read(batch, none).empty());
  const Tensor y = batch.neg(x);
  CHECK(run(batch, y) == std::vector<float>{-1, -2});
}

}  // namespace brontes::test
