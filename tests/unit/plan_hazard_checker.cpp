// The checker of plans, checked: it accepts what is right and objects to each way of being wrong.
#include "ops/matmul.hpp"
#include "ops/reduce.hpp"
#include "ops/store.hpp"
#include "record/elementwise.hpp"
#include "support/hazard_checker.hpp"
#include "support/kernel_model.hpp"
#include "support/random_graph.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

using namespace brontes;
using plan::Plan;
using record::ElementwiseOp;
using record::Graph;
using record::ValueId;
using test::binding;
using test::objects;
using test::Rule;

namespace {

ValueId unary(Graph& graph, ElementwiseOp op, ValueId x) {
  return record::elementwise(graph, op, {&x, 1}, 2.0f).value();
}

ValueId binary(Graph& graph, ElementwiseOp op, ValueId x, ValueId y) {
  const ValueId inputs[] = {x, y};
  return record::elementwise(graph, op, inputs).value();
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
  CHECK_FALSE(ops::store(graph, b, 0, Shape(8)));
  binary(graph, ElementwiseOp::add, c, b);
  unary(graph, ElementwiseOp::copy, x);
  return graph;
}

// Every op a dispatch and every value in memory of its own: what each dispatch does is plain.
constexpr plan::PlanOptions plain{false, false, false, false, 0};

std::vector<test::Objection> check_plan(const Plan& plan, const Graph& graph) {
  return test::check_plan(plan, graph, plain);
}

Plan plan_of(const Graph& graph, const plan::Traits& traits = {}) {
  Plan plan = plan::make_plan(graph, traits, plain).value();
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
  CHECK_FALSE(ops::store(graph, fresh, 0, Shape(8)));
  Plan plan = plan_of(graph);
  swap(plan, 0, 1);
  const auto objections = check_plan(plan, graph);
  CHECK(objects(objections, Rule::wrong_version));
  CHECK(objects(objections, Rule::false_cause));
}

TEST_CASE("the checker objects to stores in the wrong order, though nobody reads between them", "[plan][checker]") {
  Graph graph(1 << 20);
  CHECK_FALSE(ops::store(graph, upload(graph, Shape(8)), 0, Shape(8)));
  CHECK_FALSE(ops::store(graph, upload(graph, Shape(8)), 0, Shape(8)));
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
  other.dispatches[0].group = other.dispatches[1].group;
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
  REQUIRE(ops::reduce(reduction, ops::ReduceOp::sum, {&x, 1}));
  Plan plan = plan_of(reduction, traits);
  REQUIRE(plan.dispatches.size() >= 2);
  swap(plan, 0, 1);
  CHECK(objects(check_plan(plan, reduction), Rule::wrong_version));

  Graph product(1 << 20);
  const ValueId a = upload(product, Shape(2, 64));
  const ValueId b = upload(product, Shape(64, 2));
  REQUIRE(plan::matmul(product, a, b, {}));
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
    Plan plan = plan::make_plan(graph, test::random_traits(random), plain).value();
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
  std::uint32_t found = 0;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    test::Random random(seed);
    const Graph graph = test::random_graph(random);
    Plan plan = plan::make_plan(graph, test::random_traits(random), plain).value();
    if (plan.barriers.empty()) continue;
    const plan::Hazard hazard = random.pick(random.pick(plan.barriers).causes);
    // Two stores nobody reads between may change places when a third comes after them.
    if (hazard.kind == plan::HazardKind::write_after_write) continue;
    ++tried;
    swap(plan, hazard.from, hazard.to);
    const auto objections = check_plan(plan, graph);
    if (objections.empty()) FAIL("seed " << seed);
    found += objects(objections, Rule::wrong_version);
  }
  CHECK(tried > 200);
  // Hardly ever the same results come about all the same, such as a copy of what is there already.
  CHECK(found > tried * 95 / 100);
}

