// A plan as command buffers.
#pragma once

#include "encode/encoder.hpp"
#include "plan/plan.hpp"
#include "vk/recycler.hpp"

#include <brontes/error.hpp>
#include <brontes/stats.hpp>

#include <vector>

namespace brontes::encode {

/// Everything that is written for one choice of memory.
struct EncodedPlan {
  vk::Descriptors descriptors;
  std::vector<vk::Commands> commands;    // one per part of the plan
  std::vector<VkCommandBuffer> buffers;  // theirs
  BatchStats per_run;                    // what one run adds
};

/// One command buffer per part of the plan: the upload first, then dispatches with the barriers between them, and last
/// the read-back. Adds to `cost` the allocations and pipelines it took.
Result<EncodedPlan> encode_plan(vk::Context& context, const plan::Plan& plan, const Memories& memories, Use use,
                                BatchStats& cost);

}  // namespace brontes::encode
