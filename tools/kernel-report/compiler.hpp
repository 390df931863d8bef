// A driver's compiler, asked what it makes of a kernel.
#pragma once

#include "isa.hpp"
#include "statistics.hpp"

#include "engine/traits.hpp"
#include "kernels.hpp"
#include "vk/handle.hpp"
#include "vk/loader.hpp"
#include "vk/physical_device.hpp"

#include <brontes/error.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kernel_report {

/// What the driver says of one pipeline.
struct Figures {
  Usage usage;
  std::uint32_t subgroup_size = 0;  // that it was compiled for
  Statistics statistics;            // all it says, in its own words
  Isa isa;                          // RADV's only; empty for others
  std::string assembly;
};

class Compiler {
 public:
  /// Of the devices that offer VK_KHR_pipeline_executable_properties the one that BRONTES_DEVICE names, or the best.
  /// Errc::no_device if none does.
  static brontes::Result<std::unique_ptr<Compiler>> open();
  ~Compiler();
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  const brontes::DeviceInfo& device() const { return physical_.info; }
  brontes::plan::Traits traits() const { return brontes::engine::traits_of(physical_, {}); }
  /// Its assembly can be read.
  bool radv() const { return physical_.driver_id == VK_DRIVER_ID_MESA_RADV; }

  /// A kernel of the library as its pipelines are made: specialized, and with all its bindings.
  brontes::Result<Figures> compile(const brontes::kernels::Kernel& kernel,
                                   const std::vector<std::uint32_t>& constants) const;
  /// Any module that uses storage buffers 0 .. bindings - 1 of set 0, and takes no specialization.
  /// With subgroups of `lanes`, unless that is 0.
  brontes::Result<Figures> compile(const std::vector<std::uint32_t>& spirv, const std::vector<std::uint32_t>& bindings,
                                   std::uint32_t push_bytes, std::uint32_t lanes = 0) const;

 private:
  Compiler() = default;
  brontes::Result<Figures> figures_of(VkPipeline pipeline) const;
  brontes::Result<Statistics> statistics_of(const VkPipelineExecutableInfoKHR& executable) const;
  brontes::Result<std::string> assembly_of(const VkPipelineExecutableInfoKHR& executable) const;

  std::shared_ptr<brontes::vk::Instance> instance_;
  brontes::vk::PhysicalDevice physical_;
  VkDevice device_ = VK_NULL_HANDLE;
  brontes::vk::DeviceTable table_;
  PFN_vkGetPipelineExecutablePropertiesKHR get_executables_ = nullptr;
  PFN_vkGetPipelineExecutableStatisticsKHR get_statistics_ = nullptr;
  PFN_vkGetPipelineExecutableInternalRepresentationsKHR get_representations_ = nullptr;
};

}  // namespace kernel_report