namespace {

// An epilogue, a fused group over two inputs, and a store without a copy.
//
//   #0 matmul+add %0, %1, %2 -> %4
//   barrier
//   #1 sum %4 -> %5     #2 sub+scale %4, %0 -> %7
//   barrier
//   #3 matmul %7, %1 -> %8 in buffer 0
Graph fused_graph() {
  Graph graph(1 << 20);
  const ValueId x = upload(graph, Shape(4, 4));
  const ValueId w = upload(graph, Shape(4, 4));
  const ValueId bias = upload(graph, Shape(4));
  const ValueId product = binary(graph, ElementwiseOp::add, plan::matmul(graph, x, w, {}).value(), bias);
  ops::reduce(graph, ops::ReduceOp::sum, {&product, 1}).value();
  const ValueId difference = binary(graph, ElementwiseOp::sub, product, x);
  const ValueId scaled = unary(graph, ElementwiseOp::scale, difference);
  CHECK_FALSE(ops::store(graph, plan::matmul(graph, scaled, w, {}).value(), 0, Shape(4, 4)));
  return graph;
}

Plan fused_plan(const Graph& graph) {
  Plan plan = plan::make_plan(graph, {}).value();
  REQUIRE(test::describe(test::check_plan(plan, graph)).empty());
  REQUIRE(plan.dispatches.size() == 4);
  return plan;
}

std::size_t find(const Plan& plan, kernels::Ref kernel) {
  std::size_t i = 0;
  while (plan.dispatches[i].kernel != kernel) ++i;
  return i;
}

std::uint32_t& constant_of(plan::Dispatch& d, const char* name) {
  const auto& constants = kernels::get(d.kernel).constants;
  std::size_t i = 0;
  while (std::string_view(constants[i].name) != name) ++i;
  return d.constants[i];
}

}  // namespace

TEST_CASE("the checker objects to every wrong step of a fused program", "[plan][checker]") {
  const Graph graph = fused_graph();
  const Plan right = fused_plan(graph);
  const std::size_t at = find(right, kernels::Id::elementwise);
  auto broken = [&](auto change) {
    Plan plan = right;
    change(plan.dispatches[at]);
    return objects(test::check_plan(plan, graph), Rule::wrong_version);
  };
  using plan::Dispatch;
  const std::uint32_t subtract = constant_of(Plan(right).dispatches[at], "step0");
  const std::uint32_t swapped = plan::elementwise_step(subtract & 255u, subtract >> 16 & 255u, subtract >> 8 & 255u);
  CHECK(broken([&](Dispatch& d) { constant_of(d, "step0") = swapped; }));
  CHECK(broken([](Dispatch& d) { constant_of(d, "step0") += 1; }));        // another op
  CHECK(broken([](Dispatch& d) { constant_of(d, "step1") -= 4u << 8; }));  // an input instead of step 0
  CHECK(broken([](Dispatch& d) { constant_of(d, "step_count") -= 1; }));   // a step too few
  CHECK(broken([](Dispatch& d) { constant_of(d, "result0") -= 1; }));      // the wrong result
  CHECK(
      broken([](Dispatch& d) { constant_of(d, "mode0") = static_cast<std::uint32_t>(plan::ElementwiseMode::scalar); }));
  CHECK(broken([](Dispatch& d) { constant_of(d, "mode1") = 0; }));
  CHECK(
      broken([](Dispatch& d) { d.push[offsetof(kernels::ElementwiseParams, p) + 4] ^= std::byte{1}; }));  // the factor
  CHECK(broken([](Dispatch& d) { d.push[offsetof(kernels::ElementwiseParams, n)] = std::byte{15}; }));
  CHECK(broken([](Dispatch& d) {  // a workgroup that is no whole number of lanes
    d.set(kernels::elementwise::lanes, 7);
    d.push[offsetof(kernels::ElementwiseParams, vectors)] = std::byte{1};
  }));
  CHECK(broken([](Dispatch& d) {
    d.set(kernels::elementwise::lanes, 8);
    d.push[offsetof(kernels::ElementwiseParams, vectors)] = std::byte{0};
  }));
  CHECK(broken([](Dispatch& d) { d.groups[0] = 0; }));
}

