// Batches of products: every kernel with leading dims of every kind, each in as many dispatches as a single product.
#include "fixture.hpp"
#include "reference.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

namespace brontes::test {
namespace {

struct Leading {
  std::vector<std::uint64_t> a, b;
};

// Both have all matrices; one repeats inside, outside or both; rows that are leading dims.
const Leading patterns[] = {
    {{5}, {5}}, {{2, 1}, {2, 3}}, {{3}, {2, 3}}, {{2, 3}, {3}}, {{3, 1}, {2}}, {{}, {4}}, {{2, 3}, {2, 1}}, {{4}, {}},
};

Shape with(const std::vector<std::uint64_t>& leading, std::uint64_t rows, std::uint64_t columns) {
  std::vector<std::uint64_t> dims = leading;
  dims.insert(dims.end(), {rows, columns});
  return Shape::of(dims);
}

struct Sizes {
  std::uint64_t m, k, n;
};

// Whole numbers, so that every order of adding up gives the same, with alpha and a bias per column. Empty if right.
std::string wrong(const Device& device, const Leading& leading, const Sizes& s, const MatmulOptions& options) {
  const Shape a_shape = with(leading.a, s.m, s.k);
  const bool nk = options.layout == Layout::nk;
  const Shape b_shape = with(leading.b, nk ? s.n : s.k, nk ? s.k : s.n);
  const std::vector<float> a = cases::random_integers(a_shape.count(), 3, s.m);
  const std::vector<float> b = cases::random_integers(b_shape.count(), 3, s.n);
  cases::MatmulReference reference = cases::batched_matmul(a, a_shape, b, b_shape, options.layout, options.alpha);
  const std::vector<float> bias = cases::random_integers(s.n, 9, 5);
  for (std::size_t i = 0; i < reference.product.size(); ++i) {
    reference.product[i] += static_cast<double>(bias[i % s.n]);
  }
  Batch batch(device);
  const Tensor product = batch.matmul(batch.upload(a, a_shape), batch.upload(b, b_shape), options);
  return cases::mismatch(run(batch, batch.add(product, batch.upload(bias))), reference, 0);
}

// SwiftShader takes seconds to compile a kernel with large tiles: there some of each kind have to do.
bool in_brief() { return !soak() && contains(shared_device().info().name, "SwiftShader"); }

constexpr MatmulKernel kernels[] = {MatmulKernel::naive, MatmulKernel::gemv, MatmulKernel::tiled,
                                    MatmulKernel::subgroup, MatmulKernel::panel};

void check_kernels(const Sizes& sizes, Span<const Leading> all) {
  for (const Leading& leading : all) {
    for (const Layout layout : {Layout::kn, Layout::nk}) {
      for (const MatmulKernel kernel : kernels) {
        // Rows that are leading dims are too many for it.
        const bool taller = !leading.a.empty() && (leading.b.empty() || leading.b.back() == 1);
        if (kernel == MatmulKernel::gemv && (sizes.m > 8 || taller)) continue;
        INFO(to_string(kernel) << ' ' << to_string(layout) << ", " << to_string(with(leading.a, sizes.m, sizes.k))
                               << " by " << to_string(with(leading.b, sizes.k, sizes.n)));
        CHECK(wrong(shared_device(), leading, sizes, {0.5f, layout, kernel}) == "");
      }
    }
  }
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "every kernel does batches with leading dims of every kind", "[matmul]") {
  check_kernels({5, 12, 16}, {patterns, in_brief() ? 3 : std::size(patterns)});
  check_kernels({19, 37, 34}, {patterns, 2});
}

TEST_CASE_METHOD(DeviceTest, "batches are exact in every access mode", "[matmul]") {
  for (const AccessMode access : {AccessMode::storage, AccessMode::texel, AccessMode::pointer}) {
    DeviceOptions options = checked_options();
    options.access = access;
    const Result<Device> device = Device::open(options);
    if (!device && access == AccessMode::pointer) {
      CHECK(device.error().code == Errc::unsupported);
      continue;
    }
    REQUIRE_OK(device.error());
    // Few rows: SwiftShader takes minutes to compile large tiles with unaligned loads in modes that it does not choose.
    for (const Sizes& s : {Sizes{2, 12, 18}, Sizes{1, 7, 6}}) {
      for (const Layout layout : {Layout::kn, Layout::nk}) {
        for (const MatmulKernel kernel : {MatmulKernel::subgroup, MatmulKernel::panel}) {
          INFO(to_string(kernel) << ' ' << to_string(layout) << ' ' << to_string(access) << ", m = " << s.m);
          CHECK(wrong(*device, {{2, 1}, {2, 3}}, s, {0.5f, layout, kernel}) == "");
        }
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "every vetted variant of every kernel does a batch", "[matmul]") {
  for (const MatmulKernel kernel : kernels) {
    for (const Layout layout : {Layout::kn, Layout::nk}) {
      const auto variants = static_cast<std::uint32_t>(matmul_variants(kernel, layout));
      const std::uint32_t step = in_brief() ? std::max(variants - 1, 1u) : 1;
      for (std::uint32_t variant = 1; variant <= variants; variant += step) {
        const std::uint64_t most = kernel == MatmulKernel::gemv ? 8 : kernel == MatmulKernel::tiled ? 133 : 21;
        for (const Sizes& s : {Sizes{7, 40, 36}, Sizes{most, 37, 131}}) {
          if (in_brief() && s.m != most) continue;
          INFO(to_string(kernel) << " variant " << variant << ", " << to_string(layout) << ", " << s.m << "x" << s.k
                                 << "x" << s.n);
          CHECK(wrong(shared_device(), {{3}, {3}}, s, {0.5f, layout, kernel, variant}) == "");
        }
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "the selector's choice does batches of any size", "[matmul]") {
  for (const Layout layout : {Layout::kn, Layout::nk}) {
    for (const Sizes& s : {Sizes{1, 64, 96}, Sizes{1, 1, 1}, Sizes{33, 64, 65}, Sizes{128, 32, 16}, Sizes{2, 5, 3}}) {
      for (const Leading& leading : {Leading{{1}, {1}}, Leading{{37}, {37}}, Leading{{2, 9}, {9}}}) {
        INFO(to_string(layout) << ' ' << s.m << "x" << s.k << "x" << s.n);
        CHECK(wrong(shared_device(), leading, s, {1.0f, layout}) == "");
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "slices of k add up for each matrix of a batch", "[matmul]") {
  for (const Layout layout : {Layout::kn, Layout::nk}) {
    for (const std::uint64_t m : {2u, 20u}) {
      for (const std::uint64_t n : {8u, 5u}) {
        const MatmulOptions options{0.5f, layout, m <= 8 ? MatmulKernel::gemv : MatmulKernel::tiled};
        const std::uint64_t k = 4099;
        const Shape b = layout == Layout::nk ? Shape(3, n, k) : Shape(3, k, n);
        const MatmulChoice choice = explain_matmul(shared_device(), {3, m, k}, b, options);
        INFO(to_string(options.kernel) << ' ' << to_string(layout) << ": " << choice.reason);
        CHECK(choice.slices > 1);
        CHECK(choice.dispatches == 2);
        CHECK(wrong(shared_device(), {{3}, {3}}, {m, k, n}, options) == "");
        CHECK(wrong(shared_device(), {{2, 1}, {3}}, {m, k, n}, options) == "");
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "batches stay exact with short loops and on small grids", "[matmul]") {
  DeviceOptions options = checked_options();
  options.simulate.max_loop_iterations = 64;
  options.simulate.max_group_count = 9;
  const Device device = open_device(options);
  for (const Layout layout : {Layout::kn, Layout::nk}) {
    for (const MatmulKernel kernel : kernels) {
      INFO(to_string(kernel) << ' ' << to_string(layout));
      CHECK(wrong(device, {{2, 1}, {3}}, {5, 1201, 6}, {0.5f, layout, kernel}) == "");
      CHECK(wrong(device, {{150}, {150}}, {3, 5, 6}, {0.5f, layout, kernel}) == "");
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "a batch whose grid crosses 65535 groups is complete", "[matmul]") {
  const std::uint64_t count = 70000;
  for (const MatmulKernel kernel : {MatmulKernel::naive, MatmulKernel::gemv}) {
    const MatmulOptions options{1.0f, Layout::nk, kernel};
    const MatmulChoice choice = explain_matmul(shared_device(), {count, 2, 3}, {count, 3, 3}, options);
    INFO(to_string(kernel) << ": " << choice.groups << " groups");
    CHECK(choice.groups > 65535);
    CHECK(wrong(shared_device(), {{count}, {count}}, {2, 3, 3}, options) == "");
  }
}

TEST_CASE_METHOD(DeviceTest, "a batch without terms is zero, and one without elements is empty", "[matmul]") {
  struct Case {
    Shape a, b, result;
    float value;
  };
  const Case cases[] = {
      {{3, 2, 0}, {3, 0, 4}, {3, 2, 4}, 0},  {{0, 2, 5}, {0, 5, 4}, {0, 2, 4}, 0}, {{3, 0, 5}, {3, 5, 4}, {3, 0, 4}, 0},
      {{3, 2, 5}, {3, 5, 0}, {3, 2, 0}, 0},  {{2, 0}, {3, 0, 4}, {3, 2, 4}, 0},    {{0, 2, 5}, {5, 4}, {0, 2, 4}, 0},
      {{1, 2, 5}, {1, 5, 4}, {1, 2, 4}, 10},
  };
  for (const Case& c : cases) {
    for (const MatmulKernel kernel : kernels) {
      INFO(to_string(c.a) << " by " << to_string(c.b) << ", " << to_string(kernel));
      Batch batch(shared_device());
      const Tensor product =
          batch.matmul(batch.fill(1, c.a), batch.fill(2, c.b), MatmulOptions{1.0f, Layout::kn, kernel});
      CHECK(product.shape() == c.result);
      CHECK(run(batch, product) == std::vector<float>(c.result.count(), c.value));
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "a batch is one dispatch, with its bias and activation, or two where B is repacked",
                 "[matmul]") {
  auto check = [](const Shape& a, const Shape& b, const Shape& bias, Layout layout, bool repacks) {
    Batch batch(shared_device());
    const Tensor ta = batch.upload(std::vector<float>(a.count(), 1.0f), a);
    const Tensor tb = batch.upload(std::vector<float>(b.count(), 2.0f), b);
    const Tensor tc = batch.upload(std::vector<float>(bias.count(), 1.0f), bias);
    (void)batch.relu(batch.add(batch.matmul(ta, tb, {1.0f, layout}), tc));
    REQUIRE_OK(batch.execute());
    const MatmulChoice choice = explain_matmul(shared_device(), a, b, {1.0f, layout});
    INFO(to_string(a) << " by " << to_string(b) << ' ' << to_string(layout) << ": " << choice.reason);
    CHECK(batch.stats().dispatches == choice.dispatches);
    CHECK(choice.dispatches == (contains(choice.reason, "repacked") ? 2u : 1u));
    if (!repacks) CHECK(choice.dispatches == 1);
  };
  check({32, 64, 64}, {32, 64, 64}, {64}, Layout::nk, false);
  check({32, 64, 64}, {32, 64, 64}, {64}, Layout::kn, false);
  check({2, 16, 64, 64}, {16, 64, 64}, {16, 64, 64}, Layout::nk, false);
  // Enough rows for each matrix of B that repacking may pay.
  check({2, 16, 64, 64}, {16, 64, 64}, {16, 64, 64}, Layout::kn, true);
  check({32, 64, 64}, {64, 64}, {64}, Layout::kn, true);
}

TEST_CASE_METHOD(DeviceTest, "the epilogue of a batch reads operands over the whole result", "[matmul]") {
  const Shape a_shape(3, 5, 8), b_shape(3, 6, 8);
  const std::vector<float> a = cases::random_integers(a_shape.count(), 3, 1);
  const std::vector<float> b = cases::random_integers(b_shape.count(), 3, 2);
  const std::vector<float> residual = cases::random_integers(3 * 5 * 6, 9, 3);
  const std::vector<float> per_matrix = cases::random_integers(3, 9, 4);
  cases::MatmulReference reference = cases::batched_matmul(a, a_shape, b, b_shape, Layout::nk);
  for (std::size_t i = 0; i < residual.size(); ++i) {
    reference.product[i] = (reference.product[i] + double{residual[i]}) * double{per_matrix[i / 30]};
  }
  for (const MatmulKernel kernel : kernels) {
    Batch batch(shared_device());
    Tensor y = batch.matmul(batch.upload(a, a_shape), batch.upload(b, b_shape), {1.0f, Layout::nk, kernel});
    y = batch.mul(batch.add(y, batch.upload(residual, {3, 5, 6})), batch.upload(per_matrix, {3, 1, 1}));
    INFO(to_string(kernel));
    CHECK(cases::mismatch(run(batch, y), reference, 0) == "");
  }
}

TEST_CASE_METHOD(DeviceTest, "linear takes any leading dims, as the rows of one product", "[matmul][weights]") {
  const std::uint64_t k = 19, n = 7;
  const Shape x_shape(2, 3, 5, k);
  const std::vector<float> x = cases::random_integers(x_shape.count(), 4, 1);
  const std::vector<float> w = cases::random_integers(n * k, 4, 2);
  const std::vector<float> bias = cases::random_integers(n, 4, 3);
  cases::MatmulReference reference = cases::matmul(x, w, 30, k, n, Layout::nk);
  for (std::uint64_t i = 0; i < 30 * n; ++i) reference.product[i] += static_cast<double>(bias[i % n]);
  auto weight = Weight::from(shared_device(), w, n, k, DType::f16);
  REQUIRE_OK(weight.error());
  Batch batch(shared_device());
  const Tensor tx = batch.upload(x, x_shape);
  const Tensor tb = batch.upload(bias);
  const Tensor y = batch.linear(tx, batch.upload(w, {n, k}), tb);
  const Tensor of_weight = batch.linear(tx, batch.import_weight(*weight), tb);
  CHECK(y.shape() == Shape(2, 3, 5, n));
  CHECK(of_weight.shape() == Shape(2, 3, 5, n));
  CHECK(contains(batch.dump().value(), "30x19x7 nk"));
  REQUIRE_OK(batch.execute());
  CHECK(cases::mismatch(read(batch, y), reference, 0) == "");
  CHECK(cases::mismatch(read(batch, of_weight), reference, 0) == "");

  Batch refused(shared_device());
  (void)refused.linear(refused.upload(x, x_shape), refused.upload(w, {n, k}), refused.fill(0, {5}));
  CHECK(refused.error().code == Errc::shape_mismatch);
  CHECK(contains(refused.error().message, "expected [7]"));
}

TEST_CASE_METHOD(DeviceTest, "a product has the same bits in a batch, if asked", "[matmul]") {
  const std::uint64_t m = 9, k = 519, n = 37;
  const std::vector<float> a = cases::random_values(4 * m * k, -1.0f, 1.0f, 1);
  const std::vector<float> b = cases::random_values(4 * k * n, -1.0f, 1.0f, 2);
  for (const Layout layout : {Layout::kn, Layout::nk}) {
    BatchOptions options;
    options.batch_invariant = true;
    Batch batch(shared_device(), options);
    const Shape b_shape = layout == Layout::nk ? Shape(4, n, k) : Shape(4, k, n);
    const Tensor all = batch.matmul(batch.upload(a, {4, m, k}), batch.upload(b, b_shape), {1.0f, layout});
    const Tensor third = batch.matmul(batch.upload({a.data() + 2 * m * k, m * k}),
                                      batch.upload({b.data() + 2 * k * n, k * n}), m, k, n, {1.0f, layout});
    REQUIRE_OK(batch.execute());
    const std::vector<float> products = read(batch, all);
    INFO(to_string(layout));
    CHECK(read(batch, third) == std::vector<float>(products.begin() + static_cast<std::ptrdiff_t>(2 * m * n),
                                                   products.begin() + static_cast<std::ptrdiff_t>(3 * m * n)));
  }
}

TEST_CASE_METHOD(DeviceTest, "explain takes shapes, and says which do not fit", "[matmul]") {
  const MatmulChoice choice = explain_matmul(shared_device(), {32, 128, 64}, {32, 128, 64}, {1.0f, Layout::nk});
  CHECK(choice.kernel != MatmulKernel::automatic);
  CHECK(choice.dispatches == 1);
  CHECK(contains(choice.reason, "32 matrices"));
  const MatmulChoice none = explain_matmul(shared_device(), {2, 128, 64}, {3, 64, 128});
  CHECK(none.kernel == MatmulKernel::automatic);
  CHECK(contains(none.reason, "leading dims 2 and 3"));
  CHECK(explain_matmul(shared_device(), Shape(), {3, 64, 128}).kernel == MatmulKernel::automatic);
  CHECK(explain_matmul(shared_device(), {1, -1, 2, 2}, {3, 64, 128}).kernel == MatmulKernel::automatic);
}

}  // namespace brontes::test
