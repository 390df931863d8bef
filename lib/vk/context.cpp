#include "vk/context.hpp"
#include "vk/cooperative_matrix.hpp"

#include "files/keyed_file.hpp"
#include "util/environment.hpp"
#include "vk/features.hpp"
#include "vk/loader_lock.hpp"
#include "vk/result.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace brontes::vk {
namespace {

template <class T>
void VKAPI_PTR leave_alone(VkDevice, T, const VkAllocationCallbacks*) {}

}  // namespace

OwnedDevice::~OwnedDevice() {
  if (!owned || table.vkDestroyDevice == nullptr) return;
  const LoaderChange lock(loader_mutex());
  table.vkDestroyDevice(handle, nullptr);
}

void OwnedDevice::abandon() noexcept {
  owned = false;
  table.vkDestroyBufferView = leave_alone<VkBufferView>;
  table.vkDestroyCommandPool = leave_alone<VkCommandPool>;
  table.vkDestroyDescriptorPool = leave_alone<VkDescriptorPool>;
  table.vkDestroyDescriptorSetLayout = leave_alone<VkDescriptorSetLayout>;
  table.vkDestroyPipeline = leave_alone<VkPipeline>;
  table.vkDestroyPipelineCache = leave_alone<VkPipelineCache>;
  table.vkDestroyPipelineLayout = leave_alone<VkPipelineLayout>;
  table.vkDestroyQueryPool = leave_alone<VkQueryPool>;
  table.vkDestroySemaphore = leave_alone<VkSemaphore>;
  table.vkDestroyShaderModule = leave_alone<VkShaderModule>;
}

Result<Selection> select(const DeviceOptions& options) {
  auto instance = Instance::create(options);
  if (!instance) return instance.error();
  auto devices = describe_all(**instance);
  if (!devices) return devices.error();

  std::string wish = options.select;
  if (wish.empty()) {
    if (const char* value = util::environment("BRONTES_DEVICE"); value != nullptr) wish = value;
  }
  std::vector<DeviceInfo> infos;
  for (const PhysicalDevice& d : *devices) infos.push_back(d.info);
  auto chosen = choose_device(infos, wish, options.allow_cpu);
  if (!chosen) return chosen.error();
  return Selection{std::move(*instance), std::move((*devices)[*chosen])};
}

