// Submits hold no more than they may, whatever the bound is in: work, or estimated time.
#include "support/hazard_checker.hpp"
#include "support/random_graph.hpp"

#include "plan/plan.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstdint>

using namespace brontes;
using test::Random;

namespace {

double share_of(const plan::Dispatch& d, const plan::Traits& traits, const plan::PlanOptions& options) {
  double bytes = 0;
  for (std::size_t b = 0; b < d.binding_count; ++b) {
    const auto region = static_cast<double>(d.bindings[b].bytes);
    if (d.reads(b) || d.writes(b)) bytes += std::min(region, 4.0 * static_cast<double>(d.work));
  }
  const double seconds = static_cast<double>(d.work) / traits.speed.work + bytes / traits.speed.bytes;
  double share = 0;
  if (options.seconds_per_submit > 0) share = seconds / options.seconds_per_submit;
  if (options.work_per_submit != 0) {
    share = std::max(share, static_cast<double>(d.work) / static_cast<double>(options.work_per_submit));
  }
  return share;
}

plan::Dispatch copy_of(std::uint64_t elements, std::array<std::uint32_t, 3> groups) {
  plan::Dispatch d(kernels::Id::elementwise, 0);
  d.bind_at(0, {0, 0, elements * 4});
  d.work = elements;
  d.groups = groups;
  d.folded = true;
  return d;
}

}  // namespace

TEST_CASE("split: no submit of a random graph takes longer than its bound", "[plan][split][random]") {
  std::uint64_t several = 0;
  std::uint64_t within = 0;
  for (std::uint32_t seed = 0; seed < test::graph_count(1500); ++seed) {
    Random random(seed);
    const record::Graph graph = test::random_graph(random);
    plan::Traits traits = test::random_traits(random);
    traits.speed.work = static_cast<double>(random.between(1, 1000)) * 1e6;
    traits.speed.bytes = static_cast<double>(random.between(1, 1000)) * 1e6;
    plan::PlanOptions options = test::random_options(random);
    options.seconds_per_submit = static_cast<double>(random.between(1, 1000)) * 1e-7;
    const auto made = plan::make_plan(graph, traits, options);
    REQUIRE(made);
    INFO("seed " << seed << "\n" << plan::dump(*made, graph));
    REQUIRE(test::describe(test::check_plan(*made, graph, options)).empty());

    plan::PlanOptions unbounded = options;
    unbounded.seconds_per_submit = 0;
    unbounded.work_per_submit = 0;
    const auto whole = plan::make_plan(graph, traits, unbounded);
    REQUIRE(whole);
    REQUIRE(whole->submits.size() == 1);
    REQUIRE(whole->dispatches.size() == made->dispatches.size());

    for (const plan::DispatchRange& r : made->submits) {
      double share = 0;
      std::uint64_t pieces = 0;
      for (std::uint32_t i = r.begin; i < r.end; ++i) {
        const plan::Dispatch& d = made->dispatches[i];
        const std::uint32_t begin = i == r.begin ? r.begin_row : 0;
        const std::uint32_t end = i + 1 == r.end && r.end_row != 0 ? r.end_row : d.groups[1];
        share += share_of(d, traits, options) * (end - begin) / d.groups[1];
        if (share_of(d, traits, options) > 0) pieces += d.in_parts ? end - begin : 1;
        // What is not in parts is short enough, or cannot be cut.
        const bool one = d.groups == std::array<std::uint32_t, 3>{1, 1, 1};
        const bool cuttable = d.folded && d.groups[2] == 1 && !one && traits.max_group_count[1] > 1;
        if (!d.in_parts && cuttable) REQUIRE(share_of(d, traits, options) <= 1);
        within += d.in_parts;
        // All workgroups of the whole one are among those of the parts.
        const auto count = [](const plan::Dispatch& of) {
          return std::uint64_t{of.groups[0]} * of.groups[1] * of.groups[2];
        };
        REQUIRE(count(d) >= count(whole->dispatches[i]));
      }
      if (pieces > 1) REQUIRE(share <= 1 + 1e-9);
    }
    several += made->submits.size() > 1;
  }
  CHECK(several > test::graph_count(1500) / 3);
  CHECK(within > test::graph_count(1500) / 4);
}

