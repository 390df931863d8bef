// Every case of every op with a kernel of its own: against double precision, at special values, with fences around what
// it may touch.
#include "fixture.hpp"
#include "op_case.hpp"

#include <cmath>
#include <limits>

namespace brontes::test {
namespace {

constexpr float poison = std::numeric_limits<float>::quiet_NaN();

// Records the case between tensors that nobody may read or write, and gives what went wrong.
class Fenced {
 public:
  explicit Fenced(const Device& device, const BatchOptions& options = {}) : batch_(device, options) {}

  void add(const cases::OpCase& c, const cases::Data& data) {
    fence();
    std::vector<Tensor> operands;
    for (std::size_t i = 0; i < c.operands.size(); ++i) {
      operands.push_back(cases::upload(batch_, data[i], c.operands[i].shape, c.operands[i].type));
      fence();
    }
    // Results lie side by side in the order they are made.
    fills_.push_back(batch_.fill(7.25f, Shape(5)));
    results_.push_back(c.record(batch_, operands));
    fills_.push_back(batch_.fill(7.25f, Shape(5)));
    expected_.push_back(c.reference(data));
    names_.push_back(c.name);
  }

  std::vector<std::string> run() {
    std::vector<std::string> wrong;
    if (const Error e = batch_.execute()) return {e.message};
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const std::string what = cases::mismatch(batch_, results_[i], expected_[i]);
      if (!what.empty()) wrong.push_back(names_[i] + ": " + what);
    }
    for (const Tensor& t : fences_) {
      for (float x : read(batch_, t)) {
        if (!std::isnan(x)) wrong.push_back("a fence was written to");
      }
    }
    for (const Tensor& t : fills_) {
      for (float x : read(batch_, t)) {
        if (x != 7.25f) wrong.push_back("something beside a result was written to");
      }
    }
    return wrong;
  }

 private:
  void fence() { fences_.push_back(batch_.keep(batch_.upload(std::vector<float>(5, poison)))); }

  Batch batch_;
  std::vector<Tensor> fences_, fills_, results_;
  std::vector<cases::Expected> expected_;
  std::vector<std::string> names_;
};

using Change = cases::OpCase (*)(cases::OpCase);
cases::OpCase as_it_is(cases::OpCase c) { return c; }
cases::OpCase with_halves_throughout(cases::OpCase c) {
  return cases::with_half_result(cases::with_halves(std::move(c)));
}

// One case of so many, from the first or a later one on.
struct Some {
  std::size_t first = 0;
  std::size_t of = 1;
};

void check(const Device& device, bool special, Change change = as_it_is, Some some = {}) {
  for (const cases::NamedCaseRoom& room : cases::op_cases()) {
    Fenced batch(device);
    std::uint64_t seed = 1;
    const std::vector<cases::OpCase> all = room.room.cases();
    for (std::size_t i = some.first; i < all.size(); i += some.of) {
      const cases::OpCase c = change(all[i]);
      if (special && !c.special_values) continue;
      batch.add(c, special ? cases::special_data(c, seed) : cases::random_data(c, seed));
      seed += 10;
    }
    INFO("room " << room.name);
    for (const std::string& what : batch.run()) FAIL_CHECK(what);
  }
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "every op gives what double precision gives, and touches nothing else", "[ops]") {
  check(shared_device(), false);
}

TEST_CASE_METHOD(DeviceTest, "every op is right at NaN, infinities, denormals and large numbers", "[ops]") {
  check(shared_device(), true);
}

// Every pipeline is another one with f16, and they take longer to compile than to run: some of the cases each.
TEST_CASE_METHOD(DeviceTest, "every op takes f16 for f32, and gives what double precision gives for it", "[ops][f16]") {
  for (const bool special : {false, true}) check(shared_device(), special, cases::with_halves, {0, 3});
}

TEST_CASE_METHOD(DeviceTest, "every op whose result is cast to f16 rounds it once, and writes nothing else",
                 "[ops][f16]") {
  for (const bool special : {false, true}) check(shared_device(), special, with_halves_throughout, {1, 5});
}

TEST_CASE_METHOD(DeviceTest, "every op takes and gives f16 in every access mode, on small grids and with short loops",
                 "[ops][f16]") {
  for (const AccessMode mode : {AccessMode::storage, AccessMode::texel, AccessMode::pointer}) {
    DeviceOptions options = checked_options();
    options.access = mode;
    options.simulate.max_group_count = 7;
    options.simulate.max_loop_iterations = 64;
    const auto device = Device::open(options);
    if (!device && mode == AccessMode::pointer) continue;
    REQUIRE_OK(device.error());
    INFO(to_string(mode));
    // SwiftShader takes more than 10 GB of memory to compile some of them; it never gets this mode unasked.
    if (mode == AccessMode::texel && device->info().driver.find("SwiftShader") != std::string::npos) continue;
    check(*device, false, with_halves_throughout, {static_cast<std::size_t>(mode), 13});
  }
}

TEST_CASE_METHOD(DeviceTest, "every op is right on small grids, with short loops and small workgroups", "[ops]") {
  DeviceOptions options = checked_options();
  options.simulate.max_group_count = 7;
  options.simulate.max_loop_iterations = 64;
  check(open_device(options), false);
}

TEST_CASE_METHOD(DeviceTest, "every op gives the same bits whatever its neighbours are, fused or not", "[ops]") {
  for (const cases::NamedCaseRoom& room : cases::op_cases()) {
    for (const cases::OpCase& c : room.room.cases()) {
      const cases::Data data = cases::random_data(c, 5);
      std::vector<std::vector<float>> results;
      for (const bool fuse : {false, true}) {
        BatchOptions options;
        options.fuse = fuse;
        Batch batch(shared_device(), options);
        std::vector<Tensor> operands;
        for (std::size_t i = 0; i < data.size(); ++i) {
          const Tensor x = cases::upload(batch, data[i], c.operands[i].shape, c.operands[i].type);
          operands.push_back(x.dtype() == DType::mask ? batch.logical_not(batch.logical_not(x))
                                                      : batch.neg(batch.neg(x)));
        }
        const Tensor result = c.record(batch, operands);
        const Tensor y = result.dtype() == DType::mask  ? batch.cast(batch.logical_not(result), DType::f32)
                         : result.dtype() == DType::i32 ? batch.cast(batch.neg(batch.abs(result)), DType::f32)
                                                        : batch.neg(batch.abs(result));
        results.push_back(run(batch, y));
      }
      INFO(c.name);
      CHECK(cases::mismatch(results[1], results[0]) == "");
    }
  }
}

}  // namespace brontes::test
