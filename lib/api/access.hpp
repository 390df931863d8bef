// How the library's own code reaches the state behind public classes.
#pragma once

#include "vk/context.hpp"

#include <brontes/buffer.hpp>
#include <brontes/device.hpp>

#include <memory>
#include <utility>

namespace brontes {

struct DeviceAccess {
  /// Null for a moved-from Device.
  static const std::shared_ptr<vk::Context>& context(const Device& device) noexcept { return device.context_; }
  static Device make(std::shared_ptr<vk::Context> context) noexcept { return Device(std::move(context)); }
};

struct BufferAccess {
  /// Null for a moved-from Buffer.
  static const std::shared_ptr<vk::Allocation>& memory(const Buffer& buffer) noexcept { return buffer.memory_; }
};

}  // namespace brontes
