// SPDX-License-Identifier: MIT
// Replacing files: as a whole or not at all, by many at once, and by writers that are killed.
#include "keyed_file.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

using namespace brontes;
using namespace brontes::test;

namespace {

/// Temporary files of this age are nobody's any more.
constexpr auto stale_age = std::chrono::hours(2);

}  // namespace

TEST_CASE("saving into a read-only directory is an io error and leaves all as it was", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(100)));
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  REQUIRE(::chmod(folder.path().c_str(), 0555) == 0);
  const int code = in_child([&] {
    if (!drop_root()) return cannot_drop_root;
    for (const std::string& target : {path, folder.file("new/cache.bin")}) {
      const Error error = save_cache(target, some_identity(), some_payload(50));
      if (error.code != Errc::io || !contains(error.message, std::strerror(EACCES))) return 1;
    }
    return load_cache(path, some_identity()).payload == some_payload(100) ? 0 : 2;
  });
  REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
  if (code == cannot_drop_root) SKIP("root here cannot become another user");
  CHECK(code == 0);
  CHECK(folder.names() == std::vector<std::string>{"cache.bin"});
}

TEST_CASE("saving where it cannot work is an io error naming path and reason", "[keyed_file]") {
  TempFolder folder;
  spit(folder.file("plain"), {1});
  SECTION("the parent is a regular file") {
    for (const char* name : {"plain/cache.bin", "plain/deeper/cache.bin"}) {
      const Error error = save_cache(folder.file(name), some_identity(), some_payload(10));
      CHECK(error.code == Errc::io);
      CHECK(contains(error.message, folder.file(name)));
      CHECK(contains(error.message, std::strerror(ENOTDIR)));
    }
  }
  SECTION("a directory is in the file's place") {
    fs::create_directories(folder.file("cache.bin/inside"));
    const Error error = save_cache(folder.file("cache.bin"), some_identity(), some_payload(10));
    CHECK(error.code == Errc::io);
    CHECK(contains(error.message, "it is a directory"));
    CHECK(folder.names() == std::vector<std::string>{"cache.bin", "plain"});
  }
  SECTION("the path has no file name") {
    for (const std::string& path :
         {std::string(), folder.path() + "/", folder.path() + "/..", folder.file(std::string("cache\0bin", 9))}) {
      CHECK(save_cache(path, some_identity(), some_payload(10)).code == Errc::invalid_argument);
    }
  }
  SECTION("the file may grow no further") {
    REQUIRE_FALSE(save_cache(folder.file("cache.bin"), some_identity(), some_payload(10)));
    const int code = in_child([&] {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{1000, 1000};
      if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
      const Error error = save_cache(folder.file("cache.bin"), some_identity(), some_payload(5000));
      return error.code == Errc::io && contains(error.message, std::strerror(EFBIG)) ? 0 : 2;
    });
    CHECK(code == 0);
    CHECK(load_cache(folder.file("cache.bin"), some_identity()).payload == some_payload(10));
    CHECK(folder.names() == std::vector<std::string>{"cache.bin", "plain"});
  }
}

TEST_CASE("a full disk leaves the old file and no temporary", "[keyed_file]") {
  TempFolder folder;
  constexpr int cannot_mount = 78;
  const int code = in_child([&] {
    // A file system of 64 KiB that nobody else sees and that is gone with this process.
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", folder.path().c_str(), "tmpfs", 0, "size=64k,mode=0700") != 0) {
      return cannot_mount;
    }
    const std::string path = folder.file("cache.bin");
    if (save_cache(path, some_identity(), some_payload(5000))) return 1;
    for (std::size_t size : {60000u, 65536u, 200000u}) {
      const Error error = save_cache(path, some_identity(), some_payload(size));
      if (error.code != Errc::io || !contains(error.message, std::strerror(ENOSPC))) return 2;
      if (!contains(error.message, path)) return 3;
      if (load_cache(path, some_identity()).payload != some_payload(5000)) return 4;
      if (folder.names() != std::vector<std::string>{"cache.bin"}) return 5;
    }
    return save_cache(path, some_identity(), some_payload(6000)) ? 6 : 0;
  });
  if (code == cannot_mount) SKIP("no right to mount a small file system");
  CHECK(code == 0);
}

TEST_CASE("saving creates private directories and a private file", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("a/b//c/cache.bin");
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(10)));
  auto mode = [&](const std::string& name) {
    struct stat status {};
    REQUIRE(::stat(folder.file(name).c_str(), &status) == 0);
    return status.st_mode & 07777u;
  };
  CHECK(mode("a") == 0700u);
  CHECK(mode("a/b") == 0700u);
  CHECK(mode("a/b/c") == 0700u);
  CHECK(mode("a/b/c/cache.bin") == 0600u);
  CHECK(load_cache(path, some_identity()).state == FileState::loaded);
}

TEST_CASE("relative paths and the longest file names work", "[keyed_file]") {
  TempFolder folder;
  const std::string longest(255, 'n');
  const int code = in_child([&] {
    if (::chdir(folder.path().c_str()) != 0) return 1;
    for (const std::string& path : {std::string("cache.bin"), std::string("x/cache.bin"), longest}) {
      if (save_cache(path, some_identity(), some_payload(20))) return 2;
      if (load_cache(path, some_identity()).payload != some_payload(20)) return 3;
    }
    return 0;
  });
  CHECK(code == 0);
  CHECK(folder.names() == std::vector<std::string>{"cache.bin", longest, "x"});
}

