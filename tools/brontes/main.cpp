#include "commands.hpp"

#include <brontes/version.hpp>

#include <algorithm>
#include <cstdio>
#include <string>

namespace tool {

const char* const version_help =
    "Usage: brontes version [--json]\n"
    "\n"
    "Prints the version of the library.\n";

int version(const Arguments& arguments) {
  const Parsed parsed = parse(arguments, {{"--json"}, {}, 0});
  if (!parsed.problem.empty()) return report_misuse("version", parsed.problem);
  std::printf(parsed.flag("--json") ? "{\"version\": \"%s\"}\n" : "brontes %s\n", brontes::version());
  return success;
}

int report_misuse(const std::string& command, const std::string& problem) {
  std::fprintf(stderr, "brontes %s: %s\nTry: brontes %s --help\n", command.c_str(), problem.c_str(), command.c_str());
  return misuse;
}

namespace {

struct Command {
  const char* name;
  const char* summary;
  int (*run)(const Arguments&);
  const char* help;
};

const Command commands[] = {
    {"bench", "run the benchmarks (brontes-bench)", bench, bench_help},
    {"cache", "show or clear the files kept for a device", cache, cache_help},
    {"check", "run a batch file and compare each dispatch with the CPU", check, check_help},
    {"demo", "run two small batches and compare them with the CPU", demo, demo_help},
    {"devices", "list the Vulkan devices and say which would be used", devices, devices_help},
    {"explain", "say which kernel does a matrix product, and why", explain, explain_help},
    {"info", "say what the library makes of a device: limits, cache, tuning", info, info_help},
    {"kernels", "list every kernel of the library", kernels, kernels_help},
    {"plan", "print what a batch file would run", plan, plan_help},
    {"profile", "say what each dispatch of a batch file takes", profile, profile_help},
    {"run", "run a batch file", run, run_help},
    {"trace", "write what host and device do when, for Perfetto", trace, trace_help},
    {"tune", "measure which kernels do matrix products fastest here, and remember it", tune, tune_help},
    {"version", "print the version of the library", version, version_help},
};

void print_usage(std::FILE* to) {
  std::fprintf(to, "Usage: brontes COMMAND [ARGUMENT...]\n\n");
  for (const Command& c : commands) std::fprintf(to, "  %-8s  %s\n", c.name, c.summary);
  std::fprintf(to,
               "\n`brontes COMMAND --help` tells more. BRONTES_DEVICE chooses a device by index, part of the name or "
               "UUID.\n"
               "Exit status: 0 it worked, 1 it did not, 2 wrong arguments.\n");
}

bool asks_for_help(const std::string& argument) { return argument == "--help" || argument == "-h"; }

int dispatch(Arguments arguments) {
  if (arguments.empty()) {
    print_usage(stderr);
    return misuse;
  }
  std::string name = arguments.front();
  arguments.erase(arguments.begin());
  if (asks_for_help(name) || (name == "help" && arguments.empty())) {
    print_usage(stdout);
    return success;
  }
  if (name == "help") {
    name = arguments.front();
    arguments = {"--help"};
  }
  if (name == "--version") name = "version";
  for (const Command& c : commands) {
    if (name != c.name) continue;
    // What is behind -- is for somebody else.
    const auto own = std::find(arguments.begin(), arguments.end(), "--");
    if (std::any_of(arguments.begin(), own, asks_for_help)) {
      std::fputs(c.help, stdout);
      return success;
    }
    return c.run(arguments);
  }
  std::fprintf(stderr, "brontes: there is no command \"%s\"\n\n", name.c_str());
  print_usage(stderr);
  return misuse;
}

}  // namespace
}  // namespace tool

int main(int argc, char** argv) {
  const int status = tool::dispatch(tool::Arguments(argv + std::min(argc, 1), argv + argc));
  if (std::fflush(stdout) != 0 && status == tool::success) {
    std::perror("brontes: standard output");
    return tool::failure;
  }
  return status;
}
