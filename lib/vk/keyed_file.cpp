// SPDX-License-Identifier: MIT
#include "vk/keyed_file.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#if defined(_WIN32)
#  include <process.h>

#  include <fstream>
#else
#  include <fcntl.h>
#  include <sys/stat.h>
#  include <sys/types.h>
#  include <unistd.h>
#endif

namespace brontes::vk {
namespace {

using Bytes = std::span<const std::uint8_t>;
using Uuid = std::array<std::uint8_t, 16>;
using HeaderBytes = std::array<std::uint8_t, file_header_size>;

constexpr std::size_t checksum_offset = file_header_size - 8;
constexpr auto stale_after = std::chrono::hours(1);

struct Header {
  std::array<std::uint8_t, 8> magic{};
  std::uint32_t version = 0;
  std::uint32_t header_size = file_header_size;
  FileIdentity identity;
  std::uint64_t payload_size = 0;
  std::uint64_t payload_checksum = 0;
};

class Writer {
 public:
  explicit Writer(HeaderBytes& out) : out_(out) {}

  void bytes(Bytes from) {
    std::copy(from.begin(), from.end(), out_.begin() + static_cast<std::ptrdiff_t>(at_));
    at_ += from.size();
  }
  void u32(std::uint32_t value) { integer(value, 4); }
  void u64(std::uint64_t value) { integer(value, 8); }
  std::size_t position() const { return at_; }

 private:
  void integer(std::uint64_t value, unsigned size) {
    for (unsigned i = 0; i < size; ++i) out_[at_++] = static_cast<std::uint8_t>(value >> (8 * i));
  }

  HeaderBytes& out_;
  std::size_t at_ = 0;
};

class Reader {
 public:
  explicit Reader(const HeaderBytes& in) : in_(in) {}

  void skip(std::size_t count) { at_ += count; }
  void bytes(std::span<std::uint8_t> to) {
    for (std::uint8_t& byte : to) byte = in_[at_++];
  }
  std::uint32_t u32() { return static_cast<std::uint32_t>(integer(4)); }
  std::uint64_t u64() { return integer(8); }

 private:
  std::uint64_t integer(unsigned size) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < size; ++i) value |= std::uint64_t{in_[at_++]} << (8 * i);
    return value;
  }

  const HeaderBytes& in_;
  std::size_t at_ = 0;
};

HeaderBytes encode(const Header& header) {
  HeaderBytes out{};
  Writer writer(out);
  writer.bytes(header.magic);
  writer.u32(header.version);
  writer.u32(header.header_size);
  writer.u32(header.identity.vendor_id);
  writer.u32(header.identity.device_id);
  writer.u32(header.identity.driver_id);
  writer.u32(header.identity.driver_version);
  writer.u32(header.identity.pointer_bits);
  writer.bytes(header.identity.pipeline_cache_uuid);
  writer.bytes(header.identity.device_uuid);
  writer.bytes(header.identity.driver_uuid);
  writer.u64(header.payload_size);
  writer.u64(header.payload_checksum);
  writer.u64(file_checksum(Bytes(out).first(writer.position())));
  return out;
}

Header decode(const HeaderBytes& in) {
  Header header;
  Reader reader(in);
  reader.bytes(header.magic);
  header.version = reader.u32();
  header.header_size = reader.u32();
  header.identity.vendor_id = reader.u32();
  header.identity.device_id = reader.u32();
  header.identity.driver_id = reader.u32();
  header.identity.driver_version = reader.u32();
  header.identity.pointer_bits = reader.u32();
  reader.bytes(header.identity.pipeline_cache_uuid);
  reader.bytes(header.identity.device_uuid);
  reader.bytes(header.identity.driver_uuid);
  header.payload_size = reader.u64();
  header.payload_checksum = reader.u64();
  return header;
}

std::uint64_t stored_header_checksum(const HeaderBytes& in) {
  Reader reader(in);
  reader.skip(checksum_offset);
  return reader.u64();
}

std::string hex(std::uint64_t value, int digits) {
  char text[17];
  std::snprintf(text, sizeof text, "%0*llx", digits, static_cast<unsigned long long>(value));
  return text;
}

std::string hex(const Uuid& uuid) {
  std::string text;
  for (std::uint8_t byte : uuid) text += hex(byte, 2);
  return text;
}

