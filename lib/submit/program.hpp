// A plan with its memory and its one command buffer: run once, results stay.
#pragma once

#include "plan/plan.hpp"
#include "record/graph.hpp"
#include "vk/memory.hpp"

#include <brontes/batch.hpp>
#include <brontes/error.hpp>

#include <memory>
#include <vector>

namespace brontes::submit {

/// What an execution leaves behind: the arena, and the host's copy of what can be read where the
/// arena is not mapped.
struct Results {
  std::shared_ptr<vk::Allocation> arena;
  std::shared_ptr<vk::Allocation> readback;  // null where the arena is mapped
  std::uint64_t readback_begin = 0;

  /// Copies `bytes` bytes from arena offset `offset`, which lies in the read-back range.
  Error read(std::uint64_t offset, void* out, std::uint64_t bytes) const;
};

/// Allocates, uploads, encodes, submits once and waits. Adds what it did to `stats`.
Result<Results> run(const std::shared_ptr<vk::Context>& context, const record::Graph& graph, const plan::Plan& plan,
                    Span<const std::shared_ptr<vk::Allocation>> resources, BatchStats& stats);

}  // namespace brontes::submit
