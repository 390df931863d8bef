// SPDX-License-Identifier: MIT
#pragma once

#include <brontes/batch.hpp>
#include <brontes/device.hpp>
#include <brontes/error.hpp>
#include <brontes/export.hpp>
#include <brontes/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

/// Pipelines before they are needed. A driver takes milliseconds to seconds to compile one, and execute(), submit() and
/// compile() do that for those that a Device has not met before. An application that must not stop then prepares its
/// batches on a thread of its own while it starts, and keeps the driver's cache where it keeps its other files.
namespace brontes {

struct PrepareOptions {
  /// Called by the thread that prepares, before the first pipeline and after each, with how many are ready and how many
  /// there are in all. False stops it: this is how another thread cancels. A pipeline that is being compiled is
  /// finished.
  std::function<bool(std::size_t ready, std::size_t total)> on_progress;
};

struct Prepared {
  std::size_t total = 0;    ///< distinct pipelines that the batch needs
  std::size_t ready = 0;    ///< of these, the ones that are there now
  std::size_t created = 0;  ///< of these, the ones that this call made
  bool complete() const noexcept { return ready == total; }
};

/// Creates the pipelines that execute(), submit() or compile() of what is recorded now would need, and does nothing
/// else: no memory is allocated and nothing runs. After a complete one these calls create none. Cancelled or failed,
/// what was created stays, and a later call goes on from there. Errors: those of Batch::compile().
///
/// Thread-safety: as Batch, which belongs to one thread at a time; any thread will do. Other threads may use the Device
/// meanwhile, and prepare batches of their own; those that need the same pipeline wait for it.
BRONTES_API Result<Prepared> prepare(const Batch& batch, const PrepareOptions& options = {});

/// The pipeline cache as bytes, for applications that keep such things themselves: set PipelineCacheOptions::enabled to
/// false then. The bytes are those of a cache file.
///
/// Thread-safety: any thread.
BRONTES_API Result<std::vector<std::uint8_t>> save_pipelines(const Device& device);

/// Adds such bytes to the cache of a Device, usually right after it was opened: pipelines in them take less time to
/// create. Errc::invalid_argument, which says why, for bytes that are damaged, older, or of another device or driver:
/// the Device does without. As with files, the checksum finds damage and not forgery: load nothing that others can
/// write.
///
/// Thread-safety: any thread.
BRONTES_API Error load_pipelines(const Device& device, Span<const std::uint8_t> bytes);

}  // namespace brontes
