// Integers and masks: their bits arrive whole wherever they go, and what is computed with them is exact.
#include "fixture.hpp"
#include "reference.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

namespace brontes::test {
namespace {

using Ints = std::vector<std::int32_t>;
constexpr std::int32_t lowest = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t highest = std::numeric_limits<std::int32_t>::max();

// The limits, and what would be NaN, signalling or not, infinite, denormal or -0 if it were a float.
const Ints& extremes() {
  static const Ints values = {lowest,     lowest + 1, -1,         0,           1,           highest,    highest - 1,
                              0x7fc00000, 0x7f800001, 0x7f800000, -0x00400000, -0x007fffff, 0x00000fff, 0x007fffff,
                              0x00800000, 16777217,   -16777217,  0x3f800000,  12345,       -65536,     0x5a5a5a5a};
  return values;
}

Ints read_i32(const Batch& batch, Tensor x) {
  auto values = batch.read_i32(x);
  REQUIRE_OK(values.error());
  return *values;
}

Ints run_i32(Batch& batch, Tensor x) {
  REQUIRE_OK(batch.execute());
  return read_i32(batch, x);
}

std::vector<AccessMode> all_modes() { return {AccessMode::storage, AccessMode::texel, AccessMode::pointer}; }

// Every pair of extreme integers.
struct Pairs {
  Ints x, y;
};
Pairs pairs() {
  Pairs all;
  for (std::int32_t a : extremes()) {
    for (std::int32_t b : extremes()) {
      all.x.push_back(a);
      all.y.push_back(b);
    }
  }
  return all;
}

std::int32_t wrap(std::int64_t x) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(x)); }

