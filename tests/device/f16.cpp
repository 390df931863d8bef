// f16 tensors: their bits arrive whole, casts round once and to nearest, and half the bytes move.
#include "fixture.hpp"
#include "reference.hpp"

#include "axpy.spv.h"
#include "weights/half.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace brontes::test {
namespace {

using Halves = std::vector<std::uint16_t>;

// Every half there is.
Halves all_halves() {
  Halves all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  return all;
}

// Every half, what lies in the middle between it and the next one, and the floats around that.
std::vector<float> edges() {
  std::vector<float> values;
  for (std::uint32_t i = 0; i < 0x7c00u; ++i) {
    const float low = weights::from_f16(static_cast<std::uint16_t>(i));
    const float high = i + 1 < 0x7c00u ? weights::from_f16(static_cast<std::uint16_t>(i + 1)) : 65536.0f;
    const float middle = low + (high - low) / 2;
    const float infinity = std::numeric_limits<float>::infinity();
    for (float x : {low, std::nextafter(middle, 0.0f), middle, std::nextafter(middle, infinity)}) {
      values.push_back(x);
      values.push_back(-x);
    }
  }
  for (float x : {65536.0f, 1e10f, std::numeric_limits<float>::max(), std::numeric_limits<float>::infinity(),
                  std::numeric_limits<float>::quiet_NaN(), 1e-40f, 0x1p-26f}) {
    values.push_back(x);
    values.push_back(-x);
  }
  return values;
}

Halves to_halves(const std::vector<float>& values) {
  Halves halves;
  for (float x : values) halves.push_back(weights::to_f16(x));
  return halves;
}

std::vector<float> to_floats(const Halves& halves) {
  std::vector<float> values;
  for (std::uint16_t x : halves) values.push_back(weights::from_f16(x));
  return values;
}

Halves read_f16(const Batch& batch, Tensor x) {
  auto values = batch.read_f16(x);
  REQUIRE_OK(values.error());
  return *values;
}

Halves run_f16(Batch& batch, Tensor x) {
  REQUIRE_OK(batch.execute());
  return read_f16(batch, x);
}

// Where they first differ: a list of all of them would be long.
std::string difference(const Halves& got, const Halves& want) {
  if (got.size() != want.size()) return std::to_string(got.size()) + " elements";
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] != want[i]) {
      return "element " + std::to_string(i) + " is " + std::to_string(got[i]) + " instead of " +
             std::to_string(want[i]);
    }
  }
  return "";
}

std::vector<float> random_halves(std::size_t count, std::uint64_t seed) {
  return cases::random_values(count, -4, 4, seed, DType::f16);
}

// Devices that reach memory in every way there is.
template <class Check>
void with_every_mode(Check check) {
  for (const AccessMode mode : {AccessMode::storage, AccessMode::texel, AccessMode::pointer}) {
    for (const bool staged : {false, true}) {
      DeviceOptions options = checked_options();
      options.access = mode;
      options.simulate.staged_memory = staged;
      const auto device = Device::open(options);
      if (!device && mode == AccessMode::pointer) continue;
      REQUIRE_OK(device.error());
      INFO(to_string(mode) << (staged ? ", staged" : ""));
      check(*device);
    }
  }
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "every half keeps its bits in every access mode, mapped or staged, fused or not",
                 "[f16]") {
  with_every_mode([](const Device& device) {
    for (const bool fuse : {false, true}) {
      BatchOptions options;
      options.fuse = fuse;
      Batch batch(device, options);
      const Tensor x = batch.keep(batch.upload_f16(all_halves()));
      CHECK(x.dtype() == DType::f16);
      const Tensor copied = batch.keep(batch.copy(x));
      const Tensor turned = batch.flatten(batch.transpose(batch.transpose(batch.reshape(copied, {256, 256}))));
      const Tensor reversed = batch.slice(batch.slice(x, {Range::reversed()}), {Range::reversed()});
      const Tensor mask = batch.fill_i32(1, {1});
      const Tensor chosen = batch.where(batch.cast(mask, DType::mask), x, batch.upload_f16({0.f}));
      REQUIRE_OK(batch.execute());
      for (const Tensor& t : {x, copied, turned, reversed, chosen}) {
        CHECK(t.dtype() == DType::f16);
        CHECK(difference(read_f16(batch, t), all_halves()) == "");
      }
    }
  });
}

