// A renderer without a window that shares its device with Brontes. Each frame it shades a noisy picture, Brontes takes
// the noise out (the mean of all frames so far, and a blur by a kernel of our own), and the renderer draws the result.
// Frames follow each other by semaphores; the CPU waits once, at the end.
//
//   offscreen [OUT.png]
#define VK_NO_PROTOTYPES
#include <brontes/brontes.hpp>
#include <brontes/vulkan.hpp>

#include "blur.spv.h"
#include "offscreen_draw.spv.h"
#include "offscreen_shade.spv.h"
#include "offscreen_vert.spv.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <dlfcn.h>

namespace {

constexpr std::uint32_t width = 160;
constexpr std::uint32_t height = 120;
constexpr std::uint64_t pixels = std::uint64_t{width} * height;
constexpr std::uint32_t frames = 32;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "offscreen: %s\n", what.c_str());
  std::exit(1);
}
void check(const brontes::Error& e) {
  if (e) fail(e.message);
}
void check(VkResult result, const char* call) {
  if (result != VK_SUCCESS) fail(std::string(call) + ": " + std::to_string(result));
}

#define INSTANCE_FUNCTIONS(X)            \
  X(vkCreateDevice)                      \
  X(vkDestroyInstance)                   \
  X(vkEnumeratePhysicalDevices)          \
  X(vkGetDeviceProcAddr)                 \
  X(vkGetPhysicalDeviceMemoryProperties) \
  X(vkGetPhysicalDeviceQueueFamilyProperties)
#define DEVICE_FUNCTIONS(X)        \
  X(vkAllocateCommandBuffers)      \
  X(vkAllocateDescriptorSets)      \
  X(vkAllocateMemory)              \
  X(vkBeginCommandBuffer)          \
  X(vkBindBufferMemory)            \
  X(vkBindImageMemory)             \
  X(vkCmdBeginRenderPass)          \
  X(vkCmdBindDescriptorSets)       \
  X(vkCmdBindPipeline)             \
  X(vkCmdCopyImageToBuffer)        \
  X(vkCmdDraw)                     \
  X(vkCmdEndRenderPass)            \
  X(vkCmdPipelineBarrier)          \
  X(vkCmdPushConstants)            \
  X(vkCreateBuffer)                \
  X(vkCreateCommandPool)           \
  X(vkCreateDescriptorPool)        \
  X(vkCreateDescriptorSetLayout)   \
  X(vkCreateFramebuffer)           \
  X(vkCreateGraphicsPipelines)     \
  X(vkCreateImage)                 \
  X(vkCreateImageView)             \
  X(vkCreatePipelineLayout)        \
  X(vkCreateRenderPass)            \
  X(vkCreateSemaphore)             \
  X(vkCreateShaderModule)          \
  X(vkDestroyBuffer)               \
  X(vkDestroyCommandPool)          \
  X(vkDestroyDescriptorPool)       \
  X(vkDestroyDescriptorSetLayout)  \
  X(vkDestroyDevice)               \
  X(vkDestroyFramebuffer)          \
  X(vkDestroyImage)                \
  X(vkDestroyImageView)            \
  X(vkDestroyPipeline)             \
  X(vkDestroyPipelineLayout)       \
  X(vkDestroyRenderPass)           \
  X(vkDestroySemaphore)            \
  X(vkDestroyShaderModule)         \
  X(vkDeviceWaitIdle)              \
  X(vkEndCommandBuffer)            \
  X(vkFreeMemory)                  \
  X(vkGetBufferMemoryRequirements) \
  X(vkGetDeviceQueue)              \
  X(vkGetImageMemoryRequirements)  \
  X(vkMapMemory)                   \
  X(vkQueueSubmit)                 \
  X(vkUpdateDescriptorSets)        \
  X(vkWaitSemaphores)

PFN_vkGetInstanceProcAddr get_proc = nullptr;
#define DECLARE(function) PFN_##function function = nullptr;
INSTANCE_FUNCTIONS(DECLARE)
DEVICE_FUNCTIONS(DECLARE)
#undef DECLARE

// The renderer's instance, device and queue.
struct Gpu {
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  std::uint32_t family = 0;
  VkPhysicalDeviceVulkan12Features features12{};
  VkPhysicalDeviceFeatures2 features{};
  std::vector<const char*> extensions;

