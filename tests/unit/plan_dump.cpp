// Whole plans as text.
#include "ops/matmul.hpp"
#include "ops/reduce.hpp"
#include "ops/store.hpp"
#include "plan/plan.hpp"
#include "record/elementwise.hpp"
#include "support/dump_checker.hpp"
#include "support/hazard_checker.hpp"
#include "support/random_graph.hpp"

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <vector>

using namespace brontes;
using record::ElementwiseOp;
using record::Graph;
using record::ValueId;

namespace {

constexpr plan::PlanOptions unfused{false, false, false, true, 0};
constexpr plan::PlanOptions plain{false, false, false, false, 0};  // nor reused

struct Recording {
  Graph graph{std::uint64_t{1} << 30};

  ValueId upload(const Shape& shape) {
    const std::vector<float> data(shape.count());
    return graph.upload(data, shape).value();
  }
  ValueId unary(ElementwiseOp op, ValueId x) { return record::elementwise(graph, op, {&x, 1}, 2.0f).value(); }
  ValueId binary(ElementwiseOp op, ValueId x, ValueId y) {
    const ValueId inputs[] = {x, y};
    return record::elementwise(graph, op, inputs).value();
  }
  ValueId sum(ValueId x) { return ops::reduce(graph, ops::ReduceOp::sum, {&x, 1}).value(); }
  ValueId matmul(const Shape& left, const Shape& right) {
    const ValueId a = upload(left);
    const ValueId b = upload(right);
    return plan::matmul(graph, a, b, {}).value();
  }
  void store(ValueId x, record::ResourceId into) { CHECK_FALSE(ops::store(graph, x, into, graph.values()[x].shape)); }

  std::string plan(const plan::Traits& traits = {}, const plan::PlanOptions& options = {}) const {
    const plan::Plan plan = plan::make_plan(graph, traits, options).value();
    CHECK(test::describe(test::check_plan(plan, graph, options)).empty());
    return "\n" + plan::dump(plan, graph);
  }
  std::string plan(const plan::PlanOptions& options) const { return plan({}, options); }
};

}  // namespace

TEST_CASE("dump: relu, scale, add without fusion is three dispatches in a row", "[plan][dump]") {
  Recording r;
  const ValueId x = r.upload(Shape(4));
  const ValueId b = r.upload(Shape(4));
  r.binary(ElementwiseOp::add, r.unary(ElementwiseOp::scale, r.unary(ElementwiseOp::relu, x)), b);
  CHECK(r.plan(plain) == R"(
plan: 3 ops, 3 dispatches, 2 barriers, arena 1280 bytes
upload %0 [4] at 0
upload %1 [4] at 256
#0 elementwise relu %0 -> %2 groups 1x1x1
barrier RAW on %2 #0 -> #1
#1 elementwise scale %2 -> %3 groups 1x1x1
barrier RAW on %3 #1 -> #2
#2 elementwise add %3, %1 -> %4 groups 1x1x1
read %4 [4] at 512
)");
}

TEST_CASE("dump: two independent chains share their gaps", "[plan][dump]") {
  Recording r;
  ValueId a = r.upload(Shape(4));
  ValueId b = r.upload(Shape(4));
  for (int i = 0; i < 3; ++i) a = r.unary(ElementwiseOp::relu, a);
  for (int i = 0; i < 3; ++i) b = r.unary(ElementwiseOp::neg, b);
  CHECK(r.plan(plain) == R"(
plan: 6 ops, 6 dispatches, 2 barriers, arena 2048 bytes
upload %0 [4] at 0
upload %1 [4] at 256
#0 elementwise relu %0 -> %2 groups 1x1x1
#1 elementwise neg %1 -> %5 groups 1x1x1
barrier RAW on %2 #0 -> #2, RAW on %5 #1 -> #3
#2 elementwise relu %2 -> %3 groups 1x1x1
#3 elementwise neg %5 -> %6 groups 1x1x1
barrier RAW on %3 #2 -> #4, RAW on %6 #3 -> #5
#4 elementwise relu %3 -> %4 groups 1x1x1
#5 elementwise neg %6 -> %7 groups 1x1x1
read %4 [4] at 512
read %7 [4] at 768
)");
}

TEST_CASE("two chains of length n need n - 1 barriers, however they were recorded", "[plan]") {
  for (std::size_t n = 1; n <= 40; ++n) {
    for (const bool interleaved : {false, true}) {
      Recording r;
      ValueId a = r.upload(Shape(4));
      ValueId b = r.upload(Shape(4));
      for (std::size_t i = 0; i < n; ++i) {
        a = r.unary(ElementwiseOp::relu, a);
        if (interleaved) b = r.unary(ElementwiseOp::neg, b);
      }
      for (std::size_t i = 0; i < n && !interleaved; ++i) b = r.unary(ElementwiseOp::neg, b);
      const plan::Plan plan = plan::make_plan(r.graph, {}, unfused).value();
      CHECK(plan.dispatches.size() == 2 * n);
      CHECK(plan.barriers.size() == n - 1);
    }
  }
}

