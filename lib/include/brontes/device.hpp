// SPDX-License-Identifier: MIT
#pragma once

#include <brontes/error.hpp>
#include <brontes/export.hpp>
#include <brontes/pipeline_cache.hpp>
#include <brontes/stats.hpp>
#include <brontes/tuning_file.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace brontes {

namespace engine {
class Engine;
}

enum class DeviceType : std::uint8_t { other, integrated_gpu, discrete_gpu, virtual_gpu, cpu };

/// "discrete GPU", "CPU driver" and so on. Never null.
BRONTES_API const char* to_string(DeviceType type) noexcept;

enum class Severity : std::uint8_t {
  info,     ///< nothing is wrong: why a cache is off, say
  warning,  ///< something is lost or slower, and work goes on: a cache file was refused, memory is short
  error,    ///< the device is lost; or a validation error, which is a bug
};

/// Receives validation messages and the library's own, which begin with "brontes: ". May be called from any thread that
/// uses the device, also during Device::open; must not call back into the library.
using MessageCallback = std::function<void(Severity severity, const std::string& text)>;

enum class Toggle : std::uint8_t { automatic, off, on };

/// Lowers a device's limits, to test the code paths of smaller devices.
/// Zero and false keep the device's own value; values above it have no effect.
struct SimulatedLimits {
  std::uint32_t max_group_count = 0;        ///< workgroups per axis of one dispatch
  std::uint32_t max_group_invocations = 0;  ///< invocations of one workgroup; at least 1
  std::uint32_t max_shared_bytes = 0;       ///< shared memory of one workgroup
  std::uint64_t max_storage_range = 0;      ///< bytes of one tensor
  std::uint32_t max_loop_iterations = 0;    ///< loop iterations of one invocation
  std::uint32_t subgroup_size = 0;          ///< invocations of one subgroup
  bool no_subgroup_operations = false;      ///< no arithmetic or ballots within a subgroup
  bool no_subgroup_size_control = false;    ///< the subgroup size is neither fixed nor can pipelines require one
  bool no_float_controls = false;           ///< shaders cannot ask for NaN and infinities to be kept
  bool staged_memory = false;               ///< no mapped device memory: everything goes through staging
  bool no_timestamps = false;               ///< the queue has no timestamps: nothing can be profiled
  std::uint32_t vendor_id = 0;              ///< kernels are chosen as for this vendor's devices
  bool uncached_memory = false;             ///< the host writes device memory directly, and reads it through staging
};

/// How kernels access memory. Affects speed only, never results.
enum class AccessMode : std::uint8_t {
  automatic,  ///< the mode tune_matmul() found fastest; otherwise the fastest mode known for this driver
  storage,    ///< storage buffers: right for every GPU
  texel,      ///< inputs through uniform texel buffers: much faster with lavapipe before Mesa 25
  pointer,    ///< buffer device addresses: the fastest with later lavapipe, except for some products
};

/// "storage", "texel" and so on. Never null.
BRONTES_API const char* to_string(AccessMode mode) noexcept;

struct DeviceOptions {
  /// Which device: an index into Device::list(), a part of the name (any case), or a UUID in hex
  /// with or without dashes. Empty: the environment variable BRONTES_DEVICE, read the same way, and
  /// if that is empty too the best device: discrete, integrated, virtual, other, CPU, in that order.
  std::string select;

  /// False refuses CPU drivers (lavapipe, SwiftShader): Errc::no_device instead of a slow surprise.
  bool allow_cpu = true;

  /// The Khronos validation layer with synchronization validation. Automatic: the environment
  /// variable BRONTES_VALIDATION (0 or 1), otherwise the build option `validation`. If the layer is not
  /// installed: Errc::unsupported when `on`, a note when automatic.
  Toggle validation = Toggle::automatic;

  /// Empty: validation messages go to stderr and notes are dropped.
  MessageCallback on_message;

  /// How many distinct fused programs this device builds pipelines for. Further ones run unfused, as
  /// single ops, so that an application that never repeats itself does not keep compiling.
  std::size_t max_fused_programs = 256;

  /// Bytes of device memory that all buffers of the Device together may take; 0 for no limit. It counts what
  /// DeviceMemory::used_bytes does. A call that would need more first has memory that is kept for later given back, and
  /// then fails with Errc::out_of_memory, a message that names what was asked for, used and allowed, and nothing done.
  std::uint64_t memory_cap = 0;

  /// `pointer` on a device without bufferDeviceAddress or shaderInt64: Errc::unsupported.
  AccessMode access = AccessMode::automatic;

  PipelineCacheOptions pipeline_cache;
  TuningOptions tuning;
  SimulatedLimits simulate;
};

struct TraceOptions {
  /// How many spans are kept. Further ones are counted, and the trace says how many there were.
  std::size_t max_spans = std::size_t{1} << 20;
};

/// One Vulkan device, as Device::list() and Device::info() describe it.
struct DeviceInfo {
  std::uint32_t index = 0;  ///< position in Device::list()
  std::string name;
  DeviceType type = DeviceType::other;
  std::string driver;  ///< driver name and version, in the driver's words
  std::uint32_t vendor_id = 0;
  std::uint32_t device_id = 0;
  std::uint32_t driver_version = 0;
  std::uint32_t api_version = 0;  ///< as Vulkan packs it
  std::array<std::uint8_t, 16> uuid{};
  bool suitable = false;           ///< meets the baseline: Vulkan 1.2, a compute queue, timeline semaphores
  std::string unsuitable_because;  ///< empty when suitable

