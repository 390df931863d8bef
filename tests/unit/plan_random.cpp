// Random recordings on random devices: every plan is proved.
#include "support/hazard_checker.hpp"
#include "support/random_graph.hpp"

#include "plan/plan.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <set>

using namespace brontes;
using test::Random;

namespace {

// What a run of random plans came across, so that a generator gone stale is noticed.
struct Seen {
  std::uint32_t barriers = 0;
  std::uint32_t raw = 0;
  std::uint32_t war = 0;
  std::uint32_t waw = 0;
  std::uint32_t shared_gaps = 0;
  std::uint32_t reordered = 0;
  std::uint32_t several_passes = 0;
  std::uint32_t folded = 0;

  void count(const plan::Plan& plan) {
    barriers += static_cast<std::uint32_t>(plan.barriers.size());
    for (const plan::Barrier& b : plan.barriers) {
      for (const plan::Hazard& h : b.causes) {
        raw += h.kind == plan::HazardKind::read_after_write;
        war += h.kind == plan::HazardKind::write_after_read;
        waw += h.kind == plan::HazardKind::write_after_write;
      }
    }
    for (std::size_t i = 0; i < plan.dispatches.size(); ++i) {
      folded += plan.dispatches[i].groups[1] > 1;
      if (i == 0) continue;
      shared_gaps += plan.dispatches[i].level == plan.dispatches[i - 1].level;
      reordered += plan.dispatches[i].node < plan.dispatches[i - 1].node;
    }
    std::set<std::uint32_t> nodes;
    for (const plan::Dispatch& d : plan.dispatches) several_passes += !nodes.insert(d.node).second;
  }
};

}  // namespace

TEST_CASE("random graphs: no hazard is left open and no barrier is without a cause", "[plan][random]") {
  Seen seen;
  const std::uint32_t count = test::graph_count(3000);
  for (std::uint32_t seed = 0; seed < count; ++seed) {
    Random random(seed);
    const record::Graph graph = test::random_graph(random);
    const plan::Traits traits = test::random_traits(random);
    plan::PlanOptions options;
    options.keep_all = random.one_in(4);
    const auto plan = plan::make_plan(graph, traits, options);
    if (!plan) FAIL("seed " << seed << ": " << plan.error().message);
    const auto objections = test::check_plan(*plan, graph);
    if (!objections.empty()) {
      FAIL("seed " << seed << ":\n" << test::describe(objections) << plan::dump(*plan, graph));
    }
    seen.count(*plan);
  }
  CHECK(seen.barriers > count);
  CHECK(seen.raw > count);
  CHECK(seen.war > count / 10);
  CHECK(seen.waw > count / 10);
  CHECK(seen.shared_gaps > count);
  CHECK(seen.reordered > count / 10);
  CHECK(seen.several_passes > count / 10);
  CHECK(seen.folded > count / 10);
}

TEST_CASE("random graphs: planning twice gives the same plan", "[plan][random]") {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const record::Graph graph = test::random_graph(random);
    const plan::Traits traits = test::random_traits(random);
    INFO("seed " << seed);
    const auto once = plan::make_plan(graph, traits);
    const auto again = plan::make_plan(graph, traits);
    REQUIRE((once && again));
    REQUIRE(plan::dump(*once, graph) == plan::dump(*again, graph));
  }
}
