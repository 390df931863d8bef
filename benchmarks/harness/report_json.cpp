#include "report_json.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace brontes::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr unsigned format_version = 1;

Json json_of(const Run& run) {
  Json json{{"median", run.median},         {"min", run.minimum},   {"error", run.error},
            {"iterations", run.iterations}, {"others", run.others}, {"samples", run.samples}};
  if (run.instructions > 0) json["instructions"] = run.instructions;
  return json;
}

Json json_of(const CaseResult& c, const Limits& limits) {
  std::vector<double> samples;
  Json runs = Json::array();
  double others = 0;
  for (const Run& run : c.runs) {
    samples.insert(samples.end(), run.samples.begin(), run.samples.end());
    runs.push_back(json_of(run));
    others = std::max(others, run.others);
  }
  Json json{{"name", c.name},
            {"suite", c.suite},
            {"unit", "s"},
            {"median", c.median()},
            {"min", c.minimum()},
            {"error", c.error()},
            {"epochs", samples.size()},
            {"iterations", c.runs.front().iterations},
            {"items", c.items},
            {"item", c.item},
            {"bytes", c.bytes},
            {"flops", c.flops},
            {"gb_per_s", c.gigabytes_per_second()},
            {"gflop_per_s", c.gigaflops()},
            {"others", others},
            {"samples", std::move(samples)},
            {"runs", std::move(runs)}};
  if (const double share = c.share_of(limits); share > 0) {
    json["of_limit"] = share;
    json["limit"] = c.arithmetic_bound(limits) ? "arithmetic" : "memory";
  }
  if (!c.counts.empty()) json["counts"] = c.counts;
  if (c.host_instructions > 0) json["host_instructions"] = c.host_instructions;
  if (!c.dump.empty()) json["dump"] = c.dump;
  return json;
}

Json json_of(const Ratio& r) {
  Json json{{"group", r.group},
            {"variant", r.variant},
            {"baseline", r.baseline},
            {"by_median", r.by_median},
            {"by_min", r.by_minimum}};
  if (r.goal > 0) {
    json["goal"] = r.goal;
    json["met"] = r.met();
  }
  return json;
}

Json json_of(const std::vector<Remark>& remarks) {
  Json json = Json::array();
  for (const Remark& remark : remarks) json.push_back({{"name", remark.name}, {"reason", remark.reason}});
  return json;
}

Json json_of(const Provenance& p) {
  Json json{{"format", format_version}, {"brontes", p.brontes},   {"commit", p.commit},
            {"date", p.date},           {"complete", p.complete}, {"interleaved", p.interleaved}};
  json["device"] = {{"name", p.device.name},
                    {"type", p.device.type},
                    {"cpu_driver", p.device.cpu_driver},
                    {"driver", p.device.driver},
                    {"driver_version", p.device.driver_version},
                    {"vendor_id", p.device.vendor_id},
                    {"device_id", p.device.device_id},
                    {"uuid", p.device.uuid},
                    {"api_version", p.device.api_version},
                    {"subgroup_size", p.device.subgroup_size},
                    {"mapped_memory", p.device.mapped_memory}};
  json["build"] = {{"type", p.build.type},
                   {"compiler", p.build.compiler},
                   {"assertions", p.build.assertions},
                   {"validation", p.build.validation}};
  json["machine"] = {
      {"cpu", p.machine.cpu}, {"cpus", p.machine.cpus}, {"simd", p.machine.simd}, {"load", p.machine.load}};
  json["peers"] = Json::array();
  for (const Provenance::PeerFacts& peer : p.peers) {
    json["peers"].push_back(peer.name);
    Json facts{{"available", peer.unavailable.empty()}, {"reason", peer.unavailable}};
    for (const auto& [name, value] : peer.facts) facts[name] = value;
    json[peer.name] = std::move(facts);
  }
  json["limits"] = {{"source", p.limits.source},
                    {"gflop_per_s", p.limits.flops * 1e-9},
                    {"gb_per_s", p.limits.bytes * 1e-9},
                    {"host_gflop_per_s", p.limits.host_flops * 1e-9},
                    {"host_gb_per_s", p.limits.host_bytes * 1e-9},
                    {"host_threads", p.limits.threads}};
  json["options"] = {{"quick", p.quick}, {"filter", p.filter}};
  json["warnings"] = p.warnings;
  return json;
}

/// The member, if it is there and of the right type.
template <class T>
void take(const Json& json, const char* key, T& to) {
  if (const auto found = json.find(key); found != json.end() && !found->is_null()) to = found->get<T>();
}

Run run_of(const Json& json) {
  Run run;
  run.samples = json.at("samples").get<std::vector<double>>();
  if (run.samples.empty()) throw std::runtime_error("a run has no samples");
  for (const double sample : run.samples) {
    if (!(sample > 0)) throw std::runtime_error("a sample is no time");
  }
  take(json, "iterations", run.iterations);
  take(json, "others", run.others);
  take(json, "instructions", run.instructions);
  run.summarise();
  return run;
}

