// SPDX-License-Identifier: MIT
#pragma once

#include <brontes/export.hpp>

#include <cstdint>
#include <string>

namespace brontes {

/// Where compiled pipelines are remembered between runs of a program.
///
/// The file holds the driver's VkPipelineCache behind a header of our own (magic, version, vendor,
/// device, driver version, UUIDs, checksum). It is written to a temporary file and renamed, so that
/// any number of processes may save at once. A file that is truncated, damaged, older, of another
/// device or driver, or unreadable is a cold start with a note to DeviceOptions::on_message, never a
/// failure.
struct PipelineCacheOptions {
  /// False: neither read nor written.
  bool enabled = true;
  /// The file to use. Empty: one file per device and driver in $XDG_CACHE_HOME/brontes, or
  /// ~/.cache/brontes; where neither variable names a directory the cache is off, with a note.
  std::string path;
  /// Save when the Device is destroyed, if pipelines were created since the last save.
  bool save_on_close = true;
};

/// What came of the cache file when the Device was opened.
enum class PipelineCacheState : std::uint8_t {
  off,       ///< disabled, or there is no directory to keep it in
  cold,      ///< there was no file yet
  warm,      ///< a valid file was loaded
  rejected,  ///< there was a file, but it was damaged, older or foreign; it will be replaced
};

struct PipelineCacheStatus {
  PipelineCacheState state = PipelineCacheState::off;
  std::string path;                ///< empty when off
  std::string note;                ///< why it is off or rejected; empty otherwise
  std::uint64_t bytes_loaded = 0;  ///< payload handed to the driver
};

/// The enumerator's name, for example "warm". Never null.
BRONTES_API const char* to_string(PipelineCacheState state) noexcept;

}  // namespace brontes
