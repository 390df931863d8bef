// Reports: merged, written and read, in every format.
#include "formats.hpp"
#include "limits.hpp"
#include "progress.hpp"
#include "repeat.hpp"
#include "report_json.hpp"
#include "samples.hpp"
#include "text.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <regex>
#include <sstream>

namespace brontes::bench::test {
namespace {

using Catch::Matchers::ContainsSubstring;

Report sample(std::size_t runs = 3) {
  Report report = Machine(Noise::quiet, 7).report(4, 1, runs);
  report.provenance.commit = "abcdef";
  report.provenance.date = "2026-01-02T03:04:05Z";
  report.provenance.peers = {{"openblas", "", {{"core", "Haswell"}}}};
  report.provenance.limits = {1e11, 2e10, "host", 1e11, 2e10, 2};
  report.cases[3].host_instructions = 12345;
  report.ratios = {{"work/size-0", "op", "op", 1, 1, 2}};
  report.skipped = {{"work/size-9/op", "not here"}};
  report.failed = {{"work/size-8/op", "wrong \"result\""}};
  return report;
}

template <class Write>
nlohmann::json written(Write write, const Report& report) {
  std::ostringstream text;
  write(text, report);
  return nlohmann::json::parse(text.str());
}

std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) longest = std::max(longest, line.size());
  return longest;
}

}  // namespace

TEST_CASE("a report that was written is the same when it is read", "[report]") {
  const Report report = sample();
  std::ostringstream once, again;
  write_json(once, report);
  write_json(again, parse_report(once.str(), "text"));
  CHECK(once.str() == again.str());
  CHECK(parse_report(once.str(), "text").cases[1].counts == report.cases[1].counts);
}

TEST_CASE("files from before there were runs have one", "[report]") {
  const Report report = parse_report(
      R"({"format": 1, "cases": [{"name": "a/b/c", "samples": [3, 1, 2], "iterations": 4, "median": 2, "min": 1}]})",
      "text");
  REQUIRE(report.cases.size() == 1);
  REQUIRE(report.cases[0].runs.size() == 1);
  CHECK(report.cases[0].median() == 2);
  CHECK(report.cases[0].minimum() == 1);
}

TEST_CASE("a file that is no report is refused with its name and the reason", "[report]") {
  for (const char* text : {"", "[]", "{}", "{\"format\": 2, \"cases\": []}", "{\"format\": 1, \"cases\": [{}]}",
                           "{\"format\": 1, \"cases\": [{\"name\": \"a\", \"samples\": []}]}",
                           "{\"format\": 1, \"cases\": [{\"name\": \"a\", \"samples\": [-1]}]}",
                           "{\"format\": 1, \"cases\": [{\"name\": \"a\", \"samples\": \"x\"}]}"}) {
    INFO(text);
    CHECK_THROWS_WITH(parse_report(text, "some.json"), ContainsSubstring("some.json: "));
  }
}

TEST_CASE("merged reports have all runs, the least of each count, and ratios of all runs", "[report]") {
  Report a = sample(1), b = sample(1);
  b.cases[0].runs[0].samples = {1, 1, 1};
  b.cases[0].runs[0].summarise();
  ++a.cases[1].counts["host_allocations"];
  const std::uint64_t least = b.cases[1].counts["host_allocations"];
  const Report all = merge({a, b});
  REQUIRE(all.cases.size() == 4);
  CHECK(all.cases[0].runs.size() == 2);
  CHECK(all.cases[0].median() == (a.cases[0].median() + 1) / 2);
  CHECK(all.cases[1].counts.at("host_allocations") == least);
  CHECK(all.skipped.size() == 1);
  CHECK(all.ratios.size() == 1);
}

TEST_CASE("a case is as close to the limit as the longer of its arithmetic and its bytes allow", "[report]") {
  CaseResult c = sample(1).cases[0];
  c.runs[0].median = 0.5;
  const Limits limits{100, 10, "kernels", 1000, 20, 2};
  c.flops = 20, c.bytes = 1;
  CHECK(c.share_of(limits) == 0.4);
  CHECK(c.arithmetic_bound(limits));
  c.bytes = 4;
  CHECK(c.share_of(limits) == 0.8);
  CHECK_FALSE(c.arithmetic_bound(limits));
  // What has no counts did not run on the device.
  c.counts.clear();
  CHECK(c.share_of(limits) == 0.4);
  CHECK(c.share_of({}) == 0);
  c.bytes = c.flops = 0;
  CHECK(c.share_of(limits) == 0);
}

TEST_CASE("limits of this machine are rates that a CPU can have", "[report]") {
  const double flops = measure_multiply_adds(), bytes = measure_triad();
  CHECK(flops > 1e8);
  CHECK(flops < 1e15);
  CHECK(bytes > 1e7);
  CHECK(bytes < 1e13);
}

