#include "encode/encoder.hpp"

#include "vk/context.hpp"

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
  return context_.check(context_.vk().vkBeginCommandBuffer(commands_, &begin), "vkBeginCommandBuffer");
}

Error Encoder::end() { return context_.check(context_.vk().vkEndCommandBuffer(commands_), "vkEndCommandBuffer"); }

void Encoder::barrier(Stage before, Stage after) {
  const Scope from = scope_of(before);
  const Scope to = scope_of(after);
  VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  memory.srcAccessMask = from.writes;
  memory.dstAccessMask = to.accesses;
  context_.vk().vkCmdPipelineBarrier(commands_, from.stages, to.stages, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

void Encoder::barrier_from(VkPipelineStageFlags stages, VkAccessFlags writes, Stage after) {
  const Scope to = scope_of(after);
  VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  memory.srcAccessMask = writes;
  memory.dstAccessMask = to.accesses;
  context_.vk().vkCmdPipelineBarrier(commands_, stages, to.stages, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

void Encoder::barrier_to(Stage before, VkPipelineStageFlags stages, VkAccessFlags accesses) {
  const Scope from = scope_of(before);
  VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  memory.srcAccessMask = from.writes;
  memory.dstAccessMask = accesses;
  context_.vk().vkCmdPipelineBarrier(commands_, from.stages, stages, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

void Encoder::begin_label(const char* text) {
  if (!context_.labels()) return;
  VkDebugUtilsLabelEXT label{VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT};
  label.pLabelName = text;
  context_.instance().table.vkCmdBeginDebugUtilsLabelEXT(commands_, &label);
}

void Encoder::end_label() {
  if (context_.labels()) context_.instance().table.vkCmdEndDebugUtilsLabelEXT(commands_);
}

void Encoder::copy(const vk::Allocation& from, std::uint64_t from_offset, const vk::Allocation& to,
                   std::uint64_t to_offset, std::uint64_t bytes) {
  const VkBufferCopy region{from.offset() + from_offset, to.offset() + to_offset, bytes};
  context_.vk().vkCmdCopyBuffer(commands_, from.buffer(), to.buffer(), 1, &region);
}

void Encoder::zero(const vk::Allocation& memory) {
  context_.vk().vkCmdFillBuffer(commands_, memory.buffer(), memory.offset(), VK_WHOLE_SIZE, 0);
}

namespace {

vk::Allocation& memory_of(const plan::Region& r, const Memories& memories) {
  return r.resource == plan::arena ? *memories.arena : *memories.resources[r.resource];
}

// As planned, unless one of the buffers is somebody else's and was not made for it: then as storage buffers, which
// every kernel can do.
kernels::AccessMode access_of(const plan::Dispatch& d, const Memories& memories) {
  using kernels::AccessMode;
  if (d.access == AccessMode::storage) return AccessMode::storage;
  const kernels::Kernel& kernel = kernels::get(d.kernel);
  for (std::size_t b = 0; b < d.binding_count; ++b) {
    const vk::Allocation& memory = memory_of(d.bindings[b], memories);
    const bool can = d.access == AccessMode::pointer
                         ? memory.address() != 0
                         : kernel.bindings[b].access != kernels::Access::read ||
                               (memory.usage() & VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT) != 0;
    if (!can) return AccessMode::storage;
  }
  return d.access;
}

}  // namespace

vk::DescriptorNeeds descriptor_needs(const plan::Plan& plan, const Memories& memories) {
  vk::DescriptorNeeds needs;
  for (const plan::Dispatch& d : plan.dispatches) {
    ++needs.sets;
    const kernels::AccessMode access = access_of(d, memories);
    if (access == kernels::AccessMode::pointer) {
      ++needs.uniform;
      continue;
    }
    for (const kernels::Binding& slot : kernels::get(d.kernel).bindings) {
      const bool texel = vk::descriptor_type(access, slot.access) == VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER;
      ++(texel ? needs.texel : needs.storage);
    }
  }
  return needs;
}

namespace {

// Collects the descriptors of a plan and writes them in one call.
class DescriptorWrites {
 public:
  DescriptorWrites(const Memories& memories, const vk::DescriptorNeeds& needs) : memories_(memories) {
    buffers_.reserve(needs.storage + needs.uniform);  // writes point into both
    views_.reserve(needs.texel);
    writes_.reserve(needs.storage + needs.uniform + needs.texel);
  }

  void addresses(VkDescriptorSet set, const plan::Dispatch& d, const vk::Allocation& tables, std::uint64_t offset) {
    auto* table = reinterpret_cast<VkDeviceAddress*>(tables.mapped() + offset);
    const kernels::Kernel& kernel = kernels::get(d.kernel);
    for (std::size_t b = 0; b < d.binding_count; ++b) {
      table[kernel.bindings[b].binding] = memory(d.bindings[b]).address() + d.bindings[b].offset;
    }
    buffers_.push_back({tables.buffer(), offset, vk::address_table_bytes});
    add(set, 0, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER).pBufferInfo = &buffers_.back();
  }

  Error slot(VkDescriptorSet set, const plan::Dispatch& d, kernels::AccessMode access, std::size_t b) {
    const kernels::Binding& slot = kernels::get(d.kernel).bindings[b];
    const plan::Region& r = d.bindings[b];
    const VkDescriptorType type = vk::descriptor_type(access, slot.access);
    // Whole vec4s; allocations and arena ranges end on such a boundary, or may be read up to one. Other kernels may ask
    // for an array's length.
    const bool exact = !d.kernel.is_library() || (slot.access != kernels::Access::read && memory(r).exact());
    const std::uint64_t bytes = exact ? r.bytes : (r.bytes + 15) / 16 * 16;
    if (type == VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER) {
      auto view = memory(r).view(r.offset, bytes);
      if (!view) return view.error();
      views_.push_back(*view);
      add(set, slot.binding, type).pTexelBufferView = &views_.back();
    } else {
      buffers_.push_back({memory(r).buffer(), memory(r).offset() + r.offset, bytes});
      add(set, slot.binding, type).pBufferInfo = &buffers_.back();
    }
    return {};
  }

  void run(const vk::Context& context) const {
    context.vk().vkUpdateDescriptorSets(context.device(), static_cast<std::uint32_t>(writes_.size()), writes_.data(), 0,
                                        nullptr);
  }

 private:
  vk::Allocation& memory(const plan::Region& r) const { return memory_of(r, memories_); }
  VkWriteDescriptorSet& add(VkDescriptorSet set, std::uint32_t binding, VkDescriptorType type) {
    VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    write.dstSet = set;
    write.dstBinding = binding;
    write.descriptorCount = 1;
    write.descriptorType = type;
    return writes_.emplace_back(write);
  }

  const Memories& memories_;
  std::vector<VkDescriptorBufferInfo> buffers_;
  std::vector<VkBufferView> views_;
  std::vector<VkWriteDescriptorSet> writes_;
};

}  // namespace

Result<Bindings> Bindings::make(vk::Context& context, const plan::Plan& plan, const Memories& memories,
                                const vk::DescriptorSlot& descriptors, std::uint64_t* pipelines_created) {
  const vk::DeviceTable& vk = context.vk();
  const std::size_t count = plan.dispatches.size();
  Bindings self;
  if (count == 0) return self;

  self.pipelines_.reserve(count);
  std::vector<VkDescriptorSetLayout> layouts;
  layouts.reserve(count);
  std::vector<kernels::AccessMode> accesses;
  accesses.reserve(count);
  for (const plan::Dispatch& d : plan.dispatches) {
    accesses.push_back(access_of(d, memories));
    auto pipeline = context.pipelines().get(d.kernel, accesses.back(), d.constants.data(), d.constant_count, d.in_parts,
                                            pipelines_created);
    if (!pipeline) return pipeline.error();
    self.pipelines_.push_back(*pipeline);
    layouts.push_back(pipeline->set_layout);
  }

  VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  allocate.descriptorPool = descriptors.pool.get();
  allocate.descriptorSetCount = static_cast<std::uint32_t>(count);
  allocate.pSetLayouts = layouts.data();
  self.sets_.resize(count);
  if (Error e = context.check(vk.vkAllocateDescriptorSets(context.device(), &allocate, self.sets_.data()),
                              "vkAllocateDescriptorSets")) {
    return e;
  }

  DescriptorWrites writes(memories, descriptor_needs(plan, memories));
  std::uint64_t next_table = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const plan::Dispatch& d = plan.dispatches[i];
    if (accesses[i] == kernels::AccessMode::pointer) {
      writes.addresses(self.sets_[i], d, *descriptors.addresses, next_table);
      next_table += vk::address_stride(context);
      continue;
    }
    for (std::size_t b = 0; b < d.binding_count; ++b) {
      if (Error e = writes.slot(self.sets_[i], d, accesses[i], b)) return e;
    }
  }
  writes.run(context);
  if (next_table != 0) {
    if (Error e = descriptors.addresses->flush(next_table)) return e;
  }
  return self;
}

std::uint64_t Encoder::dispatches(const plan::Plan& plan, plan::DispatchRange range, const Bindings& bindings,
                                  Span<const std::string> labels, Marks* marks) {
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
    if (!labels.empty()) begin_label(labels[i].c_str());
    if (pipeline.pipeline != current) {
      current = pipeline.pipeline;
      vk.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, current);
    }
    vk.vkCmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout, 0, 1, &bindings.set(i), 0,
                               nullptr);
    if (d.push_bytes != 0) {
      vk.vkCmdPushConstants(commands_, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, d.push_bytes, d.push.data());
    }
    const std::uint32_t begin = i == range.begin ? range.begin_row : 0;
    const std::uint32_t end = i + 1 == range.end && range.end_row != 0 ? range.end_row : d.groups[1];
    if (begin == 0 && end == d.groups[1]) {
      vk.vkCmdDispatch(commands_, d.groups[0], d.groups[1], d.groups[2]);
    } else {
      vk.vkCmdDispatchBase(commands_, 0, begin, 0, d.groups[0], end - begin, 1);
    }
    if (!labels.empty()) end_label();
    if (marks != nullptr)
      marks->add(commands_, {Marks::What::dispatch, i, static_cast<double>(end - begin) / d.groups[1]});
  }
  return barriers;
}

}  // namespace brontes::encode
