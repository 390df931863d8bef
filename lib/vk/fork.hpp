// Whether this process is the one that opened a device.
#pragma once

#include <cstdint>

namespace brontes::vk {

/// How often the process has been forked since its oldest ancestor that used the library: a child sees another
/// number than its parent. Costs one load. A driver's threads and its connection to the device do not survive in a
/// child, so calls there must not reach the driver.
///
/// Thread-safety: any thread.
std::uint32_t fork_generation() noexcept;

}  // namespace brontes::vk
