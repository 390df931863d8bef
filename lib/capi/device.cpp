#include "capi/device.hpp"

#include "capi/enums.hpp"
#include "capi/handles.hpp"
#include "capi/structs.hpp"

using namespace brontes;
using namespace brontes::capi;

namespace brontes::capi {
namespace {

Error simulated(const char* call, const brontes_simulated_limits* given, SimulatedLimits& to) {
  brontes_simulated_limits limits;
  if (Error e = BRONTES_STRUCT(call, brontes_simulated_limits, given, limits)) return e;
  to.max_group_count = limits.max_group_count;
  to.max_group_invocations = limits.max_group_invocations;
  to.max_shared_bytes = limits.max_shared_bytes;
  to.max_storage_range = limits.max_storage_range;
  to.max_loop_iterations = limits.max_loop_iterations;
  to.subgroup_size = limits.subgroup_size;
  to.no_subgroup_operations = limits.no_subgroup_operations != 0;
  to.no_float_controls = limits.no_float_controls != 0;
  to.staged_memory = limits.staged_memory != 0;
  to.no_timestamps = limits.no_timestamps != 0;
  to.no_subgroup_size_control = limits.no_subgroup_size_control != 0;
  to.vendor_id = limits.vendor_id;
  to.uncached_memory = limits.uncached_memory != 0;
  return {};
}

brontes_device_info describe(const DeviceInfo& info) noexcept {
  brontes_device_info to{};
  to.name = info.name.c_str();
  to.driver = info.driver.c_str();
  to.unsuitable_because = info.unsuitable_because.c_str();
  to.index = info.index;
  to.type = to_c(info.type);
  to.vendor_id = info.vendor_id;
  to.device_id = info.device_id;
  to.driver_version = info.driver_version;
  to.api_version = info.api_version;
  std::copy(info.uuid.begin(), info.uuid.end(), to.uuid);
  to.suitable = info.suitable ? 1 : 0;
  to.subgroup_size = info.subgroup_size;
  to.max_group_invocations = info.max_group_invocations;
  to.max_shared_bytes = info.max_shared_bytes;
  std::copy(info.max_group_count.begin(), info.max_group_count.end(), to.max_group_count);
  to.mapped_memory = info.mapped_memory ? 1 : 0;
  to.max_storage_range = info.max_storage_range;
  to.access = to_c(info.access);
  return to;
}

}  // namespace

Error device_options(const char* call, const brontes_device_options* given, DeviceOptions& to) {
  brontes_device_options options;
  if (Error e = BRONTES_STRUCT(call, brontes_device_options, given, options)) return e;
  to.select = text_of(options.select);
  to.allow_cpu = options.no_cpu == 0;
  if (Error e = set(to.validation, options.validation, call, "brontes_toggle")) return e;
  if (options.on_message != nullptr) {
    to.on_message = [callback = options.on_message, user_data = options.user_data](Severity severity,
                                                                                   const std::string& text) {
      callback(user_data, to_c(severity), text.c_str());
    };
  }
  if (options.max_fused_programs != 0) to.max_fused_programs = static_cast<std::size_t>(options.max_fused_programs);
  if (Error e = set(to.access, options.access, call, "brontes_access_mode")) return e;
  to.pipeline_cache.enabled = options.no_pipeline_cache == 0;
  to.pipeline_cache.path = text_of(options.pipeline_cache_path);
  to.pipeline_cache.save_on_close = options.no_pipeline_cache_save == 0;
  if (options.load_pipeline_cache != nullptr) {
    to.pipeline_cache.load = [load = options.load_pipeline_cache, data = options.pipeline_cache_data] {
      std::vector<std::uint8_t> bytes(load(data, nullptr, 0));
      if (!bytes.empty() && load(data, bytes.data(), bytes.size()) != bytes.size()) bytes.clear();
      return bytes;
    };
  }
  if (options.store_pipeline_cache != nullptr) {
    to.pipeline_cache.store = [store = options.store_pipeline_cache,
                               data = options.pipeline_cache_data](const std::vector<std::uint8_t>& bytes) {
      return store(data, bytes.data(), bytes.size()) != 0;
    };
  }
  to.tuning.enabled = options.no_tuning == 0;
  to.tuning.path = text_of(options.tuning_path);
  to.tuning.calibrate = options.no_calibration == 0;
  to.memory_cap = options.memory_cap;
  return simulated(call, options.simulate, to.simulate);
}

}  // namespace brontes::capi