TEST_CASE("a thousand independent ops need no barrier", "[plan]") {
  Recording r;
  const ValueId x = r.upload(Shape(4));
  for (int i = 0; i < 1000; ++i) r.unary(ElementwiseOp::relu, x);
  CHECK(plan::make_plan(r.graph, {}).value().barriers.empty());
}

TEST_CASE("dump: a layer of an MLP without fusion", "[plan][dump]") {
  Recording r;
  const ValueId x = r.graph.import(Shape(32, 64), 0);
  const ValueId w = r.graph.import(Shape(48, 64), 1);
  const ValueId bias = r.upload(Shape(48));
  MatmulOptions options;
  options.layout = Layout::nk;
  const ValueId y = plan::matmul(r.graph, x, w, options).value();
  r.unary(ElementwiseOp::relu, r.binary(ElementwiseOp::add, y, bias));
  CHECK(r.plan(plain) == R"(
plan: 3 ops, 3 dispatches, 2 barriers, arena 18688 bytes
upload %2 [48] at 0
#0 matmul_tiled matmul 32x64x48 nk %0, %1 -> %3 groups 1x1x1
barrier RAW on %3 #0 -> #1
#1 elementwise add %3, %2 -> %4 groups 3x1x1
barrier RAW on %4 #1 -> #2
#2 elementwise relu %4 -> %5 groups 3x1x1
read %5 [32, 48] at 256
)");
}

TEST_CASE("dump: a reduction in two passes", "[plan][dump]") {
  plan::Traits traits;
  traits.max_group_invocations = 64;
  Recording r;
  r.sum(r.upload(Shape(10000)));
  CHECK(r.plan(traits) == R"(
plan: 1 ops, 2 dispatches, 1 barriers, arena 40704 bytes
upload %0 [10000] at 0
#0 reduce sum %0 -> %1 groups 3x1x1
barrier RAW on partials #0 -> #1
#1 reduce sum %0 -> %1 groups 1x1x1
read %1 [1] at 40192
)");
}

TEST_CASE("dump: a store to an import orders reads before and after it", "[plan][dump]") {
  Recording r;
  const ValueId x = r.graph.import(Shape(4), 5);
  const ValueId y = r.unary(ElementwiseOp::relu, x);
  r.store(y, 5);
  r.unary(ElementwiseOp::neg, x);
  CHECK(r.plan(plain) == R"(
plan: 3 ops, 3 dispatches, 2 barriers, arena 512 bytes
#0 elementwise relu %0 -> %1 groups 1x1x1
barrier RAW on %1 #0 -> #1, WAR on buffer 5 #0 -> #1
#1 elementwise store %1 -> buffer 5 groups 1x1x1
barrier RAW on buffer 5 #1 -> #2
#2 elementwise neg %0 -> %2 groups 1x1x1
read %2 [4] at 0
)");
}

TEST_CASE("dump: a write after a read gets a barrier", "[plan][dump]") {
  Recording r;
  const ValueId x = r.graph.import(Shape(4), 5);
  const ValueId y = r.upload(Shape(4));
  r.unary(ElementwiseOp::relu, x);
  r.store(y, 5);
  CHECK(r.plan(plain) == R"(
plan: 2 ops, 2 dispatches, 1 barriers, arena 512 bytes
upload %1 [4] at 0
#0 elementwise relu %0 -> %2 groups 1x1x1
barrier WAR on buffer 5 #0 -> #1
#1 elementwise store %1 -> buffer 5 groups 1x1x1
read %2 [4] at 256
)");
}

TEST_CASE("dump: a write after a write gets a barrier, one to another buffer does not", "[plan][dump]") {
  Recording r;
  const ValueId x = r.upload(Shape(4));
  r.store(x, 5);
  r.store(x, 6);
  r.store(x, 5);
  CHECK(r.plan(plain) == R"(
plan: 3 ops, 3 dispatches, 1 barriers, arena 256 bytes
upload %0 [4] at 0
#0 elementwise store %0 -> buffer 5 groups 1x1x1
#1 elementwise store %0 -> buffer 6 groups 1x1x1
barrier WAW on buffer 5 #0 -> #2
#2 elementwise store %0 -> buffer 5 groups 1x1x1
)");
}

TEST_CASE("dump: an operand used twice is one cause", "[plan][dump]") {
  Recording r;
  const ValueId x = r.unary(ElementwiseOp::relu, r.upload(Shape(4)));
  r.binary(ElementwiseOp::mul, x, x);
  CHECK(r.plan(plain) == R"(
plan: 2 ops, 2 dispatches, 1 barriers, arena 768 bytes
upload %0 [4] at 0
#0 elementwise relu %0 -> %1 groups 1x1x1
barrier RAW on %1 #0 -> #1
#1 elementwise mul %1 -> %2 groups 1x1x1
read %2 [4] at 256
)");
}

