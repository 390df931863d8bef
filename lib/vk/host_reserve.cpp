#include "vk/host_reserve.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace brontes::vk {
namespace {

constexpr std::size_t alignment = 64;
thread_local HostReserve* reserve_in_use = nullptr;

}  // namespace

HostReserve::~HostReserve() {
  for (void* block : blocks_) put(block);
}

void HostReserve::use(const VkAllocationCallbacks& host) noexcept {
  host_ = &host;
  callbacks_ = host;
  callbacks_.pUserData = this;
  callbacks_.pfnAllocation = [](void* self, std::size_t bytes, std::size_t align, VkSystemAllocationScope scope) {
    auto& reserve = *static_cast<HostReserve*>(self);
    void* const pointer = reserve.host_->pfnAllocation(reserve.host_->pUserData, bytes, align, scope);
    return align > alignment ? pointer : reserve.or_reserved(pointer, bytes);
  };
  callbacks_.pfnReallocation = [](void* self, void* old, std::size_t bytes, std::size_t align,
                                  VkSystemAllocationScope scope) {
    const VkAllocationCallbacks& of = *static_cast<HostReserve*>(self)->host_;
    return of.pfnReallocation(of.pUserData, old, bytes, align, scope);
  };
  callbacks_.pfnFree = [](void* self, void* pointer) { static_cast<HostReserve*>(self)->put(pointer); };
  if (host.pfnInternalAllocation == nullptr) return;
  callbacks_.pfnInternalAllocation = [](void* self, std::size_t bytes, VkInternalAllocationType type,
                                        VkSystemAllocationScope scope) {
    const VkAllocationCallbacks& of = *static_cast<HostReserve*>(self)->host_;
    of.pfnInternalAllocation(of.pUserData, bytes, type, scope);
  };
  callbacks_.pfnInternalFree = [](void* self, std::size_t bytes, VkInternalAllocationType type,
                                  VkSystemAllocationScope scope) {
    const VkAllocationCallbacks& of = *static_cast<HostReserve*>(self)->host_;
    of.pfnInternalFree(of.pUserData, bytes, type, scope);
  };
}

HostReserve::Use::Use(HostReserve& reserve) : lock_(reserve.mutex_) {
  const std::size_t wanted = 2 * reserve.largest_;
  for (void*& block : reserve.blocks_) {
    if (block != nullptr && reserve.block_bytes_ < wanted) reserve.put(std::exchange(block, nullptr));
  }
  reserve.block_bytes_ = std::max(reserve.block_bytes_, wanted);
  for (void*& block : reserve.blocks_) {
    if (block == nullptr) block = reserve.get(reserve.block_bytes_);
    if (block == nullptr) throw std::bad_alloc();
  }
  reserve_in_use = &reserve;
}

HostReserve::Use::~Use() { reserve_in_use = nullptr; }

void* HostReserve::get(std::size_t bytes) const noexcept {
  if (host_ == nullptr) return ::operator new (bytes, std::align_val_t{alignment}, std::nothrow);
  return host_->pfnAllocation(host_->pUserData, bytes, alignment, VK_SYSTEM_ALLOCATION_SCOPE_DEVICE);
}

void HostReserve::put(void* pointer) const noexcept {
  if (host_ == nullptr) {
    ::operator delete (pointer, std::align_val_t{alignment});
  } else {
    host_->pfnFree(host_->pUserData, pointer);
  }
}

void* HostReserve::or_reserved(void* pointer, std::size_t bytes) noexcept {
  if (reserve_in_use != this) return pointer;
  largest_ = std::max(largest_, bytes);
  if (pointer != nullptr || bytes > block_bytes_) return pointer;
  for (void*& block : blocks_) {
    if (block != nullptr) return std::exchange(block, nullptr);
  }
  return nullptr;
}

void* HostReserve::allocate(std::size_t bytes) noexcept {
  void* const pointer = ::operator new (bytes, std::align_val_t{alignment}, std::nothrow);
  return reserve_in_use == nullptr ? pointer : reserve_in_use->or_reserved(pointer, bytes);
}

void HostReserve::free(void* pointer) noexcept { ::operator delete (pointer, std::align_val_t{alignment}); }

}  // namespace brontes::vk
