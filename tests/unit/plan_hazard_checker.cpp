// The checker of plans, checked: it accepts what is right and objects to each way of being wrong.
#include "support/hazard_checker.hpp"
#include "support/random_graph.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

using namespace brontes;
using plan::Plan;
using record::ElementwiseOp;
using record::Graph;
using record::ValueId;
using test::check_plan;
using test::objects;
using test::Rule;

namespace {

ValueId unary(Graph& graph, ElementwiseOp op, ValueId x) { return graph.elementwise(op, {&x, 1}, 2.0f).value(); }

ValueId binary(Graph& graph, ElementwiseOp op, ValueId x, ValueId y) {
  const ValueId inputs[] = {x, y};
  return graph.elementwise(op, inputs).value();
}

ValueId upload(Graph& graph, const Shape& shape) {
  const std::vector<float> data(shape.count());
  return graph.upload(data, shape).value();
}

// Two chains over one import, joined; a store back into the import after it was read.
//
//   #0 relu %0 -> %1    #1 exp %0 -> %2
//   barrier
//   #2 neg %1 -> %3     #3 store %2 -> buffer 0
//   barrier
//   #4 add %3, %2 -> %4     #5 copy %0 -> %5
Graph diamond() {
  Graph graph(1 << 20);
  const ValueId x = graph.import(Shape(8), 0);
  const ValueId a = unary(graph, ElementwiseOp::relu, x);
  const ValueId b = unary(graph, ElementwiseOp::exp, x);
  const ValueId c = unary(graph, ElementwiseOp::neg, a);
  CHECK_FALSE(graph.store(b, 0, Shape(8)));
  binary(graph, ElementwiseOp::add, c, b);
  unary(graph, ElementwiseOp::copy, x);
  return graph;
}

Plan plan_of(const Graph& graph, const plan::Traits& traits = {}) {
  Plan plan = plan::make_plan(graph, traits).value();
  REQUIRE(test::describe(check_plan(plan, graph)).empty());
  return plan;
}

// Levels as the barriers have it: a mutation that forgot them would be found too easily.
void renumber(Plan& plan) {
  for (std::uint32_t i = 0; i < plan.dispatches.size(); ++i) {
    plan.dispatches[i].level = 0;
    for (const plan::Barrier& b : plan.barriers) plan.dispatches[i].level += b.before <= i;
  }
}

void swap(Plan& plan, std::size_t a, std::size_t b) {
  std::swap(plan.dispatches[a], plan.dispatches[b]);
  renumber(plan);
}

std::size_t binding(const plan::Dispatch& d, const char* name) {
  const auto& bindings = kernels::get(d.kernel).bindings;
  std::size_t i = 0;
  while (std::strcmp(bindings[i].name, name) != 0) ++i;
  return i;
}

}  // namespace

TEST_CASE("the checker accepts a right plan", "[plan][checker]") {
  const Graph graph = diamond();
  const Plan plan = plan_of(graph);
  CHECK(plan.dispatches.size() == 6);
  CHECK(plan.barriers.size() == 2);
}

TEST_CASE("the checker misses every barrier that is dropped", "[plan][checker]") {
  const Graph graph = diamond();
  const Plan right = plan_of(graph);
  for (std::size_t i = 0; i < right.barriers.size(); ++i) {
    Plan plan = right;
    plan.barriers.erase(plan.barriers.begin() + static_cast<std::ptrdiff_t>(i));
    renumber(plan);
    CHECK(objects(check_plan(plan, graph), Rule::open_hazard));
  }
}

TEST_CASE("the checker objects to a barrier that stands one dispatch off", "[plan][checker]") {
  const Graph graph = diamond();
  const Plan right = plan_of(graph);
  for (std::size_t i = 0; i < right.barriers.size(); ++i) {
    for (const int step : {-1, 1}) {
      Plan plan = right;
      plan.barriers[i].before += static_cast<std::uint32_t>(step);
      renumber(plan);
      CHECK(objects(check_plan(plan, graph), Rule::open_hazard));
    }
  }
}

