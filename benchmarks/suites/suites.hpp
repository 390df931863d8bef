// What benchmarks are made of: suites of groups of cases.
//
// A suite is a file and lists groups. A group is a set of cases that do the same work in different
// ways; their epochs are interleaved, so that whatever disturbs the machine disturbs them alike, and
// only then is a ratio between them worth printing. A case is named GROUP/VARIANT, and such a name
// never changes its meaning: a different measurement is a different name.
#pragma once

#include "blas.hpp"

#include <brontes/brontes.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace bench {

struct Environment {
  const brontes::Device& device;
  const Blas& blas;
};

/// One thing to time.
struct Case {
  /// One iteration; the work is complete when it returns. Throws Failure.
  std::function<void()> run;
  /// Runs once and compares with a reference, before anything is timed. What is wrong, or "".
  std::function<std::string()> check;
  /// What one iteration does.
  double bytes = 0;  ///< that have to move, however often the implementation moves them
  double flops = 0;
  double items = 1;
  std::string item = "run";
  /// How long its threads go on spinning after it returned. The next case waits for them.
  double settle_seconds = 0;
  /// Why it cannot run here; empty when it can.
  std::string unavailable = {};
};

/// Asks how many times as fast `variant` is as `baseline`.
struct Comparison {
  std::string variant;
  std::string baseline;
  /// The ratio the project promises, or 0. Reported, never enforced.
  double goal = 0;
};

struct Group {
  std::string name;  ///< SUITE/WORK/SIZE, for example "chain/relu-scale-add/1000"
  std::vector<std::string> variants;
  std::vector<Comparison> comparisons;
  /// Small enough for --quick.
  bool quick = false;
  /// Makes the cases, in the order of `variants`. They own their data.
  std::function<std::vector<Case>(const Environment&)> prepare;
};

struct Suite {
  std::string name;
  std::vector<Group> groups;
};

Suite chain_suite();
Suite cold_suite();
Suite dispatch_suite();
Suite elementwise_suite();
Suite matmul_batched_suite();
Suite matmul_cache_suite();
Suite matmul_suite();
Suite ops_suite();
Suite reduce_suite();
Suite rows_suite();
Suite views_suite();

}  // namespace bench
