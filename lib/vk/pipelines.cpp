#include "vk/pipelines.hpp"

#include "specialize.hpp"
#include "vk/context.hpp"
#include "vk/result.hpp"

namespace brontes::vk {

VkDescriptorType descriptor_type(kernels::AccessMode access, kernels::Access slot) noexcept {
  if (access == kernels::AccessMode::pointer) return VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
  if (access == kernels::AccessMode::texel && slot == kernels::Access::read) {
    return VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER;
  }
  return VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
}

Error Pipelines::open(const std::vector<std::uint8_t>& payload) {
  VkPipelineCacheCreateInfo create{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  create.initialDataSize = payload.size();
  create.pInitialData = payload.data();
  VkPipelineCache cache = VK_NULL_HANDLE;
  const VkResult result = context_.vk().vkCreatePipelineCache(context_.device(), &create, nullptr, &cache);
  if (Error e = check(result, "vkCreatePipelineCache")) return e;
  cache_ = PipelineCache(context_.device(), context_.vk(), cache);
  return {};
}

Error Pipelines::make_kernel(kernels::Id id, kernels::AccessMode access, KernelObjects& objects) const {
  const kernels::Kernel& kernel = kernels::get(id);
  const DeviceTable& vk = context_.vk();
  const VkDevice device = context_.device();

  std::vector<VkDescriptorSetLayoutBinding> bindings;
  auto add = [&](std::uint32_t number, kernels::Access slot) {
    bindings.push_back({number, descriptor_type(access, slot), 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
  };
  if (access == kernels::AccessMode::pointer) {
    add(0, kernels::Access::read);
  } else {
    for (const kernels::Binding& b : kernel.bindings) add(b.binding, b.access);
  }
  VkDescriptorSetLayoutCreateInfo set_create{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  set_create.bindingCount = static_cast<std::uint32_t>(bindings.size());
  set_create.pBindings = bindings.data();
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  if (Error e = check(vk.vkCreateDescriptorSetLayout(device, &set_create, nullptr, &set_layout),
                      "vkCreateDescriptorSetLayout")) {
    return e;
  }
  objects.set_layout = DescriptorSetLayout(device, vk, set_layout);

  const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, kernel.push_bytes};
  VkPipelineLayoutCreateInfo layout_create{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  layout_create.setLayoutCount = 1;
  layout_create.pSetLayouts = &set_layout;
  layout_create.pushConstantRangeCount = kernel.push_bytes != 0 ? 1 : 0;
  layout_create.pPushConstantRanges = &push;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  if (Error e = check(vk.vkCreatePipelineLayout(device, &layout_create, nullptr, &layout), "vkCreatePipelineLayout")) {
    return e;
  }
  objects.layout = PipelineLayout(device, vk, layout);

  const std::string name = std::string("brontes ") + kernel.name;
  context_.set_name(VK_OBJECT_TYPE_DESCRIPTOR_SET_LAYOUT, reinterpret_cast<std::uint64_t>(set_layout), name.c_str());
  context_.set_name(VK_OBJECT_TYPE_PIPELINE_LAYOUT, reinterpret_cast<std::uint64_t>(layout), name.c_str());
  return {};
}

Result<Pipeline> Pipelines::make_pipeline(const PipelineKey& key, const KernelObjects& objects) const {
  const kernels::Kernel& kernel = kernels::get(key.kernel);
  // Specialized here and not by the driver: not every driver folds specialization constants.
  const auto words = kernels::specialize(kernel, {key.constants.data(), key.constants.size()}, key.access);
  VkShaderModuleCreateInfo module_create{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  module_create.codeSize = words.size() * sizeof(std::uint32_t);
  module_create.pCode = words.data();
  VkShaderModule module = VK_NULL_HANDLE;
  if (Error e = check(context_.vk().vkCreateShaderModule(context_.device(), &module_create, nullptr, &module),
                      "vkCreateShaderModule")) {
    return e;
  }
  const ShaderModule owned_module(context_.device(), context_.vk(), module);

  VkComputePipelineCreateInfo create{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  create.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
  create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  create.stage.module = module;
  create.stage.pName = "main";
  create.layout = objects.layout.get();
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult result =
      context_.vk().vkCreateComputePipelines(context_.device(), cache_.get(), 1, &create, nullptr, &pipeline);
  if (Error e = check(result, "vkCreateComputePipelines")) {
    e.message = std::string("kernel ") + kernel.name + ": " + e.message;
    return e;
  }
  const std::string name = std::string("brontes ") + kernel.name;
  context_.set_name(VK_OBJECT_TYPE_PIPELINE, reinterpret_cast<std::uint64_t>(pipeline), name.c_str());
  return Pipeline(context_.device(), context_.vk(), pipeline);
}

Result<Pipelines::Bound> Pipelines::get(kernels::Id id, kernels::AccessMode access, const std::uint32_t* constants,
                                        std::size_t constant_count, std::uint64_t* created_here) {
  ++requested;
  KernelObjects& objects = kernels_[static_cast<std::size_t>(id)][static_cast<std::size_t>(access)];
  {
    std::lock_guard lock(objects.mutex);
    if (!objects.layout) {
      if (Error e = make_kernel(id, access, objects)) return e;
    }
  }

  const PipelineKey key{id, access, {constants, constants + constant_count}};
  std::shared_ptr<Entry> entry;
  {
    std::lock_guard lock(mutex_);
    auto& slot = entries_[key];
    if (!slot) slot = std::make_shared<Entry>();
    entry = slot;
  }
  std::lock_guard lock(entry->mutex);
  if (!entry->pipeline) {
    auto made = make_pipeline(key, objects);
    if (!made) return made.error();
    entry->pipeline = std::move(*made);
    ++created;
    if (created_here != nullptr) ++*created_here;
  }
  return Bound{entry->pipeline.get(), objects.layout.get(), objects.set_layout.get()};
}

Result<std::vector<std::uint8_t>> Pipelines::cache_data() const {
  const DeviceTable& vk = context_.vk();
  // The cache may grow between the two calls when other threads create pipelines.
  for (;;) {
    std::size_t size = 0;
    if (Error e = check(vk.vkGetPipelineCacheData(context_.device(), cache_.get(), &size, nullptr),
                        "vkGetPipelineCacheData")) {
      return e;
    }
    std::vector<std::uint8_t> data(size);
    const VkResult result = vk.vkGetPipelineCacheData(context_.device(), cache_.get(), &size, data.data());
    if (result == VK_INCOMPLETE) continue;
    if (Error e = check(result, "vkGetPipelineCacheData")) return e;
    data.resize(size);
    return data;
  }
}

}  // namespace brontes::vk
