#include "vk/context.hpp"

#include "vk/result.hpp"

#include <cstdlib>

namespace brontes::vk {

Context::Context(const DeviceOptions& options)
    : options_(options), pipelines_(*this), queue_(*this), recycler_(*this), programs_(options.max_fused_programs) {}

Result<std::shared_ptr<Context>> Context::open(const DeviceOptions& options) {
  auto instance = Instance::create(options);
  if (!instance) return instance.error();
  auto devices = describe_all(**instance);
  if (!devices) return devices.error();

  std::string wish = options.select;
  if (wish.empty()) {
    if (const char* value = std::getenv("BRONTES_DEVICE"); value != nullptr) wish = value;
  }
  std::vector<DeviceInfo> infos;
  for (const PhysicalDevice& d : *devices) infos.push_back(d.info);
  auto chosen = choose_device(infos, wish, options.allow_cpu);
  if (!chosen) return chosen.error();

  std::shared_ptr<Context> self(new Context(options));
  self->instance_ = *instance;
  self->physical_ = (*devices)[*chosen];
  self->load_tuning();
  auto access = self->choose_access();
  if (!access) return access.error();
  if (Error e = self->create_device(*access)) return e;
  VkQueue queue = VK_NULL_HANDLE;
  self->device_.table.vkGetDeviceQueue(self->device_.handle, self->physical_.queue_family, 0, &queue);
  if (Error e = self->start(*access, queue)) return e;
  return self;
}

Result<std::shared_ptr<Context>> Context::adopt(const vulkan::ExternalDevice& adopted, const DeviceOptions& options) {
  auto instance = Instance::adopt(adopted.get_instance_proc_addr, adopted.instance, options);
  if (!instance) return instance.error();
  std::shared_ptr<Context> self(new Context(options));
  self->instance_ = *instance;
  self->physical_ = describe(**instance, adopted.physical_device, 0);
  if (!self->physical_.info.suitable) {
    return Error(Errc::unsupported,
                 "adopt: " + self->physical_.info.name + " cannot be used: " + self->physical_.info.unsuitable_because);
  }
  const auto families = queue_families(**instance, adopted.physical_device);
  if (adopted.queue_family >= families.size() ||
      (families[adopted.queue_family].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) {
    return Error(Errc::invalid_argument, "adopt: queue family " + std::to_string(adopted.queue_family) + " of " +
                                             self->physical_.info.name + " does not exist or has no compute support");
  }
  self->physical_.queue_family = adopted.queue_family;
  self->physical_.pointers &= adopted.pointers;
  self->load_tuning();
  auto access = self->choose_access();
  if (!access) return access.error();
  self->device_.handle = adopted.device;
  if (Error e = self->load_table()) return e;
  if (Error e = self->start(*access, adopted.queue)) return e;
  return self;
}

namespace {

bool needs_addresses(const plan::Access& access) {
  return access.general == kernels::AccessMode::pointer || access.panels == kernels::AccessMode::pointer;
}

}  // namespace

Error Context::create_device(const plan::Access& access) {
  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = physical_.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES};
  timeline.timelineSemaphore = VK_TRUE;
  VkPhysicalDeviceBufferDeviceAddressFeatures addresses{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES};
  addresses.bufferDeviceAddress = VK_TRUE;
  VkPhysicalDeviceFeatures features{};
  if (needs_addresses(access)) {
    timeline.pNext = &addresses;
    features.shaderInt64 = VK_TRUE;
  }
  VkDeviceCreateInfo create{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &timeline};
  create.queueCreateInfoCount = 1;
  create.pQueueCreateInfos = &queue;
  create.pEnabledFeatures = &features;
  const VkResult result = instance_->table.vkCreateDevice(physical_.handle, &create, nullptr, &device_.handle);
  if (Error e = check(result, "vkCreateDevice")) {
    e.message = physical_.info.name + ": " + e.message;
    return e;
  }
  device_.owned = true;
  return load_table();
}

Error Context::load_table() {
#define BRONTES_LOAD(function)                                                                           \
  device_.table.function =                                                                               \
      reinterpret_cast<PFN_##function>(instance_->table.vkGetDeviceProcAddr(device_.handle, #function)); \
  if (device_.table.function == nullptr) return Error(Errc::unsupported, "the driver has no " #function);
  BRONTES_DEVICE_FUNCTIONS(BRONTES_LOAD)
#undef BRONTES_LOAD
  return {};
}

Error Context::start(const plan::Access& access, VkQueue queue) {
  traits_ = traits_of(physical_, options_.simulate);
  traits_.access = access;
  physical_.info.access =
      static_cast<AccessMode>(static_cast<int>(AccessMode::storage) + static_cast<int>(access.general));
  physical_.info.max_group_count = traits_.max_group_count;
  physical_.info.max_group_invocations = traits_.max_group_invocations;
  physical_.info.max_shared_bytes = traits_.max_shared_bytes;
  physical_.info.max_storage_range = traits_.max_storage_range;
  if (Error e = memory_.open(*instance_, physical_.handle, device_.handle, instance_->table.vkGetDeviceProcAddr,
                             options_.simulate.staged_memory, needs_addresses(access))) {
    return e;
  }
  physical_.info.mapped_memory = memory_.mapped();
  if (Error e = queue_.open(queue)) return e;
  return open_cache(options_.pipeline_cache);
}

namespace {

FileIdentity identity_of(const PhysicalDevice& device) {
  FileIdentity identity;
  identity.vendor_id = device.info.vendor_id;
  identity.device_id = device.info.device_id;
  identity.driver_id = static_cast<std::uint32_t>(device.driver_id);
  identity.driver_version = device.info.driver_version;
  identity.pipeline_cache_uuid = device.pipeline_cache_uuid;
  identity.device_uuid = device.info.uuid;
  identity.driver_uuid = device.driver_uuid;
  return identity;
}

PipelineCacheState state_of(FileState file) {
  switch (file) {
    case FileState::missing: return PipelineCacheState::cold;
    case FileState::loaded: return PipelineCacheState::warm;
    case FileState::rejected: break;
  }
  return PipelineCacheState::rejected;
}

}  // namespace

Error Context::open_cache(const PipelineCacheOptions& options) {
  FileLoad loaded;
  if (!options.enabled) {
    cache_status_.note = "disabled by DeviceOptions";
  } else {
    const FileIdentity identity = identity_of(physical_);
    cache_status_.path =
        options.path.empty() ? default_path(pipeline_cache_file, identity, cache_status_.note) : options.path;
    if (!cache_status_.path.empty()) {
      loaded = load_file(pipeline_cache_file, cache_status_.path, identity);
      cache_status_.state = state_of(loaded.state);
      cache_status_.note = loaded.note;
      cache_status_.bytes_loaded = loaded.payload.size();
      save_on_close_ = options.save_on_close;
    }
    if (!cache_status_.note.empty()) instance_->report(Severity::info, cache_status_.note);
  }
  return pipelines_.open(loaded.payload);
}

Error Context::save_cache() {
  if (cache_status_.path.empty()) {
    return Error(Errc::invalid_argument, "save_pipeline_cache: the cache is off: " + cache_status_.note);
  }
  const std::uint64_t created = pipelines_.created;
  auto data = pipelines_.cache_data();
  if (!data) return data.error();
  if (Error e = save_file(pipeline_cache_file, cache_status_.path, identity_of(physical_), *data)) return e;
  pipelines_saved_ = created;
  return {};
}

namespace {

bool any(const SimulatedLimits& limits) {
  return limits.max_group_count != 0 || limits.max_group_invocations != 0 || limits.max_shared_bytes != 0 ||
         limits.max_storage_range != 0 || limits.max_loop_iterations != 0 || limits.subgroup_size != 0 ||
         limits.no_subgroup_operations || limits.staged_memory;
}

void count(const plan::Tuning& tuning, TuningStatus& status) {
  status.shapes = tuning.matmuls.size();
  status.changed = 0;
  for (const plan::TunedMatmul& t : tuning.matmuls) {
    if (t.choice.kernel != MatmulKernel::automatic) ++status.changed;
  }
}

}  // namespace

// Before anybody else knows of the Context, hence no lock.
void Context::load_tuning() {
  TuningStatus& status = tuning_status_;
  if (!options_.tuning.enabled) {
    status.note = "disabled by DeviceOptions";
    return;
  }
  status.state = TuningState::none;
  const FileIdentity identity = identity_of(physical_);
  if (any(options_.simulate)) {
    status.note = "tuning file off: limits are simulated";
  } else if (!options_.tuning.path.empty()) {
    status.path = options_.tuning.path;
  } else if (!options_.pipeline_cache.path.empty()) {
    status.path = options_.pipeline_cache.path + tuning_file.extension;
  } else {
    status.path = default_path(tuning_file, identity, status.note);
  }
  if (!status.path.empty()) {
    const FileLoad file = load_file(tuning_file, status.path, identity);
    status.note = file.note;
    if (file.state == FileState::rejected) status.state = TuningState::rejected;
    if (file.state == FileState::loaded) {
      auto parsed = plan::parse_tuning(file.payload);
      if (parsed) {
        status.state = TuningState::loaded;
        count(*parsed, status);
        tunings_.push_back(std::make_unique<const plan::Tuning>(std::move(*parsed)));
        tuning_ = tunings_.back().get();
      } else {
        status.state = TuningState::rejected;
        status.note = ignored_note(tuning_file, status.path, parsed.error().message);
      }
    }
  }
  if (!status.note.empty()) instance_->report(Severity::info, status.note);
}

Result<plan::Access> Context::choose_access() const {
  const plan::Tuning* tuning = tuning_;
  if (options_.access == AccessMode::automatic && tuning != nullptr && tuning->access_compared &&
      (physical_.pointers || !needs_addresses(tuning->access))) {
    return tuning->access;
  }
  return vk::choose_access(physical_, options_.access);
}

plan::Traits Context::traits() const noexcept {
  plan::Traits traits = traits_;
  traits.tuning = tuning_.load(std::memory_order_acquire);
  return traits;
}

TuningStatus Context::tuning_status() const {
  const std::lock_guard lock(tuning_mutex_);
  return tuning_status_;
}

void Context::use_tuning(plan::Tuning measured) {
  const std::lock_guard lock(tuning_mutex_);
  plan::Tuning all = tunings_.empty() ? plan::Tuning() : *tunings_.back();
  plan::merge(all, std::move(measured));
  count(all, tuning_status_);
  tuning_status_.state = TuningState::measured;
  if (!tuning_status_.path.empty()) tuning_status_.note.clear();
  tunings_.push_back(std::make_unique<const plan::Tuning>(std::move(all)));
  tuning_.store(tunings_.back().get(), std::memory_order_release);
}

Error Context::save_tuning() const {
  const std::lock_guard lock(tuning_mutex_);
  if (tuning_status_.path.empty()) return Error(Errc::io, tuning_status_.note);
  if (tunings_.empty()) return {};
  return save_file(tuning_file, tuning_status_.path, identity_of(physical_), plan::serialize(*tunings_.back()));
}

Context::~Context() {
  if (queue_.handle() != VK_NULL_HANDLE) queue_.drain();
  memory_.clear();
  if (save_on_close_ && pipelines_.created != pipelines_saved_) {
    if (Error e = save_cache()) instance_->report(Severity::info, "pipeline cache: " + e.message);
  }
}

void Context::set_name(VkObjectType type, std::uint64_t object, const char* name) const {
  if (instance_->table.vkSetDebugUtilsObjectNameEXT == nullptr) return;
  VkDebugUtilsObjectNameInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT};
  info.objectType = type;
  info.objectHandle = object;
  info.pObjectName = name;
  static_cast<void>(instance_->table.vkSetDebugUtilsObjectNameEXT(device_.handle, &info));
}

}  // namespace brontes::vk
