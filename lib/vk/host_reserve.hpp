// Host memory for VMA.
#pragma once

#include "vk/table.hpp"

#include <array>
#include <cstddef>
#include <mutex>

namespace brontes::vk {

/// Host memory for the allocator, which takes a failure to get any for a bug. Each of its calls begins with some in
/// reserve, which stands in where none is to be had meanwhile: a call then fails before it begins or not at all.
class HostReserve {
 public:
  HostReserve() = default;
  ~HostReserve();
  HostReserve(const HostReserve&) = delete;
  HostReserve& operator=(const HostReserve&) = delete;

  /// From now on memory comes from these, which are for drivers, too. Before any is used.
  void use(const VkAllocationCallbacks& host) noexcept;
  /// For the allocator, and what it passes to drivers; null without callbacks of the host.
  const VkAllocationCallbacks* callbacks() const noexcept { return host_ == nullptr ? nullptr : &callbacks_; }

  /// What is in reserve is left alone from now on.
  void abandon() noexcept { blocks_.fill(nullptr); }

  /// While it lives, what the allocator asks for on this thread may come out of the reserve. One at a time.
  class Use {
   public:
    /// Throws std::bad_alloc when the reserve cannot be filled.
    explicit Use(HostReserve& reserve);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    std::unique_lock<std::mutex> lock_;
  };

  /// Without callbacks of the host.
  static void* allocate(std::size_t bytes) noexcept;
  static void free(void* pointer) noexcept;

 private:
  void* get(std::size_t bytes) const noexcept;
  void put(void* pointer) const noexcept;
  /// What `pointer` is, or what the reserve has where that is null.
  void* or_reserved(void* pointer, std::size_t bytes) noexcept;

  const VkAllocationCallbacks* host_ = nullptr;
  VkAllocationCallbacks callbacks_{};
  std::mutex mutex_;
  std::array<void*, 12> blocks_{};  // more than one call takes
  std::size_t block_bytes_ = 0;
  std::size_t largest_ = 128 << 10;  // what was ever asked for; the allocator's own blocks grow by half
};

}  // namespace brontes::vk
