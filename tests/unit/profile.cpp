// What profiles say, without a device.
#include "profile/cost.hpp"
#include "profile/ticks.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

namespace brontes::test {
namespace {

ProfileEntry entry(const char* op, const char* kernel, double seconds, double flops, double bytes) {
  ProfileEntry e;
  e.op = op;
  e.kernel = kernel;
  e.result = "%1";
  e.seconds = seconds;
  e.flops = flops;
  e.bytes = bytes;
  return e;
}

Profile example() {
  Profile p;
  p.runs = 3;
  p.entries = {entry("add", "elementwise", 1e-3, 0, 3e6), entry("matmul 4x4x4 kn", "matmul_naive", 2e-3, 128, 192),
               entry("add", "elementwise", 3e-3, 0, 9e6)};
  p.seconds = 6e-3;
  for (ProfileEntry& e : p.entries) e.share = e.seconds / p.seconds;
  return p;
}

}  // namespace

TEST_CASE("a counter that turns over between two timestamps still gives the time between them", "[profile]") {
  const profile::Ticks ticks{10, 36};
  constexpr std::uint64_t turn = std::uint64_t{1} << 36;
  CHECK(ticks.between(5, 7) == 20);
  CHECK(ticks.between(turn - 2, 3) == 50);
  // What is above the bits means nothing.
  CHECK(ticks.between((turn * 6) + 5, (turn * 3) + 7) == 20);
  const std::uint64_t all[] = {turn - 4, turn - 1, 1, 1, 10};
  CHECK(ticks.since_first(all) == std::vector<double>{0, 30, 50, 50, 140});
  CHECK(ticks.since_first({}).empty());
}

TEST_CASE("timestamps in either order are so far apart, also where the counter turns over", "[profile]") {
  const profile::Ticks ticks{2, 20};
  CHECK(ticks.apart(100, 103) == 6);
  CHECK(ticks.apart(103, 100) == -6);
  CHECK(ticks.apart((1u << 20) - 1, 1) == 4);
  CHECK(ticks.apart(1, (1u << 20) - 1) == -4);
}

TEST_CASE("all 64 bits of a counter count where there are so many", "[profile]") {
  const profile::Ticks ticks{1, 64};
  CHECK(ticks.between(~std::uint64_t{0}, 1) == 2);
  CHECK(ticks.between(0, std::uint64_t{1} << 40) == 0x1p40);
}

TEST_CASE("the least time is that of arithmetic or of memory, whichever is longer", "[profile]") {
  const ProfileLimits limits{1e9, 1e8};
  CHECK(profile::least_seconds({1e9, 1}, limits) == Catch::Approx(1));
  CHECK(profile::least_seconds({1, 1e9}, limits) == Catch::Approx(10));
  CHECK(profile::least_seconds({1e9, 1e9}, {0, 0}) == 0);
}

TEST_CASE("merged entries add up, the longest first", "[profile]") {
  const Profile merged = example().merged();
  REQUIRE(merged.entries.size() == 2);
  CHECK(merged.entries[0].op == "add");
  CHECK(merged.entries[0].count == 2);
  CHECK(merged.entries[0].seconds == Catch::Approx(4e-3));
  CHECK(merged.entries[0].bytes == 12e6);
  CHECK(merged.entries[0].bytes_per_second() == Catch::Approx(3e9));
  CHECK(merged.entries[0].result.empty());
  CHECK(merged.entries[1].result == "%1");
  CHECK(merged.seconds == example().seconds);
}

TEST_CASE("the table of a profile has a line per entry, with rates of arithmetic or memory", "[profile]") {
  CHECK(example().text() ==
        "6.000 ms on the device, median of 3 runs, 3 dispatches and copies\n"
        "op                     kernel        count      time  share             rate\n"
        "add -> %1              elementwise       1  1.000 ms  16.7%           3 GB/s\n"
        "matmul 4x4x4 kn -> %1  matmul_naive      1  2.000 ms  33.3%  6.4e-05 GFLOP/s\n"
        "add -> %1              elementwise       1  3.000 ms  50.0%           3 GB/s\n");
}

TEST_CASE("the JSON of a profile has every member, and no number that JSON cannot have", "[profile]") {
  Profile p = example();
  p.entries.resize(1);
  p.entries[0].op = "call \"quoted\"";
  p.entries[0].share_of_limit = 1 / 0.0;
  const std::string json = p.json();
  CHECK(json.find("\"op\": \"call \\\"quoted\\\"\"") != std::string::npos);
  CHECK(json.find("\"share_of_limit\": null") != std::string::npos);
  CHECK(json.find("\"bytes_per_second\": 3e+09") != std::string::npos);
  CHECK(json.find("\"runs\": 3") != std::string::npos);
}

}  // namespace brontes::test