std::string system_text(int error) { return std::generic_category().message(error); }

/// What distinguishes the file's maker from this device; empty when nothing does.
std::string foreign_reason(const FileIdentity& file, const FileIdentity& here) {
  auto differs = [](const char* what, const std::string& theirs, const std::string& ours) {
    return std::string("made for ") + what + " " + theirs + ", this is " + ours;
  };
  auto number = [](std::uint32_t value) { return "0x" + hex(value, 8); };
  const std::pair<const char*, std::uint32_t FileIdentity::*> numbers[] = {
      {"vendor", &FileIdentity::vendor_id},          {"device", &FileIdentity::device_id},
      {"driver id", &FileIdentity::driver_id},       {"driver version", &FileIdentity::driver_version},
      {"pointer bits", &FileIdentity::pointer_bits},
  };
  for (auto [what, member] : numbers) {
    if (file.*member != here.*member) {
      return differs(what, number(file.*member), number(here.*member));
    }
  }
  const std::pair<const char*, Uuid FileIdentity::*> uuids[] = {
      {"pipeline cache UUID", &FileIdentity::pipeline_cache_uuid},
      {"device UUID", &FileIdentity::device_uuid},
      {"driver UUID", &FileIdentity::driver_uuid},
  };
  for (auto [what, member] : uuids) {
    if (file.*member != here.*member) return differs(what, hex(file.*member), hex(here.*member));
  }
  return {};
}

#if defined(_WIN32)

int process_id() { return _getpid(); }
bool has_foreign_rights() { return false; }

int make_directories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return error ? error.default_error_condition().value() : 0;
}

class InputFile {
 public:
  int open(const std::string& path) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (status.type() == std::filesystem::file_type::not_found) return ENOENT;
    if (error) return error.default_error_condition().value();
    is_directory_ = std::filesystem::is_directory(status);
    is_regular_ = std::filesystem::is_regular_file(status);
    if (!is_regular_) return 0;
    size_ = std::filesystem::file_size(path, error);
    stream_.open(path, std::ios::binary);
    return error || !stream_ ? EIO : 0;
  }
  bool is_directory() const { return is_directory_; }
  bool is_regular() const { return is_regular_; }
  std::uint64_t size() const { return size_; }

  int read(std::span<std::uint8_t> out, std::size_t& got) {
    stream_.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()));
    got = static_cast<std::size_t>(stream_.gcount());
    return stream_.bad() ? EIO : 0;
  }

 private:
  std::ifstream stream_;
  bool is_directory_ = false;
  bool is_regular_ = false;
  std::uint64_t size_ = 0;
};

/// A file that is gone again unless it is published under its final name.
class TemporaryFile {
 public:
  TemporaryFile() = default;
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (path_.empty()) return;
    stream_.close();
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  int create(std::string path) {
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) return EEXIST;
    stream_.open(path, std::ios::binary | std::ios::trunc);
    if (!stream_) return EACCES;
    path_ = std::move(path);
    return 0;
  }
  int write(Bytes bytes) {
    stream_.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return stream_ ? 0 : EIO;
  }
  int finish() {
    stream_.close();
    return stream_ ? 0 : EIO;
  }
  int publish(const std::string& path) {
    std::error_code error;
    std::filesystem::rename(path_, path, error);
    if (error) return error.default_error_condition().value();
    path_.clear();
    return 0;
  }

 private:
  std::ofstream stream_;
  std::string path_;
};

#else

int process_id() { return static_cast<int>(::getpid()); }
bool has_foreign_rights() { return ::geteuid() != ::getuid() || ::getegid() != ::getgid(); }

/// 0 when the directory is there in the end, else an errno.
int make_directories(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) return 0;
  int error = errno;
  if (error == ENOENT) {
    const std::size_t last = path.find_last_not_of('/');
    const std::size_t slash = last == std::string::npos ? last : path.rfind('/', last);
    if (slash == std::string::npos || slash == 0) return error;
    if (int parent = make_directories(path.substr(0, slash))) return parent;
    if (::mkdir(path.c_str(), 0700) == 0) return 0;
    error = errno;
  }
  // Not only EEXIST: on a read-only or automounted file system mkdir may give another reason first.
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return error;
  return S_ISDIR(status.st_mode) ? 0 : ENOTDIR;
}

