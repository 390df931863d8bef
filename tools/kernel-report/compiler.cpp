#include "compiler.hpp"

#include "spirv/float_controls.hpp"
#include "spirv/specialize.hpp"
#include "vk/cooperative_matrix.hpp"
#include "vk/pipelines.hpp"
#include "vk/result.hpp"

#include <cstdlib>
#include <cstring>

namespace kernel_report {
namespace {

using brontes::Errc;
using brontes::Error;
using brontes::Result;
using brontes::vk::check;

template <class Function>
Function function(const brontes::vk::Instance& instance, const char* name) {
  return reinterpret_cast<Function>(instance.get_instance_proc_addr(instance.handle, name));
}

bool tells(const brontes::vk::Instance& instance, VkPhysicalDevice device) {
  const auto enumerate =
      function<PFN_vkEnumerateDeviceExtensionProperties>(instance, "vkEnumerateDeviceExtensionProperties");
  std::uint32_t count = 0;
  if (enumerate == nullptr || enumerate(device, nullptr, &count, nullptr) < 0) return false;
  std::vector<VkExtensionProperties> all(count);
  if (enumerate(device, nullptr, &count, all.data()) < 0) return false;
  for (const VkExtensionProperties& e : all) {
    if (std::strcmp(e.extensionName, VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME) == 0) return true;
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<Compiler>> Compiler::open() {
  std::unique_ptr<Compiler> self(new Compiler());
  auto instance = brontes::vk::Instance::create({});
  if (!instance) return instance.error();
  self->instance_ = *instance;
  auto devices = brontes::vk::describe_all(**instance);
  if (!devices) return devices.error();
  // Those that tell, and of them the one that a program would get.
  std::vector<brontes::vk::PhysicalDevice> telling;
  std::vector<brontes::DeviceInfo> infos;
  for (const brontes::vk::PhysicalDevice& device : *devices) {
    if (!device.info.suitable || !tells(**instance, device.handle)) continue;
    telling.push_back(device);
    infos.push_back(device.info);
  }
  if (telling.empty()) {
    return Error(Errc::no_device, "no device here has " VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME
                                  ": their drivers do not tell");
  }
  const char* wish = std::getenv("BRONTES_DEVICE");
  const auto chosen = brontes::vk::choose_device({infos.data(), infos.size()}, wish == nullptr ? "" : wish, true);
  if (!chosen) return chosen.error();
  self->physical_ = telling[*chosen];

  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = self->physical_.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR feature{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
  feature.pipelineExecutableInfo = VK_TRUE;
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroups{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
  subgroups.subgroupSizeControl = self->physical_.required_subgroup_size ? VK_TRUE : VK_FALSE;
  subgroups.computeFullSubgroups = self->physical_.full_subgroups ? VK_TRUE : VK_FALSE;
  std::vector<const char*> extensions{VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME};
  if (self->physical_.required_subgroup_size || self->physical_.full_subgroups) {
    feature.pNext = &subgroups;
    extensions.push_back(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  }
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR, feature.pNext};
  VkPhysicalDeviceShaderFloat16Int8Features halves{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES,
                                                   &matrices};
  VkPhysicalDeviceVulkanMemoryModelFeatures model{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES,
                                                  &halves};
  matrices.cooperativeMatrix = halves.shaderFloat16 = model.vulkanMemoryModel = VK_TRUE;
  if (!self->physical_.matrices.empty()) {
    feature.pNext = &model;
    extensions.push_back(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
  }
  VkDeviceCreateInfo create{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &feature};
  create.queueCreateInfoCount = 1;
  create.pQueueCreateInfos = &queue;
  create.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  create.ppEnabledExtensionNames = extensions.data();
  const auto& table = (*instance)->table;
  if (Error e =
          check(table.vkCreateDevice(self->physical_.handle, &create, nullptr, &self->device_), "vkCreateDevice")) {
    return e;
  }
#define BRONTES_LOAD(name) \
  self->table_.name = reinterpret_cast<PFN_##name>(table.vkGetDeviceProcAddr(self->device_, #name));
  BRONTES_DEVICE_FUNCTIONS(BRONTES_LOAD)
#undef BRONTES_LOAD
  self->get_executables_ = reinterpret_cast<PFN_vkGetPipelineExecutablePropertiesKHR>(
      table.vkGetDeviceProcAddr(self->device_, "vkGetPipelineExecutablePropertiesKHR"));
  self->get_statistics_ = reinterpret_cast<PFN_vkGetPipelineExecutableStatisticsKHR>(
      table.vkGetDeviceProcAddr(self->device_, "vkGetPipelineExecutableStatisticsKHR"));
  self->get_representations_ = reinterpret_cast<PFN_vkGetPipelineExecutableInternalRepresentationsKHR>(
      table.vkGetDeviceProcAddr(self->device_, "vkGetPipelineExecutableInternalRepresentationsKHR"));
  return self;
}

Compiler::~Compiler() {
  if (device_ != VK_NULL_HANDLE) table_.vkDestroyDevice(device_, nullptr);
}

Result<Figures> Compiler::compile(const brontes::kernels::Kernel& kernel,
                                  const std::vector<std::uint32_t>& constants) const {
  std::vector<std::uint32_t> bindings;
  for (const brontes::kernels::Binding& b : kernel.bindings) bindings.push_back(b.binding);
  auto words = brontes::spirv::specialize(kernel, {constants.data(), constants.size()});
  if (physical_.float_controls) brontes::spirv::preserve_special_values(words);
  if (physical_.half_denormals) brontes::spirv::preserve_half_denormals(words);
  const std::uint32_t lanes = brontes::vk::required_lanes(kernel, {constants.data(), constants.size()});
  return compile(words, bindings, kernel.push_bytes, lanes);
}

Result<Figures> Compiler::compile(const std::vector<std::uint32_t>& spirv, const std::vector<std::uint32_t>& bindings,
                                  std::uint32_t push_bytes, std::uint32_t lanes) const {
  std::vector<VkDescriptorSetLayoutBinding> slots;
  for (std::uint32_t b : bindings) {
    slots.push_back({b, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
  }
  VkDescriptorSetLayoutCreateInfo set_create{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  set_create.bindingCount = static_cast<std::uint32_t>(slots.size());
  set_create.pBindings = slots.data();
  VkDescriptorSetLayout set = VK_NULL_HANDLE;
  if (Error e = check(table_.vkCreateDescriptorSetLayout(device_, &set_create, nullptr, &set),
                      "vkCreateDescriptorSetLayout")) {
    return e;
  }
  const brontes::vk::DescriptorSetLayout owned_set(device_, table_, set);

  const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, push_bytes};
  VkPipelineLayoutCreateInfo layout_create{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  layout_create.setLayoutCount = 1;
  layout_create.pSetLayouts = &set;
  layout_create.pushConstantRangeCount = push_bytes != 0 ? 1 : 0;
  layout_create.pPushConstantRanges = &push;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  if (Error e =
          check(table_.vkCreatePipelineLayout(device_, &layout_create, nullptr, &layout), "vkCreatePipelineLayout")) {
    return e;
  }
  const brontes::vk::PipelineLayout owned_layout(device_, table_, layout);

  VkShaderModuleCreateInfo module_create{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  module_create.codeSize = spirv.size() * sizeof(std::uint32_t);
  module_create.pCode = spirv.data();
  VkShaderModule module = VK_NULL_HANDLE;
  if (Error e = check(table_.vkCreateShaderModule(device_, &module_create, nullptr, &module), "vkCreateShaderModule")) {
    return e;
  }
  const brontes::vk::ShaderModule owned_module(device_, table_, module);

  VkComputePipelineCreateInfo create{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  create.flags =
      VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR | VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR;
  create.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
  create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  create.stage.module = module;
  create.stage.pName = "main";
  create.layout = layout;
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size{
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
  size.requiredSubgroupSize = lanes;
  if (lanes != 0) brontes::vk::require_subgroups(physical_, size, create.stage);
  VkPipeline pipeline = VK_NULL_HANDLE;
  if (Error e = check(table_.vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &create, nullptr, &pipeline),
                      "vkCreateComputePipelines")) {
    return e;
  }
  const brontes::vk::Pipeline owned_pipeline(device_, table_, pipeline);

  return figures_of(pipeline);
}

Result<Figures> Compiler::figures_of(VkPipeline pipeline) const {
  VkPipelineInfoKHR info{VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR};
  info.pipeline = pipeline;
  std::uint32_t count = 0;
  const char* const what = "vkGetPipelineExecutablePropertiesKHR";
  if (Error e = check(get_executables_(device_, &info, &count, nullptr), what)) return e;
  std::vector<VkPipelineExecutablePropertiesKHR> executables(count,
                                                             {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR});
  if (Error e = check(get_executables_(device_, &info, &count, executables.data()), what)) return e;
  if (executables.empty()) return Error(Errc::unsupported, physical_.info.driver + " made nothing of the pipeline");

  // Where there are several, for subgroups of several sizes, the worst counts.
  Figures figures;
  for (std::uint32_t i = 0; i < count; ++i) {
    VkPipelineExecutableInfoKHR executable{VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR};
    executable.pipeline = pipeline;
    executable.executableIndex = i;
    auto statistics = statistics_of(executable);
    if (!statistics) return statistics.error();
    auto usage = usage_of(physical_.driver_id, *statistics);
    if (!usage) return usage.error();
    if (i != 0 && usage->spills <= figures.usage.spills) continue;
    auto assembly = assembly_of(executable);
    if (!assembly) return assembly.error();
    figures.usage = *usage;
    figures.statistics = std::move(*statistics);
    figures.subgroup_size = executables[i].subgroupSize;
    figures.assembly = std::move(*assembly);
    if (radv()) figures.isa = read_isa(figures.assembly);
  }
  return figures;
}

Result<Statistics> Compiler::statistics_of(const VkPipelineExecutableInfoKHR& executable) const {
  const char* const what = "vkGetPipelineExecutableStatisticsKHR";
  std::uint32_t count = 0;
  if (Error e = check(get_statistics_(device_, &executable, &count, nullptr), what)) return e;
  std::vector<VkPipelineExecutableStatisticKHR> all(count, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR});
  if (Error e = check(get_statistics_(device_, &executable, &count, all.data()), what)) return e;
  Statistics statistics;
  for (const auto& s : all) {
    const bool number = s.format != VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR;
    statistics[s.name] = number ? s.value.u64 : static_cast<std::uint64_t>(s.value.f64);
  }
  return statistics;
}

Result<std::string> Compiler::assembly_of(const VkPipelineExecutableInfoKHR& executable) const {
  const char* const what = "vkGetPipelineExecutableInternalRepresentationsKHR";
  std::uint32_t count = 0;
  if (Error e = check(get_representations_(device_, &executable, &count, nullptr), what)) return e;
  std::vector<VkPipelineExecutableInternalRepresentationKHR> all(
      count, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR});
  if (Error e = check(get_representations_(device_, &executable, &count, all.data()), what)) return e;
  std::vector<std::string> texts(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    texts[i].resize(all[i].dataSize);
    all[i].pData = texts[i].data();
  }
  if (Error e = check(get_representations_(device_, &executable, &count, all.data()), what)) return e;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (std::strcmp(all[i].name, "Assembly") == 0) return std::string(texts[i].c_str());
  }
  if (radv()) return Error(Errc::unsupported, physical_.info.driver + " shows no assembly");
  // Others have other names for it, and show it after what they made it of.
  return texts.empty() ? std::string() : std::string(texts.back().c_str());
}

}  // namespace kernel_report
