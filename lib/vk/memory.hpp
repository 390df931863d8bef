// Device memory on VMA. The allocator's own header stays inside memory.cpp.
#pragma once

#include "vk/handle.hpp"
#include "vk/host_reserve.hpp"
#include "vk/loader.hpp"
#include "vk/shelf.hpp"

#include <brontes/device.hpp>
#include <brontes/error.hpp>
#include <brontes/vulkan.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace brontes::vk {

class Context;

/// How the host reaches what kernels reach.
enum class HostAccess : std::uint8_t {
  none,        ///< not at all: everything goes through staging buffers
  write_only,  ///< it is mapped, but not cached: written directly, and read through a staging buffer
  full,        ///< it is mapped and cached
};

enum class MemoryUse : std::uint8_t {
  device,    ///< what kernels reach; mapped too where HostAccess allows it
  upload,    ///< the host writes, the device copies from it
  readback,  ///< the device copies into it, the host reads
  uniform,   ///< the host writes, kernels read it as uniform buffers
};

/// Somebody who keeps memory for later and can do without it.
class Reclaimer {
 public:
  /// Lets go of it, from any thread, when an allocation has failed. What is in use right now stays.
  virtual void reclaim() noexcept = 0;

 protected:
  ~Reclaimer() = default;
};

/// A range of a VkBuffer that somebody else owns.
struct BorrowedBuffer {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkBufferUsageFlags usage = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;     // of the elements
  std::uint64_t writable = 0;  // from the offset on; the elements at least
};

/// Memory that is shared with somebody outside of this device: exported to them, or imported from them.
struct SharedBlock {
  std::uint64_t bytes = 0;  // of the elements
  VkBufferUsageFlags extra_usage = 0;
  void* host = nullptr;                // pages of the host's to import, `allocation_bytes` of them
  int fd = -1;                         // an opaque file descriptor to import; neither: memory to be exported
  std::uint64_t allocation_bytes = 0;  // of what is imported
  std::uint32_t memory_type = 0;       // of what is imported by fd
  bool dedicated = false;              // what is imported by fd was allocated for one buffer
};

/// Of the operating system.
void close_descriptor(int fd) noexcept;