class InputFile {
 public:
  InputFile() = default;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  /// 0 or an errno.
  int open(const std::string& path) {
    // O_NONBLOCK: a FIFO in the file's place must not hang the program.
    do {
      descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    } while (descriptor_ < 0 && errno == EINTR);
    if (descriptor_ < 0) return errno;
    return ::fstat(descriptor_, &status_) == 0 ? 0 : errno;
  }
  bool is_directory() const { return S_ISDIR(status_.st_mode); }
  bool is_regular() const { return S_ISREG(status_.st_mode); }
  std::uint64_t size() const { return static_cast<std::uint64_t>(status_.st_size); }

  /// 0 or an errno. `got` is smaller than the span only at the end of the file.
  int read(std::span<std::uint8_t> out, std::size_t& got) {
    got = 0;
    while (got < out.size()) {
      const ssize_t count = ::read(descriptor_, out.data() + got, out.size() - got);
      if (count == 0) return 0;
      if (count > 0) {
        got += static_cast<std::size_t>(count);
      } else if (errno != EINTR) {
        return errno;
      }
    }
    return 0;
  }

 private:
  int descriptor_ = -1;
  struct stat status_ {};
};

/// A file that is gone again unless it is published under its final name. All functions give 0 or
/// an errno.
class TemporaryFile {
 public:
  TemporaryFile() = default;
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  int create(std::string path) {
    do {
      descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    } while (descriptor_ < 0 && errno == EINTR);
    if (descriptor_ < 0) return errno;
    path_ = std::move(path);
    return 0;
  }

  int write(Bytes bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
      if (count > 0) {
        bytes = bytes.subspan(static_cast<std::size_t>(count));
      } else if (count == 0) {
        return EIO;
      } else if (errno != EINTR) {
        return errno;
      }
    }
    return 0;
  }

  /// Without the sync, a crash of the machine could leave the new name on a file still empty. The
  /// directory needs none: whether it holds the old file or the new one, it is a valid cache.
  int finish() {
    while (::fsync(descriptor_) != 0) {
      if (errno == EINTR) continue;
      if (errno == EINVAL || errno == ENOTSUP) break;  // a file system that cannot sync
      return errno;
    }
    const int closed = ::close(std::exchange(descriptor_, -1));
    return closed == 0 || errno == EINTR ? 0 : errno;
  }

  int publish(const std::string& path) {
    if (::rename(path_.c_str(), path.c_str()) != 0) return errno;
    path_.clear();
    return 0;
  }

 private:
  int descriptor_ = -1;
  std::string path_;
};

#endif

struct Location {
  std::string directory;
  std::string file;
};

Location split(const std::string& path) {
#if defined(_WIN32)
  const std::size_t slash = path.find_last_of("/\\");
#else
  const std::size_t slash = path.rfind('/');
#endif
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

/// Temporary names are ".FILE.brontes-PID-COUNT-RANDOM.tmp", in hex. A long FILE is cut so that the
/// whole stays within the usual 255 bytes of a name.
std::string temporary_prefix(const std::string& file) { return "." + file.substr(0, 180) + ".brontes-"; }
constexpr std::string_view temporary_suffix = ".tmp";

std::string temporary_name(const std::string& file) {
  static std::atomic<std::uint32_t> counter{0};
  const std::uint32_t count = counter.fetch_add(1, std::memory_order_relaxed);
  const auto pid = static_cast<std::uint32_t>(process_id());
  // Containers that share a directory may share process ids too, so those two do not suffice.
  // O_EXCL catches what is left.
  std::array<std::uint8_t, 24> seed{};
  std::uint64_t values[] = {static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()),
                            static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()),
                            static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(seed.data()))};
  for (std::size_t i = 0; i < seed.size(); ++i) {
    seed[i] = static_cast<std::uint8_t>(values[i / 8] >> (8 * (i % 8)));
  }
  return temporary_prefix(file) + hex(pid, 1) + "-" + hex(count, 1) + "-" + hex(file_checksum(seed), 16) +
         std::string(temporary_suffix);
}

bool is_temporary_of(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix) || !name.ends_with(temporary_suffix)) return false;
  if (name.size() <= prefix.size() + temporary_suffix.size()) return false;
  name.remove_prefix(prefix.size());
  name.remove_suffix(temporary_suffix.size());
  return name.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
}

