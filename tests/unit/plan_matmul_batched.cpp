// Batches of products: what shapes make of them, which kernel they get, and how few dispatches.
#include "ops/matmul.hpp"

#include "plan/plan.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <string>
#include <vector>

using namespace brontes;
using plan::explain;
using plan::MatmulBatch;
using plan::MatmulProblem;
using plan::select_matmul;

namespace {

constexpr std::uint32_t only_a = MatmulBatch::of_a, only_b = MatmulBatch::of_b, both = only_a | only_b;

plan::Traits gpu() {
  plan::Traits traits;
  traits.max_group_invocations = 1024;
  traits.max_shared_bytes = 49152;
  return traits;
}

plan::Traits cpu_driver() {
  plan::Traits traits = gpu();
  traits.cpu = true;
  traits.subgroup_size = 8;
  return traits;
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

MatmulProblem batch_of(std::uint64_t count, std::uint64_t m, std::uint64_t k, std::uint64_t n, Layout layout) {
  MatmulProblem p{m, k, n, layout};
  p.batch = p.a_matrices = p.b_matrices = count;
  return p;
}

struct Recorded {
  record::Graph graph{std::uint64_t{1} << 32};
  record::ValueId a, b, c;

  Recorded(const Shape& sa, const Shape& sb, const MatmulOptions& options = {})
      : a(graph.import(sa, 0)), b(graph.import(sb, 1)), c(plan::matmul(graph, a, b, options).value()) {}

  plan::MatmulAttributes attributes() const { return graph.nodes().back().attributes.as<plan::MatmulAttributes>(); }
};

}  // namespace

TEST_CASE("leading dims broadcast as in numpy, and those that only A has are rows where they can be",
          "[plan][matmul]") {
  struct Case {
    Shape a, b, result;
    std::uint64_t m;
    MatmulBatch batch;
    std::uint64_t a_matrices, b_matrices;
  };
  const Case cases[] = {
      {{4, 5}, {5, 6}, {4, 6}, 4, {1, 0, {}}, 1, 1},
      {{1, 4, 5}, {5, 6}, {1, 4, 6}, 4, {1, 0, {}}, 1, 1},
      {{3, 4, 5}, {5, 6}, {3, 4, 6}, 12, {1, 0, {}}, 1, 1},
      {{2, 3, 4, 5}, {1, 1, 5, 6}, {2, 3, 4, 6}, 24, {1, 0, {}}, 1, 1},
      {{3, 4, 5}, {3, 5, 6}, {3, 4, 6}, 4, {3, both, {}}, 3, 3},
      {{2, 3, 4, 5}, {2, 3, 5, 6}, {2, 3, 4, 6}, 4, {6, both, {}}, 6, 6},
      {{4, 5}, {3, 5, 6}, {3, 4, 6}, 4, {3, only_b, {}}, 1, 3},
      // A's inner dim repeats: B has every matrix.
      {{2, 1, 4, 5}, {2, 3, 5, 6}, {2, 3, 4, 6}, 4, {6, both << 2 | only_b, {3}}, 2, 6},
      {{3, 4, 5}, {2, 3, 5, 6}, {2, 3, 4, 6}, 4, {6, only_b << 2 | both, {3}}, 3, 6},
      {{2, 3, 4, 5}, {3, 5, 6}, {2, 3, 4, 6}, 4, {6, only_a << 2 | both, {3}}, 6, 3},
      // Groups of queries that share their keys.
      {{2, 3, 4, 5}, {2, 1, 5, 6}, {2, 3, 4, 6}, 12, {2, both, {}}, 2, 2},
      {{2, 1, 4, 5}, {3, 5, 6}, {2, 3, 4, 6}, 4, {6, only_a << 2 | only_b, {3}}, 2, 3},
      {{0, 4, 5}, {1, 5, 6}, {0, 4, 6}, 0, {1, 0, {}}, 1, 1},
      {{0, 4, 5}, {0, 5, 6}, {0, 4, 6}, 4, {0, both, {}}, 0, 0},
      {{2, 4, 0}, {2, 0, 6}, {2, 4, 6}, 4, {2, both, {}}, 2, 2},
  };
  for (const Case& c : cases) {
    INFO(to_string(c.a) << " x " << to_string(c.b));
    const auto sizes = plan::matmul_sizes(c.a, c.b, Layout::kn);
    REQUIRE(sizes);
    CHECK(sizes->shape == c.result);
    CHECK(sizes->m == c.m);
    CHECK(sizes->batch == c.batch);
    CHECK(sizes->batch.matrices(only_a) == c.a_matrices);
    CHECK(sizes->batch.matrices(only_b) == c.b_matrices);
    const Recorded recorded(c.a, c.b);
    CHECK(recorded.graph.value(recorded.c).shape == c.result);
    CHECK(recorded.attributes().batch == c.batch);
  }
}

TEST_CASE("a batch without elements may have any number of matrices", "[plan][matmul]") {
  constexpr std::uint64_t many = std::uint64_t{1} << 40;
  Recorded recorded({many, 0, 3}, {many, 3, 2});
  CHECK(recorded.graph.value(recorded.c).shape == Shape(many, 0, 2));
  const auto made = plan::make_plan(recorded.graph, gpu());
  REQUIRE(made);
  CHECK(made->dispatches.empty());
  const auto past = plan::matmul_sizes({many, many, 0, 3}, {many, many, 3, 2}, Layout::kn);
  CHECK(past.error().code == Errc::size_overflow);
  CHECK(contains(past.error().message, "64 bits"));
}

TEST_CASE("dumps say how many products a batch has, and nothing of a single one", "[plan][matmul]") {
  const Recorded several({8, 4, 16}, {8, 16, 12});
  const auto planned = plan::make_plan(several.graph, gpu());
  REQUIRE(planned);
  CHECK(contains(plan::dump(*planned, several.graph), "matmul 4x16x12 kn batch 8 %0, %1 -> %2"));
  CHECK(contains(plan::dump(*planned, several.graph, DumpFormat::json), "\"batch\": 8"));

  const Recorded rows({8, 4, 16}, {16, 12});
  const auto as_one = plan::make_plan(rows.graph, gpu());
  REQUIRE(as_one);
  CHECK(contains(plan::dump(*as_one, rows.graph), "matmul 32x16x12 kn %0, %1 -> %2"));
  CHECK_FALSE(contains(plan::dump(*as_one, rows.graph, DumpFormat::json), "batch"));
}

TEST_CASE("all matrices of a batch share each dispatch, whatever the kernel", "[plan][matmul]") {
  for (const plan::Traits& traits : {gpu(), cpu_driver()}) {
    for (const Layout layout : {Layout::kn, Layout::nk}) {
      for (const MatmulKernel kernel : {MatmulKernel::naive, MatmulKernel::gemv, MatmulKernel::tiled,
                                        MatmulKernel::subgroup, MatmulKernel::panel}) {
        // k is not a multiple of 4, and long enough for slices.
        MatmulOptions options{0.5f, layout, kernel};
        const std::uint64_t k = 2049;
        const Recorded one({5, k}, layout == Layout::nk ? Shape(6, k) : Shape(k, 6), options);
        const Recorded two({2, 5, k}, layout == Layout::nk ? Shape(2, 6, k) : Shape(2, k, 6), options);
        const auto single = plan::make_plan(one.graph, traits);
        const auto batched = plan::make_plan(two.graph, traits);
        REQUIRE(single);
        REQUIRE(batched);
        INFO(to_string(kernel) << ' ' << to_string(layout) << (traits.cpu ? " cpu" : " gpu"));
        CHECK(batched->dispatches.size() == single->dispatches.size());
      }
    }
  }
}

TEST_CASE("a batch that fills the device is not split along k, and one that does not is", "[plan][matmul]") {
  for (const Layout layout : {Layout::kn, Layout::nk}) {
    for (const std::uint64_t m : {1u, 64u}) {
      const MatmulProblem one = batch_of(1, m, 4096, 64, layout);
      const MatmulProblem few = batch_of(4, m, 4096, 64, layout);
      const MatmulProblem many = batch_of(512, m, 4096, 64, layout);
      const auto single = select_matmul(one, gpu());
      REQUIRE(single);
      CHECK(single->slices > 1);
      CHECK(select_matmul(few, gpu())->slices > 1);
      CHECK(select_matmul(few, gpu())->slices <= single->slices);
      CHECK(select_matmul(many, gpu())->slices == 1);
      CHECK(select_matmul(many, gpu())->groups % 512 == 0);
    }
  }
}

TEST_CASE("many matrices get larger tiles than one of them would", "[plan][matmul]") {
  const auto one = select_matmul(batch_of(1, 256, 64, 256, Layout::nk), gpu());
  const auto many = select_matmul(batch_of(64, 256, 64, 256, Layout::nk), gpu());
  REQUIRE(one);
  REQUIRE(many);
  CHECK(one->kernel == MatmulKernel::tiled);
  CHECK(many->kernel == MatmulKernel::tiled);
  CHECK(many->tiles.tile_m > one->tiles.tile_m);
  // But not where a row must not depend on how many there are.
  MatmulProblem invariant = batch_of(64, 256, 64, 256, Layout::nk);
  invariant.batch_invariant = true;
  MatmulProblem alone = batch_of(1, 256, 64, 256, Layout::nk);
  alone.batch_invariant = true;
  CHECK(select_matmul(invariant, gpu())->tiles.tile_m == select_matmul(alone, gpu())->tiles.tile_m);
}

TEST_CASE("a CPU driver repacks a matrix that many products share, and not one for each", "[plan][matmul]") {
  plan::Traits traits = cpu_driver();
  traits.access = {kernels::AccessMode::texel, kernels::AccessMode::texel};
  MatmulProblem each = batch_of(16, 16, 64, 67, Layout::kn);
  CHECK(select_matmul(each, traits)->kernel == MatmulKernel::subgroup);
  MatmulProblem shared = each;
  shared.b_matrices = 2;
  CHECK(select_matmul(shared, traits)->kernel == MatmulKernel::panel);
}

TEST_CASE("repacked operands of a batch that are too large leave it to another kernel", "[plan][matmul]") {
  plan::Traits traits = cpu_driver();
  traits.access = {kernels::AccessMode::texel, kernels::AccessMode::texel};
  traits.max_storage_range = 1u << 20;
  // 40 rows of 61 take 48 rows of 64 when repacked.
  const MatmulProblem p = batch_of(100, 40, 61, 40, Layout::nk);
  CHECK(select_matmul(p, traits, MatmulKernel::panel).error().code == Errc::limit_exceeded);
  const auto chosen = select_matmul(p, traits);
  REQUIRE(chosen);
  CHECK(chosen->kernel == MatmulKernel::subgroup);
}

TEST_CASE("explain says what becomes of a batch", "[plan][matmul]") {
  const MatmulChoice many = explain(batch_of(32, 128, 64, 128, Layout::nk), gpu(), {});
  CHECK(many.kernel == MatmulKernel::tiled);
  CHECK(many.dispatches == 1);
  CHECK(many.groups % 32 == 0);
  CHECK(contains(many.reason, "32 matrices"));
  CHECK_FALSE(contains(explain(batch_of(1, 128, 64, 128, Layout::nk), gpu(), {}).reason, "matrices"));
  CHECK(contains(explain(batch_of(0, 128, 64, 128, Layout::nk), gpu(), {}).reason, "no elements"));
  plan::Traits small = gpu();
  small.max_storage_range = 1u << 20;
  CHECK(contains(explain(batch_of(32, 128, 64, 128, Layout::nk), small, {}).reason, "maxStorageBufferRange"));
  CHECK(explain(batch_of(4, 128, 64, 128, Layout::nk), small, {}).dispatches == 1);
  CHECK(explain(batch_of(5, 3, 0, 7, Layout::nk), gpu(), {}).dispatches == 1);
}
