// Specialization without the driver.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels.hpp"

namespace brontes::spirv {

// What the specialization constant with this id is to be: the bits of a type of up to 64, or 0 or 1.
struct ConstantValue {
  std::uint32_t id = 0;
  std::uint64_t bits = 0;
};

// A copy of a SPIR-V module in which every specialization constant is an ordinary constant, and so is what
// follows for scalars that are computed from them. Those that `values` does not name keep their default;
// ids that the module does not have are passed over. Whatever else the module holds is copied.
//
// Takes any words. Those that are no SPIR-V of this machine's byte order, or end in the middle of an
// instruction, come back unchanged.
std::vector<std::uint32_t> freeze(kernels::View<std::uint32_t> module, kernels::View<ConstantValue> values);

// freeze(), and what the constants rule out is gone (prune.hpp).
//
// Takes any words. A valid module becomes a valid module that computes the same. One that is not valid
// comes back unchanged if that shows while it is read, and otherwise as another that is not valid.
//
// For drivers that give specialization constants their values late, or never look at what they rule out:
// SwiftShader keeps, compiles and executes every branch that hangs on one, and RADV takes seconds to
// remove them from the tiled matmul. The pipeline then takes no VkSpecializationInfo.
std::vector<std::uint32_t> specialize(kernels::View<std::uint32_t> module, kernels::View<ConstantValue> values);

// The same for a kernel of the library that has `mode`. values[i] belongs to kernel.constants[i].
std::vector<std::uint32_t> specialize(const kernels::Kernel& kernel, kernels::View<std::uint32_t> values,
                                      kernels::AccessMode mode = kernels::AccessMode::storage);

}  // namespace brontes::spirv