TEST_CASE("a filter of names matches them and no others", "[report]") {
  const std::vector<std::string> names{"chain/a+b/1/op", "matmul/1x2x3/kn/(auto)"};
  const std::regex filter(filter_of(names), std::regex::ECMAScript);
  for (const std::string& name : names) CHECK(std::regex_search(name, filter));
  for (const char* other : {"chain/a+b/1/op2", "chain/aab/1/op", "matmul/1x2x3/kn/auto", "x/chain/a+b/1/op"}) {
    CHECK_FALSE(std::regex_search(other, filter));
  }
}

TEST_CASE("Google Benchmark's format has an entry per run, in nanoseconds", "[report]") {
  const auto json = written(write_google, sample(3));
  REQUIRE(json["benchmarks"].size() == 12);
  const auto& first = json["benchmarks"][0];
  CHECK(first["name"] == "work/size-0/op");
  CHECK(first["run_type"] == "iteration");
  CHECK(first["repetitions"] == 3);
  CHECK(json["benchmarks"][1]["repetition_index"] == 1);
  CHECK(first["time_unit"] == "ns");
  CHECK(first["real_time"].get<double>() == sample(3).cases[0].runs[0].median * 1e9);
  CHECK(first["barriers"] == 2);
  CHECK(json["context"]["num_cpus"] == 2);
}

TEST_CASE("github-action-benchmark gets an array of values with units", "[report]") {
  const auto json = written(write_github, sample());
  REQUIRE(json.is_array());
  REQUIRE(json.size() == 4);
  CHECK(json[0]["name"] == "work/size-0/op");
  CHECK(json[0]["unit"] == "ns");
  CHECK(json[0]["value"].get<double>() > 0);
  CHECK_THAT(json[0]["extra"].get<std::string>(), ContainsSubstring("dispatches 3"));
}

TEST_CASE("the Bencher Metric Format has times with bounds, and counts", "[report]") {
  const auto json = written(write_bencher, sample());
  const auto& entry = json["work/size-0/op"];
  CHECK(entry["latency"]["lower_value"].get<double>() <= entry["latency"]["value"].get<double>());
  CHECK(entry["latency"]["upper_value"].get<double>() >= entry["latency"]["value"].get<double>());
  CHECK(entry["barriers"]["value"] == 2);
}

TEST_CASE("pyperf gets the runs with a value per epoch, in seconds", "[report]") {
  const auto json = written(write_pyperf, sample(2));
  REQUIRE(json["benchmarks"].size() == 4);
  CHECK(json["benchmarks"][0]["metadata"]["name"] == "work/size-0/op");
  REQUIRE(json["benchmarks"][0]["runs"].size() == 2);
  CHECK(json["benchmarks"][0]["runs"][0]["values"].size() == 15);
  CHECK(json["version"] == "1.0");
}

TEST_CASE("every format is in the help, and takes a file", "[report]") {
  for (const Format& format : formats()) CHECK_THAT(format_help(), ContainsSubstring(std::string(format.option) + " "));
  CHECK(format_options().size() == formats().size());
}

TEST_CASE("no line of a table is longer than a terminal is wide", "[report]") {
  Report report = sample();
  report.provenance.warnings.push_back(std::string(30, 'w') + " " + std::string(40, 'x') + " " + std::string(50, 'y'));
  report.provenance.device.driver =
      "a driver that has a lot to say about itself, its version, the compiler behind it "
      "and the day that it was built on";
  CaseResult c = report.cases[0];
  c.name = "chain/relu-scale-add-resident/16000000/a-variant-with-quite-a-long-name-of-its-own";
  c.suite = "chain";
  c.bytes = c.flops = 1e12;
  c.items = 100;
  c.item = "op";
  for (Run& run : c.runs) run.others = 1;
  report.cases.push_back(c);
  report.ratios.push_back({"chain/relu-scale-add-resident/16000000", "a-variant-with-quite-a-long-name-of-its-own",
                           "one-submit-each", 1.234, 2.345, 1.5});
  report.failed.push_back({c.name, std::string("the driver said ") + std::string(90, 'z')});
  std::ostringstream text;
  print_report(text, report);
  INFO(text.str());
  CHECK(longest_line(text.str()) <= columns);
  CHECK_THAT(text.str(), ContainsSubstring("GFLOP/s"));
}

TEST_CASE("a line that says how far a run is has no more than a terminal's columns", "[report]") {
  CHECK(progress_line(1, 20, 0, "chain") == "1 of 20, 0:00, chain");
  CHECK(progress_line(11, 20, 50, "chain") == "11 of 20, 0:50 of about 1:40, chain");
  CHECK(progress_line(3, 20, 5000, std::string(200, 'x')).size() < columns);
}

TEST_CASE("two builds take turns, each as often first as the other", "[report]") {
  const Build a = Build::own, b = Build::other;
  CHECK(running_order(3, false) == std::vector<Build>{a, a, a});
  CHECK(running_order(1, true) == std::vector<Build>{a, b});
  CHECK(running_order(4, true) == std::vector<Build>{a, b, b, a, a, b, b, a});
}

}  // namespace brontes::bench::test
