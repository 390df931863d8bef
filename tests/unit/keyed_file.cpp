// SPDX-License-Identifier: MIT
#include "vk/keyed_file.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;

using namespace brontes;
using vk::file_checksum;
using vk::file_header_size;
using vk::FileIdentity;
using vk::FileKind;
using vk::FileLoad;
using vk::FileState;
using vk::pipeline_cache_file;

namespace {

using Data = std::vector<std::uint8_t>;

// What holds for one kind of file holds for all.
FileLoad load_cache(const std::string& path, const FileIdentity& identity) {
  return vk::load_file(pipeline_cache_file, path, identity);
}
Error save_cache(const std::string& path, const FileIdentity& identity, std::span<const std::uint8_t> payload) {
  return vk::save_file(pipeline_cache_file, path, identity, payload);
}
std::string default_cache_path(const FileIdentity& identity, std::string& note) {
  return vk::default_path(pipeline_cache_file, identity, note);
}

/// Where the format puts its fields; see keyed_file.hpp.
constexpr std::size_t version_offset = 8;
constexpr std::size_t header_size_offset = 12;
constexpr std::size_t payload_size_offset = 84;
constexpr std::size_t header_checksum_offset = 100;

class TempFolder {
 public:
  TempFolder() {
    std::string name = (fs::temp_directory_path() / "brontes-cache-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(path_)) out.push_back(entry.path().filename());
    std::sort(out.begin(), out.end());
    return out;
  }

 private:
  std::string path_;
};

/// An environment variable set, or unset by nullopt, until the end of the scope.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, std::optional<std::string> value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    set(value);
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;
  ~ScopedVariable() { set(old_); }

 private:
  void set(const std::optional<std::string>& value) {
    if (value) {
      ::setenv(name_, value->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

  const char* name_;
  std::optional<std::string> old_;
};

FileIdentity some_identity() {
  FileIdentity identity;
  identity.vendor_id = 0x10005;
  identity.device_id = 0x1234;
  identity.driver_id = 13;
  identity.driver_version = 0x01002003;
  for (std::uint8_t i = 0; i < 16; ++i) {
    identity.pipeline_cache_uuid[i] = static_cast<std::uint8_t>(0x10 + i);
    identity.device_uuid[i] = static_cast<std::uint8_t>(0x40 + i);
    identity.driver_uuid[i] = static_cast<std::uint8_t>(0x80 + i);
  }
  return identity;
}

Data some_payload(std::size_t size, std::uint32_t seed = 1) {
  Data out(size);
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::uint8_t& byte : out) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::uint8_t>(state >> 24);
  }
  return out;
}

Data slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return Data(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

void spit(const std::string& path, const Data& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  REQUIRE(out.flush());
}

void put_little_endian(Data& bytes, std::size_t offset, std::uint64_t value, unsigned size) {
  for (unsigned i = 0; i < size; ++i) {
    bytes[offset + i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

/// Makes a header that was tampered with valid again, as another library version would write it.
void fix_header_checksum(Data& bytes) {
  const auto covered = std::span<const std::uint8_t>(bytes).first(header_checksum_offset);
  put_little_endian(bytes, header_checksum_offset, file_checksum(covered), 8);
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void check_rejected(const FileLoad& load, const std::string& path, const std::string& reason) {
  INFO(load.note);
  CHECK(load.state == FileState::rejected);
  CHECK(load.payload.empty());
  CHECK(contains(load.note, path));
  CHECK(contains(load.note, reason));
}

/// Runs `body` in a process of its own and gives its exit code, or -1 where it was killed. Catch2's
/// macros must not be used in there.
template <class Body>
int in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

constexpr int cannot_drop_root = 77;

/// Root may write anywhere, so a test of permissions becomes another user first.
bool drop_root() { return ::geteuid() != 0 || (::setgid(65534) == 0 && ::setuid(65534) == 0); }

}  // namespace

TEST_CASE("a saved cache loads with the same payload", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  for (std::size_t size : {0u, 1u, 7u, 8u, 9u, 4096u, 3000001u}) {
    const Data payload = some_payload(size);
    const Error error = save_cache(path, some_identity(), payload);
    INFO(error.message);
    REQUIRE_FALSE(error);
    CHECK(fs::file_size(path) == file_header_size + size);
    const FileLoad load = load_cache(path, some_identity());
    CHECK(load.state == FileState::loaded);
    CHECK(load.note.empty());
    CHECK(load.payload == payload);
  }
  CHECK(folder.names() == std::vector<std::string>{"cache.bin"});
}

TEST_CASE("the file format is little-endian and stays as it is", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  FileIdentity identity = some_identity();
  identity.pointer_bits = 64;
  REQUIRE_FALSE(save_cache(path, identity, Data{1, 2, 3}));
  Data expected = {'B',  'R',  'O',  'N',  'T', 'P', 'C', '\n', 1, 0, 0,    0,    108,  0,    0,  0, 0x05, 0x00,
                   0x01, 0x00, 0x34, 0x12, 0,   0,   13,  0,    0, 0, 0x03, 0x20, 0x00, 0x01, 64, 0, 0,    0};
  for (std::uint8_t base : {std::uint8_t{0x10}, std::uint8_t{0x40}, std::uint8_t{0x80}}) {
    for (std::uint8_t i = 0; i < 16; ++i) expected.push_back(static_cast<std::uint8_t>(base + i));
  }
  expected.insert(expected.end(), {3, 0, 0, 0, 0, 0, 0, 0});
  // Computed apart, from the description in the header.
  CHECK(file_checksum(Data{}) == 0x9ca066f1a4ab2eeau);
  CHECK(file_checksum(Data{1, 2, 3}) == 0xde90ea5a36f70d3du);
  CHECK(file_checksum(Data{1, 2, 3, 4, 5, 6, 7, 8, 9}) == 0x057169846c3a5e9du);
  expected.resize(file_header_size);
  put_little_endian(expected, 92, 0xde90ea5a36f70d3du, 8);
  fix_header_checksum(expected);
  expected.insert(expected.end(), {1, 2, 3});
  CHECK(slurp(path) == expected);
}

TEST_CASE("a missing file is a cold start without a note", "[keyed_file]") {
  TempFolder folder;
  for (const char* name : {"missing.bin", "missing/folder/cache.bin"}) {
    const FileLoad load = load_cache(folder.file(name), some_identity());
    CHECK(load.state == FileState::missing);
    CHECK(load.payload.empty());
    CHECK(load.note.empty());
  }
  CHECK(load_cache("", some_identity()).state == FileState::missing);
}

TEST_CASE("a file cut at any length is rejected as truncated", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(100)));
  const Data whole = slurp(path);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    INFO("cut to " << length);
    spit(path, Data(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)));
    check_rejected(load_cache(path, some_identity()), path, "truncated");
  }
}

TEST_CASE("a file with bytes after its payload is rejected", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(100)));
  Data longer = slurp(path);
  longer.push_back(0);
  spit(path, longer);
  check_rejected(load_cache(path, some_identity()), path, "damaged");
}