CaseResult case_of(const Json& json) {
  CaseResult c;
  c.name = json.at("name").get<std::string>();
  take(json, "suite", c.suite);
  take(json, "bytes", c.bytes);
  take(json, "flops", c.flops);
  take(json, "items", c.items);
  take(json, "item", c.item);
  take(json, "counts", c.counts);
  take(json, "host_instructions", c.host_instructions);
  take(json, "dump", c.dump);
  // Files from before there were runs have one.
  if (json.contains("runs")) {
    for (const Json& run : json.at("runs")) c.runs.push_back(run_of(run));
  }
  if (c.runs.empty()) c.runs.push_back(run_of(json));
  return c;
}

Ratio ratio_of(const Json& json) {
  Ratio r;
  r.group = json.at("group").get<std::string>();
  r.variant = json.at("variant").get<std::string>();
  r.baseline = json.at("baseline").get<std::string>();
  take(json, "by_median", r.by_median);
  take(json, "by_min", r.by_minimum);
  take(json, "goal", r.goal);
  return r;
}

std::vector<Remark> remarks_of(const Json& json, const char* key) {
  std::vector<Remark> remarks;
  if (!json.contains(key)) return remarks;
  for (const Json& remark : json.at(key)) {
    remarks.push_back({remark.at("name").get<std::string>(), remark.at("reason").get<std::string>()});
  }
  return remarks;
}

Provenance provenance_of(const Json& json) {
  Provenance p;
  take(json, "brontes", p.brontes);
  take(json, "commit", p.commit);
  take(json, "date", p.date);
  take(json, "complete", p.complete);
  take(json, "interleaved", p.interleaved);
  if (json.contains("device")) {
    const Json& device = json.at("device");
    take(device, "name", p.device.name);
    take(device, "type", p.device.type);
    take(device, "cpu_driver", p.device.cpu_driver);
    take(device, "driver", p.device.driver);
    take(device, "driver_version", p.device.driver_version);
    take(device, "vendor_id", p.device.vendor_id);
    take(device, "device_id", p.device.device_id);
    take(device, "uuid", p.device.uuid);
    take(device, "api_version", p.device.api_version);
    take(device, "subgroup_size", p.device.subgroup_size);
    take(device, "mapped_memory", p.device.mapped_memory);
  }
  if (json.contains("build")) {
    const Json& build = json.at("build");
    take(build, "type", p.build.type);
    take(build, "compiler", p.build.compiler);
    take(build, "assertions", p.build.assertions);
    take(build, "validation", p.build.validation);
  }
  if (json.contains("machine")) {
    const Json& machine = json.at("machine");
    take(machine, "cpu", p.machine.cpu);
    take(machine, "cpus", p.machine.cpus);
    take(machine, "simd", p.machine.simd);
    take(machine, "load", p.machine.load);
  }
  if (json.contains("limits")) {
    const Json& limits = json.at("limits");
    auto rate = [&](const char* key, double& to) {
      take(limits, key, to);
      to *= 1e9;
    };
    take(limits, "source", p.limits.source);
    rate("gflop_per_s", p.limits.flops);
    rate("gb_per_s", p.limits.bytes);
    rate("host_gflop_per_s", p.limits.host_flops);
    rate("host_gb_per_s", p.limits.host_bytes);
    take(limits, "host_threads", p.limits.threads);
  }
  std::vector<std::string> peers;
  take(json, "peers", peers);
  for (const std::string& name : peers) {
    Provenance::PeerFacts peer{name, {}, {}};
    for (const auto& [key, value] : json.at(name).items()) {
      if (key == "reason") {
        peer.unavailable = value.get<std::string>();
      } else if (key != "available") {
        peer.facts.emplace_back(key, value.get<std::string>());
      }
    }
    p.peers.push_back(std::move(peer));
  }
  if (json.contains("options")) {
    take(json.at("options"), "quick", p.quick);
    take(json.at("options"), "filter", p.filter);
  }
  take(json, "warnings", p.warnings);
  return p;
}

}  // namespace

void write_json(std::ostream& out, const Report& report) {
  Json json = json_of(report.provenance);
  json["cases"] = Json::array();
  for (const CaseResult& c : report.cases) json["cases"].push_back(json_of(c, report.provenance.limits));
  json["ratios"] = Json::array();
  for (const Ratio& ratio : report.ratios) json["ratios"].push_back(json_of(ratio));
  json["skipped"] = json_of(report.skipped);
  json["failed"] = json_of(report.failed);
  // Names of drivers and dumps are what they are: bytes that are no UTF-8 must not end a long run.
  out << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

Report parse_report(const std::string& text, const std::string& name) {
  try {
    const Json json = Json::parse(text);
    if (!json.is_object() || !json.contains("format") || !json.contains("cases")) {
      throw std::runtime_error("not a file of brontes-bench --json");
    }
    if (json.at("format") != format_version) {
      throw std::runtime_error("written by another version: its format is " + json.at("format").dump());
    }
    Report report;
    report.provenance = provenance_of(json);
    for (const Json& c : json.at("cases")) report.cases.push_back(case_of(c));
    if (json.contains("ratios")) {
      for (const Json& ratio : json.at("ratios")) report.ratios.push_back(ratio_of(ratio));
    }
    report.skipped = remarks_of(json, "skipped");
    report.failed = remarks_of(json, "failed");
    return report;
  } catch (const std::exception& e) {
    throw std::runtime_error(name + ": " + e.what());
  }
}

Report read_report(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw std::runtime_error(path + ": cannot be read");
  return parse_report(text.str(), path);
}

}  // namespace brontes::bench
