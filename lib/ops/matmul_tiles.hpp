// How many sums a lane may keep, by architecture: what decides which tiles a device is offered.
#pragma once

#include "plan/traits.hpp"

#include <cstdint>

namespace brontes::plan {

struct MatmulTiles {
  Vendor vendor;
  Architecture architecture;  // `unknown` speaks for all that have no row of their own
  std::uint32_t registers;    // of 32 bits, that a lane can have before its compiler spills
  std::uint32_t tiled;        // elements of C of an invocation: micro_m * micro_n
  std::uint32_t packed_gemv;  // rows * columns, with weights that are unpacked
  const char* source;
};

/// Half of the registers at most go to the sums of a tile, and a quarter to those of gemv, where unpacking takes more.
/// The suite gpu-compilers holds the rows whose compilers it has to it: no spills.
inline constexpr MatmulTiles matmul_tiles[] = {
    {Vendor::other, Architecture::unknown, 128, 64, 32, "nothing is known of it"},
    {Vendor::amd, Architecture::unknown, 256, 64, 32, "GCN and CDNA have 256 registers for a lane, as RDNA has"},
    {Vendor::amd, Architecture::amd_rdna, 256, 64, 32, "RADV 26.2.6 for navi21: no spills"},
    {Vendor::amd, Architecture::amd_rdna3, 256, 64, 32, "RADV 26.2.6 for navi31: no spills"},
    {Vendor::amd, Architecture::amd_rdna4, 256, 64, 32, "RADV 26.2.6 for gfx1201: no spills"},
    {Vendor::apple, Architecture::unknown, 128, 64, 32, "Honeykrisp 26.2.6 for M1: no spills"},
    {Vendor::arm, Architecture::unknown, 64, 32, 16, "no compiler at hand; Valhall has 64 registers for a lane"},
    {Vendor::cpu, Architecture::unknown, 64, 32, 32,
     "lavapipe and SwiftShader take seconds to compile 64 sums, and have no registers for them"},
    {Vendor::intel, Architecture::unknown, 64, 32, 16,
     "no compiler at hand for Gen9 to Xe-LP, whose 128 registers of 32 bytes are those of Xe-HPG"},
    {Vendor::intel, Architecture::intel_xe_hpg, 64, 32, 16,
     "ANV 26.2.6 for DG2: 64 sums of the 128x128 tiles spill 82 times, 32 sums of gemv with 8 rows of f16 or q8_0 do, "
     "too"},
    {Vendor::intel, Architecture::intel_xe2, 64, 32, 16,
     "ANV 26.2.6 for Lunar Lake: registers are twice as wide, but so are subgroups, and the same spills"},
    {Vendor::nvidia, Architecture::unknown, 255, 64, 32, "Kepler and later have 255 registers for a lane"},
    {Vendor::nvidia, Architecture::nvidia_turing, 255, 64, 32, "NVK 26.2.6 for Ada: no spills"},
    {Vendor::qualcomm, Architecture::unknown, 128, 64, 32, "A6xx and later have registers as A740 has"},
    {Vendor::qualcomm, Architecture::qualcomm_a7xx, 128, 64, 32, "Turnip 26.2.6 for Adreno 740: no spills"},
};

constexpr const MatmulTiles& matmul_tiles_of(const Traits& traits) noexcept {
  const MatmulTiles* found = &matmul_tiles[0];
  for (const MatmulTiles& row : matmul_tiles) {
    if (row.vendor != (traits.cpu ? Vendor::cpu : traits.vendor)) continue;
    if (row.architecture == Architecture::unknown || row.architecture == traits.architecture) found = &row;
  }
  return *found;
}

}  // namespace brontes::plan
