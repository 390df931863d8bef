// SPIRV-Tools as the judge of modules.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace brontes::test {

/// The validator of SPIRV-Tools where the library was found, otherwise spirv-val, or what BRONTES_SPIRV_VAL names, on
/// files of its own. Skips the test where that does not run.
class SpirvValidator {
 public:
  SpirvValidator();
  ~SpirvValidator();
  SpirvValidator(const SpirvValidator&) = delete;
  SpirvValidator& operator=(const SpirvValidator&) = delete;

  /// What it complains of, or nothing. The module's version decides on Vulkan's.
  std::string complaint(const std::vector<std::uint32_t>& module) const;

 private:
  std::string program_;
  std::string path_;
};

}  // namespace brontes::test
