#include "run_program.hpp"

#include "commands.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#if defined(_WIN32)
#  include <process.h>
#else
#  include <unistd.h>
#endif

namespace tool {
namespace {

std::string found(const std::vector<std::string>& places) {
  std::error_code problem;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", problem);
  if (!problem) {
    for (const std::string& place : places) {
      const std::filesystem::path there = self.parent_path() / place;
      if (std::filesystem::is_regular_file(there, problem)) return there.string();
    }
  }
  return std::filesystem::path(places.front()).filename().string();
}

}  // namespace

int become(const char* command, const std::vector<std::string>& places, const Arguments& arguments) {
  std::string program = found(places);
  std::vector<std::string> words = arguments;
  std::vector<char*> argv{program.data()};
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::fflush(stdout);
#if defined(_WIN32)
  _execvp(program.c_str(), argv.data());
#else
  execvp(program.c_str(), argv.data());
#endif
  std::fprintf(stderr, "brontes %s: %s: %s\n", command, program.c_str(), std::strerror(errno));
  return failure;
}

}  // namespace tool
