// What was measured on a device: read from its tuning file when it is opened, and added to by the tuner.
#pragma once

#include "ops/matmul_tuning.hpp"
#include "vk/physical_device.hpp"

#include <brontes/device.hpp>
#include <brontes/error.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <vector>

namespace brontes::engine {

/// Thread-safety: any thread, once load() has returned.
class Measurements {
 public:
  /// Reads the file, if there is one and the options allow it. Once, before anybody else knows of the object.
  void load(const vk::Instance& instance, const vk::PhysicalDevice& device, const DeviceOptions& options);

  /// What counts now, or null. It lives as long as this object.
  const plan::Tuning* in_use() const noexcept { return in_use_.load(std::memory_order_acquire); }
  TuningStatus status() const;
  /// Adds measurements to those in use, from the next plan on.
  void add(plan::Tuning measured);
  /// Writes those in use.
  Error save() const;
  /// Held by whoever measures.
  std::mutex& turn() noexcept { return turn_; }

  /// Whether all of these are choices that were compared with the reference on this device: by the tuner, or since they
  /// were read from the file.
  bool checked(Span<const plan::TunedMatmul* const> choices) const;
  /// What came of comparing one that is in use: from the next plan on it counts as checked, or is gone with all
  /// measurements of the same choice.
  void judge(const plan::TunedMatmul& choice, bool right);
  /// Adds to what elementwise ops have moved: true, for one caller only, when that comes to `enough` and nobody has
  /// measured how they reach memory best.
  bool calibration_due(std::uint64_t bytes, std::uint64_t enough) noexcept;
  /// It did not come to a result, and is due again when as much more has been moved. What it has built is there then.
  void put_off_calibration() noexcept { moved_.store(0, std::memory_order_relaxed); }
  /// From the next plan on, and in the file, whose other measurements stay as they are there now.
  void set_elementwise(kernels::AccessMode fastest);
  /// Held by whoever checks.
  std::mutex& checking() noexcept { return checking_; }

 private:
  /// What decides about code: kernel, variant, layout and type.
  using Choice = std::tuple<MatmulKernel, std::size_t, Layout, DType>;
  static Choice choice_of(const plan::TunedMatmul& t) { return {t.choice.kernel, t.choice.variant, t.layout, t.type}; }
  void use(plan::Tuning tuning);

  std::mutex turn_;
  std::mutex checking_;
  mutable std::mutex mutex_;  // for all that follows
  files::FileIdentity identity_;
  TuningStatus status_;
  /// All there ever were: plans under way may read an older one. The last is in use.
  std::vector<std::unique_ptr<const plan::Tuning>> all_;
  std::atomic<const plan::Tuning*> in_use_{nullptr};
  std::atomic<std::uint64_t> moved_{0};
  std::set<Choice> checked_;
};

}  // namespace brontes::engine
