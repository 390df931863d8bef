#include "on_batch.hpp"

#include <brontes/profile.hpp>

#include <cstdlib>

namespace tool {
namespace {

// Above 0; 0 where the option is not given, and -1 where it is something else.
double rate(const Parsed& parsed, const char* option) {
  const std::string text = parsed.option(option);
  if (text.empty()) return 0;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return *end == '\0' && value > 0 && value < 1e12 ? value * 1e9 : -1;
}

}  // namespace

const char* const profile_help =
    "Usage: brontes profile FILE [--runs N] [--all] [--gflops G --gbytes B | --no-limits] [--json] [--device WHICH]\n"
    "\n"
    "Runs a batch file with a timestamp behind each dispatch and prints a table: op, kernel, count, time, share\n"
    "of the run, GFLOP/s of matrix products or GB/s of the rest, and how close that comes to the limit.\n"
    "\n"
    "  --runs N        so many times, 5 unless told; times are the medians\n"
    "  --all           a line per dispatch, in order; otherwise one per kind, the longest first\n"
    "  --gflops G      the limit of arithmetic, in GFLOP/s; measured unless told\n"
    "  --gbytes B      the limit of memory, in GB/s; measured unless told\n"
    "  --no-limits     neither\n"
    "  --json          the same as JSON\n"
    "  --device WHICH  an index, a part of the name, or a UUID; see `brontes devices`\n";

int profile(const Arguments& arguments) {
  const Parsed parsed =
      parse(arguments, {{"--all", "--no-limits", "--json"}, {"--runs", "--gflops", "--gbytes", "--device"}, 1});
  const std::uint64_t runs = positive(parsed, "--runs", 5);
  if (runs == 0 || runs > 100000) return report_misuse("profile", "--runs is a number from 1 to 100000");
  const double flops = rate(parsed, "--gflops"), bytes = rate(parsed, "--gbytes");
  if (flops < 0 || bytes < 0) return report_misuse("profile", "--gflops and --gbytes are numbers above 0");
  return on_batch("profile", parsed, [&](const brontes::Device& device, BatchFile& file) -> int {
    brontes::ProfileOptions options;
    options.runs = static_cast<std::uint32_t>(runs);
    if (!parsed.flag("--no-limits") && (flops == 0 || bytes == 0)) {
      const auto measured = brontes::measure_limits(device);
      if (!measured) return report(measured.error());
      options.limits = *measured;
    }
    if (flops > 0) options.limits.flops_per_second = flops;
    if (bytes > 0) options.limits.bytes_per_second = bytes;
    auto program = file.batch.compile();
    if (!program) return report(program.error());
    // The first run of a pipeline may be slower than any other.
    if (brontes::Error e = program->run()) return report(e);
    const auto measured = program->profile(options);
    if (!measured) return report(measured.error());
    const brontes::Profile shown = parsed.flag("--all") ? *measured : measured->merged();
    if (!parsed.flag("--json")) print_device(device.info());
    std::fputs((parsed.flag("--json") ? shown.json() : "\n" + shown.text()).c_str(), stdout);
    return success;
  });
}

}  // namespace tool