  Gpu() {
    void* library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) fail("there is no Vulkan loader");
    get_proc = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
    const auto create_instance = reinterpret_cast<PFN_vkCreateInstance>(get_proc(nullptr, "vkCreateInstance"));
    VkApplicationInfo application{};
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.apiVersion = VK_API_VERSION_1_2;  // which Brontes needs
    VkInstanceCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &application;
    check(create_instance(&info, nullptr, &instance), "vkCreateInstance");
#define LOAD(function) function = reinterpret_cast<PFN_##function>(get_proc(instance, #function));
    INSTANCE_FUNCTIONS(LOAD)
#undef LOAD
    std::uint32_t count = 1;
    if (vkEnumeratePhysicalDevices(instance, &count, &physical) < 0 || count == 0) fail("there is no GPU");

    vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families.data());
    const VkQueueFlags both = VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT;
    while (family < count && (families[family].queueFlags & both) != both) ++family;
    if (family == count) fail("no queue has graphics and compute");

    // The renderer's own features would be in here, too.
    features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    features.pNext = &features12;
    auto wanted = brontes::vulkan::recommended_features(get_proc, instance, physical);
    if (!wanted) fail(wanted.error().message);
    check(brontes::vulkan::merge(*wanted, features));
    extensions = wanted->extensions;

    const float priority = 1.0f;
    VkDeviceQueueCreateInfo queue_info{};
    queue_info.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue_info.queueFamilyIndex = family;
    queue_info.queueCount = 1;
    queue_info.pQueuePriorities = &priority;
    VkDeviceCreateInfo device_info{};
    device_info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    device_info.pNext = &features;
    device_info.queueCreateInfoCount = 1;
    device_info.pQueueCreateInfos = &queue_info;
    device_info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
    device_info.ppEnabledExtensionNames = extensions.data();
    check(vkCreateDevice(physical, &device_info, nullptr, &device), "vkCreateDevice");
#define LOAD(function) function = reinterpret_cast<PFN_##function>(vkGetDeviceProcAddr(device, #function));
    DEVICE_FUNCTIONS(LOAD)
#undef LOAD
    vkGetDeviceQueue(device, family, 0, &queue);
  }
  ~Gpu() {
    vkDestroyDevice(device, nullptr);
    vkDestroyInstance(instance, nullptr);
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  brontes::Device share() const {
    brontes::vulkan::ExternalDevice external;
    external.get_instance_proc_addr = get_proc;
    external.instance = instance;
    external.physical_device = physical;
    external.device = device;
    external.queue = queue;
    external.queue_family = family;
    external.features = &features;
    external.extensions = extensions;
    external.api_version = VK_API_VERSION_1_2;
    auto shared = brontes::vulkan::adopt(external);
    if (!shared) fail(shared.error().message);
    return std::move(shared).value();
  }

  VkDeviceMemory allocate(const VkMemoryRequirements& needs, VkMemoryPropertyFlags wanted) const {
    VkPhysicalDeviceMemoryProperties memory{};
    vkGetPhysicalDeviceMemoryProperties(physical, &memory);
    VkMemoryAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    info.allocationSize = needs.size;
    while ((needs.memoryTypeBits >> info.memoryTypeIndex & 1u) == 0 ||
           (memory.memoryTypes[info.memoryTypeIndex].propertyFlags & wanted) != wanted) {
      if (++info.memoryTypeIndex == memory.memoryTypeCount) fail("no memory of the kind that is needed");
    }
    VkDeviceMemory made = VK_NULL_HANDLE;
    check(vkAllocateMemory(device, &info, nullptr, &made), "vkAllocateMemory");
    return made;
  }
};

