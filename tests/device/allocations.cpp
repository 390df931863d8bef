#include "allocations.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__has_feature)
#  if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#    define BRONTES_TEST_SANITIZED
#  endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#  define BRONTES_TEST_SANITIZED
#endif

// Without optimisation this program holds functions of the standard library, and the validation layer is bound to them:
// its allocations would look like ours.
#if defined(__GLIBC__) && defined(__OPTIMIZE__) && !defined(BRONTES_TEST_SANITIZED)

#  include <dlfcn.h>
#  include <execinfo.h>

namespace {

struct Counter {
  bool on = false;
  brontes::test::HostAllocations counts;
};
thread_local Counter counter;

const char* module_of(void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

// `caller` is where operator new returns to.
bool by_the_library(void* caller) {
  static const char* const self = module_of(reinterpret_cast<void*>(&module_of));
  void* frames[32];
  const int count = backtrace(frames, 32);
  bool reached = false;
  for (int i = 0; i < count; ++i) {
    reached = reached || frames[i] == caller;
    if (!reached) continue;
    const char* module = module_of(frames[i]);
    if (std::strstr(module, "libstdc++") != nullptr || std::strstr(module, "libc.so") != nullptr) continue;
    return std::strcmp(module, self) == 0 || std::strstr(module, "libbrontes") != nullptr;
  }
  return false;
}

void note(void* caller) {
  if (!counter.on) return;
  counter.on = false;  // what looking at the stack allocates is nobody's
  ++counter.counts.all;
  if (by_the_library(caller)) ++counter.counts.ours;
  counter.on = true;
}

}  // namespace

namespace brontes::test {

bool allocations_are_counted() { return true; }

void start_counting() {
  void* frames[2];
  static_cast<void>(backtrace(frames, 2));  // loads the unwinder
  counter = {};
  counter.on = true;
}

HostAllocations stop_counting() {
  counter.on = false;
  return counter.counts;
}

}  // namespace brontes::test

// The array and nothrow forms of the standard library end up in these.
__attribute__((noinline)) void* operator new(std::size_t size) {
  note(__builtin_return_address(0));
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
__attribute__((noinline)) void* operator new(std::size_t size, std::align_val_t alignment) {
  note(__builtin_return_address(0));
  const auto align = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(align, (size + align - 1) / align * align)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

#else

namespace brontes::test {

bool allocations_are_counted() { return false; }
void start_counting() {}
HostAllocations stop_counting() { return {}; }

}  // namespace brontes::test

#endif
