// Workloads that live on a device of their own, and the kinds of devices they are tried on.
#pragma once

#include "injector.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace brontes::test {

inline std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  return values;
}

/// The device of a world, opened before anything fails.
class OnDevice : public Workload {
 public:
  explicit OnDevice(const DeviceOptions& options) : device_(Device::open(options).value()) {}
  const Device* device() const override { return &device_; }

 protected:
  Device device_;
};

struct Variant {
  const char* name;
  DeviceOptions options;
};

/// Leaves out what is on this driver the same as one before: one of the access modes is the driver's own.
inline std::vector<Variant> without_repetitions(const std::vector<Variant>& all) {
  std::vector<Variant> different;
  std::set<std::pair<AccessMode, bool>> seen;
  for (const Variant& variant : all) {
    const Result<Device> device = Device::open(variant.options);
    const bool fresh = device && seen.emplace(device->info().access, variant.options.simulate.staged_memory).second;
    if (fresh) different.push_back(variant);
  }
  return different;
}

inline std::vector<Variant> variants() {
  DeviceOptions staged = world_options();
  staged.simulate.staged_memory = true;
  std::vector<Variant> all{{"mapped", world_options()}, {"staged", staged}};
  for (AccessMode mode : {AccessMode::storage, AccessMode::texel, AccessMode::pointer}) {
    DeviceOptions options = world_options();
    options.access = mode;
    options.simulate.staged_memory = mode == AccessMode::pointer;
    all.push_back({to_string(mode), options});
  }
  return without_repetitions(all);
}

/// Where a device can be had at all.
inline void need_device() {
  const Result<Device> device = Device::open(world_options());
  const Errc code = device.error().code;
  if (code == Errc::no_device || code == Errc::no_driver || code == Errc::no_loader) SKIP(device.error().message);
}

template <class W>
void inject_variants(const std::string& name, Injections how = {}) {
  need_device();
  for (const Variant& variant : variants()) {
    how.make = [&] { return std::make_unique<W>(variant.options); };
    inject(name + ", " + variant.name, how);
  }
}

template <class W>
void inject_one(const std::string& name, Injections how = {}, DeviceOptions options = world_options()) {
  need_device();
  how.make = [&] { return std::make_unique<W>(options); };
  inject(name, how);
}

}  // namespace brontes::test