  std::uint32_t subgroup_size = 0;
  std::uint32_t max_group_invocations = 0;
  std::uint32_t max_shared_bytes = 0;
  std::array<std::uint32_t, 3> max_group_count{};
  std::uint64_t max_storage_range = 0;  ///< bytes of the largest tensor
  /// Device memory is host-visible and cached, so uploads and reads need no staging copy. Known for
  /// an open Device only.
  bool mapped_memory = false;
  /// How kernels access memory. With AccessMode::automatic some products use another mode that is faster on this
  /// driver. Known for an open Device only.
  AccessMode access = AccessMode::automatic;
};

/// Counts since the device was opened. Exact.
struct DeviceStats {
  std::uint64_t pipelines_created = 0;    ///< VkPipeline objects; at most one per kernel and specialization
  std::uint64_t pipelines_requested = 0;  ///< pipeline lookups
  std::uint64_t submits = 0;              ///< command buffers submitted
  std::uint64_t allocations = 0;          ///< device memory blocks allocated so far
  std::uint64_t live_buffers = 0;         ///< VkBuffer objects alive now, except small ones the Device keeps for itself
  std::uint64_t live_bytes = 0;           ///< their bytes
  /// What every run of a batch, program, one-shot op or MatmulCache has cost, added up: the difference of two stats()
  /// is what happened in between. The arena counts once per run, though a program keeps it. Recording is not counted
  /// (`operations`, `values`, `dropped_operations`, `fused_operations`), nor is what happens once and not per run
  /// (`pipelines_created`, `allocations`), which are above; runs in a command buffer of the caller's are not seen.
  BatchStats runs;
};

/// The device memory of a Device, now.
struct DeviceMemory {
  /// Buffers of the Device: what DeviceStats counts, small ones that it keeps for itself, and such as are destroyed and
  /// still used by work in flight. Memory that was imported is not among them.
  std::uint64_t buffers = 0;
  std::uint64_t used_bytes = 0;  ///< their bytes
  std::uint64_t cap_bytes = 0;   ///< DeviceOptions::memory_cap
  /// Memory objects that the buffers lie in, as the driver gave them, and their bytes. They are larger than what is
  /// used: small buffers share one, and an empty one may be kept.
  std::uint64_t blocks = 0;
  std::uint64_t block_bytes = 0;
  /// The heap that most of it comes from: its size, how much of that is in use, and how much may be.
  std::uint64_t heap_bytes = 0;
  std::uint64_t heap_usage = 0;
  std::uint64_t heap_budget = 0;
  /// Usage and budget come from the driver (VK_EXT_memory_budget), are those of the whole process, and allocations keep
  /// to the budget. Otherwise the usage is the Device's own and the budget an estimate, which nothing is held to.
  bool budget_reported = false;
};

/// A Vulkan device, its queue, memory and pipelines.
///
/// Batches and Buffers keep what they need of it alive, so objects may be destroyed in any order.
///
/// **When the device is lost** (Errc::device_lost), every later call that needs it fails with the same code at once.
/// Destroy its objects, in any order, and open a new Device; data that was only on the device is gone.
///
/// **After fork()** the child must not use the parent's Device: its calls fail with Errc::device_lost, and destroying
/// its objects does nothing. Fork before opening a Device, or exec after: whether a child can open one of its own is up
/// to the driver.
///
/// A Device that was moved from has an empty info() and empty stats(). Calls that need it fail with
/// Errc::invalid_argument.
///
/// Thread-safety: every method may be called from any thread at any time.
class BRONTES_API Device {
 public:
  /// Opens the best device, or the one the options choose.
  /// Fails with no_loader, no_driver or no_device (the message lists what was found and why it was
  /// refused), unsupported, or whatever the driver reports.
  static Result<Device> open(const DeviceOptions& options = {});

  /// Every device the Vulkan loader knows, suitable or not, in the loader's order.
  static Result<std::vector<DeviceInfo>> list();

  Device(Device&&) noexcept;
  Device& operator=(Device&&) noexcept;
  ~Device();

  const DeviceInfo& info() const noexcept;
  DeviceStats stats() const noexcept;
  /// Zeros in a forked process.
  DeviceMemory memory() const noexcept;

  /// Whether the pipeline-cache file was loaded when the Device was opened.
  PipelineCacheStatus pipeline_cache() const;
  /// Writes the pipeline cache now. Errc::io when the file cannot be written, Errc::invalid_argument
  /// when the cache is off.
  Error save_pipeline_cache() const;

  /// Records from now on what this library does with the device, and when: on the host each recorded op, plan, encode,
  /// write, submit, wait and read; on the device each dispatch and copy of a run, by timestamps. Programs that were
  /// compiled before are traced, too. Results do not change; runs gain no barrier. Runs recorded into a command buffer
  /// of the application's (vulkan::record) show on the host only. While nothing is traced, a call costs one load.
  /// Errc::invalid_argument when the Device is being traced already.
  Error start_trace(const TraceOptions& options = {}) const;
  /// Waits for work in flight and gives what was recorded since start_trace(), as JSON in the Trace Event Format that
  /// Perfetto and chrome://tracing open; docs/profiling.md describes it. Host and device are on one clock:
  /// by VK_EXT_calibrated_timestamps where the device has it, otherwise by an estimate that has every run between its
  /// submit and the end of the wait that saw it done. Errc::invalid_argument without start_trace().
  Result<std::string> stop_trace() const;

  /// Which measurements of tune_matmul() are used.
  TuningStatus tuning() const;

 private:
  friend struct DeviceAccess;
  explicit Device(std::shared_ptr<engine::Engine> engine) noexcept;
  std::shared_ptr<engine::Engine> engine_;
};

}  // namespace brontes