std::int64_t floor_quotient(std::int64_t x, std::int64_t y) {
  return y == 0 ? 0 : x / y - ((x % y != 0 && (x % y < 0) != (y < 0)) ? 1 : 0);
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "integers keep their bits in every access mode, mapped or staged, fused or not",
                 "[types]") {
  for (const AccessMode mode : all_modes()) {
    for (const bool staged : {false, true}) {
      DeviceOptions device_options = checked_options();
      device_options.access = mode;
      device_options.simulate.staged_memory = staged;
      auto device = Device::open(device_options);
      if (!device && mode == AccessMode::pointer) continue;
      REQUIRE(device);
      for (const bool fuse : {false, true}) {
        INFO(to_string(mode) << (staged ? ", staged" : "") << (fuse ? ", fused" : ""));
        BatchOptions options;
        options.fuse = fuse;
        Batch batch(*device, options);
        const Tensor x = batch.keep(batch.upload(extremes()));
        const Tensor copied = batch.keep(batch.copy(x));
        const Tensor chained = batch.neg(batch.neg(copied));
        const Tensor viewed = batch.flatten(batch.copy(batch.reshape(x, {3, 7})));
        const Tensor all = batch.eq(x, x);
        const Tensor chosen = batch.where(all, batch.reshape(copied, {21}), batch.fill_i32(5, {21}));
        const Tensor other = batch.where(batch.logical_not(all), batch.fill_i32(5, {1}), chained);
        REQUIRE_OK(batch.execute());
        for (const Tensor& t : {x, copied, viewed, chosen, other}) {
          CHECK(t.dtype() == DType::i32);
          CHECK(read_i32(batch, t) == extremes());
        }
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "a filled integer keeps its bits", "[types]") {
  Batch batch(shared_device());
  std::vector<Tensor> filled;
  for (std::int32_t value : extremes()) filled.push_back(batch.fill_i32(value, {5}));
  REQUIRE_OK(batch.execute());
  for (std::size_t i = 0; i < filled.size(); ++i) CHECK(read_i32(batch, filled[i]) == Ints(5, extremes()[i]));
}

TEST_CASE_METHOD(DeviceTest, "integers keep their bits as the epilogue's operands of a product", "[types]") {
  // eye * 3 + ..., chosen among by a mask.
  Batch batch(shared_device());
  const Tensor ones = batch.fill(1, {21, 1});
  const Tensor product = batch.matmul(ones, batch.fill(1, {1, 1}));
  const Tensor positive = batch.gt(batch.reshape(product, {21}), batch.fill(0, {1}));
  const Tensor y = batch.where(positive, batch.upload(extremes()), batch.fill_i32(0, {1}));
  CHECK(run_i32(batch, y) == extremes());
}

TEST_CASE_METHOD(DeviceTest, "a buffer of integers keeps them, written, stored and imported", "[types][buffer]") {
  for (const bool staged : {false, true}) {
    DeviceOptions options = checked_options();
    options.simulate.staged_memory = staged;
    const Device device = open_device(options);
    const Buffer from = Buffer::from(device, extremes(), {3, 7}).value();
    Buffer into = Buffer::create(device, {21}, DType::i32).value();
    CHECK(from.dtype() == DType::i32);
    CHECK(from.shape() == Shape(3, 7));
    CHECK(from.read_i32().value() == extremes());
    CHECK(into.read_i32().value() == Ints(21, 0));
    Batch batch(device);
    const Tensor x = batch.import_buffer(from);
    CHECK(x.dtype() == DType::i32);
    batch.store(batch.neg(x), into);
    REQUIRE_OK(batch.execute());
    CHECK(read_i32(batch, x) == extremes());
    Ints negated = extremes();
    for (std::int32_t& v : negated) v = wrap(-std::int64_t{v});
    CHECK(into.read_i32().value() == negated);
    REQUIRE_OK(into.write(Ints{7, lowest}, 3));
    Ints part(3);
    REQUIRE_OK(into.read(part, 2));
    CHECK(part == Ints{negated[2], 7, lowest});
  }
}

TEST_CASE_METHOD(DeviceTest, "a buffer of masks takes what comparisons give", "[types][buffer]") {
  Buffer buffer = Buffer::create(shared_device(), {4}, DType::mask).value();
  CHECK(buffer.read_i32().value() == Ints(4, 0));
  Batch batch(shared_device());
  batch.store(batch.ge(batch.upload({-1.f, 0.f, 1.f, NAN}), batch.fill(0, {1})), buffer);
  REQUIRE_OK(batch.execute());
  CHECK(buffer.read_i32().value() == Ints{0, 1, 1, 0});
  const Tensor y = batch.where(batch.import_buffer(buffer), batch.upload_i32({1, 2, 3, 4}), batch.fill_i32(9, {4}));
  CHECK(run_i32(batch, y) == Ints{9, 2, 3, 9});
  const Error error = buffer.write(Ints{1});
  CHECK(error.code == Errc::type_mismatch);
  CHECK(contains(error.message, "mask"));
}

TEST_CASE_METHOD(DeviceTest, "a program takes and gives integers", "[types]") {
  const Buffer first = Buffer::from(shared_device(), Ints(21, 1)).value();
  const Buffer second = Buffer::from(shared_device(), extremes()).value();
  const Buffer floats = Buffer::create(shared_device(), {21}).value();
  Batch batch(shared_device());
  const Tensor x = batch.upload(Ints(21, 0));
  const Tensor window = batch.import_buffer(first);
  const Tensor y = batch.max(x, window);
  const Tensor mask = batch.lt(x, window);
  Program program = batch.compile().value();
  REQUIRE_OK(program.run());
  CHECK(program.read_i32(y).value() == Ints(21, 1));
  REQUIRE_OK(program.write(x, extremes()));
  REQUIRE_OK(program.rebind(window, second));
  REQUIRE_OK(program.run());
  CHECK(program.read_i32(y).value() == extremes());
  Ints out(21, 7);
  REQUIRE_OK(program.read(mask, out));
  CHECK(out == Ints(21, 0));
  CHECK(program.write(x, std::vector<float>(21)).code == Errc::type_mismatch);
  CHECK(program.rebind(window, floats).code == Errc::type_mismatch);
  const Error error = program.read(y).error();
  CHECK(error.code == Errc::type_mismatch);
  CHECK(contains(error.message, "i32"));
  CHECK(contains(error.message, "f32"));
}

TEST_CASE_METHOD(DeviceTest, "arithmetic of integers wraps around, and divides by anything", "[types]") {
  const Pairs p = pairs();
  for (const bool fuse : {false, true}) {
    BatchOptions options;
    options.fuse = fuse;
    Batch batch(shared_device(), options);
    const Tensor x = batch.upload(p.x);
    const Tensor y = batch.upload(p.y);
    const Tensor sum = batch.add(x, y);
    const Tensor difference = batch.sub(x, y);
    const Tensor product = batch.mul(x, y);
    const Tensor quotient = batch.div(x, y);
    const Tensor rest = batch.mod(x, y);
    const Tensor least = batch.min(x, y);
    const Tensor most = batch.max(x, y);
    const Tensor negative = batch.neg(x);
    const Tensor magnitude = batch.abs(x);
    const Tensor below = batch.lt(x, y);
    const Tensor at_least = batch.ge(x, y);
    const Tensor equal = batch.eq(x, y);
    REQUIRE_OK(batch.execute());
    auto check = [&](const char* op, Tensor result, auto want) {
      const Ints got = read_i32(batch, result);
      for (std::size_t i = 0; i < got.size(); ++i) {
        const std::int64_t a = p.x[i];
        const std::int64_t b = p.y[i];
        if (got[i] == wrap(want(a, b))) continue;
        FAIL_CHECK(op << " of " << a << " and " << b << " is " << got[i] << " instead of " << wrap(want(a, b)));
      }
    };
    using Wide = std::int64_t;
    check("add", sum, [](Wide a, Wide b) { return a + b; });
    check("sub", difference, [](Wide a, Wide b) { return a - b; });
    check("mul", product, [](Wide a, Wide b) { return a * b; });
    check("div", quotient, floor_quotient);
    check("mod", rest, [](Wide a, Wide b) { return b == 0 ? 0 : a - floor_quotient(a, b) * b; });
    check("min", least, [](Wide a, Wide b) { return a < b ? a : b; });
    check("max", most, [](Wide a, Wide b) { return a > b ? a : b; });
    check("neg", negative, [](Wide a, Wide) { return -a; });
    check("abs", magnitude, [](Wide a, Wide) { return a < 0 ? -a : a; });
    check("lt", below, [](Wide a, Wide b) -> Wide { return a < b; });
    check("ge", at_least, [](Wide a, Wide b) -> Wide { return a >= b; });
    check("eq", equal, [](Wide a, Wide b) -> Wide { return a == b; });
  }
}

TEST_CASE_METHOD(DeviceTest, "casts saturate, cut off towards 0, and take NaN for 0 and for true", "[types]") {
  const std::vector<float> x = {0.f,          -0.f,         0.99f,         -0.99f,        1.5f,  -1.5f,
                                2147483520.f, 2147483648.f, -2147483648.f, -2147483904.f, 1e30f, -1e30f,
                                HUGE_VALF,    -HUGE_VALF,   NAN,           1e-42f};
  Batch batch(shared_device());
  const Tensor in = batch.upload(x);
  const Tensor i32 = batch.cast(in, DType::i32);
  const Tensor mask = batch.cast(in, DType::mask);
  const Tensor back = batch.cast(batch.upload(Ints{0, 1, -7, highest, lowest, 16777217}), DType::f32);
  const Tensor of_mask = batch.cast(batch.cast(batch.upload(Ints{0, 1, -7, lowest}), DType::mask), DType::f32);
  CHECK(batch.cast(in, DType::f32) == in);
  REQUIRE_OK(batch.execute());
  CHECK(read_i32(batch, i32) ==
        Ints{0, 0, 0, 0, 1, -1, 2147483520, highest, lowest, lowest, highest, lowest, highest, lowest, 0, 0});
  CHECK(read_i32(batch, mask) == Ints{0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  const std::vector<float> floats = read(batch, back);
  CHECK(std::vector<float>(floats.begin(), floats.end() - 1) ==
        std::vector<float>{0, 1, -7, 2147483648.f, -2147483648.f});
  CHECK((floats[5] == 16777216.f || floats[5] == 16777218.f));
  CHECK(read(batch, of_mask) == std::vector<float>{0, 1, 1, 1});
}

TEST_CASE_METHOD(DeviceTest, "what where does not take leaves no trace, not even NaN", "[types]") {
  Batch batch(shared_device());
  const Tensor mask = batch.cast(batch.upload(Ints{1, 0, 1, 0}), DType::mask);
  const Tensor nothing = batch.fill(NAN, {1});
  const Tensor x = batch.upload({1.f, 2.f, -0.f, HUGE_VALF});
  const Tensor left = batch.where(mask, x, nothing);
  const Tensor right = batch.where(mask, nothing, x);
  // Broadcast: a column of masks, a row, a scalar.
  const Tensor column = batch.reshape(mask, {4, 1});
  const Tensor wide = batch.where(column, batch.upload({1.f, 2.f, 3.f}), nothing);
  CHECK(wide.shape() == Shape(4, 3));
  REQUIRE_OK(batch.execute());
  const std::vector<float> l = read(batch, left);
  const std::vector<float> r = read(batch, right);
  CHECK(l[0] == 1);
  CHECK(std::isnan(l[1]));
  CHECK(std::signbit(l[2]));
  CHECK(std::isnan(l[3]));
  CHECK(std::isnan(r[0]));
  CHECK(r[1] == 2);
  CHECK(r[3] == HUGE_VALF);
  const std::vector<float> w = read(batch, wide);
  CHECK(w[2] == 3);
  CHECK(std::isnan(w[3]));
  CHECK(w[6] == 1);
}

TEST_CASE_METHOD(DeviceTest, "mod of floats is exact for quotients of any size", "[types][elementwise]") {
  std::vector<float> x, y;
  for (const float a : {3e38f, 1e30f, 12345678.f, 5.3f, 1e-3f, 1e-38f, 7e-45f, 16777215.f, 0.1f}) {
    for (const float b : {3e38f, 1e20f, 3.f, 0.7f, 1e-3f, 1.3e-38f, 3e-39f, 7e-45f, 1.4e-45f, 8388607.f, 0.1f}) {
      for (const float s : {1.f, -1.f}) {
        for (const float t : {1.f, -1.f}) {
          x.push_back(s * a);
          y.push_back(t * b);
        }
      }
    }
  }
  Batch batch(shared_device());
  const Tensor rest = batch.mod(batch.upload(x), batch.upload(y));
  CHECK(cases::mismatch(*cases::find_elementwise_case("mod"), run(batch, rest), x, y) == "");
}

TEST_CASE_METHOD(DeviceTest, "any and all of masks, over axes and of nothing", "[types]") {
  Batch batch(shared_device());
  const Tensor mask = batch.cast(batch.upload(Ints{0, 0, 0, 1, 0, 1, 1, 1, 1}, {3, 3}), DType::mask);
  const Tensor none = batch.cast(batch.upload(Span<const std::int32_t>(), {2, 0}), DType::mask);
  // Sums of more ones than f32 can count are still not 0.
  const Tensor many = batch.cast(batch.fill_i32(1, {(1 << 24) + 5}), DType::mask);
  const Tensor any_row = batch.any(mask, 1);
  const Tensor all_row = batch.all(mask, 1);
  const Tensor any_column = batch.any(mask, 0, true);
  const Tensor all_column = batch.all(mask, {-2});
  const Tensor any_all = batch.any(mask);
  const Tensor all_all = batch.all(mask);
  const Tensor any_none = batch.any(none, 1);
  const Tensor all_none = batch.all(none, 1);
  const Tensor any_many = batch.any(many);
  const Tensor all_many = batch.all(many);
  CHECK(any_column.shape() == Shape(1, 3));
  CHECK(any_row.dtype() == DType::mask);
  REQUIRE_OK(batch.execute());
  CHECK(read_i32(batch, any_row) == Ints{0, 1, 1});
  CHECK(read_i32(batch, all_row) == Ints{0, 0, 1});
  CHECK(read_i32(batch, any_column) == Ints{1, 1, 1});
  CHECK(read_i32(batch, all_column) == Ints{0, 0, 0});
  CHECK(read_i32(batch, any_all) == Ints{1});
  CHECK(read_i32(batch, all_all) == Ints{0});
  CHECK(read_i32(batch, any_none) == Ints{0, 0});
  CHECK(read_i32(batch, all_none) == Ints{1, 1});
  CHECK(read_i32(batch, any_many) == Ints{1});
  CHECK(read_i32(batch, all_many) == Ints{1});
  CHECK_FALSE(batch.any(batch.upload({1.f})).valid());
  CHECK(contains(batch.clear_error().message, "any: operand"));
  CHECK_FALSE(batch.all(batch.upload_i32({1})).valid());
  CHECK(batch.clear_error().code == Errc::type_mismatch);
}

TEST_CASE_METHOD(DeviceTest, "rows by index: wrong types and shapes are refused", "[types]") {
  Batch batch(shared_device());
  const Tensor table = batch.upload(counting(12), {4, 3});
  const Tensor index = batch.upload_i32({0, -1});
  const Tensor rows = batch.upload(counting(6), {2, 3});
  auto refused = [&](Tensor result, Errc code, const char* part) {
    CHECK_FALSE(result.valid());
    const Error error = batch.clear_error();
    INFO(error.message);
    CHECK(error.code == code);
    CHECK(contains(error.message, part));
  };
  refused(batch.gather(table, rows), Errc::type_mismatch, "the index %2 is f32; expected i32");
  refused(batch.gather(batch.upload(counting(4), {1, 1, 1, 1, 1, 1, 2, 2}), batch.upload_i32({0}, {1, 1})),
          Errc::shape_mismatch, "[1, 1, 1, 1, 1, 1, 2, 2]");
  refused(batch.update_rows(table, rows, rows), Errc::type_mismatch, "update_rows: the index %2 is f32");
  refused(batch.update_rows(table, index, batch.cast(rows, DType::i32)), Errc::type_mismatch, "expected the same type");
  refused(batch.update_rows(table, index, table), Errc::shape_mismatch, "expected [2, 3]");
  refused(batch.argmax(table, 2), Errc::invalid_argument, "axis 2");
  refused(batch.argmin(batch.upload({}, {3, 0})), Errc::empty_input, "argmin");
  refused(batch.argmax(batch.eq(table, table)), Errc::type_mismatch, "mask");
  CHECK(batch.gather(table, index).shape() == Shape(2, 3));
}

TEST_CASE_METHOD(DeviceTest, "a cache of rows is updated in place, step by step", "[types][buffer]") {
  const Buffer cache = Buffer::create(shared_device(), {5, 4}).value();
  Batch batch(shared_device());
  const Tensor window = batch.import_buffer(cache);
  const Tensor at = batch.upload_i32({0});
  const Tensor rows = batch.upload(std::vector<float>(4, 1.0f), {1, 4});
  batch.store(batch.update_rows(window, at, rows), cache);
  Program program = batch.compile().value();
  for (std::int32_t step : {0, 1, -1}) {
    REQUIRE_OK(program.write(at, Ints{step}));
    REQUIRE_OK(program.write(rows, std::vector<float>(4, static_cast<float>(step) + 5)));
    REQUIRE_OK(program.run());
  }
  CHECK(cache.read().value() == std::vector<float>{5, 5, 5, 5, 6, 6, 6, 6, 0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 4, 4});
}

TEST_CASE_METHOD(DeviceTest, "reading and uploading with the wrong type is an error that names both", "[types]") {
  Batch batch(shared_device());
  const Tensor i32 = batch.upload_i32({1, 2, 3}, {3, 1});
  const Tensor f32 = batch.upload({1.f, 2.f});
  const Tensor mask = batch.eq(f32, f32);
  CHECK(i32.dtype() == DType::i32);
  CHECK(mask.dtype() == DType::mask);
  CHECK(i32.shape() == Shape(3, 1));
  REQUIRE_OK(batch.keep(f32).valid() ? batch.execute() : batch.error());
  CHECK(read_i32(batch, mask) == Ints{1, 1});
  for (const Tensor& t : {i32, mask}) {
    const Error error = batch.read(t).error();
    CHECK(error.code == Errc::type_mismatch);
    CHECK(contains(error.message, to_string(t.dtype())));
    CHECK(contains(error.message, "f32"));
    CHECK(contains(error.message, "read_i32"));
  }
  const Error error = batch.read_i32(f32).error();
  CHECK(error.code == Errc::type_mismatch);
  CHECK(contains(error.message, "f32"));
  Buffer buffer = Buffer::create(shared_device(), {2}).value();
  CHECK(buffer.write(Ints{1, 2}).code == Errc::type_mismatch);
  CHECK(buffer.read_i32().error().code == Errc::type_mismatch);
  CHECK(Buffer::create(shared_device(), {2}, DType::bf16).error().code == Errc::invalid_argument);
  CHECK(Weight::from(shared_device(), counting(6), 2, 3, DType::i32).error().code == Errc::invalid_argument);
  batch.store(i32, Buffer::create(shared_device(), {3}).value());
  CHECK(batch.clear_error().code == Errc::type_mismatch);
  CHECK_FALSE(batch.softmax(i32).valid());
  CHECK(contains(batch.clear_error().message, "softmax: operand %0 [3, 1] is i32; expected f32"));
}

TEST_CASE_METHOD(DeviceTest, "dumps say the types that are not f32", "[types]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload_i32({1, 2});
  const Tensor below = batch.lt(x, batch.fill_i32(-5, {2}));
  (void)batch.where(below, x, batch.neg(x));
  const std::string text = batch.dump(DumpFormat::text, DumpStage::recorded).value();
  CHECK(contains(text, "upload %0 i32 [2]"));
  CHECK(contains(text, "fill_i32 -5 -> %1 i32 [2]"));
  CHECK(contains(text, "lt_i32 %0, %1 -> %2 mask [2]"));
  CHECK(contains(text, "where %2, %0, %3 -> %4 i32 [2]"));
  CHECK(contains(batch.dump(DumpFormat::json, DumpStage::recorded).value(), "\"dtype\": \"mask\""));
}

}  // namespace brontes::test