TEST_CASE("dump: an upload nobody consumes is read back from where it went up", "[plan][dump]") {
  Recording r;
  r.upload(Shape(4));
  CHECK(r.plan() == R"(
plan: 0 ops, 0 dispatches, 0 barriers, arena 256 bytes
upload %0 [4] at 0
read %0 [4] at 0
)");
}

TEST_CASE("dump: what is kept lies among the results", "[plan][dump]") {
  Recording r;
  const ValueId x = r.upload(Shape(4));
  const ValueId y = r.upload(Shape(4));
  const ValueId a = r.unary(ElementwiseOp::relu, x);
  const ValueId b = r.unary(ElementwiseOp::neg, a);
  r.binary(ElementwiseOp::add, b, y);
  r.graph.keep(x);
  r.graph.keep(b);
  CHECK(r.plan(plain) == R"(
plan: 3 ops, 3 dispatches, 2 barriers, arena 1280 bytes
upload %0 [4] at 256
upload %1 [4] at 0
#0 elementwise relu %0 -> %2 groups 1x1x1
barrier RAW on %2 #0 -> #1
#1 elementwise neg %2 -> %3 groups 1x1x1
barrier RAW on %3 #1 -> #2
#2 elementwise add %3, %1 -> %4 groups 1x1x1
read %0 [4] at 256
read %3 [4] at 512
read %4 [4] at 768
)");
}

TEST_CASE("dump: keep_all makes everything readable", "[plan][dump]") {
  Recording r;
  r.unary(ElementwiseOp::neg, r.unary(ElementwiseOp::relu, r.upload(Shape(4))));
  plan::PlanOptions options = plain;
  options.keep_all = true;
  CHECK(r.plan(options) == R"(
plan: 2 ops, 2 dispatches, 1 barriers, arena 768 bytes
upload %0 [4] at 0
#0 elementwise relu %0 -> %1 groups 1x1x1
barrier RAW on %1 #0 -> #1
#1 elementwise neg %1 -> %2 groups 1x1x1
read %0 [4] at 0
read %1 [4] at 256
read %2 [4] at 512
)");
}

TEST_CASE("dump: nothing runs for values without elements, and an empty sum is still a number", "[plan][dump]") {
  Recording r;
  const ValueId empty = r.upload(Shape(0));
  r.unary(ElementwiseOp::relu, empty);
  r.store(empty, 3);
  r.sum(empty);
  r.matmul(Shape(0, 3), Shape(3, 2));
  r.matmul(Shape(2, 0), Shape(0, 2));
  CHECK(r.plan() == R"(
plan: 5 ops, 2 dispatches, 0 barriers, arena 768 bytes
upload %0 [0] at 0
upload %3 [0, 3] at 0
upload %4 [3, 2] at 0
upload %6 [2, 0] at 256
upload %7 [0, 2] at 256
#0 reduce sum %0 -> %2 groups 1x1x1
#1 elementwise matmul 2x0x2 kn %6, %7 -> %8 groups 1x1x1
read %1 [0] at 256
read %2 [1] at 256
read %5 [0, 2] at 512
read %8 [2, 2] at 512
)");
}

TEST_CASE("dump: a long k is split where loops are short", "[plan][dump]") {
  plan::Traits traits;
  traits.cpu = true;
  traits.max_loop_iterations = 200;
  Recording r;
  r.matmul(Shape(2, 1000), Shape(1000, 3));
  CHECK(r.plan(traits) == R"(
plan: 1 ops, 2 dispatches, 1 barriers, arena 20480 bytes
upload %0 [2, 1000] at 0
upload %1 [1000, 3] at 8192
#0 matmul_subgroup_kn matmul 2x1000x3 kn %0, %1 -> %2 groups 1x1x1
barrier RAW on partials #0 -> #1, WAW on partials #0 -> #1
#1 matmul_subgroup_kn matmul 2x1000x3 kn %0, %1 -> %2 groups 1x1x1
read %2 [2, 3] at 20224
)");
}

TEST_CASE("dump: a plan is of what is pending", "[plan][dump]") {
  Recording r;
  const ValueId y = r.unary(ElementwiseOp::relu, r.upload(Shape(4)));
  const Graph::Residence residence{y, 2, 256, true};
  r.graph.executed({&residence, 1});
  r.unary(ElementwiseOp::neg, y);
  CHECK(r.plan() == R"(
plan: 1 ops, 1 dispatches, 0 barriers, arena 256 bytes
#0 elementwise neg %1 -> %2 groups 1x1x1
read %2 [4] at 0
)");
}

TEST_CASE("dump: an empty batch", "[plan][dump]") {
  CHECK(Recording().plan() == "\nplan: 0 ops, 0 dispatches, 0 barriers, arena 0 bytes\n");
}

