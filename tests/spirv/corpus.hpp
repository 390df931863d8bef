// The modules of corpus.py, and values for their specialization constants.
#pragma once

#include "spirv/specialize.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace brontes::test {

using Words = std::vector<std::uint32_t>;

struct Module {
  std::string name;
  Words words;

  bool is_random() const { return name.compare(0, 7, "random ") == 0; }
  bool has_capability(std::uint32_t capability) const;
};

/// BRONTES_SOAK=1 asks for sweeps that take minutes.
bool soak();

/// What BRONTES_CORPUS names, and with BRONTES_SOAK=1 many more. Skips the test where it names nothing.
const std::vector<Module>& corpus();

/// One of the ways to specialize the module: a value for each of its constants, of its type.
std::vector<spirv::ConstantValue> random_values(const Module& module, std::uint32_t seed);

/// How many bytes the constant takes in a VkSpecializationInfo.
std::size_t constant_bytes(const Words& module, std::uint32_t id);

std::string described(const Module& module, const std::vector<spirv::ConstantValue>& values);

}  // namespace brontes::test
