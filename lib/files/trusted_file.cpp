// SPDX-License-Identifier: MIT
#include "files/trusted_file.hpp"

#include "util/hex.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#if defined(_WIN32)
#  include <io.h>
#  include <process.h>
#else
#  include <dirent.h>
#  include <unistd.h>
#endif

namespace brontes::files {
namespace {

using Bytes = std::span<const std::uint8_t>;

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

constexpr const char* no_file_name = "the path ends in no file name";

std::string not_regular(const char* kind) { return "it is " + std::string(kind) + ", not a regular file"; }

/// Temporary names are ".FILE.brontes-PID-COUNT-TIME.tmp", in hex. A long FILE is cut so that the whole
/// stays within the usual 255 bytes of a name.
std::string temporary_prefix(const std::string& file) { return "." + file.substr(0, 180) + ".brontes-"; }
constexpr std::string_view temporary_suffix = ".tmp";
constexpr auto stale_after = std::chrono::hours(1);

std::string temporary_name(const std::string& file, int process) {
  static std::atomic<std::uint32_t> counter{0};
  const std::uint32_t count = counter.fetch_add(1, std::memory_order_relaxed);
  // Containers that share a directory may share process ids too, hence the time. Creating the file fails where
  // even that is not enough.
  const auto now = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  return temporary_prefix(file) + util::hex(static_cast<std::uint32_t>(process)) + "-" + util::hex(count) + "-" +
         util::hex(now) + std::string(temporary_suffix);
}

bool is_temporary_of(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix) || !name.ends_with(temporary_suffix)) return false;
  if (name.size() <= prefix.size() + temporary_suffix.size()) return false;
  name.remove_prefix(prefix.size());
  name.remove_suffix(temporary_suffix.size());
  return name.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
}

#if defined(_WIN32)

namespace fs = std::filesystem;

int process_id() { return _getpid(); }
int close_descriptor(int descriptor) { return ::_close(descriptor); }
auto read_some(int descriptor, std::uint8_t* to, std::size_t size) {
  return ::_read(descriptor, to, static_cast<unsigned>(size < (1u << 30) ? size : (1u << 30)));
}
auto write_some(int descriptor, const std::uint8_t* from, std::size_t size) {
  return ::_write(descriptor, from, static_cast<unsigned>(size < (1u << 30) ? size : (1u << 30)));
}
int sync(int descriptor) { return ::_commit(descriptor); }

int number_of(const std::error_code& error) { return error.default_error_condition().value(); }

/// Where names are looked up.
class Directory {
 public:
  int open(const std::string& path) {
    path_ = path;
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found) return ENOENT;
    if (error) return number_of(error);
    return fs::is_directory(status) ? 0 : ENOTDIR;
  }

  std::string distrust() const { return {}; }

  /// 0 or an errno. `reason` tells why what is there is not to be used.
  int inspect(const std::string& name, std::string& reason) const {
    std::error_code error;
    const fs::file_status status = fs::symlink_status(at(name), error);
    if (status.type() == fs::file_type::not_found) return ENOENT;
    if (error) return number_of(error);
    if (fs::is_directory(status)) {
      reason = not_regular("a directory");
    } else if (!fs::is_regular_file(status)) {
      reason = not_regular("a link or a device");
    }
    return 0;
  }

  int open_input(const std::string& name, int& descriptor, std::uint64_t& size, std::string&) const {
    descriptor = ::_open(at(name).c_str(), _O_RDONLY | _O_BINARY | _O_NOINHERIT);
    if (descriptor < 0) return errno;
    const auto end = ::_lseeki64(descriptor, 0, SEEK_END);
    if (end < 0 || ::_lseeki64(descriptor, 0, SEEK_SET) != 0) return errno;
    size = static_cast<std::uint64_t>(end);
    return 0;
  }

  int create(const std::string& name) const {
    return ::_open(at(name).c_str(), _O_WRONLY | _O_CREAT | _O_EXCL | _O_BINARY | _O_NOINHERIT, _S_IREAD | _S_IWRITE);
  }

  int rename(const std::string& from, const std::string& to) const {
    std::error_code error;
    fs::rename(at(from), at(to), error);
    return error ? number_of(error) : 0;
  }

  void remove(const std::string& name) const noexcept {
    try {
      ::_unlink(at(name).c_str());
    } catch (...) {  // no memory for the path: the file is stale one day
    }
  }

  void remove_stale(const std::string& prefix) const {
    const auto now = fs::file_time_type::clock::now();
    std::error_code error;
    fs::directory_iterator entry(path_, error);
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

 private:
  std::string at(const std::string& name) const { return path_ + "/" + name; }

  std::string path_;
};

