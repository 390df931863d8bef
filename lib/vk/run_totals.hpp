// What all runs on a device have cost so far.
#pragma once

#include <brontes/stats.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace brontes::vk {

/// Sums of the counts of BatchStats that are made per run.
///
/// Thread-safety: any thread.
class RunTotals {
 public:
  /// One run.
  void add(const BatchStats& run, std::uint64_t arena_bytes, std::uint64_t arena_bytes_without_reuse) noexcept {
    for (std::size_t i = 0; i < std::size(per_run); ++i) raise(sums_[i], run.*per_run[i]);
    raise(arena_bytes_, arena_bytes);
    raise(arena_bytes_without_reuse_, arena_bytes_without_reuse);
  }
  /// Uploads come before the run that uses them.
  void add_transfer_up() noexcept { raise(transfers_up_, 1); }
  void add_bytes_up(std::uint64_t bytes) noexcept { raise(bytes_up_, bytes); }

  BatchStats get() const noexcept {
    BatchStats stats;
    for (std::size_t i = 0; i < std::size(per_run); ++i) stats.*per_run[i] = sums_[i];
    stats.arena_bytes = arena_bytes_;
    stats.arena_bytes_without_reuse = arena_bytes_without_reuse_;
    stats.transfers_up = transfers_up_;
    stats.bytes_up = bytes_up_;
    return stats;
  }

 private:
  using Sum = std::atomic<std::uint64_t>;
  static constexpr std::uint64_t BatchStats::*per_run[] = {
      &BatchStats::dispatches,     &BatchStats::barriers,       &BatchStats::boundary_barriers,
      &BatchStats::submits,        &BatchStats::transfers_down, &BatchStats::bytes_down,
      &BatchStats::copy_commands,  &BatchStats::pipelines_used, &BatchStats::spirv_bytes,
      &BatchStats::fused_programs,
  };
  static void raise(Sum& sum, std::uint64_t by) noexcept {
    if (by != 0) sum.fetch_add(by, std::memory_order_relaxed);
  }

  Sum sums_[std::size(per_run)] = {};
  Sum arena_bytes_{0};
  Sum arena_bytes_without_reuse_{0};
  Sum transfers_up_{0};
  Sum bytes_up_{0};
};

}  // namespace brontes::vk