TEST_CASE("every flipped bit of header and payload is noticed", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(61)));
  const Data whole = slurp(path);
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    INFO("bit " << bit % 8 << " of byte " << bit / 8);
    Data flipped = whole;
    flipped[bit / 8] = static_cast<std::uint8_t>(flipped[bit / 8] ^ (1u << (bit % 8)));
    spit(path, flipped);
    check_rejected(load_cache(path, some_identity()), path, "");
  }
}

TEST_CASE("a cache of another device or driver is rejected, naming what differs", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  const std::pair<const char*, void (*)(FileIdentity&)> changes[] = {
      {"vendor 0x00010005, this is 0x00010006", [](FileIdentity& i) { i.vendor_id += 1; }},
      {"device 0x00001234, this is 0x00001235", [](FileIdentity& i) { i.device_id += 1; }},
      {"driver id", [](FileIdentity& i) { i.driver_id += 1; }},
      {"driver version", [](FileIdentity& i) { i.driver_version += 1; }},
      {"pointer bits", [](FileIdentity& i) { i.pointer_bits ^= 96; }},
      {"pipeline cache UUID 1011", [](FileIdentity& i) { i.pipeline_cache_uuid[15] ^= 1; }},
      {"device UUID 4041", [](FileIdentity& i) { i.device_uuid[15] ^= 1; }},
      {"driver UUID 8081", [](FileIdentity& i) { i.driver_uuid[15] ^= 1; }},
  };
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(100)));
  for (auto [what, change] : changes) {
    INFO(what);
    FileIdentity other = some_identity();
    change(other);
    check_rejected(load_cache(path, other), path, what);
  }
}

TEST_CASE("a file of another kind is rejected, and the kinds have default files of their own", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(100)));
  const FileLoad load = vk::load_file(vk::tuning_file, path, some_identity());
  check_rejected(load, path, "not a Brontes tuning file");
  REQUIRE_FALSE(vk::save_file(vk::tuning_file, path, some_identity(), some_payload(10)));
  check_rejected(load_cache(path, some_identity()), path, "not a Brontes pipeline cache");

  ScopedVariable xdg("XDG_CACHE_HOME", "/some/cache");
  std::string note;
  const fs::path pipelines = default_cache_path(some_identity(), note);
  const fs::path tuning = vk::default_path(vk::tuning_file, some_identity(), note);
  CHECK(tuning.parent_path() == pipelines.parent_path());
  CHECK(tuning.extension() == ".tuning");
  CHECK(tuning != pipelines);
}

