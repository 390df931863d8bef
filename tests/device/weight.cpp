// Weights: resident matrices in every storage type, and what a Batch does with them.
#include "fixture.hpp"
#include "reference.hpp"
#include "stored_weights.hpp"

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

namespace brontes::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

DeviceOptions staged_options() {
  DeviceOptions options = checked_options();
  options.simulate.staged_memory = true;
  return options;
}

Weight weight_of(Result<Weight> made) {
  REQUIRE_OK(made.error());
  return std::move(made).value();
}

// Empty when the product with `weight`, whose elements are `values`, is right for m rows. The tolerance is that of
// matmul: the reference has the decoded weights.
std::string wrong_product(const Device& device, const Weight& weight, const std::vector<float>& values, std::uint64_t m,
                          MatmulKernel kernel = MatmulKernel::automatic) {
  const std::vector<float> x = cases::random_values(m * weight.columns(), -1, 1, 7);
  Batch batch(device);
  MatmulOptions options;
  options.layout = Layout::nk;
  options.kernel = kernel;
  const Tensor y = batch.matmul(batch.upload(x, {m, weight.columns()}), batch.import_weight(weight), options);
  if (const Error error = batch.execute()) return error.message;
  const auto want = cases::matmul(x, values, m, weight.columns(), weight.rows(), Layout::nk);
  return cases::mismatch(read(batch, y), want, cases::matmul_tolerance);
}

struct Size {
  std::uint64_t rows, columns;
};

// Odd sizes, and blocks that fill a word of scales or half of it.
std::vector<Size> sizes_for(DType type) {
  if (quantized(type)) return {{1, 32}, {5, 64}, {33, 96}, {9, 1056}};
  return {{1, 1}, {5, 3}, {13, 31}, {33, 64}, {7, 130}};
}

// A device that is not known to keep denormal halves: kernels convert them by integers.
Device integer_halves() {
  DeviceOptions options = checked_options();
  options.simulate.no_float_controls = true;
  return open_device(options);
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "a resident B[K, N] becomes a weight, transposed once", "[weight]") {
  const std::uint64_t k = 96, n = 37;
  const std::vector<float> b = cases::random_integers(k * n, 3, 1);
  const std::vector<float> x = cases::random_integers(5 * k, 3, 2);
  const auto want = cases::matmul(x, b, 5, k, n, Layout::kn);
  for (DType type : {DType::f32, DType::f16}) {
    for (const bool parts : {false, true}) {
      DeviceOptions options = checked_options();
      if (parts) options.simulate.max_storage_range = 4096;
      const Device device = open_device(options);
      const Weight weight = weight_of(Weight::from_transposed(device, b, n, k, type));
      CHECK(weight.shape() == Shape(n, k));
      CHECK((weight.parts() > 1) == parts);
      Batch batch(device);
      const Tensor y = batch.linear(batch.upload(x, {5, k}), batch.import_weight(weight));
      CHECK(cases::mismatch(run(batch, y), want, 0) == "");
    }
  }
  CHECK(Weight::from_transposed(shared_device(), b, n, k + 1).error().code == Errc::shape_mismatch);
  CHECK(Weight::from_transposed(shared_device(), {}, 0, 5).error().code == Errc::ok);
  CHECK(Weight::from_transposed(shared_device(), b, n, k, DType::q4_0).error().code == Errc::ok);
  CHECK(contains(Weight::from_transposed(shared_device(), b, k, n, DType::q4_0).error().message, "blocks"));
}

