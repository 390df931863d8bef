// A host with Vulkan objects of its own: Brontes works in its VkBuffer, and makes a buffer for it to draw from.
#include <brontes/brontes.hpp>
#include <brontes/vulkan.hpp>

#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

namespace {

// snippet: import
// Brightens a picture that a renderer left in its own buffer.
brontes::Error brighten(const brontes::Device& device, VkBuffer pixels, VkDeviceSize bytes, VkBufferUsageFlags usage) {
  brontes::vulkan::ExternalBuffer external;
  external.buffer = pixels;
  external.buffer_bytes = bytes;  // as created
  external.usage = usage;         // as created, with VK_BUFFER_USAGE_STORAGE_BUFFER_BIT
  auto picture = brontes::vulkan::import_buffer(device, external, {bytes / sizeof(float)});
  if (!picture) return picture.error();
  brontes::Batch batch(device);
  batch.store(batch.clamp(batch.scale(batch.import_buffer(*picture), 1.5f), 0, 1), *picture);
  return batch.execute();
}
// end

// snippet: last use
// The Buffer goes, then the VkBuffer may.
brontes::Error give_back(std::unique_ptr<brontes::Buffer> buffer, const std::function<void()>& destroy) {
  const brontes::Submission last = brontes::vulkan::last_use(*buffer);
  buffer.reset();
  if (brontes::Error e = last.wait()) return e;
  destroy();
  return {};
}
// end

// snippet: vertices
brontes::Result<brontes::Buffer> make_vertices(const brontes::Device& device, std::size_t count) {
  return brontes::vulkan::create_buffer(device, {count, 3}, brontes::DType::f32, VK_BUFFER_USAGE_VERTEX_BUFFER_BIT);
}
// end

// snippet: fits
// Whether a batch can be compiled under the cap that the Device was opened with.
bool fits(const brontes::Device& device, const brontes::Batch& batch) {
  const auto needs = batch.predict_memory();
  const brontes::DeviceMemory memory = device.memory();
  return needs && memory.used_bytes + needs->bytes() + needs->table_bytes <= memory.cap_bytes;
}
// end

// snippet: export
// Results that another process, or an API such as CUDA, reads where they are.
brontes::Result<brontes::vulkan::MemoryFd> share_results(const brontes::Device& device,
                                                         const std::vector<float>& data) {
  auto buffer = brontes::vulkan::create_exportable_buffer(device, {data.size()});
  if (!buffer) return buffer.error();  // unsupported where the driver cannot
  if (brontes::Error e = buffer->write(data)) return e;
  return brontes::vulkan::export_fd(*buffer);  // keeps the memory alive
}
// end

template <class Function>
Function get(const brontes::vulkan::Handles& h, const char* name) {
  return reinterpret_cast<Function>(h.get_instance_proc_addr(h.instance, name));
}
#define GET(name) get<PFN_##name>(h, #name)

// What an application's allocator would do.
struct Picture {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  float* pixels = nullptr;
};

constexpr VkDeviceSize picture_bytes = 64 * sizeof(float);
constexpr VkBufferUsageFlags picture_usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;

bool make_picture(const brontes::vulkan::Handles& h, Picture& picture) {
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = picture_bytes;
  info.usage = picture_usage;
  if (GET(vkCreateBuffer)(h.device, &info, nullptr, &picture.buffer) != VK_SUCCESS) return false;
  VkMemoryRequirements needs{};
  GET(vkGetBufferMemoryRequirements)(h.device, picture.buffer, &needs);
  VkPhysicalDeviceMemoryProperties properties{};
  GET(vkGetPhysicalDeviceMemoryProperties)(h.physical_device, &properties);
  VkMemoryAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocate.allocationSize = needs.size;
  constexpr VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  while (allocate.memoryTypeIndex < properties.memoryTypeCount &&
         ((needs.memoryTypeBits >> allocate.memoryTypeIndex & 1u) == 0 ||
          (properties.memoryTypes[allocate.memoryTypeIndex].propertyFlags & wanted) != wanted)) {
    ++allocate.memoryTypeIndex;
  }
  void* mapped = nullptr;
  if (GET(vkAllocateMemory)(h.device, &allocate, nullptr, &picture.memory) != VK_SUCCESS ||
      GET(vkBindBufferMemory)(h.device, picture.buffer, picture.memory, 0) != VK_SUCCESS ||
      GET(vkMapMemory)(h.device, picture.memory, 0, VK_WHOLE_SIZE, 0, &mapped) != VK_SUCCESS) {
    return false;
  }
  picture.pixels = static_cast<float*>(mapped);
  return true;
}

}  // namespace

int main() {
  brontes::DeviceOptions options;
  options.memory_cap = 64 << 20;
  auto device = brontes::Device::open(options);
  if (!device) {
    std::fprintf(stderr, "%s\n", device.error().message.c_str());
    return 1;
  }
  const brontes::vulkan::Handles h = brontes::vulkan::handles(*device);
  Picture picture;
  if (!make_picture(h, picture)) return 1;
  for (int i = 0; i < 64; ++i) picture.pixels[i] = static_cast<float>(i) / 64;
  if (brontes::Error e = brighten(*device, picture.buffer, picture_bytes, picture_usage)) {
    std::fprintf(stderr, "%s\n", e.message.c_str());
    return 1;
  }
  const bool bright = picture.pixels[32] == 0.75f && picture.pixels[63] == 1.0f;
  std::printf("pixel 32 of 64: %.2f\n", static_cast<double>(picture.pixels[32]));

  brontes::vulkan::ExternalBuffer external;
  external.buffer = picture.buffer;
  external.buffer_bytes = picture_bytes;
  external.usage = picture_usage;
  auto imported = brontes::vulkan::import_buffer(*device, external, {64});
  if (!imported) return 1;
  bool destroyed = false;
  const brontes::Error given = give_back(std::make_unique<brontes::Buffer>(std::move(*imported)), [&] {
    GET(vkDestroyBuffer)(h.device, picture.buffer, nullptr);
    GET(vkFreeMemory)(h.device, picture.memory, nullptr);
    destroyed = true;
  });

  auto vertices = make_vertices(*device, 100);
  brontes::Batch small(*device);
  static_cast<void>(small.fill(1, {1 << 20}));
  brontes::Batch large(*device);
  static_cast<void>(large.fill(1, {1 << 25}));
  const bool predicted = fits(*device, small) && !fits(*device, large);

  const auto shared = share_results(*device, {1, 2, 3});
  if (shared) {
    auto back = brontes::vulkan::import_fd(*device, *shared, {3});
    if (!back || back->read().value() != std::vector<float>{1, 2, 3}) return 1;
  } else {
    std::printf("%s\n", shared.error().message.c_str());
    if (shared.error().code != brontes::Errc::unsupported) return 1;
  }
  return bright && !given && destroyed && vertices && predicted ? 0 : 1;
}
