#include "commands.hpp"
#include "run_program.hpp"

namespace tool {

const char* const bench_help =
    "Usage: brontes bench [ARGUMENT...]\n"
    "\n"
    "Runs brontes-bench, the one beside this program or else the one in PATH, with the same arguments.\n"
    "`brontes bench -- --help` shows what it takes.\n";

int bench(const Arguments& arguments) {
  Arguments words = arguments;
  if (!words.empty() && words[0] == "--") words.erase(words.begin());
  return become("bench", {"brontes-bench", "../benchmarks/brontes-bench"}, words);
}

}  // namespace tool