TEST_CASE("the checker objects to every wrong step of an epilogue", "[plan][checker]") {
  const Graph graph = fused_graph();
  const Plan right = fused_plan(graph);
  const std::size_t at = find(right, kernels::Id::matmul_naive);
  auto broken = [&](auto change) {
    Plan plan = right;
    change(plan.dispatches[at]);
    return objects(test::check_plan(plan, graph), Rule::wrong_version);
  };
  using plan::Dispatch;
  CHECK(broken([](Dispatch& d) { constant_of(d, "step_count") = 0; }));
  CHECK(broken([](Dispatch& d) { constant_of(d, "step0") += 1; }));
  CHECK(broken([](Dispatch& d) { constant_of(d, "step0") |= 1u << 8; }));
  CHECK(broken([](Dispatch& d) { constant_of(d, "mode1") = static_cast<std::uint32_t>(plan::ElementwiseMode::full); }));
  // Another operand, and none.
  CHECK(broken([](Dispatch& d) { d.bindings[binding(d, "a")] = d.bindings[binding(d, "extra1")]; }));
  CHECK(broken([](Dispatch& d) { d.used = static_cast<std::uint8_t>(d.used & ~(1u << binding(d, "b"))); }));
}

TEST_CASE("the checker objects to results that take the wrong memory", "[plan][checker]") {
  const Graph graph = fused_graph();
  const Plan right = fused_plan(graph);
  const std::size_t at = find(right, kernels::Id::elementwise);
  // Over an operand that another dispatch reads between the same barriers.
  Plan early = right;
  plan::Dispatch& d = early.dispatches[at];
  const plan::Region result = d.bindings[binding(d, "out0")];
  d.bindings[binding(d, "out0")] = d.bindings[binding(d, "in0")];
  CHECK(objects(test::check_plan(early, graph), Rule::open_hazard));
  CHECK(objects(test::check_plan(early, graph), Rule::wrong_version));
  // Over part of an operand, shifted.
  Plan shifted = right;
  plan::Dispatch& s = shifted.dispatches[at];
  s.bindings[binding(s, "out0")].offset = s.bindings[binding(s, "in0")].offset + 16;
  CHECK(objects(test::check_plan(shifted, graph), Rule::unsafe_alias));
  // A product over its operand.
  Plan product = right;
  for (plan::Dispatch& m : product.dispatches) {
    if (m.kernel != kernels::Id::matmul_naive || m.bindings[binding(m, "a")] != result) continue;
    m.bindings[binding(m, "c")] = result;
  }
  CHECK(objects(test::check_plan(product, graph), Rule::unsafe_alias));
}

TEST_CASE("the checker objects to a broadcast operand overwritten in place, and to two results in one place",
          "[plan][checker]") {
  Graph graph(1 << 20);
  const ValueId x = upload(graph, Shape(1));
  const ValueId y = unary(graph, ElementwiseOp::exp, binary(graph, ElementwiseOp::add, x, upload(graph, Shape(1))));
  graph.keep(unary(graph, ElementwiseOp::neg, y));
  graph.keep(y);
  const Plan right = plan::make_plan(graph, {}).value();
  REQUIRE(right.dispatches.size() == 1);
  Plan two = right;
  plan::Dispatch& d = two.dispatches[0];
  d.bindings[binding(d, "out1")] = d.bindings[binding(d, "out0")];
  CHECK(objects(test::check_plan(two, graph), Rule::unsafe_alias));
  Plan in_place = right;  // not with two results
  plan::Dispatch& i = in_place.dispatches[0];
  i.bindings[binding(i, "out0")] = i.bindings[binding(i, "in0")];
  CHECK(objects(test::check_plan(in_place, graph), Rule::unsafe_alias));
}

