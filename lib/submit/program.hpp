// A plan with its memory and its command buffers, ready to be submitted any number of times.
#pragma once

#include "encode/encoded_plan.hpp"
#include "plan/plan.hpp"
#include "submit/traced_run.hpp"
#include "vk/memory.hpp"
#include "vk/queue.hpp"

#include <brontes/error.hpp>
#include <brontes/stats.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace brontes::submit {

/// Adds the counts of execution.
void add(BatchStats& stats, const BatchStats& more);

/// The memory that a Program of the plan allocates, unless it is given some.
MemoryNeeds needs_of(const plan::Plan& plan, vk::Context& context) noexcept;

/// Memory that several programs use in turn, each piece at least as large as their plans ask for. Where one is
/// null, a program allocates its own.
struct SharedMemory {
  std::shared_ptr<vk::Allocation> arena;
  std::shared_ptr<vk::Allocation> staging;
  std::shared_ptr<vk::Allocation> readback;
};

/// Destroying a Program whose work is in flight is safe and does not wait: its memory and pools are
/// set aside until then.
///
/// Thread-safety: one thread at a time.
class Program {
 public:
  using Resources = std::vector<std::shared_ptr<vk::Allocation>>;

  /// Allocates and encodes. `resources` are what the plan's resource ids mean; null where only empty
  /// values lie. Whoever gives `shared` memory sees to it that programs use it one after the other, from
  /// write() to read(). `labels`: what debuggers show for each dispatch, or none. `gauge`: learns from how long runs
  /// take.
  static Result<std::unique_ptr<Program>> create(std::shared_ptr<vk::Context> context, plan::Plan plan,
                                                 Resources resources, encode::Use use, const SharedMemory& shared = {},
                                                 std::vector<std::string> labels = {},
                                                 std::shared_ptr<plan::SpeedGauge> gauge = nullptr);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const plan::Plan& plan() const noexcept { return plan_; }
  const std::shared_ptr<vk::Allocation>& arena() const noexcept { return arena_; }
  const std::shared_ptr<vk::Allocation>& resource(record::ResourceId id) const { return resources_[id]; }

  /// Puts data into the upload range, at an offset of the arena, for whatever is submitted later. Waits for this
  /// program's own work.
  Error write(std::uint64_t offset, const void* data, std::uint64_t bytes);
  /// So many bytes of the upload range were in the given arena already, for what is submitted later.
  void has_written(std::uint64_t bytes) noexcept;

  /// Runs everything, after what it depends on, or nothing. Allocates nothing when warm.
  Result<std::uint64_t> submit(const vk::Dependencies& dependencies = {});

  /// Times of one run, by mark: nanoseconds since the first of them.
  struct Timing {
    std::vector<encode::Marks::Mark> marks;
    std::vector<std::vector<double>> runs;
  };
  /// Runs everything `runs` times, waiting for each, with timestamps. They count as any other runs.
  Result<Timing> time(std::uint32_t runs);
  /// Runs everything once, and waits after each dispatch. `before` and `after` are called with its index, when what
  /// came before is done, and when it is; an Error from them ends the run there.
  using Step = std::function<Error(std::uint32_t dispatch)>;
  Error run_stepwise(const Step& before, const Step& after);

  /// Records a run into somebody else's command buffer, which uses what this program has.
  Error record(VkCommandBuffer commands, const encode::Surroundings& around);
  /// What debuggers and traces show for each dispatch.
  bool has_labels() const noexcept { return !labels_.empty(); }
  void set_labels(std::vector<std::string> labels) { labels_ = std::move(labels); }
  /// For debuggers.
  void set_name(const std::string& name);
  /// Waits for the last submit.
  Error wait(std::uint64_t nanoseconds = vk::forever) const;

  /// Copies from an offset of the arena that lies in the read-back range. Waits for the last submit.
  Error read(std::uint64_t offset, void* out, std::uint64_t bytes) const;

  /// Uses other memory of the same size for a resource from the next submit on. Waits and encodes anew; on failure
  /// the old memory stays bound.
  Error rebind(record::ResourceId resource, std::shared_ptr<vk::Allocation> memory);

  /// Lets go of what only further submits would need; results stay readable.
  void finish() noexcept;

  /// What encoding and every submit so far have cost.
  const BatchStats& stats() const noexcept { return stats_; }

 private:
  Program(std::shared_ptr<vk::Context> context, plan::Plan plan, Resources resources, encode::Use use);
  Error allocate(const SharedMemory& shared);
  Result<encode::EncodedPlan> encode(const Resources& resources);
  encode::Memories memories(const Resources& resources) const;
  Result<std::shared_ptr<TracedRun>> traced_run();
  Result<std::uint64_t> submit(const encode::CommandBuffers& run, const vk::Dependencies& dependencies);
  /// Some of the parts of a run, which are all that the allocations and slots are used by.
  Result<std::uint64_t> submit(Span<const VkCommandBuffer> parts, Span<const vk::Commands> slots,
                               const vk::Dependencies& dependencies, const std::shared_ptr<vk::RunTimer>& timer);
  void count_uploads() noexcept;

  std::shared_ptr<vk::Context> context_;
  plan::Plan plan_;
  Resources resources_;
  std::shared_ptr<vk::Allocation> arena_;     // null for a plan without values
  std::shared_ptr<vk::Allocation> staging_;   // null where the host can write the arena, or nothing is uploaded
  std::shared_ptr<vk::Allocation> readback_;  // null where the host can read the arena, or nothing is read
  encode::EncodedPlan encoded_;
  std::vector<std::shared_ptr<TracedRun>> traced_;  // runs again with timestamps, as many as were in flight at once
  BatchStats stats_;
  encode::Use use_;
  std::vector<std::string> labels_;
  std::shared_ptr<vk::RunTimer> timer_;  // null where runs are not timed
  std::string name_ = "brontes program";
  bool uploads_written_ = false;  // since the last submit
  bool recorded_ = false;         // in a command buffer of somebody else's
  std::uint64_t last_submit_ = 0;
};

}  // namespace brontes::submit
