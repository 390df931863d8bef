// Writing one command buffer.
#pragma once

#include "plan/plan.hpp"
#include "vk/memory.hpp"
#include "vk/recycler.hpp"

#include <brontes/error.hpp>
#include <brontes/tensor.hpp>

#include <cstdint>
#include <memory>

namespace brontes::encode {

/// Who touches memory before or after a barrier.
enum class Stage : std::uint8_t { compute, transfer, host, all /* compute and transfer */ };

/// Thread-safety: one thread at a time.
class Encoder {
 public:
  Encoder(vk::Context& context, VkCommandBuffer commands) : context_(context), commands_(commands) {}

  Error begin();
  Error end();

  /// What `before` did is finished and visible to what `after` will do.
  void barrier(Stage before, Stage after);
  void copy(const vk::Allocation& from, std::uint64_t from_offset, const vk::Allocation& to, std::uint64_t to_offset,
            std::uint64_t bytes);
  void zero(const vk::Allocation& memory);

  /// Where a plan's regions lie.
  struct Memories {
    const vk::Allocation* arena;
    Span<const std::shared_ptr<vk::Allocation>> resources;
  };
  /// Every dispatch of the plan with its barriers: the only dispatch loop in the library. Descriptor
  /// sets come from `descriptors`, which has room for descriptor_needs(plan).
  Error dispatches(const plan::Plan& plan, const Memories& memories, const vk::DescriptorSlot& descriptors,
                   std::uint64_t* pipelines_created);

 private:
  vk::Context& context_;
  VkCommandBuffer commands_;
};

struct DescriptorNeeds {
  std::uint32_t sets = 0;
  std::uint32_t descriptors = 0;
};
DescriptorNeeds descriptor_needs(const plan::Plan& plan);

}  // namespace brontes::encode
