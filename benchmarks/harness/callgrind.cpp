#include "callgrind.hpp"

#include "interrupt.hpp"
#include "process.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#if BRONTES_HAVE_VALGRIND
#  include <valgrind/callgrind.h>
#endif

namespace brontes::bench {

#if BRONTES_HAVE_VALGRIND

bool under_valgrind() noexcept { return RUNNING_ON_VALGRIND != 0; }

void count_under_valgrind(const std::string& name, const std::function<void()>& run) {
  CALLGRIND_ZERO_STATS;
  CALLGRIND_TOGGLE_COLLECT;  // of this thread: what others do does not count
  run();
  CALLGRIND_TOGGLE_COLLECT;
  CALLGRIND_DUMP_STATS_AT(name.c_str());
}

#else

bool under_valgrind() noexcept { return false; }
void count_under_valgrind(const std::string&, const std::function<void()>& run) { run(); }

#endif

namespace {

// A file of callgrind: which request of the program wrote it, and what it counted since the one before.
void add_dump(const std::filesystem::path& path, InstructionCounts& counts) {
  const std::string trigger = "desc: Trigger: Client Request: ";
  std::ifstream file(path);
  std::string name;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(trigger, 0) == 0) name = line.substr(trigger.size());
    if (line.rfind("summary: ", 0) != 0 || name.empty()) continue;
    const std::uint64_t count = std::stoull(line.substr(9));
    const auto [at, is_new] = counts.emplace(name, count);
    if (!is_new) at->second = std::min(at->second, count);
    return;
  }
}

}  // namespace

InstructionCounts run_under_valgrind(const std::string& program, const std::vector<std::string>& arguments) {
#if !BRONTES_HAVE_VALGRIND
  throw std::runtime_error("built without the headers of valgrind");
#endif
  const Scratch scratch;
  std::vector<std::string> words{"--tool=callgrind", "--collect-atstart=no", "--quiet",
                                 "--callgrind-out-file=" + scratch.file("dump"), program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const int status = run_program("valgrind", words);
  if (status != 0 && status != tool::exit_interrupted) {
    throw std::runtime_error("valgrind ended with status " + std::to_string(status));
  }
  InstructionCounts counts;
  for (const auto& entry : std::filesystem::directory_iterator(scratch.path())) add_dump(entry.path(), counts);
  return counts;
}

}  // namespace brontes::bench
