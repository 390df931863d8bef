#include "api/access.hpp"
#include "submit/ticks_of.hpp"

#include <cstddef>
#include <new>
#include <optional>

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

Error Device::start_trace(const TraceOptions& options) const {
  return guarded("start_trace", [&]() -> Error {
    if (!engine_) return Error(Errc::invalid_argument, "start_trace: the Device has been moved from");
    const vk::Context& context = *engine_->context();
    if (Error e = context.usable()) return e;
    if (context.trace().start(options.max_spans)) return {};
    return Error(Errc::invalid_argument, "start_trace: the Device is being traced already");
  });
}

Result<std::string> Device::stop_trace() const {
  return guarded("stop_trace", [&]() -> Result<std::string> {
    if (!engine_) return Error(Errc::invalid_argument, "stop_trace: the Device has been moved from");
    vk::Context& context = *engine_->context();
    if (context.abandoned()) return context.usable();
    if (!context.trace().on()) return Error(Errc::invalid_argument, "stop_trace: there was no start_trace()");
    // What is still under way belongs to the trace. On a device that was lost, its times are not known.
    if (!context.lost()) {
      if (Error e = context.queue().wait_all()) return e;
    }
    context.trace().collect_all();
    std::optional<double> offset;
    const char* clock = context.timestamp_bits() == 0 ? "host only: the queue has no timestamps"
                                                      : "estimated: every run lies between its submit and its wait";
    if (const auto moment = context.moment(); moment && context.timestamp_bits() != 0) {
      const std::uint64_t first = context.trace().known_first_tick().value_or(moment->ticks);
      offset = moment->host - submit::ticks_of(context).apart(first, moment->ticks);
      clock = "calibrated timestamps";
    }
    return context.trace().stop(context.info().name, clock, offset);
  });
}

}  // namespace brontes
