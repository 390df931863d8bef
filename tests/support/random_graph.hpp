// Random recordings for property tests: the same seed gives the same one everywhere.
#pragma once

#include "plan/plan.hpp"
#include "plan/traits.hpp"
#include "record/graph.hpp"

#include <cstdint>
#include <random>

namespace brontes::test {

/// std::mt19937 is the same everywhere, the standard distributions are not.
class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}

  /// Of [0, bound).
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(engine_() % bound); }
  /// Of [low, high].
  std::uint32_t between(std::uint32_t low, std::uint32_t high) { return low + below(high - low + 1); }
  bool one_in(std::uint32_t n) { return below(n) == 0; }
  template <class Container>
  const auto& pick(const Container& from) {
    return from[below(static_cast<std::uint32_t>(std::size(from)))];
  }

 private:
  std::mt19937 engine_;
};

/// A device out of the ordinary: few invocations, little shared memory, short loops, small grids.
plan::Traits random_traits(Random& random);

/// Any way to keep and to split; fusion and reuse mostly on.
plan::PlanOptions random_options(Random& random);

/// A mix of uploads, imports of a few resources (also of values of an earlier execution, which overlap
/// each other and what stores write), elementwise ops with broadcasting, fills, reductions, matmuls in
/// both layouts, calls of kernels, views, stores and stores to slices, keeps, and ops from the cases of every room;
/// among them what plans have rules for: long chains, diamonds, chains that meet, many operands, layers of an MLP,
/// updates in place, reads before and after stores. Sizes are small, some are zero. `ops_of_cases` is raised by the
/// number of ops that came from cases.
record::Graph random_graph(Random& random, std::uint64_t* ops_of_cases = nullptr);

/// How many graphs a property test looks at: `usual`, or ten times as many with BRONTES_SOAK=1.
std::uint32_t graph_count(std::uint32_t usual);

}  // namespace brontes::test
