// A plan as command buffers.
#pragma once

#include "encode/encoder.hpp"
#include "plan/plan.hpp"
#include "vk/recycler.hpp"

#include <brontes/error.hpp>
#include <brontes/stats.hpp>

#include <utility>
#include <vector>

namespace brontes::encode {

/// The parts of a run, in order.
struct CommandBuffers {
  std::vector<vk::Commands> commands;    // one per part of the plan
  std::vector<VkCommandBuffer> buffers;  // theirs
  BatchStats per_run;                    // what one run adds
};

/// Everything that is written for one choice of memory.
struct EncodedPlan : CommandBuffers {
  Bindings bindings;
};

/// The same run once more with timestamps, and no other difference. It uses what the EncodedPlan has.
struct TimedRun : CommandBuffers {
  explicit TimedRun(vk::Timestamps timestamps) : marks{std::move(timestamps), {}} {}
  Marks marks;
};

/// The commands of somebody else's before and after a run.
struct Surroundings {
  VkPipelineStageFlags before_stages = 0;
  VkAccessFlags before_writes = 0;
  VkPipelineStageFlags after_stages = 0;
  VkAccessFlags after_accesses = 0;
};

/// The whole run, once more, into a command buffer that somebody else is recording.
void record_run(const vk::Context& context, const plan::Plan& plan, const Memories& memories,
                const EncodedPlan& encoded, const Surroundings& around, const char* name, VkCommandBuffer commands);

/// One command buffer per part of the plan: the upload first, then dispatches with the barriers between them, and last
/// the read-back. Adds to `cost` the allocations and pipelines it took.
Result<EncodedPlan> encode_plan(vk::Context& context, const plan::Plan& plan, const Memories& memories, Use use,
                                BatchStats& cost);

/// The same run once more, in the parts of `plan`, which differs in nothing else. It uses what the EncodedPlan has.
Result<CommandBuffers> encode_parts(vk::Context& context, const plan::Plan& plan, const Memories& memories,
                                    const EncodedPlan& encoded);

/// Errc::unsupported where the queue has no timestamps.
Result<TimedRun> encode_timed(vk::Context& context, const plan::Plan& plan, const Memories& memories,
                              const EncodedPlan& encoded);

}  // namespace brontes::encode
