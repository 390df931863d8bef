// operator new that counts. Being in the program it serves every library of the process, and a counter per thread keeps
// out what threads of the driver do.
#include "counts.hpp"

#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#  define BRONTES_BENCH_SANITIZED 1
#elif defined(__has_feature)
#  if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#    define BRONTES_BENCH_SANITIZED 1
#  endif
#endif

#ifdef BRONTES_BENCH_SANITIZED

namespace brontes::bench {
std::uint64_t host_allocations() noexcept { return 0; }
bool host_allocations_known() noexcept { return false; }
}  // namespace brontes::bench

#else

namespace {

thread_local std::uint64_t calls = 0;

void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  ++calls;
  if (bytes == 0) bytes = 1;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  for (;;) {
    if (void* const memory = allocate(bytes, alignment)) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

constexpr std::size_t usual = alignof(std::max_align_t);

}  // namespace

namespace brontes::bench {
std::uint64_t host_allocations() noexcept { return calls; }
bool host_allocations_known() noexcept { return true; }
}  // namespace brontes::bench

// The other forms of the standard library come down to these.
void* operator new(std::size_t bytes) { return allocate_or_throw(bytes, usual); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

#endif
