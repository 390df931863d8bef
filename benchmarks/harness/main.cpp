// brontes-bench: see options.cpp for its arguments and docs/benchmarking.md for the rest.
#include "blas.hpp"
#include "interrupt.hpp"
#include "machine.hpp"
#include "measure.hpp"
#include "options.hpp"
#include "output_file.hpp"
#include "report.hpp"
#include "suite.hpp"
#include "support.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <iostream>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace bench {
namespace {

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;

// A group, and which of its variants are to run.
struct Selected {
  Group group;
  std::vector<bool> wanted;
};

struct SelectedSuite {
  std::string name;
  std::vector<Selected> groups;
};

std::vector<Suite> all_suites() {
  return {chain_suite(),  dispatch_suite(),       elementwise_suite(),  reduce_suite(), rows_suite(), views_suite(),
          matmul_suite(), matmul_batched_suite(), matmul_cache_suite(), ops_suite(),    cold_suite()};
}

// The first of the names that is no suite, or "".
std::string unknown_suite(const std::vector<std::string>& names) {
  const std::vector<Suite> suites = all_suites();
  for (const std::string& name : names) {
    const auto same = [&](const Suite& suite) { return suite.name == name; };
    if (std::none_of(suites.begin(), suites.end(), same)) return name;
  }
  return {};
}

std::vector<SelectedSuite> select(const Options& options) {
  const std::regex filter(options.filter, std::regex::ECMAScript | std::regex::optimize);
  std::vector<SelectedSuite> suites;
  for (Suite& suite : all_suites()) {
    const auto& names = options.suites;
    if (!names.empty() && std::find(names.begin(), names.end(), suite.name) == names.end()) continue;
    SelectedSuite selected{suite.name, {}};
    for (Group& group : suite.groups) {
      if (options.quick && !group.quick) continue;
      std::vector<bool> wanted;
      for (const std::string& variant : group.variants) {
        wanted.push_back(std::regex_search(group.name + "/" + variant, filter));
      }
      if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) continue;
      selected.groups.push_back({std::move(group), std::move(wanted)});
    }
    if (!selected.groups.empty()) suites.push_back(std::move(selected));
  }
  return suites;
}

void list(const std::vector<SelectedSuite>& suites) {
  for (const SelectedSuite& suite : suites) {
    for (const Selected& selected : suite.groups) {
      for (std::size_t i = 0; i < selected.wanted.size(); ++i) {
        if (selected.wanted[i]) std::cout << selected.group.name << "/" << selected.group.variants[i] << "\n";
      }
    }
  }
}

bool environment_says(const char* name, std::string_view part) {
  const char* value = std::getenv(name);
  return value != nullptr && std::string_view(value).find(part) != std::string_view::npos;
}

// Off unless asked for by name: a build whose default is on should still be measured without.
bool validation_wanted() { return environment_says("BRONTES_VALIDATION", "1"); }

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  char text[32] = "";
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

Provenance provenance_of(const brontes::Device& device, const Blas& blas, const Options& options) {
  Provenance p;
  p.date = now_utc();
  p.device = device.info();
  p.build_type = BRONTES_BUILD_TYPE;
  p.compiler = BRONTES_COMPILER;
#ifndef NDEBUG
  p.assertions = true;
#endif
  p.validation = validation_wanted() || environment_says("VK_INSTANCE_LAYERS", "validation") ||
                 environment_says("VK_LOADER_LAYERS_ENABLE", "validation");
  p.quick = options.quick;
  p.filter = options.filter;
  p.cpu = cpu_name();
  p.cpus = cpu_count();
  p.simd = to_string(simd());
  p.load = load_average();
  p.openblas_unavailable = blas.unavailable();
  p.openblas_core = blas.core();
  p.openblas_config = blas.config();
  p.openblas_threads = blas.threads();

  if (p.device.type == brontes::DeviceType::cpu) {
    p.warnings.push_back("this is a CPU driver: ratios mean something, times say nothing about any GPU");
  }
  if (p.build_type != "release" || p.assertions) p.warnings.push_back("not a release build: times are too long");
  if (p.validation) p.warnings.push_back("validation is on: times are far too long");
  if (p.quick) p.warnings.push_back("--quick: too few epochs to compare times");
  if (p.load > 0.3 * p.cpus) p.warnings.push_back("other work was running at the start: treat times as provisional");
  return p;
}

