// The test's side of loader.cpp: a library that stands between Brontes and the Vulkan loader. It watches every
// function Brontes uses, counts calls and live objects, and makes chosen calls fail.
#pragma once

#include <cstdint>

extern "C" {

/// How long a failure lasts that spy_fail() plans.
enum SpyMode : std::int32_t {
  spy_once,
  spy_from_then_on,  ///< every later call that can return the result does
  /// The device is lost: every later call that can says so. Waits end when the work has, as the specification asks.
  spy_lost,
};

/// How often a function was called since spy_reset(). 0 for functions it does not watch.
std::uint64_t spy_calls(const char* name);
/// All calls that can fail since spy_reset().
std::uint64_t spy_fallible_calls();
/// The function that made call `index` of these, or null.
const char* spy_traced(std::uint64_t index);
/// Writes the results with which the specification lets a function fail to `results`, VK_ERROR_UNKNOWN apart; their
/// number.
std::uint32_t spy_results(const char* name, std::int32_t* results, std::uint32_t room);

/// The next call but `skip` of function `name`, or of any that can fail when name is null, returns `result` without
/// doing anything.
void spy_fail(const char* name, std::uint64_t skip, std::int32_t result, std::int32_t mode);
/// The function that was made to fail first since spy_fail(), or null.
const char* spy_failed();
/// Nothing fails any more.
void spy_disarm();
/// Zeroes all counts and plans no failure. Live objects stay counted.
void spy_reset();

/// Kinds of objects, and how many of each are alive.
std::uint32_t spy_kinds();
const char* spy_kind(std::uint32_t kind);
std::int64_t spy_live(std::uint32_t kind);

/// Devices report this as their Vulkan version; 0 leaves theirs.
void spy_version(std::uint32_t api_version);
/// Shader modules have instructions of one opcode replaced by another's; 0: none.
void spy_break(std::uint32_t opcode, std::uint32_t instead);
/// The function does not exist, by whichever way it is asked for; null: all do.
void spy_hide(const char* name);
/// Functions that are watched, by number; null past the last.
const char* spy_function(std::uint32_t index);
/// vkAllocateMemory fails with VK_ERROR_OUT_OF_DEVICE_MEMORY where more than this would be allocated; 0: no limit.
void spy_limit_memory(std::uint64_t bytes);
/// Bytes of VkDeviceMemory that are allocated.
std::uint64_t spy_memory();
/// Dispatches with pipelines that have this in their debug names are recorded so many times: 0 makes a kernel that does
/// nothing, and is fast, more make a slow one. Null: all once. For pipelines made from then on.
void spy_repeat_dispatches(const char* pipelines, std::uint32_t times);
/// Devices that are opened from now on have memory types with these VkMemoryPropertyFlags; `count` 0: their own. The
/// library sees a copy of memory that is not coherent, in which flushes and invalidations move whole atoms of 256
/// bytes; and of memory that is coherent but not cached, in which it can write but does not see what the device writes.
void spy_memory_types(const std::uint32_t* flags, std::uint32_t count);
/// True while this thread is inside the Vulkan loader, a layer or a driver.
bool spy_in_driver();
/// Calls since spy_reset() that used the loader's lists of instances and devices while another thread changed them.
std::uint64_t spy_overlaps();
}
