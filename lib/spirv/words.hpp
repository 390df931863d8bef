// The words of a kernel. Those of the library's kernels are stored compressed: they are most of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels.hpp"

namespace brontes::kernels {

// A module of the library, as tools/kernelgen.py packed it (spirv::unpack()); empty if there is none for the mode.
// Kernel::modules only has its size, and no data. Defined by the generated kernels.cpp.
View<std::uint8_t> packed(Id id, AccessMode mode) noexcept;

}  // namespace brontes::kernels

namespace brontes::spirv {

// Decodes an LZMA stream (lc 0, lp 2, pb 2: numbers of four bytes; neither header nor end are looked at) to exactly
// `size` bytes. Takes any bytes: false if they are no such stream or too few, and what `out` holds then means nothing.
// It neither reads nor writes past the two ranges.
bool unpack(kernels::View<std::uint8_t> packed, std::uint8_t* out, std::size_t size) noexcept;

// The module of a kernel for a mode that it has, of the library or not, unpacked where it must be.
std::vector<std::uint32_t> words(const kernels::Kernel& kernel,
                                 kernels::AccessMode mode = kernels::AccessMode::storage);

}  // namespace brontes::spirv
