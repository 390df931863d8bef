#include "session.hpp"

#include "interrupt.hpp"
#include "limits.hpp"
#include "machine.hpp"
#include "progress.hpp"
#include "text.hpp"
#include "util/hex.hpp"

#include <brontes_bench_commit.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <regex>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace brontes::bench {
namespace {

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

// What is measured: as told, or as a CI says, or what this was built from.
std::string commit_of(const Session& session) {
  if (!session.commit.empty()) return session.commit;
  for (const char* name : {"GITHUB_SHA", "CI_COMMIT_SHA"}) {
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return value;
  }
  return built_commit;
}

void describe(const DeviceInfo& info, Provenance& p) {
  p.device.name = info.name;
  p.device.type = to_string(info.type);
  p.device.cpu_driver = info.type == DeviceType::cpu;
  p.device.driver = info.driver;
  p.device.driver_version = info.driver_version;
  p.device.vendor_id = info.vendor_id;
  p.device.device_id = info.device_id;
  p.device.uuid = util::hex(info.uuid);
  p.device.api_version = info.api_version;
  p.device.subgroup_size = info.subgroup_size;
  p.device.mapped_memory = info.mapped_memory;
}

std::vector<std::string> warnings_of(const Provenance& p) {
  std::vector<std::string> warnings;
  auto warn = [&](bool condition, const char* text) {
    if (condition) warnings.emplace_back(text);
  };
  warn(p.device.cpu_driver, "this is a CPU driver: ratios mean something, times say nothing about any GPU");
  warn(p.build.type != "release" || p.build.assertions, "not a release build: times are too long");
  warn(p.build.validation, "validation is on: times are far too long");
  warn(p.quick, "--quick: too few epochs to compare times");
  warn(p.machine.load > 0.3 * p.machine.cpus, "other work was running at the start: treat times as provisional");
  return warnings;
}

Provenance provenance_of(const Device& device, const std::vector<Peer>& peers, const Session& session) {
  Provenance p;
  p.brontes = version();
  p.commit = commit_of(session);
  p.date = now_utc();
  describe(device.info(), p);
  p.build.type = BRONTES_BUILD_TYPE;
  p.build.compiler = BRONTES_COMPILER;
#ifndef NDEBUG
  p.build.assertions = true;
#endif
  p.build.validation = validation_wanted() || environment_says("VK_INSTANCE_LAYERS", "validation") ||
                       environment_says("VK_LOADER_LAYERS_ENABLE", "validation");
  p.quick = session.selection.quick;
  p.filter = session.selection.filter;
  p.machine.cpu = cpu_name();
  p.machine.cpus = cpu_count();
  p.machine.simd = to_string(simd());
  p.machine.load = load_average();
  for (const Peer& peer : peers) p.peers.push_back({peer.name, peer.unavailable, peer.facts});
  p.warnings = warnings_of(p);
  return p;
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

void run_groups(const std::vector<SelectedGroup>& groups, const Environment& environment, const Effort& effort,
                std::ostream& text, SessionResult& result) {
  Progress progress(groups.size());
  std::string suite;
  std::vector<Ratio> ratios;
  auto end_suite = [&] {
    print_ratios(text, suite, ratios);
    ratios.clear();
  };
  for (const SelectedGroup& selected : groups) {
    if (tool::interrupted()) break;
    progress.next(selected.group.name);
    GroupResult done = measure(selected.suite, selected.group, selected.wanted, environment, effort);
    progress.clear();
    if (done.interrupted) break;
    if (selected.suite != suite) {
      end_suite();
      suite = selected.suite;
      print_suite(text, suite);
    }
    print_cases(text, done.cases, result.report.provenance.limits);
    print_remarks(text, done.skipped, "skipped");
    print_remarks(text, done.failed, "FAILED");
    append(ratios, done.ratios);
    append(result.report.cases, done.cases);
    append(result.report.ratios, done.ratios);
    append(result.report.skipped, done.skipped);
    append(result.report.failed, done.failed);
  }
  end_suite();
}

}  // namespace

std::vector<std::string> SelectedGroup::names() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) names.push_back(group.name + "/" + group.variants[i]);
  }
  return names;
}

std::vector<SelectedGroup> select(const std::vector<Suite>& suites, const Selection& selection) {
  for (const std::string& name : selection.suites) {
    const auto same = [&](const Suite& suite) { return suite.name == name; };
    if (std::none_of(suites.begin(), suites.end(), same)) throw std::invalid_argument("no suite is called " + name);
  }
  const std::regex filter(selection.filter, std::regex::ECMAScript | std::regex::optimize);
  std::vector<SelectedGroup> selected;
  for (const Suite& suite : suites) {
    const auto& names = selection.suites;
    const bool named = std::find(names.begin(), names.end(), suite.name) != names.end();
    if (names.empty() ? suite.on_request : !named) continue;
    for (const Group& group : suite.groups) {
      if (selection.quick && !group.quick) continue;
      std::vector<bool> wanted;
      for (const std::string& variant : group.variants) {
        wanted.push_back(std::regex_search(group.name + "/" + variant, filter));
      }
      if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) continue;
      selected.push_back({suite.name, group, std::move(wanted)});
    }
  }
  if (selected.empty()) {
    throw std::invalid_argument("no case matches " + selection.filter +
                                (selection.quick ? " among the quick ones" : "") + "; --list prints their names");
  }
  return selected;
}

SessionResult run_session(const Contents& contents, const std::vector<SelectedGroup>& groups, const Session& session,
                          std::ostream& text) {
  // What Mesa compiled in an earlier run would make the cold cases warm.
  setenv("MESA_SHADER_CACHE_DISABLE", "true", 0);
  const std::vector<Peer> peers = contents.peers ? contents.peers() : std::vector<Peer>{};
  std::atomic<int> complaints{0};
  DeviceOptions options;
  options.validation = validation_wanted() ? Toggle::on : Toggle::off;
  options.on_message = [&](Severity severity, const std::string& message) {
    if (severity == Severity::info) return;
    ++complaints;
    std::cerr << message << "\n";
  };
  // Leaves nothing behind, and pipelines are made before anything is timed.
  options.pipeline_cache.enabled = false;
  const Device device = must(Device::open(options));

  SessionResult result;
  result.report.provenance = provenance_of(device, peers, session);
  result.report.provenance.limits = measure_machine(device);
  print_header(text, result.report.provenance);
  run_groups(groups, {device}, session.effort, text, result);
  result.interrupted = tool::interrupted();
  result.report.provenance.complete = !result.interrupted;
  if (!result.report.failed.empty()) std::cerr << "brontes-bench: some cases failed\n";
  if (complaints != 0) std::cerr << "brontes-bench: " << complaints << " validation messages\n";
  result.good = result.report.failed.empty() && complaints == 0;
  return result;
}

void count_session(const std::vector<SelectedGroup>& groups) {
  DeviceOptions options;
  options.pipeline_cache.enabled = false;
  const Device device = must(Device::open(options));
  for (const SelectedGroup& selected : groups) count_instructions(selected.group, selected.wanted, {device});
}

void must(const Error& error) {
  if (error) throw Failure(std::string(to_string(error.code)) + ": " + error.message);
}

}  // namespace brontes::bench
