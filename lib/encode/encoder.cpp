#include "encode/encoder.hpp"

#include "vk/context.hpp"
#include "vk/result.hpp"

#include <algorithm>

namespace brontes::encode {
namespace {

struct Scope {
  VkPipelineStageFlags stages;
  VkAccessFlags writes;    // what is made available
  VkAccessFlags accesses;  // what it is made visible to
};

Scope scope_of(Stage stage) {
  constexpr VkAccessFlags shader = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  constexpr VkAccessFlags transfer = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  switch (stage) {
    case Stage::compute: return {VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT, shader};
    case Stage::transfer: return {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, transfer};
    case Stage::host: return {VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_WRITE_BIT, VK_ACCESS_HOST_READ_BIT};
    case Stage::all: break;
  }
  return {VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
          VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT, shader | transfer};
}

}  // namespace

Error Encoder::begin(Use use) {
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags =
      use == Use::once ? VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT : VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
  return vk::check(context_.vk().vkBeginCommandBuffer(commands_, &begin), "vkBeginCommandBuffer");
}

Error Encoder::end() { return vk::check(context_.vk().vkEndCommandBuffer(commands_), "vkEndCommandBuffer"); }

void Encoder::barrier(Stage before, Stage after) {
  const Scope from = scope_of(before);
  const Scope to = scope_of(after);
  VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  memory.srcAccessMask = from.writes;
  memory.dstAccessMask = to.accesses;
  context_.vk().vkCmdPipelineBarrier(commands_, from.stages, to.stages, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

void Encoder::copy(const vk::Allocation& from, std::uint64_t from_offset, const vk::Allocation& to,
                   std::uint64_t to_offset, std::uint64_t bytes) {
  const VkBufferCopy region{from_offset, to_offset, bytes};
  context_.vk().vkCmdCopyBuffer(commands_, from.buffer(), to.buffer(), 1, &region);
}

void Encoder::zero(const vk::Allocation& memory) {
  context_.vk().vkCmdFillBuffer(commands_, memory.buffer(), 0, VK_WHOLE_SIZE, 0);
}

DescriptorNeeds descriptor_needs(const plan::Plan& plan) {
  DescriptorNeeds needs;
  for (const plan::Dispatch& d : plan.dispatches) {
    ++needs.sets;
    needs.descriptors += d.binding_count;
  }
  return needs;
}

Result<Bindings> Bindings::make(vk::Context& context, const plan::Plan& plan, const Memories& memories,
                                const vk::DescriptorSlot& descriptors, std::uint64_t* pipelines_created) {
  const vk::DeviceTable& vk = context.vk();
  const std::size_t count = plan.dispatches.size();
  Bindings self;
  if (count == 0) return self;

  self.pipelines_.reserve(count);
  std::vector<VkDescriptorSetLayout> layouts;
  layouts.reserve(count);
  std::size_t bindings = 0;
  for (const plan::Dispatch& d : plan.dispatches) {
    auto pipeline = context.pipelines().get(d.kernel, d.constants.data(), d.constant_count, pipelines_created);
    if (!pipeline) return pipeline.error();
    self.pipelines_.push_back(*pipeline);
    layouts.push_back(pipeline->set_layout);
    bindings += d.binding_count;
  }

  VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  allocate.descriptorPool = descriptors.pool.get();
  allocate.descriptorSetCount = static_cast<std::uint32_t>(count);
  allocate.pSetLayouts = layouts.data();
  self.sets_.resize(count);
  if (Error e = vk::check(vk.vkAllocateDescriptorSets(context.device(), &allocate, self.sets_.data()),
                          "vkAllocateDescriptorSets")) {
    return e;
  }

  std::vector<VkDescriptorBufferInfo> infos;
  infos.reserve(bindings);  // writes point into it
  std::vector<VkWriteDescriptorSet> writes;
  writes.reserve(bindings);
  for (std::size_t i = 0; i < count; ++i) {
    const plan::Dispatch& d = plan.dispatches[i];
    const kernels::Kernel& kernel = kernels::get(d.kernel);
    for (std::size_t b = 0; b < d.binding_count; ++b) {
      const plan::Region& r = d.bindings[b];
      const vk::Allocation& memory = r.resource == plan::arena ? *memories.arena : *memories.resources[r.resource];
      // Whole vec4s; allocations and arena ranges end on such a boundary.
      infos.push_back({memory.buffer(), r.offset, (r.bytes + 15) / 16 * 16});
      VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
      write.dstSet = self.sets_[i];
      write.dstBinding = kernel.bindings[b].binding;
      write.descriptorCount = 1;
      write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
      write.pBufferInfo = &infos.back();
      writes.push_back(write);
    }
  }
  vk.vkUpdateDescriptorSets(context.device(), static_cast<std::uint32_t>(writes.size()), writes.data(), 0, nullptr);
  return self;
}

std::uint64_t Encoder::dispatches(const plan::Plan& plan, plan::DispatchRange range, const Bindings& bindings) {
  const vk::DeviceTable& vk = context_.vk();
  std::uint64_t barriers = 0;
  auto next_barrier = std::lower_bound(plan.barriers.begin(), plan.barriers.end(), range.begin,
                                       [](const plan::Barrier& b, std::uint32_t at) { return b.before < at; });
  VkPipeline current = VK_NULL_HANDLE;
  for (std::uint32_t i = range.begin; i < range.end; ++i) {
    const plan::Dispatch& d = plan.dispatches[i];
    const vk::Pipelines::Bound& pipeline = bindings.pipeline(i);
    if (next_barrier != plan.barriers.end() && next_barrier->before == i) {
      // The first dispatch of a command buffer comes after its opening barrier.
      if (i != range.begin) {
        barrier(Stage::compute, Stage::compute);
        ++barriers;
      }
      ++next_barrier;
    }
    if (pipeline.pipeline != current) {
      current = pipeline.pipeline;
      vk.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, current);
    }
    vk.vkCmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout, 0, 1, &bindings.set(i), 0,
                               nullptr);
    if (d.push_bytes != 0) {
      vk.vkCmdPushConstants(commands_, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, d.push_bytes, d.push.data());
    }
    vk.vkCmdDispatch(commands_, d.groups[0], d.groups[1], d.groups[2]);
  }
  return barriers;
}

}  // namespace brontes::encode