TEST_CASE("the checker objects to a barrier between independent dispatches", "[plan][checker]") {
  const Graph graph = diamond();
  Plan plan = plan_of(graph);
  plan.barriers.insert(plan.barriers.begin(), plan::Barrier{1, {}});
  renumber(plan);
  const auto objections = check_plan(plan, graph);
  CHECK(objects(objections, Rule::barrier_without_hazard));
  CHECK(objects(objections, Rule::too_many_barriers));
}

TEST_CASE("the checker objects to dispatches swapped over a barrier", "[plan][checker]") {
  const Graph graph = diamond();
  const Plan right = plan_of(graph);
  const std::pair<std::size_t, std::size_t> dependent[] = {{0, 2}, {1, 3}, {2, 4}, {3, 5}};
  for (const auto& [a, b] : dependent) {
    Plan plan = right;
    swap(plan, a, b);
    INFO("#" << a << " and #" << b);
    CHECK(objects(check_plan(plan, graph), Rule::wrong_version));
  }
}

TEST_CASE("the checker does not mind the order within a gap", "[plan][checker]") {
  const Graph graph = diamond();
  Plan plan = plan_of(graph);
  swap(plan, 0, 1);
  for (plan::Barrier& barrier : plan.barriers) {
    for (plan::Hazard& h : barrier.causes) {
      if (h.from < 2) h.from = 1 - h.from;
    }
  }
  CHECK(test::describe(check_plan(plan, graph)).empty());
}

TEST_CASE("the checker objects to a store that overtakes a read", "[plan][checker]") {
  Graph graph(1 << 20);
  const ValueId x = graph.import(Shape(8), 0);
  const ValueId fresh = upload(graph, Shape(8));
  unary(graph, ElementwiseOp::relu, x);
  CHECK_FALSE(graph.store(fresh, 0, Shape(8)));
  Plan plan = plan_of(graph);
  swap(plan, 0, 1);
  const auto objections = check_plan(plan, graph);
  CHECK(objects(objections, Rule::wrong_version));
  CHECK(objects(objections, Rule::false_cause));
}

TEST_CASE("the checker objects to stores in the wrong order, though nobody reads between them", "[plan][checker]") {
  Graph graph(1 << 20);
  CHECK_FALSE(graph.store(upload(graph, Shape(8)), 0, Shape(8)));
  CHECK_FALSE(graph.store(upload(graph, Shape(8)), 0, Shape(8)));
  Plan plan = plan_of(graph);
  swap(plan, 0, 1);
  CHECK(objects(check_plan(plan, graph), Rule::wrong_version));
}

TEST_CASE("the checker objects to every region that is shifted, cut or sent elsewhere", "[plan][checker]") {
  const Graph graph = diamond();
  const Plan right = plan_of(graph);
  for (std::size_t i = 0; i < right.dispatches.size(); ++i) {
    for (std::size_t b = 0; b < right.dispatches[i].binding_count; ++b) {
      if ((right.dispatches[i].used >> b & 1u) == 0) continue;
      INFO("#" << i << " binding " << b);
      Plan shifted = right;
      shifted.dispatches[i].bindings[b].offset += 4;
      CHECK(objects(check_plan(shifted, graph), Rule::wrong_version));
      Plan cut = right;
      cut.dispatches[i].bindings[b].bytes -= 4;
      CHECK(objects(check_plan(cut, graph), Rule::wrong_version));
      Plan elsewhere = right;
      elsewhere.dispatches[i].bindings[b].resource = 9;
      CHECK(objects(check_plan(elsewhere, graph), Rule::wrong_version));
      Plan unbound = right;
      unbound.dispatches[i].used = static_cast<std::uint8_t>(unbound.dispatches[i].used & ~(1u << b));
      CHECK(objects(check_plan(unbound, graph), Rule::wrong_version));
    }
  }
}