brontes_status brontes_device_open(const brontes_device_options* options, brontes_device** device,
                                   brontes_error* error) {
  const char* const call = __func__;
  return make(call, device, error, [&](brontes_device*& out) -> Error {
    DeviceOptions opening;
    if (Error e = device_options(call, options, opening)) return e;
    return wrap(Device::open(opening), out);
  });
}

void brontes_device_destroy(brontes_device* device) { destroy(device); }

brontes_status brontes_device_get_info(const brontes_device* device, brontes_device_info* info, brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, device, "device")) return e;
    return BRONTES_RESULT(call, brontes_device_info, describe(device->device.info()), info);
  });
}

brontes_status brontes_device_get_stats(const brontes_device* device, brontes_device_stats* stats,
                                        brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, device, "device")) return e;
    const DeviceStats now = device->device.stats();
    brontes_device_stats counts{};
    counts.pipelines_created = now.pipelines_created;
    counts.pipelines_requested = now.pipelines_requested;
    counts.submits = now.submits;
    counts.allocations = now.allocations;
    counts.live_buffers = now.live_buffers;
    counts.live_bytes = now.live_bytes;
    return BRONTES_RESULT(call, brontes_device_stats, counts, stats);
  });
}

brontes_status brontes_device_get_memory(const brontes_device* device, brontes_device_memory* memory,
                                         brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, device, "device")) return e;
    const DeviceMemory now = device->device.memory();
    brontes_device_memory to{};
    to.buffers = now.buffers;
    to.used_bytes = now.used_bytes;
    to.cap_bytes = now.cap_bytes;
    to.blocks = now.blocks;
    to.block_bytes = now.block_bytes;
    to.heap_bytes = now.heap_bytes;
    to.heap_usage = now.heap_usage;
    to.heap_budget = now.heap_budget;
    to.budget_reported = now.budget_reported ? 1 : 0;
    return BRONTES_RESULT(call, brontes_device_memory, to, memory);
  });
}

brontes_status brontes_device_list_create(brontes_device_list** list, brontes_error* error) {
  return make(__func__, list, error, [](brontes_device_list*& out) { return wrap(Device::list(), out); });
}

void brontes_device_list_destroy(brontes_device_list* list) { destroy(list); }

size_t brontes_device_list_count(const brontes_device_list* list) { return is(list) ? list->devices.size() : 0; }

brontes_status brontes_device_list_get_info(const brontes_device_list* list, size_t index, brontes_device_info* info,
                                            brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, list, "device list")) return e;
    if (index >= list->devices.size()) {
      return Error(Errc::invalid_argument, std::string(call) + ": device " + std::to_string(index) + " of " +
                                               std::to_string(list->devices.size()));
    }
    return BRONTES_RESULT(call, brontes_device_info, describe(list->devices[index]), info);
  });
}

brontes_status brontes_device_get_pipeline_cache(const brontes_device* device, brontes_pipeline_cache_state* state,
                                                 uint64_t* bytes_loaded, char** path, char** note,
                                                 brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, device, "device")) return e;
    const PipelineCacheStatus status = device->device.pipeline_cache();
    copy_texts(status.path, path, status.note, note);
    if (state != nullptr) *state = to_c(status.state);
    if (bytes_loaded != nullptr) *bytes_loaded = status.bytes_loaded;
    return {};
  });
}

brontes_status brontes_device_save_pipeline_cache(const brontes_device* device, brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, device, "device")) return e;
    return device->device.save_pipeline_cache();
  });
}

brontes_status brontes_device_start_trace(const brontes_device* device, size_t max_spans, brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, device, "device")) return e;
    TraceOptions options;
    if (max_spans != 0) options.max_spans = max_spans;
    return device->device.start_trace(options);
  });
}

brontes_status brontes_device_stop_trace(const brontes_device* device, char** trace, brontes_error* error) {
  const char* const call = __func__;
  return make(call, trace, error, [&](char*& out) -> Error {
    if (Error e = check(call, device, "device")) return e;
    const auto text = device->device.stop_trace();
    if (!text) return text.error();
    out = copy_text(*text);
    return {};
  });
}

brontes_status brontes_device_get_tuning(const brontes_device* device, brontes_tuning_state* state, uint64_t* shapes,
                                         uint64_t* changed, char** path, char** note, brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, device, "device")) return e;
    const TuningStatus status = device->device.tuning();
    copy_texts(status.path, path, status.note, note);
    if (state != nullptr) *state = to_c(status.state);
    if (shapes != nullptr) *shapes = status.shapes;
    if (changed != nullptr) *changed = status.changed;
    return {};
  });
}