// A picture to draw into, with the one pipeline that does, and then to be copied from.
class Pass {
 public:
  Pass(const Gpu& gpu, VkFormat format, brontes::Span<const std::uint32_t> vertex,
       brontes::Span<const std::uint32_t> fragment, const brontes::Buffer* input)
      : gpu_(gpu) {
    make_image(format);
    make_render_pass(format);
    if (input != nullptr) make_descriptors(*input);
    make_pipeline(vertex, fragment);
  }
  ~Pass() {
    vkDestroyPipeline(gpu_.device, pipeline_, nullptr);
    vkDestroyPipelineLayout(gpu_.device, layout_, nullptr);
    vkDestroyDescriptorPool(gpu_.device, pool_, nullptr);
    vkDestroyDescriptorSetLayout(gpu_.device, set_layout_, nullptr);
    vkDestroyFramebuffer(gpu_.device, framebuffer_, nullptr);
    vkDestroyRenderPass(gpu_.device, render_pass_, nullptr);
    vkDestroyImageView(gpu_.device, view_, nullptr);
    vkDestroyImage(gpu_.device, image_, nullptr);
    vkFreeMemory(gpu_.device, memory_, nullptr);
  }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  /// Draws, and copies the picture into a buffer.
  void record(VkCommandBuffer commands, std::uint32_t push, VkBuffer into, VkDeviceSize offset) const {
    VkRenderPassBeginInfo begin{};
    begin.sType = VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO;
    begin.renderPass = render_pass_;
    begin.framebuffer = framebuffer_;
    begin.renderArea.extent = {width, height};
    vkCmdBeginRenderPass(commands, &begin, VK_SUBPASS_CONTENTS_INLINE);
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, pipeline_);
    if (set_ != VK_NULL_HANDLE) {
      vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, layout_, 0, 1, &set_, 0, nullptr);
    }
    vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_FRAGMENT_BIT, 0, sizeof push, &push);
    vkCmdDraw(commands, 3, 1, 0, 0);
    vkCmdEndRenderPass(commands);
    VkBufferImageCopy all{};
    all.bufferOffset = offset;
    all.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
    all.imageExtent = {width, height, 1};
    vkCmdCopyImageToBuffer(commands, image_, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, into, 1, &all);
  }

 private:
  void make_image(VkFormat format) {
    VkImageCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO;
    info.imageType = VK_IMAGE_TYPE_2D;
    info.format = format;
    info.extent = {width, height, 1};
    info.mipLevels = 1;
    info.arrayLayers = 1;
    info.samples = VK_SAMPLE_COUNT_1_BIT;
    info.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT;
    check(vkCreateImage(gpu_.device, &info, nullptr, &image_), "vkCreateImage");
    VkMemoryRequirements needs{};
    vkGetImageMemoryRequirements(gpu_.device, image_, &needs);
    memory_ = gpu_.allocate(needs, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    check(vkBindImageMemory(gpu_.device, image_, memory_, 0), "vkBindImageMemory");
    VkImageViewCreateInfo view{};
    view.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO;
    view.image = image_;
    view.viewType = VK_IMAGE_VIEW_TYPE_2D;
    view.format = format;
    view.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
    check(vkCreateImageView(gpu_.device, &view, nullptr, &view_), "vkCreateImageView");
  }

  void make_render_pass(VkFormat format) {
    VkAttachmentDescription color{};
    color.format = format;
    color.samples = VK_SAMPLE_COUNT_1_BIT;
    color.loadOp = VK_ATTACHMENT_LOAD_OP_DONT_CARE;
    color.storeOp = VK_ATTACHMENT_STORE_OP_STORE;
    color.stencilLoadOp = VK_ATTACHMENT_LOAD_OP_DONT_CARE;
    color.stencilStoreOp = VK_ATTACHMENT_STORE_OP_DONT_CARE;
    color.finalLayout = VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL;
    const VkAttachmentReference reference{0, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL};
    VkSubpassDescription subpass{};
    subpass.pipelineBindPoint = VK_PIPELINE_BIND_POINT_GRAPHICS;
    subpass.colorAttachmentCount = 1;
    subpass.pColorAttachments = &reference;
    // The copy of the frame before, then this drawing, then the copy of it.
    const VkSubpassDependency dependencies[] = {
        {VK_SUBPASS_EXTERNAL, 0, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT, 0,
         VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT, 0},
        {0, VK_SUBPASS_EXTERNAL, VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
         VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT, VK_ACCESS_TRANSFER_READ_BIT, 0}};
    VkRenderPassCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO;
    info.attachmentCount = 1;
    info.pAttachments = &color;
    info.subpassCount = 1;
    info.pSubpasses = &subpass;
    info.dependencyCount = 2;
    info.pDependencies = dependencies;
    check(vkCreateRenderPass(gpu_.device, &info, nullptr, &render_pass_), "vkCreateRenderPass");
    VkFramebufferCreateInfo framebuffer{};
    framebuffer.sType = VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO;
    framebuffer.renderPass = render_pass_;
    framebuffer.attachmentCount = 1;
    framebuffer.pAttachments = &view_;
    framebuffer.width = width;
    framebuffer.height = height;
    framebuffer.layers = 1;
    check(vkCreateFramebuffer(gpu_.device, &framebuffer, nullptr, &framebuffer_), "vkCreateFramebuffer");
  }

  // A Buffer of Brontes' is a storage buffer like any other.
  void make_descriptors(const brontes::Buffer& input) {
    const VkDescriptorSetLayoutBinding binding{0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_FRAGMENT_BIT,
                                               nullptr};
    VkDescriptorSetLayoutCreateInfo layout{};
    layout.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
    layout.bindingCount = 1;
    layout.pBindings = &binding;
    check(vkCreateDescriptorSetLayout(gpu_.device, &layout, nullptr, &set_layout_), "vkCreateDescriptorSetLayout");
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1};
    VkDescriptorPoolCreateInfo pool{};
    pool.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
    pool.maxSets = 1;
    pool.poolSizeCount = 1;
    pool.pPoolSizes = &size;
    check(vkCreateDescriptorPool(gpu_.device, &pool, nullptr, &pool_), "vkCreateDescriptorPool");
    VkDescriptorSetAllocateInfo allocate{};
    allocate.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
    allocate.descriptorPool = pool_;
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &set_layout_;
    check(vkAllocateDescriptorSets(gpu_.device, &allocate, &set_), "vkAllocateDescriptorSets");
    const brontes::vulkan::BufferRegion region = brontes::vulkan::region(input);
    const VkDescriptorBufferInfo buffer{region.buffer, region.offset, region.bytes};
    VkWriteDescriptorSet write{};
    write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    write.dstSet = set_;
    write.descriptorCount = 1;
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = &buffer;
    vkUpdateDescriptorSets(gpu_.device, 1, &write, 0, nullptr);
  }

  VkShaderModule module_of(brontes::Span<const std::uint32_t> words) const {
    VkShaderModuleCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    info.codeSize = words.size() * sizeof(std::uint32_t);
    info.pCode = words.data();
    VkShaderModule made = VK_NULL_HANDLE;
    check(vkCreateShaderModule(gpu_.device, &info, nullptr, &made), "vkCreateShaderModule");
    return made;
  }

  void make_pipeline(brontes::Span<const std::uint32_t> vertex, brontes::Span<const std::uint32_t> fragment) {
    const VkPushConstantRange push{VK_SHADER_STAGE_FRAGMENT_BIT, 0, sizeof(std::uint32_t)};
    VkPipelineLayoutCreateInfo layout{};
    layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    layout.setLayoutCount = set_layout_ != VK_NULL_HANDLE ? 1 : 0;
    layout.pSetLayouts = &set_layout_;
    layout.pushConstantRangeCount = 1;
    layout.pPushConstantRanges = &push;
    check(vkCreatePipelineLayout(gpu_.device, &layout, nullptr, &layout_), "vkCreatePipelineLayout");

    VkPipelineShaderStageCreateInfo stages[2]{};
    stages[0].stage = VK_SHADER_STAGE_VERTEX_BIT;
    stages[0].module = module_of(vertex);
    stages[1].stage = VK_SHADER_STAGE_FRAGMENT_BIT;
    stages[1].module = module_of(fragment);
    for (VkPipelineShaderStageCreateInfo& stage : stages) {
      stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
      stage.pName = "main";
    }
    VkPipelineVertexInputStateCreateInfo input{};
    input.sType = VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO;
    VkPipelineInputAssemblyStateCreateInfo assembly{};
    assembly.sType = VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO;
    assembly.topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST;
    const VkViewport viewport{0, 0, static_cast<float>(width), static_cast<float>(height), 0, 1};
    const VkRect2D scissor{{0, 0}, {width, height}};
    VkPipelineViewportStateCreateInfo view{};
    view.sType = VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO;
    view.viewportCount = 1;
    view.pViewports = &viewport;
    view.scissorCount = 1;
    view.pScissors = &scissor;
    VkPipelineRasterizationStateCreateInfo raster{};
    raster.sType = VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO;
    raster.lineWidth = 1;
    VkPipelineMultisampleStateCreateInfo samples{};
    samples.sType = VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO;
    samples.rasterizationSamples = VK_SAMPLE_COUNT_1_BIT;
    VkPipelineColorBlendAttachmentState write{};
    write.colorWriteMask = VK_COLOR_COMPONENT_R_BIT;
    VkPipelineColorBlendStateCreateInfo blend{};
    blend.sType = VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO;
    blend.attachmentCount = 1;
    blend.pAttachments = &write;
    VkGraphicsPipelineCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO;
    info.stageCount = 2;
    info.pStages = stages;
    info.pVertexInputState = &input;
    info.pInputAssemblyState = &assembly;
    info.pViewportState = &view;
    info.pRasterizationState = &raster;
    info.pMultisampleState = &samples;
    info.pColorBlendState = &blend;
    info.layout = layout_;
    info.renderPass = render_pass_;
    check(vkCreateGraphicsPipelines(gpu_.device, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline_),
          "vkCreateGraphicsPipelines");
    for (const VkPipelineShaderStageCreateInfo& stage : stages) {
      vkDestroyShaderModule(gpu_.device, stage.module, nullptr);
    }
  }

  const Gpu& gpu_;
  VkImage image_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  VkImageView view_ = VK_NULL_HANDLE;
  VkRenderPass render_pass_ = VK_NULL_HANDLE;
  VkFramebuffer framebuffer_ = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkDescriptorPool pool_ = VK_NULL_HANDLE;
  VkDescriptorSet set_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
};

