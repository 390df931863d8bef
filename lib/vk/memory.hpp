// Device memory on VMA. The allocator's own header stays inside memory.cpp.
#pragma once

#include "vk/handle.hpp"
#include "vk/loader.hpp"

#include <brontes/error.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace brontes::vk {

class Context;

enum class MemoryUse : std::uint8_t {
  device,    ///< what kernels reach; mapped too where the device's memory is host-visible and cached
  upload,    ///< the host writes, the device copies from it
  readback,  ///< the device copies into it, the host reads
  uniform,   ///< the host writes, kernels read it as uniform buffers
};

/// A VkBuffer with memory. Shared ones are destroyed when the last owner lets go, or, while work in flight uses
/// them, set aside until that is done. Their owners keep the Context alive; what is set aside does not.
class Allocation {
 public:
  ~Allocation();
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  VkBuffer buffer() const noexcept { return buffer_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// The memory itself, or null where the host cannot reach it.
  std::byte* mapped() const noexcept { return mapped_; }
  Context& context() const noexcept { return *context_; }

  /// Host writes become visible to the device, or device writes to the host; nothing to do on
  /// coherent memory.
  Error flush(std::uint64_t offset, std::uint64_t bytes) const;
  Error invalidate(std::uint64_t offset, std::uint64_t bytes) const;

  /// RGBA32F texels of a range, for MemoryUse::device. It lives as long as the allocation.
  Result<VkBufferView> view(std::uint64_t offset, std::uint64_t bytes);
  /// 0 unless the device was opened for kernels that use addresses.
  VkDeviceAddress address() const noexcept { return address_; }

  /// The timeline value of the last submit that uses it.
  std::atomic<std::uint64_t> last_use{0};

 private:
  friend class Memory;
  Allocation() = default;
  Context* context_ = nullptr;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  void* block_ = nullptr;  // VmaAllocation
  std::byte* mapped_ = nullptr;
  std::uint64_t bytes_ = 0;
  bool counted_ = false;  // among Memory's live ones
  VkDeviceAddress address_ = 0;
  std::mutex views_mutex_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, BufferView> views_;  // by offset and bytes
};

/// The allocator of one device.
///
/// Thread-safety: any thread.
class Memory {
 public:
  Memory() = default;
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  Error open(const Instance& instance, VkPhysicalDevice physical, VkDevice device,
             PFN_vkGetDeviceProcAddr get_device_proc, bool staged, bool addresses);

  /// True when MemoryUse::device is mapped.
  bool mapped() const noexcept { return mapped_; }
  std::uint64_t max_bytes() const noexcept { return max_bytes_; }

  Result<std::shared_ptr<Allocation>> allocate(std::shared_ptr<Context> context, std::uint64_t bytes, MemoryUse use,
                                               const char* name);
  /// For the Context itself, which it must not keep alive: the owner sees to it that no work is in flight when it goes.
  /// Not among the live ones, which are what users hold.
  Result<std::unique_ptr<Allocation>> allocate(Context& context, std::uint64_t bytes, MemoryUse use, const char* name);

  /// Destroys what was set aside and is not in use any more.
  void collect();
  /// Destroys all that was set aside. Only when no work is in flight.
  void clear();

  std::atomic<std::uint64_t> allocations{0};
  std::atomic<std::uint64_t> live_buffers{0};
  std::atomic<std::uint64_t> live_bytes{0};

 private:
  friend class Allocation;
  void retire(std::unique_ptr<Allocation> allocation);

  void* allocator_ = nullptr;  // VmaAllocator
  bool mapped_ = false;
  bool addresses_ = false;
  std::uint32_t mapped_types_ = 0;
  std::uint64_t max_bytes_ = 0;
  std::mutex retired_mutex_;
  std::vector<std::unique_ptr<Allocation>> retired_;
};

}  // namespace brontes::vk
