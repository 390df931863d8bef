// Products by matrix units, against the double reference. Drivers without VK_KHR_cooperative_matrix skip these: they
// run in the suite lavapipe26.
#include "fixture.hpp"
#include "reference.hpp"
#include "stored_weights.hpp"

#include <brontes/matmul_cache.hpp>
#include <brontes/tuning.hpp>
#include <brontes/weight.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace brontes::test {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

MatmulOptions forced(Layout layout, std::uint32_t variant = 0, float alpha = 1) {
  return {alpha, layout, MatmulKernel::coopmat, variant, Precision::f16};
}

// Skips the test where the device, or the build, cannot do it.
void need_matrices(const Device& device = shared_device()) {
  const MatmulChoice choice = explain_matmul(device, 64, 64, 64, forced(Layout::nk));
  if (choice.kernel != MatmulKernel::coopmat) SKIP(choice.reason);
}

// A device that passes for a GPU of this vendor.
Device vendor_device(std::uint32_t vendor) {
  DeviceOptions options = checked_options();
  options.simulate.vendor_id = vendor;
  return open_device(options);
}
constexpr std::uint32_t nvidia = 0x10de, amd = 0x1002, qualcomm = 0x5143;

struct Sizes {
  std::uint64_t m, k, n;
};

// Small whole numbers, which f16 holds: every order of adding up gives the same. With alpha and a bias per column.
void check_exact(const Device& device, const Sizes& s, const MatmulOptions& options) {
  INFO("m = " << s.m << ", k = " << s.k << ", n = " << s.n << ", " << to_string(options.layout) << ", variant "
              << options.variant);
  const std::vector<float> a = cases::random_integers(s.m * s.k, 3, s.m);
  const std::vector<float> b = cases::random_integers(s.k * s.n, 3, s.n);
  const std::vector<float> bias = cases::random_integers(s.n, 9, 5);
  cases::MatmulReference reference = cases::matmul(a, b, s.m, s.k, s.n, options.layout, options.alpha);
  for (std::uint64_t i = 0; i < s.m * s.n; ++i) reference.product[i] += static_cast<double>(bias[i % s.n]);
  Batch batch(device);
  const Tensor product = batch.matmul(batch.upload(a), batch.upload(b), s.m, s.k, s.n, options);
  CHECK(cases::mismatch(run(batch, batch.add(product, batch.upload(bias))), reference, 0) == "");
}

