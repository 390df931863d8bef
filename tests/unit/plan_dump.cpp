// Whole plans as text.
#include "plan/plan.hpp"
#include "support/hazard_checker.hpp"

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <vector>

using namespace brontes;
using record::ElementwiseOp;
using record::Graph;
using record::ValueId;

namespace {

struct Recording {
  Graph graph{std::uint64_t{1} << 30};

  ValueId upload(const Shape& shape) {
    const std::vector<float> data(shape.count());
    return graph.upload(data, shape).value();
  }
  ValueId unary(ElementwiseOp op, ValueId x) { return graph.elementwise(op, {&x, 1}, 2.0f).value(); }
  ValueId binary(ElementwiseOp op, ValueId x, ValueId y) {
    const ValueId inputs[] = {x, y};
    return graph.elementwise(op, inputs).value();
  }
  ValueId sum(ValueId x) { return graph.reduce(record::ReduceOp::sum, {&x, 1}).value(); }
  ValueId matmul(const Shape& left, const Shape& right) {
    const ValueId a = upload(left);
    const ValueId b = upload(right);
    return graph.matmul(a, b, {}).value();
  }
  void store(ValueId x, record::ResourceId into) { CHECK_FALSE(graph.store(x, into, graph.values()[x].shape)); }

  std::string plan(const plan::Traits& traits = {}, const plan::PlanOptions& options = {}) const {
    const plan::Plan plan = plan::make_plan(graph, traits, options).value();
    CHECK(test::describe(test::check_plan(plan, graph)).empty());
    return "\n" + plan::dump(plan, graph);
  }
};

}  // namespace

TEST_CASE("dump: relu, scale, add is three dispatches in a row", "[plan][dump]") {
  Recording r;
  const ValueId x = r.upload(Shape(4));
  const ValueId b = r.upload(Shape(4));
  r.binary(ElementwiseOp::add, r.unary(ElementwiseOp::scale, r.unary(ElementwiseOp::relu, x)), b);
  CHECK(r.plan() == R"(
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
  CHECK(r.plan() == R"(
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
      const plan::Plan plan = plan::make_plan(r.graph, {}).value();
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

TEST_CASE("dump: a layer of an MLP", "[plan][dump]") {
  Recording r;
  const ValueId x = r.graph.import(Shape(32, 64), 0);
  const ValueId w = r.graph.import(Shape(48, 64), 1);
  const ValueId bias = r.upload(Shape(48));
  MatmulOptions options;
  options.layout = Layout::nk;
  const ValueId y = r.graph.matmul(x, w, options).value();
  r.unary(ElementwiseOp::relu, r.binary(ElementwiseOp::add, y, bias));
  CHECK(r.plan() == R"(
plan: 3 ops, 3 dispatches, 2 barriers, arena 18688 bytes
upload %2 [48] at 0
#0 matmul_tiled matmul 32x64x48 nk %0, %1 -> %3 groups 6x1x1
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
  CHECK(r.plan() == R"(
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
  CHECK(r.plan() == R"(
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
  CHECK(r.plan() == R"(
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
  CHECK(r.plan() == R"(
plan: 2 ops, 2 dispatches, 1 barriers, arena 768 bytes
upload %0 [4] at 0
#0 elementwise relu %0 -> %1 groups 1x1x1
barrier RAW on %1 #0 -> #1
#1 elementwise mul %1, %1 -> %2 groups 1x1x1
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
  CHECK(r.plan() == R"(
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
  plan::PlanOptions options;
  options.keep_all = true;
  CHECK(r.plan({}, options) == R"(
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
  traits.max_loop_iterations = 100;
  Recording r;
  r.matmul(Shape(2, 1000), Shape(1000, 3));
  CHECK(r.plan(traits) == R"(
plan: 1 ops, 4 dispatches, 3 barriers, arena 20480 bytes
upload %0 [2, 1000] at 0
upload %1 [1000, 3] at 8192
#0 matmul_naive matmul 2x1000x3 kn %0, %1 -> %2 groups 1x1x1
barrier RAW on partials #0 -> #1, WAW on partials #0 -> #1
#1 matmul_naive matmul 2x1000x3 kn %0, %1 -> %2 groups 1x1x1
barrier RAW on partials #1 -> #2, WAW on partials #1 -> #2
#2 matmul_naive matmul 2x1000x3 kn %0, %1 -> %2 groups 1x1x1
barrier RAW on partials #2 -> #3, WAW on partials #2 -> #3
#3 matmul_naive matmul 2x1000x3 kn %0, %1 -> %2 groups 1x1x1
read %2 [2, 3] at 20224
)");
}

TEST_CASE("dump: a plan is of what is pending", "[plan][dump]") {
  Recording r;
  const ValueId y = r.unary(ElementwiseOp::relu, r.upload(Shape(4)));
  const Graph::Residence residence{y, 2, 256};
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
