#include "host_memory.hpp"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

struct State {
  bool on = false;
  bool lasting = false;
  bool failed = false;
  std::uint64_t fail_at = ~std::uint64_t{0};
  std::uint64_t seen = 0;
};
thread_local State state;
bool (*exempt)() = nullptr;

bool fails() {
  if (!state.on) return false;
  if (exempt != nullptr && exempt()) return false;
  const std::uint64_t index = state.seen++;
  if (index == state.fail_at || (state.lasting && index > state.fail_at)) {
    state.failed = true;
    return true;
  }
  return false;
}

void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (fails()) return nullptr;
  const std::size_t size = bytes == 0 ? 1 : bytes;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(size);
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  void* pointer = allocate(bytes, alignment);
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}

std::size_t number(std::align_val_t alignment) { return static_cast<std::size_t>(alignment); }

}  // namespace

namespace brontes::test::host_memory {

void set_exempt(bool (*function)()) { exempt = function; }

void fail(std::uint64_t skip, bool lasting) {
  state = {};
  state.fail_at = skip;
  state.lasting = lasting;
  state.on = true;
}

void count() {
  state = {};
  state.on = true;
}

std::uint64_t stop() {
  state.on = false;
  return state.seen;
}

bool failed() { return state.failed; }

}  // namespace brontes::test::host_memory

void* operator new(std::size_t bytes) { return allocate_or_throw(bytes, 1); }
void* operator new[](std::size_t bytes) { return allocate_or_throw(bytes, 1); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, 1); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t a) { return allocate_or_throw(bytes, number(a)); }
void* operator new[](std::size_t bytes, std::align_val_t a) { return allocate_or_throw(bytes, number(a)); }
void* operator new(std::size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(bytes, number(a));
}
void* operator new[](std::size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(bytes, number(a));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept { std::free(p); }
