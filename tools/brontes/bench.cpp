#include "commands.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#if defined(_WIN32)
#  include <process.h>
#else
#  include <unistd.h>
#endif

namespace tool {
namespace {

// The one beside this program, or the one that the shell would find.
std::string bench_program() {
  std::error_code problem;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", problem);
  if (!problem) {
    for (const char* place : {"brontes-bench", "../benchmarks/brontes-bench"}) {
      const std::filesystem::path beside = self.parent_path() / place;
      if (std::filesystem::exists(beside, problem)) return beside.string();
    }
  }
  return "brontes-bench";
}

}  // namespace

const char* const bench_help =
    "Usage: brontes bench [ARGUMENT...]\n"
    "\n"
    "Runs brontes-bench, the one beside this program or else the one in PATH, with the same arguments.\n"
    "`brontes bench -- --help` shows what it takes.\n";

int bench(const Arguments& arguments) {
  std::string program = bench_program();
  std::vector<std::string> words = arguments;
  if (!words.empty() && words[0] == "--") words.erase(words.begin());
  std::vector<char*> argv{program.data()};
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::fflush(stdout);
#if defined(_WIN32)
  _execvp(program.c_str(), argv.data());
#else
  execvp(program.c_str(), argv.data());
#endif
  std::fprintf(stderr, "brontes bench: %s: %s\n", program.c_str(), std::strerror(errno));
  return failure;
}

}  // namespace tool
