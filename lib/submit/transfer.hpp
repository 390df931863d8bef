// Moving bytes between the host and one allocation, outside of batches.
#pragma once

#include "vk/memory.hpp"

#include <brontes/error.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace brontes::submit {

/// Each waits for work in flight that uses `memory`, and returns when the bytes are where they should
/// be: through the mapping where there is one (for reading, one that is cached), else through two staging buffers in
/// turn.
Error write(vk::Allocation& memory, std::uint64_t offset, const void* data, std::uint64_t bytes);
Error read(vk::Allocation& memory, std::uint64_t offset, void* data, std::uint64_t bytes);
/// Zeros all of memory that nothing has used yet.
Error clear(vk::Allocation& memory);

}  // namespace brontes::submit
