// SPDX-License-Identifier: MIT
#pragma once

#include <brontes/device.hpp>
#include <brontes/error.hpp>
#include <brontes/export.hpp>
#include <brontes/matmul.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace brontes {

/// A product [m, k] x [k, n].
struct MatmulShape {
  std::uint64_t m = 1;
  std::uint64_t k = 1;
  std::uint64_t n = 1;
  Layout layout = Layout::kn;
  Precision precision = Precision::automatic;  ///< automatic: f32
};

/// How far tune_matmul() has come.
struct TuneProgress {
  std::size_t done = 0;   ///< shapes measured or skipped
  std::size_t total = 0;  ///< shapes in all
  MatmulShape shape;      ///< the next one; the last one when all are done
  double seconds = 0;     ///< since the start
};

struct TuneOptions {
  /// What to measure. Empty: default_tune_shapes().
  std::vector<MatmulShape> shapes;
  /// Time limit: once it has passed, the remaining shapes are skipped. The first shapes take longest,
  /// because pipelines are built for them; on a CPU driver that alone can take half a minute.
  double seconds = 300;
  /// Also measure which AccessMode is fastest, by opening the device once more for each
  /// mode. Only done where DeviceOptions::access is automatic, and not on an adopted device.
  bool compare_access = true;
  /// Write the file of TuningOptions.
  bool save = true;
  /// Called at the start, before every shape and at the end, on the calling thread. Returning false stops: what was
  /// measured by then counts.
  std::function<bool(const TuneProgress&)> on_progress;
};

/// The outcome for one shape.
struct TunedShape {
  MatmulShape shape;
  MatmulKernel default_kernel = MatmulKernel::automatic;  ///< the selector's own choice
  MatmulKernel kernel = MatmulKernel::automatic;          ///< its choice from now on
  std::size_t variant = 0;                                ///< which of the kernel's variants; 0: the default stays
  double default_seconds = 0;                             ///< per run, the least of several
  double seconds = 0;                                     ///< of its choice from now on; likewise
  double gain = 1;                                        ///< default_seconds / seconds; 1 where the default stays
};

struct TuneReport {
  std::vector<TunedShape> shapes;                 ///< in the order of measuring
  std::size_t skipped = 0;                        ///< shapes too large for the device, or not measured in time
  bool stopped = false;                           ///< by on_progress
  AccessMode access = AccessMode::automatic;      ///< DeviceInfo::access in these measurements
  AccessMode access_now = AccessMode::automatic;  ///< that of the given Device, for as long as it is open
  std::string path;                               ///< the file that was written; empty if none was
  std::string note;                               ///< why none was; empty otherwise
};

/// Shapes from 1 to 1024 rows over weights from 256 x 256 to 4096 x 4096, in both layouts, the cheapest
/// first. `quick` is a subset for a first impression.
BRONTES_API std::vector<MatmulShape> default_tune_shapes(bool quick = false);

/// Measures every kernel variant that this device can run on every shape, and makes the selector use what is
/// faster than its own choice: at once on this Device, and through the file whenever the device is opened.
/// Products that were not measured use the result of a similar one; docs/tuning.md says which.
///
/// A variant replaces the default only where it was more than 10% faster by the fastest and by the median
/// run, found in one series of runs and confirmed in a second one, with default and variant interleaved in
/// both. Where nothing is clearly better, nothing changes. Variants that take more than two seconds to
/// build are left out. Results do not change beyond the tolerance of a product. Measurements of other
/// shapes made before stay.
///
/// Measure on an otherwise idle machine. Where another AccessMode than the Device's own was the fastest, the
/// measurements take effect from the next Device::open() on.
///
/// Errors: invalid_argument for sizes or seconds that are not above 0, or when DeviceOptions::tuning is
/// disabled; and whatever the device reports. If the file cannot be written, see TuneReport::note.
///
/// Thread-safety: as Device. Other threads may plan and run meanwhile; a plan made before the end uses the
/// old choices, one made after it the new ones. Two calls for one Device take turns.
BRONTES_API Result<TuneReport> tune_matmul(const Device& device, const TuneOptions& options = {});

}  // namespace brontes