TEST_CASE("the checker objects to a dispatch that is missing, doubled or for another op", "[plan][checker]") {
  const Graph graph = diamond();
  const Plan right = plan_of(graph);
  Plan missing = right;
  missing.dispatches.pop_back();
  CHECK(objects(check_plan(missing, graph), Rule::wrong_version));
  Plan doubled = right;
  doubled.dispatches.push_back(doubled.dispatches.back());
  CHECK(objects(check_plan(doubled, graph), Rule::wrong_version));
  CHECK(objects(check_plan(doubled, graph), Rule::open_hazard));
  Plan other = right;
  other.dispatches[0].node = 1;
  CHECK(objects(check_plan(other, graph), Rule::wrong_version));
}

TEST_CASE("the checker objects to causes that are false, missing or named twice", "[plan][checker]") {
  const Graph graph = diamond();
  const Plan right = plan_of(graph);
  for (std::size_t i = 0; i < right.barriers.size(); ++i) {
    for (std::size_t c = 0; c < right.barriers[i].causes.size(); ++c) {
      INFO("cause " << c << " of barrier " << i);
      auto broken = [&](auto change) {
        Plan plan = right;
        change(plan.barriers[i].causes[c]);
        return check_plan(plan, graph);
      };
      CHECK(objects(broken([](plan::Hazard& h) {
                      h.kind = h.kind == plan::HazardKind::read_after_write ? plan::HazardKind::write_after_read
                                                                            : plan::HazardKind::read_after_write;
                    }),
                    Rule::false_cause));
      CHECK(objects(broken([](plan::Hazard& h) { h.region.offset += 4; }), Rule::false_cause));
      CHECK(objects(broken([](plan::Hazard& h) { h.region.bytes = 0; }), Rule::false_cause));
      CHECK(objects(broken([](plan::Hazard& h) { h.region.bytes -= 4; }), Rule::missing_cause));
      CHECK(objects(broken([](plan::Hazard& h) { std::swap(h.from, h.to); }), Rule::false_cause));
      CHECK(objects(broken([](plan::Hazard& h) { h.to = 1000; }), Rule::false_cause));

      Plan missing = right;
      missing.barriers[i].causes.erase(missing.barriers[i].causes.begin() + static_cast<std::ptrdiff_t>(c));
      CHECK(objects(check_plan(missing, graph), Rule::missing_cause));
      Plan twice = right;
      twice.barriers[i].causes.push_back(right.barriers[i].causes[c]);
      CHECK(objects(check_plan(twice, graph), Rule::false_cause));
    }
  }
}

TEST_CASE("the checker objects to barriers out of place and levels that contradict them", "[plan][checker]") {
  const Graph graph = diamond();
  const Plan right = plan_of(graph);
  Plan first = right;
  first.barriers[0].before = 0;
  CHECK(objects(check_plan(first, graph), Rule::malformed));
  Plan past = right;
  past.barriers[1].before = 6;
  CHECK(objects(check_plan(past, graph), Rule::malformed));
  Plan descending = right;
  std::swap(descending.barriers[0].before, descending.barriers[1].before);
  CHECK(objects(check_plan(descending, graph), Rule::malformed));
  Plan level = right;
  level.dispatches[3].level = 0;
  CHECK(objects(check_plan(level, graph), Rule::malformed));
  Plan small = right;
  small.arena_bytes -= 256;
  CHECK(objects(check_plan(small, graph), Rule::malformed));
}

TEST_CASE("the checker objects to memory reused while it is still needed", "[plan][checker]") {
  Graph graph(1 << 20);
  const ValueId x = graph.import(Shape(8), 0);
  const ValueId a = unary(graph, ElementwiseOp::relu, x);
  const ValueId b = unary(graph, ElementwiseOp::neg, a);
  const ValueId c = unary(graph, ElementwiseOp::exp, b);
  binary(graph, ElementwiseOp::add, a, c);
  Plan plan = plan_of(graph);
  REQUIRE(plan.dispatches.size() == 4);
  // %3 over %1, which the last op still reads.
  const plan::Region taken = plan.dispatches[0].bindings[binding(plan.dispatches[0], "out0")];
  plan.dispatches[2].bindings[binding(plan.dispatches[2], "out0")] = taken;
  plan.dispatches[3].bindings[binding(plan.dispatches[3], "in1")] = taken;
  CHECK(objects(check_plan(plan, graph), Rule::wrong_version));
}