TEST_CASE("dump: relu, scale, add is one dispatch", "[plan][dump]") {
  Recording r;
  const ValueId x = r.upload(Shape(4));
  const ValueId b = r.upload(Shape(4));
  r.binary(ElementwiseOp::add, r.unary(ElementwiseOp::scale, r.unary(ElementwiseOp::relu, x)), b);
  CHECK(r.plan() == R"(
plan: 3 ops, 1 dispatches, 0 barriers, arena 768 bytes
upload %0 [4] at 0
upload %1 [4] at 256
#0 elementwise relu+scale+add %0, %1 -> %4 groups 1x1x1
read %4 [4] at 512
)");
}

TEST_CASE("dump: an MLP is one dispatch per layer", "[plan][dump]") {
  Recording r;
  ValueId y = r.graph.import(Shape(32, 64), 0);
  MatmulOptions options;
  options.layout = Layout::nk;
  constexpr int widths[] = {64, 48, 16};
  for (int layer = 0; layer < 2; ++layer) {
    const ValueId w =
        r.graph.import(Shape(widths[layer + 1], widths[layer]), static_cast<record::ResourceId>(layer + 1));
    const ValueId bias = r.upload(Shape(widths[layer + 1]));
    y = r.binary(ElementwiseOp::add, plan::matmul(r.graph, y, w, options).value(), bias);
    if (layer == 0) y = r.unary(ElementwiseOp::gelu, y);
  }
  CHECK(r.plan() == R"(
plan: 5 ops, 2 dispatches, 1 barriers, arena 8704 bytes
upload %2 [48] at 0
upload %7 [16] at 256
#0 matmul_tiled matmul+add+gelu 32x64x48 nk %0, %1, %2 -> %5 groups 1x1x1
barrier RAW on %5 #0 -> #1
#1 matmul_tiled matmul+add 32x48x16 nk %5, %6, %7 -> %9 groups 1x1x1
read %9 [32, 16] at 512
)");
}

TEST_CASE("dump: a residual is part of the product's dispatch", "[plan][dump]") {
  Recording r;
  const ValueId x = r.upload(Shape(16, 16));
  const ValueId bias = r.upload(Shape(16));
  const ValueId y = r.binary(ElementwiseOp::add, plan::matmul(r.graph, x, x, {}).value(), bias);
  r.unary(ElementwiseOp::relu, r.binary(ElementwiseOp::add, y, x));
  CHECK(r.plan() == R"(
plan: 4 ops, 1 dispatches, 0 barriers, arena 2304 bytes
upload %0 [16, 16] at 0
upload %1 [16] at 1024
#0 matmul_tiled matmul+add+add+relu 16x16x16 kn %0, %0, %1, %0 -> %5 groups 1x1x1
read %5 [16, 16] at 1280
)");
}

TEST_CASE("dump: what is kept on the way is still written", "[plan][dump]") {
  Recording r;
  const ValueId x = r.upload(Shape(4));
  const ValueId a = r.unary(ElementwiseOp::relu, x);
  const ValueId b = r.unary(ElementwiseOp::neg, a);
  r.unary(ElementwiseOp::exp, b);
  r.graph.keep(a);
  CHECK(r.plan() == R"(
plan: 3 ops, 1 dispatches, 0 barriers, arena 768 bytes
upload %0 [4] at 0
#0 elementwise relu+neg+exp %0 -> %1, %3 groups 1x1x1
read %1 [4] at 256
read %3 [4] at 512
)");
}

TEST_CASE("dump: a long chain is cut where the kernel is full", "[plan][dump]") {
  Recording r;
  ValueId x = r.upload(Shape(4));
  for (int i = 0; i < 10; ++i) x = r.unary(i % 2 == 0 ? ElementwiseOp::relu : ElementwiseOp::neg, x);
  CHECK(r.plan() == R"(
plan: 10 ops, 2 dispatches, 1 barriers, arena 768 bytes
upload %0 [4] at 0
#0 elementwise relu+neg+relu+neg+relu+neg+relu+neg %0 -> %8 groups 1x1x1
barrier RAW on %8 #0 -> #1
#1 elementwise relu+neg %8 -> %10 groups 1x1x1
read %10 [4] at 256
)");
}

TEST_CASE("dump: two independent chains of products need n - 1 barriers, fused or not", "[plan][dump]") {
  Recording r;
  ValueId a = r.upload(Shape(4, 4));
  ValueId b = r.upload(Shape(4, 4));
  for (int i = 0; i < 3; ++i) {
    a = plan::matmul(r.graph, a, a, {}).value();
    b = r.unary(ElementwiseOp::relu, plan::matmul(r.graph, b, b, {}).value());
  }
  CHECK(r.plan() == R"(
plan: 9 ops, 6 dispatches, 2 barriers, arena 2048 bytes
upload %0 [4, 4] at 0
upload %1 [4, 4] at 256
#0 matmul_naive matmul 4x4x4 kn %0, %0 -> %2 groups 1x1x1
#1 matmul_naive matmul+relu 4x4x4 kn %1, %1 -> %4 groups 1x1x1
barrier RAW on %2 #0 -> #2, RAW on %4 #1 -> #3
#2 matmul_naive matmul 4x4x4 kn %2, %2 -> %5 groups 1x1x1
#3 matmul_naive matmul+relu 4x4x4 kn %4, %4 -> %7 groups 1x1x1
barrier RAW on %5 #2 -> #4, RAW on %7 #3 -> #5
#4 matmul_naive matmul 4x4x4 kn %5, %5 -> %8 groups 1x1x1
#5 matmul_naive matmul+relu 4x4x4 kn %7, %7 -> %10 groups 1x1x1
read %8 [4, 4] at 512
read %10 [4, 4] at 768
)");
}

