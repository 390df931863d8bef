#include "options.hpp"

#include "arguments.hpp"

#include <cstddef>
#include <optional>
#include <regex>
#include <stdexcept>

namespace bench {

const char usage_text[] =
    "Usage: brontes-bench [OPTION...] [SUITE...]\n"
    "\n"
    "Times Brontes on the Vulkan device that BRONTES_DEVICE names, or the best one. Results are checked\n"
    "before they are timed. Comparisons are ratios of this very run. Without a SUITE (chain, ops, ...) it runs all.\n"
    "\n"
    "  --filter REGEX    only the cases whose names match, e.g. 'chain/.*/1000/'\n"
    "  --json FILE       also write everything to FILE; - is stdout, and the table then goes to stderr\n"
    "  --budget SECONDS  roughly how long one case may take; slow ones get fewer epochs (default 4)\n"
    "  --quick           small sizes and few epochs: does it work, not how fast\n"
    "  --list            print the names of the cases and stop\n"
    "  --help            print this and stop\n"
    "\n"
    "Ctrl-C ends the run after the current iteration and keeps what is done.\n"
    "\n"
    "Exit status: 0; 1 when a case failed, gave a wrong result, or no device was found; 2 for bad arguments; 130 when\n"
    "interrupted.\n";

std::string parse(const std::vector<std::string>& arguments, Options& options) {
  const tool::Parsed parsed =
      tool::parse(arguments, {{"--list", "--quick", "--help", "-h"}, {"--filter", "--json", "--budget"}, std::nullopt});
  if (!parsed.problem.empty()) return parsed.problem;
  for (const auto& [name, value] : parsed.options) {
    if (value.empty()) return name + " needs a value that is not empty";
  }
  options.suites = parsed.positional;
  options.list = parsed.flag("--list");
  options.quick = parsed.flag("--quick");
  options.help = parsed.flag("--help") || parsed.flag("-h");
  options.json = parsed.option("--json");
  options.filter = parsed.option("--filter");
  try {
    std::regex(options.filter, std::regex::ECMAScript);
  } catch (const std::regex_error& e) {
    return "--filter: not a regular expression: " + options.filter + ": " + e.what();
  }
  if (const std::string budget = parsed.option("--budget"); !budget.empty()) {
    std::size_t used = 0;
    try {
      options.budget = std::stod(budget, &used);
    } catch (const std::logic_error&) {
      used = 0;
    }
    if (used != budget.size() || !(options.budget > 0)) return "--budget: not a number of seconds: " + budget;
  }
  return {};
}

}  // namespace bench
