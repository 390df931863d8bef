// brontes::bench::main(): chooses a verb.
#include "verbs.hpp"

#include <exception>
#include <iostream>

namespace brontes::bench {
namespace {

int chosen(tool::Arguments arguments, const Contents& contents, const std::string& program) {
  const std::string verb = arguments.empty() ? "" : arguments.front();
  const auto rest = [&] { return tool::Arguments(arguments.begin() + 1, arguments.end()); };
  if (verb == "compare") return compare_verb(rest());
  if (verb == "report") return report_verb(rest());
  if (verb == "run") return run_verb(rest(), contents, program);
  return run_verb(arguments, contents, program);
}

}  // namespace

int misused(const std::string& problem, const std::string& help) {
  std::cerr << "brontes-bench: " << problem << "\n\n" << help;
  return exit_usage;
}

int main(int argc, const char* const* argv, const Contents& contents) noexcept {
  try {
    return chosen({argv + 1, argv + argc}, contents, argv[0]);
  } catch (const std::exception& e) {
    std::cerr << "brontes-bench: " << e.what() << "\n";
    return exit_failed;
  }
}

}  // namespace brontes::bench
