// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace brontes {

/// What a batch recorded and what it cost. Counts are exact. Those of execution add up over the
/// execute() calls since the batch was made or reset.
struct BatchStats {
  std::uint64_t operations = 0;                 ///< ops recorded
  std::uint64_t values = 0;                     ///< tensors: uploads, imports and results
  std::uint64_t dropped_operations = 0;         ///< ops that did not run because nothing could read them
  std::uint64_t fused_operations = 0;           ///< ops that ran inside the dispatch of another
  std::uint64_t dispatches = 0;                 ///< vkCmdDispatch, and vkCmdDispatchBase for parts of a long one
  std::uint64_t barriers = 0;                   ///< barriers between dependent dispatches
  std::uint64_t boundary_barriers = 0;          ///< barriers towards earlier work, transfers and the host
  std::uint64_t submits = 0;                    ///< command buffers submitted: one per run, more where it is split
  std::uint64_t transfers_up = 0;               ///< host to device: one for all uploads of an execute()
  std::uint64_t transfers_down = 0;             ///< device to host: one for all readable results
  std::uint64_t bytes_up = 0;                   ///< bytes of uploaded elements
  std::uint64_t bytes_down = 0;                 ///< bytes of readable elements
  std::uint64_t copy_commands = 0;              ///< vkCmdCopyBuffer; 0 where device memory is mapped
  std::uint64_t pipelines_created = 0;          ///< pipelines this batch was the first to need
  std::uint64_t allocations = 0;                ///< device memory blocks allocated
  std::uint64_t arena_bytes = 0;                ///< device memory of uploads, results and temporaries
  std::uint64_t arena_bytes_without_reuse = 0;  ///< what it would be if no temporaries shared memory
  std::uint64_t pipelines_used = 0;             ///< distinct pipelines that a run binds
  std::uint64_t spirv_bytes = 0;                ///< SPIR-V of these, as the driver was given it
  std::uint64_t fused_programs = 0;             ///< those of them that run several elementwise ops at once
};

/// Device memory that a batch takes to run, besides the buffers it imports.
struct MemoryNeeds {
  std::uint64_t device_bytes = 0;    ///< uploads, results and temporaries (BatchStats::arena_bytes)
  std::uint64_t upload_bytes = 0;    ///< staging towards the device; 0 where the host writes device memory directly
  std::uint64_t readback_bytes = 0;  ///< staging towards the host; 0 where device memory is mapped
  std::uint64_t buffers = 0;         ///< in so many pieces
  /// With AccessMode::pointer the Device keeps tables of addresses. Programs use them in turn: this much or less is
  /// added to them.
  std::uint64_t table_bytes = 0;

  /// All but the tables: what DeviceStats::live_bytes grows by.
  std::uint64_t bytes() const noexcept { return device_bytes + upload_bytes + readback_bytes; }
};

}  // namespace brontes
