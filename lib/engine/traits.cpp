#include "engine/traits.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace brontes::engine {
namespace {

// lavapipe before Mesa 25. Which release between 22 and 25 changed its ways is unknown, so all before 25 are
// treated alike. Its driverVersion is always 1; driverInfo begins with "Mesa 25.0.7".
bool old_lavapipe(const vk::PhysicalDevice& device) {
  if (device.driver_id != VK_DRIVER_ID_MESA_LLVMPIPE) return false;
  const std::size_t at = device.info.driver.find("Mesa ");
  return at == std::string::npos || std::atoi(device.info.driver.c_str() + at + 5) < 25;
}

plan::Vendor vendor_of(const vk::PhysicalDevice& device, std::uint32_t simulated) {
  const std::uint32_t id = simulated != 0 ? simulated : device.info.vendor_id;
  // Mesa's drivers need not say whose the hardware is.
  constexpr auto driver_honeykrisp = static_cast<VkDriverId>(26);
  if (simulated == 0 && device.info.type == DeviceType::cpu) return plan::Vendor::cpu;
  if (simulated == 0 && device.driver_id == driver_honeykrisp) return plan::Vendor::apple;
  switch (id) {
    case 0x1002: return plan::Vendor::amd;
    case 0x106b: return plan::Vendor::apple;
    case 0x10de: return plan::Vendor::nvidia;
    case 0x13b5: return plan::Vendor::arm;
    case 0x5143: return plan::Vendor::qualcomm;
    case 0x8086: return plan::Vendor::intel;
    default: return plan::Vendor::other;
  }
}

// The number behind a word of the device's name, as in "Adreno (TM) 740", or 0.
int number_after(const std::string& name, const char* word) {
  const std::size_t at = name.find(word);
  const std::size_t digit = at == std::string::npos ? at : name.find_first_of("0123456789", at);
  return digit == std::string::npos ? 0 : std::atoi(name.c_str() + digit);
}

// By what a device reports: sizes of subgroups and matrices where these tell, its number or its name where they do not.
// Drivers without matrices are older than the extension, or do not have it for this device.
plan::Architecture architecture_of(const vk::PhysicalDevice& device, plan::Vendor vendor) {
  using plan::Architecture;
  const bool matrices = !device.matrices.empty();
  const std::uint32_t id = device.info.device_id;
  const std::string& name = device.info.name;
  auto named = [&](const char* part) { return name.find(part) != std::string::npos; };
  switch (vendor) {
    case plan::Vendor::amd:
      if (device.min_subgroup_size > 32) return Architecture::unknown;  // GCN, CDNA
      // Navi 44 and 48; RADV adds the generation to the name.
      if ((id >= 0x7550 && id < 0x75a0) || named("GFX12")) return Architecture::amd_rdna4;
      return matrices ? Architecture::amd_rdna3 : Architecture::amd_rdna;
    case plan::Vendor::intel:
      if (device.min_subgroup_size == 16) return Architecture::intel_xe2;
      return matrices || id >> 8 == 0x56 ? Architecture::intel_xe_hpg : Architecture::unknown;
    case plan::Vendor::nvidia:
      // TU102 is 0x1e02, and nothing older is above it.
      return matrices || id >= 0x1e00 ? Architecture::nvidia_turing : Architecture::unknown;
    case plan::Vendor::qualcomm:
      return number_after(name, "Adreno") >= 700 ? Architecture::qualcomm_a7xx : Architecture::unknown;
    case plan::Vendor::apple:
    case plan::Vendor::arm:
    case plan::Vendor::cpu:
    case plan::Vendor::other: break;
  }
  return Architecture::unknown;
}

// Where unpackHalf2x16 keeps denormals: pipelines ask for it where the device offers that (vk/pipelines.cpp). lavapipe
// and SwiftShader do it unasked, as the device tests see.
bool keeps_half_denormals(const vk::PhysicalDevice& device) {
  return device.half_denormals || device.driver_id == VK_DRIVER_ID_MESA_LLVMPIPE ||
         device.driver_id == VK_DRIVER_ID_GOOGLE_SWIFTSHADER;
}

// The largest, in subgroups of the smallest size that the device has, which is what its matrices are made for: 32 lanes
// on AMD, 8 and 16 on Intel, though both prefer larger subgroups elsewhere.
plan::MatrixUnits matrices_of(const vk::PhysicalDevice& device) {
  plan::MatrixUnits units;
  for (const vk::MatrixSize& size : device.matrices) {
    if (size.m * size.n * size.k <= units.m * units.n * units.k) continue;
    units = {size.m, size.n, size.k, device.min_subgroup_size};
  }
  return units;
}

}  // namespace

