#include "repeat.hpp"

#include "interrupt.hpp"
#include "report_json.hpp"
#include "text.hpp"
#include "verbs.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <stdexcept>

extern char** environ;

namespace brontes::bench {
namespace {

// A folder for the files of the runs, gone in the end.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "brontes-bench-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a folder like " + pattern);
    path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

// Its exit status; what it prints to stdout is dropped.
int run_program(const std::string& program, const tool::Arguments& arguments) {
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int problem = posix_spawnp(&child, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) throw std::runtime_error("cannot run " + program + ": " + std::strerror(problem));
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw std::runtime_error("lost track of " + program);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::vector<Build> running_order(std::size_t repeat, bool two_builds) {
  std::vector<Build> order;
  for (std::size_t i = 0; i < repeat; ++i) {
    if (!two_builds) {
      order.push_back(Build::own);
    } else if (i % 2 == 0) {
      order.insert(order.end(), {Build::own, Build::other});
    } else {
      order.insert(order.end(), {Build::other, Build::own});
    }
  }
  return order;
}

Repeated run_repeatedly(const Repetition& repetition) {
  const Scratch scratch;
  Repeated out;
  const std::vector<Build> order = running_order(repetition.repeat, !repetition.other.empty());
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < order.size() && !tool::interrupted(); ++i) {
    const bool own = order[i] == Build::own;
    const std::string& program = own ? repetition.program : repetition.other;
    const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::string line = "run " + std::to_string(i + 1) + " of " + std::to_string(order.size());
    if (i != 0) {
      line += ", " + format_duration(elapsed) + " of about " +
              format_duration(elapsed / static_cast<double>(i) * static_cast<double>(order.size()));
    }
    std::cerr << folded(line + ": " + (own ? "this build" : program), 2) << std::endl;

    const std::string file = scratch.file(std::to_string(i) + ".json");
    tool::Arguments arguments = repetition.arguments;
    if (own) arguments.insert(arguments.end(), repetition.own_arguments.begin(), repetition.own_arguments.end());
    arguments.insert(arguments.end(), {"--json", file});
    const int status = run_program(program, arguments);
    if (status != exit_good && status != exit_failed && status != tool::exit_interrupted) {
      throw std::runtime_error(program + " ended with status " + std::to_string(status));
    }
    out.good = out.good && status != exit_failed;
    out.interrupted = out.interrupted || status == tool::exit_interrupted;
    // A run that was cut short has cases less, and would pass for a build without them.
    if (status == tool::exit_interrupted) break;
    (own ? out.own : out.other).push_back(read_report(file));
  }
  out.interrupted = out.interrupted || tool::interrupted();
  return out;
}

}  // namespace brontes::bench