TEST_CASE("the checker accepts memory reused after its last use", "[plan][checker]") {
  Graph graph(1 << 20);
  const ValueId x = graph.import(Shape(8), 0);
  ValueId v = x;
  for (int i = 0; i < 4; ++i) v = unary(graph, ElementwiseOp::neg, v);
  Plan plan = plan_of(graph);
  // #0 writes and #1 reads one temporary; #2 may write it and #3 read it.
  const plan::Region reused = plan.dispatches[0].bindings[binding(plan.dispatches[0], "out0")];
  plan.dispatches[2].bindings[binding(plan.dispatches[2], "out0")] = reused;
  plan.dispatches[3].bindings[binding(plan.dispatches[3], "in0")] = reused;
  for (plan::Barrier& barrier : plan.barriers) barrier.causes.clear();
  plan.barriers[0].causes = {{plan::HazardKind::read_after_write, 0, 1, reused}};
  const plan::Region between = plan.dispatches[1].bindings[binding(plan.dispatches[1], "out0")];
  plan.barriers[1].causes = {{plan::HazardKind::read_after_write, 1, 2, between},
                             {plan::HazardKind::write_after_read, 1, 2, reused}};
  plan.barriers[2].causes = {{plan::HazardKind::read_after_write, 2, 3, reused}};
  CHECK(test::describe(check_plan(plan, graph)).empty());
}

TEST_CASE("the checker objects to passes of one op in the wrong order", "[plan][checker]") {
  plan::Traits traits;
  traits.max_group_invocations = 1;
  traits.max_loop_iterations = 2;
  Graph reduction(1 << 20);
  const ValueId x = upload(reduction, Shape(100));
  REQUIRE(reduction.reduce(record::ReduceOp::sum, {&x, 1}));
  Plan plan = plan_of(reduction, traits);
  REQUIRE(plan.dispatches.size() >= 2);
  swap(plan, 0, 1);
  CHECK(objects(check_plan(plan, reduction), Rule::wrong_version));

  Graph product(1 << 20);
  const ValueId a = upload(product, Shape(2, 64));
  const ValueId b = upload(product, Shape(64, 2));
  REQUIRE(product.matmul(a, b, {}));
  Plan split = plan_of(product, traits);
  REQUIRE(split.dispatches.size() >= 3);
  swap(split, 1, 2);
  CHECK(objects(check_plan(split, product), Rule::wrong_version));
}

TEST_CASE("the checker objects to random plans that lost a barrier", "[plan][checker][random]") {
  std::uint32_t tried = 0;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    test::Random random(seed);
    const Graph graph = test::random_graph(random);
    Plan plan = plan::make_plan(graph, test::random_traits(random)).value();
    if (plan.barriers.empty()) continue;
    ++tried;
    plan.barriers.erase(plan.barriers.begin() + random.below(static_cast<std::uint32_t>(plan.barriers.size())));
    renumber(plan);
    if (!objects(check_plan(plan, graph), Rule::open_hazard)) FAIL("seed " << seed);
  }
  CHECK(tried > 200);
}

TEST_CASE("the checker objects to random plans with the two ends of a hazard swapped", "[plan][checker][random]") {
  std::uint32_t tried = 0;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    test::Random random(seed);
    const Graph graph = test::random_graph(random);
    Plan plan = plan::make_plan(graph, test::random_traits(random)).value();
    if (plan.barriers.empty()) continue;
    const plan::Hazard hazard = random.pick(random.pick(plan.barriers).causes);
    // Two stores nobody reads between may change places when a third comes after them.
    if (hazard.kind == plan::HazardKind::write_after_write) continue;
    ++tried;
    swap(plan, hazard.from, hazard.to);
    if (!objects(check_plan(plan, graph), Rule::wrong_version)) FAIL("seed " << seed);
  }
  CHECK(tried > 200);
}
