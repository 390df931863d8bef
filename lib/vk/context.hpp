// An open device: what Device, Buffer and Batch share. Objects of it keep it alive.
#pragma once

#include "plan/program.hpp"
#include "plan/traits.hpp"
#include "plan/tuning.hpp"
#include "submit/queue.hpp"
#include "vk/handle.hpp"
#include "vk/keyed_file.hpp"
#include "vk/loader.hpp"
#include "vk/memory.hpp"
#include "vk/physical_device.hpp"
#include "vk/pipelines.hpp"
#include "vk/recycler.hpp"

#include <brontes/device.hpp>
#include <brontes/error.hpp>
#include <brontes/vulkan.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace brontes::vk {

/// The VkDevice and its functions; destroyed at the end unless somebody else owns it.
struct OwnedDevice {
  OwnedDevice() = default;
  ~OwnedDevice() {
    if (owned && table.vkDestroyDevice != nullptr) table.vkDestroyDevice(handle, nullptr);
  }
  OwnedDevice(const OwnedDevice&) = delete;
  OwnedDevice& operator=(const OwnedDevice&) = delete;

  VkDevice handle = VK_NULL_HANDLE;
  bool owned = false;
  DeviceTable table;
};

/// Thread-safety: everything here may be used from any thread.
class Context : public std::enable_shared_from_this<Context> {
 public:
  static Result<std::shared_ptr<Context>> open(const DeviceOptions& options);
  static Result<std::shared_ptr<Context>> adopt(const vulkan::ExternalDevice& external, const DeviceOptions& options);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  VkDevice device() const noexcept { return device_.handle; }
  const DeviceTable& vk() const noexcept { return device_.table; }
  const Instance& instance() const noexcept { return *instance_; }
  const PhysicalDevice& physical() const noexcept { return physical_; }
  const DeviceInfo& info() const noexcept { return physical_.info; }
  /// With the measurements that count now; they live as long as the Context.
  plan::Traits traits() const noexcept;
  const DeviceOptions& options() const noexcept { return options_; }
  /// False where the VkDevice is somebody else's.
  bool owns_device() const noexcept { return device_.owned; }

  Memory& memory() noexcept { return memory_; }
  Pipelines& pipelines() noexcept { return pipelines_; }
  submit::Queue& queue() noexcept { return queue_; }
  Recycler& recycler() noexcept { return recycler_; }
  plan::ProgramSet& programs() noexcept { return programs_; }

  PipelineCacheStatus cache_status() const { return cache_status_; }
  Error save_cache();

  TuningStatus tuning_status() const;
  /// Adds measurements to those in use, from the next plan on.
  void use_tuning(plan::Tuning measured);
  /// Writes the measurements in use.
  Error save_tuning() const;
  /// Held by whoever measures.
  std::mutex& tuning_turn() noexcept { return tuning_turn_; }

  /// Debug names exist while validation is on.
  void set_name(VkObjectType type, std::uint64_t object, const char* name) const;

 private:
  explicit Context(const DeviceOptions& options);
  Error load_table();
  void load_tuning();
  Result<plan::Access> choose_access() const;
  Error create_device(const plan::Access& access);
  Error start(const plan::Access& access, VkQueue queue);
  Error open_cache(const PipelineCacheOptions& options);

  DeviceOptions options_;
  std::shared_ptr<Instance> instance_;
  PhysicalDevice physical_;
  plan::Traits traits_;
  OwnedDevice device_;  // destroyed after everything below, which belongs to it
  Memory memory_;
  Pipelines pipelines_;
  submit::Queue queue_;
  Recycler recycler_;
  plan::ProgramSet programs_;
  PipelineCacheStatus cache_status_;
  std::atomic<std::uint64_t> pipelines_saved_{0};
  bool save_on_close_ = false;

  std::mutex tuning_turn_;
  mutable std::mutex tuning_mutex_;  // of the next two
  TuningStatus tuning_status_;
  /// All there ever were: plans under way may read an older one. The last is in use.
  std::vector<std::unique_ptr<const plan::Tuning>> tunings_;
  std::atomic<const plan::Tuning*> tuning_{nullptr};
};

}  // namespace brontes::vk