// The push constants of blur.comp.
struct BlurPass {
  std::int32_t size[2];
  std::int32_t direction[2];
  float sigma;
};

// out = blur of the mean of all pictures so far.
brontes::Program make_filter(const brontes::Device& device, const brontes::Buffer& picture, const brontes::Buffer& mean,
                             const brontes::Buffer& count, const brontes::Buffer& out) {
  brontes::KernelOptions options;
  options.name = "blur";
  options.constants = {{0, 2}};
  auto blur = brontes::Kernel::from_spirv(device, blur_spv, options);
  if (!blur) fail(blur.error().message);
  brontes::Batch batch(device);
  const auto n = batch.offset(batch.import_buffer(count), 1.0f);
  const auto old = batch.import_buffer(mean);
  const auto now = batch.add(old, batch.div(batch.sub(batch.import_buffer(picture), old), n));
  batch.store(n, count);
  batch.store(now, mean);
  const brontes::Groups groups = blur->groups_for(width, height);
  const BlurPass across{{width, height}, {1, 0}, 0.8f};
  const BlurPass down{{width, height}, {0, 1}, 0.8f};
  const auto rows = batch.call(*blur, {now}, now.shape(), groups, brontes::push_data(across));
  const auto soft = batch.call(*blur, {rows}, now.shape(), groups, brontes::push_data(down));
  batch.store(batch.clamp(soft, 0.0f, 1.0f), out);
  check(brontes::prepare(batch).error());  // a renderer would do this while it loads
  auto program = batch.compile();
  if (!program) fail(program.error().message);
  return std::move(program).value();
}

