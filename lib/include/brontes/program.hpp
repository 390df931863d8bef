// SPDX-License-Identifier: MIT
#pragma once

#include <brontes/buffer.hpp>
#include <brontes/device.hpp>
#include <brontes/error.hpp>
#include <brontes/export.hpp>
#include <brontes/profile.hpp>
#include <brontes/shadow.hpp>
#include <brontes/stats.hpp>
#include <brontes/tensor.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace brontes {

namespace vk {
class Context;
}

/// Work that was submitted to the device: a point on its timeline.
///
/// Cheap to copy. It keeps nothing but the Device alive: the work goes on, and finishes, whether or
/// not a Submission, Program or Batch still exists.
///
/// Thread-safety: const methods may be called from any thread.
class BRONTES_API Submission {
 public:
  /// An empty submission; it is always ready.
  Submission() noexcept = default;

  /// True when wait() would return at once: the work is done, or the device is lost and never will do it. Never
  /// blocks.
  bool ready() const noexcept;

  /// Blocks until the work is done. Errc::timeout when it is not within `timeout`, which may be zero;
  /// Errc::device_lost when it never will be.
  Error wait(std::chrono::nanoseconds timeout = std::chrono::nanoseconds::max()) const;

 private:
  friend struct SubmissionAccess;
  std::shared_ptr<vk::Context> context_;
  std::uint64_t value_ = 0;
};

/// How a recording or a plan is printed.
enum class DumpFormat : std::uint8_t {
  text,  ///< one line per op, or per dispatch and barrier
  dot,   ///< Graphviz: ops, fusion groups, levels, barriers
  json,  ///< all that the text says, and sizes in bytes
};

/// What of a batch is printed.
enum class DumpStage : std::uint8_t {
  recorded,  ///< what was asked: uploads, imports, ops with their operands and numbers, keeps, stores
  planned,   ///< what will run: dispatches with the ops they fuse, barriers with their causes, memory
};

/// What a Batch had recorded, planned and encoded once, to be run any number of times.
///
///     auto program = batch.compile().value();
///     for (const auto& frame : frames) {
///       if (auto e = program.write(x, frame)) return fail(e);
///       if (auto e = program.run()) return fail(e);
///       if (auto e = program.read(y, result)) return fail(e);
///     }
///
/// Tensors are those of the batch it was compiled from, which may be reset or destroyed meanwhile.
/// What can be read is what could be read after Batch::execute(). Running a warm program allocates
/// nothing and creates no pipeline, on the host and on the device.
///
/// Runs of one program follow each other in order, also when several are in flight; so do runs of
/// different programs that use the same Buffer. Destroying a program with work in flight is safe and
/// does not wait.
///
/// Thread-safety: one thread at a time. Different programs may be used by different threads at once.
class BRONTES_API Program {
 public:
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();

  /// Replaces the data of an upload, for runs submitted from now on. `data` may be
  /// changed as soon as the call returns. Waits for runs of this program that are in flight.
  /// Errors: those of bad handles, null_data, shape_mismatch, invalid_argument when x is not an upload, type_mismatch
  /// when it is of another type. For an upload of f16, floats are rounded to the nearest, ties to even, and 16-bit
  /// integers are its bits.
  Error write(Tensor x, Span<const float> data);
  Error write(Tensor x, Span<const std::int32_t> data);
  Error write(Tensor x, Span<const std::uint16_t> data);

  /// Uses another buffer of the same shape and type for an import (and for every store to the same buffer) from
  /// the next run on. Waits for runs in flight and encodes again, without planning. On failure the program keeps the
  /// buffer it had.
  /// Errc::invalid_argument when x is not an import, or when the buffer is already bound to another import
  /// and one of them is stored to.
  Error rebind(Tensor x, const Buffer& buffer);

  /// Starts a run and returns at once. On failure nothing of it has run.
  Result<Submission> submit();
  /// The same, but the run begins only when `after`, of the same device, is done.
  Result<Submission> submit(const Submission& after);
  /// submit() and wait.
  Error run();

  /// The elements of a readable value after the last run, for which it waits. Errors: not_executed,
  /// not_kept, type_mismatch unless x is f32 or f16, and those of bad handles.
  Result<std::vector<float>> read(Tensor x) const;
  /// The same for i32 and masks, which give 0 and 1.
  Result<std::vector<std::int32_t>> read_i32(Tensor x) const;
  /// The bits of f16.
  Result<std::vector<std::uint16_t>> read_f16(Tensor x) const;
  /// The same into caller-provided memory. Errc::shape_mismatch unless out.size() == x.size().
  Error read(Tensor x, Span<float> out) const;
  Error read(Tensor x, Span<std::int32_t> out) const;
  Error read(Tensor x, Span<std::uint16_t> out) const;

  /// Runs the program some times with a timestamp after each dispatch, and says what each takes (brontes/profile.hpp).
  /// No barrier is added and results are the same, bit for bit; nothing is left behind that slows later runs. They
  /// are runs like any other: store() is applied in each. Waits.
  /// Errc::unsupported where the queue has no timestamps, invalid_argument for 0 runs; else as run().
  Result<Profile> profile(const ProfileOptions& options = {});

  /// Runs the program once, one dispatch at a time, and computes what each must give once more on the host, in double
  /// precision and from the operands that it had on the device. Says which is the first that is off by more than the
  /// tolerance of its ops (docs/architecture.md). It is a run like any other: store() is applied, but if it fails in
  /// the middle, what came before has run. Much slower than run(): minutes for products that take the device a second.
  /// Errc::invalid_argument when options.every is 0; else as run().
  Result<ShadowReport> shadow_check(const ShadowOptions& options = {});

  /// Exact counts; those of execution add up over all runs.
  BatchStats stats() const noexcept;
  /// The device memory it holds: what Batch::predict_memory() said. Zeros for one that was moved from.
  MemoryNeeds memory() const noexcept;
  /// What a run does, as Batch::dump() prints it when planned. Empty when the host is out of memory.
  std::string dump(DumpFormat format = DumpFormat::text) const;

 private:
  friend class Batch;
  friend struct RunAccess;
  struct BRONTES_LOCAL State;
  explicit Program(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace brontes
