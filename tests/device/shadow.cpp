// The shadow check: what is right passes, whatever the plan makes of it, and what is wrong is named.
#include "fixture.hpp"
#include "on_devices.hpp"
#include "op_case.hpp"
#include "reference.hpp"
#include "spy.hpp"

#include <set>

namespace brontes::test {
namespace {

// Opcodes of SPIR-V.
constexpr std::uint32_t op_fadd = 129, op_fsub = 131, op_fmul = 133;

ShadowReport check(Batch& batch, const ShadowOptions& options = {}) {
  auto program = batch.compile();
  INFO((program ? "" : program.error().message));
  REQUIRE(program.has_value());
  auto report = program->shadow_check(options);
  INFO((report ? "" : report.error().message));
  REQUIRE(report.has_value());
  return *report;
}

void check_right(const ShadowReport& report) {
  INFO(report.text());
  CHECK(report.ok);
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "the shadow check finds nothing wrong with any case of any op", "[shadow]") {
  std::set<std::string> not_checked;
  std::uint64_t seed = 100;
  for (const auto& [name, room] : cases::op_cases()) {
    for (const cases::OpCase& c : room.cases()) {
      std::uint64_t elements = 0;
      for (const cases::Operand& o : c.operands) elements += o.shape.count();
      if (elements > 20'000) continue;
      INFO(c.name);
      Batch batch(shared_device());
      const cases::Data data = cases::random_data(c, ++seed);
      std::vector<Tensor> operands;
      for (std::size_t k = 0; k < data.size(); ++k) {
        operands.push_back(cases::upload(batch, data[k], c.operands[k].shape, c.operands[k].type));
      }
      const Tensor y = c.record(batch, operands);
      const ShadowReport report = check(batch);
      check_right(report);
      if (y.size() != 0 && batch.dump().value().find("\n#0") != std::string::npos) {
        CHECK(report.checked + report.not_checked.size() > 0);
      }
      not_checked.insert(report.not_checked.begin(), report.not_checked.end());
    }
  }
  CHECK(not_checked.empty());
}

TEST_CASE_METHOD(DeviceTest, "the shadow check follows fused chains, prologues, epilogues and views", "[shadow]") {
  on_devices([](const Device& device) {
    Batch batch(device);
    const Tensor x = batch.upload(cases::random_values(24 * 40, -2, 2, 7), {24, 40});
    const Tensor w = batch.upload(cases::random_values(40 * 24, -2, 2, 8), {40, 24});
    const Tensor b = batch.upload(cases::random_values(24, -2, 2, 9));
    const Tensor h = batch.gelu(batch.add(batch.matmul(x, w), b));
    const Tensor s = batch.softmax(batch.scale(h, 0.5f));
    const Tensor t = batch.exp(batch.slice(batch.permute(s, {1, 0}), {{3, 20}, {1, 9}}));
    (void)batch.keep(batch.add(batch.sum(batch.square(h)), batch.mean(t, Axes())));
    (void)batch.concat({batch.sigmoid(h), batch.tanh(s)}, 0);
    (void)batch.layer_norm(batch.mul(h, s));
    const ShadowReport report = check(batch);
    check_right(report);
    CHECK(report.checked >= 5);
    CHECK(report.not_checked.empty());
  });
}

TEST_CASE_METHOD(DeviceTest, "a value in a buffer that is stored to is checked as it was before", "[shadow]") {
  const Buffer state = Buffer::from(shared_device(), cases::random_values(100, -1, 1, 3)).value();
  Batch batch(shared_device());
  const Tensor old = batch.import_buffer(state);
  const Tensor next = batch.add(batch.scale(old, 0.5f), batch.upload(counting(100)));
  batch.store(next, state);
  (void)batch.keep(batch.sum(next));
  const ShadowReport report = check(batch);
  check_right(report);
  CHECK(report.checked >= 1);
}

TEST_CASE_METHOD(DeviceTest, "the first op with a broken kernel is named, with its worst element", "[shadow]") {
  const Spy spy;
  const Device device = open_device();
  BatchOptions unfused;
  unfused.fuse = false;
  Batch batch(device, unfused);
  const std::vector<float> data = {1, 2, 3, 40};
  const std::vector<float> other = {1, 1, 5, 1};
  const Tensor x = batch.upload(data);
  const Tensor y = batch.upload(other);
  const Tensor r = batch.relu(x);
  const Tensor bad = batch.add(r, y);
  (void)batch.keep(batch.neg(bad));

  spy.break_opcode(op_fadd, op_fsub);
  const ShadowReport report = check(batch);
  INFO(report.text());
  REQUIRE_FALSE(report.ok);
  CHECK(report.first.op == "add");
  CHECK(contains(report.first.kernel, "elementwise"));
  CHECK(report.first.wrong == 4);
  CHECK(report.first.elements == 4);
  CHECK(report.first.element == 2);
  CHECK(report.first.got == -2);
  CHECK(report.first.expected == 8);
  REQUIRE(report.first.inputs.size() == 2);
  for (const ShadowInput& in : report.first.inputs) {
    REQUIRE(in.has_element);
    CHECK((in.element == 3 || in.element == 5));
    CHECK(in.largest == (in.element == 3 ? 40 : 5));
  }
  // relu before it is right; what comes after it is not looked at.
  CHECK(report.checked == 2);
  CHECK(contains(report.text(), "add"));
  CHECK(contains(report.json(), "\"ok\": false"));
}

TEST_CASE_METHOD(DeviceTest, "a broken kernel of its own is found by its op", "[shadow]") {
  const Spy spy;
  const Device device = open_device();
  spy.break_opcode(op_fmul, op_fadd);
  Batch batch(device);
  const Tensor x = batch.upload(cases::random_values(20 * 30, -1, 1, 5), {20, 30});
  const Tensor w = batch.upload(cases::random_values(30 * 10, -1, 1, 6), {30, 10});
  (void)batch.softmax(batch.matmul(x, w));
  const ShadowReport report = check(batch);
  INFO(report.text());
  // Products of matrices may be written with fma(), which has no multiplication to break.
  REQUIRE_FALSE(report.ok);
  CHECK((contains(report.first.op, "matmul") || contains(report.first.op, "softmax")));
}

TEST_CASE_METHOD(DeviceTest, "what cannot be checked is named", "[shadow]") {
  const std::vector<float> weight = cases::random_values(64 * 8, -1, 1, 2);
  const Weight stored = Weight::from(shared_device(), weight, 8, 64, DType::q8_0).value();
  Batch batch(shared_device());
  const Tensor x = batch.upload(cases::random_values(3 * 64, -1, 1, 1), {3, 64});
  MatmulOptions options;
  options.layout = Layout::nk;
  (void)batch.relu(batch.matmul(x, batch.import_weight(stored), options));
  const ShadowReport report = check(batch);
  CHECK(report.ok);
  CHECK(report.checked == 0);
  CHECK(report.not_checked == std::vector<std::string>{"matmul: has a stored weight"});
}

TEST_CASE_METHOD(DeviceTest, "a sample of the dispatches can be checked, and none is refused", "[shadow]") {
  BatchOptions unfused;
  unfused.fuse = false;
  Batch batch(shared_device(), unfused);
  Tensor x = batch.upload(counting(50));
  for (int i = 0; i < 10; ++i) x = batch.offset(x, 1);
  auto program = batch.compile();
  REQUIRE(program.has_value());
  ShadowOptions options;
  options.every = 4;
  CHECK(program->shadow_check(options).value().checked == 3);
  CHECK(program->read(x).value()[0] == 10);
  options.every = 0;
  CHECK(program->shadow_check(options).error().code == Errc::invalid_argument);
  const Program taken = std::move(*program);
  CHECK(program->shadow_check().error().code == Errc::invalid_argument);
}

}  // namespace brontes::test
