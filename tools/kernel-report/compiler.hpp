// A driver's compiler, asked what it makes of a kernel.
#pragma once

#include "isa.hpp"

#include "engine/traits.hpp"
#include "kernels.hpp"
#include "vk/handle.hpp"
#include "vk/loader.hpp"
#include "vk/physical_device.hpp"

#include <brontes/error.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kernel_report {

/// What the driver says of one pipeline.
struct Figures {
  std::uint64_t vgprs = 0;
  std::uint64_t sgprs = 0;
  std::uint64_t spilled_vgprs = 0;
  std::uint64_t spilled_sgprs = 0;
  std::uint64_t scratch_bytes = 0;
  std::uint64_t lds_bytes = 0;
  std::uint64_t waves = 0;  // per SIMD; on RDNA RADV counts a wave64 as two
  std::uint64_t code_bytes = 0;
  std::uint64_t instructions = 0;
  std::uint64_t latency = 0;             // estimated cycles
  std::uint64_t inverse_throughput = 0;  // estimated cycles
  Isa isa;
  std::string assembly;

  bool spills() const { return spilled_vgprs != 0 || spilled_sgprs != 0 || scratch_bytes != 0; }
};

class Compiler {
 public:
  /// The first device that offers VK_KHR_pipeline_executable_properties. Errc::no_device if none does.
  static brontes::Result<std::unique_ptr<Compiler>> open();
  ~Compiler();
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  const brontes::DeviceInfo& device() const { return physical_.info; }
  brontes::plan::Traits traits() const { return brontes::engine::traits_of(physical_, {}); }
  /// It reports what RADV does, by the same names.
  bool radv() const { return physical_.driver_id == VK_DRIVER_ID_MESA_RADV; }

  /// A kernel of the library as its pipelines are made: specialized, and with all its bindings.
  brontes::Result<Figures> compile(const brontes::kernels::Kernel& kernel,
                                   const std::vector<std::uint32_t>& constants) const;
  /// Any module that uses storage buffers 0 .. bindings - 1 of set 0, and takes no specialization.
  brontes::Result<Figures> compile(const std::vector<std::uint32_t>& spirv, const std::vector<std::uint32_t>& bindings,
                                   std::uint32_t push_bytes) const;

 private:
  Compiler() = default;
  brontes::Result<std::string> assembly_of(const VkPipelineExecutableInfoKHR& executable) const;

  std::shared_ptr<brontes::vk::Instance> instance_;
  brontes::vk::PhysicalDevice physical_;
  VkDevice device_ = VK_NULL_HANDLE;
  brontes::vk::DeviceTable table_;
  PFN_vkGetPipelineExecutableStatisticsKHR get_statistics_ = nullptr;
  PFN_vkGetPipelineExecutableInternalRepresentationsKHR get_representations_ = nullptr;
};

}  // namespace kernel_report
