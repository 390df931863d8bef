// What drivers may assume about numbers.
#pragma once

#include <cstdint>
#include <vector>

namespace brontes::spirv {

// Adds the execution mode SignedZeroInfNanPreserve for 32-bit floats to every entry point of a SPIR-V module: without
// it a driver may compute as if there were no NaN, no infinity and one zero. For devices that have
// shaderSignedZeroInfNanPreserveFloat32; a module must not ask others for it.
//
// Words that are no valid module stay as they are.
void preserve_special_values(std::vector<std::uint32_t>& module);

// The same with DenormPreserve for 16-bit floats, which weights are unpacked from: without it a driver may take a half
// below the smallest normal one for zero. For devices that have shaderDenormPreserveFloat16.
void preserve_half_denormals(std::vector<std::uint32_t>& module);

}  // namespace brontes::spirv
