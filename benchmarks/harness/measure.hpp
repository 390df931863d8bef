// Timing and counting: nanobench counts and times iterations, this decides how many epochs and in which order.
#pragma once

#include "report.hpp"

#include <brontes/bench.hpp>

#include <string>
#include <vector>

namespace brontes::bench {

struct Effort {
  int epochs = 30;              ///< per case, fewer where `budget` forbids
  int least_epochs = 3;         ///< unless a single iteration is past `budget`: then 1
  double epoch_seconds = 0.01;  ///< an epoch repeats the case for at least this long
  double budget = 4;            ///< seconds per case, roughly
};

struct GroupResult {
  std::vector<CaseResult> cases;
  std::vector<Ratio> ratios;
  std::vector<Remark> skipped;
  std::vector<Remark> failed;  // a wrong result, or an error
  bool interrupted = false;    // before it was done: there are no cases
};

/// Checks, counts and times the cases of a group for which `wanted` holds, by their index in Group::variants. Ends
/// early when the program is interrupted.
GroupResult measure(const std::string& suite, const Group& group, const std::vector<bool>& wanted,
                    const Environment& environment, const Effort& effort);

/// Under valgrind: has the instructions of those cases counted, by their names. Nothing is timed.
void count_instructions(const Group& group, const std::vector<bool>& wanted, const Environment& environment);

}  // namespace brontes::bench
