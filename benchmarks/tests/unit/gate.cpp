// What the gate lets through and what it does not, on samples with noise of several kinds.
#include "gate.hpp"
#include "gate_text.hpp"
#include "samples.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <sstream>

namespace brontes::bench::test {
namespace {

constexpr double threshold = 0.10;
constexpr std::size_t cases = 50;

std::string printed(const Difference& difference) {
  std::ostringstream text;
  print_difference(text, difference);
  return text.str();
}

}  // namespace

TEST_CASE("comparisons of a build with itself never fail", "[gate]") {
  const Noise noise = GENERATE(Noise::quiet, Noise::shared, Noise::moody);
  const std::size_t runs = GENERATE(3u, 5u);
  // Twenty is what is promised; the rest is to know by how much.
  for (std::uint32_t i = 0; i < 100; ++i) {
    Machine machine(noise, i);
    const Report old = machine.report(cases, 1, runs);
    const Difference difference = difference_of(old, machine.report(cases, 1, runs), threshold);
    INFO("comparison " << i << "\n" << printed(difference));
    REQUIRE_FALSE(difference.regressed());
  }
}

TEST_CASE("a case that takes 1.5 times as long is always found", "[gate]") {
  const Noise noise = GENERATE(Noise::quiet, Noise::shared, Noise::moody);
  for (std::uint32_t i = 0; i < 100; ++i) {
    Machine machine(noise, 1000 + i);
    const Report old = machine.report(cases);
    const Difference difference = difference_of(old, machine.report(cases, 1.5), threshold);
    INFO("comparison " << i << "\n" << printed(difference));
    REQUIRE(difference.regressed());
    REQUIRE(difference.count(Change::slower) == 1);
    REQUIRE(difference.cases[2].time.change == Change::slower);
  }
}

TEST_CASE("a case that takes two thirds of the time is faster, and no regression", "[gate]") {
  Machine machine(Noise::quiet, 1);
  const Report old = machine.report(cases);
  const Difference difference = difference_of(old, machine.report(cases, 1 / 1.5), threshold);
  CHECK_FALSE(difference.regressed());
  CHECK(difference.cases[2].time.change == Change::faster);
}

TEST_CASE("times within the threshold are never different", "[gate]") {
  Machine machine(Noise::quiet, 1);
  const Report old = machine.report(cases);
  const Report now = machine.report(cases, 1.5);
  CHECK(difference_of(old, now, 0.10).regressed());
  CHECK_FALSE(difference_of(old, now, 0.60).regressed());
}

TEST_CASE("noise between the runs raises the floor above what the threshold says", "[gate]") {
  const Times steady{{10, 10, 10}, {9, 9, 9}};
  const Times jumping{{14, 18, 22}, {13, 16, 20}};
  const Verdict verdict = judge(steady, jumping, threshold);
  CHECK(verdict.floor > 0.5);
  CHECK(verdict.change == Change::unclear);
  CHECK(judge(steady, {{15, 15, 15}, {14, 14, 14}}, threshold).change == Change::slower);
}

TEST_CASE("a few minima that overlap are unclear, and none if they are close", "[gate]") {
  CHECK(judge({{10, 10, 10}, {9, 9, 12}}, {{13, 13, 13}, {11.5, 12, 12}}, 0.0).change == Change::unclear);
  CHECK(judge({{10, 10, 10}, {9, 9, 12}}, {{10, 10, 10}, {9.5, 9.5, 12}}, 0.1).change == Change::none);
}

TEST_CASE("the chance of ranks is that of Mann and Whitney", "[gate]") {
  // Of 20 orders one has no pair the wrong way round, one has one, two have two and three have three.
  CHECK(chance_of_ranks({1, 2, 3}, {4, 5, 6}) == 1.0 / 20);
  CHECK(chance_of_ranks({1, 2, 4}, {3, 5, 6}) == 2.0 / 20);
  CHECK(chance_of_ranks({1, 2, 6}, {3, 4, 5}) == 7.0 / 20);
  CHECK(chance_of_ranks({4, 5, 6}, {1, 2, 3}) == 1.0);
  CHECK(chance_of_ranks({1, 1, 1}, {1, 1, 1}) == 1.0);
  CHECK(chance_of_ranks({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {11, 12, 13, 14, 15, 16, 17, 18, 19, 20}) < least_chance);
  CHECK(chance_of_ranks({1, 2, 3, 4, 5, 6, 7, 8, 9}, {11, 12, 13, 14, 15, 16, 17, 18, 19}) > least_chance);
}

TEST_CASE("on a machine where every third run takes up to twice as long, forty runs tell 1.5 times from nothing",
          "[gate]") {
  std::size_t unclear = 0;
  for (std::uint32_t i = 0; i < 100; ++i) {
    Machine machine(Noise::wild, i);
    const Report old = machine.report(cases, 1, 40);
    const Difference same = difference_of(old, machine.report(cases, 1, 40), threshold);
    INFO("comparison " << i << "\n" << printed(same));
    REQUIRE_FALSE(same.regressed());
    const Difference slower = difference_of(old, machine.report(cases, 1.5, 40), threshold);
    INFO(printed(slower));
    REQUIRE(slower.cases[2].time.change == Change::slower);
    unclear += difference_of(machine.report(3, 1, 5), machine.report(3, 1.5, 5), threshold).unclear().size();
  }
  // Five runs are too few: that is when cases run again.
  CHECK(unclear > 50);
}

TEST_CASE("with fewer than three runs times are not judged, but counts are", "[gate]") {
  Machine machine(Noise::quiet, 1);
  const Report old = machine.report(3, 1, 2);
  Report now = machine.report(3, 3, 2);
  Difference difference = difference_of(old, now, threshold);
  CHECK_FALSE(difference.regressed());
  CHECK(difference.count(Change::unknown) == 3);
  CHECK(printed(difference).find("times are not judged") != std::string::npos);
  ++now.cases[0].counts["submits"];
  CHECK(difference_of(old, now, threshold).regressed());
}

TEST_CASE("with a single epoch in a run times are not judged", "[gate]") {
  CHECK(judge({{10, 10, 10}, {9, 9, 9}, 2}, {{20, 20, 20}, {19, 19, 19}}, 0.1).change == Change::unknown);
  CHECK(judge({{10, 10, 10}, {9, 9, 9}, 3}, {{20, 20, 20}, {19, 19, 19}}, 0.1).change == Change::slower);
}

TEST_CASE("one more barrier fails, is named, and comes with the lines of the dump", "[gate]") {
  Machine machine(Noise::moody, 1);
  const Report old = machine.report(5);
  Report now = machine.report(5);
  ++now.cases[3].counts["barriers"];
  now.cases[3].dump += "barrier RAW on %2 #1 -> #2\n";
  const Difference difference = difference_of(old, now, threshold);
  REQUIRE(difference.regressed());
  REQUIRE(difference.cases[3].counts.size() == 1);
  CHECK(difference.cases[3].lines == std::vector<std::string>{"+ barrier RAW on %2 #1 -> #2"});
  const std::string text = printed(difference);
  CHECK(text.find("GREW    work/size-3/op: barriers 2 -> 3") != std::string::npos);
  CHECK(text.find("+ barrier RAW on %2 #1 -> #2") != std::string::npos);
  std::ostringstream markdown;
  write_markdown(markdown, difference, old, now);
  CHECK(markdown.str().find("### Benchmarks: regression") == 0);
  CHECK(markdown.str().find("| **grew** | `work/size-3/op` | barriers 2 -> 3 |") != std::string::npos);
}

TEST_CASE("one more allocation fails, on the host as on the device", "[gate]") {
  const std::string name = GENERATE("host_allocations", "device_allocations");
  Machine machine(Noise::shared, 1);
  const Report old = machine.report(5);
  Report now = machine.report(5);
  ++now.cases[0].counts[name];
  CHECK(difference_of(old, now, threshold).regressed());
}

TEST_CASE("a count that shrinks is no regression", "[gate]") {
  Machine machine(Noise::quiet, 1);
  const Report old = machine.report(5);
  Report now = machine.report(5);
  --now.cases[0].counts["dispatches"];
  const Difference difference = difference_of(old, now, threshold);
  CHECK_FALSE(difference.regressed());
  CHECK(printed(difference).find("shrank  work/size-0/op: dispatches 3 -> 2") != std::string::npos);
}

TEST_CASE("a count that only one version of the harness knows is not compared", "[gate]") {
  Machine machine(Noise::quiet, 1);
  const Report old = machine.report(5);
  Report now = machine.report(5);
  now.cases[0].counts["something_new"] = 5;
  CHECK_FALSE(difference_of(old, now, threshold).regressed());
}

TEST_CASE("instructions that valgrind counted are counts, but for the last two percent", "[gate]") {
  Machine machine(Noise::quiet, 1);
  Report old = machine.report(3);
  Report now = machine.report(3);
  now.cases[0].host_instructions = 1;  // only in one of them
  old.cases[1].host_instructions = 100'000;
  now.cases[1].host_instructions = 101'900;
  CHECK_FALSE(difference_of(old, now, threshold).regressed());
  now.cases[1].host_instructions = 102'100;
  const Difference worse = difference_of(old, now, threshold);
  CHECK(worse.regressed());
  CHECK(printed(worse).find("GREW    work/size-1/op: host_instructions 100000 -> 102100") != std::string::npos);
  old.cases[2].host_instructions = 4'000;
  now.cases[2].host_instructions = 4'400;
  CHECK(difference_of(old, now, threshold).cases[2].counts.empty());
  now.cases[1].host_instructions = 90'000;
  const Difference better = difference_of(old, now, threshold);
  CHECK_FALSE(better.regressed());
  CHECK(printed(better).find("shrank  work/size-1/op: host_instructions") != std::string::npos);
}

TEST_CASE("a case that fails now is a regression, one that is gone is named", "[gate]") {
  Machine machine(Noise::quiet, 1);
  const Report old = machine.report(3);
  Report now = machine.report(3);
  now.cases.pop_back();
  const Difference gone = difference_of(old, now, threshold);
  CHECK_FALSE(gone.regressed());
  CHECK(gone.only_old == std::vector<std::string>{"work/size-2/op"});
  // Of the whole group, as when its data cannot be made.
  now.failed.push_back({"work/size-2", "wrong result"});
  const Difference broken = difference_of(old, now, threshold);
  CHECK(broken.regressed());
  CHECK(printed(broken).find("BROKEN  work/size-2/op: wrong result") != std::string::npos);
}

TEST_CASE("a comparison says what stands in its way", "[gate]") {
  Machine machine(Noise::quiet, 1);
  Report old = machine.report(3);
  Report now = machine.report(3);
  CHECK(difference_of(old, now, threshold).notes.empty());
  old.provenance.interleaved = false;
  now.provenance.device.driver = "another";
  now.provenance.build.type = "debug";
  CHECK(difference_of(old, now, threshold).notes.size() == 3);
}

TEST_CASE("lines that changed are those that only one text has", "[gate]") {
  using Lines = std::vector<std::string>;
  CHECK(changed_lines("a\nb\nc\n", "a\nb\nc\n").empty());
  CHECK(changed_lines("a\nb\nc\n", "a\nc\n") == Lines{"- b"});
  CHECK(changed_lines("a\nb\nc\nd\n", "a\nx\nc\ny\nd\n") == Lines{"- b", "+ x", "+ y"});
  CHECK(changed_lines("", "a\n") == Lines{"+ a"});
  CHECK(changed_lines("a\na\n", "a\n") == Lines{"- a"});
}

}  // namespace brontes::bench::test