void big_endian(std::string& to, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) to.push_back(static_cast<char>(value >> shift & 0xff));
}

// An 8-bit grey PNG, without compression.
std::string png(const std::uint8_t* grey) {
  auto chunk = [](const std::string& type, const std::string& data) {
    std::string body = type + data;
    std::uint32_t crc = ~0u;
    for (char c : body) {
      crc ^= static_cast<unsigned char>(c);
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1u) != 0 ? 0xedb88320u : 0u);
    }
    std::string text;
    big_endian(text, static_cast<std::uint32_t>(data.size()));
    text += body;
    big_endian(text, ~crc);
    return text;
  };
  std::string header;
  big_endian(header, width);
  big_endian(header, height);
  header += std::string("\x08\x00\x00\x00\x00", 5);
  std::string rows = "\x78\x01";
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  for (std::uint32_t y = 0; y < height; ++y) {
    // A stored block per row: whether it is the last, its length and that inverted, no filter, the pixels.
    const std::uint32_t length = width + 1;
    rows.push_back(y + 1 == height ? 1 : 0);
    for (std::uint32_t value : {length, ~length}) {
      rows.push_back(static_cast<char>(value & 0xff));
      rows.push_back(static_cast<char>(value >> 8 & 0xff));
    }
    std::string row(1, '\0');
    row.append(reinterpret_cast<const char*>(grey + y * width), width);
    for (char c : row) {
      a = (a + static_cast<unsigned char>(c)) % 65521;
      b = (b + a) % 65521;
    }
    rows += row;
  }
  big_endian(rows, b << 16 | a);
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + chunk("IDAT", rows) + chunk("IEND", "");
}

