// The host's own memory: for the driver's objects, and for the buffers' elements.
#include "host.hpp"

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>

namespace brontes::test {
namespace {

/// VkAllocationCallbacks that know what they gave.
class Callbacks {
 public:
  Callbacks() {
    functions.pUserData = this;
    functions.pfnAllocation = [](void* self, std::size_t bytes, std::size_t alignment, VkSystemAllocationScope) {
      return static_cast<Callbacks*>(self)->allocate(bytes, alignment);
    };
    functions.pfnReallocation = [](void* self, void* old, std::size_t bytes, std::size_t alignment,
                                   VkSystemAllocationScope) {
      return static_cast<Callbacks*>(self)->reallocate(old, bytes, alignment);
    };
    functions.pfnFree = [](void* self, void* pointer) { static_cast<Callbacks*>(self)->free(pointer); };
  }

  VkAllocationCallbacks functions{};
  /// More than this is not to be had.
  std::atomic<std::size_t> largest{~std::size_t{0}};
  std::atomic<std::uint64_t> given{0};
  std::atomic<std::uint64_t> strangers{0};  // freed without having been given
  std::size_t live() {
    const std::lock_guard lock(mutex_);
    return sizes_.size();
  }

 private:
  void* allocate(std::size_t bytes, std::size_t alignment) {
    if (bytes > largest) return nullptr;
    const std::size_t align = std::max(alignment, sizeof(void*));
    void* const pointer = std::aligned_alloc(align, (bytes + align - 1) / align * align);
    const std::lock_guard lock(mutex_);
    sizes_[pointer] = bytes;
    ++given;
    return pointer;
  }
  void* reallocate(void* old, std::size_t bytes, std::size_t alignment) {
    void* const pointer = bytes == 0 ? nullptr : allocate(bytes, alignment);
    if (old != nullptr && (pointer != nullptr || bytes == 0)) {
      std::size_t before = 0;
      {
        const std::lock_guard lock(mutex_);
        before = sizes_[old];
      }
      if (pointer != nullptr) std::memcpy(pointer, old, std::min(before, bytes));
      free(old);
    }
    return pointer;
  }
  void free(void* pointer) {
    if (pointer == nullptr) return;
    {
      const std::lock_guard lock(mutex_);
      if (sizes_.erase(pointer) == 0) ++strangers;
    }
    std::free(pointer);
  }

  std::mutex mutex_;
  std::map<void*, std::size_t> sizes_;
};

/// A host's allocator of device memory. Each block lies behind some bytes that are somebody else's.
class Blocks {
 public:
  explicit Blocks(Host& host) : host_(host) {
    const auto get = [&](const char* name) {
      return host.external.get_instance_proc_addr(host.external.instance, name);
    };
    const auto get_device = reinterpret_cast<PFN_vkGetDeviceProcAddr>(get("vkGetDeviceProcAddr"));
    const VkDevice device = host.external.device;
    allocate_ = reinterpret_cast<PFN_vkAllocateMemory>(get_device(device, "vkAllocateMemory"));
    free_ = reinterpret_cast<PFN_vkFreeMemory>(get_device(device, "vkFreeMemory"));
    map_ = reinterpret_cast<PFN_vkMapMemory>(get_device(device, "vkMapMemory"));
    host.external.memory.allocate = [this](const vulkan::MemoryRequest& wanted, vulkan::MemoryBlock& block) {
      return allocate(wanted, block);
    };
    host.external.memory.free = [this](const vulkan::MemoryBlock& block) { free(block); };
  }

  std::atomic<std::uint64_t> given{0};
  std::atomic<std::uint64_t> mapped{0};
  std::atomic<std::uint64_t> to_fail{0};  // so many requests
  std::atomic<bool> forget_to_map{false};
  std::size_t live() {
    const std::lock_guard lock(mutex_);
    return live_.size();
  }

