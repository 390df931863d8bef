// What other programs read. docs/benchmarking.md says where each format is described.
#include "formats.hpp"
#include "statistics.hpp"

#include <nanobench.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <string>

namespace brontes::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr double nanoseconds = 1e9;

void write(std::ostream& out, const Json& json) {
  out << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

double largest_median(const CaseResult& c) {
  double largest = 0;
  for (const Run& run : c.runs) largest = std::max(largest, run.median);
  return largest;
}

double smallest_median(const CaseResult& c) {
  double smallest = c.runs.front().median;
  for (const Run& run : c.runs) smallest = std::min(smallest, run.median);
  return smallest;
}

// nanobench's own results, for its templates.
std::vector<ankerl::nanobench::Result> nanobench_results(const Report& report) {
  using Clock = ankerl::nanobench::Clock;
  std::vector<ankerl::nanobench::Result> results;
  for (const CaseResult& c : report.cases) {
    ankerl::nanobench::Config config;
    config.mBenchmarkName = c.name;
    config.mBenchmarkTitle = c.suite;
    config.mUnit = c.item;
    config.mBatch = c.items;
    ankerl::nanobench::Result& result = results.emplace_back(config);
    const ankerl::nanobench::detail::PerformanceCounters none;
    for (const Run& run : c.runs) {
      const std::uint64_t iterations = std::max<std::uint64_t>(1, run.iterations);
      for (const double sample : run.samples) {
        const std::chrono::duration<double> elapsed(sample * static_cast<double>(iterations));
        result.add(std::chrono::duration_cast<Clock::duration>(elapsed), iterations, none);
      }
    }
  }
  return results;
}

}  // namespace

void write_google(std::ostream& out, const Report& report) {
  const Provenance& p = report.provenance;
  Json json;
  json["context"] = {{"date", p.date},
                     {"executable", "brontes-bench"},
                     {"num_cpus", p.machine.cpus},
                     {"mhz_per_cpu", 0},
                     {"cpu_scaling_enabled", false},
                     {"caches", Json::array()},
                     {"load_avg", Json::array({p.machine.load})},
                     {"library_build_type", p.build.type == "release" ? "release" : "debug"},
                     {"brontes", p.brontes},
                     {"commit", p.commit},
                     {"device", p.device.name},
                     {"driver", p.device.driver}};
  json["benchmarks"] = Json::array();
  for (std::size_t family = 0; family < report.cases.size(); ++family) {
    const CaseResult& c = report.cases[family];
    for (std::size_t repetition = 0; repetition < c.runs.size(); ++repetition) {
      const Run& run = c.runs[repetition];
      Json entry{{"name", c.name},
                 {"family_index", family},
                 {"per_family_instance_index", 0},
                 {"run_name", c.name},
                 {"run_type", "iteration"},
                 {"repetitions", c.runs.size()},
                 {"repetition_index", repetition},
                 {"threads", 1},
                 {"iterations", run.iterations},
                 {"real_time", run.median * nanoseconds},
                 {"cpu_time", run.median * nanoseconds},
                 {"time_unit", "ns"}};
      if (c.bytes > 0) entry["bytes_per_second"] = c.bytes / run.median;
      if (c.items > 1) entry["items_per_second"] = c.items / run.median;
      for (const auto& [name, value] : c.all_counts()) entry[name] = value;
      json["benchmarks"].push_back(std::move(entry));
    }
  }
  write(out, json);
}

void write_github(std::ostream& out, const Report& report) {
  Json json = Json::array();
  for (const CaseResult& c : report.cases) {
    std::string extra = "min " + std::to_string(c.minimum() * nanoseconds) + " ns, " + std::to_string(c.runs.size()) +
                        (c.runs.size() == 1 ? " run" : " runs");
    for (const auto& [name, value] : c.all_counts()) {
      if (value != 0) extra += "\n" + name + " " + std::to_string(value);
    }
    const double range = c.runs.size() == 1 ? c.error() * c.median() : (largest_median(c) - smallest_median(c)) / 2;
    json.push_back({{"name", c.name},
                    {"unit", "ns"},
                    {"value", c.median() * nanoseconds},
                    {"range", "± " + std::to_string(range * nanoseconds)},
                    {"extra", extra}});
  }
  write(out, json);
}

void write_bencher(std::ostream& out, const Report& report) {
  Json json = Json::object();
  for (const CaseResult& c : report.cases) {
    Json& entry = json[c.name];
    const auto [low, high] = c.runs.size() == 1 ? std::pair(c.median() * (1 - c.error()), c.median() * (1 + c.error()))
                                                : std::pair(smallest_median(c), largest_median(c));
    entry["latency"] = {
        {"value", c.median() * nanoseconds}, {"lower_value", low * nanoseconds}, {"upper_value", high * nanoseconds}};
    for (const auto& [name, value] : c.all_counts()) entry[name] = {{"value", value}};
  }
  write(out, json);
}

void write_pyperf(std::ostream& out, const Report& report) {
  Json json{{"version", "1.0"}, {"metadata", {{"unit", "second"}}}, {"benchmarks", Json::array()}};
  for (const CaseResult& c : report.cases) {
    Json runs = Json::array();
    for (const Run& run : c.runs) runs.push_back({{"values", run.samples}, {"metadata", {{"loops", run.iterations}}}});
    json["benchmarks"].push_back({{"metadata", {{"name", c.name}}}, {"runs", std::move(runs)}});
  }
  write(out, json);
}

void write_csv(std::ostream& out, const Report& report) {
  ankerl::nanobench::render(ankerl::nanobench::templates::csv(), nanobench_results(report), out);
}

}  // namespace brontes::bench
