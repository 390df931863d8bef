// SPDX-License-Identifier: MIT
#pragma once

#include <brontes/export.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace brontes {

/// Where compiled pipelines are remembered between runs of a program.
///
/// The file holds the driver's VkPipelineCache behind a header of our own (magic, version, vendor,
/// device, driver version, UUIDs, checksum). It is written to a temporary file and renamed, so that
/// any number of processes may save at once. A file that is truncated, damaged, older, of another
/// device or driver, or unreadable is a cold start with a note to DeviceOptions::on_message, never a
/// failure.
///
/// The checksum finds damage, not forgery, so a file is neither loaded nor replaced unless
///   - the path names a regular file or nothing yet: a symbolic link, device (/dev/null), FIFO, socket or
///     directory is refused and left alone. Directories of the path may be symbolic links.
///   - the file and its directory belong to this process's effective user or to root.
///   - not everybody may write to the file, nor to its directory unless that is sticky, as /tmp is. A group
///     that may write is trusted.
/// Where one of these does not hold, opening the Device is a cold start with a note, and saving fails with
/// Errc::io. On Windows only the first is checked. To have no file at all, set `enabled` to false.
struct PipelineCacheOptions {
  /// False: neither read nor written.
  bool enabled = true;
  /// The file to use. Empty: one file per device and driver in $XDG_CACHE_HOME/brontes, or ~/.cache/brontes (macOS:
  /// ~/Library/Caches/brontes; Windows: %LOCALAPPDATA%/brontes; Android: none). Where no variable names a directory, or
  /// the program runs set-uid or set-gid, the cache is off, with a note.
  std::string path;
  /// Save when the Device is destroyed, if pipelines were created since the last save.
  bool save_on_close = true;

  /// In place of a file, for applications that keep such bytes themselves; with either of them `path` is not used. Each
  /// is called by the thread that opens, saves or closes the Device, and may not use the Device. An exception counts as
  /// a failure. As with files, the checksum finds damage and not forgery: give back nothing that others can write.
  ///
  /// The bytes that `store` was given last, or none. Bytes that are damaged, older or foreign are a cold start.
  std::function<std::vector<std::uint8_t>()> load;
  /// Keeps the bytes, which are those of a cache file. False, if it could not: saving then fails with Errc::io.
  std::function<bool(const std::vector<std::uint8_t>& bytes)> store;
};

/// Whether the cache file was used when the Device was opened.
enum class PipelineCacheState : std::uint8_t {
  off,       ///< disabled, or there is no directory to keep it in
  cold,      ///< there was no file yet, or PipelineCacheOptions::load had nothing
  warm,      ///< a valid file was loaded
  rejected,  ///< there was a file, but it was damaged, older or foreign, and will be replaced; or it is one
             ///< that must not be used, and stays
};

struct PipelineCacheStatus {
  PipelineCacheState state = PipelineCacheState::off;
  std::string path;                ///< empty when off, or when the application keeps the bytes
  std::string note;                ///< why it is off or rejected; empty otherwise
  std::uint64_t bytes_loaded = 0;  ///< payload handed to the driver
};

/// The enumerator's name, for example "warm". Never null.
BRONTES_API const char* to_string(PipelineCacheState state) noexcept;

}  // namespace brontes
