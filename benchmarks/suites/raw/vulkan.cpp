#include "vulkan.hpp"

#include <brontes/bench.hpp>

#include <dlfcn.h>
#include <brontes_raw_offset.hpp>

#include <string>

namespace brontes::bench::raw {
namespace {

void check(VkResult result, const char* call) {
  if (result != VK_SUCCESS) throw Failure(std::string(call) + ": VkResult " + std::to_string(result));
}

}  // namespace

Vulkan::Vulkan(std::uint32_t index) {
  try {
    open(index);
    make_pipeline();
    make_commands();
  } catch (...) {
    close();
    throw;
  }
}

Vulkan::~Vulkan() { close(); }

void Vulkan::open(std::uint32_t index) {
  library_ = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) throw Failure("no libvulkan.so.1");
  const auto get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library_, "vkGetInstanceProcAddr"));
  if (get == nullptr) throw Failure("libvulkan.so.1 has no vkGetInstanceProcAddr");
  const auto create = reinterpret_cast<PFN_vkCreateInstance>(get(VK_NULL_HANDLE, "vkCreateInstance"));

  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.apiVersion = VK_API_VERSION_1_2;
  VkInstanceCreateInfo instance_create{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  instance_create.pApplicationInfo = &application;
  check(create(&instance_create, nullptr, &instance_), "vkCreateInstance");
#define BRONTES_RAW_LOAD(name) name = reinterpret_cast<PFN_##name>(get(instance_, #name));
  BRONTES_RAW_INSTANCE_FUNCTIONS(BRONTES_RAW_LOAD)
#undef BRONTES_RAW_LOAD

  std::uint32_t count = 0;
  check(vkEnumeratePhysicalDevices(instance_, &count, nullptr), "vkEnumeratePhysicalDevices");
  std::vector<VkPhysicalDevice> all(count);
  check(vkEnumeratePhysicalDevices(instance_, &count, all.data()), "vkEnumeratePhysicalDevices");
  if (index >= count) throw Failure("there is no device " + std::to_string(index));
  physical_ = all[index];

  vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, families.data());
  while (family_ < count && (families[family_].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) ++family_;
  if (family_ == count) throw Failure("no queue for compute");

  const float priority = 1;
  VkDeviceQueueCreateInfo queue_create{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue_create.queueFamilyIndex = family_;
  queue_create.queueCount = 1;
  queue_create.pQueuePriorities = &priority;
  VkDeviceCreateInfo device_create{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  device_create.queueCreateInfoCount = 1;
  device_create.pQueueCreateInfos = &queue_create;
  check(vkCreateDevice(physical_, &device_create, nullptr, &device_), "vkCreateDevice");
#define BRONTES_RAW_LOAD(name) name = reinterpret_cast<PFN_##name>(vkGetDeviceProcAddr(device_, #name));
  BRONTES_RAW_DEVICE_FUNCTIONS(BRONTES_RAW_LOAD)
#undef BRONTES_RAW_LOAD
  vkGetDeviceQueue(device_, family_, 0, &queue_);
}

void Vulkan::make_pipeline() {
  VkDescriptorSetLayoutBinding bindings[2] = {};
  for (std::uint32_t i = 0; i < 2; ++i) {
    bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  }
  VkDescriptorSetLayoutCreateInfo set_create{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  set_create.bindingCount = 2;
  set_create.pBindings = bindings;
  check(vkCreateDescriptorSetLayout(device_, &set_create, nullptr, &set_layout_), "vkCreateDescriptorSetLayout");
  const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(Params)};
  VkPipelineLayoutCreateInfo layout_create{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  layout_create.setLayoutCount = 1;
  layout_create.pSetLayouts = &set_layout_;
  layout_create.pushConstantRangeCount = 1;
  layout_create.pPushConstantRanges = &push;
  check(vkCreatePipelineLayout(device_, &layout_create, nullptr, &layout_), "vkCreatePipelineLayout");

  VkShaderModuleCreateInfo module_create{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  module_create.codeSize = sizeof offset_words;
  module_create.pCode = offset_words;
  VkShaderModule module = VK_NULL_HANDLE;
  check(vkCreateShaderModule(device_, &module_create, nullptr, &module), "vkCreateShaderModule");
  VkComputePipelineCreateInfo create{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  create.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
  create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  create.stage.module = module;
  create.stage.pName = "main";
  create.layout = layout_;
  const VkResult result = vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &create, nullptr, &pipeline_);
  vkDestroyShaderModule(device_, module, nullptr);
  check(result, "vkCreateComputePipelines");
}

void Vulkan::make_commands() {
  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2 * max_sets};
  VkDescriptorPoolCreateInfo descriptors_create{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  descriptors_create.maxSets = max_sets;
  descriptors_create.poolSizeCount = 1;
  descriptors_create.pPoolSizes = &size;
  check(vkCreateDescriptorPool(device_, &descriptors_create, nullptr, &descriptors_), "vkCreateDescriptorPool");
  VkCommandPoolCreateInfo pool_create{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool_create.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool_create.queueFamilyIndex = family_;
  check(vkCreateCommandPool(device_, &pool_create, nullptr, &pool_), "vkCreateCommandPool");
  VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  allocate.commandPool = pool_;
  allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocate.commandBufferCount = 1;
  check(vkAllocateCommandBuffers(device_, &allocate, &commands_), "vkAllocateCommandBuffers");
  VkFenceCreateInfo fence_create{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  check(vkCreateFence(device_, &fence_create, nullptr, &fence_), "vkCreateFence");
}

void Vulkan::close() noexcept {
  if (device_ != VK_NULL_HANDLE) {
    vkDeviceWaitIdle(device_);
    for (const Buffer& b : buffers_) {
      vkDestroyBuffer(device_, b.handle, nullptr);
      vkFreeMemory(device_, b.memory, nullptr);
    }
    vkDestroyFence(device_, fence_, nullptr);
    vkDestroyCommandPool(device_, pool_, nullptr);
    vkDestroyDescriptorPool(device_, descriptors_, nullptr);
    vkDestroyPipeline(device_, pipeline_, nullptr);
    vkDestroyPipelineLayout(device_, layout_, nullptr);
    vkDestroyDescriptorSetLayout(device_, set_layout_, nullptr);
    vkDestroyDevice(device_, nullptr);
  }
  if (instance_ != VK_NULL_HANDLE && vkDestroyInstance != nullptr) vkDestroyInstance(instance_, nullptr);
  if (library_ != nullptr) dlclose(library_);
}

Vulkan::Buffer Vulkan::buffer(std::size_t floats) {
  Buffer& made = buffers_.emplace_back();
  VkBufferCreateInfo create{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  create.size = floats * sizeof(float);
  create.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  check(vkCreateBuffer(device_, &create, nullptr, &made.handle), "vkCreateBuffer");
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(device_, made.handle, &needs);
  VkPhysicalDeviceMemoryProperties memory;
  vkGetPhysicalDeviceMemoryProperties(physical_, &memory);
  constexpr VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  std::uint32_t type = 0;
  while (type < memory.memoryTypeCount &&
         ((needs.memoryTypeBits >> type & 1u) == 0 || (memory.memoryTypes[type].propertyFlags & wanted) != wanted)) {
    ++type;
  }
  if (type == memory.memoryTypeCount) throw Failure("no memory that the host can map");
  VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  allocate.allocationSize = needs.size;
  allocate.memoryTypeIndex = type;
  check(vkAllocateMemory(device_, &allocate, nullptr, &made.memory), "vkAllocateMemory");
  check(vkBindBufferMemory(device_, made.handle, made.memory, 0), "vkBindBufferMemory");
  void* data = nullptr;
  check(vkMapMemory(device_, made.memory, 0, VK_WHOLE_SIZE, 0, &data), "vkMapMemory");
  made.data = static_cast<float*>(data);
  return made;
}

VkDescriptorSet Vulkan::set(const Buffer& x, const Buffer& y, std::size_t y_from, std::size_t y_count) {
  VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  allocate.descriptorPool = descriptors_;
  allocate.descriptorSetCount = 1;
  allocate.pSetLayouts = &set_layout_;
  VkDescriptorSet made = VK_NULL_HANDLE;
  check(vkAllocateDescriptorSets(device_, &allocate, &made), "vkAllocateDescriptorSets");
  const VkDescriptorBufferInfo buffers[2] = {
      {x.handle, 0, VK_WHOLE_SIZE},
      {y.handle, y_from * sizeof(float), y_count == 0 ? VK_WHOLE_SIZE : y_count * sizeof(float)}};
  VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
  write.dstSet = made;
  write.descriptorCount = 2;  // goes on with the next binding
  write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  write.pBufferInfo = buffers;
  vkUpdateDescriptorSets(device_, 1, &write, 0, nullptr);
  return made;
}

VkDescriptorSet Vulkan::set(const Buffer& x, const Buffer& y) { return set(x, y, 0, 0); }

void Vulkan::reset_sets() { check(vkResetDescriptorPool(device_, descriptors_, 0), "vkResetDescriptorPool"); }

void Vulkan::begin(bool once) {
  VkCommandBufferBeginInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  info.flags = once ? VkCommandBufferUsageFlags{VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT} : 0u;
  check(vkBeginCommandBuffer(commands_, &info), "vkBeginCommandBuffer");
}

void Vulkan::end() { check(vkEndCommandBuffer(commands_), "vkEndCommandBuffer"); }

void Vulkan::bind_pipeline() { vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_); }

void Vulkan::bind(VkDescriptorSet set) {
  vkCmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, layout_, 0, 1, &set, 0, nullptr);
}

void Vulkan::dispatch(const Params& params) {
  vkCmdPushConstants(commands_, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof params, &params);
  vkCmdDispatch(commands_, (params.count + 63) / 64, 1, 1);
}

void Vulkan::barrier() {
  VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
  memory.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1,
                       &memory, 0, nullptr, 0, nullptr);
}

void Vulkan::barrier_to_host() {
  VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
  memory.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &memory, 0,
                       nullptr, 0, nullptr);
}

void Vulkan::submit_and_wait() {
  VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands_;
  check(vkQueueSubmit(queue_, 1, &submit, fence_), "vkQueueSubmit");
  check(vkWaitForFences(device_, 1, &fence_, VK_TRUE, ~std::uint64_t{0}), "vkWaitForFences");
  check(vkResetFences(device_, 1, &fence_), "vkResetFences");
}

}  // namespace brontes::bench::raw
