// The command line.
#pragma once

#include <string>
#include <vector>

namespace bench {

struct Options {
  std::vector<std::string> suites;  // empty means all
  std::string filter;               // a regular expression; empty means all
  std::string json;                 // a file; empty means none
  double budget = 0;                // seconds per case; 0 means the default
  bool list = false;
  bool quick = false;
  bool help = false;
};

/// Fills `options`. What is wrong with the arguments, or "".
std::string parse(const std::vector<std::string>& arguments, Options& options);

extern const char usage_text[];

}  // namespace bench
