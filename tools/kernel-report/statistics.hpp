// What drivers call their figures.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <brontes/error.hpp>

#include <cstdint>
#include <map>
#include <string>

namespace kernel_report {

/// By the driver's own names.
using Statistics = std::map<std::string, std::uint64_t>;

/// What most drivers say of a pipeline, each in its own unit.
struct Usage {
  std::uint64_t registers = 0;  // of a lane; vectors of four on Adreno, whole vectors of the machine on Intel
  std::uint64_t spills = 0;     // registers (AMD), or instructions that spill and fill
  std::uint64_t scratch_bytes = 0;
  std::uint64_t shared_bytes = 0;
  std::uint64_t waves =
      0;  // that fit at once: per SIMD (AMD), SM (NVIDIA), core (Adreno); lanes per core (Apple); 0: not told
  std::uint64_t code_bytes = 0;
  std::uint64_t instructions = 0;
  std::uint64_t cycles = 0;  // estimated; 0: not told

  bool spilling() const { return spills != 0 || scratch_bytes != 0; }
};

/// Errc::unsupported for a driver that is not known, and where a figure that it should have is missing: that must not
/// pass for a good one.
brontes::Result<Usage> usage_of(VkDriverId driver, const Statistics& statistics);

}  // namespace kernel_report
