// SPDX-License-Identifier: MIT
#pragma once

#include <brontes/export.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace brontes {

/// Where measurements of tune_matmul() are remembered between runs of a program.
///
/// The file follows the same rules as the pipeline cache: bound to device, driver and the library's
/// kernels, checked, replaced as a whole, and refused by the same rule (PipelineCacheOptions) where it is no
/// regular file, belongs to another user, or every user may write to it or to its directory. One that is
/// truncated, damaged, older, foreign or refused means the shipped defaults and a note to
/// DeviceOptions::on_message, never a failure. Only tune_matmul() and a
/// calibration write it.
struct TuningOptions {
  /// False: the shipped defaults, whatever was measured.
  bool enabled = true;
  /// The file to use. Empty: PipelineCacheOptions::path with ".tuning" appended, and if that is empty
  /// too one file per device beside the default pipeline cache. No file is used with simulated limits.
  std::string path;
  /// Once elementwise ops have moved 256 MiB on a CPU driver, measure which AccessMode they are fastest with there:
  /// once, for 0.15 s at most, on the thread that plans. Remembered in the file; tune_matmul() does it ahead. Results
  /// do not change. False: only what the file says.
  bool calibrate = true;
};

/// Where the measurements that a Device uses come from.
enum class TuningState : std::uint8_t {
  off,       ///< disabled
  none,      ///< nothing was measured yet: the shipped defaults
  loaded,    ///< from the file
  measured,  ///< by tune_matmul() or a calibration on this Device
  rejected,  ///< there was a file, but it was damaged, older, foreign or refused: the shipped defaults
};

struct TuningStatus {
  TuningState state = TuningState::off;
  std::string path;         ///< of the file; empty when there is none to read or write
  std::string note;         ///< why there is no file, or why it was rejected; empty otherwise
  std::size_t shapes = 0;   ///< products measured
  std::size_t changed = 0;  ///< of these, where something beats the default
};

/// The enumerator's name, for example "loaded". Never null.
BRONTES_API const char* to_string(TuningState state) noexcept;

}  // namespace brontes
