// SPDX-License-Identifier: MIT
// Whose files are believed: kinds of files, owners and permissions.
#include "keyed_file.hpp"

#include <chrono>
#include <cstdio>

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

using namespace brontes;
using namespace brontes::test;

namespace {

constexpr uid_t somebody_else = 65534;

bool is_root() { return ::geteuid() == 0; }

using Status = struct stat;

Status status_of(const std::string& path) {
  Status status{};
  if (::lstat(path.c_str(), &status) != 0) return {};
  return status;
}

bool same(const Status& a, const Status& b) {
  return a.st_ino == b.st_ino && a.st_mode == b.st_mode && a.st_rdev == b.st_rdev && a.st_size == b.st_size &&
         a.st_uid == b.st_uid && a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

std::string make_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM, 0);
  REQUIRE(descriptor >= 0);
  REQUIRE(::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  ::close(descriptor);
  return path;
}

/// Neither loads nor saves, both for this reason, and leaves all as it is. In a process of its own that is
/// killed should it hang.
void check_refused(const std::string& path, const std::string& reason) {
  INFO(path << ": " << reason);
  const Status before = status_of(path);
  REQUIRE(before.st_ino != 0);
  std::vector<std::string> names;
  const fs::path parent = fs::path(path).parent_path();
  auto list = [&] {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(parent)) out.push_back(entry.path().filename());
    std::sort(out.begin(), out.end());
    return out;
  };
  if (parent != "/dev") names = list();
  const int code = in_child([&] {
    ::alarm(20);
    const FileLoad load = load_cache(path, some_identity());
    const Error error = save_cache(path, some_identity(), some_payload(30));
    if (load.state == FileState::rejected && load.payload.empty() && contains(load.note, path) &&
        contains(load.note, reason) && error.code == Errc::io && contains(error.message, path) &&
        contains(error.message, reason)) {
      return 0;
    }
    std::fprintf(stderr, "load: %s\nsave: %s\n", load.note.c_str(), error.message.c_str());
    return 1;
  });
  CHECK(code == 0);
  CHECK(same(status_of(path), before));
  if (parent != "/dev") CHECK(list() == names);
}

void check_used(const std::string& path, const Data& old, const Data& young) {
  INFO(path);
  const FileLoad load = load_cache(path, some_identity());
  CHECK(load.note == "");
  CHECK(load.payload == old);
  const Error error = save_cache(path, some_identity(), young);
  CHECK(error.message == "");
  CHECK(load_cache(path, some_identity()).payload == young);
}

}  // namespace

TEST_CASE("what is no regular file is refused by name, without waiting, and stays what it is", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  SECTION("a device") {
    // Root could do harm to the real one.
    if (is_root()) {
      if (::mknod(path.c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0) SKIP("root here cannot make devices");
      check_refused(path, "it is a character device");
      REQUIRE(::unlink(path.c_str()) == 0);
      if (::mknod(path.c_str(), S_IFBLK | 0600, makedev(7, 0)) != 0) SKIP("root here cannot make block devices");
      check_refused(path, "it is a block device");
    } else {
      check_refused("/dev/null", "it is a character device");
    }
  }
  SECTION("a FIFO") {
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    check_refused(path, "it is a FIFO");
  }
  SECTION("a socket") { check_refused(make_socket(path), "it is a socket"); }
  SECTION("a directory") {
    REQUIRE(::mkdir(path.c_str(), 0700) == 0);
    check_refused(path, "it is a directory");
  }
  SECTION("symbolic links to a file, to nothing, to a device and in a loop") {
    REQUIRE_FALSE(save_cache(folder.file("target"), some_identity(), some_payload(30)));
    for (const char* target : {"target", "nothing", "/dev/null", "cache.bin"}) {
      REQUIRE(::symlink(target, path.c_str()) == 0);
      check_refused(path, "it is a symbolic link");
      REQUIRE(::unlink(path.c_str()) == 0);
    }
    CHECK(load_cache(folder.file("target"), some_identity()).payload == some_payload(30));
    CHECK(folder.names() == std::vector<std::string>{"target"});
  }
}

TEST_CASE("the companion of a file lies beside it; that of anything else is refused with it", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  CHECK(files::companion_path(files::tuning_file, path) == path + ".tuning");
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(30)));
  CHECK(files::companion_path(files::tuning_file, path) == path + ".tuning");
  CHECK(files::companion_path(files::tuning_file, folder.file("no/such/folder")) ==
        folder.file("no/such/folder.tuning"));

  REQUIRE(::mkfifo(folder.file("fifo").c_str(), 0600) == 0);
  REQUIRE(::symlink("cache.bin", folder.file("link").c_str()) == 0);
  for (const std::string& other :
       {std::string("/dev/null"), folder.file("fifo"), folder.file("link"), folder.file("")}) {
    CHECK(files::companion_path(files::tuning_file, other) == other);
  }
}

