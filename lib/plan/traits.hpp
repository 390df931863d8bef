// What planning knows of a device. Plain numbers, so that any device can be planned for on any machine.
#pragma once

#include "kernels.hpp"
#include "plan/speed.hpp"

#include <array>
#include <cstdint>

namespace brontes::plan {

struct Tuning;
struct TunedMatmul;

/// Families of kernels that load and store in the same way.
enum class Family : std::uint8_t {
  products,     // lanes run along k; and kernels that have no choice
  panels,       // products whose lanes run along n
  elementwise,  // about as much is stored as is loaded
  reductions,   // with row ops and ops that move elements
};

/// How each family reaches memory.
struct Access {
  kernels::AccessMode general = kernels::AccessMode::storage;  // Family::products
  kernels::AccessMode panels = kernels::AccessMode::storage;
  kernels::AccessMode elementwise = kernels::AccessMode::storage;
  kernels::AccessMode reductions = kernels::AccessMode::storage;

  static constexpr Access all(kernels::AccessMode mode) noexcept { return {mode, mode, mode, mode}; }
  constexpr kernels::AccessMode of(Family family) const noexcept {
    switch (family) {
      case Family::products: break;
      case Family::panels: return panels;
      case Family::elementwise: return elementwise;
      case Family::reductions: return reductions;
    }
    return general;
  }
  constexpr void set(Family family, kernels::AccessMode mode) noexcept {
    switch (family) {
      case Family::products: general = mode; break;
      case Family::panels: panels = mode; break;
      case Family::elementwise: elementwise = mode; break;
      case Family::reductions: reductions = mode; break;
    }
  }

  friend bool operator==(const Access&, const Access&) = default;
};

/// Who made the device; `cpu` is any driver that runs on one.
enum class Vendor : std::uint8_t { other, amd, apple, arm, cpu, intel, nvidia, qualcomm };

/// Generations of GPUs that tiles are chosen for, as far as it matters; `unknown` is also any older one.
enum class Architecture : std::uint8_t {
  unknown,
  amd_rdna,   // 1 and 2: subgroups of 32, no matrix units
  amd_rdna3,  // with matrix units
  amd_rdna4,
  intel_xe_hpg,   // Alchemist: subgroups of 8 to 32, matrix units
  intel_xe2,      // Lunar Lake, Battlemage and later: subgroups of 16 and 32
  nvidia_turing,  // and later: matrix units
  qualcomm_a7xx,  // and later
};

/// What a subgroup multiplies at once, m x k by k x n of f16 with sums in f32 (VK_KHR_cooperative_matrix), and how many
/// lanes it has for that. All 0 where the device has no matrix units.
struct MatrixUnits {
  std::uint32_t m = 0, n = 0, k = 0;
  std::uint32_t lanes = 0;

  explicit operator bool() const noexcept { return m != 0; }
};

struct Traits {
  std::array<std::uint32_t, 3> max_group_count{65535, 65535, 65535};
  std::uint32_t max_group_invocations = 128;  // and per axis x
  std::uint32_t max_shared_bytes = 16384;
  std::uint64_t max_storage_range = std::uint64_t{1} << 27;
  std::uint32_t storage_alignment = 256;
  /// How kernels that can choose reach memory.
  Access access;
  std::uint64_t max_texel_elements = 65536;
  std::uint32_t subgroup_size = 32;
  /// The device's own, where a smaller one is simulated, else 0 or the same: workgroups consist of these.
  std::uint32_t real_subgroup_size = 0;
  bool subgroup_operations = true;  // basic, arithmetic, ballot and shuffle, in compute, in subgroups of 4 or more
  /// A workgroup of whole subgroups consists of real_subgroup_size lanes each, all of which run: pipelines can require
  /// it, or the device has no other size. Where this is false, subgroup_size may be more than what runs.
  bool exact_subgroups = true;
  /// Lanes are SIMD lanes of a CPU: workgroup barriers and shared memory are dear, small workgroups
  /// are cheap.
  bool cpu = false;
  Vendor vendor = Vendor::other;
  Architecture architecture = Architecture::unknown;
  MatrixUnits matrices;
  /// Shaders get halves below the smallest normal one as what they are worth.
  bool half_denormals = false;
  /// Loop iterations one invocation may make in all. Mesa 22's lavapipe silently ends loops at
  /// about 65535, so the planner keeps below it.
  std::uint64_t max_loop_iterations = ~std::uint64_t{0};
  /// As far as it is known.
  Speed speed;
  /// What was measured on this device, if anything was.
  const Tuning* tuning = nullptr;
};

/// Lanes that workgroups are made of.
constexpr std::uint32_t real_lanes(const Traits& traits) noexcept {
  return traits.subgroup_size > traits.real_subgroup_size ? traits.subgroup_size : traits.real_subgroup_size;
}

}  // namespace brontes::plan