/// Best effort: whatever cannot be listed or removed stays.
void remove_stale_temporaries(const Location& location) {
  namespace fs = std::filesystem;
  const std::string prefix = temporary_prefix(location.file);
  const auto now = fs::file_time_type::clock::now();
  std::error_code error;
  fs::directory_iterator entry(location.directory, error);
  while (!error && entry != fs::directory_iterator()) {
    std::error_code ignored;
    if (is_temporary_of(entry->path().filename().string(), prefix) &&
        fs::is_regular_file(entry->symlink_status(ignored))) {
      const auto written = fs::last_write_time(entry->path(), ignored);
      if (!ignored && now - written > stale_after) fs::remove(entry->path(), ignored);
    }
    entry.increment(error);
  }
}

/// Fills `payload` and returns an empty string, or returns why the file is no good.
std::string read_checked(InputFile& file, const FileKind& kind, const FileIdentity& identity,
                         std::vector<std::uint8_t>& payload) {
  if (file.is_directory()) return "it is a directory";
  if (!file.is_regular()) return "it is not a regular file";
  const std::uint64_t size = file.size();
  const std::string size_text = std::to_string(size) + " bytes";
  if (size < file_header_size) {
    return "truncated: " + size_text + ", the header alone has " + std::to_string(file_header_size);
  }
  if (size - file_header_size > kind.max_payload) {
    return "implausibly large: " + size_text + ", at most " + std::to_string(kind.max_payload + file_header_size) +
           " expected";
  }

  HeaderBytes bytes{};
  std::size_t got = 0;
  if (int error = file.read(bytes, got)) return "cannot be read: " + system_text(error);
  if (got != bytes.size()) return "truncated while it was being read";
  const Header header = decode(bytes);
  if (header.magic != kind.magic) return std::string("not a Brontes ") + kind.name;
  // Before the checksum, whose place another version may have moved.
  if (header.version != kind.version) {
    return "format version " + std::to_string(header.version) + ", this library writes " + std::to_string(kind.version);
  }
  if (header.header_size != file_header_size) {
    return "damaged: header size " + std::to_string(header.header_size) + ", expected " +
           std::to_string(file_header_size);
  }
  if (stored_header_checksum(bytes) != file_checksum(Bytes(bytes).first(checksum_offset))) {
    return "damaged: the header's checksum does not match";
  }
  if (std::string reason = foreign_reason(header.identity, identity); !reason.empty()) {
    return reason;
  }
  const std::uint64_t rest = size - file_header_size;
  if (header.payload_size != rest) {
    return std::string(header.payload_size > rest ? "truncated" : "damaged") + ": " + std::to_string(rest) +
           " bytes of payload, the header says " + std::to_string(header.payload_size);
  }

  payload.resize(static_cast<std::size_t>(rest));
  if (int error = file.read(payload, got)) return "cannot be read: " + system_text(error);
  if (got != payload.size()) return "truncated while it was being read";
  if (file_checksum(payload) != header.payload_checksum) {
    return "damaged: the payload's checksum does not match";
  }
  return {};
}

FileLoad load(const FileKind& kind, const std::string& path, const FileIdentity& identity) {
  FileLoad result;
  InputFile file;
  const int error = file.open(path);
  if (error == ENOENT) return result;
  const std::string reason =
      error != 0 ? "cannot be opened: " + system_text(error) : read_checked(file, kind, identity, result.payload);
  if (reason.empty()) {
    result.state = FileState::loaded;
    return result;
  }
  result.state = FileState::rejected;
  result.payload = {};
  result.note = ignored_note(kind, path, reason);
  return result;
}

