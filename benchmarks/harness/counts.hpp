// Exact counts of what happens while something runs.
#pragma once

#include "report.hpp"

#include <brontes/device.hpp>

#include <cstdint>
#include <functional>
#include <string>

namespace brontes::bench {

/// Calls of operator new by this thread so far.
std::uint64_t host_allocations() noexcept;
/// False where another operator new is in place: a sanitizer's.
bool host_allocations_known() noexcept;

/// What one call of `run` costs on the device and on this thread: the least of `times` calls, as buffers that grow and
/// pools that fill up are no part of it.
Counts count(const Device& device, const std::function<void()>& run, int times);

/// What a count is, for people; "" for one that is not known.
const char* meaning_of(const std::string& name);

}  // namespace brontes::bench