// Runs everything; whether all of it went well.
bool run(const std::vector<SelectedSuite>& suites, const Environment& environment, const Effort& effort,
         std::ostream& text, std::vector<GroupResult>& results) {
  bool good = true;
  for (const SelectedSuite& suite : suites) {
    if (tool::interrupted()) break;
    print_suite(text, suite.name);
    std::vector<Ratio> ratios;
    for (const Selected& selected : suite.groups) {
      GroupResult result = measure(suite.name, selected.group, selected.wanted, environment, effort);
      if (result.interrupted) break;
      print_group(text, result);
      good = good && result.failed.empty();
      ratios.insert(ratios.end(), result.ratios.begin(), result.ratios.end());
      results.push_back(std::move(result));
    }
    print_ratios(text, suite.name, ratios);
  }
  return good;
}

int bench_main(const std::vector<std::string>& arguments) {
  Options options;
  const std::string wrong = parse(arguments, options);
  if (!wrong.empty()) {
    std::cerr << "brontes-bench: " << wrong << "\n\n" << usage_text;
    return exit_usage;
  }
  if (options.help) {
    std::cout << usage_text;
    return 0;
  }
  if (const std::string name = unknown_suite(options.suites); !name.empty()) {
    std::cerr << "brontes-bench: no suite is called " << name << "\n\n" << usage_text;
    return exit_usage;
  }
  const std::vector<SelectedSuite> suites = select(options);
  if (suites.empty()) {
    std::cerr << "brontes-bench: no case matches " << options.filter << (options.quick ? " among the quick ones" : "")
              << "; --list prints their names\n";
    return exit_usage;
  }
  if (options.list) {
    list(suites);
    return 0;
  }

  // Before the work, so that a bad path does not cost a long run.
  tool::OutputFile json;
  if (!options.json.empty() && !json.open(options.json)) {
    std::cerr << "brontes-bench: cannot write " << options.json << "\n";
    return exit_usage;
  }
  // The table makes way for JSON on stdout.
  std::ostream& text = options.json == "-" ? std::cerr : std::cout;
  tool::watch_interrupts();

  // What Mesa compiled in an earlier run would make the cold cases warm.
  setenv("MESA_SHADER_CACHE_DISABLE", "true", 0);
  const Blas blas;
  std::atomic<int> complaints{0};
  brontes::DeviceOptions device_options;
  device_options.validation = validation_wanted() ? brontes::Toggle::on : brontes::Toggle::off;
  device_options.on_message = [&](brontes::Severity severity, const std::string& message) {
    if (severity == brontes::Severity::info) return;
    ++complaints;
    std::cerr << message << "\n";
  };
  // Leaves nothing behind, and pipelines are made before anything is timed.
  device_options.pipeline_cache.enabled = false;
  auto device = brontes::Device::open(device_options);
  if (!device) {
    std::cerr << "brontes-bench: " << device.error().message << "\n";
    return exit_failed;
  }

  Provenance provenance = provenance_of(*device, blas, options);
  print_header(text, provenance);
  Effort effort;
  if (options.quick) effort = {3, 1, 0.002, 0.2};
  if (options.budget > 0) effort.budget = options.budget;
  std::vector<GroupResult> results;
  const bool good = run(suites, {*device, blas}, effort, text, results);
  provenance.interrupted = tool::interrupted();

  if (json.is_open()) {
    write_json(json.stream(), provenance, results);
    if (!json.commit()) {
      std::cerr << "brontes-bench: could not write all of " << options.json << "\n";
      return exit_failed;
    }
  }
  if (provenance.interrupted) {
    std::cerr << "brontes-bench: interrupted; " << results.size() << " groups of cases are done"
              << (json.is_open() ? " and saved\n" : "\n");
    return tool::exit_interrupted;
  }
  if (!good) std::cerr << "brontes-bench: some cases failed\n";
  if (complaints != 0) std::cerr << "brontes-bench: " << complaints << " validation messages\n";
  return good && complaints == 0 ? 0 : exit_failed;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  try {
    return bench::bench_main({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    std::cerr << "brontes-bench: " << e.what() << "\n";
    return bench::exit_failed;
  }
}
