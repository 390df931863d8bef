// Specialization without the driver.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels.hpp"

namespace brontes::kernels {

// A copy of the kernel's SPIR-V in which every specialization constant is an ordinary constant, what is
// computed from them is too, and what they rule out is gone (prune.hpp). values[i] belongs to
// kernel.constants[i]; the kernel has `mode`.
//
// For drivers that give specialization constants their values late, or never look at what they rule out:
// SwiftShader keeps, compiles and executes every branch that hangs on one, and RADV takes seconds to
// remove them from the tiled matmul. The pipeline then takes no VkSpecializationInfo.
//
// Any input will do: words that are no valid module come back as they are, or nearly so.
std::vector<std::uint32_t> specialize(const Kernel& kernel, View<std::uint32_t> values,
                                      AccessMode mode = AccessMode::storage);

}  // namespace brontes::kernels
