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

// Collects the descriptors of a plan and writes them in one call.
class DescriptorWrites {
 public:
  DescriptorWrites(const Memories& memories, const vk::DescriptorNeeds& needs) : memories_(memories) {
    buffers_.reserve(needs.storage + needs.uniform);  // writes point into both
    views_.reserve(needs.texel);
    writes_.reserve(needs.storage + needs.uniform + needs.texel);
  }

  void table(VkDescriptorSet set, const vk::Allocation& tables, std::uint64_t offset) {
    buffers_.push_back({tables.buffer(), offset, vk::address_table_bytes});
    add(set, 0, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER).pBufferInfo = &buffers_.back();
  }

  Error slot(VkDescriptorSet set, const plan::Dispatch& d, kernels::AccessMode access, std::size_t b) {
    const kernels::Binding& slot = kernels::get(d.kernel).bindings[b];
    const plan::Region& r = d.bindings[b];
    vk::Allocation& memory = memory_of(r, memories_);
    const VkDescriptorType type = vk::descriptor_type(access, slot.access);
    // Whole vec4s; allocations and arena ranges end on such a boundary, or may be read up to one. Other kernels may ask
    // for an array's length.
    const bool exact = !d.kernel.is_library() || (slot.access != kernels::Access::read && memory.exact());
    const std::uint64_t unit = exact ? 4 : 16;
    const std::uint64_t bytes = (r.bytes + unit - 1) / unit * unit;
    if (type == VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER) {
      // Slots that a kernel does not use show the same as one that it uses.
      if (views_.empty() || !(r == viewed_)) {
        auto view = memory.view(r.offset, bytes);
        if (!view) return view.error();
        views_.push_back(*view);
        viewed_ = r;
      }
      add(set, slot.binding, type).pTexelBufferView = &views_.back();
    } else {
      buffers_.push_back({memory.buffer(), memory.offset() + r.offset, bytes});
      add(set, slot.binding, type).pBufferInfo = &buffers_.back();
    }
    return {};
  }

  void run(const vk::Context& context) const {
    if (writes_.empty()) return;
    context.vk().vkUpdateDescriptorSets(context.device(), static_cast<std::uint32_t>(writes_.size()), writes_.data(), 0,
                                        nullptr);
  }

 private:
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
  plan::Region viewed_;  // by the last of them
  std::vector<VkWriteDescriptorSet> writes_;
};

bool same_pipeline(const plan::Dispatch& a, const plan::Dispatch& b) {
  return a.kernel == b.kernel && a.in_parts == b.in_parts &&
         std::equal(a.constants.begin(), a.constants.begin() + a.constant_count, b.constants.begin());
}

}  // namespace

Error Bindings::find_pipelines(vk::Context& context, const plan::Plan& plan, const Memories& memories,
                               BatchStats& cost) {
  uses_.reserve(plan.dispatches.size());
  for (std::uint32_t i = 0; i < plan.dispatches.size(); ++i) {
    const plan::Dispatch& d = plan.dispatches[i];
    const kernels::AccessMode access = access_of(d, memories);
    // Neighbours mostly share a pipeline.
    if (i != 0 && access == uses_[i - 1].access && same_pipeline(d, plan.dispatches[i - 1])) {
      uses_.push_back(uses_[i - 1]);
      ++context.pipelines().requested;
      continue;
    }
    auto bound = context.pipelines().get(d.kernel, access, d.constants.data(), d.constant_count, d.in_parts,
                                         &cost.pipelines_created);
    if (!bound) return bound.error();
    auto known = std::find_if(pipelines_.begin(), pipelines_.end(),
                              [&](const Distinct& p) { return p.bound.pipeline == bound->pipeline; });
    if (known == pipelines_.end()) known = pipelines_.insert(known, {*bound, i});
    uses_.push_back({static_cast<std::uint32_t>(known - pipelines_.begin()), access});
  }
  return {};
}

Error Bindings::write_descriptors(const vk::Context& context, const plan::Plan& plan, const Memories& memories) {
  vk::DescriptorNeeds needs;
  for (const Use& use : uses_) needs += pipelines_[use.pipeline].bound.set;
  DescriptorWrites writes(memories, needs);
  vk::DescriptorSlot& slot = *descriptors_;
  vk::DescriptorSlot::Sets* sets = nullptr;
  vk::DescriptorSlot::Sets* with_tables = nullptr;  // one layout at most
  std::uint64_t tables_end = 0;
  sets_.reserve(uses_.size());
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    const plan::Dispatch& d = plan.dispatches[i];
    const VkDescriptorSetLayout layout = pipeline(i).set_layout;
    if (sets == nullptr || sets->layout != layout) sets = &slot.of(layout);
    const std::size_t number = sets->used++;
    const VkDescriptorSet set = sets_.emplace_back(sets->all[number]);
    if (uses_[i].access == kernels::AccessMode::pointer) {
      // The set of this number shows the table of this number, whatever it is used for.
      const std::uint64_t offset = number * vk::address_stride(context);
      auto* table = reinterpret_cast<VkDeviceAddress*>(slot.addresses->mapped() + offset);
      const kernels::Kernel& kernel = kernels::get(d.kernel);
      for (std::size_t b = 0; b < d.binding_count; ++b) {
        table[kernel.bindings[b].binding] = memory_of(d.bindings[b], memories).address() + d.bindings[b].offset;
      }
      tables_end = std::max(tables_end, offset + vk::address_table_bytes);
      with_tables = sets;
      if (number >= sets->written) writes.table(set, *slot.addresses, offset);
      continue;
    }
    for (std::size_t b = 0; b < d.binding_count; ++b) {
      if (Error e = writes.slot(set, d, uses_[i].access, b)) return e;
    }
  }
  writes.run(context);
  if (with_tables != nullptr) with_tables->written = std::max(with_tables->written, with_tables->used);
  return tables_end != 0 ? slot.addresses->flush(tables_end) : Error();
}

Result<Bindings> Bindings::make(vk::Context& context, const plan::Plan& plan, const Memories& memories,
                                BatchStats& cost) {
  Bindings self;
  if (plan.dispatches.empty()) return self;
  if (Error e = self.find_pipelines(context, plan, memories, cost)) return e;

  std::vector<vk::Recycler::SetsWanted> wanted;
  for (const Distinct& p : self.pipelines_) {
    const bool known = std::any_of(wanted.begin(), wanted.end(),
                                   [&](const vk::Recycler::SetsWanted& w) { return w.layout == p.bound.set_layout; });
    if (!known) wanted.push_back({p.bound.set_layout, p.bound.set, 0});
  }
  vk::Recycler::SetsWanted* last = wanted.data();
  for (const Use& use : self.uses_) {
    const VkDescriptorSetLayout layout = self.pipelines_[use.pipeline].bound.set_layout;
    if (last->layout != layout) {
      last = &*std::find_if(wanted.begin(), wanted.end(),
                            [&](const vk::Recycler::SetsWanted& w) { return w.layout == layout; });
    }
    ++last->count;
  }
  auto descriptors = context.recycler().take_descriptors(wanted, &cost.allocations);
  if (!descriptors) return descriptors.error();
  self.descriptors_ = std::move(*descriptors);
  if (Error e = self.write_descriptors(context, plan, memories)) return e;
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
