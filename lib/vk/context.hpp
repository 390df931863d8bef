// An open VkDevice: what every other Vulkan object belongs to. Objects of it keep it alive.
#pragma once

#include "trace/recorder.hpp"
#include "vk/at_exit.hpp"
#include "vk/fork.hpp"
#include "vk/handle.hpp"
#include "vk/loader.hpp"
#include "vk/memory.hpp"
#include "vk/physical_device.hpp"
#include "vk/pipelines.hpp"
#include "vk/queue.hpp"
#include "vk/recycler.hpp"
#include "vk/result.hpp"
#include "vk/run_totals.hpp"

#include <brontes/device.hpp>
#include <brontes/error.hpp>
#include <brontes/vulkan.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace brontes::vk {

/// The VkDevice and its functions; destroyed at the end unless somebody else owns it.
struct OwnedDevice {
  OwnedDevice() = default;
  ~OwnedDevice();
  OwnedDevice(const OwnedDevice&) = delete;
  OwnedDevice& operator=(const OwnedDevice&) = delete;

  /// From now on nothing of the device is destroyed, nor the device itself.
  void abandon() noexcept;

  VkDevice handle = VK_NULL_HANDLE;
  bool owned = false;
  DeviceTable table;
  VkAllocationCallbacks callbacks{};  // the host's; the table points to them if there are any
};

/// A device to open, and the instance that has it.
struct Selection {
  std::shared_ptr<Instance> instance;
  PhysicalDevice physical;
};

/// The device the options ask for.
Result<Selection> select(const DeviceOptions& options);
/// Somebody else's, if it can be used.
Result<Selection> select(const vulkan::ExternalDevice& external, const DeviceOptions& options);

/// Thread-safety: everything here may be used from any thread.
class Context : public std::enable_shared_from_this<Context> {
 public:
  /// `addresses`: kernels reach memory by addresses, which the device has.
  static Result<std::shared_ptr<Context>> open(Selection selection, const DeviceOptions& options, bool addresses);
  static Result<std::shared_ptr<Context>> adopt(Selection selection, const vulkan::ExternalDevice& external,
                                                const DeviceOptions& options, bool addresses);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  VkDevice device() const noexcept { return device_.handle; }
  const DeviceTable& vk() const noexcept { return device_.table; }
  const Instance& instance() const noexcept { return *instance_; }
  const PhysicalDevice& physical() const noexcept { return physical_; }
  const DeviceInfo& info() const noexcept { return physical_.info; }
  const DeviceOptions& options() const noexcept { return options_; }
  /// Whether VK_EXT_memory_budget is enabled.
  bool memory_budget() const noexcept { return memory_budget_; }
  /// Families that buffers are shared by; empty where they are one family's.
  const std::vector<std::uint32_t>& sharing() const noexcept { return sharing_; }
  /// False where the VkDevice is somebody else's.
  bool owns_device() const noexcept { return device_.owned; }

  /// What shaders may use, after simulated limits: subgroup operations by Vulkan's bits, 64-bit integers, and
  /// SignedZeroInfNanPreserve for 32-bit floats.
  VkSubgroupFeatureFlags subgroup_features() const noexcept {
    return options_.simulate.no_subgroup_operations ? 0 : physical_.subgroup_features;
  }
  bool int64() const noexcept { return int64_; }
  bool float_controls() const noexcept { return physical_.float_controls && !options_.simulate.no_float_controls; }
  bool half_denormals() const noexcept { return physical_.half_denormals && !options_.simulate.no_float_controls; }

  /// Bits that the queue's timestamps have; 0 for no timestamps.
  std::uint32_t timestamp_bits() const noexcept {
    return options_.simulate.no_timestamps ? 0 : physical_.timestamp_bits;
  }

  /// A moment on both clocks.
  struct Moment {
    std::uint64_t ticks;
    double host;  // as trace::now() has it
  };
  /// Nothing where the device cannot say.
  std::optional<Moment> moment() const;

  /// What happens when, while somebody wants to know.
  trace::Recorder& trace() const noexcept { return trace_; }

  Memory& memory() noexcept { return memory_; }
  Pipelines& pipelines() noexcept { return pipelines_; }
  Queue& queue() noexcept { return queue_; }
  Recycler& recycler() noexcept { return recycler_; }
  RunTotals& run_totals() noexcept { return run_totals_; }

  PipelineCacheStatus cache_status() const { return cache_status_; }
  Error save_cache();
  /// The cache as it would be in a file, and the other way round. Errc::invalid_argument for one that a file would be
  /// rejected for.
  Result<std::vector<std::uint8_t>> cache_blob() const;
  Error add_cache_blob(Span<const std::uint8_t> blob);

  /// As vk::check(), and remembers that the device is lost.
  Error check(VkResult result, const char* call) const { return vk::check(note(result), call); }
  VkResult note(VkResult result) const noexcept {
    if (result == VK_ERROR_DEVICE_LOST) lose();
    return result;
  }
  bool lost() const noexcept { return lost_; }
  /// Why the device can do nothing any more, if so: it is lost, this is a forked process, or the process is ending.
  Error usable() const;
  /// Nothing of the device may be touched, not even to destroy it: this is a forked process, the process is ending, or
  /// the driver cannot say whether work is still in flight.
  bool abandoned() const noexcept { return abandoned_ || fork_generation_ != fork_generation(); }

  /// The process is ending: waits for work in flight and saves the cache. Afterwards the device is abandoned, because
  /// the driver's own globals go next.
  void end() noexcept;
  /// Work has been waited for: drivers have by now made whatever they make when they first run something.
  void work_done() const noexcept {
    const std::uint64_t created = pipelines_.created;
    if (ran_pipelines_.exchange(created, std::memory_order_relaxed) != created) AtExit::renew();
  }

  /// Debug names exist while validation is on, and on adopted devices whose instance has VK_EXT_debug_utils.
  void set_name(VkObjectType type, std::uint64_t object, const char* name) const;

  /// Whether labels in command buffers go anywhere.
  bool labels() const noexcept {
    return instance_->table.vkCmdBeginDebugUtilsLabelEXT != nullptr &&
           instance_->table.vkCmdEndDebugUtilsLabelEXT != nullptr;
  }

 private:
  Context(Selection selection, const DeviceOptions& options);
  Error load_table();
  Error create_device(bool addresses);
  void lose() const noexcept;
  Error start(const OpenQueue& queue, vulkan::MemoryAllocator host_memory, bool addresses);
  Error open_cache(const PipelineCacheOptions& options);
  Error write_cache() const;
  Error store_cache() const;
  void save_cache_if_wanted() noexcept;

  const std::uint32_t fork_generation_ = fork_generation();
  mutable std::atomic<bool> lost_{false};
  std::atomic<bool> abandoned_{false};  // the process ends, or the Context goes
  DeviceOptions options_;
  std::shared_ptr<Instance> instance_;
  PhysicalDevice physical_;
  OwnedDevice device_;  // destroyed after everything below, which belongs to it
  bool memory_budget_ = false;
  bool calibrated_timestamps_ = false;
  std::vector<std::uint32_t> sharing_;
  bool int64_ = false;
  Memory memory_;
  Pipelines pipelines_;
  Queue queue_;
  Recycler recycler_;
  mutable trace::Recorder trace_;  // may hold slots of the recycler
  RunTotals run_totals_;
  PipelineCacheStatus cache_status_;
  std::atomic<std::uint64_t> pipelines_saved_{0};
  bool save_on_close_ = false;
  mutable std::atomic<std::uint64_t> ran_pipelines_{0};
  AtExit at_exit_{*this};  // gone before everything else
};

}  // namespace brontes::vk
