#include "commands.hpp"
#include "interrupt.hpp"
#include "json.hpp"
#include "terminal.hpp"

#include <brontes/tuning.hpp>

#include <cstdio>
#include <cstdlib>
#include <iostream>

namespace tool {
namespace {

std::string text_of(const brontes::MatmulShape& s) {
  return std::to_string(s.m) + " x " + std::to_string(s.k) + " x " + std::to_string(s.n) + " " +
         brontes::to_string(s.layout);
}

// On a terminal one line that is drawn over and over, else nothing.
class ProgressBar {
 public:
  void draw(const brontes::TuneProgress& progress) {
    if (!error_is_terminal()) return;
    constexpr std::size_t width = 30;
    const std::size_t filled = progress.total == 0 ? width : width * progress.done / progress.total;
    std::fprintf(stderr, "\r\033[K[%s%s] %zu/%zu  %3.0f s  %s", std::string(filled, '#').c_str(),
                 std::string(width - filled, '.').c_str(), progress.done, progress.total, progress.seconds,
                 text_of(progress.shape).c_str());
    std::fflush(stderr);
    drawn_ = true;
  }
  void clear() {
    if (drawn_) std::fputs("\r\033[K", stderr);
    drawn_ = false;
  }

 private:
  bool drawn_ = false;
};

void print(const brontes::TuneReport& report) {
  std::printf("\n%-24s %-10s %10s   %-14s %10s  %s\n", "product (M x K x N)", "default", "ms", "chosen", "ms", "gain");
  std::size_t changed = 0;
  for (const brontes::TunedShape& t : report.shapes) {
    std::printf("%-24s %-10s %10.3f   ", text_of(t.shape).c_str(), brontes::to_string(t.default_kernel),
                1e3 * t.default_seconds);
    if (t.variant == 0) {
      std::printf("the default\n");
      continue;
    }
    ++changed;
    const std::string chosen = std::string(brontes::to_string(t.kernel)) + " " + std::to_string(t.variant);
    std::printf("%-14s %10.3f  %s\n", chosen.c_str(), 1e3 * t.seconds,
                bold(std::to_string(t.gain).substr(0, 4) + "x").c_str());
  }
  std::printf("\n%zu of %zu products have a faster kernel than the default", changed, report.shapes.size());
  if (report.skipped != 0) std::printf("; %zu were not measured", report.skipped);
  std::printf(".\nMemory is reached fastest by: %s", brontes::to_string(report.access));
  if (report.access != report.access_now) std::printf(" (now: %s)", brontes::to_string(report.access_now));
  std::printf("\n");
}

void write_json(const brontes::TuneReport& report) {
  Json json(std::cout);
  json.begin(nullptr, '{');
  json.begin("shapes", '[');
  for (const brontes::TunedShape& t : report.shapes) {
    json.begin(nullptr, '{');
    json.put("m", t.shape.m);
    json.put("k", t.shape.k);
    json.put("n", t.shape.n);
    json.put("layout", brontes::to_string(t.shape.layout));
    json.put("default_kernel", brontes::to_string(t.default_kernel));
    json.put("default_seconds", t.default_seconds);
    json.put("kernel", brontes::to_string(t.kernel));
    json.put("variant", std::uint64_t{t.variant});
    json.put("seconds", t.seconds);
    json.put("gain", t.gain);
    json.end('}');
  }
  json.end(']');
  json.put("skipped", std::uint64_t{report.skipped});
  json.put("stopped", report.stopped);
  json.put("access", brontes::to_string(report.access));
  json.put("access_now", brontes::to_string(report.access_now));
  json.put("path", report.path);
  json.put("note", report.note);
  json.end('}');
  std::cout << '\n';
}

}  // namespace

const char* const tune_help =
    "Usage: brontes tune [--quick] [--seconds N] [--device WHICH] [--json]\n"
    "\n"
    "Measures which kernel multiplies matrices fastest on this device, over a grid of shapes, and remembers\n"
    "where something is clearly faster than the default. Programs use it from their next Device::open() on.\n"
    "Let the machine do nothing else meanwhile. Ctrl-C ends it early: what was measured by then is saved.\n"
    "\n"
    "  --quick         a few shapes only, in at most a minute\n"
    "  --seconds N     stop after this time, 300 unless told; what was measured by then counts\n"
    "  --device WHICH  an index, a part of the name, or a UUID; see `brontes devices`\n"
    "  --json          what was found, as JSON\n"
    "\n"
    "The file lies beside the pipeline cache, below $XDG_CACHE_HOME/brontes or ~/.cache/brontes. Delete it to\n"
    "have the defaults again. `brontes explain M K N` tells what counts for a product.\n";

int tune(const Arguments& arguments) {
  const Parsed parsed = parse(arguments, {{"--quick", "--json"}, {"--seconds", "--device"}, 0});
  if (!parsed.problem.empty()) return report_misuse("tune", parsed.problem);
  const bool quick = parsed.flag("--quick");

  brontes::TuneOptions options;
  options.shapes = brontes::default_tune_shapes(quick);
  options.seconds = quick ? 60 : 300;
  if (const std::string text = parsed.option("--seconds"); !text.empty()) {
    const auto seconds = parse_number(text);
    if (!seconds || *seconds == 0) return report_misuse("tune", "--seconds is a number above 0, not \"" + text + "\"");
    options.seconds = static_cast<double>(*seconds);
  }

  brontes::DeviceOptions device_options;
  device_options.select = parsed.option("--device");
  device_options.on_message = [](brontes::Severity severity, const std::string& text) {
    if (severity != brontes::Severity::info) std::fprintf(stderr, "%s\n", text.c_str());
  };
  const auto device = brontes::Device::open(device_options);
  if (!device) return report(device.error());
  const bool as_json = parsed.flag("--json");
  if (!as_json) print_device(device->info());
  std::fflush(stdout);

  watch_interrupts();
  ProgressBar bar;
  options.on_progress = [&](const brontes::TuneProgress& progress) {
    bar.draw(progress);
    return !interrupted();
  };
  const auto tuned = brontes::tune_matmul(*device, options);
  bar.clear();
  if (!tuned) return report(tuned.error());
  if (as_json) {
    write_json(*tuned);
  } else {
    print(*tuned);
  }
  if (!as_json && tuned->shapes.empty())
    std::printf("Building the kernels took all the time: give it more --seconds.\n");
  if (tuned->path.empty()) {
    std::fflush(stdout);
    std::fprintf(stderr, "brontes: not saved: %s\n", tuned->note.c_str());
    return failure;
  }
  if (!as_json) std::printf("Saved to %s\n", tuned->path.c_str());
  return tuned->stopped ? exit_interrupted : success;
}

}  // namespace tool