TEST_CASE("an older or newer format version is rejected by its number", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(100)));
  const Data whole = slurp(path);
  for (std::uint32_t version : {pipeline_cache_file.version - 1, pipeline_cache_file.version + 1}) {
    Data other = whole;
    put_little_endian(other, version_offset, version, 4);
    fix_header_checksum(other);
    spit(path, other);
    check_rejected(load_cache(path, some_identity()), path, "format version " + std::to_string(version));
  }
}

TEST_CASE("sizes in a header with a valid checksum are still not believed", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(100)));
  const Data whole = slurp(path);
  for (std::uint64_t size : {std::uint64_t{0}, std::uint64_t{99}, std::uint64_t{101}, pipeline_cache_file.max_payload,
                             ~std::uint64_t{0}, std::uint64_t{1} << 63}) {
    INFO("payload size " << size);
    Data other = whole;
    put_little_endian(other, payload_size_offset, size, 8);
    fix_header_checksum(other);
    spit(path, other);
    check_rejected(load_cache(path, some_identity()), path, size > 100 ? "truncated" : "damaged");
  }
  for (std::uint32_t size : {0u, 107u, 109u, 0xffffffffu}) {
    INFO("header size " << size);
    Data other = whole;
    put_little_endian(other, header_size_offset, size, 4);
    fix_header_checksum(other);
    spit(path, other);
    check_rejected(load_cache(path, some_identity()), path, "header size");
  }
}

TEST_CASE("an implausibly large file is rejected unread", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(100)));
  std::error_code error;
  fs::resize_file(path, pipeline_cache_file.max_payload + file_header_size + 1, error);  // sparse
  if (error) SKIP("no room for a sparse file: " << error.message());
  check_rejected(load_cache(path, some_identity()), path, "implausibly large");
}

TEST_CASE("what is no cache file at all is rejected", "[keyed_file]") {
  TempFolder folder;
  SECTION("another program's file") {
    spit(folder.file("cache.bin"), some_payload(5000));
    check_rejected(load_cache(folder.file("cache.bin"), some_identity()), "cache.bin", "not a Brontes pipeline cache");
  }
  SECTION("a directory") {
    check_rejected(load_cache(folder.path(), some_identity()), folder.path(), "is a directory");
  }
  SECTION("a FIFO, without waiting for its writer") {
    REQUIRE(::mkfifo(folder.file("fifo").c_str(), 0600) == 0);
    check_rejected(load_cache(folder.file("fifo"), some_identity()), "fifo", "not a regular file");
  }
  SECTION("a path through a regular file") {
    spit(folder.file("plain"), {});
    check_rejected(load_cache(folder.file("plain/cache.bin"), some_identity()), "plain/cache.bin",
                   std::strerror(ENOTDIR));
  }
}