TEST_CASE("dump: temporaries take turns in the arena", "[plan][dump]") {
  Recording r;
  ValueId x = r.upload(Shape(64, 1));
  for (int i = 0; i < 5; ++i) x = r.sum(r.binary(ElementwiseOp::mul, x, r.upload(Shape(64, 1))));
  CHECK(r.plan(unfused) == R"(
plan: 10 ops, 10 dispatches, 9 barriers, arena 2304 bytes (4096 without reuse)
upload %0 [64, 1] at 0
upload %1 [64, 1] at 256
upload %4 [64, 1] at 512
upload %7 [64, 1] at 768
upload %10 [64, 1] at 1024
upload %13 [64, 1] at 1280
#0 elementwise mul %0, %1 -> %2 groups 1x1x1
barrier RAW on %2 #0 -> #1
#1 reduce sum %2 -> %3 groups 1x1x1
barrier RAW on %3 #1 -> #2, WAR on reused memory at 1792 #1 -> #2
#2 elementwise mul %3, %4 -> %5 groups 1x1x1
barrier RAW on %5 #2 -> #3, WAR on reused memory at 2048 #2 -> #3
#3 reduce sum %5 -> %6 groups 1x1x1
barrier RAW on %6 #3 -> #4, WAR on reused memory at 1792 #3 -> #4
#4 elementwise mul %6, %7 -> %8 groups 1x1x1
barrier RAW on %8 #4 -> #5, WAR on reused memory at 2048 #4 -> #5
#5 reduce sum %8 -> %9 groups 1x1x1
barrier RAW on %9 #5 -> #6, WAR on reused memory at 1792 #5 -> #6
#6 elementwise mul %9, %10 -> %11 groups 1x1x1
barrier RAW on %11 #6 -> #7, WAR on reused memory at 2048 #6 -> #7
#7 reduce sum %11 -> %12 groups 1x1x1
barrier RAW on %12 #7 -> #8, WAR on reused memory at 1792 #7 -> #8
#8 elementwise mul %12, %13 -> %14 groups 1x1x1
barrier RAW on %14 #8 -> #9
#9 reduce sum %14 -> %15 groups 1x1x1
read %15 [1] at 1536
)");
}

TEST_CASE("dump: an update of a buffer is one dispatch, in place", "[plan][dump]") {
  Recording r;
  const ValueId w = r.graph.import(Shape(8), 3);
  const ValueId gradient = r.upload(Shape(8));
  r.store(r.binary(ElementwiseOp::sub, w, r.unary(ElementwiseOp::scale, gradient)), 3);
  CHECK(r.plan() == R"(
plan: 3 ops, 1 dispatches, 0 barriers, arena 256 bytes
upload %1 [8] at 0
#0 elementwise scale+sub %1, %0 -> %3 in buffer 3 groups 1x1x1
)");
}

TEST_CASE("dump: a product is written straight to where it is stored", "[plan][dump]") {
  Recording r;
  const ValueId x = r.graph.import(Shape(4, 4), 0);
  r.store(r.unary(ElementwiseOp::relu, plan::matmul(r.graph, x, x, {}).value()), 1);
  CHECK(r.plan() == R"(
plan: 3 ops, 1 dispatches, 0 barriers, arena 0 bytes
#0 matmul_naive matmul+relu 4x4x4 kn %0, %0 -> %2 in buffer 1 groups 1x1x1
)");
}

TEST_CASE("dump: a product is not written over its operand", "[plan][dump]") {
  Recording r;
  const ValueId x = r.graph.import(Shape(4, 4), 0);
  r.store(plan::matmul(r.graph, x, x, {}).value(), 0);
  CHECK(r.plan() == R"(
plan: 2 ops, 2 dispatches, 1 barriers, arena 256 bytes
#0 matmul_naive matmul 4x4x4 kn %0, %0 -> %1 groups 1x1x1
barrier RAW on %1 #0 -> #1, WAR on buffer 0 #0 -> #1
#1 elementwise store %1 -> buffer 0 groups 1x1x1
)");
}

TEST_CASE("dump: a budget cuts the dispatches into submits", "[plan][dump]") {
  Recording r;
  ValueId x = r.upload(Shape(4));
  for (int i = 0; i < 4; ++i) x = r.unary(ElementwiseOp::relu, x);
  plan::PlanOptions options = plain;
  options.work_per_submit = 8;
  CHECK(r.plan(options) == R"(
plan: 4 ops, 4 dispatches, 3 barriers, arena 1280 bytes
upload %0 [4] at 0
#0 elementwise relu %0 -> %1 groups 1x1x1
barrier RAW on %1 #0 -> #1
#1 elementwise relu %1 -> %2 groups 1x1x1
submit 1
barrier RAW on %2 #1 -> #2
#2 elementwise relu %2 -> %3 groups 1x1x1
barrier RAW on %3 #2 -> #3
#3 elementwise relu %3 -> %4 groups 1x1x1
read %4 [4] at 256
)");
}

