// Reductions become passes that end, within the loops a device allows.
#include "ops/reduce.hpp"
#include "plan/params.hpp"
#include "plan/plan.hpp"
#include "support/hazard_checker.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

using namespace brontes;
using ops::ReduceOp;
using plan::Dispatch;
using record::Graph;
using record::ValueId;

namespace {

Graph reduction(std::uint64_t count, ReduceOp op = ReduceOp::sum) {
  Graph graph(std::uint64_t{1} << 34);
  const ValueId inputs[] = {graph.import(Shape(count), 0), graph.import(Shape(count), 1)};
  REQUIRE(ops::reduce(graph, op, {inputs, op == ReduceOp::dot ? 2u : 1u}));
  return graph;
}

kernels::ReduceParams params_of(const Dispatch& d) {
  kernels::ReduceParams params;
  std::memcpy(&params, d.push.data(), sizeof params);
  return params;
}

std::uint32_t constant(const Dispatch& d, const char* name) {
  const auto& constants = kernels::get(d.kernel).constants;
  for (std::size_t i = 0; i < constants.size; ++i) {
    if (std::strcmp(constants[i].name, name) == 0) return d.constants[i];
  }
  FAIL("no constant " << name);
  return 0;
}

// The rule the passes break, or nothing.
std::string broken_rule(const plan::Plan& plan, std::uint64_t count, const plan::Traits& traits) {
  // A single lane with a single round is the least there is.
  const std::uint64_t loops = std::max<std::uint64_t>(traits.max_loop_iterations, ops::reduce_iterations(16, 1));
  if (plan.dispatches.empty()) return "something runs";
  for (const Dispatch& d : plan.dispatches) {
    const kernels::ReduceParams p = params_of(d);
    const std::uint32_t group_size = constant(d, "group_size");
    if (p.n != count) return "a pass reduces all that the one before left";
    if (p.chunk == 0 || p.chunk % 4 != 0) return "chunks are multiples of 4";
    if (p.groups != std::max<std::uint64_t>(1, (count + p.chunk - 1) / p.chunk)) return "groups cover the range once";
    if (std::uint64_t{d.groups[0]} * d.groups[1] * d.groups[2] < p.groups) return "the grid has all groups";
    if (!std::has_single_bit(group_size)) return "a tree needs a power of two";
    if (group_size > traits.max_group_invocations) return "the workgroup fits the device";
    if (ops::reduce_shared_bytes(group_size) > traits.max_shared_bytes) return "shared memory fits the device";
    if (ops::reduce_iterations(p.chunk, group_size) > loops) {
      return "loops keep within the device's allowance";
    }
    const std::uint64_t rounds = p.chunk / (16 * group_size);
    if (constant(d, "combine") == 0 && rounds > ops::reduce_most_rounds) {
      return "a sum has no long chain of additions";
    }
    count = p.groups;
  }
  return count == 1 ? "" : "the last pass gives one value";
}

void check_all(const plan::Traits& traits) {
  for (const std::uint64_t count :
       {0u, 1u, 3u, 4u, 255u, 256u, 257u, 4095u, 4096u, 4097u, 16384u, 16385u, 65537u, 1048579u, 16777217u}) {
    const auto plan = plan::make_plan(reduction(count), traits);
    INFO(count << " elements, " << traits.max_group_invocations << " invocations, " << traits.max_shared_bytes
               << " shared bytes, " << traits.max_loop_iterations << " iterations, cpu " << traits.cpu);
    if (!plan) FAIL(plan.error().message);
    const std::string rule = broken_rule(*plan, count, traits);
    if (!rule.empty()) FAIL("not so: " << rule << "\n" << plan::dump(*plan, reduction(count)));
  }
}

}  // namespace

TEST_CASE("reduce: passes keep every rule on devices of all sizes", "[plan][reduce]") {
  for (const bool cpu : {false, true}) {
    for (const std::uint32_t most : {1u, 2u, 24u, 100u, 128u, 256u, 1024u}) {
      for (const std::uint32_t shared : {4u, 60u, 1024u, 16384u}) {
        plan::Traits traits;
        traits.cpu = cpu;
        traits.max_group_invocations = most;
        traits.max_shared_bytes = shared;
        check_all(traits);
        traits.max_loop_iterations = 60000;
        check_all(traits);
      }
    }
  }
}

TEST_CASE("reduce: tiny loop allowances are honoured, and the passes end", "[plan][reduce]") {
  for (const std::uint64_t loops : {1u, 2u, 3u, 5u, 8u, 9u, 10u, 12u, 100u}) {
    for (const bool cpu : {false, true}) {
      plan::Traits traits;
      traits.cpu = cpu;
      traits.max_group_invocations = 256;
      traits.max_loop_iterations = loops;
      check_all(traits);
    }
  }
}

TEST_CASE("reduce: a device without shared memory is refused or served, not a crash", "[plan][reduce]") {
  for (const std::uint32_t shared : {0u, 1u, 3u}) {
    plan::Traits traits;
    traits.max_shared_bytes = shared;
    const auto plan = plan::make_plan(reduction(1000), traits);
    if (!plan) CHECK(plan.error().code == Errc::unsupported);
  }
}

TEST_CASE("reduce: short inputs are one pass", "[plan][reduce]") {
  CHECK(plan::make_plan(reduction(1), {})->dispatches.size() == 1);
  CHECK(plan::make_plan(reduction(4096), {})->dispatches.size() == 1);
}

TEST_CASE("reduce: only the first pass of a dot multiplies pairs", "[plan][reduce]") {
  const Graph graph = reduction(1 << 20, ReduceOp::dot);
  const plan::Plan plan = plan::make_plan(graph, {}).value();
  REQUIRE(plan.dispatches.size() == 2);
  CHECK(constant(plan.dispatches[0], "pair") == 1);
  CHECK(constant(plan.dispatches[1], "pair") == 0);
  CHECK(test::describe(test::check_plan(plan, graph)).empty());
}

TEST_CASE("reduce: every pass combines as the op does", "[plan][reduce]") {
  const std::pair<ReduceOp, ops::ReduceCombine> ops[] = {{ReduceOp::sum, ops::ReduceCombine::sum},
                                                         {ReduceOp::dot, ops::ReduceCombine::sum},
                                                         {ReduceOp::max, ops::ReduceCombine::max},
                                                         {ReduceOp::min, ops::ReduceCombine::min}};
  for (const auto& [op, combine] : ops) {
    const plan::Plan plan = plan::make_plan(reduction(1 << 20, op), {}).value();
    for (const Dispatch& d : plan.dispatches) {
      CHECK(constant(d, "combine") == static_cast<std::uint32_t>(combine));
    }
  }
}

TEST_CASE("reduce: partials of different reductions are apart", "[plan][reduce]") {
  Graph graph(std::uint64_t{1} << 30);
  const ValueId x = graph.import(Shape(1 << 20), 0);
  REQUIRE(ops::reduce(graph, ReduceOp::sum, {&x, 1}));
  REQUIRE(ops::reduce(graph, ReduceOp::max, {&x, 1}));
  const plan::Plan plan = plan::make_plan(graph, {}).value();
  CHECK(plan.dispatches.size() == 4);
  CHECK(plan.barriers.size() == 1);
  CHECK(test::describe(test::check_plan(plan, graph)).empty());
}