TEST_CASE_METHOD(DeviceTest, "a cast from f16 is exact for every half", "[f16]") {
  with_every_mode([](const Device& device) {
    Batch batch(device);
    const std::vector<float> got = run(batch, batch.cast(batch.upload_f16(all_halves()), DType::f32));
    CHECK(cases::mismatch(got, to_floats(all_halves())) == "");
  });
}

TEST_CASE_METHOD(DeviceTest, "a cast to f16 rounds to nearest, ties to even, at every edge between two halves",
                 "[f16]") {
  const std::vector<float> x = edges();
  with_every_mode([&](const Device& device) {
    Batch batch(device);
    CHECK(difference(run_f16(batch, batch.cast(batch.upload(x), DType::f16)), to_halves(x)) == "");
  });
}

TEST_CASE_METHOD(DeviceTest, "upload_f16() rounds floats as cast() does", "[f16]") {
  const std::vector<float> x = edges();
  Batch batch(shared_device());
  const Tensor y = batch.upload_f16(x);
  REQUIRE_OK(batch.execute());
  CHECK(difference(read_f16(batch, y), to_halves(x)) == "");
  CHECK(cases::mismatch(read(batch, y), to_floats(to_halves(x))) == "");
}

TEST_CASE_METHOD(DeviceTest, "a value that is cast to f16 and used further is the rounded one, fused or not", "[f16]") {
  const std::vector<float> x = cases::random_values(1000, -4, 4, 1);
  for (const bool fuse : {false, true}) {
    BatchOptions options;
    options.fuse = fuse;
    Batch batch(shared_device(), options);
    const Tensor in = batch.upload(x);
    const Tensor error = batch.sub(in, batch.cast(in, DType::f16));
    CHECK(error.dtype() == DType::f32);
    const std::vector<float> got = run(batch, error);
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(got[i] == x[i] - weights::from_f16(weights::to_f16(x[i])));
  }
}

