// Several runs, each in a process of its own, of one build or of two in turn.
#pragma once

#include "arguments.hpp"
#include "report.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace brontes::bench {

enum class Build { own, other };

/// Who runs when: own other other own own other ..., so that a machine that slows down or speeds up favours none. With
/// one build alone, just that.
std::vector<Build> running_order(std::size_t repeat, bool two_builds);

struct Repetition {
  std::string program;        // this one
  std::string other;          // the program to compare with, or ""
  std::size_t repeat = 1;     // of each
  std::string filter;         // a regular expression; empty means all
  tool::Arguments arguments;  // for both
  tool::Arguments own_arguments;
};

/// A regular expression that these names match, and no others.
std::string filter_of(const std::vector<std::string>& names);

struct Repeated {
  std::vector<Report> own, other;  // in the order they ran
  bool good = true;
  bool interrupted = false;
};

/// Runs them and says on stderr how far it is. Throws std::runtime_error when a program cannot be run or writes no
/// report. When interrupted it keeps what is done.
Repeated run_repeatedly(const Repetition& repetition);

}  // namespace brontes::bench
