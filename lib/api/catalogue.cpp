#include <brontes/catalogue.hpp>

#include "api/guard.hpp"
#include "kernels.hpp"

namespace brontes {

std::vector<LibraryKernel> library_kernels() {
  return value_or_empty([] {
    std::vector<LibraryKernel> all;
    for (std::size_t i = 0; i < kernels::count; ++i) {
      const kernels::Kernel& kernel = kernels::get(static_cast<kernels::Id>(i));
      for (std::size_t mode = 0; mode < kernels::access_modes; ++mode) {
        if (!kernel.has(static_cast<kernels::AccessMode>(mode))) continue;
        LibraryKernel one;
        one.name = kernel.name;
        one.access = static_cast<AccessMode>(static_cast<std::size_t>(AccessMode::storage) + mode);
        one.spirv_bytes = kernel.modules[mode].size * sizeof(std::uint32_t);
        one.bindings = static_cast<std::uint32_t>(kernel.bindings.size);
        one.constants = static_cast<std::uint32_t>(kernel.constants.size);
        one.push_bytes = kernel.push_bytes;
        one.subgroups = kernel.subgroups;
        all.push_back(std::move(one));
      }
    }
    return all;
  });
}

}  // namespace brontes