// Any finite numbers, held to the tolerance that Precision::f16 states.
void check_weight(const Device& device, DType type, const Sizes& s, std::uint32_t variant = 0) {
  INFO("m = " << s.m << ", k = " << s.k << ", n = " << s.n << ", " << to_string(type) << ", variant " << variant);
  const std::vector<float> x = cases::random_values(s.m * s.k, -1, 1, s.m);
  const StoredWeights w = random_stored(type, s.n, s.k, s.k + s.n);
  const reference::Expected expected = reference::matmul_f16(
      {x.begin(), x.end()}, Shape(s.m, s.k), {w.values.begin(), w.values.end()}, Shape(s.n, s.k), Layout::nk, 0.75);
  auto weight = Weight::from_stored(device, w.bytes, s.n, s.k, type);
  REQUIRE_OK(weight.error());
  Batch batch(device);
  const Tensor y =
      batch.matmul(batch.upload(x, {s.m, s.k}), batch.import_weight(*weight), forced(Layout::nk, variant, 0.75f));
  const std::vector<float> got = run(batch, y);
  REQUIRE(got.size() == expected.values.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double off = std::abs(static_cast<double>(got[i]) - expected.values[i]);
    INFO("element " << i << ": " << got[i] << " for " << expected.values[i]);
    if (!(off <= expected.allowed[i])) CHECK(off <= expected.allowed[i]);
  }
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "every variant of the coopmat kernel is exact around its edges", "[coopmat]") {
  need_matrices();
  for (const Layout layout : {Layout::kn, Layout::nk}) {
    for (std::uint32_t variant = 1; variant <= matmul_variants(MatmulKernel::coopmat, layout); ++variant) {
      for (const Sizes& s : {Sizes{64, 64, 64}, Sizes{7, 40, 36}, Sizes{133, 37, 131}, Sizes{9, 33, 5}, Sizes{1, 1, 1},
                             Sizes{65, 95, 68}, Sizes{16, 4, 130}}) {
        check_exact(shared_device(), s, forced(layout, variant, 0.5f));
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "coopmat reads weights of every type within its tolerance, whole and in parts",
                 "[coopmat][weights]") {
  need_matrices();
  for (const bool parts : {false, true}) {
    DeviceOptions options = checked_options();
    // Less than the larger weights of every type take, and more than their products.
    if (parts) options.simulate.max_storage_range = 8192;
    const Device device = open_device(options);
    for (const DType type : all_types) {
      for (std::uint32_t variant = 1; variant <= matmul_variants(MatmulKernel::coopmat, Layout::nk); ++variant) {
        check_weight(device, type, {10, quantized(type) ? 96u : 31u, 37}, variant);
        check_weight(device, type, {parts ? 10u : 33u, quantized(type) ? 128u : 36u, 140}, variant);
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "coopmat adds up slices of k", "[coopmat]") {
  need_matrices();
  for (const std::uint64_t k : {5000u, 4096u, 4099u}) {
    for (const Layout layout : {Layout::kn, Layout::nk}) {
      CHECK(explain_matmul(shared_device(), 40, k, 8, forced(layout)).slices > 1);
      check_exact(shared_device(), {40, k, 8}, forced(layout, 0, 0.5f));
    }
  }
  for (const DType type : all_types) check_weight(shared_device(), type, {12, 2080, 6});
}

TEST_CASE_METHOD(DeviceTest, "coopmat in several dispatches along k applies alpha once", "[coopmat]") {
  need_matrices();
  DeviceOptions options = checked_options();
  options.simulate.max_loop_iterations = 64;
  const Device device = open_device(options);
  CHECK(explain_matmul(device, 40, 4000, 70, forced(Layout::nk)).dispatches > 1);
  check_exact(device, {40, 4000, 70}, forced(Layout::nk, 0, 0.5f));
  check_exact(device, {40, 4001, 67}, forced(Layout::kn, 0, 0.5f));
  // Parts of the sum have both signs; the whole is 1.
  std::vector<float> a(40 * 4000, 0.0f);
  for (std::uint64_t i = 0; i < 40; ++i) {
    a[i * 4000] = -1;
    a[i * 4000 + 3999] = 2;
  }
  Batch batch(device);
  const Tensor y = batch.matmul(batch.upload(a, {40, 4000}), batch.fill(1, {70, 4000}), forced(Layout::nk, 0, inf));
  CHECK(run(batch, y) == std::vector<float>(40 * 70, inf));
}

TEST_CASE_METHOD(DeviceTest, "batches of products run on matrix units as one dispatch", "[coopmat]") {
  need_matrices();
  for (const Layout layout : {Layout::kn, Layout::nk}) {
    for (const std::uint64_t matrices : {1u, 3u}) {
      const Shape a_shape(2, 3, 21, 39);
      const Shape b_shape = layout == Layout::nk ? Shape(matrices, 30, 39) : Shape(matrices, 39, 30);
      const std::vector<float> a = cases::random_integers(a_shape.count(), 3, 1);
      const std::vector<float> b = cases::random_integers(b_shape.count(), 3, 2);
      Batch batch(shared_device());
      const Tensor y = batch.matmul(batch.upload(a, a_shape), batch.upload(b, b_shape), forced(layout));
      CHECK(cases::mismatch(run(batch, y), cases::batched_matmul(a, a_shape, b, b_shape, layout), 0) == "");
      CHECK(batch.stats().dispatches == 1);
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "coopmat takes the epilogues that other kernels take", "[coopmat][fusion]") {
  need_matrices();
  for (const std::uint64_t n : {72u, 45u}) {
    const std::vector<float> a = cases::random_integers(50 * 64, 3, 1);
    const std::vector<float> b = cases::random_integers(64 * n, 3, 2);
    const std::vector<float> bias = cases::random_values(n, -1, 1, 3);
    const std::vector<float> residual = cases::random_values(50 * n, -1, 1, 4);
    std::vector<float> results[2];
    for (const bool coopmat : {false, true}) {
      Batch batch(shared_device());
      MatmulOptions options = forced(Layout::nk);
      if (!coopmat) options.kernel = MatmulKernel::naive;
      const Tensor product = batch.matmul(batch.upload(a, {50, 64}), batch.upload(b, {n, 64}), options);
      const Tensor active = batch.gelu(batch.add(batch.scale(product, 0.125f), batch.upload(bias)));
      results[coopmat ? 1 : 0] = run(batch, batch.add(active, batch.upload(residual, {50, n})));
      CHECK(batch.stats().dispatches == 1);
    }
    // The sums are the same; gelu need not have the same bits in two kernels.
    REQUIRE(results[0].size() == results[1].size());
    float furthest = 0;
    for (std::size_t i = 0; i < results[0].size(); ++i) {
      furthest = std::max(furthest, std::abs(results[0][i] - results[1][i]));
    }
    CHECK(furthest <= 2e-6f);
  }
}

TEST_CASE_METHOD(DeviceTest, "NaN and infinities go through matrix units, and padding makes none", "[coopmat]") {
  need_matrices();
  for (const Layout layout : {Layout::kn, Layout::nk}) {
    // The last of k is beside the padding; rows and columns past the end repeat it.
    std::vector<float> a(35 * 33, 1.0f);
    a[2 * 33 + 32] = inf;
    a[34 * 33 + 32] = nan;
    Batch batch(shared_device());
    const Tensor y = batch.matmul(batch.upload(a), batch.fill(1, {33 * 19}), 35, 33, 19, forced(layout));
    const std::vector<float> got = run(batch, y);
    for (std::size_t i = 0; i < got.size(); ++i) {
      const std::size_t row = i / 19;
      INFO("row " << row << ", " << to_string(layout));
      if (row == 34) {
        CHECK(std::isnan(got[i]));
      } else {
        CHECK(got[i] == (row == 2 ? inf : 33.0f));
      }
    }
  }
  // Stated: elements past what f16 holds are infinite.
  Batch batch(shared_device());
  CHECK(run(batch, batch.matmul(batch.fill(70000, {16, 16}), batch.fill(1, {16, 16}), forced(Layout::nk)))[0] == inf);
}

TEST_CASE_METHOD(DeviceTest, "matrix units are used where the precision allows f16, and nowhere else",
                 "[coopmat][selection]") {
  need_matrices();
  const Device gpu = vendor_device(nvidia);
  MatmulOptions options;
  CHECK(explain_matmul(gpu, 512, 512, 512, options).kernel == MatmulKernel::tiled);
  CHECK(contains(explain_matmul(gpu, 512, 512, 512, options).reason, "Precision::f32"));
  options.precision = Precision::f16;
  CHECK(explain_matmul(gpu, 512, 512, 512, options).kernel == MatmulKernel::coopmat);
  CHECK(explain_matmul(vendor_device(amd), 512, 512, 512, options).kernel == MatmulKernel::coopmat);
  CHECK(explain_matmul(gpu, 8, 512, 512, options).kernel != MatmulKernel::coopmat);
  CHECK(contains(explain_matmul(gpu, 8, 512, 512, options).reason, "few rows"));
  CHECK(contains(explain_matmul(vendor_device(qualcomm), 512, 512, 512, options).reason, "not by matrix units"));
  CHECK(contains(explain_matmul(shared_device(), 512, 512, 512, options).reason, "emulates"));

  Batch refused(gpu);
  (void)refused.matmul(refused.fill(1, {16, 16}), refused.fill(1, {16, 16}), {1, Layout::nk, MatmulKernel::coopmat});
  CHECK(refused.execute().code == Errc::invalid_argument);

  // The batch's own precision, and an op that has another.
  BatchOptions allowing;
  allowing.precision = Precision::f16;
  Batch batch(gpu, allowing);
  const std::vector<float> fine(64 * 64, 1.0f + 0x1p-20f);
  MatmulOptions exact;
  exact.precision = Precision::f32;
  const Tensor x = batch.upload(fine, {64, 64});
  const Tensor rounded = batch.matmul(x, x);
  const Tensor kept = batch.matmul(x, x, exact);
  REQUIRE_OK(batch.execute());
  CHECK(read(batch, rounded)[0] == 64.0f);
  CHECK(read(batch, kept)[0] > 64.0f);
}

TEST_CASE_METHOD(DeviceTest, "a cache, a program and a shadow check know of the precision", "[coopmat]") {
  need_matrices();
  const Device gpu = vendor_device(nvidia);
  const std::vector<float> w = cases::random_values(40 * 96, -1, 1, 1);
  const std::vector<float> x = cases::random_values(20 * 96, -1, 1, 2);
  const reference::Expected expected =
      reference::matmul_f16({x.begin(), x.end()}, Shape(20, 96), {w.begin(), w.end()}, Shape(40, 96), Layout::nk, 1);
  MatmulCacheOptions options;
  options.precision = Precision::f16;
  MatmulCache cache(gpu, options);
  REQUIRE_OK(cache.upload_weight("w", w, 40, 96));
  std::vector<float> y(20 * 40);
  REQUIRE_OK(cache.matmul("w", x, y, 20));
  double furthest = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double off = std::abs(static_cast<double>(y[i]) - expected.values[i]);
    CHECK(off <= expected.allowed[i]);
    furthest = std::max(furthest, off);
  }
  CHECK(furthest > 1e-6);  // as f32 would not be

  BatchOptions allowing;
  allowing.precision = Precision::f16;
  Batch batch(gpu, allowing);
  const Tensor product = batch.linear(batch.upload(x, {20, 96}), batch.upload(w, {40, 96}));
  batch.keep(product);
  const auto dump = batch.dump(DumpFormat::text, DumpStage::recorded);
  REQUIRE_OK(dump.error());
  CHECK(contains(*dump, "precision f16"));
  auto program = batch.compile();
  REQUIRE_OK(program.error());
  const auto report = program->shadow_check();
  REQUIRE_OK(report.error());
  CHECK(report->ok);
  CHECK(report->checked == 1);
}

TEST_CASE_METHOD(DeviceTest, "tuning measures matrix units where the precision allows them", "[coopmat][tuning]") {
  need_matrices();
  DeviceOptions options = checked_options();
  options.tuning.enabled = true;
  options.simulate.vendor_id = nvidia;  // and so no file
  const Device device = open_device(options);
  TuneOptions tuning;
  tuning.shapes = {{64, 64, 64, Layout::nk, Precision::f16}};
  tuning.compare_access = false;
  tuning.save = false;
  const auto report = tune_matmul(device, tuning);
  REQUIRE_OK(report.error());
  REQUIRE(report->shapes.size() == 1);
  CHECK(report->shapes[0].shape.precision == Precision::f16);
  // What was measured for f16 says nothing of f32.
  CHECK(explain_matmul(device, 64, 64, 64, {1, Layout::nk}).kernel != MatmulKernel::coopmat);
}

}  // namespace brontes::test
