// Temporaries share the arena.
#include "ops/matmul.hpp"
#include "ops/reduce.hpp"
#include "plan/plan.hpp"
#include "record/elementwise.hpp"
#include "support/hazard_checker.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <vector>

using namespace brontes;
using plan::Plan;
using record::ElementwiseOp;
using record::Graph;
using record::ValueId;

namespace {

constexpr plan::PlanOptions unfused{false, false, false, true, 0};
constexpr plan::PlanOptions plain{false, false, false, false, 0};

ValueId upload(Graph& graph, const Shape& shape) {
  const std::vector<float> data(shape.count());
  return graph.upload(data, shape).value();
}

ValueId unary(Graph& graph, ElementwiseOp op, ValueId x) {
  return record::elementwise(graph, op, {&x, 1}, 2.0f).value();
}

ValueId binary(Graph& graph, ElementwiseOp op, ValueId x, ValueId y) {
  const ValueId inputs[] = {x, y};
  return record::elementwise(graph, op, inputs).value();
}

Graph chain(int length, const Shape& shape) {
  Graph graph(std::uint64_t{1} << 30);
  ValueId x = upload(graph, shape);
  for (int i = 0; i < length; ++i) x = unary(graph, ElementwiseOp::relu, x);
  return graph;
}

Graph products(int length, int side) {
  Graph graph(std::uint64_t{1} << 30);
  const ValueId w = upload(graph, Shape(side, side));
  ValueId x = w;
  for (int i = 0; i < length; ++i) x = plan::matmul(graph, x, w, {}).value();
  return graph;
}

Plan proved(const Graph& graph, const plan::PlanOptions& options) {
  Plan plan = plan::make_plan(graph, {}, options).value();
  CHECK(test::describe(test::check_plan(plan, graph, options)).empty());
  return plan;
}

}  // namespace

TEST_CASE("memory: a chain of 100 ops on 4 MiB works in place, in one temporary", "[plan][memory]") {
  constexpr std::uint64_t tensor = std::uint64_t{4} << 20;
  const Graph graph = chain(100, Shape(1024, 1024));
  const Plan plan = plan::make_plan(graph, {}, unfused).value();
  CHECK(plan.dispatches.size() == 100);
  CHECK(plan.arena_bytes == 3 * tensor);  // upload, result, and one for all that is between
  CHECK(plan.arena_bytes_without_reuse == 101 * tensor);
  CHECK(plan::make_plan(graph, {}, plain)->arena_bytes == 101 * tensor);
  proved(chain(100, Shape(16, 16)), unfused);
}

TEST_CASE("memory: a chain of 100 products of 4 MiB takes turns in two temporaries", "[plan][memory]") {
  constexpr std::uint64_t tensor = std::uint64_t{4} << 20;
  for (const bool fuse : {false, true}) {
    plan::PlanOptions options = unfused;
    options.fuse = fuse;
    const Plan plan = plan::make_plan(products(100, 1024), {}, options).value();
    CHECK(plan.arena_bytes == 4 * tensor);
    CHECK(plan.arena_bytes_without_reuse == 101 * tensor);
    CHECK(plan.barriers.size() == 99);
    proved(products(100, 8), options);
  }
}

TEST_CASE("memory: reuse adds no barrier to two chains side by side", "[plan][memory]") {
  Graph graph(1 << 20);
  ValueId a = upload(graph, Shape(8, 8));
  ValueId b = upload(graph, Shape(8, 8));
  for (int i = 0; i < 20; ++i) {
    a = plan::matmul(graph, a, a, {}).value();
    b = unary(graph, ElementwiseOp::exp, b);
  }
  const Plan plan = proved(graph, unfused);
  CHECK(plan.barriers.size() == 19);
  CHECK(plan.arena_bytes == 7 * 256);  // two uploads, two results, two temporaries for a and one for b
}

