#include "compiler.hpp"

#include "spirv/float_controls.hpp"
#include "spirv/specialize.hpp"
#include "vk/result.hpp"

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
  bool found = false;
  for (const brontes::vk::PhysicalDevice& device : *devices) {
    if (found || !device.info.suitable || !tells(**instance, device.handle)) continue;
    found = true;
    self->physical_ = device;
  }
  if (!found) {
    return Error(Errc::no_device, "no device here has " VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME
                                  "; run under tools/with-driver radv");
  }

  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = self->physical_.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR feature{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
  feature.pipelineExecutableInfo = VK_TRUE;
  const char* extension = VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME;
  VkDeviceCreateInfo create{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &feature};
  create.queueCreateInfoCount = 1;
  create.pQueueCreateInfos = &queue;
  create.enabledExtensionCount = 1;
  create.ppEnabledExtensionNames = &extension;
  const auto& table = (*instance)->table;
  if (Error e =
          check(table.vkCreateDevice(self->physical_.handle, &create, nullptr, &self->device_), "vkCreateDevice")) {
    return e;
  }
#define BRONTES_LOAD(name) \
  self->table_.name = reinterpret_cast<PFN_##name>(table.vkGetDeviceProcAddr(self->device_, #name));
  BRONTES_DEVICE_FUNCTIONS(BRONTES_LOAD)
#undef BRONTES_LOAD
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
  return compile(words, bindings, kernel.push_bytes);
}

Result<Figures> Compiler::compile(const std::vector<std::uint32_t>& spirv, const std::vector<std::uint32_t>& bindings,
                                  std::uint32_t push_bytes) const {
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
  VkPipeline pipeline = VK_NULL_HANDLE;
  if (Error e = check(table_.vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &create, nullptr, &pipeline),
                      "vkCreateComputePipelines")) {
    return e;
  }
  const brontes::vk::Pipeline owned_pipeline(device_, table_, pipeline);

  VkPipelineExecutableInfoKHR executable{VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR};
  executable.pipeline = pipeline;
  std::uint32_t count = 0;
  if (Error e = check(get_statistics_(device_, &executable, &count, nullptr), "vkGetPipelineExecutableStatisticsKHR")) {
    return e;
  }
  std::vector<VkPipelineExecutableStatisticKHR> statistics(count,
                                                           {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR});
  if (Error e = check(get_statistics_(device_, &executable, &count, statistics.data()),
                      "vkGetPipelineExecutableStatisticsKHR")) {
    return e;
  }
  std::map<std::string, std::uint64_t> by_name;
  for (const auto& s : statistics) by_name[s.name] = s.value.u64;

  Figures figures;
  const std::pair<const char*, std::uint64_t Figures::*> names[] = {
      {"VGPRs", &Figures::vgprs},
      {"SGPRs", &Figures::sgprs},
      {"Spilled VGPRs", &Figures::spilled_vgprs},
      {"Spilled SGPRs", &Figures::spilled_sgprs},
      {"Scratch size", &Figures::scratch_bytes},
      {"LDS size", &Figures::lds_bytes},
      {"Subgroups per SIMD", &Figures::waves},
      {"Code size", &Figures::code_bytes},
      {"Instructions", &Figures::instructions},
      {"Latency", &Figures::latency},
      {"Inverse Throughput", &Figures::inverse_throughput},
  };
  for (const auto& [name, member] : names) {
    const auto found = by_name.find(name);
    // A figure that is not there must not pass for a good one.
    if (found == by_name.end()) {
      return Error(Errc::unsupported, physical_.info.driver + " has no statistic \"" + name + "\"");
    }
    figures.*member = found->second;
  }
  auto assembly = assembly_of(executable);
  if (!assembly) return assembly.error();
  figures.assembly = std::move(*assembly);
  figures.isa = read_isa(figures.assembly);
  return figures;
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
  return Error(Errc::unsupported, physical_.info.driver + " shows no assembly");
}

}  // namespace kernel_report
