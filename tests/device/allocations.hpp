// Host allocations of the library, counted.
//
// What is counted: calls of operator new by one thread while it is inside allocations_of(). Callers are told apart
// by the stack: the first frame outside of the C++ and C libraries decides, so a std::string that the library makes
// counts as the library's. Drivers, the validation layer and the loader share this operator new; what they allocate
// is theirs. Direct calls of malloc() are not seen: in the library, only the Vulkan Memory Allocator makes them, for
// its own tables, when device memory is allocated, which DeviceStats counts.
#pragma once

#include <cstdint>

namespace brontes::test {

struct HostAllocations {
  std::uint64_t ours = 0;  // by libbrontes and the test
  std::uint64_t all = 0;   // by anybody, drivers and layers included
};

/// False where callers cannot be told apart: under sanitizers, without optimisation, and without glibc's backtrace().
bool allocations_are_counted();

void start_counting();
HostAllocations stop_counting();

/// What this thread allocates while `work` runs.
template <class Work>
HostAllocations allocations_of(Work work) {
  start_counting();
  work();
  return stop_counting();
}

}  // namespace brontes::test