int make_directories(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  return error ? number_of(error) : 0;
}

#else

int process_id() { return static_cast<int>(::getpid()); }
int close_descriptor(int descriptor) { return ::close(descriptor); }
auto read_some(int descriptor, std::uint8_t* to, std::size_t size) { return ::read(descriptor, to, size); }
auto write_some(int descriptor, const std::uint8_t* from, std::size_t size) { return ::write(descriptor, from, size); }
int sync(int descriptor) { return ::fsync(descriptor); }

using Status = struct stat;

/// Null for a regular file.
const char* other_kind(const Status& status) {
  if (S_ISREG(status.st_mode)) return nullptr;
  if (S_ISDIR(status.st_mode)) return "a directory";
  if (S_ISLNK(status.st_mode)) return "a symbolic link";
  if (S_ISCHR(status.st_mode)) return "a character device";
  if (S_ISBLK(status.st_mode)) return "a block device";
  if (S_ISFIFO(status.st_mode)) return "a FIFO";
  if (S_ISSOCK(status.st_mode)) return "a socket";
  return "something else";
}

bool foreign(const Status& status) { return status.st_uid != 0 && status.st_uid != ::geteuid(); }
bool writable_by_all(const Status& status) { return (status.st_mode & S_IWOTH) != 0; }

std::string belongs_to(const char* what, const Status& status) {
  return std::string(what) + " belongs to user " + std::to_string(status.st_uid) + ", this process is user " +
         std::to_string(::geteuid());
}

std::string distrust_of_file(const Status& status) {
  if (const char* kind = other_kind(status)) return not_regular(kind);
  if (foreign(status)) return belongs_to("it", status);
  return writable_by_all(status) ? "every user may write to it" : "";
}