TEST_CASE("dump: ops without effect do not run", "[plan][dump]") {
  Recording r;
  const ValueId x = r.upload(Shape(4));
  r.graph.keep(r.unary(ElementwiseOp::relu, x));
  r.sum(r.unary(ElementwiseOp::neg, x));
  plan::PlanOptions options;
  options.keep_marked_only = true;
  CHECK(r.plan(options) == R"(
plan: 3 ops, 1 dispatches, 0 barriers, arena 512 bytes
dropped neg %0 -> %2
dropped sum %2 -> %3
upload %0 [4] at 0
#0 elementwise relu %0 -> %1 groups 1x1x1
read %1 [4] at 256
)");
}

namespace {

// A plan with a bit of everything: a fused group, an epilogue, a buffer that is stored to, two submits.
std::string example(DumpFormat format) {
  Recording r;
  const ValueId x = r.upload(Shape(4, 4));
  const ValueId w = r.graph.import(Shape(4, 4), 7);
  const ValueId h = r.unary(ElementwiseOp::relu, plan::matmul(r.graph, x, w, {}).value());
  const ValueId y = plan::matmul(r.graph, h, w, {}).value();
  r.sum(y);
  r.store(r.binary(ElementwiseOp::add, r.unary(ElementwiseOp::neg, w), x), 7);
  plan::PlanOptions options;
  options.work_per_submit = 100;
  const plan::Plan plan = plan::make_plan(r.graph, {}, options).value();
  CHECK(test::describe(test::check_plan(plan, r.graph, options)).empty());
  return plan::dump(plan, r.graph, format);
}

}  // namespace