TEST_CASE("an unreadable file is rejected with the system's reason", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(100)));
  REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
  REQUIRE(::chmod(path.c_str(), 0) == 0);
  const int code = in_child([&] {
    if (!drop_root()) return cannot_drop_root;
    const FileLoad load = load_cache(path, some_identity());
    return load.state == FileState::rejected && contains(load.note, std::strerror(EACCES)) ? 0 : 1;
  });
  if (code == cannot_drop_root) SKIP("root here cannot become another user");
  CHECK(code == 0);
}

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
    CHECK(contains(error.message, std::strerror(EISDIR)));
    CHECK(folder.names() == std::vector<std::string>{"cache.bin", "plain"});
  }
  SECTION("the path has no file name") {
    for (const std::string& path : {std::string(), folder.path() + "/", folder.path() + "/.."}) {
      CHECK(save_cache(path, some_identity(), some_payload(10)).code == Errc::invalid_argument);
    }
  }
  SECTION("the disk is full halfway") {
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

TEST_CASE("a rejected file is replaced by the next save", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("cache.bin");
  spit(path, some_payload(300));
  CHECK(load_cache(path, some_identity()).state == FileState::rejected);
  REQUIRE_FALSE(save_cache(path, some_identity(), some_payload(20)));
  CHECK(load_cache(path, some_identity()).payload == some_payload(20));
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
  const auto hours_ago = fs::file_time_type::clock::now() - std::chrono::hours(2);
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

TEST_CASE("eight processes saving at once leave one valid file and nothing else", "[keyed_file]") {
  TempFolder folder;
  const std::string path = folder.file("new/cache.bin");
  constexpr std::uint32_t processes = 8;
  // Different sizes too, so that a mixture of two writers could not pass.
  auto payload_of = [](std::uint32_t index) { return some_payload(20000 + 777 * index, index); };

  int start[2];
  REQUIRE(::pipe(start) == 0);
  std::vector<pid_t> children;
  for (std::uint32_t index = 0; index < processes; ++index) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      ::close(start[1]);
      const Data payload = payload_of(index);
      char byte = 0;
      if (::read(start[0], &byte, 1) != 0) ::_exit(2);  // until the parent closes its end
      for (int round = 0; round < 20; ++round) {
        if (save_cache(path, some_identity(), payload)) ::_exit(1);
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  ::close(start[0]);
  ::close(start[1]);

  auto is_one_of_them = [&](const Data& payload) {
    for (std::uint32_t index = 0; index < processes; ++index) {
      if (payload == payload_of(index)) return true;
    }
    return false;
  };
  std::string bad_load;
  for (std::size_t running = children.size(); running > 0;) {
    const FileLoad load = load_cache(path, some_identity());
    if (load.state == FileState::rejected) bad_load = load.note;
    if (load.state == FileState::loaded && !is_one_of_them(load.payload)) {
      bad_load = "a payload that nobody saved";
    }
    for (pid_t& child : children) {
      int status = 0;
      if (child == 0 || ::waitpid(child, &status, WNOHANG) != child) continue;
      CHECK(WIFEXITED(status));
      CHECK(WEXITSTATUS(status) == 0);
      child = 0;
      --running;
    }
  }
  CHECK(bad_load == "");
  const FileLoad load = load_cache(path, some_identity());
  REQUIRE(load.state == FileState::loaded);
  CHECK(is_one_of_them(load.payload));
  CHECK(std::distance(fs::directory_iterator(folder.file("new")), fs::directory_iterator()) == 1);
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

TEST_CASE("the default path follows the XDG rules", "[keyed_file]") {
  TempFolder home;
  std::string note = "left over";
  auto directory = [&] { return fs::path(default_cache_path(some_identity(), note)).parent_path().string(); };
  SECTION("XDG_CACHE_HOME comes first, and need not exist yet") {
    ScopedVariable h("HOME", home.path());
    ScopedVariable xdg("XDG_CACHE_HOME", "/some/cache");
    CHECK(directory() == "/some/cache/brontes");
    CHECK(note.empty());
  }
  SECTION("unset, empty or relative, it gives way to HOME") {
    ScopedVariable h("HOME", home.path());
    for (std::optional<std::string> value :
         {std::optional<std::string>(), std::optional<std::string>(""), std::optional<std::string>("relative/cache"),
          std::optional<std::string>("./cache")}) {
      ScopedVariable xdg("XDG_CACHE_HOME", value);
      CHECK(directory() == home.path() + "/.cache/brontes");
      CHECK(note.empty());
    }
  }
  SECTION("with no usable HOME either there is no path, and a note") {
    ScopedVariable xdg("XDG_CACHE_HOME", "relative");
    for (std::optional<std::string> value :
         {std::optional<std::string>(), std::optional<std::string>(""), std::optional<std::string>("relative"),
          std::optional<std::string>(home.file("missing"))}) {
      ScopedVariable h("HOME", value);
      CHECK(default_cache_path(some_identity(), note).empty());
      CHECK(contains(note, "HOME"));
    }
  }
  SECTION("a set-uid process has none") {
    ScopedVariable xdg("XDG_CACHE_HOME", "/some/cache");
    const int code = in_child([&] {
      if (::geteuid() != 0 || ::seteuid(65534) != 0) return cannot_drop_root;
      return default_cache_path(some_identity(), note).empty() && !note.empty() ? 0 : 1;
    });
    if (code == cannot_drop_root) SKIP("needs root");
    CHECK(code == 0);
  }
  CHECK(home.names().empty());
}

TEST_CASE("each device has its own default file, which outlives driver updates", "[keyed_file]") {
  ScopedVariable xdg("XDG_CACHE_HOME", "/some/cache");
  auto path_with = [](void (*change)(FileIdentity&)) {
    FileIdentity identity = some_identity();
    change(identity);
    std::string note;
    return default_cache_path(identity, note);
  };
  const std::string path = path_with([](FileIdentity&) {});
  CHECK(path != path_with([](FileIdentity& i) { i.vendor_id += 1; }));
  CHECK(path != path_with([](FileIdentity& i) { i.device_id += 1; }));
  CHECK(path != path_with([](FileIdentity& i) { i.driver_id += 1; }));
  CHECK(path != path_with([](FileIdentity& i) { i.pointer_bits ^= 96; }));
  CHECK(path != path_with([](FileIdentity& i) { i.device_uuid[3] ^= 1; }));
  CHECK(path == path_with([](FileIdentity& i) { i.driver_version += 1; }));
  CHECK(path == path_with([](FileIdentity& i) { i.driver_uuid[3] ^= 1; }));
  CHECK(path == path_with([](FileIdentity& i) { i.pipeline_cache_uuid[3] ^= 1; }));
}
