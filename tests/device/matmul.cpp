#include "fixture.hpp"
#include "reference.hpp"

#include <cmath>
#include <limits>

namespace brontes::test {
namespace {

using Sizes = std::vector<std::uint64_t>;

struct Product {
  std::uint64_t m, k, n;
  MatmulOptions options;
};

std::string describe(const Product& p) {
  return "m = " + std::to_string(p.m) + ", k = " + std::to_string(p.k) + ", n = " + std::to_string(p.n) + ", layout " +
         to_string(p.options.layout) + ", kernel " + to_string(p.options.kernel);
}

std::vector<MatmulKernel> kernels_for(std::uint64_t m) {
  std::vector<MatmulKernel> kernels = {MatmulKernel::automatic, MatmulKernel::naive, MatmulKernel::tiled,
                                       MatmulKernel::subgroup, MatmulKernel::panel};
  if (m <= 8) kernels.push_back(MatmulKernel::gemv);
  return kernels;
}

// Whole numbers small enough for exact sums: every kernel must give the very same product.
void check_exact(const Device& device, std::uint64_t m, std::uint64_t k, const Sizes& ns,
                 const std::vector<MatmulKernel>& kernels) {
  Batch batch(device);
  const std::vector<float> a = cases::random_integers(m * k, 3, m * 1000 + k);
  const Tensor ta = batch.upload(a, {m, k});
  std::vector<Tensor> results;
  std::vector<std::vector<float>> expected;
  std::vector<Product> products;
  for (std::uint64_t n : ns) {
    const std::vector<float> b = cases::random_integers(k * n, 3, n);
    for (Layout layout : {Layout::kn, Layout::nk}) {
      const Tensor tb = batch.upload(b, layout == Layout::kn ? Shape(k, n) : Shape(n, k));
      const cases::MatmulReference reference = cases::matmul(a, b, m, k, n, layout);
      for (MatmulKernel kernel : kernels) {
        products.push_back({m, k, n, {1.0f, layout, kernel}});
        results.push_back(batch.matmul(ta, tb, products.back().options));
        expected.emplace_back(reference.product.begin(), reference.product.end());
      }
    }
  }
  REQUIRE_OK(batch.execute());
  for (std::size_t i = 0; i < results.size(); ++i) {
    INFO(describe(products[i]));
    REQUIRE(cases::mismatch(read(batch, results[i]), expected[i]) == "");
  }
}

// Ones times 0, 1, 2, 0, 1, 2, ... : exact, and cheap to know without a reference product.
void check_long(const Device& device, std::uint64_t m, std::uint64_t k, std::uint64_t n, Layout layout,
                MatmulKernel kernel) {
  std::vector<float> b(k * n);
  std::vector<float> want(n, 0.0f);
  for (std::uint64_t j = 0; j < n; ++j) {
    for (std::uint64_t p = 0; p < k; ++p) {
      const auto value = static_cast<float>((p + j) % 3);
      b[layout == Layout::kn ? p * n + j : j * k + p] = value;
      want[j] += value;
    }
  }
  Batch batch(device);
  const Tensor product = batch.matmul(batch.fill(1.0f, {m, k}), batch.upload(b), m, k, n, {1.0f, layout, kernel});
  INFO(describe({m, k, n, {1.0f, layout, kernel}}));
  const std::vector<float> got = run(batch, product);
  REQUIRE(got.size() == m * n);
  for (std::uint64_t i = 0; i < m; ++i) {
    for (std::uint64_t j = 0; j < n; ++j) REQUIRE(got[i * n + j] == want[j]);
  }
}

// An outer product: one element wrong for every group that does not run.
void check_wide(const Device& device, std::uint64_t m, std::uint64_t k, std::uint64_t n, Layout layout,
                MatmulKernel kernel) {
  const std::vector<float> a = cases::random_integers(m * k, 50, 1);
  const std::vector<float> b = cases::random_integers(k * n, 50, 2);
  const cases::MatmulReference reference = cases::matmul(a, b, m, k, n, layout);
  Batch batch(device);
  const Tensor product = batch.matmul(batch.upload(a), batch.upload(b), m, k, n, {1.0f, layout, kernel});
  INFO(describe({m, k, n, {1.0f, layout, kernel}}));
  CHECK(cases::mismatch(run(batch, product), reference, 0) == "");
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "every kernel and layout gives the same exact product around tile edges", "[matmul]") {
  const Sizes edges = {1, 2, 3, 4, 15, 16, 17, 31, 32, 33, 64, 65, 70};
  Sizes all;
  for (std::uint64_t i = 1; i <= 70; ++i) all.push_back(i);
  const Sizes& sizes = soak() ? all : edges;
  for (std::uint64_t m : sizes) {
    // What the selector picks is one of these.
    std::vector<MatmulKernel> kernels = {MatmulKernel::naive, MatmulKernel::tiled};
    if (m <= 8) kernels.push_back(MatmulKernel::gemv);
    for (std::uint64_t k : sizes) check_exact(shared_device(), m, k, sizes, kernels);
  }
}

TEST_CASE_METHOD(DeviceTest, "larger products with ragged sizes are exact on every kernel", "[matmul]") {
  check_exact(shared_device(), 129, 130, {127, 128, 131}, kernels_for(129));
  check_exact(shared_device(), 1, 1027, {1, 255, 257, 1001}, kernels_for(1));
  check_exact(shared_device(), 7, 513, {3, 66}, kernels_for(7));
}

TEST_CASE_METHOD(DeviceTest, "products of fractions keep within the tolerance, scaled by alpha", "[matmul]") {
  const std::uint64_t m = 33, k = 1023, n = 65;
  for (std::uint64_t rows : {std::uint64_t{1}, m}) {
    const std::vector<float> a = cases::random_values(rows * k, -1, 1, 1);
    const std::vector<float> b = cases::random_values(k * n, -1, 1, 2);
    for (Layout layout : {Layout::kn, Layout::nk}) {
      for (float alpha : {1.0f, -0.3f, 0.0f}) {
        const cases::MatmulReference reference = cases::matmul(a, b, rows, k, n, layout, alpha);
        for (MatmulKernel kernel : kernels_for(rows)) {
          Batch batch(shared_device());
          const Product p{rows, k, n, {alpha, layout, kernel}};
          const Tensor product = batch.matmul(batch.upload(a), batch.upload(b), rows, k, n, p.options);
          INFO(describe(p) << ", alpha " << alpha);
          CHECK(cases::mismatch(run(batch, product), reference, cases::matmul_tolerance) == "");
        }
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "one row and the same row among several give the same product", "[matmul]") {
  // trueno reads the weight as [N, K] for one row and as [K, N] for more.
  const std::uint64_t k = 37, n = 29;
  const std::vector<float> row = cases::random_integers(k, 5, 1);
  std::vector<float> rows;
  for (int i = 0; i < 3; ++i) rows.insert(rows.end(), row.begin(), row.end());
  const std::vector<float> b = cases::random_integers(k * n, 5, 2);
  for (Layout layout : {Layout::kn, Layout::nk}) {
    Batch batch(shared_device());
    const Tensor tb = batch.upload(b);
    const Tensor single = batch.matmul(batch.upload(row), tb, 1, k, n, {1.0f, layout, MatmulKernel::automatic});
    const Tensor several = batch.matmul(batch.upload(rows), tb, 3, k, n, {1.0f, layout, MatmulKernel::automatic});
    REQUIRE_OK(batch.execute());
    const std::vector<float> one = read(batch, single);
    const std::vector<float> three = read(batch, several);
    for (std::uint64_t i = 0; i < 3; ++i) {
      CHECK(std::vector<float>(three.begin() + static_cast<std::ptrdiff_t>(i * n),
                               three.begin() + static_cast<std::ptrdiff_t>((i + 1) * n)) == one);
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "the last K % 4 elements count", "[matmul]") {
  for (std::uint64_t k : {1u, 2u, 3u, 5u, 6u, 7u, 61u, 62u, 63u, 257u, 258u, 259u}) {
    for (Layout layout : {Layout::kn, Layout::nk}) {
      for (std::uint64_t m : {std::uint64_t{1}, std::uint64_t{3}}) {
        std::vector<float> a(m * k, 0.0f);
        for (std::uint64_t i = 0; i < m; ++i) a[i * k + k - 1] = static_cast<float>(i + 1);
        const std::uint64_t n = 5;
        Batch batch(shared_device());
        const Tensor ta = batch.upload(a);
        const Tensor tb = batch.fill(2.0f, {k * n});
        std::vector<Tensor> results;
        for (MatmulKernel kernel : kernels_for(m))
          results.push_back(batch.matmul(ta, tb, m, k, n, {1.0f, layout, kernel}));
        REQUIRE_OK(batch.execute());
        for (Tensor result : results) {
          INFO("m = " << m << ", k = " << k << ", layout " << to_string(layout));
          const std::vector<float> got = read(batch, result);
          for (std::uint64_t i = 0; i < m * n; ++i) CHECK(got[i] == 2.0f * static_cast<float>(i / n + 1));
        }
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "a product without terms is zero, and one without elements is empty", "[matmul]") {
  for (Layout layout : {Layout::kn, Layout::nk}) {
    for (std::uint64_t m : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{3}}) {
      for (std::uint64_t k : {std::uint64_t{0}, std::uint64_t{2}}) {
        for (std::uint64_t n : {std::uint64_t{0}, std::uint64_t{4}}) {
          for (MatmulKernel kernel : kernels_for(m)) {
            Batch batch(shared_device());
            const Product p{m, k, n, {1.0f, layout, kernel}};
            const Tensor product = batch.matmul(batch.fill(1, {m, k}), batch.fill(1, {k * n}), m, k, n, p.options);
            INFO(describe(p));
            CHECK(product.shape() == Shape(m, n));
            const std::vector<float> got = run(batch, product);
            CHECK(got == std::vector<float>(m * n, static_cast<float>(k)));
          }
        }
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "sizes come from the shapes; vectors are rows on the left and columns on the right",
                 "[matmul]") {
  Batch batch(shared_device());
  const Tensor a = batch.upload({1.f, 2.f, 3.f, 4.f, 5.f, 6.f}, {2, 3});
  const Tensor b = batch.upload({1.f, 2.f, 3.f, 4.f, 5.f, 6.f}, {3, 2});
  const Tensor v = batch.upload({1.f, 10.f, 100.f});
  MatmulOptions nk;
  nk.layout = Layout::nk;
  const Tensor ab = batch.matmul(a, b);
  const Tensor aat = batch.matmul(a, a, nk);
  const Tensor av = batch.matmul(a, v);
  const Tensor vb = batch.matmul(v, b);
  const Tensor vv = batch.matmul(v, v);
  REQUIRE_OK(batch.execute());
  CHECK(ab.shape() == Shape(2, 2));
  CHECK(read(batch, ab) == std::vector<float>{22, 28, 49, 64});
  CHECK(read(batch, aat) == std::vector<float>{14, 32, 32, 77});
  CHECK(av.size() == 2);
  CHECK(read(batch, av) == std::vector<float>{321, 654});
  CHECK(vb.size() == 2);
  CHECK(read(batch, vb) == std::vector<float>{531, 642});
  CHECK(read(batch, vv) == std::vector<float>{10101});
}

TEST_CASE_METHOD(DeviceTest, "linear is x W^T + bias", "[matmul]") {
  const std::uint64_t m = 5, k = 19, n = 7;
  const std::vector<float> x = cases::random_integers(m * k, 4, 1);
  const std::vector<float> w = cases::random_integers(n * k, 4, 2);
  const std::vector<float> bias = cases::random_integers(n, 4, 3);
  Batch batch(shared_device());
  const Tensor tx = batch.upload(x, {m, k});
  const Tensor tw = batch.upload(w, {n, k});
  const Tensor plain = batch.linear(tx, tw);
  const Tensor biased = batch.linear(tx, tw, batch.upload(bias));
  REQUIRE_OK(batch.execute());
  cases::MatmulReference reference = cases::matmul(x, w, m, k, n, Layout::nk);
  CHECK(plain.shape() == Shape(m, n));
  CHECK(cases::mismatch(read(batch, plain), reference, 0) == "");
  for (std::uint64_t i = 0; i < m * n; ++i) reference.product[i] += static_cast<double>(bias[i % n]);
  CHECK(biased.shape() == Shape(m, n));
  CHECK(cases::mismatch(read(batch, biased), reference, 0) == "");
}

TEST_CASE_METHOD(DeviceTest, "NaN and infinity reach the elements they touch and no others", "[matmul]") {
  const std::uint64_t m = 18, k = 21, n = 35;
  std::vector<float> a(m * k, 1.0f);
  std::vector<float> b(k * n, 1.0f);
  // In the first and in the last of k, next to which something is read that does not count.
  a[7 * k + 20] = std::nanf("");
  a[9 * k] = std::nanf("");
  b[3 * n + 34] = HUGE_VALF;
  b[20 * n + 33] = HUGE_VALF;
  std::vector<float> w(n * k);
  for (std::uint64_t i = 0; i < w.size(); ++i) w[i] = b[i % k * n + i / k];
  auto check = [&](const Device& device, MatmulKernel kernel, Layout layout) {
    Batch batch(device);
    const Tensor product =
        batch.matmul(batch.upload(a), batch.upload(layout == Layout::kn ? b : w), m, k, n, {1.0f, layout, kernel});
    const std::vector<float> got = run(batch, product);
    std::size_t wrong = 0;
    for (std::uint64_t i = 0; i < m; ++i) {
      for (std::uint64_t j = 0; j < n; ++j) {
        const float v = got[i * n + j];
        wrong += !(i == 7 || i == 9 ? std::isnan(v) : j >= 33 ? v == HUGE_VALF : v == static_cast<float>(k));
      }
    }
    INFO(to_string(kernel) << ' ' << to_string(layout) << ", access: " << to_string(device.info().access));
    CHECK(wrong == 0);
  };
  for (const AccessMode access : {AccessMode::automatic, AccessMode::storage}) {
    DeviceOptions options = checked_options();
    options.access = access;
    const Device device = open_device(options);
    for (const Layout layout : {Layout::kn, Layout::nk}) {
      for (MatmulKernel kernel :
           {MatmulKernel::naive, MatmulKernel::tiled, MatmulKernel::subgroup, MatmulKernel::panel}) {
        check(device, kernel, layout);
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "a product with 300,000 terms loses none to a driver's loop limit", "[matmul]") {
  // lavapipe of Mesa 22 ends an invocation's loops near 65535 iterations.
  for (Layout layout : {Layout::kn, Layout::nk}) {
    check_long(shared_device(), 1, 300000, 1, layout, MatmulKernel::automatic);
    for (MatmulKernel kernel : {MatmulKernel::naive, MatmulKernel::tiled, MatmulKernel::gemv}) {
      check_long(shared_device(), 1, 300001, 3, layout, kernel);
    }
    check_long(shared_device(), 2, 300003, 2, layout, MatmulKernel::automatic);
  }
}

TEST_CASE_METHOD(DeviceTest, "products stay exact when an invocation may loop only a few times", "[matmul]") {
  DeviceOptions options = checked_options();
  options.simulate.max_loop_iterations = 64;
  for (const AccessMode access : {AccessMode::automatic, AccessMode::storage}) {
    options.access = access;
    const Device device = open_device(options);
    for (Layout layout : {Layout::kn, Layout::nk}) {
      for (MatmulKernel kernel : kernels_for(1)) check_long(device, 1, 20003, 5, layout, kernel);
      for (MatmulKernel kernel :
           {MatmulKernel::naive, MatmulKernel::tiled, MatmulKernel::subgroup, MatmulKernel::panel}) {
        check_long(device, 3, 2501, 6, layout, kernel);
        CHECK(explain_matmul(device, 3, 2501, 6, {1.0f, layout, kernel}).dispatches > 1);
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "a split product with alpha scales every part once", "[matmul]") {
  DeviceOptions options = checked_options();
  options.simulate.max_loop_iterations = 64;
  const Device device = open_device(options);
  const std::uint64_t k = 1501;
  for (Layout layout : {Layout::kn, Layout::nk}) {
    for (MatmulKernel kernel : kernels_for(1)) {
      Batch batch(device);
      const Tensor product =
          batch.matmul(batch.fill(1.0f, {k}), batch.fill(1.0f, {k * 3}), 1, k, 3, {0.5f, layout, kernel});
      INFO(to_string(kernel));
      CHECK(run(batch, product) == std::vector<float>(3, 750.5f));
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "products whose grid crosses 65535 groups are complete", "[matmul]") {
  struct Case {
    MatmulKernel kernel;
    std::uint64_t m, k, n;
    Layout layout;
  };
  const Case wide[] = {
      {MatmulKernel::naive, 65536 * 16 + 1, 1, 1, Layout::kn},
      {MatmulKernel::naive, 1, 2, 65536 * 16 + 1, Layout::kn},
      {MatmulKernel::gemv, 1, 3, 65536 * 4 + 1, Layout::nk},
      {MatmulKernel::tiled, 65536 * 32 + 1, 1, 1, Layout::nk},
  };
  // With little shared memory the tiles are small, and the products need not be huge.
  DeviceOptions options = checked_options();
  options.simulate.max_shared_bytes = 6144;
  const Device device = open_device(options);
  for (const Case& c : wide) {
    const MatmulChoice choice = explain_matmul(device, c.m, c.k, c.n, {1.0f, c.layout, c.kernel});
    INFO(to_string(c.kernel) << ": " << choice.groups << " groups");
    CHECK(choice.groups > 65535);
    check_wide(device, c.m, c.k, c.n, c.layout, c.kernel);
  }
}

TEST_CASE_METHOD(DeviceTest, "products are complete on a device that allows seven groups per axis", "[matmul]") {
  DeviceOptions options = checked_options();
  options.simulate.max_group_count = 7;
  const Device device = open_device(options);
  for (Layout layout : {Layout::kn, Layout::nk}) {
    check_wide(device, 150, 3, 200, layout, MatmulKernel::naive);
    check_wide(device, 1, 3, 997, layout, MatmulKernel::gemv);
    check_wide(device, 700, 3, 300, layout, MatmulKernel::tiled);
    check_wide(device, 250, 3, 300, layout, MatmulKernel::automatic);
  }
}

TEST_CASE_METHOD(DeviceTest, "the batch's kernel applies to a matmul that does not choose its own", "[matmul]") {
  BatchOptions options;
  options.matmul = MatmulKernel::naive;
  Batch batch(shared_device(), options);
  const Tensor a = batch.fill(1, {4, 4});
  (void)batch.matmul(a, a);
  const Result<std::string> dump = batch.dump();
  REQUIRE_OK(dump.error());
  CHECK(contains(*dump, "naive"));
  CHECK_FALSE(contains(*dump, "tiled"));

  MatmulOptions own;
  own.kernel = MatmulKernel::tiled;
  (void)batch.matmul(a, a, own);
  CHECK(contains(batch.dump().value(), "tiled"));
}

TEST_CASE_METHOD(DeviceTest, "explain names the kernel, what it costs and why", "[matmul]") {
  const MatmulChoice row = explain_matmul(shared_device(), 1, 512, 512);
  const bool cpu = shared_device().info().type == DeviceType::cpu;
  CHECK(row.kernel == (cpu ? MatmulKernel::subgroup : MatmulKernel::gemv));
  const MatmulChoice square = explain_matmul(shared_device(), 64, 256, 256);
  CHECK(square.kernel != MatmulKernel::automatic);
  CHECK(square.kernel != MatmulKernel::gemv);
  CHECK(square.groups > 0);
  CHECK(square.dispatches == 1);
  CHECK_FALSE(square.reason.empty());
  const MatmulChoice nothing = explain_matmul(shared_device(), 0, 16, 16);
  CHECK(nothing.kernel == MatmulKernel::automatic);
  CHECK(nothing.dispatches == 0);
  CHECK_FALSE(nothing.reason.empty());
  const MatmulChoice forced = explain_matmul(shared_device(), 256, 256, 256, {1.0f, Layout::nk, MatmulKernel::naive});
  CHECK(forced.kernel == MatmulKernel::naive);
}

TEST_CASE_METHOD(DeviceTest, "a row of a product agrees with the product of that row, bit by bit if asked",
                 "[matmul]") {
  const std::uint64_t m = 64, k = 519, n = 37;
  const std::vector<float> a = cases::random_values(m * k, -1.0f, 1.0f, 1);
  const std::vector<float> b = cases::random_values(k * n, -1.0f, 1.0f, 2);
  for (const bool invariant : {true, false}) {
    for (const Layout layout : {Layout::kn, Layout::nk}) {
      BatchOptions options;
      options.batch_invariant = invariant;
      Batch batch(shared_device(), options);
      const Tensor tb = batch.upload(b);
      const Tensor all = batch.matmul(batch.upload(a), tb, m, k, n, {1.0f, layout});
      std::vector<Tensor> rows;
      for (std::uint64_t i = 0; i < m; i += 9) {
        rows.push_back(batch.matmul(batch.upload({a.data() + i * k, k}), tb, 1, k, n, {1.0f, layout}));
      }
      REQUIRE_OK(batch.execute());
      const std::vector<float> product = read(batch, all);
      for (std::size_t r = 0; r < rows.size(); ++r) {
        const std::vector<float> row = read(batch, rows[r]);
        for (std::uint64_t j = 0; j < n; ++j) {
          INFO("row " << 9 * r << ", column " << j << ", layout " << to_string(layout));
          if (invariant) {
            REQUIRE(row[j] == product[9 * r * n + j]);
          } else {
            REQUIRE(std::abs(row[j] - product[9 * r * n + j]) < 1e-3f);
          }
        }
      }
    }
  }
}

}  // namespace brontes::test