TEST_CASE("split: a long dispatch is cut into rows of workgroups that fit", "[plan][split]") {
  plan::Traits traits;
  plan::PlanOptions options;
  options.work_per_submit = 1000;
  // 100 workgroups of 100 elements: ten to a submit.
  std::vector<plan::Dispatch> dispatches{copy_of(10, {1, 1, 1}), copy_of(10000, {100, 1, 1}), copy_of(10, {1, 1, 1})};
  const auto submits = plan::split(dispatches, traits, options);
  CHECK(dispatches[1].groups == std::array<std::uint32_t, 3>{10, 10, 1});
  CHECK(dispatches[1].in_parts);
  CHECK_FALSE(dispatches[0].in_parts);
  // The first row does not fit beside the dispatch before it, nor the last one beside what follows.
  REQUIRE(submits.size() == 12);
  CHECK(submits[0].end == 1);
  CHECK(submits[1].begin == 1);
  CHECK(submits[1].begin_row == 0);
  CHECK(submits[1].end_row == 1);
  CHECK(submits[10].begin_row == 9);
  CHECK(submits[10].end_row == 0);
  CHECK(submits[11].begin == 2);
}

TEST_CASE("split: what is short stays together, and what cannot be cut stays whole", "[plan][split]") {
  plan::Traits traits;
  plan::PlanOptions options;
  options.seconds_per_submit = 0.25;
  std::vector<plan::Dispatch> small(50, copy_of(1000, {4, 1, 1}));
  CHECK(plan::split(small, traits, options).size() == 1);

  plan::Dispatch fixed = copy_of(std::uint64_t{1} << 40, {100, 100, 1});
  fixed.folded = false;
  std::vector<plan::Dispatch> long_ones{fixed, copy_of(std::uint64_t{1} << 40, {1, 1, 1})};
  CHECK(plan::split(long_ones, traits, options).size() == 2);
  CHECK(long_ones[0].groups == std::array<std::uint32_t, 3>{100, 100, 1});
  CHECK_FALSE(long_ones[0].in_parts);

  options.seconds_per_submit = 0;
  CHECK(plan::split(long_ones, traits, options).size() == 1);
}

TEST_CASE("speed: the estimate approaches what is measured, kind by kind", "[plan][split]") {
  // 2e12 multiply-adds a second, 3e11 bytes.
  const plan::Speed real{2e12, 3e11};
  plan::Speed known;
  const plan::Cost product{1e12, 1e8};
  const plan::Cost copies{1e9, 1.2e10};
  for (int i = 0; i < 60; ++i) {
    for (const plan::Cost& cost : {product, copies}) {
      known = plan::refined(known, cost, plan::estimate(cost, real), false);
    }
  }
  for (const plan::Cost& cost : {product, copies}) {
    CHECK(plan::estimate(cost, known) == Catch::Approx(plan::estimate(cost, real)).epsilon(0.01));
  }
  // A product says little of how fast memory is.
  const plan::Speed later = plan::refined(known, product, 8 * plan::estimate(product, real), false);
  CHECK(later.work < known.work / 2);
  CHECK(later.bytes > known.bytes * 0.9);
}

TEST_CASE("speed: a late observation can only show that the device is faster", "[plan][split]") {
  const plan::Speed known{1e9, 1e9};
  const plan::Cost cost{1e9, 0};
  CHECK(plan::refined(known, cost, 10, true).work == known.work);
  CHECK(plan::refined(known, cost, 10, false).work < known.work);
  CHECK(plan::refined(known, cost, 0.1, true).work > known.work);
  CHECK(plan::refined(known, cost, 0, false).work == known.work);
  CHECK(plan::refined(known, {}, 1, false).work == known.work);
  // One outlier does not undo everything.
  CHECK(plan::refined(known, cost, 1e6, false).work > known.work / 8);
}
