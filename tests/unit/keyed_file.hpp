// What the tests of checked files share.
#pragma once

#include "files/keyed_file.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace brontes::test {

namespace fs = std::filesystem;

using files::file_checksum;
using files::file_header_size;
using files::FileIdentity;
using files::FileKind;
using files::FileLoad;
using files::FileState;
using files::pipeline_cache_file;

using Data = std::vector<std::uint8_t>;

// What holds for one kind of file holds for all.
inline FileLoad load_cache(const std::string& path, const FileIdentity& identity) {
  return files::load_file(pipeline_cache_file, path, identity);
}
inline Error save_cache(const std::string& path, const FileIdentity& identity, std::span<const std::uint8_t> payload) {
  return files::save_file(pipeline_cache_file, path, identity, payload);
}
inline std::string default_cache_path(const FileIdentity& identity, std::string& note) {
  return files::default_path(pipeline_cache_file, identity, note);
}

/// Where the format puts its fields; see keyed_file.hpp.
inline constexpr std::size_t version_offset = 8;
inline constexpr std::size_t header_size_offset = 12;
inline constexpr std::size_t payload_size_offset = 84;
inline constexpr std::size_t header_checksum_offset = 100;

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

inline FileIdentity some_identity() {
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

inline Data some_payload(std::size_t size, std::uint32_t seed = 1) {
  Data out(size);
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::uint8_t& byte : out) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::uint8_t>(state >> 24);
  }
  return out;
}

inline Data slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return Data(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

inline void spit(const std::string& path, const Data& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  REQUIRE(out.flush());
}

inline void put_little_endian(Data& bytes, std::size_t offset, std::uint64_t value, unsigned size) {
  for (unsigned i = 0; i < size; ++i) {
    bytes[offset + i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

/// Makes a header that was tampered with valid again, as another library version would write it.
inline void fix_header_checksum(Data& bytes) {
  const auto covered = std::span<const std::uint8_t>(bytes).first(header_checksum_offset);
  put_little_endian(bytes, header_checksum_offset, file_checksum(covered), 8);
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline void check_rejected(const FileLoad& load, const std::string& path, const std::string& reason) {
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

inline constexpr int cannot_drop_root = 77;

/// Root may write anywhere, so a test of permissions becomes another user first.
inline bool drop_root() { return ::geteuid() != 0 || (::setgid(65534) == 0 && ::setuid(65534) == 0); }

/// BRONTES_SOAK=1 asks for sweeps that take minutes.
inline bool soak() {
  const char* text = std::getenv("BRONTES_SOAK");
  return text != nullptr && std::string_view(text) == "1";
}

}  // namespace brontes::test
