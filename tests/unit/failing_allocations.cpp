// SPDX-License-Identifier: MIT
#include "failing_allocations.hpp"

#include <cstdlib>
#include <new>

namespace {

struct Faults {
  std::size_t until_first = 0;
  std::size_t left = 0;
  std::size_t failed = 0;
};
thread_local Faults faults;

bool fails() noexcept {
  if (faults.left == 0) return false;
  if (faults.until_first > 0) {
    --faults.until_first;
    return false;
  }
  --faults.left;
  ++faults.failed;
  return true;
}

}  // namespace

namespace brontes::test {

FailingAllocations::FailingAllocations(std::size_t first, std::size_t count) noexcept { faults = {first, count, 0}; }
FailingAllocations::~FailingAllocations() { faults = {}; }
std::size_t FailingAllocations::failed() const noexcept { return faults.failed; }

}  // namespace brontes::test

// The standard library's array forms end up in these; so would the nothrow forms, but not under sanitizers.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return fails() ? nullptr : std::malloc(size != 0 ? size : 1);
}

void* operator new(std::size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
