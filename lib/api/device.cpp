#include "api/access.hpp"

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

Device::Device(std::shared_ptr<vk::Context> context) noexcept : context_(std::move(context)) {}
Device::Device(Device&&) noexcept = default;
Device& Device::operator=(Device&&) noexcept = default;
Device::~Device() = default;

Result<Device> Device::open(const DeviceOptions& options) {
  auto context = vk::Context::open(options);
  if (!context) return context.error();
  return Device(std::move(*context));
}

Result<std::vector<DeviceInfo>> Device::list() {
  auto instance = vk::Instance::create({});
  if (!instance) return instance.error();
  auto devices = vk::describe_all(**instance);
  if (!devices) return devices.error();
  std::vector<DeviceInfo> infos;
  for (const vk::PhysicalDevice& d : *devices) infos.push_back(d.info);
  return infos;
}

const DeviceInfo& Device::info() const noexcept { return context_->info(); }

DeviceStats Device::stats() const noexcept {
  DeviceStats stats;
  stats.pipelines_created = context_->pipelines().created;
  stats.pipelines_requested = context_->pipelines().requested;
  stats.submits = context_->queue().submits;
  stats.allocations = context_->memory().allocations;
  stats.live_buffers = context_->memory().live_buffers;
  stats.live_bytes = context_->memory().live_bytes;
  return stats;
}

PipelineCacheStatus Device::pipeline_cache() const { return context_->cache_status(); }

Error Device::save_pipeline_cache() const { return context_->save_cache(); }

TuningStatus Device::tuning() const { return context_->tuning_status(); }

}  // namespace brontes