TEST_CASE_METHOD(DeviceTest, "whole numbers and masks are cast to and from f16", "[f16]") {
  Batch batch(shared_device());
  const std::vector<std::int32_t> whole = {0, 1, -2, 2047, 2049, 2051, 65504, 65519, 65520, -100000, 1 << 30};
  const Tensor from_i32 = batch.cast(batch.upload(whole), DType::f16);
  const Tensor mask = batch.cast(batch.upload(whole), DType::mask);
  const Tensor from_mask = batch.cast(mask, DType::f16);
  const Tensor halves = batch.upload_f16({-3.75f, 0.f, 1e-7f, 65504.f, HUGE_VALF, -HUGE_VALF, NAN});
  const Tensor to_i32 = batch.cast(halves, DType::i32);
  const Tensor to_mask = batch.cast(halves, DType::mask);
  REQUIRE_OK(batch.execute());
  Halves want;
  for (std::int32_t x : whole) want.push_back(weights::to_f16(static_cast<float>(x)));
  CHECK(read_f16(batch, from_i32) == want);
  CHECK(read(batch, from_mask) == std::vector<float>{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  CHECK(batch.read_i32(to_i32).value() == std::vector<std::int32_t>{-3, 0, 0, 65504, 2147483647, -2147483647 - 1, 0});
  CHECK(batch.read_i32(to_mask).value() == std::vector<std::int32_t>{1, 0, 1, 1, 1, 1, 1});
}

TEST_CASE_METHOD(DeviceTest, "what computes gives f32, what moves elements keeps f16", "[f16]") {
  Batch batch(shared_device());
  const Tensor h = batch.upload_f16({1.f, 2.f, 3.f, 4.f}, {2, 2});
  const Tensor f = batch.upload({1.f, 2.f, 3.f, 4.f}, {2, 2});
  const Tensor mask = batch.gt(h, f);
  const Tensor index = batch.upload_i32({1, 0});
  for (const Tensor& x : {batch.relu(h), batch.add(h, h), batch.add(h, f), batch.sum(h), batch.softmax(h),
                          batch.matmul(h, h), batch.cumsum(h), batch.where(mask, h, f), batch.cast(h, DType::f32)}) {
    CHECK(x.dtype() == DType::f32);
  }
  for (const Tensor& x : {batch.copy(h), batch.transpose(h), batch.slice(h, 0, {0, 1}), batch.expand(h, {3, 2, 2}),
                          batch.reshape(h, {4}), batch.concat({h, h}), batch.gather(h, index),
                          batch.update_rows(h, index, h), batch.where(mask, h, h), batch.cast(f, DType::f16)}) {
    CHECK(x.dtype() == DType::f16);
  }
  CHECK(mask.dtype() == DType::mask);
  CHECK(batch.argmax(h).dtype() == DType::i32);
  REQUIRE_OK(batch.execute());
}

TEST_CASE_METHOD(DeviceTest, "a chain that ends in a cast to f16 is one dispatch, and moves half the bytes", "[f16]") {
  const std::vector<float> x = random_halves(1 << 16, 3);
  auto record = [&](Batch& batch, bool half) {
    const Tensor in = half ? batch.upload_f16(x) : batch.upload(x);
    const Tensor y = batch.scale(batch.relu(in), 2);
    return half ? batch.cast(y, DType::f16) : batch.copy(y);
  };
  Batch wide(shared_device());
  Batch narrow(shared_device());
  const Tensor a = record(wide, false);
  const Tensor b = record(narrow, true);
  CHECK(cases::mismatch(run(wide, a), run(narrow, b)) == "");
  CHECK(narrow.stats().dispatches == 1);
  CHECK(narrow.stats().bytes_up * 2 == wide.stats().bytes_up);
  CHECK(narrow.stats().bytes_down * 2 == wide.stats().bytes_down);
  CHECK(narrow.stats().arena_bytes * 2 == wide.stats().arena_bytes);
}

TEST_CASE_METHOD(DeviceTest, "products, reductions and row ops end in f16 within their own dispatches", "[f16]") {
  const std::vector<float> x = random_halves(64 * 64, 5);
  auto dispatches = [&](auto op, bool half) {
    Batch batch(shared_device());
    const Tensor in = half ? batch.upload_f16(x, {64, 64}) : batch.upload(x, {64, 64});
    Tensor y = op(batch, in);
    if (half) y = batch.cast(y, DType::f16);
    REQUIRE_OK(batch.execute());
    return batch.stats().dispatches;
  };
  auto same = [&](auto op) { CHECK(dispatches(op, true) == dispatches(op, false)); };
  same([](Batch& b, Tensor t) { return b.gelu(b.linear(t, t)); });
  same([](Batch& b, Tensor t) { return b.softmax(b.scale(t, 2)); });
  same([](Batch& b, Tensor t) { return b.layer_norm(t); });
  same([](Batch& b, Tensor t) { return b.sum(t, {0}); });
  same([](Batch& b, Tensor t) { return b.mean(b.abs(t), {1}); });
}

TEST_CASE_METHOD(DeviceTest, "a buffer of f16 keeps its halves, written, stored and imported", "[f16][buffer]") {
  for (const bool staged : {false, true}) {
    DeviceOptions options = checked_options();
    options.simulate.staged_memory = staged;
    const Device device = open_device(options);
    const Buffer from = Buffer::from_f16(device, all_halves(), {256, 256}).value();
    CHECK(from.dtype() == DType::f16);
    CHECK(from.bytes() == 131072);
    CHECK(difference(from.read_f16().value(), all_halves()) == "");
    CHECK(cases::mismatch(from.read().value(), to_floats(all_halves())) == "");

    // An odd number, so that the last half shares a word with nothing.
    const std::vector<float> x = random_halves(1001, 7);
    Buffer into = Buffer::create(device, {1001}, DType::f16).value();
    CHECK(into.read_f16().value() == Halves(1001, 0));
    Batch batch(device);
    batch.store(batch.cast(batch.neg(batch.upload(x)), DType::f16), into);
    const Tensor after = batch.neg(batch.import_buffer(into));
    CHECK(cases::mismatch(run(batch, after), x) == "");

    REQUIRE_OK(into.write(std::vector<float>{1.f, 65520.f, 2049.f}, 3));
    REQUIRE_OK(into.write(Halves{0x7c01, 0x8001}, 999));
    Halves part(3);
    REQUIRE_OK(into.read(part, 3));
    CHECK(part == Halves{0x3c00, 0x7c00, 0x6800});
    std::vector<float> wide(2);
    REQUIRE_OK(into.read(wide, 999));
    CHECK(std::isnan(wide[0]));
    CHECK(wide[1] == -0x1p-24f);
    CHECK(into.read_f16().value()[6] == weights::to_f16(-x[6]));
    CHECK(Buffer::from_f16(device, x).value().read().value() == x);
  }
}

TEST_CASE_METHOD(DeviceTest, "slices of a buffer of f16 are stored without touching the halves beside them", "[f16]") {
  with_every_mode([](const Device& device) {
    const std::vector<float> start = random_halves(7 * 9, 11);
    const std::vector<Range> rows = {{1, 4}, {0, Range::past_last, 2}, Range::at(5), {2, 7, 3}};
    const std::vector<Range> columns = {{0, 9}, {3, 4}, {1, Range::past_last, 2}, {0, 8, 4}, Range::reversed()};
    for (const Range& row : rows) {
      for (const Range& column : columns) {
        const Buffer buffer = Buffer::from_f16(device, start, {7, 9}).value();
        const Buffer wide = Buffer::from(device, start, {7, 9}).value();
        Batch batch(device);
        const Tensor shape = batch.import_buffer(wide, {row, column});
        const Tensor x = batch.upload(random_halves(shape.size(), 13), shape.shape());
        // In two, of which the second begins in a word that the first has written.
        batch.store(batch.cast(x, DType::f16), buffer, {row, column});
        batch.store(x, wide, {row, column});
        batch.store(batch.upload_f16({9.f}), buffer, {Range::at(6), Range::at(8)});
        batch.store(batch.upload({9.f}), wide, {Range::at(6), Range::at(8)});
        REQUIRE_OK(batch.execute());
        CHECK(cases::mismatch(buffer.read().value(), wide.read().value()) == "");
      }
    }
  });
}

TEST_CASE_METHOD(DeviceTest, "stores of neighbouring halves share a gap and lose nothing", "[f16]") {
  const std::vector<float> x = random_halves(64, 17);
  const Buffer buffer = Buffer::create(shared_device(), {64}, DType::f16).value();
  Batch batch(shared_device());
  for (std::int64_t i = 0; i < 64; ++i) {
    batch.store(batch.upload_f16({x[static_cast<std::size_t>(i)]}), buffer, {Range::at(i)});
  }
  REQUIRE_OK(batch.execute());
  CHECK(buffer.read().value() == x);
}

TEST_CASE_METHOD(DeviceTest, "parts of any size are joined in f16, where they are made or copied", "[f16]") {
  for (const std::uint64_t n : {1u, 2u, 3u, 5u, 8u, 127u, 128u, 129u}) {
    for (const std::int64_t axis : {0, 1}) {
      const std::vector<float> a = random_halves(3 * n, n);
      const std::vector<float> b = random_halves(3 * n, n + 1);
      Batch narrow(shared_device());
      Batch wide(shared_device());
      const Tensor joined =
          narrow.concat({narrow.cast(narrow.neg(narrow.upload(a, {3, n})), DType::f16), narrow.upload_f16(b, {3, n}),
                         narrow.cast(narrow.upload(a, {3, n}), DType::f16)},
                        axis);
      const Tensor want =
          wide.concat({wide.neg(wide.upload(a, {3, n})), wide.upload(b, {3, n}), wide.upload(a, {3, n})}, axis);
      CHECK(joined.dtype() == DType::f16);
      CHECK(cases::mismatch(run(narrow, joined), run(wide, want)) == "");
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "a program's uploads of f16 are written as floats or as bits, and read as either",
                 "[f16]") {
  const std::vector<float> x = random_halves(10001, 19);
  for (const bool staged : {false, true}) {
    DeviceOptions options = checked_options();
    options.simulate.staged_memory = staged;
    const Device device = open_device(options);
    Batch batch(device);
    const Tensor in = batch.upload_f16(std::vector<float>(x.size()));
    const Tensor y = batch.cast(batch.neg(in), DType::f16);
    auto program = batch.compile();
    REQUIRE_OK(program.error());
    REQUIRE_OK(program->write(in, x));
    REQUIRE_OK(program->run());
    std::vector<float> negated;
    for (float v : x) negated.push_back(-v);
    CHECK(program->read(y).value() == negated);
    REQUIRE_OK(program->write(in, to_halves(negated)));
    REQUIRE_OK(program->run());
    CHECK(program->read_f16(y).value() == to_halves(x));
  }
}

TEST_CASE_METHOD(DeviceTest, "a kernel of your own finds f16 as f32, after a cast that the dump shows",
                 "[f16][kernel]") {
  struct {
    float a = 2;
    std::uint32_t n = 100;
  } params;
  KernelOptions options;
  options.name = "axpy";
  const auto kernel = Kernel::from_spirv(shared_device(), axpy_spv, options);
  REQUIRE_OK(kernel.error());
  const std::vector<float> x = random_halves(100, 31);
  Batch batch(shared_device());
  const Tensor in = batch.upload_f16(x);
  const Tensor y = batch.call(*kernel, {in, in}, {100}, kernel->groups_for(100), push_data(params));
  CHECK(contains(batch.dump(DumpFormat::text, DumpStage::recorded).value(), "f16_to_f32 %0 -> %1 [100]"));
  const std::vector<float> got = run(batch, y);
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == 3 * x[i]);
}

TEST_CASE_METHOD(DeviceTest, "what is not f16, or not a tensor of it, is refused with both types", "[f16][errors]") {
  const Device& device = shared_device();
  auto refused = [](Batch& batch, Errc code, const char* part) {
    const Error e = batch.clear_error();
    CHECK(e.code == code);
    INFO(e.message);
    CHECK(contains(e.message, part));
  };
  Batch batch(device);
  const Tensor h = batch.upload_f16({1.f, 2.f, 3.f});
  const Tensor f = batch.upload({1.f, 2.f, 3.f});
  const Tensor i = batch.upload_i32({1, 2, 3});
  const Buffer wide = Buffer::create(device, {3}).value();
  const Buffer narrow = Buffer::create(device, {3}, DType::f16).value();
  CHECK(!batch.add(h, i).valid());
  refused(batch, Errc::type_mismatch, "operand %0 is f16 and operand %2 is i32");
  CHECK(!batch.logical_not(h).valid());
  refused(batch, Errc::type_mismatch, "operand %0 is f16; expected mask");
  CHECK(!batch.concat({h, f}).valid());
  refused(batch, Errc::type_mismatch, "expected the same type");
  CHECK(!batch.gather(f, h).valid());
  refused(batch, Errc::type_mismatch, "is f16; expected i32");
  batch.store(h, wide);
  refused(batch, Errc::type_mismatch, "is f16 and the buffer is f32");
  batch.store(f, narrow);
  refused(batch, Errc::type_mismatch, "is f32 and the buffer is f16");
  CHECK(!batch.cast(h, DType::bf16).valid());
  refused(batch, Errc::invalid_argument, "cast: to bf16; expected f32, f16, i32 or mask");
  CHECK(!batch.upload_f16(Span<const float>(nullptr, 3)).valid());
  refused(batch, Errc::null_data, "a null pointer for 3 elements");
  CHECK(!batch.upload_f16(Span<const std::uint16_t>(nullptr, 3)).valid());
  refused(batch, Errc::null_data, "a null pointer for 3 elements");
  CHECK(!batch.upload_f16({1.f}, {2}).valid());
  refused(batch, Errc::shape_mismatch, "1 elements of data for shape [2]");
  REQUIRE_OK(batch.execute());
  CHECK(batch.read_f16(f).error().code == Errc::type_mismatch);
  CHECK(batch.read_i32(h).error().code == Errc::type_mismatch);
  CHECK(contains(batch.read_i32(h).error().message, "is f16 and the output is i32; use read()"));
  CHECK(wide.read_f16().error().code == Errc::type_mismatch);
  CHECK(Buffer::from_f16(device, Span<const float>(nullptr, 3)).error().code == Errc::null_data);
  CHECK(Buffer::create(device, {3}, DType::bf16).error().code == Errc::invalid_argument);
}

TEST_CASE_METHOD(DeviceTest, "a run with f16 passes its shadow check", "[f16]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload_f16(random_halves(40 * 24, 23), {40, 24});
  const Tensor w = batch.upload_f16(random_halves(8 * 24, 29), {8, 24});
  const Tensor h = batch.keep(batch.cast(batch.relu(batch.linear(x, w)), DType::f16));
  batch.softmax(h);
  batch.concat({batch.cast(batch.neg(h), DType::f16), h});
  auto program = batch.compile();
  REQUIRE_OK(program.error());
  const auto report = program->shadow_check();
  REQUIRE_OK(report.error());
  INFO(report->text());
  CHECK(report->ok);
  CHECK(report->checked >= 3);
}

}  // namespace brontes::test