Result<Selection> select(const vulkan::ExternalDevice& external, const DeviceOptions& options) {
  if (Error e = check_instance_version(external.api_version)) return e;
  auto instance = Instance::adopt(external.get_instance_proc_addr, external.instance, options);
  if (!instance) return instance.error();
  if (Error e = check_instance_version(**instance, external.physical_device, external.device)) return e;
  PhysicalDevice physical = describe(**instance, external.physical_device, 0);
  if (Error e = check_suitable("adopt", physical)) return e;
  const auto families = queue_families(**instance, external.physical_device);
  if (external.queue_family >= families.size() ||
      (families[external.queue_family].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) {
    return Error(Errc::invalid_argument, "adopt: queue family " + std::to_string(external.queue_family) + " of " +
                                             physical.info.name + " does not exist or has no compute support");
  }
  for (std::uint32_t family : external.queue_families) {
    if (family < families.size()) continue;
    return Error(Errc::invalid_argument, "adopt: there is no queue family " + std::to_string(family) + " of " +
                                             physical.info.name + " to share buffers with");
  }
  if ((external.queue_flags & synchronized_queue_bit) != 0 && !physical.synchronized_queues) {
    return Error(Errc::invalid_argument, "adopt: queue_flags say that the queue is internally synchronized, which " +
                                             physical.info.name + " does not offer (" + synchronized_queues_extension +
                                             ")");
  }
  physical.queue_family = external.queue_family;
  physical.timestamp_bits = families[external.queue_family].timestampValidBits;
  if (external.features == nullptr) {
    physical.pointers &= external.pointers;
    physical.required_subgroup_size = physical.full_subgroups = false;
    physical.matrices.clear();
  } else {
    const EnabledFeatures enabled = enabled_features(*external.features);
    if (!enabled.timeline_semaphore) {
      return Error(Errc::unsupported,
                   "adopt: the VkDevice was created without the timelineSemaphore feature; see required_features()");
    }
    physical.pointers &= enabled.buffer_device_address && enabled.int64;
    physical.required_subgroup_size &= enabled.subgroup_size_control;
    physical.full_subgroups &= enabled.full_subgroups;
    if (!enabled.cooperative_matrix || !enabled.float16 || !enabled.memory_model) physical.matrices.clear();
  }
  return Selection{std::move(*instance), std::move(physical)};
}

Context::Context(Selection selection, const DeviceOptions& options)
    : options_(options),
      instance_(std::move(selection.instance)),
      physical_(std::move(selection.physical)),
      pipelines_(*this),
      queue_(*this),
      recycler_(*this) {}

Result<std::shared_ptr<Context>> Context::open(Selection selection, const DeviceOptions& options, bool addresses) {
  std::shared_ptr<Context> self(new Context(std::move(selection), options));
  if (Error e = self->create_device(addresses)) return e;
  OpenQueue queue;
  self->device_.table.vkGetDeviceQueue(self->device_.handle, self->physical_.queue_family, 0, &queue.handle);
  if (Error e = self->start(queue, {}, addresses)) return e;
  return self;
}

Result<std::shared_ptr<Context>> Context::adopt(Selection selection, const vulkan::ExternalDevice& external,
                                                const DeviceOptions& options, bool addresses) {
  std::shared_ptr<Context> self(new Context(std::move(selection), options));
  self->device_.handle = external.device;
  self->int64_ = external.features != nullptr ? enabled_features(*external.features).int64 : self->physical_.pointers;
  for (const char* name : external.extensions) {
    const std::string extension = name == nullptr ? "" : name;
    self->memory_budget_ |= extension == VK_EXT_MEMORY_BUDGET_EXTENSION_NAME;
    self->calibrated_timestamps_ |=
        extension == VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME && self->physical_.calibrated_timestamps;
  }
  std::vector<std::uint32_t>& sharing = self->sharing_;
  sharing.assign(external.queue_families.begin(), external.queue_families.end());
  sharing.push_back(external.queue_family);
  std::sort(sharing.begin(), sharing.end());
  sharing.erase(std::unique(sharing.begin(), sharing.end()), sharing.end());
  if (sharing.size() == 1) sharing.clear();
  if (external.allocation_callbacks != nullptr) {
    self->device_.callbacks = *external.allocation_callbacks;
    self->device_.table.callbacks = &self->device_.callbacks;
  }
  if (Error e = self->load_table()) return e;
  const OpenQueue queue{
      external.queue, (external.queue_flags & synchronized_queue_bit) != 0, {external.lock, external.unlock}};
  if (Error e = self->start(queue, external.memory, addresses)) return e;
  return self;
}

Error Context::create_device(bool with_addresses) {
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
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroups{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
  subgroups.subgroupSizeControl = physical_.required_subgroup_size ? VK_TRUE : VK_FALSE;
  subgroups.computeFullSubgroups = physical_.full_subgroups ? VK_TRUE : VK_FALSE;
  VkPhysicalDeviceFeatures features{};
  VkDeviceCreateInfo create{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &timeline};
  std::vector<const char*> extensions;
  auto chain = [&](auto& more) {
    more.pNext = timeline.pNext;
    timeline.pNext = &more;
  };
  if (with_addresses) {
    chain(addresses);
    features.shaderInt64 = VK_TRUE;
  }
  if (physical_.required_subgroup_size || physical_.full_subgroups) {
    chain(subgroups);
    extensions.push_back(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  }
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR};
  VkPhysicalDeviceShaderFloat16Int8Features halves{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES};
  VkPhysicalDeviceVulkanMemoryModelFeatures model{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES};
  matrices.cooperativeMatrix = halves.shaderFloat16 = model.vulkanMemoryModel = VK_TRUE;
  if (!physical_.matrices.empty()) {
    chain(matrices);
    chain(halves);
    chain(model);
    extensions.push_back(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
  }
  // A device that offers it must be given it.
  if (physical_.portability_subset) extensions.push_back(portability_subset_extension);
  memory_budget_ = physical_.memory_budget;
  if (memory_budget_) extensions.push_back(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  calibrated_timestamps_ = physical_.calibrated_timestamps;
  if (calibrated_timestamps_) extensions.push_back(VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME);
  if (physical_.memory_fd) extensions.push_back(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
  if (physical_.memory_host) extensions.push_back(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  create.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  create.ppEnabledExtensionNames = extensions.data();
  create.queueCreateInfoCount = 1;
  create.pQueueCreateInfos = &queue;
  create.pEnabledFeatures = &features;
  VkResult result = VK_SUCCESS;
  {
    const LoaderChange lock(loader_mutex());
    result = instance_->table.vkCreateDevice(physical_.handle, &create, nullptr, &device_.handle);
  }
  if (Error e = check(result, "vkCreateDevice")) {
    e.message = physical_.info.name + ": " + e.message;
    return e;
  }
  device_.owned = true;
  int64_ = features.shaderInt64 == VK_TRUE;
  return load_table();
}

Error Context::load_table() {
  const LoaderLookup lock(loader_mutex());
  // First of all, so that the device does not outlive a failure below. The loader has it too, where the driver does
  // not.
  const auto get_device_proc = instance_->table.vkGetDeviceProcAddr;
  auto destroy = get_device_proc(device_.handle, "vkDestroyDevice");
  if (destroy == nullptr) destroy = instance_->get_instance_proc_addr(instance_->handle, "vkDestroyDevice");
  device_.table.vkDestroyDevice = reinterpret_cast<PFN_vkDestroyDevice>(destroy);
#define BRONTES_LOAD(function)                                                                           \
  device_.table.function = reinterpret_cast<PFN_##function>(get_device_proc(device_.handle, #function)); \
  if (device_.table.function == nullptr) return Error(Errc::unsupported, "the driver has no " #function);
  BRONTES_DEVICE_FUNCTIONS(BRONTES_LOAD)
#undef BRONTES_LOAD
#define BRONTES_LOAD(function) \
  device_.table.function = reinterpret_cast<PFN_##function>(get_device_proc(device_.handle, #function));
  BRONTES_DEVICE_EXTENSION_FUNCTIONS(BRONTES_LOAD)
#undef BRONTES_LOAD
  return {};
}

Error Context::start(const OpenQueue& queue, vulkan::MemoryAllocator host_memory, bool addresses) {
  if (Error e = memory_.open(*this, std::move(host_memory), addresses)) return e;
  physical_.info.mapped_memory = memory_.host_access() == HostAccess::full;
  if (Error e = queue_.open(queue)) return e;
  if (Error e = open_cache(options_.pipeline_cache)) return e;
  at_exit_.watch();
  return {};
}

namespace {

PipelineCacheState state_of(files::FileState file) {
  switch (file) {
    case files::FileState::missing: return PipelineCacheState::cold;
    case files::FileState::loaded: return PipelineCacheState::warm;
    case files::FileState::rejected: break;
  }
  return PipelineCacheState::rejected;
}

files::FileLoad load_from(const PipelineCacheOptions& options, const files::FileIdentity& identity) {
  files::FileLoad loaded;
  try {
    const std::vector<std::uint8_t> bytes = options.load ? options.load() : std::vector<std::uint8_t>();
    if (!bytes.empty()) loaded = files::load_bytes(files::pipeline_cache_file, bytes, identity);
  } catch (...) {
    loaded.state = files::FileState::rejected;
    loaded.note = "pipeline cache: PipelineCacheOptions::load threw an exception";
  }
  return loaded;
}

bool kept_by_host(const PipelineCacheOptions& options) { return options.load || options.store; }

}  // namespace

Error Context::open_cache(const PipelineCacheOptions& options) {
  files::FileLoad loaded;
  if (!options.enabled) {
    cache_status_.note = "disabled by DeviceOptions";
  } else {
    const files::FileIdentity identity = identity_of(physical_);
    const bool host = kept_by_host(options);
    if (!host) {
      cache_status_.path = options.path.empty()
                               ? files::default_path(files::pipeline_cache_file, identity, cache_status_.note)
                               : options.path;
    }
    if (host || !cache_status_.path.empty()) {
      loaded = host ? load_from(options, identity)
                    : files::load_file(files::pipeline_cache_file, cache_status_.path, identity);
      cache_status_.state = state_of(loaded.state);
      cache_status_.note = loaded.note;
      cache_status_.bytes_loaded = loaded.payload.size();
      save_on_close_ = options.save_on_close && (!host || options.store);
    }
    if (!cache_status_.note.empty()) {
      const bool refused = cache_status_.state == PipelineCacheState::rejected;
      instance_->report(refused ? Severity::warning : Severity::info, cache_status_.note);
    }
  }
  return pipelines_.open(loaded.payload);
}

Error Context::save_cache() {
  if (Error e = usable()) return e;
  if (cache_status_.state == PipelineCacheState::off) {
    return Error(Errc::invalid_argument, "save_pipeline_cache: the cache is off: " + cache_status_.note);
  }
  const std::uint64_t created = pipelines_.created;
  if (Error e = kept_by_host(options_.pipeline_cache) ? store_cache() : write_cache()) return e;
  pipelines_saved_ = created;
  return {};
}

Error Context::write_cache() const {
  auto data = pipelines_.cache_data();
  if (!data) return data.error();
  return files::save_file(files::pipeline_cache_file, cache_status_.path, identity_of(physical_), *data);
}

Error Context::store_cache() const {
  const auto& store = options_.pipeline_cache.store;
  if (!store) return Error(Errc::invalid_argument, "save_pipeline_cache: PipelineCacheOptions::store is empty");
  auto bytes = cache_blob();
  if (!bytes) return bytes.error();
  try {
    if (store(*bytes)) return {};
    return Error(Errc::io, "save_pipeline_cache: PipelineCacheOptions::store did not keep the bytes");
  } catch (...) {
    return Error(Errc::io, "save_pipeline_cache: PipelineCacheOptions::store threw an exception");
  }
}

Result<std::vector<std::uint8_t>> Context::cache_blob() const {
  auto data = pipelines_.cache_data();
  if (!data) return data.error();
  return files::file_bytes(files::pipeline_cache_file, identity_of(physical_), *data);
}

Error Context::add_cache_blob(Span<const std::uint8_t> blob) {
  if (Error e = usable()) return e;
  files::FileLoad loaded =
      files::load_bytes(files::pipeline_cache_file, {blob.data(), blob.size()}, identity_of(physical_));
  if (loaded.state != files::FileState::loaded) return Error(Errc::invalid_argument, loaded.note);
  return pipelines_.merge(loaded.payload);
}

Error Context::usable() const {
  if (abandoned_) return Error(Errc::device_lost, "the process is ending: its Devices were closed after main()");
  if (abandoned()) {
    return Error(Errc::device_lost,
                 "this process was forked from the one that opened the Device; fork before opening one, or exec");
  }
  if (!lost_) return {};
  return Error(Errc::device_lost, "the device was lost earlier; open a new Device", VK_ERROR_DEVICE_LOST);
}

void Context::lose() const noexcept {
  if (lost_.exchange(true)) return;
  try {
    instance_->report(Severity::error, physical_.info.name + ": the device is lost");
  } catch (const std::bad_alloc&) {
    // The call that found out says so.
  }
}

void Context::save_cache_if_wanted() noexcept {
  if (!save_on_close_ || lost_ || pipelines_.created == pipelines_saved_) return;
  try {
    if (Error e = save_cache()) instance_->report(Severity::warning, e.message);
  } catch (const std::bad_alloc&) {
    // A cache that is not saved costs the next run time, and nobody is left to be told.
  }
}

void Context::end() noexcept {
  if (abandoned()) return;
  save_cache_if_wanted();
  abandoned_ = true;
  // Done or not, nothing can follow.
  static_cast<void>(queue_.drain());
}

Context::~Context() {
  at_exit_.forget();
  const bool stuck = !abandoned() && queue_.handle() != VK_NULL_HANDLE && !queue_.drain();
  abandoned_ = abandoned() || stuck;
  if (abandoned_) {
    device_.abandon();
    instance_->abandon();
  }
  memory_.close(abandoned_);
  if (!abandoned_) save_cache_if_wanted();
  if (!stuck) return;
  try {
    instance_->report(Severity::error, "the driver cannot say whether work is in flight: the device stays open");
  } catch (const std::bad_alloc&) {
    // Nobody can be told.
  }
}

std::optional<Context::Moment> Context::moment() const {
  if (!calibrated_timestamps_ || device_.table.vkGetCalibratedTimestampsEXT == nullptr) return std::nullopt;
  VkCalibratedTimestampInfoEXT infos[2] = {{VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT},
                                           {VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT}};
  infos[0].timeDomain = VK_TIME_DOMAIN_DEVICE_EXT;
  infos[1].timeDomain = VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT;
  std::uint64_t ticks[2] = {};
  std::uint64_t deviation = 0;
  if (note(device_.table.vkGetCalibratedTimestampsEXT(device_.handle, 2, infos, ticks, &deviation)) != VK_SUCCESS) {
    return std::nullopt;
  }
  return Moment{ticks[0], static_cast<double>(ticks[1])};
}

void Context::set_name(VkObjectType type, std::uint64_t object, const char* name) const {
  if (instance_->table.vkSetDebugUtilsObjectNameEXT == nullptr) return;
  VkDebugUtilsObjectNameInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT};
  info.objectType = type;
  info.objectHandle = object;
  info.pObjectName = name;
  const LoaderLookup lock(loader_mutex());
  static_cast<void>(instance_->table.vkSetDebugUtilsObjectNameEXT(device_.handle, &info));
}

}  // namespace brontes::vk
