// SPDX-License-Identifier: MIT
// Benchmarks with the harness of brontes-bench: a program of yours, with your cases and everything else it has.
//
//     #include <brontes/bench.hpp>
//
//     int main(int argc, char** argv) {
//       brontes::bench::Suite suite{"blur", {...}};
//       return brontes::bench::main(argc, argv, {{suite}});
//     }
//
// The program takes the arguments that brontes-bench takes, writes the same formats, and compares its files.
#pragma once

#include <brontes/brontes.hpp>

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace brontes::bench {

/// A case cannot go on. Anything else derived from std::exception ends a case as well.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws Failure when there is an error.
void must(const Error& error);

/// The value, or throws Failure.
template <class T>
T must(Result<T> result) {
  must(result.error());
  return std::move(result).value();
}

/// What cases are made with.
struct Environment {
  /// Open as long as the cases live. What happens on it during an iteration is counted.
  const Device& device;
};

/// One thing to time.
struct Case {
  /// One iteration; the work is complete when it returns. Throws Failure.
  std::function<void()> run;
  /// Runs once and compares with a reference, before anything is timed. What is wrong, or "". Without it, run() is
  /// called once.
  std::function<std::string()> check = {};
  /// What one iteration does.
  double bytes = 0;  ///< that have to move, however often the implementation moves them
  double flops = 0;
  double items = 1;
  std::string item = "run";
  /// How long its threads go on spinning after it returned. The next case waits for them.
  double settle_seconds = 0;
  /// Why it cannot run here; empty when it can.
  std::string unavailable = {};
  /// Batch::dump() or Program::dump() of what an iteration runs: a comparison prints its lines that changed when a
  /// count has grown. Called once, after the check.
  std::function<std::string()> dump = {};
  /// False where counts say nothing: work of the host alone, or on another Device.
  bool counted = true;
};

/// Asks how many times as fast `variant` is as `baseline`.
struct Comparison {
  std::string variant;
  std::string baseline;
  /// The ratio that is promised, or 0. Reported, never enforced.
  double goal = 0;
};

/// Cases that do the same work in different ways. Their epochs are interleaved, so that whatever disturbs the machine
/// disturbs them alike, and only then is a ratio between them worth printing.
struct Group {
  /// SUITE/WORK/SIZE, for example "chain/relu-scale-add/1000". A case is named GROUP/VARIANT, and such a name never
  /// changes its meaning: a different measurement is a different name.
  std::string name;
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
  /// Runs only if it is named: it is long, and says more of the machine than of a change.
  bool on_request = false;
};

/// Another implementation that cases compare with, for the header and the JSON.
struct Peer {
  std::string name;
  std::string unavailable;                                      ///< why it is not compared with, or ""
  std::vector<std::pair<std::string, std::string>> facts = {};  ///< version, threads, and so on
};

/// What a benchmark program consists of.
struct Contents {
  std::vector<Suite> suites;
  /// Called once, before the first case.
  std::function<std::vector<Peer>()> peers = {};
};

/// Does what the arguments ask for; `--help` tells. Returns the exit status of the program: 0; 1 when a case failed or
/// no device was found; 2 for bad arguments; 3 for a regression; 130 when interrupted. Throws nothing.
///
/// The program's operator new is replaced by one that counts. Call it once, from main().
int main(int argc, const char* const* argv, const Contents& contents) noexcept;

}  // namespace brontes::bench
