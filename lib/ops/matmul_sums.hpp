// How many sums a lane may keep, by vendor: what decides which tiles a device is offered.
#pragma once

#include "plan/traits.hpp"

#include <cstdint>

namespace brontes::plan {

struct MatmulSums {
  Vendor vendor;
  std::uint32_t tiled;        // elements of C of an invocation: micro_m * micro_n
  std::uint32_t packed_gemv;  // rows * columns, with weights that are unpacked
  const char* source;
};

/// One row per vendor. With more sums than these, a compiler spills registers to memory, or takes too long. The suite
/// gpu-compilers holds the rows of vendors whose compilers it has to it.
inline constexpr MatmulSums matmul_sums[] = {
    {Vendor::other, 64, 32, "nothing is known of it"},
    {Vendor::amd, 64, 32, "RADV 26.2.6 for navi21, navi31 and gfx1201: no spills"},
    {Vendor::apple, 64, 32, "Honeykrisp 26.2.6 for M1: no spills"},
    {Vendor::arm, 32, 16, "no compiler at hand; Valhall has 64 registers for a lane"},
    {Vendor::cpu, 32, 32, "lavapipe and SwiftShader take seconds to compile 64, and have no registers for them"},
    {Vendor::intel, 32, 16,
     "ANV 26.2.6 for DG2 and Lunar Lake: 64 sums of the 128x128 tiles spill 82 times, 32 sums of gemv with 8 rows of "
     "f16 or q8_0 do, too"},
    {Vendor::nvidia, 64, 32, "NVK 26.2.6 for Ada: no spills"},
    {Vendor::qualcomm, 64, 32, "Turnip 26.2.6 for Adreno 740: no spills"},
};

constexpr const MatmulSums& matmul_sums_of(const Traits& traits) noexcept {
  for (const MatmulSums& row : matmul_sums) {
    if (row.vendor == (traits.cpu ? Vendor::cpu : traits.vendor)) return row;
  }
  return matmul_sums[0];
}

}  // namespace brontes::plan
