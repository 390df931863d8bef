// Specialization without the driver.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels.hpp"

namespace brontes::kernels {

// A copy of the kernel's SPIR-V in which every specialization constant is an ordinary constant, and
// what is computed from them is too. values[i] belongs to kernel.constants[i]; the kernel has `mode`.
//
// For drivers that give specialization constants their values only after optimising: SwiftShader keeps,
// compiles and executes every branch that hangs on one. With ordinary constants it folds them, and a
// pipeline of `elementwise` takes 60 ms to create in place of a second, and runs many times faster.
// Other drivers do as well either way. The pipeline then takes no VkSpecializationInfo.
std::vector<std::uint32_t> specialize(const Kernel& kernel, View<std::uint32_t> values,
                                      AccessMode mode = AccessMode::storage);

}  // namespace brontes::kernels