TEST_CASE("dump: the same plan as text, DOT and JSON", "[plan][dump]") {
  CHECK("\n" + example(DumpFormat::text) == R"(
plan: 7 ops, 5 dispatches, 2 barriers, arena 1280 bytes
upload %0 [4, 4] at 0
#0 matmul_naive matmul+relu 4x4x4 kn %0, %1 -> %3 groups 1x1x1
#1 elementwise neg+add %1, %0 -> %7 groups 1x1x1
submit 1
barrier RAW on %3 #0 -> #2
#2 matmul_naive matmul 4x4x4 kn %3, %1 -> %4 groups 1x1x1
barrier RAW on %4 #2 -> #3, WAR on buffer 7 #2 -> #4
#3 reduce sum %4 -> %5 groups 1x1x1
#4 elementwise store %7 -> buffer 7 groups 1x1x1
read %5 [1] at 256
)");
  CHECK("\n" + example(DumpFormat::dot) == R"(
digraph plan {
  rankdir=TB; fontname="sans-serif"; fontsize=10; labeljust=l; labelloc=b;
  node [shape=box, style=rounded, fontname="sans-serif", fontsize=11];
  edge [fontname="sans-serif", fontsize=9];
  label="plan: 7 ops, 5 dispatches, 2 barriers, arena 1280 bytes\lred: what the barrier between two levels is for\l";
  v0 [shape=ellipse, label="upload %0\n[4, 4] at 0"];
  subgraph cluster_submit0 {
    label="submit 0";
  subgraph cluster_level0_0 {
    label="level 0"; style=dashed; color=gray;
    node [shape=record, style=filled, fillcolor=gray97];
    d0 [label="{#0 matmul_naive|matmul 4x4x4 kn %0, %1 -\> %2\lrelu %2 -\> %3\l|groups 1x1x1\l%3 at 512\l}"];
    d1 [label="{#1 elementwise|neg %1 -\> %6\ladd %6, %0 -\> %7\l|groups 1x1x1\l%7 at 768\l}"];
  }
  }
  subgraph cluster_submit1 {
    label="submit 1";
  subgraph cluster_level1_1 {
    label="level 1"; style=dashed; color=gray;
    node [shape=record, style=filled, fillcolor=gray97];
    d2 [label="{#2 matmul_naive|matmul 4x4x4 kn %3, %1 -\> %4\l|groups 1x1x1\l%4 at 1024\l}"];
  }
  subgraph cluster_level2_1 {
    label="level 2"; style=dashed; color=gray;
    node [shape=record, style=filled, fillcolor=gray97];
    d3 [label="{#3 reduce|sum %4 -\> %5\l|groups 1x1x1\l%5 at 256\l}"];
    d4 [label="{#4 elementwise|store %7 -\> buffer 7\l|groups 1x1x1\lin buffer 7\l}"];
  }
  }
  v0 -> d0;
  v1 [shape=ellipse, label="import %1\n[4, 4] in buffer 7"];
  v1 -> d0;
  v0 -> d1;
  v1 -> d1;
  v1 -> d2;
  d0 -> d2 [label="RAW %3", color=firebrick, fontcolor=firebrick];
  d1 -> d4 [label="%7"];
  d2 -> d3 [label="RAW %4", color=firebrick, fontcolor=firebrick];
  d2 -> d4 [label="WAR buffer 7", color=firebrick, fontcolor=firebrick, style=dotted];
  s4 [shape=ellipse, label="store\nbuffer 7"];
  d4 -> s4;
  r5 [shape=ellipse, label="read %5\n[1] at 256"];
  d3 -> r5;
}
)");
  CHECK("\n" + example(DumpFormat::json) == R"(
{
  "stage": "planned",
  "operations": 7,
  "dropped_operations": 0,
  "fused_operations": 2,
  "arena_bytes": 1280,
  "arena_bytes_without_reuse": 1280,
  "dropped": [],
  "uploads": [{"value": 0, "shape": [4, 4], "offset": 0, "bytes": 64}],
  "readable": [{"value": 5, "shape": [1], "offset": 256, "bytes": 4}],
  "submits": [[0, 2], [2, 5]],
  "dispatches": [
    {"index": 0, "level": 0, "group": 0, "kernel": "matmul_naive", "groups": [1, 1, 1],
     "inputs": [0, 1], "outputs": [{"value": 3, "offset": 512, "bytes": 64}],
     "ops": [{"op": "matmul", "inputs": [0, 1], "matmul": {"m": 4, "k": 4, "n": 4, "layout": "kn", "alpha": 1}, "output": 2}, {"op": "relu", "inputs": [2], "output": 3}]},
    {"index": 1, "level": 0, "group": 1, "kernel": "elementwise", "groups": [1, 1, 1],
     "inputs": [1, 0], "outputs": [{"value": 7, "offset": 768, "bytes": 64}],
     "ops": [{"op": "neg", "inputs": [1], "output": 6}, {"op": "add", "inputs": [6, 0], "output": 7}]},
    {"index": 2, "level": 1, "group": 2, "kernel": "matmul_naive", "groups": [1, 1, 1],
     "inputs": [3, 1], "outputs": [{"value": 4, "offset": 1024, "bytes": 64}],
     "ops": [{"op": "matmul", "inputs": [3, 1], "matmul": {"m": 4, "k": 4, "n": 4, "layout": "kn", "alpha": 1}, "output": 4}]},
    {"index": 3, "level": 2, "group": 3, "kernel": "reduce", "groups": [1, 1, 1],
     "inputs": [4], "outputs": [{"value": 5, "offset": 256, "bytes": 4}],
     "ops": [{"op": "sum", "inputs": [4], "output": 5}]},
    {"index": 4, "level": 2, "group": 4, "kernel": "elementwise", "groups": [1, 1, 1],
     "inputs": [7], "outputs": [{"buffer": 7, "offset": 0, "bytes": 64}],
     "ops": [{"op": "store", "inputs": [7], "buffer": 7}]}
  ],
  "barriers": [
    {"before": 2, "causes": [{"kind": "RAW", "on": "%3", "from": 0, "to": 2}]},
    {"before": 3, "causes": [{"kind": "RAW", "on": "%4", "from": 2, "to": 3}, {"kind": "WAR", "on": "buffer 7", "from": 2, "to": 4}]}
  ]
}
)");
}

TEST_CASE("dump: JSON of random plans is JSON, and DOT has no edge to nowhere", "[plan][dump][random]") {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    test::Random random(seed);
    const Graph graph = test::random_graph(random);
    const plan::Traits traits = test::random_traits(random);
    const plan::Plan plan = plan::make_plan(graph, traits, test::random_options(random)).value();
    const std::string json = plan::dump(plan, graph, DumpFormat::json);
    if (!test::is_json(json)) FAIL("seed " << seed << "\n" << json);
    const std::string text = plan::dump(plan, graph);
    std::uint64_t dropped = 0;
    for (std::size_t at = text.find("\ndropped "); at != std::string::npos; at = text.find("\ndropped ", at + 1)) {
      ++dropped;
    }
    if (dropped != plan.dropped_operations) FAIL("seed " << seed << "\n" << text);
    const std::string dot = plan::dump(plan, graph, DumpFormat::dot);
    const std::string end = test::dangling_edge(dot);
    if (!end.empty()) FAIL("seed " << seed << ": " << end << "\n" << dot);
  }
}

