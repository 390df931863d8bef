// SPDX-License-Identifier: MIT
#include "files/keyed_file.hpp"

#include "files/trusted_file.hpp"
#include "util/bytes.hpp"
#include "util/environment.hpp"
#include "util/hash.hpp"
#include "util/hex.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace brontes::files {
namespace {

using Bytes = std::span<const std::uint8_t>;
using Uuid = std::array<std::uint8_t, 16>;
using HeaderBytes = std::array<std::uint8_t, file_header_size>;

constexpr std::size_t checksum_offset = file_header_size - 8;

struct Header {
  std::array<std::uint8_t, 8> magic{};
  std::uint32_t version = 0;
  std::uint32_t header_size = file_header_size;
  FileIdentity identity;
  std::uint64_t payload_size = 0;
  std::uint64_t payload_checksum = 0;
};

std::vector<std::uint8_t> encode(const Header& header) {
  util::ByteWriter writer;
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
  writer.u64(file_checksum(writer.out));
  return std::move(writer.out);
}

Header decode(const HeaderBytes& in) {
  Header header;
  util::ByteReader reader(in);
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
  return util::ByteReader(Bytes(in).subspan(checksum_offset)).u64();
}

/// What distinguishes the file's maker from this device; empty when nothing does.
std::string foreign_reason(const FileIdentity& file, const FileIdentity& here) {
  auto differs = [](const char* what, const std::string& theirs, const std::string& ours) {
    return std::string("made for ") + what + " " + theirs + ", this is " + ours;
  };
  auto number = [](std::uint32_t value) { return "0x" + util::hex(value, 8); };
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
    if (file.*member != here.*member) return differs(what, util::hex(file.*member), util::hex(here.*member));
  }
  return {};
}

/// Fills `payload` and returns an empty string, or returns why the file is no good.
template <class File>
std::string read_checked(File& file, const FileKind& kind, const FileIdentity& identity,
                         std::vector<std::uint8_t>& payload) {
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

/// Bytes that are read like a file.
class InputBytes {
 public:
  explicit InputBytes(Bytes bytes) : size_(bytes.size()), rest_(bytes) {}
  std::uint64_t size() const { return size_; }
  int read(std::span<std::uint8_t> out, std::size_t& got) {
    got = std::min(out.size(), rest_.size());
    std::copy_n(rest_.begin(), got, out.begin());
    rest_ = rest_.subspan(got);
    return 0;
  }

 private:
  std::size_t size_;
  Bytes rest_;
};

std::vector<std::uint8_t> header_of(const FileKind& kind, const FileIdentity& identity, Bytes payload) {
  Header header;
  header.magic = kind.magic;
  header.version = kind.version;
  header.identity = identity;
  header.payload_size = payload.size();
  header.payload_checksum = file_checksum(payload);
  return encode(header);
}

FileLoad load(const FileKind& kind, const std::string& path, const FileIdentity& identity) {
  FileLoad result;
  InputFile file;
  std::string reason;
  const InputFile::State state = file.open(path, reason);
  if (state == InputFile::State::missing) return result;
  if (state == InputFile::State::open) reason = read_checked(file, kind, identity, result.payload);
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
  if (!names_a_file(path)) {
    return Error(Errc::invalid_argument, not_saved + "the path ends in no file name");
  }
  if (payload.size() > kind.max_payload) {
    return Error(Errc::io, not_saved + "payload: " + std::to_string(payload.size()) + " bytes, at most " +
                               std::to_string(kind.max_payload) + " are kept");
  }
  const std::vector<std::uint8_t> head = header_of(kind, identity, payload);
  const std::string reason = replace_file(path, {head, payload});
  return reason.empty() ? Error() : Error(Errc::io, not_saved + reason);
}

/// An absolute path from the environment; empty where there is none.
std::string absolute_from_environment(const char* variable) {
  const char* value = util::environment(variable);
  if (value == nullptr || !std::filesystem::path(value).is_absolute()) return {};
  return value;
}

/// Where the system keeps caches of the user. Empty, with the reason, where there is no such place.
std::string user_cache(std::string& reason) {
#if defined(__ANDROID__)
  // Only the app knows its directory (Context.getCacheDir()), and HOME is nobody's.
  reason = "an Android app gives the path itself";
  return {};
#elif defined(_WIN32)
  std::string local = absolute_from_environment("LOCALAPPDATA");
  if (local.empty()) reason = "LOCALAPPDATA is no absolute path";
  return local;
#else
  std::string base = absolute_from_environment("XDG_CACHE_HOME");
  if (!base.empty()) return base;
  const std::string home = absolute_from_environment("HOME");
  // A home directory is not ours to create: service users have one like /nonexistent on purpose.
  std::error_code ignored;
  if (home.empty() || !std::filesystem::is_directory(home, ignored)) {
    reason = "XDG_CACHE_HOME is no absolute path and HOME no directory";
    return {};
  }
#  if defined(__APPLE__)
  return home + "/Library/Caches";
#  else
  return home + "/.cache";
#  endif
#endif
}

std::string find_default_path(const FileKind& kind, const FileIdentity& identity, std::string& note) {
  if (util::secure_execution()) {
    note = std::string(kind.name) + " off: the process has rights that its user lacks";
    return {};
  }
  std::string reason;
  const std::string base = user_cache(reason);
  if (base.empty()) {
    note = std::string(kind.name) + " off: " + reason;
    return {};
  }
  return base + "/brontes/" + kind.stem + "-" + util::hex(identity.vendor_id, 4) + "-" +
         util::hex(identity.device_id, 4) + "-" + std::to_string(identity.driver_id) + "-" +
         std::to_string(identity.pointer_bits) + "bit-" + util::hex(file_checksum(identity.device_uuid), 16) +
         kind.extension;
}

}  // namespace

std::uint64_t file_checksum(std::span<const std::uint8_t> bytes) noexcept {
  std::uint64_t hash = (std::uint64_t{bytes.size()} + 1) * util::hash_factor;
  while (!bytes.empty()) {
    const std::size_t taken = std::min<std::size_t>(bytes.size(), 8);
    hash = util::mix(hash, util::ByteReader(bytes).integer(taken));
    bytes = bytes.subspan(taken);
  }
  return util::finish(hash);
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

std::string companion_path(const FileKind& kind, const std::string& path) {
  std::error_code ignored;
  switch (std::filesystem::symlink_status(path, ignored).type()) {
    case std::filesystem::file_type::none:  // unknown: for load_file() to find out
    case std::filesystem::file_type::not_found:
    case std::filesystem::file_type::regular: return path + kind.extension;
    default: return path;
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

std::vector<std::uint8_t> file_bytes(const FileKind& kind, const FileIdentity& identity,
                                     std::span<const std::uint8_t> payload) {
  std::vector<std::uint8_t> bytes = header_of(kind, identity, payload);
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

FileLoad load_bytes(const FileKind& kind, std::span<const std::uint8_t> bytes, const FileIdentity& identity) {
  FileLoad result;
  InputBytes file(bytes);
  const std::string reason = read_checked(file, kind, identity, result.payload);
  if (reason.empty()) {
    result.state = FileState::loaded;
    return result;
  }
  result.state = FileState::rejected;
  result.payload = {};
  result.note = std::string(kind.name) + " ignored: " + reason;
  return result;
}

Error save_file(const FileKind& kind, const std::string& path, const FileIdentity& identity,
                std::span<const std::uint8_t> payload) noexcept {
  try {
    return save(kind, path, identity, payload);
  } catch (...) {
    return Error(Errc::out_of_memory, "out of memory");
  }
}

}  // namespace brontes::files