Result<plan::Access> choose_access(const vk::PhysicalDevice& device, AccessMode wish) {
  using kernels::AccessMode;
  const auto always = plan::Access::all;
  switch (wish) {
    case brontes::AccessMode::storage: return always(AccessMode::storage);
    case brontes::AccessMode::texel: return always(AccessMode::texel);
    case brontes::AccessMode::pointer:
      if (device.pointers) return always(AccessMode::pointer);
      return Error(Errc::unsupported,
                   device.info.name + " lacks buffer device addresses or 64-bit integers in shaders");
    case brontes::AccessMode::automatic: break;
  }
  if (device.driver_id != VK_DRIVER_ID_MESA_LLVMPIPE) return always(AccessMode::storage);
  if (old_lavapipe(device) || !device.pointers) return always(AccessMode::texel);
  // Which is faster depends on what gathers cost the CPU. On three kinds of them panels and reductions did better with
  // texels, by 1.4 and by 1.3 to 2.7; products along k with addresses, but for one kind, by up to 1.6. What is
  // elementwise was up to 1.8 times as fast in either way: tune/calibration.cpp finds out.
  plan::Access access = always(AccessMode::texel);
  access.general = access.elementwise = AccessMode::pointer;
  return access;
}

plan::Traits traits_of(const vk::PhysicalDevice& device, const SimulatedLimits& simulate) {
  auto lowered = [](auto own, auto wish) { return wish == 0 ? own : std::min<decltype(own)>(own, wish); };
  plan::Traits traits;
  for (std::size_t i = 0; i < 3; ++i) {
    traits.max_group_count[i] = lowered(device.info.max_group_count[i], simulate.max_group_count);
  }
  traits.max_group_invocations = lowered(device.info.max_group_invocations, simulate.max_group_invocations);
  traits.max_shared_bytes = lowered(device.info.max_shared_bytes, simulate.max_shared_bytes);
  // Ranges are bound in whole vec4s, and lie in one allocation each.
  const std::uint64_t most_bytes = std::min<std::uint64_t>(device.info.max_storage_range, device.max_allocation);
  traits.max_storage_range = lowered(most_bytes, simulate.max_storage_range) / 16 * 16;
  // Reserved ranges end on this alignment, so it also has to hold a vec4.
  traits.storage_alignment = static_cast<std::uint32_t>(std::max<VkDeviceSize>(
      {16, device.limits.minStorageBufferOffsetAlignment, device.limits.minTexelBufferOffsetAlignment}));
  traits.max_texel_elements = device.limits.maxTexelBufferElements;
  traits.subgroup_size = std::max(1u, lowered(device.info.subgroup_size, simulate.subgroup_size));
  traits.real_subgroup_size = std::max(1u, device.info.subgroup_size);
  // Shared memory of the kernels has room for the sums of subgroups of four lanes or more.
  traits.subgroup_operations =
      device.subgroup_operations && device.min_subgroup_size >= 4 && !simulate.no_subgroup_operations;
  traits.exact_subgroups = (device.one_subgroup_size || (device.required_subgroup_size && device.full_subgroups)) &&
                           !simulate.no_subgroup_size_control;
  if (traits.exact_subgroups && traits.subgroup_size == traits.real_subgroup_size)
    traits.matrices = matrices_of(device);
  traits.cpu = device.info.type == DeviceType::cpu && simulate.vendor_id == 0;
  traits.vendor = vendor_of(device, simulate.vendor_id);
  traits.architecture = architecture_of(device, traits.vendor);
  traits.half_denormals = keeps_half_denormals(device) && !simulate.no_float_controls;
  // What the slower ones of a kind do at least.
  if (device.info.type == DeviceType::discrete_gpu) traits.speed = {1e11, 5e10};
  // lavapipe of Mesa 22 ends loops after about 65535 iterations; 25 does not.
  if (old_lavapipe(device)) traits.max_loop_iterations = 60000;
  traits.max_loop_iterations = lowered(traits.max_loop_iterations, simulate.max_loop_iterations);
  return traits;
}

}  // namespace brontes::engine