TEST_CASE("a FIFO put in the file's place while it is opened does not hang", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(30)));
  REQUIRE(::mkfifo(folder.file("other").c_str(), 0600) == 0);
  const pid_t swapper = ::fork();
  REQUIRE(swapper >= 0);
  if (swapper == 0) {
    while (::getppid() != 1) {
      ::rename(path.c_str(), folder.file("third").c_str());
      ::rename(folder.file("other").c_str(), path.c_str());
      ::rename(folder.file("third").c_str(), folder.file("other").c_str());
    }
    ::_exit(0);
  }
  const int code = in_child([&] {
    ::alarm(60);
    for (int i = 0; i < (soak() ? 200000 : 5000); ++i) {
      const FileLoad load = load_cache(path, some_identity());
      if (load.state == FileState::loaded && load.payload != some_payload(30)) return 1;
    }
    return 0;
  });
  REQUIRE(::kill(swapper, SIGKILL) == 0);
  REQUIRE(::waitpid(swapper, nullptr, 0) == swapper);
  CHECK(code == 0);
}

TEST_CASE("the directory may be reached through a symbolic link", "[keyed_file]") {
  TempFolder folder;
  REQUIRE(::mkdir(folder.file("real").c_str(), 0700) == 0);
  REQUIRE(::symlink("real", folder.file("link").c_str()) == 0);
  REQUIRE_FALSE(save_cache(folder.file("link/cache.bin"), some_identity(), some_payload(30)));
  check_used(folder.file("link/cache.bin"), some_payload(30), some_payload(40));
  CHECK(load_cache(folder.file("real/cache.bin"), some_identity()).payload == some_payload(40));
  CHECK(S_ISLNK(status_of(folder.file("link")).st_mode));
}

TEST_CASE("another user's file or directory is refused", "[keyed_file]") {
  if (!is_root()) SKIP("needs root, to give files away");
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(30)));
  SECTION("the file") {
    REQUIRE(::chown(path.c_str(), somebody_else, 0) == 0);
    check_refused(path, "it belongs to user 65534, this process is user 0");
  }
  SECTION("the directory") {
    REQUIRE(::chown(folder.path().c_str(), somebody_else, 0) == 0);
    check_refused(path, "its directory belongs to user 65534, this process is user 0");
  }
  SECTION("the file, in a directory like /tmp") {
    REQUIRE(::chmod(folder.path().c_str(), 01777) == 0);
    REQUIRE(::chown(path.c_str(), somebody_else, 0) == 0);
    check_refused(path, "it belongs to user 65534");
  }
  SECTION("a directory like /tmp that is not root's") {
    REQUIRE(::chmod(folder.path().c_str(), 01777) == 0);
    REQUIRE(::chown(folder.path().c_str(), somebody_else, 0) == 0);
    check_refused(path, "its directory belongs to user 65534");
  }
  SECTION("nothing is saved into the directory either") {
    REQUIRE(::chown(folder.path().c_str(), somebody_else, 0) == 0);
    const Error error = save_cache(folder.file("new.bin"), some_identity(), some_payload(30));
    CHECK(error.code == Errc::io);
    CHECK(contains(error.message, "its directory belongs to user 65534"));
    CHECK(folder.names() == std::vector<std::string>{"cache.bin"});
    CHECK(load_cache(folder.file("new.bin"), some_identity()).state == FileState::missing);
  }
}

TEST_CASE("root's files are believed by everybody", "[keyed_file]") {
  if (!is_root()) SKIP("needs root, to become another user");
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(30)));
  REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  const int code = in_child([&] {
    if (!drop_root()) return cannot_drop_root;
    return load_cache(path, some_identity()).payload == some_payload(30) ? 0 : 1;
  });
  if (code == cannot_drop_root) SKIP("root here cannot become another user");
  CHECK(code == 0);
}

TEST_CASE("what every user may write to is refused, unless it is a directory like /tmp", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(30)));
  SECTION("the file") {
    REQUIRE(::chmod(path.c_str(), 0602) == 0);
    check_refused(path, "every user may write to it");
  }
  SECTION("the directory") {
    REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);
    check_refused(path, "every user may write to its directory");
  }
  SECTION("a sticky directory is fine") {
    REQUIRE(::chmod(folder.path().c_str(), 01777) == 0);
    check_used(path, some_payload(30), some_payload(40));
  }
  SECTION("so is a group that may write") {
    REQUIRE(::chmod(folder.path().c_str(), 0775) == 0);
    REQUIRE(::chmod(path.c_str(), 0664) == 0);
    check_used(path, some_payload(30), some_payload(40));
  }
}

TEST_CASE("another user's temporary files are not cleared away", "[keyed_file]") {
  if (!is_root()) SKIP("needs root, to give files away");
  TempFolder folder;
  const std::string theirs = ".cache.bin.brontes-1a-0-0123456789abcdef.tmp";
  spit(folder.file(theirs), {1});
  fs::last_write_time(folder.file(theirs), fs::file_time_type::clock::now() - std::chrono::hours(2));
  REQUIRE(::chown(folder.file(theirs).c_str(), somebody_else, 0) == 0);
  REQUIRE_FALSE(save_cache(folder.file("cache.bin"), some_identity(), some_payload(10)));
  CHECK(folder.names() == std::vector<std::string>{theirs, "cache.bin"});
}
