#include "runner.hpp"

#include "vk/result.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace brontes::test {
namespace {

constexpr VkDeviceSize buffer_bytes = 65536;

void require(VkResult result, const char* what) {
  const Error error = vk::check(result, what);
  INFO(error.message);
  REQUIRE(error.code == Errc::ok);
}

}  // namespace

// Those that the library's table does not have.
struct Runner::Functions {
  PFN_vkAllocateMemory allocate_memory = nullptr;
  PFN_vkBindBufferMemory bind_buffer_memory = nullptr;
  PFN_vkCreateBuffer create_buffer = nullptr;
  PFN_vkDestroyBuffer destroy_buffer = nullptr;
  PFN_vkFreeMemory free_memory = nullptr;
  PFN_vkGetBufferMemoryRequirements get_buffer_memory_requirements = nullptr;
  PFN_vkMapMemory map_memory = nullptr;
};

Runner::Runner() {
  DeviceOptions options;
  options.on_message = [this](Severity severity, const std::string& text) {
    if (severity != Severity::info) messages_.push_back(text);
  };
  auto instance = vk::Instance::create(options);
  if (!instance) SKIP(instance.error().message);
  instance_ = *instance;
  auto devices = vk::describe_all(*instance_);
  if (!devices || devices->empty()) SKIP("there is no device");
  physical_ = devices->front();

  const auto& instance_table = instance_->table;
  VkPhysicalDeviceVulkan12Features supported12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceFeatures2 supported{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &supported12};
  instance_table.vkGetPhysicalDeviceFeatures2(physical_.handle, &supported);
  has_int64_ = supported.features.shaderInt64 == VK_TRUE;
  has_int16_ = supported.features.shaderInt16 == VK_TRUE;
  has_int8_ = supported12.shaderInt8 == VK_TRUE;

  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = physical_.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkPhysicalDeviceVulkan12Features wanted12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  wanted12.shaderInt8 = supported12.shaderInt8;
  VkPhysicalDeviceFeatures2 wanted{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &wanted12};
  wanted.features.shaderInt64 = supported.features.shaderInt64;
  wanted.features.shaderInt16 = supported.features.shaderInt16;
  VkDeviceCreateInfo create{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &wanted};
  create.queueCreateInfoCount = 1;
  create.pQueueCreateInfos = &queue;
  require(instance_table.vkCreateDevice(physical_.handle, &create, nullptr, &device_), "vkCreateDevice");
  const auto load = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        instance_table.vkGetDeviceProcAddr(device_, name));
    REQUIRE(function != nullptr);
  };
#define BRONTES_LOAD(name) load(table_.name, #name);
  BRONTES_DEVICE_FUNCTIONS(BRONTES_LOAD)
