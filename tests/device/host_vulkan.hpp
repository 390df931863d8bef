// Vulkan as an application uses it beside Brontes: objects of its own on the device of a Device.
#pragma once

#include <brontes/vulkan.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace brontes::test {

template <class Function>
Function host_function(const vulkan::Handles& handles, const char* name) {
  return reinterpret_cast<Function>(handles.get_instance_proc_addr(handles.instance, name));
}
#define HOST_FUNCTION(handles, name) ::brontes::test::host_function<PFN_##name>(handles, #name)

/// A memory type of `types` that the host can write without flushing.
inline std::uint32_t host_memory_type(const vulkan::Handles& handles, std::uint32_t types) {
  VkPhysicalDeviceMemoryProperties memory{};
  HOST_FUNCTION(handles, vkGetPhysicalDeviceMemoryProperties)(handles.physical_device, &memory);
  constexpr VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  for (std::uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    if ((types >> i & 1u) != 0 && (memory.memoryTypes[i].propertyFlags & wanted) == wanted) return i;
  }
  FAIL("no host-visible memory for a buffer");
  return 0;
}

/// A VkBuffer with memory that the host sees, every word of it `fill`.
class HostBuffer {
 public:
  static constexpr VkBufferUsageFlags storage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  static constexpr VkBufferUsageFlags copies = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  static constexpr std::uint32_t fill = 0xffc0beefu;  // a NaN

  HostBuffer(const Device& device, VkDeviceSize bytes, VkBufferUsageFlags usage = storage)
      : handles_(vulkan::handles(device)) {
    VkBufferCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.size = bytes;
    info.usage = usage;
    REQUIRE(HOST_FUNCTION(handles_, vkCreateBuffer)(handles_.device, &info, nullptr, &external.buffer) == VK_SUCCESS);
    VkMemoryRequirements needs{};
    HOST_FUNCTION(handles_, vkGetBufferMemoryRequirements)(handles_.device, external.buffer, &needs);
    VkMemoryAllocateFlagsInfo flags{};
    flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    VkMemoryAllocateInfo allocate{};
    allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    if ((usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT) != 0) allocate.pNext = &flags;
    allocate.allocationSize = needs.size;
    allocate.memoryTypeIndex = host_memory_type(handles_, needs.memoryTypeBits);
    REQUIRE(HOST_FUNCTION(handles_, vkAllocateMemory)(handles_.device, &allocate, nullptr, &memory_) == VK_SUCCESS);
    REQUIRE(HOST_FUNCTION(handles_, vkBindBufferMemory)(handles_.device, external.buffer, memory_, 0) == VK_SUCCESS);
    void* mapped = nullptr;
    REQUIRE(HOST_FUNCTION(handles_, vkMapMemory)(handles_.device, memory_, 0, VK_WHOLE_SIZE, 0, &mapped) == VK_SUCCESS);
    words_ = static_cast<std::uint32_t*>(mapped);
    external.buffer_bytes = bytes;
    external.usage = usage;
    clear();
  }
  ~HostBuffer() {
    HOST_FUNCTION(handles_, vkDestroyBuffer)(handles_.device, external.buffer, nullptr);
    HOST_FUNCTION(handles_, vkFreeMemory)(handles_.device, memory_, nullptr);
  }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  /// All of it, for import_buffer().
  vulkan::ExternalBuffer external;
  /// A range of it; `writable` as ExternalBuffer::bytes.
  vulkan::ExternalBuffer range(VkDeviceSize offset, VkDeviceSize writable = 0) const {
    vulkan::ExternalBuffer part = external;
    part.offset = offset;
    part.bytes = writable;
    return part;
  }

  void clear() { std::fill_n(words_, external.buffer_bytes / 4, fill); }
  template <class T>
  void put(VkDeviceSize offset, const std::vector<T>& data) {
    std::memcpy(reinterpret_cast<std::byte*>(words_) + offset, data.data(), data.size() * sizeof(T));
  }
  template <class T = float>
  std::vector<T> get(VkDeviceSize offset, std::size_t count) const {
    std::vector<T> data(count);
    std::memcpy(data.data(), reinterpret_cast<const std::byte*>(words_) + offset, count * sizeof(T));
    return data;
  }
  /// Bytes that are not those of `fill` outside of [begin, end).
  std::size_t touched_outside(VkDeviceSize begin, VkDeviceSize end) const {
    std::size_t touched = 0;
    for (VkDeviceSize at = 0; at < external.buffer_bytes; ++at) {
      const auto changed = (words_[at / 4] ^ fill) >> at % 4 * 8 & 0xffu;
      if ((at < begin || at >= end) && changed != 0) ++touched;
    }
    return touched;
  }

 private:
  vulkan::Handles handles_;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  std::uint32_t* words_ = nullptr;
};

}  // namespace brontes::test