TEST_CASE("only old temporary files of the same cache are cleared away", "[keyed_file]") {
  TempFolder folder;
  const std::string fresh = ".cache.bin.brontes-1a-0-0123456789abcdef.tmp";
  const std::string stale = ".cache.bin.brontes-1b-0-0123456789abcdef.tmp";
  const std::string others[] = {".other.bin.brontes-1b-0-0123456789abcdef.tmp", ".cache.bin.brontes-mine.tmp",
                                ".cache.bin.brontes-.tmp", "cache.bin.tmp"};
  const auto hours_ago = fs::file_time_type::clock::now() - stale_age;
  std::vector<std::string> expected = {fresh, "cache.bin"};
  spit(folder.file(fresh), {1});
  spit(folder.file(stale), {1});
  fs::last_write_time(folder.file(stale), hours_ago);
  for (const std::string& name : others) {
    spit(folder.file(name), {1});
    fs::last_write_time(folder.file(name), hours_ago);
    expected.push_back(name);
  }
  REQUIRE_FALSE(save_cache(folder.file("cache.bin"), some_identity(), some_payload(10)));
  std::sort(expected.begin(), expected.end());
  CHECK(folder.names() == expected);
}

TEST_CASE("sixteen processes saving and loading at once leave one valid file and nothing else", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("new/cache.bin");
  constexpr std::uint32_t processes = 16;
  // Different sizes too, so that a mixture of two writers could not pass.
  std::vector<Data> payloads;
  for (std::uint32_t index = 0; index < processes; ++index) {
    payloads.push_back(some_payload(20000 + 777 * index, index));
  }
  auto is_one_of_them = [&](const Data& payload) {
    return std::find(payloads.begin(), payloads.end(), payload) != payloads.end();
  };

  int start[2];
  REQUIRE(::pipe(start) == 0);
  std::vector<pid_t> children;
  for (std::uint32_t index = 0; index < processes; ++index) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      ::close(start[1]);
      char byte = 0;
      if (::read(start[0], &byte, 1) != 0) ::_exit(2);  // until the parent closes its end
      for (int round = 0; round < (soak() ? 500 : 20); ++round) {
        if (save_cache(path, some_identity(), payloads[index])) ::_exit(1);
        const FileLoad load = load_cache(path, some_identity());
        if (load.state != FileState::loaded || !is_one_of_them(load.payload)) ::_exit(3);
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  ::close(start[0]);
  ::close(start[1]);
  for (pid_t child : children) {
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
  const FileLoad load = load_cache(path, some_identity());
  REQUIRE(load.state == FileState::loaded);
  CHECK(is_one_of_them(load.payload));
  CHECK(std::distance(fs::directory_iterator(folder.file("new")), fs::directory_iterator()) == 1);
}

TEST_CASE("a writer killed at any moment leaves a whole file, and a temporary that is cleared away later",
          "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  const Data payloads[] = {some_payload(300000, 1), some_payload(200001, 2), some_payload(50, 3)};
  REQUIRE_FALSE(save_cache(path, some_identity(), payloads[2]));
  std::mt19937 random(11);
  const int rounds = soak() ? 5000 : 100;
  for (int round = 0; round < rounds; ++round) {
    int started[2];
    REQUIRE(::pipe(started) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (unsigned i = 0;; ++i) {
        if (save_cache(path, some_identity(), payloads[i % 3])) ::_exit(1);
        if (i == 0 && ::write(started[1], "", 1) != 1) ::_exit(2);
      }
    }
    // On a busy machine the child may be slow to start.
    ::close(started[1]);
    char byte = 0;
    REQUIRE(::read(started[0], &byte, 1) == 1);
    ::close(started[0]);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 10000));
    REQUIRE(::kill(child, SIGKILL) == 0);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    const FileLoad load = load_cache(path, some_identity());
    INFO("round " << round << ": " << load.note);
    REQUIRE(load.state == FileState::loaded);
    REQUIRE(std::find(std::begin(payloads), std::end(payloads), load.payload) != std::end(payloads));
  }
  // Else nothing was interrupted, and nothing tested.
  const std::vector<std::string> left = folder.names();
  CHECK(left.size() > 1);
  for (const std::string& name : left) {
    if (name != "cache.bin") fs::last_write_time(folder.file(name), fs::file_time_type::clock::now() - stale_age);
  }
  REQUIRE_FALSE(save_cache(path, some_identity(), payloads[0]));
  CHECK(folder.names() == std::vector<std::string>{"cache.bin"});
}

TEST_CASE("threads of one process may save the same file at once", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  std::vector<Error> errors(4);
  std::vector<std::thread> threads;
  for (std::uint32_t index = 0; index < errors.size(); ++index) {
    threads.emplace_back([&, index] {
      for (int round = 0; round < 10 && !errors[index]; ++round) {
        errors[index] = save_cache(path, some_identity(), some_payload(5000, index));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Error& error : errors) {
    INFO(error.message);
    CHECK_FALSE(error);
  }
  CHECK(load_cache(path, some_identity()).state == FileState::loaded);
  CHECK(folder.names() == std::vector<std::string>{"cache.bin"});
}
