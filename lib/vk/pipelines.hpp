// Compute pipelines, each created at most once per kernel and specialization for the life of a device.
#pragma once

#include "kernels.hpp"
#include "vk/handle.hpp"

#include <brontes/error.hpp>
#include <brontes/tensor.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace brontes::vk {

class Context;
struct PhysicalDevice;

/// What a slot of a kernel is in the descriptor set. With AccessMode::pointer the set holds nothing but a
/// uniform buffer with the slots' addresses.
VkDescriptorType descriptor_type(kernels::AccessMode access, kernels::Access slot) noexcept;

/// Room for an address per slot, in a pointer kernel's uniform buffer.
inline constexpr std::uint64_t address_table_bytes = 64;

/// The subgroup size that a pipeline of a library kernel requires, and with it full subgroups; 0 if it requires none.
/// The constants are in the order of Kernel::constants.
std::uint32_t required_lanes(const kernels::Kernel& kernel, Span<const std::uint32_t> constants) noexcept;

/// Makes a stage require subgroups of `size`, all of whose lanes run, as far as the device can.
void require_subgroups(const PhysicalDevice& device, const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo& size,
                       VkPipelineShaderStageCreateInfo& stage) noexcept;

/// A library kernel as it is specialized. It refers to the constants, which are in the order of Kernel::constants.
struct PipelineKey {
  kernels::Id kernel;
  kernels::AccessMode access;
  Span<const std::uint32_t> constants;
  bool based = false;

  std::uint64_t hash() const noexcept;
  friend bool operator==(const PipelineKey& a, const PipelineKey& b) noexcept;
};

/// Descriptors of sets, by their type.
struct DescriptorNeeds {
  std::uint32_t sets = 0;
  std::uint32_t storage = 0;
  std::uint32_t texel = 0;
  std::uint32_t uniform = 0;  // a table of addresses each

  bool covers(const DescriptorNeeds& other) const noexcept {
    return sets >= other.sets && storage >= other.storage && texel >= other.texel && uniform >= other.uniform;
  }
  DescriptorNeeds& operator+=(const DescriptorNeeds& more) noexcept {
    sets += more.sets;
    storage += more.storage;
    texel += more.texel;
    uniform += more.uniform;
    return *this;
  }
  friend DescriptorNeeds operator+(DescriptorNeeds a, const DescriptorNeeds& b) noexcept { return a += b; }
  friend DescriptorNeeds operator*(std::uint32_t times, const DescriptorNeeds& a) noexcept {
    return {times * a.sets, times * a.storage, times * a.texel, times * a.uniform};
  }
};

/// What a kernel's pipelines of one access mode share. Made when the kernel is first used.
struct KernelObjects {
  std::mutex mutex;
  DescriptorSetLayout own_set_layout;                 // none for kernels with a table of addresses, which share one
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;  // this or that
  DescriptorNeeds set;                                // what a set of it takes
  PipelineLayout layout;
};

/// Thread-safety: any thread; threads that want the same new pipeline at once wait for one creation.
class Pipelines {
 public:
  explicit Pipelines(const Context& context) : context_(context) {}

  /// Starts the VkPipelineCache from a payload that was checked beforehand; empty is a cold start.
  Error open(const std::vector<std::uint8_t>& payload);

  /// Adds to the cache what a payload has that was checked beforehand.
  Error merge(const std::vector<std::uint8_t>& payload);

  struct Bound {
    VkPipeline pipeline;
    VkPipelineLayout layout;
    VkDescriptorSetLayout set_layout;
    DescriptorNeeds set;  // what a set of that layout takes
    std::uint64_t spirv_bytes;
  };
  /// `based`: also for vkCmdDispatchBase, of kernels of the library. `created`, if given, is increased when this call
  /// was the one to create the pipeline.
  Result<Bound> get(kernels::Ref kernel, kernels::AccessMode access, const std::uint32_t* constants,
                    std::size_t constant_count, bool based = false, std::uint64_t* created = nullptr);

  /// The driver's cache, to be saved.
  Result<std::vector<std::uint8_t>> cache_data() const;

  std::atomic<std::uint64_t> created{0};
  std::atomic<std::uint64_t> requested{0};

 private:
  // Held while it is created, so that others wait. A failure leaves it empty: the next request tries
  // again, since running out of memory may pass.
  struct Entry {
    std::mutex mutex;
    Pipeline pipeline;
    std::uint64_t spirv_bytes = 0;
    std::vector<std::uint32_t> constants;
    PipelineKey key;  // of those
    Bound bound{};
    std::atomic<bool> made{false};  // `bound` can be read without the mutex
  };
  /// Of a kernel that is not the library's, found by its contents: whoever made it may be gone.
  struct UserEntry {
    std::string entry_point;
    std::vector<std::uint32_t> words;
    std::vector<std::uint32_t> layout;  // bytes of push constants, and binding numbers
    KernelObjects objects;
    Entry entry;
  };
  Result<Bound> get_user(const kernels::Kernel& kernel, std::uint64_t* created_here);
  Result<Bound> bind(const kernels::Kernel& kernel, const PipelineKey* key, const KernelObjects& objects, Entry& entry,
                     std::uint64_t* created_here);
  /// Null where there is none. An entry stays as long as this object.
  Entry* find(const PipelineKey& key, std::uint64_t hash) const;
  Error make_kernel(const kernels::Kernel& kernel, kernels::AccessMode access, KernelObjects& objects);
  Error make_set_layout(Span<const VkDescriptorSetLayoutBinding> bindings, const char* name,
                        DescriptorSetLayout& layout) const;
  /// Specialized by the key; without one, the module is taken as it is.
  Error make_pipeline(const kernels::Kernel& kernel, const PipelineKey* key, const KernelObjects& objects,
                      Entry& entry) const;

  const Context& context_;
  PipelineCache cache_;
  mutable std::shared_mutex cache_mutex_;  // others may use the cache at the same time, who merges into it may not
  std::array<std::array<KernelObjects, kernels::access_modes>, kernels::count> kernels_;
  mutable std::shared_mutex mutex_;
  DescriptorSetLayout tables_;                                              // of all kernels with a table of addresses
  std::unordered_multimap<std::uint64_t, std::unique_ptr<Entry>> entries_;  // by hash
  std::multimap<std::uint64_t, std::shared_ptr<UserEntry>> user_entries_;   // by hash
};

}  // namespace brontes::vk