template <class Call>
int retried(Call call) {
  int result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

/// Where names are looked up: the directory that was checked, whatever its path leads to by now. Functions give
/// 0 or an errno where they say nothing else.
class Directory {
 public:
  Directory() = default;
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  int open(const std::string& path) {
#  if defined(O_PATH)
    constexpr int access = O_PATH;  // may be searched, but perhaps not listed
#  else
    constexpr int access = O_RDONLY;
#  endif
    descriptor_ = retried([&] { return ::open(path.c_str(), access | O_DIRECTORY | O_CLOEXEC); });
    if (descriptor_ < 0) return errno;
    return ::fstat(descriptor_, &status_) == 0 ? 0 : errno;
  }

  /// Why no file in here is to be used; empty where nothing is wrong.
  std::string distrust() const {
    if (foreign(status_)) return belongs_to("its directory", status_);
    const bool sticky = (status_.st_mode & S_ISVTX) != 0;
    return writable_by_all(status_) && !sticky ? "every user may write to its directory" : "";
  }

  /// `reason` tells why what is there is not to be used.
  int inspect(const std::string& name, std::string& reason) const {
    Status status{};
    if (::fstatat(descriptor_, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return errno;
    reason = distrust_of_file(status);
    return 0;
  }

  /// What lies there may be another file than was inspected, hence the flags and the second look.
  int open_input(const std::string& name, int& descriptor, std::uint64_t& size, std::string& reason) const {
    descriptor = retried(
        [&] { return ::openat(descriptor_, name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW); });
    Status status{};
    if (descriptor < 0 || ::fstat(descriptor, &status) != 0) return errno;
    reason = distrust_of_file(status);
    size = static_cast<std::uint64_t>(status.st_size);
    return 0;
  }

  /// A descriptor, or -1 and errno.
  int create(const std::string& name) const {
    return retried([&] {
      return ::openat(descriptor_, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    });
  }

  int rename(const std::string& from, const std::string& to) const {
    return ::renameat(descriptor_, from.c_str(), descriptor_, to.c_str()) == 0 ? 0 : errno;
  }

  void remove(const std::string& name) const noexcept { ::unlinkat(descriptor_, name.c_str(), 0); }

  /// Best effort: whatever cannot be listed or removed stays.
  void remove_stale(const std::string& prefix) const noexcept {
    const int listed = retried([&] { return ::openat(descriptor_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (listed < 0) return;
    DIR* directory = ::fdopendir(listed);
    if (directory == nullptr) {
      ::close(listed);
      return;
    }
    const auto now = std::chrono::system_clock::now();
    while (const dirent* entry = ::readdir(directory)) {
      Status status{};
      if (!is_temporary_of(entry->d_name, prefix) ||
          ::fstatat(descriptor_, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || other_kind(status) != nullptr ||
          foreign(status)) {
        continue;
      }
      const auto written = std::chrono::system_clock::from_time_t(status.st_mtime);
      if (now - written > stale_after) ::unlinkat(descriptor_, entry->d_name, 0);
    }
    ::closedir(directory);
  }

 private:
  int descriptor_ = -1;
  Status status_{};
};

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
  Status status{};
  if (::stat(path.c_str(), &status) != 0) return error;
  return S_ISDIR(status.st_mode) ? 0 : ENOTDIR;
}

#endif

/// A file that is gone again unless it is published under its final name. All functions give 0 or an errno.
class TemporaryFile {
 public:
  explicit TemporaryFile(const Directory& directory) : directory_(directory) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) close_descriptor(descriptor_);
    if (!name_.empty()) directory_.remove(name_);
  }

  int create(std::string name) {
    descriptor_ = directory_.create(name);
    if (descriptor_ < 0) return errno;
    name_ = std::move(name);
    return 0;
  }

  int write(Bytes bytes) {
    while (!bytes.empty()) {
      const auto count = write_some(descriptor_, bytes.data(), bytes.size());
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
  /// directory needs none: whether it holds the old file or the new one, it is a whole one.
  int finish() {
    while (sync(descriptor_) != 0) {
      if (errno == EINTR) continue;
      if (errno == EINVAL || errno == ENOTSUP) break;  // a file system that cannot sync
      return errno;
    }
    const int closed = close_descriptor(std::exchange(descriptor_, -1));
    return closed == 0 || errno == EINTR ? 0 : errno;
  }

  int publish(const std::string& name) {
    if (int error = directory_.rename(name_, name)) return error;
    name_.clear();
    return 0;
  }

 private:
  const Directory& directory_;
  int descriptor_ = -1;
  std::string name_;
};

}  // namespace

std::string system_text(int error) { return std::generic_category().message(error); }

bool names_a_file(const std::string& path) {
  const std::string file = split(path).file;
  return !file.empty() && file != "." && file != ".." && path.find('\0') == std::string::npos;
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) close_descriptor(descriptor_);
}

InputFile::State InputFile::open(const std::string& path, std::string& reason) {
  if (path.empty()) return State::missing;
  if (!names_a_file(path)) {
    reason = no_file_name;
    return State::refused;
  }
  const Location location = split(path);
  Directory directory;
  int error = directory.open(location.directory);
  if (error == 0) error = directory.inspect(location.file, reason);
  if (error == 0 && reason.empty()) reason = directory.distrust();
  if (error == 0 && reason.empty()) error = directory.open_input(location.file, descriptor_, size_, reason);
  if (error == ENOENT) return State::missing;
  if (error != 0) reason = "cannot be opened: " + system_text(error);
  return reason.empty() ? State::open : State::refused;
}

int InputFile::read(std::span<std::uint8_t> out, std::size_t& got) {
  got = 0;
  while (got < out.size()) {
    const auto count = read_some(descriptor_, out.data() + got, out.size() - got);
    if (count == 0) return 0;
    if (count > 0) {
      got += static_cast<std::size_t>(count);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

std::string replace_file(const std::string& path, std::initializer_list<Bytes> parts) {
  auto failed = [](const char* step, int error) { return std::string(step) + ": " + system_text(error); };
  if (!names_a_file(path)) return no_file_name;
  const Location location = split(path);
  if (int error = make_directories(location.directory)) return failed("creating the directory", error);
  Directory directory;
  if (int error = directory.open(location.directory)) return failed("opening the directory", error);
  if (std::string reason = directory.distrust(); !reason.empty()) return reason;
  std::string reason;
  const int missing = directory.inspect(location.file, reason);
  if (missing != 0 && missing != ENOENT) return failed("looking for the old file", missing);
  if (!reason.empty()) return reason;
  directory.remove_stale(temporary_prefix(location.file));

  TemporaryFile file(directory);
  int error = EEXIST;
  for (int attempt = 0; attempt < 16 && error == EEXIST; ++attempt) {
    error = file.create(temporary_name(location.file, process_id()));
  }
  if (error != 0) return failed("creating a temporary file", error);
  for (Bytes part : parts) {
    if (error == 0) error = file.write(part);
  }
  if (error == 0) error = file.finish();
  if (error != 0) return failed("writing", error);
  error = file.publish(location.file);
  return error == 0 ? "" : failed("renaming the temporary file", error);
}

}  // namespace brontes::files
