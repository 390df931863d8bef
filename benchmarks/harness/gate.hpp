// Two reports, old and new: what has become worse. Pure functions.
#pragma once

#include "report.hpp"
#include "statistics.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace brontes::bench {

struct CountChange {
  std::string name;
  std::uint64_t old = 0, now = 0;

  bool grew() const { return now > old; }
};

struct CaseChange {
  std::string name;
  std::vector<CountChange> counts;  // that differ
  std::vector<std::string> lines;   // of the dump that differ, where counts do: "- old", "+ new"
  double old_time = 0, new_time = 0;
  double of_limit = 0;  // the new time's share of the limit; 0 where not known
  Verdict time;
  double instructions = 1;  // new over old, by hardware counters; 1 where not known

  bool counts_grew() const;
  bool regressed() const { return counts_grew() || time.change == Change::slower; }
};

struct Difference {
  std::vector<CaseChange> cases;      // in both
  std::vector<std::string> only_old;  // cases that are gone
  std::vector<std::string> only_new;
  std::vector<Remark> broken;      // they failed, and had not before
  std::vector<std::string> notes;  // what stands in the way of a comparison
  double usual_noise = 0;

  bool regressed() const;
  std::size_t count(Change change) const;
  /// The cases of which more runs would tell whether they have become slower or faster.
  std::vector<std::string> unclear() const;
};

/// Instructions that valgrind counted are the same again for the same program, but not to the last one: addresses
/// decide how long a walk through a hash table is, and other threads how often a wait wakes up. What grew by less than
/// this fraction, or by fewer instructions than that, is no growth.
inline constexpr double instruction_tolerance = 0.02;
inline constexpr double instruction_slack = 500;

/// `threshold`: a fraction below which times never count as different.
Difference difference_of(const Report& old, const Report& now, double threshold);

/// The lines that only one of two texts has, in order, with "- " or "+ " before them.
std::vector<std::string> changed_lines(const std::string& old, const std::string& now);

}  // namespace brontes::bench