// How far the picture is from the one without noise, of 1.
double error_of(const std::uint8_t* grey) {
  double squares = 0;
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x) {
      const double clean = 0.5 + 0.3 * std::sin((x + 0.5) / 12.0) * std::cos((y + 0.5) / 9.0);
      const double off = grey[y * width + x] / 255.0 - clean;
      squares += off * off;
    }
  }
  return std::sqrt(squares / static_cast<double>(pixels));
}

}  // namespace

int main(int argc, char** argv) {
  const Gpu gpu;
  double error = 1;
  {
    const brontes::Device device = gpu.share();
    auto buffer = [&](brontes::Shape shape) {
      auto made = brontes::Buffer::create(device, shape);
      if (!made) fail(made.error().message);
      return std::move(made).value();
    };
    const brontes::Shape shape(height, width);
    const brontes::Buffer picture = buffer(shape);
    const brontes::Buffer mean = buffer(shape);
    const brontes::Buffer count = buffer({1});
    const brontes::Buffer out = buffer(shape);
    brontes::vulkan::set_name(out, "denoised picture");
    brontes::Program filter = make_filter(device, picture, mean, count, out);

    // What is drawn last ends up here.
    VkBufferCreateInfo screen_info{};
    screen_info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    screen_info.size = pixels;
    screen_info.usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    VkBuffer screen = VK_NULL_HANDLE;
    check(vkCreateBuffer(gpu.device, &screen_info, nullptr, &screen), "vkCreateBuffer");
    VkMemoryRequirements needs{};
    vkGetBufferMemoryRequirements(gpu.device, screen, &needs);
    const VkDeviceMemory screen_memory =
        gpu.allocate(needs, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
    check(vkBindBufferMemory(gpu.device, screen, screen_memory, 0), "vkBindBufferMemory");

    const Pass shade(gpu, VK_FORMAT_R32_SFLOAT, offscreen_vert_spv, offscreen_shade_spv, nullptr);
    const Pass draw(gpu, VK_FORMAT_R8_UNORM, offscreen_vert_spv, offscreen_draw_spv, &out);

    VkCommandPoolCreateInfo pool_info{};
    pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    pool_info.queueFamilyIndex = gpu.family;
    VkCommandPool pool = VK_NULL_HANDLE;
    check(vkCreateCommandPool(gpu.device, &pool_info, nullptr, &pool), "vkCreateCommandPool");
    std::vector<VkCommandBuffer> commands(2 * frames);
    VkCommandBufferAllocateInfo allocate{};
    allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    allocate.commandPool = pool;
    allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    allocate.commandBufferCount = static_cast<std::uint32_t>(commands.size());
    check(vkAllocateCommandBuffers(gpu.device, &allocate, commands.data()), "vkAllocateCommandBuffers");

    // Each reaches the number of a frame when that is shaded, filtered, drawn.
    VkSemaphore shaded = VK_NULL_HANDLE;
    VkSemaphore filtered = VK_NULL_HANDLE;
    VkSemaphore drawn = VK_NULL_HANDLE;
    for (VkSemaphore* semaphore : {&shaded, &filtered, &drawn}) {
      VkSemaphoreTypeCreateInfo type{};
      type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
      type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
      VkSemaphoreCreateInfo info{};
      info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
      info.pNext = &type;
      check(vkCreateSemaphore(gpu.device, &info, nullptr, semaphore), "vkCreateSemaphore");
    }
    auto begin = [&](VkCommandBuffer buffer_to_record) {
      VkCommandBufferBeginInfo info{};
      info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
      info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
      check(vkBeginCommandBuffer(buffer_to_record, &info), "vkBeginCommandBuffer");
    };
    auto submit = [&](VkCommandBuffer recorded, VkSemaphore wait, std::uint64_t wait_value, VkSemaphore signal,
                      std::uint64_t value) {
      check(vkEndCommandBuffer(recorded), "vkEndCommandBuffer");
      const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
      VkTimelineSemaphoreSubmitInfo values{};
      values.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
      values.waitSemaphoreValueCount = 1;
      values.pWaitSemaphoreValues = &wait_value;
      values.signalSemaphoreValueCount = 1;
      values.pSignalSemaphoreValues = &value;
      VkSubmitInfo info{};
      info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
      info.pNext = &values;
      info.waitSemaphoreCount = 1;
      info.pWaitSemaphores = &wait;
      info.pWaitDstStageMask = &stage;
      info.commandBufferCount = 1;
      info.pCommandBuffers = &recorded;
      info.signalSemaphoreCount = 1;
      info.pSignalSemaphores = &signal;
      const auto lock = brontes::vulkan::lock_queue(device);
      check(vkQueueSubmit(gpu.queue, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit");
    };

    for (std::uint32_t frame = 1; frame <= frames; ++frame) {
      // The picture of the frame before has been filtered.
      const VkCommandBuffer shading = commands[2 * frame - 2];
      begin(shading);
      const brontes::vulkan::BufferRegion to = brontes::vulkan::region(picture);
      shade.record(shading, frame, to.buffer, to.offset);
      submit(shading, filtered, frame - 1, shaded, frame);

      // It is shaded, and the result of the frame before has been drawn.
      const brontes::vulkan::SemaphoreWait waits[] = {{shaded, frame}, {drawn, frame - 1}};
      const brontes::vulkan::SemaphoreSignal signal{filtered, frame};
      brontes::vulkan::SubmitInfo info;
      info.waits = waits;
      info.signals = {&signal, 1};
      check(brontes::vulkan::submit(filter, info).error());

      const VkCommandBuffer drawing = commands[2 * frame - 1];
      begin(drawing);
      draw.record(drawing, width, screen, 0);
      if (frame == frames) {
        VkMemoryBarrier to_host{};
        to_host.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
        to_host.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
        to_host.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
        vkCmdPipelineBarrier(drawing, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host, 0,
                             nullptr, 0, nullptr);
      }
      submit(drawing, filtered, frame, drawn, frame);
    }

    const std::uint64_t last = frames;
    VkSemaphoreWaitInfo wait{};
    wait.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
    wait.semaphoreCount = 1;
    wait.pSemaphores = &drawn;
    wait.pValues = &last;
    check(vkWaitSemaphores(gpu.device, &wait, ~std::uint64_t{0}), "vkWaitSemaphores");
    void* mapped = nullptr;
    check(vkMapMemory(gpu.device, screen_memory, 0, VK_WHOLE_SIZE, 0, &mapped), "vkMapMemory");
    const auto* grey = static_cast<const std::uint8_t*>(mapped);
    error = error_of(grey);
    if (argc > 1) {
      std::ofstream file(argv[1], std::ios::binary);
      file << png(grey);
      if (!file.flush()) fail(std::string(argv[1]) + " cannot be written");
    }

    // lavapipe of Mesa 22 looks at the semaphores of a submit for a moment longer than vkWaitSemaphores() waits.
    check(vkDeviceWaitIdle(gpu.device), "vkDeviceWaitIdle");
    vkDestroyCommandPool(gpu.device, pool, nullptr);
    for (VkSemaphore semaphore : {shaded, filtered, drawn}) vkDestroySemaphore(gpu.device, semaphore, nullptr);
    vkDestroyBuffer(gpu.device, screen, nullptr);
    vkFreeMemory(gpu.device, screen_memory, nullptr);
  }
  // The noise of one frame is 0.144.
  std::printf("%u x %u, %u frames, off by %.4f\n", width, height, frames, error);
  return error < 0.03 ? 0 : 1;
}
