// SPDX-License-Identifier: MIT
#pragma once

#include <brontes/device.hpp>
#include <brontes/export.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace brontes {

/// A kernel of the library's own, in one way to access memory.
struct LibraryKernel {
  std::string name;                           ///< as dumps and profiles have it: "matmul_naive"
  AccessMode access = AccessMode::automatic;  ///< storage, texel or pointer
  std::uint64_t spirv_bytes = 0;              ///< of the module, before it is specialised
  std::uint32_t bindings = 0;                 ///< buffers it is bound to
  std::uint32_t constants = 0;                ///< specialization constants
  std::uint32_t push_bytes = 0;               ///< of push constants
  bool subgroups = false;                     ///< it uses subgroup operations
};

/// All kernels in all their ways. Empty when the host is out of memory.
BRONTES_API std::vector<LibraryKernel> library_kernels();

}  // namespace brontes
