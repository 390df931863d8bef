// What is behind a Kernel.
#pragma once

#include "ops/call.hpp"
#include "vk/context.hpp"

#include <brontes/kernel.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace brontes {

struct Kernel::State {
  std::shared_ptr<vk::Context> context;
  std::shared_ptr<const ops::UserKernel> kernel;
  std::vector<KernelBinding> bindings;
  std::vector<KernelConstantInfo> constants;
};

struct KernelAccessor {
  static Kernel make(std::shared_ptr<const Kernel::State> state) noexcept { return Kernel(std::move(state)); }
  /// Both null for a Kernel that was moved from.
  static const vk::Context* context(const Kernel& kernel) noexcept {
    return kernel.state_ ? kernel.state_->context.get() : nullptr;
  }
  static std::shared_ptr<const ops::UserKernel> kernel(const Kernel& kernel) noexcept {
    return kernel.state_ ? kernel.state_->kernel : nullptr;
  }
};

}  // namespace brontes
