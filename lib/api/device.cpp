#include "api/access.hpp"

#include <cstddef>
#include <new>

namespace brontes {

const char* to_string(DeviceType type) noexcept {
  switch (type) {
    case DeviceType::integrated_gpu: return "integrated GPU";
    case DeviceType::discrete_gpu: return "discrete GPU";
    case DeviceType::virtual_gpu: return "virtual GPU";
    case DeviceType::cpu: return "CPU driver";
    case DeviceType::other: break;
  }
  return "other device";
}

const char* to_string(AccessMode mode) noexcept {
  switch (mode) {
    case AccessMode::automatic: return "automatic";
    case AccessMode::storage: return "storage";
    case AccessMode::texel: return "texel";
    case AccessMode::pointer: return "pointer";
  }
  return "unknown";
}

Device::Device(std::shared_ptr<engine::Engine> engine) noexcept : engine_(std::move(engine)) {}
Device::Device(Device&&) noexcept = default;
Device& Device::operator=(Device&&) noexcept = default;
Device::~Device() = default;

Result<Device> Device::open(const DeviceOptions& options) {
  return guarded("Device::open", [&]() -> Result<Device> {
    auto engine = engine::Engine::open(options);
    if (!engine) return engine.error();
    return Device(std::move(*engine));
  });
}

Result<std::vector<DeviceInfo>> Device::list() {
  return guarded("Device::list", [&]() -> Result<std::vector<DeviceInfo>> {
    auto instance = vk::Instance::create({});
    if (!instance) return instance.error();
    auto devices = vk::describe_all(**instance);
    if (!devices) return devices.error();
    std::vector<DeviceInfo> infos;
    for (const vk::PhysicalDevice& d : *devices) infos.push_back(d.info);
    return infos;
  });
}

const DeviceInfo& Device::info() const noexcept {
  if (engine_) return engine_->context()->info();
  // Never destroyed: nothing runs at the end of the process.
  alignas(DeviceInfo) static std::byte memory[sizeof(DeviceInfo)];
  static const DeviceInfo* none = new (memory) DeviceInfo;
  return *none;
}

DeviceStats Device::stats() const noexcept {
  DeviceStats stats;
  if (!engine_) return stats;
  vk::Context& context = *engine_->context();
  stats.pipelines_created = context.pipelines().created;
  stats.pipelines_requested = context.pipelines().requested;
  stats.submits = context.queue().submits;
  stats.allocations = context.memory().allocations;
  stats.live_buffers = context.memory().live_buffers;
  stats.live_bytes = context.memory().live_bytes;
  stats.runs = context.run_totals().get();
  return stats;
}

DeviceMemory Device::memory() const noexcept {
  // A thread of the parent may have held a lock when the process forked.
  if (!engine_ || engine_->context()->abandoned()) return {};
  vk::Context& context = *engine_->context();
  return context.memory().describe(context);
}

PipelineCacheStatus Device::pipeline_cache() const {
  if (!engine_) return {};
  return value_or_empty([&] { return engine_->context()->cache_status(); });
}

Error Device::save_pipeline_cache() const {
  return guarded("save_pipeline_cache", [&]() -> Error {
    if (!engine_) return Error(Errc::invalid_argument, "save_pipeline_cache: the Device has been moved from");
    return engine_->context()->save_cache();
  });
}

TuningStatus Device::tuning() const {
  // A thread of the parent may have held the lock when the process forked.
  if (!engine_ || engine_->context()->abandoned()) return {};
  return value_or_empty([&] { return engine_->measurements().status(); });
}

}  // namespace brontes
