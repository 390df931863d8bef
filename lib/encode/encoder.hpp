// Writing one command buffer.
#pragma once

#include "plan/plan.hpp"
#include "vk/memory.hpp"
#include "vk/pipelines.hpp"
#include "vk/recycler.hpp"

#include <brontes/error.hpp>
#include <brontes/stats.hpp>
#include <brontes/tensor.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace brontes::encode {

/// Who touches memory before or after a barrier.
enum class Stage : std::uint8_t { compute, transfer, host, all /* compute and transfer */ };

/// How often a command buffer is submitted.
enum class Use : std::uint8_t {
  once,
  often,  ///< also while an earlier submit of it is in flight
};

/// Where a plan's regions lie.
struct Memories {
  vk::Allocation* arena = nullptr;  // null for a plan without values
  Span<const std::shared_ptr<vk::Allocation>> resources;
  const vk::Allocation* staging = nullptr;   // null where the host can write the arena, or nothing is uploaded
  const vk::Allocation* readback = nullptr;  // null where the host can read the arena, or nothing is read
  Span<const std::string> labels;            // by dispatch, or none
};

/// Timestamps of a run, in the order they are written. The time from one to the next is that of what the latter names.
struct Marks {
  enum class What : std::uint8_t {
    begin,  // of a part: the time before it is nobody's
    upload,
    dispatch,
    readback,
  };
  struct Mark {
    What what;
    std::uint32_t dispatch = 0;
    double share = 1;  // of the dispatch: one too long for a submit goes on in the next
  };

  vk::Timestamps timestamps;
  std::vector<Mark> all;

  void add(VkCommandBuffer commands, const Mark& mark) {
    timestamps->write(commands, static_cast<std::uint32_t>(all.size()));
    all.push_back(mark);
  }
};

/// The pipelines and descriptor sets of a plan's dispatches, in their order.
class Bindings {
 public:
  /// Writes the descriptors and addresses, too. Adds to `cost` the allocations and pipelines it took.
  static Result<Bindings> make(vk::Context& context, const plan::Plan& plan, const Memories& memories,
                               BatchStats& cost);

  const vk::Pipelines::Bound& pipeline(std::size_t dispatch) const {
    return pipelines_[uses_[dispatch].pipeline].bound;
  }
  const VkDescriptorSet& set(std::size_t dispatch) const { return sets_[dispatch]; }

  /// A pipeline, and the first dispatch that uses it.
  struct Distinct {
    vk::Pipelines::Bound bound;
    std::uint32_t dispatch;
  };
  const std::vector<Distinct>& pipelines() const noexcept { return pipelines_; }

  /// A submit has used them.
  void used(std::uint64_t timeline_value) noexcept {
    if (descriptors_) descriptors_->last_use = timeline_value;
  }

 private:
  struct Use {
    std::uint32_t pipeline;
    kernels::AccessMode access;
  };
  Error find_pipelines(vk::Context& context, const plan::Plan& plan, const Memories& memories, BatchStats& cost);
  Error write_descriptors(const vk::Context& context, const plan::Plan& plan, const Memories& memories);

  std::vector<Distinct> pipelines_;
  std::vector<Use> uses_;  // by dispatch
  std::vector<VkDescriptorSet> sets_;
  vk::Descriptors descriptors_;
};

/// Thread-safety: one thread at a time.
class Encoder {
 public:
  Encoder(const vk::Context& context, VkCommandBuffer commands) : context_(context), commands_(commands) {}

  Error begin(Use use);
  Error end();

  /// What `before` did is finished and visible to what `after` will do.
  void barrier(Stage before, Stage after);
  /// The same towards commands of somebody else's.
  void barrier_from(VkPipelineStageFlags stages, VkAccessFlags writes, Stage after);
  void barrier_to(Stage before, VkPipelineStageFlags stages, VkAccessFlags accesses);

  /// For debuggers, where there is one to see them.
  void begin_label(const char* text);
  void end_label();
  void copy(const vk::Allocation& from, std::uint64_t from_offset, const vk::Allocation& to, std::uint64_t to_offset,
            std::uint64_t bytes);
  void zero(const vk::Allocation& memory);

  /// Dispatches of the plan with the barriers between them: the only dispatch loop in the library.
  /// The number of barriers. A mark follows each dispatch, if `marks` are given.
  std::uint64_t dispatches(const plan::Plan& plan, plan::DispatchRange range, const Bindings& bindings,
                           Span<const std::string> labels = {}, Marks* marks = nullptr);

 private:
  const vk::Context& context_;
  VkCommandBuffer commands_;
};

}  // namespace brontes::encode
