// The test's side of spy_loader.cpp: a library that stands between Brontes and the Vulkan loader,
// counts calls and makes chosen ones fail.
#pragma once

#include <cstdint>

extern "C" {

/// How often a function was called since spy_reset(). 0 for functions it does not watch.
std::uint64_t spy_calls(const char* name);
/// The next call but `skip` of function `name`, or of any watched function that can fail when name is
/// null, returns `result` without doing anything.
void spy_fail(const char* name, std::uint64_t skip, std::int32_t result);
/// The function that was made to fail since spy_fail(), or null.
const char* spy_failed();
/// Zeroes all counts and plans no failure.
void spy_reset();
/// Devices report this as their Vulkan version; 0 leaves theirs.
void spy_version(std::uint32_t api_version);
}