Error save(const FileKind& kind, const std::string& path, const FileIdentity& identity, Bytes payload) {
  const std::string not_saved = std::string(kind.name) + " '" + path + "' not saved: ";
  auto failed = [&](const char* step, const std::string& reason) {
    return Error(Errc::io, not_saved + step + ": " + reason);
  };
  const Location location = split(path);
  if (location.file.empty() || location.file == "." || location.file == "..") {
    return Error(Errc::invalid_argument, not_saved + "the path ends in no file name");
  }
  if (payload.size() > kind.max_payload) {
    return failed("payload",
                  std::to_string(payload.size()) + " bytes, at most " + std::to_string(kind.max_payload) + " are kept");
  }
  if (int error = make_directories(location.directory)) {
    return failed("creating the directory", system_text(error));
  }
  remove_stale_temporaries(location);

  Header header;
  header.magic = kind.magic;
  header.version = kind.version;
  header.identity = identity;
  header.payload_size = payload.size();
  header.payload_checksum = file_checksum(payload);
  const HeaderBytes head = encode(header);

  const std::string folder = location.directory == "/" ? "/" : location.directory + "/";
  TemporaryFile file;
  int error = EEXIST;
  for (int attempt = 0; attempt < 16 && error == EEXIST; ++attempt) {
    error = file.create(folder + temporary_name(location.file));
  }
  if (error != 0) return failed("creating a temporary file", system_text(error));
  error = file.write(head);
  if (error == 0) error = file.write(payload);
  if (error == 0) error = file.finish();
  if (error != 0) return failed("writing", system_text(error));
  error = file.publish(path);
  if (error != 0) return failed("renaming the temporary file", system_text(error));
  return {};
}

/// An absolute path from the environment; empty where there is none.
std::string absolute_from_environment(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || !std::filesystem::path(value).is_absolute()) return {};
  return value;
}

std::string find_default_path(const FileKind& kind, const FileIdentity& identity, std::string& note) {
  if (has_foreign_rights()) {
    note = std::string(kind.name) + " off: the process runs with another user's rights";
    return {};
  }
  std::string base = absolute_from_environment("XDG_CACHE_HOME");
  if (base.empty()) {
    const std::string home = absolute_from_environment("HOME");
    // A home directory is not ours to create: service users have one like /nonexistent on purpose.
    std::error_code ignored;
    if (home.empty() || !std::filesystem::is_directory(home, ignored)) {
      note = std::string(kind.name) + " off: XDG_CACHE_HOME is no absolute path and HOME no directory";
      return {};
    }
    base = home + "/.cache";
  }
  return base + "/brontes/" + kind.stem + "-" + hex(identity.vendor_id, 4) + "-" + hex(identity.device_id, 4) + "-" +
         std::to_string(identity.driver_id) + "-" + std::to_string(identity.pointer_bits) + "bit-" +
         hex(file_checksum(identity.device_uuid), 16) + kind.extension;
}

}  // namespace

std::uint64_t file_checksum(std::span<const std::uint8_t> bytes) noexcept {
  constexpr std::uint64_t factor = 0x9e3779b97f4a7c15u;
  std::uint64_t hash = (std::uint64_t{bytes.size()} + 1) * factor;
  auto add = [&](Bytes eight_or_fewer) {
    std::uint64_t word = 0;
    for (unsigned shift = 0; std::uint8_t byte : eight_or_fewer) {
      word |= std::uint64_t{byte} << shift;
      shift += 8;
    }
    hash = (hash ^ word) * factor;
    hash ^= hash >> 32;
  };
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) add(bytes.first<8>());
  if (!bytes.empty()) add(bytes);
  hash ^= hash >> 33;
  hash *= 0xff51afd7ed558ccdu;
  hash ^= hash >> 33;
  hash *= 0xc4ceb9fe1a85ec53u;
  hash ^= hash >> 33;
  return hash;
}

std::string ignored_note(const FileKind& kind, const std::string& path, const std::string& reason) {
  return std::string(kind.name) + " '" + path + "' ignored: " + reason;
}

// The catch clauses build texts short enough for std::string to hold without allocating.

std::string default_path(const FileKind& kind, const FileIdentity& identity, std::string& note) noexcept {
  try {
    note.clear();
    return find_default_path(kind, identity, note);
  } catch (...) {
    note = "out of memory";
    return {};
  }
}

FileLoad load_file(const FileKind& kind, const std::string& path, const FileIdentity& identity) noexcept {
  try {
    return load(kind, path, identity);
  } catch (...) {
    FileLoad result;
    result.state = FileState::rejected;
    result.note = "out of memory";
    return result;
  }
}

Error save_file(const FileKind& kind, const std::string& path, const FileIdentity& identity,
                std::span<const std::uint8_t> payload) noexcept {
  try {
    return save(kind, path, identity, payload);
  } catch (...) {
    return Error(Errc::out_of_memory, "out of memory");
  }
}

}  // namespace brontes::vk
