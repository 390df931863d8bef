// Exact counts of what happens while something runs.
#pragma once

#include "report.hpp"

#include <brontes/device.hpp>

#include <cstdint>
#include <functional>

namespace brontes::bench {

/// Calls of operator new by this thread so far.
std::uint64_t host_allocations() noexcept;
/// False where another operator new is in place: a sanitizer's.
bool host_allocations_known() noexcept;

/// What one call of `run` costs on the device and on this thread: the least of `times` calls, as buffers that grow and
/// pools that fill up are no part of it.
Counts count(const Device& device, const std::function<void()>& run, int times);

/// What the counts are, for people.
struct CountMeaning {
  const char* name;
  const char* meaning;
};
const std::vector<CountMeaning>& count_meanings();

}  // namespace brontes::bench
