#include "vk/pipelines.hpp"

#include "spirv/float_controls.hpp"
#include "spirv/specialize.hpp"
#include "util/hash.hpp"
#include "vk/context.hpp"
#include "vk/result.hpp"

#include <algorithm>
#include <string_view>

namespace brontes::vk {

VkDescriptorType descriptor_type(kernels::AccessMode access, kernels::Access slot) noexcept {
  if (access == kernels::AccessMode::pointer) return VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
  if (access == kernels::AccessMode::texel && slot == kernels::Access::read) {
    return VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER;
  }
  return VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
}

std::uint32_t required_lanes(const kernels::Kernel& kernel, Span<const std::uint32_t> constants) noexcept {
  // kernels/include/lanes.glsl has it.
  for (std::size_t i = 0; i < constants.size(); ++i) {
    if (std::string_view(kernel.constants[i].name) == "subgroup_lanes") return constants[i];
  }
  return 0;
}

void require_subgroups(const PhysicalDevice& device, const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo& size,
                       VkPipelineShaderStageCreateInfo& stage) noexcept {
  // Where neither is possible, there is one size only (engine/traits.cpp).
  if (device.required_subgroup_size) stage.pNext = &size;
  if (device.full_subgroups) stage.flags |= VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
}

Error Pipelines::open(const std::vector<std::uint8_t>& payload) {
  VkPipelineCacheCreateInfo create{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  create.initialDataSize = payload.size();
  create.pInitialData = payload.data();
  VkPipelineCache cache = VK_NULL_HANDLE;
  const VkResult result =
      context_.vk().vkCreatePipelineCache(context_.device(), &create, context_.vk().callbacks, &cache);
  if (Error e = context_.check(result, "vkCreatePipelineCache")) return e;
  cache_ = PipelineCache(context_.device(), context_.vk(), cache);
  return {};
}

Error Pipelines::merge(const std::vector<std::uint8_t>& payload) {
  if (Error e = context_.usable()) return e;
  VkPipelineCacheCreateInfo create{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  create.initialDataSize = payload.size();
  create.pInitialData = payload.data();
  VkPipelineCache made = VK_NULL_HANDLE;
  if (Error e = context_.check(
          context_.vk().vkCreatePipelineCache(context_.device(), &create, context_.vk().callbacks, &made),
          "vkCreatePipelineCache")) {
    return e;
  }
  const PipelineCache source(context_.device(), context_.vk(), made);
  const std::lock_guard lock(cache_mutex_);
  return context_.check(context_.vk().vkMergePipelineCaches(context_.device(), cache_.get(), 1, &made),
                        "vkMergePipelineCaches");
}

std::uint64_t PipelineKey::hash() const noexcept {
  std::uint64_t hash = util::mix(static_cast<std::uint64_t>(kernel) << 8 | static_cast<std::uint64_t>(access) << 1 |
                                     static_cast<std::uint64_t>(based),
                                 constants.size());
  for (std::uint32_t constant : constants) hash = util::mix(hash, constant);
  return hash;
}

bool operator==(const PipelineKey& a, const PipelineKey& b) noexcept {
  return a.kernel == b.kernel && a.access == b.access && a.based == b.based &&
         std::equal(a.constants.begin(), a.constants.end(), b.constants.begin(), b.constants.end());
}

Error Pipelines::make_set_layout(Span<const VkDescriptorSetLayoutBinding> bindings, const char* name,
                                 DescriptorSetLayout& layout) const {
  VkDescriptorSetLayoutCreateInfo create{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  create.bindingCount = static_cast<std::uint32_t>(bindings.size());
  create.pBindings = bindings.data();
  const DeviceTable& vk = context_.vk();
  VkDescriptorSetLayout made = VK_NULL_HANDLE;
  if (Error e = context_.check(vk.vkCreateDescriptorSetLayout(context_.device(), &create, vk.callbacks, &made),
                               "vkCreateDescriptorSetLayout")) {
    return e;
  }
  layout = DescriptorSetLayout(context_.device(), vk, made);
  context_.set_name(VK_OBJECT_TYPE_DESCRIPTOR_SET_LAYOUT, reinterpret_cast<std::uint64_t>(made), name);
  return {};
}

Error Pipelines::make_kernel(const kernels::Kernel& kernel, kernels::AccessMode access, KernelObjects& objects) {
  const DeviceTable& vk = context_.vk();
  const VkDevice device = context_.device();
  const std::string name = std::string("brontes ") + kernel.name;

  if (access == kernels::AccessMode::pointer) {
    // The same for all of them: sets need not be of the kernel that uses them.
    const std::lock_guard lock(mutex_);
    const VkDescriptorSetLayoutBinding table{0, descriptor_type(access, kernels::Access::read), 1,
                                             VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
    if (!tables_) {
      if (Error e = make_set_layout({&table, 1}, "brontes addresses", tables_)) return e;
    }
    objects.set_layout = tables_.get();
    objects.set = {1, 0, 0, 1};
  } else if (!objects.own_set_layout) {
    std::vector<VkDescriptorSetLayoutBinding> bindings;
    DescriptorNeeds set{1, 0, 0, 0};
    for (const kernels::Binding& b : kernel.bindings) {
      const VkDescriptorType type = descriptor_type(access, b.access);
      bindings.push_back({b.binding, type, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
      ++(type == VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER ? set.texel : set.storage);
    }
    if (Error e = make_set_layout(bindings, name.c_str(), objects.own_set_layout)) return e;
    objects.set_layout = objects.own_set_layout.get();
    objects.set = set;
  }

  const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, kernel.push_bytes};
  VkPipelineLayoutCreateInfo layout_create{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  layout_create.setLayoutCount = 1;
  layout_create.pSetLayouts = &objects.set_layout;
  layout_create.pushConstantRangeCount = kernel.push_bytes != 0 ? 1 : 0;
  layout_create.pPushConstantRanges = &push;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  if (Error e = context_.check(vk.vkCreatePipelineLayout(device, &layout_create, vk.callbacks, &layout),
                               "vkCreatePipelineLayout")) {
    return e;
  }
  objects.layout = PipelineLayout(device, vk, layout);

  context_.set_name(VK_OBJECT_TYPE_PIPELINE_LAYOUT, reinterpret_cast<std::uint64_t>(layout), name.c_str());
  return {};
}

Error Pipelines::make_pipeline(const kernels::Kernel& kernel, const PipelineKey* key, const KernelObjects& objects,
                               Entry& entry) const {
  std::vector<std::uint32_t> words;
  if (key == nullptr) {
    words.assign(kernel.words().begin(), kernel.words().end());
  } else {
    // Specialized here and not by the driver: not every driver folds specialization constants.
    words = spirv::specialize(kernel, {key->constants.data(), key->constants.size()}, key->access);
    if (context_.float_controls()) spirv::preserve_special_values(words);
    if (context_.half_denormals()) spirv::preserve_half_denormals(words);
  }
  VkShaderModuleCreateInfo module_create{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  module_create.codeSize = words.size() * sizeof(std::uint32_t);
  module_create.pCode = words.data();
  VkShaderModule module = VK_NULL_HANDLE;
  if (Error e = context_.check(
          context_.vk().vkCreateShaderModule(context_.device(), &module_create, context_.vk().callbacks, &module),
          "vkCreateShaderModule")) {
    return e;
  }
  const ShaderModule owned_module(context_.device(), context_.vk(), module);

  VkComputePipelineCreateInfo create{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  create.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
  create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  create.stage.module = module;
  create.stage.pName = kernel.entry_point;
  create.layout = objects.layout.get();
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size{
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
  if (key != nullptr) size.requiredSubgroupSize = required_lanes(kernel, key->constants);
  if (size.requiredSubgroupSize != 0) require_subgroups(context_.physical(), size, create.stage);
  if (key != nullptr && key->based) create.flags = VK_PIPELINE_CREATE_DISPATCH_BASE_BIT;
  VkPipeline pipeline = VK_NULL_HANDLE;
  VkResult result = VK_SUCCESS;
  {
    const std::shared_lock lock(cache_mutex_);
    result = context_.vk().vkCreateComputePipelines(context_.device(), cache_.get(), 1, &create,
                                                    context_.vk().callbacks, &pipeline);
  }
  if (Error e = context_.check(result, "vkCreateComputePipelines")) {
    e.message = std::string("kernel ") + kernel.name + ": " + e.message;
    return e;
  }
  entry.pipeline = Pipeline(context_.device(), context_.vk(), pipeline);
  entry.spirv_bytes = module_create.codeSize;
  const std::string name = std::string("brontes ") + kernel.name;
  context_.set_name(VK_OBJECT_TYPE_PIPELINE, reinterpret_cast<std::uint64_t>(pipeline), name.c_str());
  return {};
}

Result<Pipelines::Bound> Pipelines::bind(const kernels::Kernel& kernel, const PipelineKey* key,
                                         const KernelObjects& objects, Entry& entry, std::uint64_t* created_here) {
  std::lock_guard lock(entry.mutex);
  if (!entry.pipeline) {
    if (Error e = make_pipeline(kernel, key, objects, entry)) return e;
    entry.bound = {entry.pipeline.get(), objects.layout.get(), objects.set_layout, objects.set, entry.spirv_bytes};
    entry.made.store(true, std::memory_order_release);
    ++created;
    if (created_here != nullptr) ++*created_here;
  }
  return entry.bound;
}

Pipelines::Entry* Pipelines::find(const PipelineKey& key, std::uint64_t hash) const {
  const auto [first, last] = entries_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    if (known->second->key == key) return known->second.get();
  }
  return nullptr;
}

Result<Pipelines::Bound> Pipelines::get(kernels::Ref of, kernels::AccessMode access, const std::uint32_t* constants,
                                        std::size_t constant_count, bool based, std::uint64_t* created_here) {
  requested.fetch_add(1, std::memory_order_relaxed);
  const kernels::Kernel& kernel = of.kernel();
  if (!of.is_library()) return get_user(kernel, created_here);
  const PipelineKey key{static_cast<kernels::Id>(of.index()), access, {constants, constant_count}, based};
  const std::uint64_t hash = key.hash();
  Entry* entry = nullptr;
  {
    const std::shared_lock lock(mutex_);
    entry = find(key, hash);
  }
  if (entry != nullptr && entry->made.load(std::memory_order_acquire)) return entry->bound;

  KernelObjects& objects = kernels_[of.index()][static_cast<std::size_t>(access)];
  {
    std::lock_guard lock(objects.mutex);
    if (!objects.layout) {
      if (Error e = make_kernel(kernel, access, objects)) return e;
    }
  }
  if (entry == nullptr) {
    auto fresh = std::make_unique<Entry>();
    fresh->constants.assign(constants, constants + constant_count);
    fresh->key = key;
    fresh->key.constants = fresh->constants;
    const std::lock_guard lock(mutex_);
    entry = find(key, hash);  // somebody else may have come first
    if (entry == nullptr) entry = entries_.emplace(hash, std::move(fresh))->second.get();
  }
  return bind(kernel, &entry->key, objects, *entry, created_here);
}

Result<Pipelines::Bound> Pipelines::get_user(const kernels::Kernel& kernel, std::uint64_t* created_here) {
  const kernels::View<std::uint32_t>& words = kernel.words();
  // Bindings that nothing uses are not in the words any more.
  std::vector<std::uint32_t> layout{kernel.push_bytes};
  for (const kernels::Binding& b : kernel.bindings) layout.push_back(b.binding);
  std::shared_ptr<UserEntry> user;
  {
    std::lock_guard lock(mutex_);
    const auto [first, last] = user_entries_.equal_range(kernel.hash);
    for (auto known = first; known != last && !user; ++known) {
      const UserEntry& e = *known->second;
      if (e.entry_point == kernel.entry_point && e.layout == layout &&
          std::equal(e.words.begin(), e.words.end(), words.begin(), words.end())) {
        user = known->second;
      }
    }
    if (!user) {
      user = std::make_shared<UserEntry>();
      user->entry_point = kernel.entry_point;
      user->words.assign(words.begin(), words.end());
      user->layout = std::move(layout);
      user_entries_.emplace(kernel.hash, user);
    }
  }
  {
    std::lock_guard lock(user->objects.mutex);
    if (!user->objects.layout) {
      if (Error e = make_kernel(kernel, kernels::AccessMode::storage, user->objects)) return e;
    }
  }
  return bind(kernel, nullptr, user->objects, user->entry, created_here);
}

Result<std::vector<std::uint8_t>> Pipelines::cache_data() const {
  if (Error e = context_.usable()) return e;
  const DeviceTable& vk = context_.vk();
  // The cache may grow between the two calls when other threads create pipelines.
  constexpr int most_attempts = 8;
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    const std::shared_lock lock(cache_mutex_);
    std::size_t size = 0;
    if (Error e = context_.check(vk.vkGetPipelineCacheData(context_.device(), cache_.get(), &size, nullptr),
                                 "vkGetPipelineCacheData")) {
      return e;
    }
    std::vector<std::uint8_t> data(size);
    const VkResult result = vk.vkGetPipelineCacheData(context_.device(), cache_.get(), &size, data.data());
    if (result == VK_INCOMPLETE) continue;
    if (Error e = context_.check(result, "vkGetPipelineCacheData")) return e;
    data.resize(size);
    return data;
  }
  return Error(Errc::vulkan, "vkGetPipelineCacheData: VK_INCOMPLETE " + std::to_string(most_attempts) + " times over",
               VK_INCOMPLETE);
}

}  // namespace brontes::vk
