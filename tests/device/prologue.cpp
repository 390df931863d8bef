// Elementwise ops that run as a reduction or a row op loads its operand.
#include "fixture.hpp"
#include "reference.hpp"

#include <cmath>
#include <functional>
#include <limits>

namespace brontes::test {
namespace {

using Record = std::function<Tensor(Batch&, Tensor)>;
struct Op {
  const char* name;
  Record record;
};

std::vector<Op> ops_of(const Shape& shape) {
  const std::uint64_t n = shape[1];
  auto vector = [n](Batch& b, std::uint64_t seed) { return b.upload(cases::random_integers(n, 3, seed)); };
  auto whole = [shape](Batch& b) { return b.upload(cases::random_integers(shape.count(), 3, 7), shape); };
  return {{"sum", [](Batch& b, Tensor x) { return b.sum(x); }},
          {"min", [](Batch& b, Tensor x) { return b.min(x); }},
          {"dot", [=](Batch& b, Tensor x) { return b.dot(x, whole(b)); }},
          {"mean rows", [](Batch& b, Tensor x) { return b.mean(x, {1}); }},
          {"l2_norm columns", [](Batch& b, Tensor x) { return b.l2_norm(x, {0}); }},
          {"logsumexp rows", [](Batch& b, Tensor x) { return b.logsumexp(x, {1}); }},
          {"argmax rows", [](Batch& b, Tensor x) { return b.cast(b.argmax(x, 1), DType::f32); }},
          {"softmax rows", [](Batch& b, Tensor x) { return b.softmax(x, 1); }},
          {"log_softmax columns", [](Batch& b, Tensor x) { return b.log_softmax(x, 0); }},
          {"cumsum rows", [](Batch& b, Tensor x) { return b.cumsum(x, 1); }},
          {"cumsum columns", [](Batch& b, Tensor x) { return b.cumsum(x, 0); }},
          {"layer_norm", [=](Batch& b, Tensor x) { return b.layer_norm(x, vector(b, 3), vector(b, 4)); }},
          {"rms_norm", [](Batch& b, Tensor x) { return b.rms_norm(x); }}};
}

struct Outcome {
  std::vector<float> values;
  BatchStats stats;
};

Outcome outcome(const Device& device, bool fuse, const std::function<Tensor(Batch&)>& record) {
  BatchOptions options;
  options.fuse = fuse;
  Batch batch(device, options);
  const Tensor y = record(batch);
  return {run(batch, y), batch.stats()};
}

// Fused and unfused: the same bits, and a dispatch less for each of `ops`.
void check_fused(const Device& device, std::uint64_t ops, const std::function<Tensor(Batch&)>& record) {
  const Outcome apart = outcome(device, false, record);
  const Outcome together = outcome(device, true, record);
  CHECK(cases::mismatch(together.values, apart.values) == "");
  CHECK(together.stats.fused_operations >= ops);
  CHECK(together.stats.dispatches + ops <= apart.stats.dispatches);
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "a prologue broadcasts as elementwise ops do, on every op that takes one", "[prologue]") {
  for (const Shape& shape : {Shape(5, 7), Shape(6, 8)}) {
    for (const Shape& other : {shape, Shape(1), Shape(shape[1]), Shape(shape[0], 1)}) {
      // Whole vec4s matter to rows and columns only.
      if (shape[1] % 4 == 0 && (other == shape || other.count() == 1)) continue;
      for (const Op& op : ops_of(shape)) {
        INFO(op.name << " of " << to_string(shape) << " minus " << to_string(other));
        check_fused(shared_device(), 2, [&](Batch& b) {
          const Tensor x = b.upload(cases::random_integers(shape.count(), 9, 1), shape);
          const Tensor y = b.upload(cases::random_integers(other.count(), 9, 2), other);
          // The operand with all elements comes second.
          return op.record(b, b.scale(b.sub(y, x), 0.5f));
        });
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "a prologue is right on rows that are cut into slices and sums of several passes",
                 "[prologue]") {
  const Shape shape(2, 70001);
  for (const Op& op : ops_of(shape)) {
    INFO(op.name);
    check_fused(shared_device(), 2, [&](Batch& b) {
      const Tensor x = b.upload(cases::random_integers(shape.count(), 9, 1), shape);
      return op.record(b, b.abs(b.sub(x, b.upload(cases::random_integers(shape[1], 9, 2)))));
    });
  }
}

TEST_CASE_METHOD(DeviceTest, "what is loaded once is one dispatch and one pass over memory", "[prologue]") {
  Batch batch(shared_device());
  const Tensor a = batch.upload({1.0f, -2.0f, 3.0f, 5.0f});
  const Tensor b = batch.upload({2.0f, 2.0f, -1.0f, 4.0f});
  const Tensor squares = batch.sum(batch.square(a));
  const Tensor difference = batch.mean(batch.abs(batch.sub(a, b)), {0});
  const Tensor attention = batch.softmax(batch.add(batch.scale(a, 0.5f), b), 0);
  REQUIRE_OK(batch.execute());
  CHECK(batch.stats().dispatches == 3);
  CHECK(batch.stats().barriers == 0);
  CHECK(read(batch, squares) == std::vector<float>{39.0f});
  CHECK(read(batch, difference) == std::vector<float>{2.5f});
  CHECK(read(batch, attention)[3] > 0.9f);
}

TEST_CASE_METHOD(DeviceTest, "integers and masks may be what a prologue begins with", "[prologue]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload(std::vector<std::int32_t>{3, -4, 5});
  const Tensor total = batch.sum(batch.cast(x, DType::f32));
  const Tensor positive = batch.sum(batch.cast(batch.gt(x, batch.upload(std::vector<std::int32_t>{0})), DType::f32));
  const Tensor least = batch.argmin(batch.neg(x), 0);
  REQUIRE_OK(batch.execute());
  CHECK(batch.stats().dispatches == 3);
  CHECK(read(batch, total) == std::vector<float>{4.0f});
  CHECK(read(batch, positive) == std::vector<float>{2.0f});
  CHECK(batch.read_i32(least).value() == std::vector<std::int32_t>{2});
}

TEST_CASE_METHOD(DeviceTest, "NaN and infinities go through a prologue", "[prologue]") {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float special : {inf, -inf, nan}) {
    Batch batch(shared_device());
    const Tensor x = batch.upload({1.0f, special, 2.0f, 3.0f, 4.0f});
    const Tensor y = batch.sum(batch.sub(x, x));
    const Tensor z = batch.max(batch.abs(x));
    REQUIRE_OK(batch.execute());
    CHECK(std::isnan(read(batch, y)[0]));
    CHECK(cases::mismatch(read(batch, z), std::vector<float>{std::abs(special)}) == "");
  }
}

}  // namespace brontes::test
