// An open device and what planning knows of it: what Device, Batch and MatmulCache share.
#pragma once

#include "engine/measurements.hpp"
#include "plan/program.hpp"
#include "plan/traits.hpp"
#include "vk/context.hpp"

#include <brontes/device.hpp>
#include <brontes/error.hpp>
#include <brontes/vulkan.hpp>

#include <memory>

namespace brontes::engine {

/// Thread-safety: any thread.
class Engine {
 public:
  static Result<std::shared_ptr<Engine>> open(const DeviceOptions& options);
  static Result<std::shared_ptr<Engine>> adopt(const vulkan::ExternalDevice& external, const DeviceOptions& options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Never null. It may outlive this object, which owns nothing of Vulkan's.
  const std::shared_ptr<vk::Context>& context() const noexcept { return context_; }

  /// With the measurements that count now; they live as long as the Engine.
  plan::Traits traits() const noexcept;
  /// Whether measurements of families other than products count.
  bool calibrates() const noexcept;
  /// Whether kernels can reach memory in this way on the device as it was opened.
  bool has(kernels::AccessMode mode) const noexcept;
  plan::ProgramSet& programs() noexcept { return programs_; }
  /// Learns how fast the device is. Never null.
  const std::shared_ptr<plan::SpeedGauge>& gauge() const noexcept { return gauge_; }
  /// What BatchOptions::milliseconds_per_submit means on this device; 0 for no bound.
  double seconds_per_submit(std::uint32_t milliseconds) const noexcept;
  Measurements& measurements() noexcept { return measurements_; }
  const Measurements& measurements() const noexcept { return measurements_; }

 private:
  explicit Engine(const DeviceOptions& options) : programs_(options.max_fused_programs) {}

  /// `open` makes the Context of what was selected, with or without addresses.
  template <class Open>
  static Result<std::shared_ptr<Engine>> make(vk::Selection selection, const DeviceOptions& options, Open open);

  std::shared_ptr<vk::Context> context_;
  plan::Traits traits_;
  plan::ProgramSet programs_;
  std::shared_ptr<plan::SpeedGauge> gauge_;
  Measurements measurements_;
};

}  // namespace brontes::engine