TEST_CASE("dump: DOT and JSON of what is dropped, and of a reduction in parts", "[plan][dump]") {
  Recording r;
  const ValueId x = r.upload(Shape(10000));
  const ValueId scale = r.unary(ElementwiseOp::exp, r.upload(Shape(1)));
  const ValueId y = r.binary(ElementwiseOp::mul, r.sum(x), scale);
  r.graph.keep(r.unary(ElementwiseOp::neg, r.sum(r.binary(ElementwiseOp::add, x, y))));
  r.unary(ElementwiseOp::offset, r.unary(ElementwiseOp::relu, y));
  plan::Traits traits;
  traits.max_group_invocations = 64;
  plan::PlanOptions options;
  options.keep_marked_only = true;
  const plan::Plan plan = plan::make_plan(r.graph, traits, options).value();
  CHECK("\n" + plan::dump(plan, r.graph) == R"(
plan: 8 ops, 5 dispatches, 3 barriers, arena 41472 bytes (41728 without reuse)
dropped relu %4 -> %8
dropped offset %8, 2 -> %9
upload %0 [10000] at 0
upload %1 [1] at 40192
#0 elementwise exp %1 -> %2 groups 1x1x1
#1 reduce sum+mul %0, %2 -> %4 groups 3x1x1
barrier RAW on %2 #0 -> #2, RAW on partials #1 -> #2
#2 reduce sum+mul %0, %2 -> %4 groups 1x1x1
barrier RAW on %4 #2 -> #3, WAR on reused memory at 40704 #2 -> #3
#3 reduce add+sum+neg %0, %4 -> %7 groups 3x1x1
barrier RAW on partials #3 -> #4
#4 reduce add+sum+neg %0, %4 -> %7 groups 1x1x1
read %7 [1] at 40448
)");
  CHECK("\n" + plan::dump(plan, r.graph, DumpFormat::dot) == R"(
digraph plan {
  rankdir=TB; fontname="sans-serif"; fontsize=10; labeljust=l; labelloc=b;
  node [shape=box, style=rounded, fontname="sans-serif", fontsize=11];
  edge [fontname="sans-serif", fontsize=9];
  label="plan: 8 ops, 5 dispatches, 3 barriers, arena 41472 bytes (41728 without reuse)\lred: what the barrier between two levels is for\l";
  v0 [shape=ellipse, label="upload %0\n[10000] at 0"];
  v1 [shape=ellipse, label="upload %1\n[1] at 40192"];
  subgraph cluster_level0 {
    label="level 0"; style=dashed; color=gray;
    node [shape=record, style=filled, fillcolor=gray97];
    d0 [label="{#0 elementwise|exp %1 -\> %2\l|groups 1x1x1\l%2 at 40704\l}"];
    d1 [label="{#1 reduce (part 1 of 2)|sum %0 -\> %3\lmul %3, %2 -\> %4\l|groups 3x1x1\lpartials at 40960\l}"];
  }
  subgraph cluster_level1 {
    label="level 1"; style=dashed; color=gray;
    node [shape=record, style=filled, fillcolor=gray97];
    d2 [label="{#2 reduce (part 2 of 2)|sum %0 -\> %3\lmul %3, %2 -\> %4\l|groups 1x1x1\l%4 at 41216\l}"];
  }
  subgraph cluster_level2 {
    label="level 2"; style=dashed; color=gray;
    node [shape=record, style=filled, fillcolor=gray97];
    d3 [label="{#3 reduce (part 1 of 2)|add %0, %4 -\> %5\lsum %5 -\> %6\lneg %6 -\> %7\l|groups 3x1x1\lpartials at 40704\l}"];
  }
  subgraph cluster_level3 {
    label="level 3"; style=dashed; color=gray;
    node [shape=record, style=filled, fillcolor=gray97];
    d4 [label="{#4 reduce (part 2 of 2)|add %0, %4 -\> %5\lsum %5 -\> %6\lneg %6 -\> %7\l|groups 1x1x1\l%7 at 40448\l}"];
  }
  subgraph cluster_dropped {
    label="dropped: nothing can read them"; style=dashed; color=gray; fontcolor=gray50;
    n6 [label="relu %4 -> %8", style="rounded,dashed", color=gray, fontcolor=gray50];
    n7 [label="offset %8, 2 -> %9", style="rounded,dashed", color=gray, fontcolor=gray50];
  }
  v1 -> d0;
  v0 -> d1;
  v0 -> d3;
  d2 -> n6 [style=dashed, color=gray];
  n6 -> n7 [style=dashed, color=gray];
  d0 -> d2 [label="RAW %2", color=firebrick, fontcolor=firebrick];
  d1 -> d2 [label="RAW partials", color=firebrick, fontcolor=firebrick];
  d2 -> d3 [label="RAW %4\nWAR reused memory at 40704", color=firebrick, fontcolor=firebrick];
  d3 -> d4 [label="RAW partials", color=firebrick, fontcolor=firebrick];
  r7 [shape=ellipse, label="read %7\n[1] at 40448"];
  d4 -> r7;
}
)");
  const std::string json = plan::dump(plan, r.graph, DumpFormat::json);
  CHECK(json.find(R"(
  "dropped": [{"op": "relu", "inputs": [4], "output": 8}, {"op": "offset", "inputs": [8], "scalars": [2], "output": 9}],
)") != std::string::npos);
  CHECK(json.find(R"("inputs": [0, 2], "outputs": [{"offset": 40960, "bytes": 12}],)") != std::string::npos);
}
