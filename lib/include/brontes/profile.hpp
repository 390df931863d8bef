// SPDX-License-Identifier: MIT
#pragma once

#include <brontes/device.hpp>
#include <brontes/error.hpp>
#include <brontes/export.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace brontes {

/// What a device can do at best. 0: not known.
struct ProfileLimits {
  double flops_per_second = 0;  ///< arithmetic, where a multiply-add counts as two
  double bytes_per_second = 0;  ///< memory, read or written
};

struct ProfileOptions {
  /// How often to run. Times are the medians.
  std::uint32_t runs = 5;
  /// What times are compared with: a data sheet's numbers, or measure_limits().
  ProfileLimits limits;
};

/// A dispatch or a copy of a Program, or several of the same kind.
struct ProfileEntry {
  std::string op;              ///< the ops it runs: "matmul+add+gelu 4x8x16 nk"; "upload" and "read back" are copies
  std::string result;          ///< what it makes, as dump() names it: "%7". Empty for copies, and for several
  std::string kernel;          ///< "matmul_blocked"; empty for copies
  std::uint32_t dispatch = 0;  ///< which one, as dump() counts them: 3 for #3. Of several, the first
  std::uint64_t count = 1;     ///< dispatches or copies
  double seconds = 0;          ///< in one run, all of them together
  double share = 0;            ///< of the run's time, from 0 to 1
  double flops = 0;            ///< floating-point operations of matrix products; 0 for everything else
  double bytes = 0;            ///< memory it reads and writes, each byte of an operand or result counted once
  /// The time that the limits allow, divided by the time it took: 1 is as fast as it can be. The limit is that of
  /// arithmetic or of memory, whichever takes longer. 0: not known.
  double share_of_limit = 0;

  double flops_per_second() const noexcept { return seconds > 0 ? flops / seconds : 0; }
  double bytes_per_second() const noexcept { return seconds > 0 ? bytes / seconds : 0; }
};

/// Where the time of a Program's run goes, on the device. Program::profile() makes it.
///
/// A timestamp is written after each dispatch when all work before it is done, and an entry's time is that since the
/// timestamp before. So the times add up to that of the run. Dispatches that no barrier separates may overlap: what
/// they take together is right, but the first to be recorded gets most of it.
struct Profile {
  std::vector<ProfileEntry> entries;  ///< in the order they run
  std::uint32_t runs = 0;             ///< how many were measured
  double seconds = 0;                 ///< of all entries
  ProfileLimits limits;               ///< as they were given

  /// Entries with the same op and kernel as one, the longest first.
  BRONTES_API Profile merged() const;
  /// A table, a line per entry. Empty when the host is out of memory.
  BRONTES_API std::string text() const;
  /// All members of this struct and of its entries by their names, and the rates. Likewise.
  BRONTES_API std::string json() const;
};

/// Measures what this library attains on a device: the fastest of several square matrix products, and of sums of
/// tensors too large for any cache. A peak by the data sheet is higher. It takes about a second.
/// Errors: unsupported where the queue has no timestamps, and those of running a batch.
BRONTES_API Result<ProfileLimits> measure_limits(const Device& device);

}  // namespace brontes