TEST_CASE("the checker objects to a store that is dropped", "[plan][checker]") {
  const Graph graph = fused_graph();
  Plan elsewhere = fused_plan(graph);
  std::size_t redirected = 0;
  for (plan::Dispatch& d : elsewhere.dispatches) {
    for (plan::Region& r : d.bindings) {
      if (r.bytes == 0 || r.resource == plan::arena) continue;
      r = {plan::arena, 0, r.bytes};
      ++redirected;
    }
  }
  CHECK(redirected != 0);
  CHECK(objects(test::check_plan(elsewhere, graph), Rule::wrong_version));
  Graph copied(1 << 20);
  CHECK_FALSE(ops::store(copied, upload(copied, Shape(4)), 0, Shape(4)));
  Plan plan = plan_of(copied);
  plan.dispatches.clear();
  CHECK(objects(check_plan(plan, copied), Rule::wrong_version));
}

TEST_CASE("the checker objects to wrong counts, wrong submits and values nobody can read", "[plan][checker]") {
  const Graph graph = fused_graph();
  const Plan right = fused_plan(graph);
  auto broken = [&](Rule rule, auto change) {
    Plan plan = right;
    change(plan);
    return objects(test::check_plan(plan, graph), rule);
  };
  CHECK(broken(Rule::miscounted, [](Plan& p) { ++p.dropped_operations; }));
  CHECK(broken(Rule::miscounted, [](Plan& p) { ++p.fused_operations; }));
  CHECK(broken(Rule::miscounted, [](Plan& p) { p.arena_bytes_without_reuse = 0; }));
  CHECK(broken(Rule::miscounted, [](Plan& p) { p.groups[0].program.step_count = 0; }));
  CHECK(broken(Rule::malformed, [](Plan& p) { p.submits.clear(); }));
  CHECK(broken(Rule::malformed, [](Plan& p) { p.submits = {{0, 2}, {2, 4}}; }));
  CHECK(broken(Rule::malformed, [](Plan& p) { p.submits = {{0, 3}}; }));
  CHECK(broken(Rule::malformed, [](Plan& p) { p.dispatches[0].group = 99; }));
  CHECK(broken(Rule::wrong_version, [](Plan& p) { p.readable.clear(); }));
  CHECK(broken(Rule::wrong_version, [](Plan& p) { p.readable[0].offset += 256; }));
  CHECK(broken(Rule::wrong_version, [](Plan& p) { p.uploads[0].offset += 4; }));
  plan::PlanOptions budget;
  budget.work_per_submit = 1;
  CHECK(objects(test::check_plan(right, graph, budget), Rule::malformed));
  plan::PlanOptions all;
  all.keep_all = true;
  CHECK(objects(test::check_plan(right, graph, all), Rule::wrong_version));
}

TEST_CASE("the checker objects to random fused plans with a wrong register, result or place",
          "[plan][checker][random]") {
  std::uint32_t tried = 0;
  std::uint32_t found = 0;
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    test::Random random(seed);
    const Graph graph = test::random_graph(random);
    Plan plan = plan::make_plan(graph, {}).value();
    if (plan.dispatches.empty()) continue;
    plan::Dispatch& d = plan.dispatches[random.below(static_cast<std::uint32_t>(plan.dispatches.size()))];
    const plan::Group& group = plan.groups[d.group];
    if (d.kernel != kernels::Id::elementwise || group.program.step_count < 2) continue;
    ++tried;
    constexpr const char* steps[] = {"step0", "step1", "step2", "step3", "step4", "step5", "step6", "step7"};
    const std::uint32_t s = random.below(group.program.step_count);
    std::uint32_t& word = constant_of(d, steps[s]);
    switch (random.below(3)) {
      case 0: word ^= 1u; break;                                                       // another op
      case 1: word = (word & ~0xff00u) | ((word >> 8 & 255u) + 1u) % 12u << 8; break;  // another register
      default: constant_of(d, "result0") = 4 + (constant_of(d, "result0") - 3) % group.program.step_count; break;
    }
    found += !test::check_plan(plan, graph).empty();
  }
  CHECK(tried > 200);
  // A fill has no operand to get wrong, and a sum of x and x no wrong one.
  CHECK(found > tried * 9 / 10);
}
