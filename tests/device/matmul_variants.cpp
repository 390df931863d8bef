// The kernels for GPUs, forced, wherever they differ: with and without subgroup arithmetic, with k in slices,
// with every storage type of a weight and with weights in parts.
#include "fixture.hpp"
#include "reference.hpp"

#include <brontes/weight.hpp>

#include <cmath>

namespace brontes::test {
namespace {

// Quarters of small whole numbers: every type but the quantized ones has them, and sums of them are exact.
std::vector<float> quarters(std::uint64_t count, std::uint64_t seed) {
  std::vector<float> values = cases::random_integers(count, 6, seed);
  for (float& v : values) v *= 0.25f;
  return values;
}

// Whole numbers that q4_0 and q8_0 store exactly: each block of 32 has its largest magnitude, and the scale it
// gives is a power of two.
std::vector<float> quantized_values(DType type, std::uint64_t count, std::uint64_t seed) {
  if (type != DType::q8_0 && type != DType::q4_0) return quarters(count, seed);
  const float most = type == DType::q8_0 ? 127.0f : -8.0f;
  std::vector<float> values = cases::random_integers(count, 7, seed);
  for (std::uint64_t i = 0; i < count; i += 32) values[i + i / 32 % 32] = most;
  return values;
}

struct Variant {
  MatmulKernel kernel;
  std::uint64_t m, k, n;
  DType type;
};

void check_weight(const Device& device, const Variant& v) {
  INFO("m = " << v.m << ", k = " << v.k << ", n = " << v.n << ", " << to_string(v.type) << ", " << to_string(v.kernel));
  const std::vector<float> x = cases::random_integers(v.m * v.k, 3, v.m);
  const std::vector<float> w = quantized_values(v.type, v.n * v.k, v.k);
  const std::vector<float> bias = cases::random_integers(v.n, 9, 5);
  cases::MatmulReference reference = cases::matmul(x, w, v.m, v.k, v.n, Layout::nk, 0.5f);
  for (std::uint64_t i = 0; i < v.m * v.n; ++i) reference.product[i] += static_cast<double>(bias[i % v.n]);
  auto weight = Weight::from(device, w, v.n, v.k, v.type);
  REQUIRE_OK(weight.error());
  Batch batch(device);
  const Tensor product =
      batch.matmul(batch.upload(x, {v.m, v.k}), batch.import_weight(*weight), {0.5f, Layout::nk, v.kernel});
  const Tensor y = batch.add(product, batch.upload(bias));
  CHECK(cases::mismatch(run(batch, y), reference, 0) == "");
}

constexpr DType types[] = {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0};

void check_product(const Device& device, std::uint64_t m, std::uint64_t k, std::uint64_t n, MatmulKernel kernel) {
  const std::vector<float> a = cases::random_integers(m * k, 3, m);
  const std::vector<float> b = cases::random_integers(k * n, 3, n);
  for (const Layout layout : {Layout::kn, Layout::nk}) {
    INFO("m = " << m << ", k = " << k << ", n = " << n << ", layout " << to_string(layout) << ", "
                << to_string(kernel));
    const cases::MatmulReference reference = cases::matmul(a, b, m, k, n, layout);
    Batch batch(device);
    const Tensor product = batch.matmul(batch.upload(a), batch.upload(b), m, k, n, {1.0f, layout, kernel});
    CHECK(cases::mismatch(run(batch, product), reference, 0) == "");
  }
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "gemv is exact for every number of rows, with and without subgroup arithmetic",
                 "[matmul]") {
  for (const bool without : {false, true}) {
    DeviceOptions options = checked_options();
    options.simulate.no_subgroup_operations = without;
    const Device device = open_device(options);
    for (std::uint64_t m = 1; m <= 8; ++m) {
      for (const std::uint64_t k : {5u, 64u, 131u}) check_product(device, m, k, 13 + m % 4, MatmulKernel::gemv);
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "slices of k add up, for every kernel that has them", "[matmul]") {
  for (const std::uint64_t m : {1u, 5u, 40u}) {
    for (const std::uint64_t k : {5000u, 4096u, 4099u}) {
      const MatmulKernel kernel = m <= 8 ? MatmulKernel::gemv : MatmulKernel::tiled;
      for (const std::uint64_t n : {8u, 5u}) {
        const MatmulChoice choice = explain_matmul(shared_device(), m, k, n, {1.0f, Layout::nk, kernel});
        CHECK(choice.slices > 1);
        CHECK(choice.dispatches == 2);
        check_product(shared_device(), m, k, n, kernel);
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "slices of k give the same bits every time", "[matmul]") {
  const std::uint64_t m = 20, k = 6000, n = 24;
  const std::vector<float> a = cases::random_values(m * k, -1, 1, 1);
  const std::vector<float> b = cases::random_values(k * n, -1, 1, 2);
  std::vector<float> first;
  for (int i = 0; i < 3; ++i) {
    Batch batch(shared_device());
    const Tensor product =
        batch.matmul(batch.upload(a), batch.upload(b), m, k, n, {1.0f, Layout::kn, MatmulKernel::tiled});
    const std::vector<float> got = run(batch, product);
    if (i == 0) first = got;
    CHECK(got == first);
  }
}

TEST_CASE_METHOD(DeviceTest, "gemv and tiled read weights of every type, whole and in parts", "[matmul][weights]") {
  for (const bool parts : {false, true}) {
    DeviceOptions options = checked_options();
    if (parts) options.simulate.max_storage_range = 4096;
    const Device device = open_device(options);
    for (const DType type : types) {
      // Quantized rows are whole blocks; the others may end anywhere.
      const bool blocks = type == DType::q8_0 || type == DType::q4_0;
      const std::vector<std::uint64_t> depths =
          blocks ? std::vector<std::uint64_t>{96} : std::vector<std::uint64_t>{31, 36};
      for (const std::uint64_t k : depths) {
        check_weight(device, {MatmulKernel::gemv, 1, k, 37, type});
        check_weight(device, {MatmulKernel::gemv, 7, k, 37, type});
        check_weight(device, {MatmulKernel::tiled, 10, k, k == 36 ? 40u : 37u, type});
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "weights of every type add up in slices", "[matmul][weights]") {
  for (const DType type : types) {
    check_weight(shared_device(), {MatmulKernel::gemv, 2, 4160, 6, type});
    check_weight(shared_device(), {MatmulKernel::tiled, 12, 2080, 6, type});
  }
}

TEST_CASE_METHOD(DeviceTest, "every vetted variant of every kernel gives the same exact product", "[matmul]") {
  // k with and without a rest of vec4s, n past one tile and ragged; m past one band of rows, or past a large tile.
  struct Size {
    std::uint64_t m, k, n;
  };
  for (const MatmulKernel kernel :
       {MatmulKernel::naive, MatmulKernel::gemv, MatmulKernel::tiled, MatmulKernel::subgroup, MatmulKernel::panel}) {
    for (const Layout layout : {Layout::kn, Layout::nk}) {
      REQUIRE(matmul_variants(kernel, layout) > 0);
      for (std::uint32_t variant = 1; variant <= matmul_variants(kernel, layout); ++variant) {
        const std::uint64_t most = kernel == MatmulKernel::gemv ? 8 : kernel == MatmulKernel::tiled ? 133 : 21;
        for (const Size& s : {Size{7, 40, 36}, Size{most, 37, 131}}) {
          INFO(to_string(kernel) << " variant " << variant << ", " << to_string(layout) << ", " << s.m << "x" << s.k
                                 << "x" << s.n);
          const std::vector<float> a = cases::random_integers(s.m * s.k, 3, s.m);
          const std::vector<float> b = cases::random_integers(s.k * s.n, 3, s.n);
          const std::vector<float> bias = cases::random_integers(s.n, 9, 5);
          cases::MatmulReference reference = cases::matmul(a, b, s.m, s.k, s.n, layout, 0.5f);
          for (std::uint64_t i = 0; i < s.m * s.n; ++i) reference.product[i] += static_cast<double>(bias[i % s.n]);
          Batch batch(shared_device());
          MatmulOptions options{0.5f, layout, kernel, variant};
          const Tensor product = batch.matmul(batch.upload(a), batch.upload(b), s.m, s.k, s.n, options);
          CHECK(cases::mismatch(run(batch, batch.add(product, batch.upload(bias))), reference, 0) == "");
        }
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "a variant that is not there is refused", "[matmul]") {
  for (const MatmulKernel kernel : {MatmulKernel::automatic, MatmulKernel::tiled}) {
    Batch batch(shared_device());
    const Tensor a = batch.fill(1, {4, 4});
    (void)batch.matmul(a, a, {1.0f, Layout::kn, kernel, matmul_variants(kernel, Layout::kn) + 1});
    const Error error = batch.execute();
    CHECK(error.code == Errc::invalid_argument);
    CHECK(contains(error.message, to_string(kernel)));
  }
  check_device_works(shared_device());
}

TEST_CASE_METHOD(DeviceTest, "panels are exact around their edges, whatever has to be repacked", "[matmul]") {
  for (const std::uint64_t m : {1u, 2u, 5u, 16u, 17u, 33u}) {
    for (const std::uint64_t k : {1u, 3u, 4u, 8u, 12u, 37u, 64u}) {
      for (const std::uint64_t n : {1u, 3u, 8u, 31u, 33u, 64u, 130u}) {
        check_product(shared_device(), m, k, n, MatmulKernel::panel);
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "panels in workgroups of several tiles are exact where the last has too few", "[matmul]") {
  check_product(shared_device(), 100, 63, 1024, MatmulKernel::panel);
  check_product(shared_device(), 33, 61, 2081, MatmulKernel::panel);
}

TEST_CASE_METHOD(DeviceTest, "panels with weights of every type, whole and in parts", "[matmul][weights]") {
  for (const bool parts : {false, true}) {
    DeviceOptions options = checked_options();
    if (parts) options.simulate.max_storage_range = 16384;
    const Device device = open_device(options);
    for (const DType type : types) {
      const bool blocks = type == DType::q8_0 || type == DType::q4_0;
      check_weight(device, {MatmulKernel::panel, 5, blocks ? 96u : 61u, 37, type});
      check_weight(device, {MatmulKernel::panel, 33, 64, 50, type});
    }
  }
}

}  // namespace brontes::test
