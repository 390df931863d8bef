// Timing: nanobench counts and times iterations, this decides how many epochs and in which order.
#pragma once

#include "suite.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

struct Effort {
  int epochs = 15;              ///< per case, fewer where `budget` forbids
  int least_epochs = 3;         ///< unless a single iteration is past `budget`: then 1
  double epoch_seconds = 0.02;  ///< an epoch repeats the case for at least this long
  double budget = 4;            ///< seconds per case, roughly
};

struct Measurement {
  std::string name;  // of the case
  std::string suite;
  double bytes = 0, flops = 0, items = 1;
  std::string item;

  std::vector<double> samples;   // seconds per iteration, one per epoch, in the order they were taken
  std::uint64_t iterations = 0;  // of one epoch
  double median = 0, minimum = 0;
  double error = 0;   // MdAPE: the median of |sample - median| / sample, as nanobench has it
  double others = 0;  // Bystander::others() while its group ran

  double gigabytes_per_second() const { return median > 0 ? bytes / median * 1e-9 : 0; }
  double gigaflops() const { return median > 0 ? flops / median * 1e-9 : 0; }
};

struct Ratio {
  std::string group, variant, baseline;
  double by_median = 0;  // baseline's time over variant's: how many times as fast it is
  double by_minimum = 0;
  double goal = 0;

  bool met() const { return by_median >= goal; }
};

struct Remark {
  std::string name;
  std::string reason;
};

struct GroupResult {
  std::vector<Measurement> measurements;
  std::vector<Ratio> ratios;
  std::vector<Remark> skipped;
  std::vector<Remark> failed;  // a wrong result, or an error
  bool interrupted = false;    // before it was done: there are no measurements
};

/// Checks and times the cases of a group for which `wanted` holds, by their index in Group::variants. Ends early when
/// the program is interrupted.
GroupResult measure(const std::string& suite, const Group& group, const std::vector<bool>& wanted,
                    const Environment& environment, const Effort& effort);

}  // namespace bench
