#include "encode/encoder.hpp"

#include "vk/context.hpp"
#include "vk/result.hpp"

#include <vector>

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

Error Encoder::begin() {
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
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

Error Encoder::dispatches(const plan::Plan& plan, const Memories& memories, const vk::DescriptorSlot& descriptors,
                          std::uint64_t* pipelines_created) {
  const vk::DeviceTable& vk = context_.vk();
  const std::size_t count = plan.dispatches.size();
  if (count == 0) return {};

  std::vector<vk::Pipelines::Bound> bound;
  bound.reserve(count);
  std::vector<VkDescriptorSetLayout> layouts;
  layouts.reserve(count);
  std::size_t bindings = 0;
  for (const plan::Dispatch& d : plan.dispatches) {
    auto pipeline = context_.pipelines().get(d.kernel, d.constants.data(), d.constant_count, pipelines_created);
    if (!pipeline) return pipeline.error();
    bound.push_back(*pipeline);
    layouts.push_back(pipeline->set_layout);
    bindings += d.binding_count;
  }

  VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  allocate.descriptorPool = descriptors.pool.get();
  allocate.descriptorSetCount = static_cast<std::uint32_t>(count);
  allocate.pSetLayouts = layouts.data();
  std::vector<VkDescriptorSet> sets(count);
  if (Error e = vk::check(vk.vkAllocateDescriptorSets(context_.device(), &allocate, sets.data()),
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
      write.dstSet = sets[i];
      write.dstBinding = kernel.bindings[b].binding;
      write.descriptorCount = 1;
      write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
      write.pBufferInfo = &infos.back();
      writes.push_back(write);
    }
  }
  vk.vkUpdateDescriptorSets(context_.device(), static_cast<std::uint32_t>(writes.size()), writes.data(), 0, nullptr);

  auto next_barrier = plan.barriers.begin();
  VkPipeline current = VK_NULL_HANDLE;
  for (std::size_t i = 0; i < count; ++i) {
    const plan::Dispatch& d = plan.dispatches[i];
    if (next_barrier != plan.barriers.end() && next_barrier->before == i) {
      barrier(Stage::compute, Stage::compute);
      ++next_barrier;
    }
    if (bound[i].pipeline != current) {
      current = bound[i].pipeline;
      vk.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, current);
    }
    vk.vkCmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, bound[i].layout, 0, 1, &sets[i], 0, nullptr);
    if (d.push_bytes != 0) {
      vk.vkCmdPushConstants(commands_, bound[i].layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, d.push_bytes, d.push.data());
    }
    vk.vkCmdDispatch(commands_, d.groups[0], d.groups[1], d.groups[2]);
  }
  return {};
}

}  // namespace brontes::encode
