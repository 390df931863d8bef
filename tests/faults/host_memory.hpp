// Failing host allocations: operator new of this program, and so of the library in it.
#pragma once

#include <cstdint>

namespace brontes::test::host_memory {

/// Allocations of this thread are not counted where this is true; null: all are.
void set_exempt(bool (*exempt)());

/// From now on this thread's allocations are counted, and the one after `skip` more fails, or that and all later ones.
void fail(std::uint64_t skip, bool lasting);
/// Only counts.
void count();
/// Ends either. The number of allocations meanwhile.
std::uint64_t stop();
/// Whether one was made to fail since fail().
bool failed();

}  // namespace brontes::test::host_memory
