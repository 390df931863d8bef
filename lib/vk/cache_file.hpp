// SPDX-License-Identifier: MIT
#pragma once

#include <brontes/error.hpp>
#include <brontes/pipeline_cache.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// The pipeline cache on disk: its format, and reading and writing it safely. Knows no Vulkan; the
/// payload is whatever vkGetPipelineCacheData returned.
///
/// The file is one header and the payload, all integers little-endian:
///
///     offset  bytes
///          0      8  magic, "BRONTPC\n"
///          8      4  format version
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
/// The checksums find damage, not malice: whoever may write the file may also forge it.
///
/// Thread-safety: all functions may be called from any thread and any number of processes at once,
/// for the same path too. None of them throws. default_cache_path() reads the environment, which
/// must not be changed meanwhile.
namespace brontes::vk {

inline constexpr std::uint32_t cache_format_version = 1;
inline constexpr std::size_t cache_header_size = 108;
/// Larger payloads are neither saved nor loaded. Real ones are kilobytes to a few megabytes.
inline constexpr std::uint64_t max_cache_payload = std::uint64_t{512} << 20;

/// What a cache was made by and for. A file loads only where every field is equal.
struct CacheIdentity {
  std::uint32_t vendor_id = 0;       ///< VkPhysicalDeviceProperties::vendorID
  std::uint32_t device_id = 0;       ///< VkPhysicalDeviceProperties::deviceID
  std::uint32_t driver_id = 0;       ///< VkPhysicalDeviceDriverProperties::driverID
  std::uint32_t driver_version = 0;  ///< VkPhysicalDeviceProperties::driverVersion
  /// Some drivers' caches differ between 32-bit and 64-bit processes under one UUID.
  std::uint32_t pointer_bits = static_cast<std::uint32_t>(sizeof(void*) * 8);
  std::array<std::uint8_t, 16> pipeline_cache_uuid{};  ///< VkPhysicalDeviceProperties
  std::array<std::uint8_t, 16> device_uuid{};          ///< VkPhysicalDeviceIDProperties
  std::array<std::uint8_t, 16> driver_uuid{};          ///< VkPhysicalDeviceIDProperties

  bool operator==(const CacheIdentity&) const = default;
};

/// What came of load_cache().
struct CacheLoad {
  PipelineCacheState state = PipelineCacheState::cold;  ///< cold, warm or rejected
  std::vector<std::uint8_t> payload;                    ///< empty unless warm
  std::string note;                                     ///< which file was rejected and why; empty unless rejected
};

/// The file for this device and driver in $XDG_CACHE_HOME/brontes, or in $HOME/.cache/brontes where
/// XDG_CACHE_HOME is unset, empty or (as its specification asks) relative. Creates nothing.
///
/// The name holds what lasts as long as the device: vendor, device, driver id, pointer bits and
/// device UUID. The driver's version is not in it, so an updated driver replaces its old file
/// rather than leaving it behind.
///
/// Empty, with the reason in `note`, where neither variable gives a directory, or the process runs
/// with more rights than its user (set-uid), whose environment it must not trust with a path.
/// `note` is cleared otherwise.
std::string default_cache_path(const CacheIdentity& identity, std::string& note) noexcept;

/// Reads and checks the file. No file: cold. Anything but an undamaged file of this format version
/// and this identity: rejected, with a note. Sizes written in the file are believed only where they
/// agree with the file's real size.
CacheLoad load_cache(const std::string& path, const CacheIdentity& identity) noexcept;

/// Replaces the file by one with this payload, atomically: a reader sees the old file or the new
/// one, and of several writers one wins. Creates missing parent directories, with mode 0700; the
/// file itself has mode 0600. Temporary files of the same name which crashed writers left behind
/// more than an hour ago are removed.
///
/// On failure the old file is as it was, no temporary file is left, and the Error is Errc::io with
/// the path and the system's reason, Errc::out_of_memory, or Errc::invalid_argument for a path that
/// ends in no file name.
Error save_cache(const std::string& path, const CacheIdentity& identity,
                 std::span<const std::uint8_t> payload) noexcept;

/// The checksum of the format. It starts at h = (size + 1) * f, f = 0x9e3779b97f4a7c15, and takes
/// eight bytes at a time, little-endian, the last ones padded with zeros: h = (h ^ word) * f, then
/// h ^= h >> 32. Last comes the finaliser of MurmurHash3. Every step is a bijection, so damage
/// confined to one word is always found; other random damage goes unnoticed about once in 2^64.
std::uint64_t cache_checksum(std::span<const std::uint8_t> bytes) noexcept;

}  // namespace brontes::vk
