// SPDX-License-Identifier: MIT
#pragma once

#include <brontes/error.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// Files that are good for one device and driver only: what is remembered between runs of a program. Their
/// format and their default places. Knows no Vulkan, and of the payload no more than its bytes.
///
/// Such a file is one header and the payload, all integers little-endian:
///
///     offset  bytes
///          0      8  magic, by the kind of file
///          8      4  format version, by the kind of file
///         12      4  header size, 108
///         16      4  vendor id
///         20      4  device id
///         24      4  driver id
///         28      4  driver version
///         32      4  pointer bits
///         36     16  pipeline cache UUID
///         52     16  device UUID
///         68     16  driver UUID
///         84      8  payload size
///         92      8  checksum of the payload
///        100      8  checksum of bytes 0..99
///        108         payload
///
/// The checksums find damage, not malice: whoever may write the file may also forge it. trusted_file.hpp
/// says whose files are used, and how they are replaced.
///
/// Thread-safety: all functions may be called from any thread and any number of processes at once,
/// for the same path too. Those that are not noexcept throw std::bad_alloc and nothing else. default_path() reads the
/// environment, which must not be changed meanwhile.
namespace brontes::files {

struct FileKind {
  std::array<std::uint8_t, 8> magic;
  std::uint32_t version;
  const char* name;           ///< for messages
  const char* stem;           ///< of the default file's name
  const char* extension;      ///< likewise
  std::uint64_t max_payload;  ///< larger ones are neither saved nor loaded
};

/// The payload is what vkGetPipelineCacheData returned: kilobytes to a few megabytes.
inline constexpr FileKind pipeline_cache_file{
    {'B', 'R', 'O', 'N', 'T', 'P', 'C', '\n'}, 1, "pipeline cache", "pipelines", ".bin", std::uint64_t{512} << 20};
/// The payload is that of plan::serialize().
inline constexpr FileKind tuning_file{
    {'B', 'R', 'O', 'N', 'T', 'T', 'U', '\n'}, 1, "tuning file", "matmul", ".tuning", std::uint64_t{16} << 20};

inline constexpr std::size_t file_header_size = 108;

/// What a file was made by and for. It loads only where every field is equal.
struct FileIdentity {
  std::uint32_t vendor_id = 0;       ///< VkPhysicalDeviceProperties::vendorID
  std::uint32_t device_id = 0;       ///< VkPhysicalDeviceProperties::deviceID
  std::uint32_t driver_id = 0;       ///< VkPhysicalDeviceDriverProperties::driverID
  std::uint32_t driver_version = 0;  ///< VkPhysicalDeviceProperties::driverVersion
  /// Some drivers' caches differ between 32-bit and 64-bit processes under one UUID.
  std::uint32_t pointer_bits = static_cast<std::uint32_t>(sizeof(void*) * 8);
  std::array<std::uint8_t, 16> pipeline_cache_uuid{};  ///< VkPhysicalDeviceProperties
  std::array<std::uint8_t, 16> device_uuid{};          ///< VkPhysicalDeviceIDProperties
  std::array<std::uint8_t, 16> driver_uuid{};          ///< VkPhysicalDeviceIDProperties

  bool operator==(const FileIdentity&) const = default;
};

enum class FileState : std::uint8_t { missing, loaded, rejected };

/// What came of load_file().
struct FileLoad {
  FileState state = FileState::missing;
  std::vector<std::uint8_t> payload;  ///< empty unless loaded
  std::string note;                   ///< which file was rejected and why; empty unless rejected
};

/// The file for this device and driver in $XDG_CACHE_HOME/brontes, or $HOME/.cache/brontes where that is unset, empty
/// or relative. macOS: $HOME/Library/Caches; Windows: %LOCALAPPDATA%, and that only; Android: none. Creates nothing.
///
/// The name holds what lasts as long as the device: vendor, device, driver id, pointer bits and
/// device UUID. The driver's version is not in it, so an updated driver replaces its old file
/// rather than leaving it behind.
///
/// Empty, with the reason in `note`, where neither variable gives a directory, or in secure execution
/// (set-uid), where the environment is not trusted.
/// `note` is cleared otherwise.
std::string default_path(const FileKind& kind, const FileIdentity& identity, std::string& note) noexcept;

/// The file of this kind that goes with another one: its path with the extension of the kind. Where something else
/// than a regular file has that path, such as /dev/null, the path itself: both are refused then, for the same reason.
std::string companion_path(const FileKind& kind, const std::string& path);

/// What is noted of a file that is not used: "pipeline cache '/some/path' ignored: damaged".
std::string ignored_note(const FileKind& kind, const std::string& path, const std::string& reason);

/// Reads and checks the file. Anything but an undamaged file of this kind, format version and identity that
/// InputFile agrees to open is rejected, with a note; "out of memory" is one. Sizes written in the file
/// are believed only where they agree with the file's real size.
FileLoad load_file(const FileKind& kind, const std::string& path, const FileIdentity& identity) noexcept;

/// Replaces the file by one with this payload, as replace_file() does.
///
/// On failure the old file is as it was, no temporary file is left, and the Error is Errc::io with
/// the path and the reason, Errc::out_of_memory, or Errc::invalid_argument for a path that
/// ends in no file name.
Error save_file(const FileKind& kind, const std::string& path, const FileIdentity& identity,
                std::span<const std::uint8_t> payload) noexcept;

/// What such a file would hold, and what becomes of that: for whoever keeps the bytes elsewhere. Checked as a file is,
/// but for whose it is. The note names no path.
std::vector<std::uint8_t> file_bytes(const FileKind& kind, const FileIdentity& identity,
                                     std::span<const std::uint8_t> payload);
FileLoad load_bytes(const FileKind& kind, std::span<const std::uint8_t> bytes, const FileIdentity& identity);

/// The checksum of the format. It starts at h = (size + 1) * f, f = 0x9e3779b97f4a7c15, and takes
/// eight bytes at a time, little-endian, the last ones padded with zeros: h = (h ^ word) * f, then
/// h ^= h >> 32. Last comes the finaliser of MurmurHash3. Every step is a bijection, so damage
/// confined to one word is always found; other random damage goes unnoticed about once in 2^64.
std::uint64_t file_checksum(std::span<const std::uint8_t> bytes) noexcept;

}  // namespace brontes::files