 private:
  VkResult allocate(const vulkan::MemoryRequest& wanted, vulkan::MemoryBlock& block) {
    if (to_fail != 0) {
      --to_fail;
      return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    if (wanted.buffer == VK_NULL_HANDLE || (wanted.requirements.memoryTypeBits >> wanted.memory_type & 1u) == 0)
      return VK_ERROR_UNKNOWN;
    VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    if (wanted.device_address) info.pNext = &flags;
    info.allocationSize = wanted.requirements.size + wanted.requirements.alignment;
    info.memoryTypeIndex = wanted.memory_type;
    if (const VkResult made = allocate_(host_.external.device, &info, nullptr, &block.memory); made != VK_SUCCESS)
      return made;
    block.offset = wanted.requirements.alignment;
    if (wanted.mapped && !forget_to_map) {
      void* begin = nullptr;
      static_cast<void>(map_(host_.external.device, block.memory, 0, VK_WHOLE_SIZE, 0, &begin));
      block.mapped = static_cast<std::byte*>(begin) + block.offset;
      ++mapped;
    }
    ++given;
    const std::lock_guard lock(mutex_);
    live_.insert(block.memory);
    return VK_SUCCESS;
  }
  void free(const vulkan::MemoryBlock& block) {
    {
      const std::lock_guard lock(mutex_);
      live_.erase(block.memory);
    }
    free_(host_.external.device, block.memory, nullptr);
  }

  Host& host_;
  PFN_vkAllocateMemory allocate_ = nullptr;
  PFN_vkFreeMemory free_ = nullptr;
  PFN_vkMapMemory map_ = nullptr;
  std::mutex mutex_;
  std::set<VkDeviceMemory> live_;
};

/// What docs/embedding.md calls a heap.
struct Heap {
  std::uint64_t bytes = 0;
  vulkan::MemoryAllocator& blocks;
  VkResult take(const vulkan::MemoryRequest& wanted, vulkan::MemoryBlock& block) {
    return blocks.allocate(wanted, block);
  }
  void give_back(const vulkan::MemoryBlock& block) { blocks.free(block); }
};

// snippet: heap
// Counts what Brontes takes, and passes on what the engine's heap gives.
brontes::vulkan::MemoryAllocator from_heap(Heap& heap) {
  brontes::vulkan::MemoryAllocator memory;
  memory.allocate = [&heap](const brontes::vulkan::MemoryRequest& wanted, brontes::vulkan::MemoryBlock& block) {
    heap.bytes += wanted.requirements.size;
    return heap.take(wanted, block);  // memory, offset, and where the host reaches it if wanted.mapped
  };
  memory.free = [&heap](const brontes::vulkan::MemoryBlock& block) { heap.give_back(block); };
  return memory;
}
// end

/// relu(x) * 2 by a batch, a program and a buffer.
Error run_everything(const Device& device) {
  const std::vector<float> x{1, -2, 3, -4, 5};
  auto buffer = Buffer::from(device, x);
  if (!buffer) return buffer.error();
  Batch batch(device);
  const Tensor y = batch.scale(batch.relu(batch.import_buffer(*buffer)), 2);
  batch.keep(y);
  batch.store(y, *buffer);
  auto program = batch.compile();
  if (!program) return program.error();
  if (Error e = program->run()) return e;
  auto result = buffer->read();
  if (!result) return result.error();
  CHECK(*result == std::vector<float>{2, 0, 6, 0, 10});
  if (Error e = batch.execute()) return e;
  result = batch.read(y);
  if (!result) return result.error();
  CHECK(*result == std::vector<float>{4, 0, 12, 0, 20});
  return {};
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "the driver's objects live in memory of the host's callbacks", "[vulkan][allocators]") {
  Callbacks callbacks;
  Host host;
  host.external.allocation_callbacks = &callbacks.functions;
  for (const AccessMode mode : {AccessMode::storage, AccessMode::texel}) {
    DeviceOptions options = checked_options();
    options.access = mode;
    Result<Device> device = vulkan::adopt(host.external, options);
    REQUIRE_OK(device.error());
    REQUIRE_OK(run_everything(*device));
    CHECK(callbacks.live() > 0);
  }
  CHECK(callbacks.given > 0);
  CHECK(callbacks.live() == 0);
  CHECK(callbacks.strangers == 0);
}

TEST_CASE_METHOD(DeviceTest, "callbacks without memory for the reserve are an error that loses nothing",
                 "[vulkan][allocators]") {
  Callbacks callbacks;
  Host host;
  host.external.allocation_callbacks = &callbacks.functions;
  callbacks.largest = 100 << 10;
  const Result<Device> device = vulkan::adopt(host.external, checked_options());
  CHECK(device.error().code == Errc::out_of_memory);
  CHECK(callbacks.live() == 0);
  CHECK(callbacks.strangers == 0);
}

TEST_CASE_METHOD(DeviceTest, "buffers lie in memory of the host's allocator", "[vulkan][allocators]") {
  Host host;
  Blocks blocks(host);
  for (const bool staged : {false, true}) {
    DeviceOptions options = checked_options();
    options.simulate.staged_memory = staged;
    {
      Result<Device> device = vulkan::adopt(host.external, options);
      REQUIRE_OK(device.error());
      REQUIRE_OK(run_everything(*device));
      const Result<Buffer> held = Buffer::from(*device, std::vector<float>(5, 1.0f));
      REQUIRE_OK(held.error());
      CHECK(blocks.live() > 0);
      CHECK(device->memory().block_bytes == 0);
      CHECK((staged || !device->info().mapped_memory || blocks.mapped == blocks.given));
    }
    CHECK(blocks.given > 0);
    CHECK(blocks.live() == 0);
  }
}

TEST_CASE_METHOD(DeviceTest, "an allocator of the host's that fails is an error, and works again afterwards",
                 "[vulkan][allocators]") {
  Host host;
  Blocks blocks(host);
  {
    Result<Device> device = vulkan::adopt(host.external, checked_options());
    REQUIRE_OK(device.error());
    // Asked once more after what was kept for later is given back.
    blocks.to_fail = 1;
    REQUIRE_OK(run_everything(*device));
    blocks.to_fail = 2;
    const std::vector<float> x(1000, 1.0f);
    const Error failed = Buffer::from(*device, x).error();
    CHECK(failed.code == Errc::out_of_memory);
    CHECK(failed.message.find("ExternalDevice::memory") != std::string::npos);
    REQUIRE_OK(run_everything(*device));
    blocks.forget_to_map = true;
    if (device->info().mapped_memory) CHECK(Buffer::from(*device, x).error().code == Errc::vulkan);
    blocks.forget_to_map = false;
    REQUIRE_OK(run_everything(*device));
  }
  CHECK(blocks.live() == 0);
}

TEST_CASE_METHOD(DeviceTest, "the allocator of docs/embedding.md gives Brontes its memory", "[vulkan][allocators]") {
  Host host;
  Blocks blocks(host);
  vulkan::MemoryAllocator below = host.external.memory;
  Heap heap{0, below};
  host.external.memory = from_heap(heap);
  Result<Device> device = vulkan::adopt(host.external, checked_options());
  REQUIRE_OK(device.error());
  REQUIRE_OK(run_everything(*device));
  CHECK(heap.bytes >= device->memory().used_bytes);
}

TEST_CASE_METHOD(DeviceTest, "half an allocator is refused", "[vulkan][allocators]") {
  Host host;
  host.external.memory.free = [](const vulkan::MemoryBlock&) {};
  const Result<Device> device = vulkan::adopt(host.external, checked_options());
  CHECK(device.error().code == Errc::invalid_argument);
  CHECK(device.error().message.find("allocate and free") != std::string::npos);
}

}  // namespace brontes::test
