// The CPU below, for what was measured on a driver that runs on it.
#pragma once

#include <cstdint>

namespace brontes::util {

/// Of its model, its vector extensions and the number of cores that the process may use. The same on machines where the
/// same code takes the same time, as far as the CPU tells.
std::uint64_t cpu_fingerprint() noexcept;

}  // namespace brontes::util
