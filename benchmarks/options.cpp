#include "options.hpp"

#include <cstddef>
#include <regex>
#include <stdexcept>

namespace bench {

const char usage_text[] =
    "Usage: brontes-bench [OPTION...]\n"
    "\n"
    "Times Brontes on the Vulkan device that BRONTES_DEVICE names, or the best one. Results are checked\n"
    "before they are timed. Comparisons are ratios of this very run.\n"
    "\n"
    "  --filter REGEX    only the cases whose names match, e.g. 'chain/.*/1000/'\n"
    "  --json FILE       also write everything to FILE\n"
    "  --budget SECONDS  roughly how long one case may take; slow ones get fewer epochs (default 4)\n"
    "  --quick           small sizes and few epochs: does it work, not how fast\n"
    "  --list            print the names of the cases and stop\n"
    "  --help            print this and stop\n"
    "\n"
    "Exit status: 0; 1 when a case failed, gave a wrong result, or no device was found; 2 for bad arguments.\n";

std::string parse(const std::vector<std::string>& arguments, Options& options) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i];
    std::string value;
    bool attached = false;
    if (const std::size_t equals = name.find('='); name.rfind("--", 0) == 0 && equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
      attached = true;
    }

    bool* flag = name == "--list"                   ? &options.list
                 : name == "--quick"                ? &options.quick
                 : name == "--help" || name == "-h" ? &options.help
                                                    : nullptr;
    if (flag != nullptr) {
      if (attached) return name + " takes no value";
      *flag = true;
      continue;
    }

    if (name != "--filter" && name != "--json" && name != "--budget") return "unknown argument: " + arguments[i];
    if (!attached) {
      if (i + 1 == arguments.size()) return name + " needs a value";
      value = arguments[++i];
    }
    if (value.empty()) return name + " needs a value that is not empty";
    if (name == "--json") options.json = value;
    if (name == "--filter") {
      try {
        std::regex(value, std::regex::ECMAScript);
      } catch (const std::regex_error& e) {
        return "--filter: not a regular expression: " + value + ": " + e.what();
      }
      options.filter = value;
    }
    if (name == "--budget") {
      std::size_t used = 0;
      try {
        options.budget = std::stod(value, &used);
      } catch (const std::logic_error&) {
        used = 0;
      }
      if (used != value.size() || !(options.budget > 0)) return "--budget: not a number of seconds: " + value;
    }
  }
  return {};
}

}  // namespace bench