#undef BRONTES_LOAD
  functions_ = std::make_unique<Functions>();
  load(functions_->allocate_memory, "vkAllocateMemory");
  load(functions_->bind_buffer_memory, "vkBindBufferMemory");
  load(functions_->create_buffer, "vkCreateBuffer");
  load(functions_->destroy_buffer, "vkDestroyBuffer");
  load(functions_->free_memory, "vkFreeMemory");
  load(functions_->get_buffer_memory_requirements, "vkGetBufferMemoryRequirements");
  load(functions_->map_memory, "vkMapMemory");
  table_.vkGetDeviceQueue(device_, physical_.queue_family, 0, &queue_);

  VkMemoryRequirements requirements{};
  for (VkBuffer& buffer : buffers_) {
    VkBufferCreateInfo buffer_create{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    buffer_create.size = buffer_bytes;
    buffer_create.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
    require(functions_->create_buffer(device_, &buffer_create, nullptr, &buffer), "vkCreateBuffer");
    functions_->get_buffer_memory_requirements(device_, buffer, &requirements);
  }
  stride_ = (requirements.size + requirements.alignment - 1) / requirements.alignment * requirements.alignment;
  VkPhysicalDeviceMemoryProperties memory{};
  instance_table.vkGetPhysicalDeviceMemoryProperties(physical_.handle, &memory);
  constexpr VkMemoryPropertyFlags coherent = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  allocate.allocationSize = stride_ * buffers_.size();
  while ((requirements.memoryTypeBits >> allocate.memoryTypeIndex & 1) == 0 ||
         (memory.memoryTypes[allocate.memoryTypeIndex].propertyFlags & coherent) != coherent) {
    REQUIRE(++allocate.memoryTypeIndex < memory.memoryTypeCount);
  }
  require(functions_->allocate_memory(device_, &allocate, nullptr, &memory_), "vkAllocateMemory");
  void* mapped = nullptr;
  require(functions_->map_memory(device_, memory_, 0, VK_WHOLE_SIZE, 0, &mapped), "vkMapMemory");
  mapped_ = static_cast<std::uint32_t*>(mapped);

  std::array<VkDescriptorSetLayoutBinding, 3> slots{};
  for (std::uint32_t i = 0; i < slots.size(); ++i) {
    slots[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  }
  VkDescriptorSetLayoutCreateInfo set_create{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  set_create.bindingCount = static_cast<std::uint32_t>(slots.size());
  set_create.pBindings = slots.data();
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  require(table_.vkCreateDescriptorSetLayout(device_, &set_create, nullptr, &set_layout),
          "vkCreateDescriptorSetLayout");
  set_layout_ = {device_, table_, set_layout};
  VkPipelineLayoutCreateInfo layout_create{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  layout_create.setLayoutCount = 1;
  layout_create.pSetLayouts = &set_layout;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  require(table_.vkCreatePipelineLayout(device_, &layout_create, nullptr, &layout), "vkCreatePipelineLayout");
  layout_ = {device_, table_, layout};

  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 3};
  VkDescriptorPoolCreateInfo pool_create{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  pool_create.maxSets = 1;
  pool_create.poolSizeCount = 1;
  pool_create.pPoolSizes = &size;
  VkDescriptorPool pool = VK_NULL_HANDLE;
  require(table_.vkCreateDescriptorPool(device_, &pool_create, nullptr, &pool), "vkCreateDescriptorPool");
  descriptor_pool_ = {device_, table_, pool};
  VkDescriptorSetAllocateInfo set_allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  set_allocate.descriptorPool = pool;
  set_allocate.descriptorSetCount = 1;
  set_allocate.pSetLayouts = &set_layout;
  require(table_.vkAllocateDescriptorSets(device_, &set_allocate, &set_), "vkAllocateDescriptorSets");
  for (std::uint32_t i = 0; i < buffers_.size(); ++i) {
    require(functions_->bind_buffer_memory(device_, buffers_[i], memory_, i * stride_), "vkBindBufferMemory");
    const VkDescriptorBufferInfo buffer{buffers_[i], 0, VK_WHOLE_SIZE};
    VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    write.dstSet = set_;
    write.dstBinding = i;
    write.descriptorCount = 1;
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = &buffer;
    table_.vkUpdateDescriptorSets(device_, 1, &write, 0, nullptr);
  }

  VkCommandPoolCreateInfo command_pool_create{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  command_pool_create.queueFamilyIndex = physical_.queue_family;
  VkCommandPool command_pool = VK_NULL_HANDLE;
  require(table_.vkCreateCommandPool(device_, &command_pool_create, nullptr, &command_pool), "vkCreateCommandPool");
  command_pool_ = {device_, table_, command_pool};
  VkCommandBufferAllocateInfo commands_allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  commands_allocate.commandPool = command_pool;
  commands_allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  commands_allocate.commandBufferCount = 1;
  require(table_.vkAllocateCommandBuffers(device_, &commands_allocate, &commands_), "vkAllocateCommandBuffers");
}

Runner::~Runner() {
  if (device_ == VK_NULL_HANDLE || functions_ == nullptr) return;
  table_.vkQueueWaitIdle(queue_);
  command_pool_.reset();
  descriptor_pool_.reset();
  layout_.reset();
  set_layout_.reset();
  for (VkBuffer buffer : buffers_) functions_->destroy_buffer(device_, buffer, nullptr);
  functions_->free_memory(device_, memory_, nullptr);
  table_.vkDestroyDevice(device_, nullptr);
}

bool Runner::can_run(const Module& module) const {
  constexpr std::uint32_t int64 = 11, int16 = 22, int8 = 39;
  return (has_int64_ || !module.has_capability(int64)) && (has_int16_ || !module.has_capability(int16)) &&
         (has_int8_ || !module.has_capability(int8));
}

Contents Runner::run(const Words& module, const std::vector<spirv::ConstantValue>& values, const Contents& before) {
  VkShaderModuleCreateInfo module_create{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  module_create.codeSize = module.size() * sizeof(std::uint32_t);
  module_create.pCode = module.data();
  VkShaderModule shader = VK_NULL_HANDLE;
  require(table_.vkCreateShaderModule(device_, &module_create, nullptr, &shader), "vkCreateShaderModule");
  const vk::ShaderModule owned_shader(device_, table_, shader);

  std::vector<VkSpecializationMapEntry> entries;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto offset = i * sizeof values[i] + offsetof(spirv::ConstantValue, bits);
    entries.push_back({values[i].id, static_cast<std::uint32_t>(offset), constant_bytes(module, values[i].id)});
  }
  const VkSpecializationInfo specialization{static_cast<std::uint32_t>(entries.size()), entries.data(),
                                            values.size() * sizeof(spirv::ConstantValue), values.data()};
  VkComputePipelineCreateInfo create{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  create.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  create.stage.module = shader;
  create.stage.pName = "main";
  create.stage.pSpecializationInfo = values.empty() ? nullptr : &specialization;
  create.layout = layout_.get();
  VkPipeline pipeline = VK_NULL_HANDLE;
  require(table_.vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &create, nullptr, &pipeline),
          "vkCreateComputePipelines");
  const vk::Pipeline owned_pipeline(device_, table_, pipeline);

  const auto words_of = [&](std::size_t i) { return mapped_ + i * stride_ / sizeof(std::uint32_t); };
  for (std::size_t i = 0; i < before.size(); ++i) {
    REQUIRE(before[i].size() * sizeof(std::uint32_t) <= buffer_bytes);
    std::copy(before[i].begin(), before[i].end(), words_of(i));
  }
  require(table_.vkResetCommandPool(device_, command_pool_.get(), 0), "vkResetCommandPool");
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  require(table_.vkBeginCommandBuffer(commands_, &begin), "vkBeginCommandBuffer");
  table_.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
  table_.vkCmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, layout_.get(), 0, 1, &set_, 0, nullptr);
  table_.vkCmdDispatch(commands_, 4, 1, 1);
  VkMemoryBarrier to_host{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  to_host.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
  to_host.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  table_.vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                              &to_host, 0, nullptr, 0, nullptr);
  require(table_.vkEndCommandBuffer(commands_), "vkEndCommandBuffer");
  VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands_;
  require(table_.vkQueueSubmit(queue_, 1, &submit, VK_NULL_HANDLE), "vkQueueSubmit");
  require(table_.vkQueueWaitIdle(queue_), "vkQueueWaitIdle");

  Contents after;
  for (std::size_t i = 0; i < after.size(); ++i) after[i].assign(words_of(i), words_of(i) + before[i].size());
  return after;
}

std::vector<std::string> Runner::take_messages() { return std::exchange(messages_, {}); }

}  // namespace brontes::test