TEST_CASE_METHOD(DeviceTest, "weights as files store them are worth what the format says", "[weight]") {
  for (DType type : all_types) {
    for (const Size& size : sizes_for(type)) {
      INFO(to_string(type) << " " << size.rows << " x " << size.columns);
      const StoredWeights stored = random_stored(type, size.rows, size.columns, 11);
      REQUIRE(stored.bytes.size() == size.rows * row_bytes(type, size.columns));
      const Weight weight =
          weight_of(Weight::from_stored(shared_device(), stored.bytes, size.rows, size.columns, type));
      CHECK(weight.shape() == Shape(size.rows, size.columns));
      CHECK(weight.dtype() == type);
      CHECK(weight.parts() == 1);
      CHECK(weight.bytes() >= stored.bytes.size());
      for (std::uint64_t m : {1u, 3u}) CHECK(wrong_product(shared_device(), weight, stored.values, m) == "");
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "the naive kernel and the subgroup kernel read every storage type", "[weight]") {
  for (DType type : all_types) {
    const StoredWeights stored = random_stored(type, 21, 160, 5);
    const Weight weight = weight_of(Weight::from_stored(shared_device(), stored.bytes, 21, 160, type));
    for (MatmulKernel kernel : {MatmulKernel::naive, MatmulKernel::subgroup, MatmulKernel::panel}) {
      for (std::uint64_t m : {1u, 2u, 8u, 17u}) {
        INFO(to_string(type) << " " << to_string(kernel) << " m = " << m);
        CHECK(wrong_product(shared_device(), weight, stored.values, m, kernel) == "");
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "f16 denormals are not zeros", "[weight]") {
  // All of them, so that nothing larger hides them.
  std::vector<std::uint16_t> halves;
  std::vector<float> values;
  for (unsigned bits = 1; bits < 1024; bits += 3) {
    halves.push_back(static_cast<std::uint16_t>(bits | (bits % 2 == 0 ? 0x8000u : 0u)));
    values.push_back(half_value(halves.back()));
  }
  const Span<const std::byte> bytes(reinterpret_cast<const std::byte*>(halves.data()), halves.size() * 2);
  const Device by_integers = integer_halves();
  for (const Device* device : {&shared_device(), &by_integers}) {
    const Weight weight = weight_of(Weight::from_stored(*device, bytes, 1, halves.size(), DType::f16));
    for (MatmulKernel kernel :
         {MatmulKernel::naive, MatmulKernel::gemv, MatmulKernel::tiled, MatmulKernel::subgroup, MatmulKernel::panel}) {
      INFO(to_string(kernel) << (device == &by_integers ? ", by integers" : ""));
      CHECK(wrong_product(*device, weight, values, 1, kernel) == "");
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "f16 weights that are NaN or infinite stay so, however halves are converted", "[weight]") {
  constexpr std::uint16_t halves[] = {0x7c00, 0xfc00, 0x7e01, 0xfdff, 0x7bff, 0xc000, 0x8000, 0x0400};
  const Span<const std::byte> bytes(reinterpret_cast<const std::byte*>(halves), sizeof halves);
  const Device by_integers = integer_halves();
  for (const Device* device : {&shared_device(), &by_integers}) {
    const Weight weight = weight_of(Weight::from_stored(*device, bytes, std::size(halves), 1, DType::f16));
    for (MatmulKernel kernel :
         {MatmulKernel::naive, MatmulKernel::gemv, MatmulKernel::tiled, MatmulKernel::subgroup, MatmulKernel::panel}) {
      Batch batch(*device);
      const Tensor y =
          batch.matmul(batch.upload({2.0f}, {1, 1}), batch.import_weight(weight), {1.0f, Layout::nk, kernel});
      const std::vector<float> got = run(batch, y);
      for (std::size_t i = 0; i < std::size(halves); ++i) {
        const float expected = 2.0f * half_value(halves[i]);
        INFO(to_string(kernel) << ", half " << i << ": " << got[i]);
        CHECK((std::isnan(expected) ? std::isnan(got[i]) : got[i] == expected));
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "blocks with a scale of any kind, denormals among them, keep what they are worth",
                 "[weight]") {
  // The least and the largest denormal, one in between, the least normal, an ordinary one, the largest, and zeros.
  constexpr std::uint16_t scales[] = {0x0001, 0x03ff, 0x0155, 0x0400, 0x3555, 0x7bff, 0x0000,
                                      0x8001, 0x83ff, 0x8155, 0x8400, 0xb555, 0xfbff, 0x8000};
  constexpr std::uint64_t rows = std::size(scales), columns = 32;
  const Device by_integers = integer_halves();
  const Device* const devices[] = {&shared_device(), &by_integers};
  for (const DType type : {DType::q8_0, DType::q4_0}) {
    std::vector<std::byte> stored;
    for (const std::uint16_t scale : scales) {
      stored.push_back(static_cast<std::byte>(scale & 0xff));
      stored.push_back(static_cast<std::byte>(scale >> 8));
      // q8_0: all 3. q4_0: all 11, which stands for 3.
      const auto element = static_cast<std::byte>(type == DType::q8_0 ? 0x03 : 0xbb);
      stored.insert(stored.end(), type == DType::q8_0 ? 32 : 16, element);
    }
    for (const Device* device : devices) {
      const auto weight = Weight::from_stored(*device, stored, rows, columns, type);
      REQUIRE_OK(weight.error());
      for (const MatmulKernel kernel : {MatmulKernel::automatic, MatmulKernel::naive, MatmulKernel::gemv,
                                        MatmulKernel::tiled, MatmulKernel::subgroup, MatmulKernel::panel}) {
        INFO(to_string(type) << ", " << to_string(kernel) << (device == &by_integers ? ", by integers" : ""));
        std::vector<float> x(columns, 0.0f);
        x[5] = 1024.0f;  // keeps the product of a denormal a normal number
        Batch batch(*device);
        const Tensor y =
            batch.matmul(batch.upload(x, {1, columns}), batch.import_weight(*weight), {1.0f, Layout::nk, kernel});
        const std::vector<float> got = run(batch, y);
        REQUIRE(got.size() == rows);
        for (std::size_t i = 0; i < rows; ++i) CHECK(got[i] == 3072.0f * half_value(scales[i]));
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "numbers that a type can hold are converted without loss", "[weight]") {
  for (DType type : all_types) {
    for (const Size& size : sizes_for(type)) {
      INFO(to_string(type) << " " << size.rows << " x " << size.columns);
      const std::vector<float> values = exact_values(type, size.rows, size.columns, 3);
      const Weight weight = weight_of(Weight::from(shared_device(), values, size.rows, size.columns, type));
      CHECK(wrong_product(shared_device(), weight, values, 2) == "");
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "weights converted here are those a file with the same numbers has", "[weight]") {
  // Blocks with steps of 2^-7 and 2^-4, encoded by hand.
  constexpr std::uint64_t rows = 3, columns = 64;
  for (DType type : {DType::q8_0, DType::q4_0}) {
    INFO(to_string(type));
    const std::vector<float> values = exact_values(type, rows, columns, 9);
    std::vector<std::byte> stored;
    for (std::size_t block = 0; block < values.size(); block += 32) {
      const bool negative = type == DType::q4_0 && block % 64 != 0;
      const float step = (type == DType::q8_0 ? 0x1p-7f : 0x1p-4f) * (negative ? -1.0f : 1.0f);
      const auto half = static_cast<std::uint16_t>((type == DType::q8_0 ? 8u : 11u) << 10 | (negative ? 0x8000u : 0u));
      REQUIRE(half_value(half) == step);
      stored.push_back(static_cast<std::byte>(half & 255u));
      stored.push_back(static_cast<std::byte>(half >> 8));
      const auto steps = [&](std::size_t i) { return static_cast<int>(values[block + i] / step); };
      for (std::size_t i = 0; i < (type == DType::q8_0 ? 32u : 16u); ++i) {
        const int byte = type == DType::q8_0 ? steps(i) : (steps(i) + 8) | (steps(i + 16) + 8) << 4;
        stored.push_back(static_cast<std::byte>(byte & 255));
      }
    }
    const Weight converted = weight_of(Weight::from(shared_device(), values, rows, columns, type));
    const Weight taken = weight_of(Weight::from_stored(shared_device(), stored, rows, columns, type));
    CHECK(converted.bytes() == taken.bytes());
    // Rows of the identity show every element.
    std::vector<float> identity(columns * columns);
    for (std::size_t i = 0; i < columns; ++i) identity[i * columns + i] = 1.0f;
    std::vector<float> transposed(rows * columns);
    for (std::size_t i = 0; i < values.size(); ++i) transposed[i % columns * rows + i / columns] = values[i];
    for (const Weight* weight : {&converted, &taken}) {
      Batch batch(shared_device());
      const Tensor y = batch.linear(batch.upload(identity, {columns, columns}), batch.import_weight(*weight));
      CHECK(cases::mismatch(run(batch, y), transposed) == "");
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "rounded weights stay within the bounds of the header", "[weight]") {
  constexpr std::uint64_t rows = 19, columns = 96, m = 4;
  const std::vector<float> values = cases::random_values(rows * columns, -3, 3, 21);
  const std::vector<float> x = cases::random_values(m * columns, -1, 1, 22);
  const auto want = cases::matmul(x, values, m, columns, rows, Layout::nk);
  for (DType type : all_types) {
    INFO(to_string(type));
    const Weight weight = weight_of(Weight::from(shared_device(), values, rows, columns, type));
    Batch batch(shared_device());
    const Tensor y = batch.linear(batch.upload(x, {m, columns}), batch.import_weight(weight));
    const std::vector<float> got = run(batch, y);
    // Each weight moves by this much of the largest magnitude near it, which is at most 3.
    const double moves = type == DType::f32    ? 0
                         : type == DType::f16  ? 3 * 0x1p-11
                         : type == DType::bf16 ? 3 * 0x1p-8
                         : type == DType::q8_0 ? 3.0 / 230
                                               : 3.0 / 7.9;
    for (std::size_t i = 0; i < got.size(); ++i) {
      double magnitudes = 0;
      for (std::size_t k = 0; k < columns; ++k) magnitudes += std::fabs(double{x[i / rows * columns + k]});
      const double allowed = moves * magnitudes + cases::matmul_tolerance * want.magnitude[i];
      INFO("element " << i << ": " << got[i] << " instead of " << want.product[i]);
      CHECK(std::fabs(double{got[i]} - want.product[i]) <= allowed);
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "smaller types take less device memory", "[weight]") {
  constexpr std::uint64_t rows = 64, columns = 256;
  const std::vector<float> values(rows * columns, 1.0f);
  std::uint64_t bytes[std::size(all_types)] = {};
  for (std::size_t i = 0; i < std::size(all_types); ++i) {
    const std::uint64_t before = shared_device().stats().live_bytes;
    const Weight weight = weight_of(Weight::from(shared_device(), values, rows, columns, all_types[i]));
    bytes[i] = weight.bytes();
    CHECK(shared_device().stats().live_bytes == before + bytes[i]);
  }
  CHECK(bytes[0] == rows * columns * 4);
  CHECK(bytes[1] == rows * columns * 2);
  CHECK(bytes[2] == rows * columns * 2);
  CHECK(bytes[3] == rows * columns * 34 / 32);
  CHECK(bytes[4] == rows * columns * 18 / 32);
}

TEST_CASE_METHOD(DeviceTest, "f32, f16 and bf16 keep NaN and infinity", "[weight]") {
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    INFO(to_string(type));
    const Weight weight = weight_of(Weight::from(
        shared_device(), std::vector<float>{nan, 0.0f, infinity, 0.0f, -infinity, 1.0f, 2.0f, 3.0f}, 4, 2, type));
    Batch batch(shared_device());
    const Tensor y = batch.linear(batch.upload({1.f, 1.f}, {1, 2}), batch.import_weight(weight));
    CHECK(cases::mismatch(run(batch, y), std::vector<float>{nan, infinity, -infinity, 5.0f}) == "");
  }
}

TEST_CASE_METHOD(DeviceTest, "quantised weights refuse NaN and infinity and name the element", "[weight]") {
  for (DType type : {DType::q8_0, DType::q4_0}) {
    for (float bad : {nan, infinity, -infinity, 1e30f}) {
      std::vector<float> values(3 * 64, 0.5f);
      values[2 * 64 + 37] = bad;
      const std::uint64_t live = shared_device().stats().live_buffers;
      const Error error = Weight::from(shared_device(), values, 3, 64, type).error();
      INFO(to_string(type) << " " << bad << ": " << error.message);
      CHECK(error.code == Errc::invalid_argument);
      CHECK(contains(error.message, "Weight::from"));
      CHECK(contains(error.message, "[2, 37]"));
      CHECK(shared_device().stats().live_buffers == live);
    }
    // The same from a file: a scale that is no number.
    std::vector<std::byte> stored(3 * row_bytes(type, 64));
    const std::size_t block = (stored.size() / 6) * 5;
    stored[block + 1] = std::byte{0x7e};
    const Error error = Weight::from_stored(shared_device(), stored, 3, 64, type).error();
    INFO(to_string(type) << ": " << error.message);
    CHECK(error.code == Errc::invalid_argument);
    CHECK(contains(error.message, "Weight::from_stored"));
    CHECK(contains(error.message, "[2, 32]"));
  }
}

TEST_CASE_METHOD(DeviceTest, "wrong sizes of a weight say what was expected", "[weight]") {
  const Device& device = shared_device();
  const std::vector<float> values(64);
  Error error = Weight::from(device, values, 3, 32).error();
  CHECK(error.code == Errc::shape_mismatch);
  CHECK(contains(error.message, "64"));
  CHECK(contains(error.message, "[3, 32]"));
  CHECK(contains(error.message, "96"));
  error = Weight::from(device, std::vector<float>(66), 2, 33, DType::q8_0).error();
  CHECK(error.code == Errc::shape_mismatch);
  CHECK(contains(error.message, "33"));
  CHECK(contains(error.message, "q8_0"));
  error = Weight::from_stored(device, std::vector<std::byte>(35), 1, 32, DType::q8_0).error();
  CHECK(error.code == Errc::shape_mismatch);
  CHECK(contains(error.message, "34"));
  CHECK(contains(error.message, "35"));
  CHECK(Weight::from(device, Span<const float>(nullptr, 64), 2, 32).error().code == Errc::null_data);
  CHECK(Weight::from_stored(device, Span<const std::byte>(nullptr, 18), 1, 32, DType::q4_0).error().code ==
        Errc::null_data);
  const std::uint64_t huge = std::uint64_t{1} << 40;
  CHECK(Weight::from(device, values, huge, huge).error().code == Errc::size_overflow);
  Device moved = open_device();
  const Device elsewhere = std::move(moved);
  CHECK(Weight::from(moved, values, 2, 32).error().code == Errc::invalid_argument);  // NOLINT: that is the test
}

TEST_CASE_METHOD(DeviceTest, "weights without elements are fine", "[weight]") {
  for (DType type : all_types) {
    INFO(to_string(type));
    const Weight no_rows = weight_of(Weight::from(shared_device(), std::vector<float>(), 0, 32, type));
    const Weight no_columns = weight_of(Weight::from(shared_device(), std::vector<float>(), 3, 0, type));
    Batch batch(shared_device());
    const Tensor a = batch.linear(batch.upload(counting(64), {2, 32}), batch.import_weight(no_rows));
    const Tensor b = batch.linear(batch.upload(std::vector<float>(), {2, 0}), batch.import_weight(no_columns));
    REQUIRE_OK(batch.execute());
    CHECK(read(batch, a).empty());
    CHECK(read(batch, b) == std::vector<float>(6));
  }
}

TEST_CASE_METHOD(DeviceTest, "only linear and matmul take a weight, as their second operand and as W[N, K]",
                 "[weight]") {
  const Weight weight = weight_of(Weight::from(shared_device(), counting(64), 2, 32, DType::f16));
  const Buffer buffer = Buffer::create(shared_device(), {2, 32}).value();
  const std::function<void(Batch&, Tensor)> refused[] = {
      [](Batch& b, Tensor w) { (void)b.relu(w); },
      [](Batch& b, Tensor w) { (void)b.add(w, w); },
      [](Batch& b, Tensor w) { (void)b.add(b.upload({1.f}), w); },
      [](Batch& b, Tensor w) { (void)b.copy(w); },
      [](Batch& b, Tensor w) { (void)b.sum(w); },
      [](Batch& b, Tensor w) { (void)b.dot(b.upload(counting(64)), w); },
      [](Batch& b, Tensor w) { (void)b.max(w); },
      [](Batch& b, Tensor w) {
        (void)b.matmul(w, b.upload(counting(64), {32, 2}));
      },
      [](Batch& b, Tensor w) {
        (void)b.linear(w, b.upload(counting(64), {2, 32}));
      },
      [](Batch& b, Tensor w) {
        (void)b.matmul(b.upload(counting(4), {2, 2}), w);
      },
      [](Batch& b, Tensor w) { (void)b.matmul(b.upload(counting(32)), w, 1, 32, 2); },
      [](Batch& b, Tensor w) {
        (void)b.linear(b.upload(counting(32), {1, 32}), b.upload(counting(64), {2, 32}), w);
      },
      [&](Batch& b, Tensor w) { b.store(w, buffer); },
  };
  for (std::size_t i = 0; i < std::size(refused); ++i) {
    INFO("case " << i);
    Batch batch(shared_device());
    const Tensor w = batch.import_weight(weight);
    REQUIRE(w.valid());
    CHECK(w.dtype() == DType::f16);
    refused[i](batch, w);
    const Error error = batch.error();
    INFO(error.message);
    CHECK((error.code == Errc::invalid_argument || error.code == Errc::shape_mismatch));
    CHECK_FALSE(error.message.empty());
    // The batch goes on.
    (void)batch.clear_error();
    const Tensor y = batch.linear(batch.upload(std::vector<float>(32, 1.0f), {1, 32}), w);
    CHECK(run(batch, y) == std::vector<float>{496, 1520});
  }
}

TEST_CASE_METHOD(DeviceTest, "a weight in a batch is neither read nor rebound nor written", "[weight]") {
  const Weight weight = weight_of(Weight::from(shared_device(), counting(64), 2, 32, DType::f16));
  const Buffer buffer = Buffer::create(shared_device(), {2, 32}).value();
  for (bool keep_all : {false, true}) {
    BatchOptions options;
    options.keep_all = keep_all;
    Batch batch(shared_device(), options);
    const Tensor w = batch.keep(batch.import_weight(weight));
    const Tensor x = batch.upload(std::vector<float>(32, 1.0f), {1, 32});
    const Tensor y = batch.linear(x, w);
    Program program = batch.compile().value();
    REQUIRE_OK(program.run());
    CHECK(program.read(y).value() == std::vector<float>{496, 1520});
    CHECK(program.read(w).error().code == Errc::invalid_argument);
    CHECK(program.write(w, counting(64)).code == Errc::invalid_argument);
    CHECK(program.rebind(w, buffer).code == Errc::invalid_argument);
    CHECK(batch.read(w).error().code == Errc::invalid_argument);
    REQUIRE_OK(batch.execute());
    const Error error = batch.read(w).error();
    CHECK(error.code == Errc::invalid_argument);
    CHECK(contains(error.message, "weight"));
    CHECK(read(batch, y) == std::vector<float>{496, 1520});
  }
}

TEST_CASE_METHOD(DeviceTest, "a kernel that cannot read a storage type is refused when forced", "[weight]") {
  for (DType type : all_types) {
    const std::vector<float> values = exact_values(type, 20, 64, 2);
    const Weight weight = weight_of(Weight::from(shared_device(), values, 20, 64, type));
    for (MatmulKernel kernel : {MatmulKernel::gemv, MatmulKernel::tiled}) {
      INFO(to_string(type) << " " << to_string(kernel));
      BatchOptions options;
      options.matmul = kernel;
      Batch batch(shared_device(), options);
      const std::vector<float> x = cases::random_values(64, -1, 1, 1);
      const Tensor y = batch.linear(batch.upload(x, {1, 64}), batch.import_weight(weight));
      const Error error = batch.execute();
      INFO(error.message);
      // Right, or refused: nothing in between.
      if (error) {
        CHECK(type != DType::f32);
        CHECK(error.code == Errc::unsupported);
        CHECK(contains(error.message, to_string(type)));
      } else {
        const auto want = cases::matmul(x, values, 1, 64, 20, Layout::nk);
        CHECK(cases::mismatch(read(batch, y), want, cases::matmul_tolerance) == "");
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "a weight that is moved from, or of another device, is refused", "[weight]") {
  Weight weight = weight_of(Weight::from(shared_device(), counting(4), 2, 2));
  const Weight moved = std::move(weight);
  Batch batch(shared_device());
  CHECK_FALSE(batch.import_weight(weight).valid());  // NOLINT: that is the test
  CHECK(batch.clear_error().code == Errc::invalid_argument);
  CHECK(weight.bytes() == 0);
  const Device other = open_device();
  const Weight foreign = weight_of(Weight::from(other, counting(4), 2, 2));
  CHECK_FALSE(batch.import_weight(foreign).valid());
  const Error error = batch.clear_error();
  CHECK(error.code == Errc::invalid_argument);
  CHECK(contains(error.message, "another device"));
  CHECK(contains(error.message, "[2, 2]"));
  const Tensor y = batch.linear(batch.upload({1.f, 1.f}, {1, 2}), batch.import_weight(moved));
  CHECK(run(batch, y) == std::vector<float>{1, 5});
}

TEST_CASE_METHOD(DeviceTest, "a weight may be destroyed once a batch has imported it", "[weight]") {
  const std::uint64_t live = shared_device().stats().live_buffers;
  {
    std::optional<Weight> weight = weight_of(Weight::from(shared_device(), counting(64), 2, 32, DType::q8_0));
    Batch batch(shared_device());
    const Tensor y = batch.linear(batch.upload(std::vector<float>(32, 0.0f), {1, 32}), batch.import_weight(*weight));
    Program program = batch.compile().value();
    weight.reset();
    REQUIRE_OK(program.run());
    CHECK(program.read(y).value() == std::vector<float>(2));
    CHECK(run(batch, y) == std::vector<float>(2));
  }
  CHECK(shared_device().stats().live_buffers == live);
}

TEST_CASE_METHOD(DeviceTest, "importing one weight twice is one resource", "[weight]") {
  const Weight weight = weight_of(Weight::from(shared_device(), counting(4), 2, 2));
  Batch batch(shared_device());
  const Tensor x = batch.upload({1.f, 1.f}, {1, 2});
  const Tensor a = batch.linear(x, batch.import_weight(weight));
  const Tensor b = batch.linear(x, batch.import_weight(weight));
  REQUIRE_OK(batch.execute());
  CHECK(batch.stats().transfers_up == 1);
  CHECK(batch.stats().bytes_up == 8);
  CHECK(batch.stats().barriers == 0);
  CHECK(read(batch, a) == std::vector<float>{1, 5});
  CHECK(read(batch, b) == std::vector<float>{1, 5});
}

TEST_CASE_METHOD(DeviceTest, "a weight past the range of one binding is kept in parts, with the right product",
                 "[weight]") {
  DeviceOptions options = checked_options();
  options.simulate.max_storage_range = 16384;
  for (bool staged : {false, true}) {
    options.simulate.staged_memory = staged;
    const Device device = open_device(options);
    for (DType type : all_types) {
      // The last part is odd. 96 columns are 6 KiB to 300 bytes a row.
      constexpr std::uint64_t rows = 1003, columns = 96;
      INFO(to_string(type) << (staged ? " staged" : ""));
      const StoredWeights stored = random_stored(type, rows, columns, 31);
      const Weight weight = weight_of(Weight::from_stored(device, stored.bytes, rows, columns, type));
      CHECK(weight.parts() > 1);
      CHECK(weight.parts() >= weight.bytes() / 16384);
      for (std::uint64_t m : {1u, 3u}) CHECK(wrong_product(device, weight, stored.values, m) == "");
      CHECK(wrong_product(device, weight, stored.values, 2, MatmulKernel::naive) == "");

      // With an epilogue, which every part has.
      const std::vector<float> x = cases::random_values(columns, -1, 1, 8);
      const std::vector<float> bias = cases::random_values(rows, -1, 1, 9);
      const Buffer resident = Buffer::from(device, bias).value();
      Batch batch(device);
      const Tensor y = batch.relu(
          batch.linear(batch.upload(x, {1, columns}), batch.import_weight(weight), batch.import_buffer(resident)));
      auto want = cases::matmul(x, stored.values, 1, columns, rows, Layout::nk);
      for (std::size_t i = 0; i < rows; ++i) {
        want.product[i] = std::max(0.0, want.product[i] + double{bias[i]});
        want.magnitude[i] += 1.0;
      }
      CHECK(cases::mismatch(run(batch, y), want, cases::matmul_tolerance) == "");
      CHECK(batch.stats().dispatches == weight.parts());
    }
    // A single row that does not fit is an error, not a part.
    const Error error = Weight::from(device, std::vector<float>(5000), 1, 5000).error();
    CHECK(error.code == Errc::limit_exceeded);
    CHECK(contains(error.message, "5000"));
    CHECK(contains(error.message, "16384"));
  }
}

TEST_CASE_METHOD(DeviceTest, "weights of every type arrive through staging", "[weight]") {
  const Device device = open_device(staged_options());
  for (DType type : all_types) {
    INFO(to_string(type));
    const StoredWeights stored = random_stored(type, 33, 96, 13);
    const Weight weight = weight_of(Weight::from_stored(device, stored.bytes, 33, 96, type));
    CHECK(wrong_product(device, weight, stored.values, 3) == "");
    const std::vector<float> exact = exact_values(type, 33, 96, 14);
    const Weight converted = weight_of(Weight::from(device, exact, 33, 96, type));
    CHECK(wrong_product(device, converted, exact, 1) == "");
  }
}

TEST_CASE_METHOD(DeviceTest, "k split over several dispatches leaves stored weights whole", "[weight]") {
  DeviceOptions options = checked_options();
  options.simulate.max_loop_iterations = 40;
  const Device device = open_device(options);
  for (DType type : all_types) {
    constexpr std::uint64_t rows = 5, columns = 2080;
    const StoredWeights stored = random_stored(type, rows, columns, 17);
    const Weight weight = weight_of(Weight::from_stored(device, stored.bytes, rows, columns, type));
    for (MatmulKernel kernel : {MatmulKernel::naive, MatmulKernel::subgroup, MatmulKernel::panel}) {
      INFO(to_string(type) << " " << to_string(kernel));
      CHECK(wrong_product(device, weight, stored.values, 2, kernel) == "");
    }
  }
}

}  // namespace brontes::test