TEST_CASE("memory: an operand with other readers is not overwritten", "[plan][memory]") {
  Graph graph(1 << 20);
  const ValueId x = unary(graph, ElementwiseOp::relu, upload(graph, Shape(64)));
  const ValueId y = unary(graph, ElementwiseOp::neg, x);
  const ValueId z = unary(graph, ElementwiseOp::exp, x);
  binary(graph, ElementwiseOp::add, y, z);
  const Plan plan = proved(graph, unfused);
  CHECK(plan.arena_bytes == (2 + 3) * 256);
}

TEST_CASE("memory: the last of several readers works in place", "[plan][memory]") {
  Graph graph(1 << 20);
  const ValueId x = unary(graph, ElementwiseOp::relu, upload(graph, Shape(64)));
  const ValueId y = unary(graph, ElementwiseOp::neg, x);
  const ValueId z = binary(graph, ElementwiseOp::sub, x, y);
  unary(graph, ElementwiseOp::exp, z);
  const Plan plan = proved(graph, unfused);
  CHECK(plan.arena_bytes == (2 + 2) * 256);
}

TEST_CASE("memory: a broadcast operand is not overwritten", "[plan][memory]") {
  Graph graph(1 << 20);
  const ValueId row = unary(graph, ElementwiseOp::relu, upload(graph, Shape(4)));
  const ValueId wide = binary(graph, ElementwiseOp::add, upload(graph, Shape(16, 4)), row);
  unary(graph, ElementwiseOp::exp, wide);
  const Plan plan = proved(graph, unfused);
  CHECK(plan.arena_bytes == (3 + 2) * 256);
}

TEST_CASE("memory: uploads, results and what is kept stay where they are", "[plan][memory]") {
  Graph graph = chain(20, Shape(64));
  for (ValueId v = 0; v < 21; v += 5) graph.keep(v);
  const Plan plan = proved(graph, unfused);
  CHECK(plan.readable.size() == 5);
  CHECK(plan.arena_bytes == (5 + 1) * 256);
}

TEST_CASE("memory: values of different sizes fit into one another's place", "[plan][memory]") {
  Graph graph(1 << 20);
  ValueId x = upload(graph, Shape(1));
  for (int i = 0; i < 10; ++i) {
    const ValueId wide = binary(graph, ElementwiseOp::add, x, record::fill(graph, 1, Shape(100 * (i + 1))).value());
    x = ops::reduce(graph, ops::ReduceOp::sum, {&wide, 1}).value();
  }
  const Plan plan = proved(graph, unfused);
  CHECK(plan.arena_bytes < plan.arena_bytes_without_reuse);
  proved(graph, {});
}

TEST_CASE("memory: partial results of reductions are reused too", "[plan][memory]") {
  Graph graph(std::uint64_t{1} << 24);
  const ValueId x = upload(graph, Shape(40000));
  ValueId y = x;
  for (int i = 0; i < 8; ++i) {
    const ValueId sum = ops::reduce(graph, ops::ReduceOp::sum, {&y, 1}).value();
    y = binary(graph, ElementwiseOp::add, x, sum);
  }
  const Plan plan = proved(graph, unfused);
  CHECK(plan.arena_bytes <= (40000 * 4 / 256 + 1) * 256 * 3 + 4 * 256);
}

TEST_CASE("memory: values without elements take no place", "[plan][memory]") {
  Graph graph(1 << 20);
  ValueId empty = upload(graph, Shape(0));
  ValueId x = upload(graph, Shape(64));
  for (int i = 0; i < 5; ++i) {
    empty = unary(graph, ElementwiseOp::relu, empty);
    x = unary(graph, ElementwiseOp::relu, x);
  }
  CHECK(proved(graph, unfused).arena_bytes == 3 * 256);
}

TEST_CASE("memory: ten thousand ops take no more than a hundred", "[plan][memory]") {
  CHECK(plan::make_plan(chain(10000, Shape(64)), {}, unfused)->arena_bytes ==
        plan::make_plan(chain(100, Shape(64)), {}, unfused)->arena_bytes);
  const Plan plan = plan::make_plan(products(10000, 4), {}, unfused).value();
  CHECK(plan.arena_bytes == 4 * 256);
  std::size_t causes = 0;
  for (const plan::Barrier& b : plan.barriers) causes += b.causes.size();
  CHECK(causes <= 4 * plan.dispatches.size());
}
