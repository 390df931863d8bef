// SPDX-License-Identifier: MIT
// Checked files when memory runs out: nothing throws, nothing ends the program, nothing is left behind.
#include "failing_allocations.hpp"
#include "keyed_file.hpp"

using namespace brontes;
using namespace brontes::test;

namespace {

/// Calls `body` with allocation 0, 1, 2, ... failing, alone and with all that follow, until none is left to fail.
template <class Body>
void with_every_allocation_failing(Body body) {
  for (std::size_t count : {std::size_t{1}, std::size_t{1000000}}) {
    std::size_t first = 0;
    while (body(first, count)) {
      ++first;
      REQUIRE(first < 1000);
    }
    CHECK(first > 0);
  }
}

}  // namespace

TEST_CASE("a save that runs out of memory says so and leaves the old file alone", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("a-name-too-long-to-be-kept-without-allocating.bin");
  const Data old = some_payload(30);
  const Data young = some_payload(5000);
  with_every_allocation_failing([&](std::size_t first, std::size_t count) {
    REQUIRE_FALSE(save_cache(path, some_identity(), old));
    Error error;
    std::size_t failed = 0;
    {
      FailingAllocations faults(first, count);
      error = save_cache(path, some_identity(), young);
      failed = faults.failed();
    }
    INFO("allocation " << first << ": " << error.message);
    REQUIRE(error.code == (failed != 0 ? Errc::out_of_memory : Errc::ok));
    REQUIRE(load_cache(path, some_identity()).payload == (failed != 0 ? old : young));
    REQUIRE(folder.names().size() == 1);
    return failed != 0;
  });
}

TEST_CASE("a save that is refused and runs out of memory fails all the same", "[keyed_file]") {
  TempFolder folder;
  fs::create_directory(folder.file("directory"));
  for (const std::string& path : {folder.file("directory"), folder.file("")}) {
    with_every_allocation_failing([&](std::size_t first, std::size_t count) {
      Errc code = Errc::ok;
      std::size_t failed = 0;
      {
        FailingAllocations faults(first, count);
        code = save_cache(path, some_identity(), {}).code;
        failed = faults.failed();
      }
      REQUIRE((code == Errc::out_of_memory) == (failed != 0));
      REQUIRE(code != Errc::ok);
      return failed != 0;
    });
  }
}

TEST_CASE("a load that runs out of memory is a rejected file", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("a-name-too-long-to-be-kept-without-allocating.bin");
  const Data payload = some_payload(5000);
  REQUIRE_FALSE(save_cache(path, some_identity(), payload));
  fs::create_directory(folder.file("directory"));
  spit(folder.file("damaged"), some_payload(500));
  for (const std::string& each : {path, folder.file("directory"), folder.file("damaged"), folder.file("")}) {
    with_every_allocation_failing([&](std::size_t first, std::size_t count) {
      FileLoad load;
      std::size_t failed = 0;
      {
        FailingAllocations faults(first, count);
        load = load_cache(each, some_identity());
        failed = faults.failed();
      }
      INFO("allocation " << first << ": " << load.note);
      REQUIRE((load.state == FileState::loaded) == (failed == 0 && each == path));
      REQUIRE((load.note == "out of memory") == (failed != 0));
      REQUIRE(load.payload.empty() == (load.state != FileState::loaded));
      return failed != 0;
    });
  }
}

TEST_CASE("a default path that there is no memory for is none", "[keyed_file]") {
  TempFolder home;
  for (bool usable : {true, false}) {
    ScopedVariable xdg("XDG_CACHE_HOME", std::nullopt);
    ScopedVariable variable("HOME", usable ? home.path() : home.file("missing"));
    with_every_allocation_failing([&](std::size_t first, std::size_t count) {
      std::string path, note;
      std::size_t failed = 0;
      {
        FailingAllocations faults(first, count);
        path = default_cache_path(some_identity(), note);
        failed = faults.failed();
      }
      REQUIRE(path.empty() == (failed != 0 || !usable));
      REQUIRE((note == "out of memory") == (failed != 0));
      return failed != 0;
    });
  }
}
