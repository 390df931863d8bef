// Executes small SPIR-V modules, so that what is done to them can be tested without a driver.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace brontes::test {

// Runs the module's entry point on its one storage buffer, a struct of one array of 32-bit integers.
// Knows scalars of 32-bit integers and booleans, and ends with what is wrong if there is something else.
std::string interpret(const std::vector<std::uint32_t>& module, std::vector<std::uint32_t>& buffer);

}  // namespace brontes::test
