#include "engine/engine.hpp"

#include "engine/traits.hpp"

#include <brontes/batch.hpp>

#include <utility>

namespace brontes::engine {
namespace {

bool needs_addresses(const plan::Access& access) {
  using kernels::AccessMode;
  return access.general == AccessMode::pointer || access.panels == AccessMode::pointer ||
         access.elementwise == AccessMode::pointer || access.reductions == AccessMode::pointer;
}

// What was measured to be fastest, unless something else is asked for.
Result<plan::Access> tuned_access(const vk::PhysicalDevice& device, const plan::Tuning* tuning, AccessMode wish) {
  auto access = choose_access(device, wish);
  if (!access || wish != AccessMode::automatic || tuning == nullptr || !tuning->access_compared) return access;
  plan::Access tuned = *access;
  tuned.general = tuning->access.general;
  tuned.panels = tuning->access.panels;
  return device.pointers || !needs_addresses(tuned) ? tuned : access;
}

// What the user is told of the device is what planning may use.
void describe(const plan::Traits& traits, DeviceInfo& info) {
  info.access =
      static_cast<AccessMode>(static_cast<int>(AccessMode::storage) + static_cast<int>(traits.access.general));
  info.max_group_count = traits.max_group_count;
  info.max_group_invocations = traits.max_group_invocations;
  info.max_shared_bytes = traits.max_shared_bytes;
  info.max_storage_range = traits.max_storage_range;
}

}  // namespace

template <class Open>
Result<std::shared_ptr<Engine>> Engine::make(vk::Selection selection, const DeviceOptions& options, Open open) {
  std::shared_ptr<Engine> self(new Engine(options));
  self->measurements_.load(*selection.instance, selection.physical, options);
  auto access = tuned_access(selection.physical, self->measurements_.in_use(), options.access);
  if (!access) return access.error();
  self->traits_ = traits_of(selection.physical, options.simulate);
  self->traits_.access = *access;
  self->gauge_ = std::make_shared<plan::SpeedGauge>(self->traits_.speed);
  describe(self->traits_, selection.physical.info);
  auto context = open(std::move(selection), needs_addresses(*access));
  if (!context) return context.error();
  self->context_ = std::move(*context);
  return self;
}

Result<std::shared_ptr<Engine>> Engine::open(const DeviceOptions& options) {
  auto selection = vk::select(options);
  if (!selection) return selection.error();
  return make(std::move(*selection), options, [&](vk::Selection selected, bool addresses) {
    return vk::Context::open(std::move(selected), options, addresses);
  });
}

Result<std::shared_ptr<Engine>> Engine::adopt(const vulkan::ExternalDevice& external, const DeviceOptions& options) {
  auto selection = vk::select(external, options);
  if (!selection) return selection.error();
  return make(std::move(*selection), options, [&](vk::Selection selected, bool addresses) {
    return vk::Context::adopt(std::move(selected), external, options, addresses);
  });
}

plan::Traits Engine::traits() const noexcept {
  plan::Traits traits = traits_;
  traits.tuning = measurements_.in_use();
  if (traits.tuning != nullptr && calibrates()) {
    for (plan::Family family : {plan::Family::elementwise, plan::Family::reductions}) {
      const auto mode = traits.tuning->calibrated(family);
      if (mode && has(*mode)) traits.access.set(family, *mode);
    }
  }
  traits.speed = gauge_->speed();
  return traits;
}

bool Engine::calibrates() const noexcept {
  const DeviceOptions& options = context_->options();
  return options.access == AccessMode::automatic && options.tuning.enabled;
}

bool Engine::has(kernels::AccessMode mode) const noexcept {
  return mode != kernels::AccessMode::pointer || context_->memory().addresses();
}

double Engine::seconds_per_submit(std::uint32_t milliseconds) const noexcept {
  // Watchdogs of GPU drivers act after a second or more; nobody watches a CPU driver.
  constexpr double usual = 0.25;
  if (milliseconds == 0) return traits_.cpu ? 0 : usual;
  return milliseconds == BatchOptions::unlimited ? 0 : milliseconds / 1000.0;
}

}  // namespace brontes::engine
