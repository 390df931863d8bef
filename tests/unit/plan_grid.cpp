// Folding a count of workgroups over three axes.
#include "ops/reduce.hpp"
#include "plan/plan.hpp"
#include "record/elementwise.hpp"
#include "support/random_graph.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

using namespace brontes;
using plan::fold;

namespace {

using Grid = std::array<std::uint32_t, 3>;

plan::Traits limits(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  plan::Traits traits;
  traits.max_group_count = {x, y, z};
  return traits;
}

// True when x * y * z >= groups, in arithmetic that cannot wrap.
bool enough(const Grid& grid, std::uint64_t groups) {
  const std::uint64_t plane = std::uint64_t{grid[0]} * grid[1];
  return plane != 0 && groups / plane + (groups % plane != 0) <= grid[2];
}

void check_fold(std::uint64_t groups, const plan::Traits& traits) {
  const auto& most = traits.max_group_count;
  INFO(groups << " over " << most[0] << " x " << most[1] << " x " << most[2]);
  const auto grid = fold(groups, traits);
  if (!enough(most, groups)) {
    REQUIRE_FALSE(grid);
    REQUIRE(grid.error().code == Errc::limit_exceeded);
    return;
  }
  REQUIRE(grid);
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE((*grid)[i] >= 1);
    REQUIRE((*grid)[i] <= most[i]);
  }
  REQUIRE(enough(*grid, groups));
  // Less than one group per row too many: with one column fewer it would not be enough.
  REQUIRE_FALSE(enough({(*grid)[0] - 1, (*grid)[1], (*grid)[2]}, groups));
}

}  // namespace

TEST_CASE("a grid within the first axis is not folded", "[plan][grid]") {
  CHECK(*fold(1, limits(65535, 65535, 65535)) == Grid{1, 1, 1});
  CHECK(*fold(65535, limits(65535, 65535, 65535)) == Grid{65535, 1, 1});
  CHECK(*fold(3'000'000, limits(0x7fffffff, 65535, 65535)) == Grid{3'000'000, 1, 1});
}

TEST_CASE("a grid past the first axis folds into rows of equal length", "[plan][grid]") {
  CHECK(*fold(65536, limits(65535, 65535, 65535)) == Grid{32768, 2, 1});
  CHECK(*fold(65535 * 2 + 1, limits(65535, 65535, 65535)) == Grid{43691, 3, 1});
}

TEST_CASE("a grid past two axes folds into planes", "[plan][grid]") {
  const auto grid = fold(std::uint64_t{65535} * 65535 + 1, limits(65535, 65535, 65535));
  REQUIRE(grid);
  CHECK((*grid)[2] == 2);
}

TEST_CASE("no work is an empty grid", "[plan][grid]") {
  const Grid grid = *fold(0, plan::Traits{});
  CHECK(grid[0] * grid[1] * grid[2] == 0);
}

TEST_CASE("every count folds within small limits, or is refused past all of them", "[plan][grid]") {
  for (std::uint32_t x = 1; x <= 6; ++x) {
    for (std::uint32_t y = 1; y <= 5; ++y) {
      for (std::uint32_t z = 1; z <= 4; ++z) {
        for (std::uint64_t groups = 1; groups <= std::uint64_t{x} * y * z + 3; ++groups) {
          check_fold(groups, limits(x, y, z));
        }
      }
    }
  }
}

TEST_CASE("random counts of up to 64 bits fold within random limits", "[plan][grid]") {
  for (std::uint32_t seed = 0; seed < 20000; ++seed) {
    test::Random random(seed);
    auto limit = [&] { return std::max(1u, random.below(0xffffffffu) >> random.below(32)); };
    const plan::Traits traits = limits(limit(), limit(), limit());
    const std::uint64_t any = std::uint64_t{random.below(0xffffffffu)} << 32 | random.below(0xffffffffu);
    check_fold(std::max<std::uint64_t>(1, any >> random.below(64)), traits);
  }
}

TEST_CASE("the limits themselves just fit, and one more is refused", "[plan][grid]") {
  const std::uint64_t all = std::uint64_t{65535} * 65535 * 65535;
  check_fold(all, limits(65535, 65535, 65535));
  check_fold(all + 1, limits(65535, 65535, 65535));
  check_fold(~std::uint64_t{0}, limits(65535, 65535, 65535));
  check_fold(~std::uint64_t{0}, limits(0xffffffff, 0xffffffff, 0xffffffff));
}

TEST_CASE("a refused grid names count and limits", "[plan][grid]") {
  const std::string message = fold(1001, limits(10, 10, 10)).error().message;
  INFO(message);
  CHECK(message.find("1001") != std::string::npos);
  CHECK(message.find("10 x 10 x 10") != std::string::npos);
}

TEST_CASE("an op too large for the grid fails to plan and says which", "[plan][grid]") {
  record::Graph graph(std::uint64_t{1} << 20);
  REQUIRE(record::fill(graph, 0, Shape(10000)));
  const auto plan = plan::make_plan(graph, limits(2, 2, 2));
  REQUIRE_FALSE(plan);
  CHECK(plan.error().code == Errc::limit_exceeded);
  CHECK(plan.error().message.rfind("fill: ", 0) == 0);
}

TEST_CASE("dispatches past 65535 groups keep within every axis and cover their work", "[plan][grid]") {
  plan::Traits traits;
  traits.max_group_invocations = 1;
  record::Graph graph(std::uint64_t{1} << 30);
  const record::ValueId x = record::fill(graph, 1, Shape(70001, 16)).value();
  REQUIRE(ops::reduce(graph, ops::ReduceOp::sum, {&x, 1}));
  const auto plan = plan::make_plan(graph, traits);
  REQUIRE(plan);
  const Grid& grid = plan->dispatches[0].groups;
  CHECK(grid[1] > 1);
  CHECK(std::uint64_t{grid[0]} * grid[1] * grid[2] >= 70001);
}