/// A VkBuffer with memory, or a range of somebody else's. Shared ones are destroyed when the last owner lets go, or,
/// while work in flight uses them, set aside until that is done. Their owners keep the Context alive; what is set aside
/// does not.
class Allocation {
 public:
  ~Allocation();
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  VkBuffer buffer() const noexcept { return buffer_; }
  /// Where it begins in the VkBuffer. Other offsets count from there.
  std::uint64_t offset() const noexcept { return offset_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  VkBufferUsageFlags usage() const noexcept { return usage_; }
  /// Not a byte past bytes() may be written: the last vec4 is somebody else's, too.
  bool exact() const noexcept { return exact_; }
  /// A range of somebody else's VkBuffer.
  bool borrowed() const noexcept { return borrowed_; }
  /// What a SharedBlock lies in; null for others.
  VkDeviceMemory memory() const noexcept { return memory_; }
  const SharedBlock& shared() const noexcept { return shared_; }
  /// Both have bytes in common; whatever is written along with a last vec4 counts.
  bool overlaps(const Allocation& other) const noexcept;
  /// The memory itself, or null where the host cannot reach it. Not for reading unless it is readable().
  std::byte* mapped() const noexcept { return mapped_; }
  /// The host can read it as fast as its own memory.
  bool readable() const noexcept { return mapped_ != nullptr && cached_; }
  Context& context() const noexcept { return *context_; }

  /// Copies into mapped memory, for work that is submitted later. Nothing that is in flight may use the memory: where
  /// it is not coherent, whole atoms go to the device, and what lies beside `bytes` in the first and the last one is
  /// fetched before, since the device may have written it.
  Error write(std::uint64_t offset, const void* data, std::uint64_t bytes);
  /// Copies out of readable() memory what work that is done has written.
  Error read(std::uint64_t offset, void* data, std::uint64_t bytes) const;
  /// For what was written through mapped(), from the beginning on, to memory that the device has not written since it
  /// was allocated.
  Error flush(std::uint64_t bytes) const;

  /// RGBA32F texels of a range, where usage() allows for them. It lives as long as the allocation.
  Result<VkBufferView> view(std::uint64_t offset, std::uint64_t bytes);
  /// 0 unless the device was opened for kernels that use addresses, and usage() allows for it.
  VkDeviceAddress address() const noexcept { return address_; }

  /// The timeline value of the last submit that uses it.
  std::atomic<std::uint64_t> last_use{0};

 private:
  friend class Memory;
  Allocation() = default;
  Error flush(std::uint64_t offset, std::uint64_t bytes) const;
  Error invalidate(std::uint64_t offset, std::uint64_t bytes) const;

  Context* context_ = nullptr;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  void* block_ = nullptr;           // VmaAllocation; null where the memory is not the allocator's
  vulkan::MemoryBlock host_block_;  // of the host's allocator, where it has a memory
  bool borrowed_ = false;
  std::byte* mapped_ = nullptr;
  bool cached_ = false;
  std::uint64_t offset_ = 0;
  std::uint64_t bytes_ = 0;
  VkBufferUsageFlags usage_ = 0;
  bool exact_ = false;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;  // where it is not the allocator's
  SharedBlock shared_;
  bool taken_ = false;    // counts towards the cap
  bool counted_ = false;  // among Memory's live ones
  VkDeviceAddress address_ = 0;
  std::mutex views_mutex_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, BufferView> views_;  // by offset and bytes

 public:
  std::unique_ptr<Allocation> next;  // among those set aside
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

  /// Where `host` has functions, the memory of buffers comes from there.
  Error open(const Context& context, vulkan::MemoryAllocator host, bool addresses);
  /// Destroys all that was set aside. Only when no work is in flight, or to leave everything alone from now on: then
  /// not even the allocator is destroyed.
  void close(bool abandon) noexcept;

  /// Of MemoryUse::device.
  HostAccess host_access() const noexcept { return host_access_; }
  std::uint64_t max_bytes() const noexcept { return max_bytes_; }

  /// Where there is not enough, reclaimers let go of theirs first.
  Result<std::shared_ptr<Allocation>> allocate(std::shared_ptr<Context> context, std::uint64_t bytes, MemoryUse use,
                                               const char* name, VkBufferUsageFlags extra_usage = 0);
  /// For the Context itself, which it must not keep alive: the owner sees to it that no work is in flight when it goes.
  /// Not among the live ones, which are what users hold.
  Result<std::unique_ptr<Allocation>> allocate(Context& context, std::uint64_t bytes, MemoryUse use, const char* name,
                                               VkBufferUsageFlags extra_usage = 0);

  /// Takes no memory, and destroys nothing but the views it makes.
  Result<std::shared_ptr<Allocation>> borrow(std::shared_ptr<Context> context, const BorrowedBuffer& buffer) const;
  /// Errc::unsupported where the device cannot. A descriptor to import stays the caller's.
  Result<std::shared_ptr<Allocation>> share_block(std::shared_ptr<Context> context, const SharedBlock& block);
  /// Whether kernels may use addresses of buffers.
  bool addresses() const noexcept { return addresses_; }

  /// Nothing happens in a forked process: there a thread that does not exist may have the list.
  void add(const Context& context, Reclaimer& reclaimer);
  void remove(const Context& context, Reclaimer& reclaimer) noexcept;

  DeviceMemory describe(const Context& context) const noexcept;

  std::atomic<std::uint64_t> allocations{0};
  std::atomic<std::uint64_t> live_buffers{0};
  std::atomic<std::uint64_t> live_bytes{0};

 private:
  friend class Allocation;
  /// Destroys it, or sets it aside while it is in use.
  static void retire(std::unique_ptr<Allocation> allocation) noexcept;
  /// Destroys what was set aside and is not in use any more.
  void collect(Context& context) noexcept;
  void reclaim(Context& context);
  /// Makes a buffer in memory of the host's allocator.
  VkResult make_hosted(const Context& context, const VkBufferCreateInfo& buffer, std::uint32_t memory_type, bool mapped,
                       Allocation& to);
  /// Whether so many bytes more are within the cap; then they count.
  bool take(std::uint64_t bytes) noexcept;
  Error over_cap(const char* name, std::uint64_t bytes) const;
  /// Its deleter keeps the Context alive.
  static std::shared_ptr<Allocation> share(std::unique_ptr<Allocation> allocation, std::shared_ptr<Context> context);
  std::string what_is_left() const;

  HostReserve reserve_;
  vulkan::MemoryAllocator host_;
  void* allocator_ = nullptr;  // VmaAllocator
  bool abandoned_ = false;
  HostAccess host_access_ = HostAccess::none;
  bool addresses_ = false;
  std::uint64_t cap_ = 0;                  // DeviceOptions::memory_cap
  std::atomic<std::uint64_t> used_{0};     // bytes of all buffers that were allocated here and are not destroyed yet
  std::atomic<std::uint64_t> buffers_{0};  // how many
  std::uint32_t mapped_types_ = 0;         // for host_access_
  std::uint32_t heap_ = 0;                 // the one that MemoryUse::device comes from
  std::uint64_t heap_bytes_ = 0;
  std::uint64_t max_bytes_ = 0;
  std::mutex retired_mutex_;
  Shelf<Allocation> retired_;
  std::mutex reclaimers_mutex_;
  std::vector<Reclaimer*> reclaimers_;
};

}  // namespace brontes::vk
