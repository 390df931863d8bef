// A work budget splits a run over several submits; nothing else changes.
#include "fixture.hpp"
#include "reference.hpp"

#include <limits>

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
      CHECK(parts.stats.dispatches == whole.stats.dispatches);
      CHECK(parts.stats.transfers_up == 1);
      CHECK(parts.stats.transfers_down == 1);
      CHECK(parts.stats.copy_commands == whole.stats.copy_commands);
      CHECK(parts.stats.arena_bytes == whole.stats.arena_bytes);
    }
  }
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
  CHECK(contains(json, "\"submits\": [[0, 1], [1, 2]"));
  Network whole(shared_device(), with_budget(0));
  CHECK(count(whole.batch.dump().value(), "\nsubmit ") == 0);
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
