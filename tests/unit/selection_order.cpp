// Choosing a device, for every list of devices there can be; and what planning may use of it.
#include "engine/traits.hpp"
#include "vk/physical_device.hpp"

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using namespace brontes;
using vk::choose_device;

namespace {

constexpr DeviceType best_first[] = {DeviceType::discrete_gpu, DeviceType::integrated_gpu, DeviceType::virtual_gpu,
                                     DeviceType::other, DeviceType::cpu};

std::size_t place(DeviceType type) {
  std::size_t i = 0;
  while (best_first[i] != type) ++i;
  return i;
}

DeviceInfo device(std::uint32_t index, DeviceType type, bool suitable) {
  DeviceInfo info;
  info.index = index;
  info.name = "device " + std::string(1, static_cast<char>('a' + index));
  info.type = type;
  info.uuid.fill(static_cast<std::uint8_t>(0xa0 + index));
  info.suitable = suitable;
  if (!suitable) info.unsuitable_because = "reason " + std::to_string(index);
  return info;
}

// Every list of `size` devices, of every type, suitable or not.
std::vector<std::vector<DeviceInfo>> all_lists(std::uint32_t size) {
  std::vector<std::vector<DeviceInfo>> lists{{}};
  for (std::uint32_t i = 0; i < size; ++i) {
    std::vector<std::vector<DeviceInfo>> longer;
    for (const auto& list : lists) {
      for (const DeviceType type : best_first) {
        for (const bool suitable : {false, true}) {
          longer.push_back(list);
          longer.back().push_back(device(i, type, suitable));
        }
      }
    }
    lists = std::move(longer);
  }
  return lists;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

vk::PhysicalDevice physical() {
  vk::PhysicalDevice device;
  device.info.type = DeviceType::discrete_gpu;
  device.info.max_group_count = {1000, 2000, 3000};
  device.info.max_group_invocations = 512;
  device.info.max_shared_bytes = 32768;
  device.info.max_storage_range = 1u << 30;
  device.info.subgroup_size = 64;
  device.limits.minStorageBufferOffsetAlignment = 64;
  return device;
}

}  // namespace

TEST_CASE("of all lists of three devices the first of the best suitable type is chosen", "[selection]") {
  for (const bool allow_cpu : {false, true}) {
    for (const auto& devices : all_lists(3)) {
      const DeviceInfo* best = nullptr;
      for (const DeviceInfo& d : devices) {
        if (!d.suitable || (!allow_cpu && d.type == DeviceType::cpu)) continue;
        if (best == nullptr || place(d.type) < place(best->type)) best = &d;
      }
      const auto chosen = choose_device(devices, "", allow_cpu);
      REQUIRE(chosen.has_value() == (best != nullptr));
      if (best != nullptr) REQUIRE(*chosen == best->index);
    }
  }
}

TEST_CASE("a refusal lists every device with its reason", "[selection]") {
  for (const auto& devices : all_lists(2)) {
    for (const char* wish : {"", "0", "device b", "no such"}) {
      const auto chosen = choose_device(devices, wish, false);
      if (chosen) {
        REQUIRE((devices[*chosen].suitable && devices[*chosen].type != DeviceType::cpu));
        continue;
      }
      const Error error = chosen.error();
      REQUIRE(error.code == Errc::no_device);
      for (const DeviceInfo& d : devices) {
        REQUIRE(contains(error.message, d.name));
        if (!d.suitable) REQUIRE(contains(error.message, d.unsuitable_because));
        if (d.suitable && d.type == DeviceType::cpu) REQUIRE(contains(error.message, "CPU drivers are not allowed"));
      }
    }
  }
}

TEST_CASE("no devices at all is an error, whatever is wished for", "[selection]") {
  for (const char* wish : {"", "0", "x", "a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0"}) {
    CHECK(choose_device({}, wish, true).error().code == Errc::no_device);
  }
}

TEST_CASE("a wish beats the order of types", "[selection]") {
  const std::vector<DeviceInfo> devices{device(0, DeviceType::discrete_gpu, true), device(1, DeviceType::cpu, true)};
  CHECK(choose_device(devices, "1", true).value() == 1);
  CHECK(choose_device(devices, "DEVICE B", true).value() == 1);
  CHECK(choose_device(devices, "A1a1a1a1-a1a1-a1a1-a1a1-a1a1a1a1a1a1", true).value() == 1);
}

TEST_CASE("a wish does not override allow_cpu", "[selection]") {
  const std::vector<DeviceInfo> devices{device(0, DeviceType::discrete_gpu, true), device(1, DeviceType::cpu, true)};
  for (const char* wish : {"1", "device b", "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1"}) {
    const Error error = choose_device(devices, wish, false).error();
    CHECK(error.code == Errc::no_device);
    CHECK(contains(error.message, "CPU drivers are not allowed"));
  }
}

TEST_CASE("traits are the device's own limits", "[selection]") {
  const plan::Traits traits = engine::traits_of(physical(), {});
  CHECK(traits.max_group_count == std::array<std::uint32_t, 3>{1000, 2000, 3000});
  CHECK(traits.max_group_invocations == 512);
  CHECK(traits.max_shared_bytes == 32768);
  CHECK(traits.max_storage_range == 1u << 30);
  CHECK(traits.storage_alignment == 64);
  CHECK(traits.subgroup_size == 64);
  CHECK_FALSE(traits.cpu);
  CHECK(traits.max_loop_iterations == ~std::uint64_t{0});
}

TEST_CASE("no tensor is larger than what can be allocated", "[selection]") {
  vk::PhysicalDevice device = physical();
  device.max_allocation = (1u << 29) + 4;
  CHECK(engine::traits_of(device, {}).max_storage_range == 1u << 29);
  device.max_allocation = std::uint64_t{1} << 40;
  CHECK(engine::traits_of(device, {}).max_storage_range == 1u << 30);
}

TEST_CASE("a device with too few storage buffers for the kernels is unsuitable, with the numbers", "[selection]") {
  VkPhysicalDeviceLimits limits{};
  limits.maxPerStageDescriptorStorageBuffers = limits.maxDescriptorSetStorageBuffers = limits.maxPerStageResources = 64;
  CHECK(vk::missing_bindings(limits).empty());
  for (std::uint32_t VkPhysicalDeviceLimits::*limit :
       {&VkPhysicalDeviceLimits::maxPerStageDescriptorStorageBuffers,
        &VkPhysicalDeviceLimits::maxDescriptorSetStorageBuffers, &VkPhysicalDeviceLimits::maxPerStageResources}) {
    VkPhysicalDeviceLimits few = limits;
    few.*limit = 4;  // what Vulkan guarantees of storage buffers
    CHECK(contains(vk::missing_bindings(few), "its shaders have 4 "));
  }
}

TEST_CASE("subgroups count as exact where pipelines can require them or there is one size only", "[selection]") {
  vk::PhysicalDevice device = physical();
  device.min_subgroup_size = 8;
  CHECK_FALSE(engine::traits_of(device, {}).exact_subgroups);
  device.full_subgroups = true;
  CHECK_FALSE(engine::traits_of(device, {}).exact_subgroups);
  device.required_subgroup_size = true;
  CHECK(engine::traits_of(device, {}).exact_subgroups);
  device.full_subgroups = false;
  CHECK_FALSE(engine::traits_of(device, {}).exact_subgroups);
  device.one_subgroup_size = true;
  CHECK(engine::traits_of(device, {}).exact_subgroups);
  device.full_subgroups = true;
  SimulatedLimits without;
  without.no_subgroup_size_control = true;
  CHECK_FALSE(engine::traits_of(device, without).exact_subgroups);
}

TEST_CASE("vendors are known by their number, their driver or by being a CPU, and can be simulated", "[selection]") {
  vk::PhysicalDevice device = physical();
  const auto vendor = [&](std::uint32_t simulated = 0) {
    SimulatedLimits limits;
    limits.vendor_id = simulated;
    return engine::traits_of(device, limits).vendor;
  };
  for (const auto& [id, want] : {std::pair(0x1002u, plan::Vendor::amd), std::pair(0x106bu, plan::Vendor::apple),
                                 std::pair(0x10deu, plan::Vendor::nvidia), std::pair(0x13b5u, plan::Vendor::arm),
                                 std::pair(0x5143u, plan::Vendor::qualcomm), std::pair(0x8086u, plan::Vendor::intel),
                                 std::pair(0x10005u, plan::Vendor::other)}) {
    device.info.vendor_id = id;
    device.info.type = DeviceType::discrete_gpu;
    CHECK(vendor() == want);
    device.info.type = DeviceType::cpu;
    CHECK(vendor() == plan::Vendor::cpu);
    CHECK(vendor(id) == want);
  }
  device.info.type = DeviceType::integrated_gpu;
  device.driver_id = static_cast<VkDriverId>(26);  // Honeykrisp, whose number is Mesa's
  CHECK(vendor() == plan::Vendor::apple);
}

TEST_CASE("architectures are known by subgroups and matrices, and else by a device's number or name", "[selection]") {
  using plan::Architecture;
  struct Known {
    std::uint32_t vendor, device;
    const char* name;
    std::uint32_t min_subgroup;
    bool matrices;
    Architecture architecture;
  };
  for (const Known& known : {
           Known{0x1002, 0x67df, "AMD Radeon RX 580 Series (RADV POLARIS10)", 64, false, Architecture::unknown},
           Known{0x1002, 0x73bf, "AMD Radeon RX 6800 (RADV NAVI21)", 32, false, Architecture::amd_rdna},
           Known{0x1002, 0x744c, "AMD Radeon RX 7900 XTX (RADV NAVI31)", 32, true, Architecture::amd_rdna3},
           Known{0x1002, 0x7550, "AMD Radeon RX 9070 XT", 32, true, Architecture::amd_rdna4},
           Known{0x1002, 0, "AMD Radeon Graphics (RADV GFX1201)", 32, true, Architecture::amd_rdna4},
           Known{0x8086, 0x9a49, "Intel(R) Iris(R) Xe Graphics (TGL GT2)", 8, false, Architecture::unknown},
           Known{0x8086, 0x56a0, "Intel(R) Arc(tm) A770 Graphics (DG2)", 8, true, Architecture::intel_xe_hpg},
           Known{0x8086, 0x56a0, "Intel(R) Arc(TM) A770 Graphics", 8, false, Architecture::intel_xe_hpg},
           Known{0x8086, 0x64a0, "Intel(R) Arc(tm) Graphics (LNL)", 16, true, Architecture::intel_xe2},
           Known{0x10de, 0x1b80, "NVIDIA GeForce GTX 1080", 32, false, Architecture::unknown},
           Known{0x10de, 0x2684, "NVIDIA GeForce RTX 4090", 32, true, Architecture::nvidia_turing},
           Known{0x10de, 0x2184, "NVIDIA GeForce GTX 1660", 32, false, Architecture::nvidia_turing},
           Known{0x5143, 0x6030001, "Turnip Adreno (TM) 630", 64, false, Architecture::unknown},
           Known{0x5143, 0x43050a01, "Adreno (TM) 740", 64, false, Architecture::qualcomm_a7xx},
           Known{0x106b, 0, "Apple M1", 32, false, Architecture::unknown},
           Known{0x13b5, 0, "Mali-G715", 16, false, Architecture::unknown},
       }) {
    INFO(known.name);
    vk::PhysicalDevice device = physical();
    device.info.type = DeviceType::discrete_gpu;
    device.info.vendor_id = known.vendor;
    device.info.device_id = known.device;
    device.info.name = known.name;
    device.min_subgroup_size = known.min_subgroup;
    if (known.matrices) device.matrices = {{16, 16, 16}};
    CHECK(engine::traits_of(device, {}).architecture == known.architecture);
    device.info.type = DeviceType::cpu;
    CHECK(engine::traits_of(device, {}).architecture == Architecture::unknown);
  }
}

TEST_CASE("halves keep their denormals where pipelines can ask for it, and where the driver is known to",
          "[selection]") {
  vk::PhysicalDevice device = physical();
  device.info.type = DeviceType::discrete_gpu;
  CHECK_FALSE(engine::traits_of(device, {}).half_denormals);
  device.half_denormals = true;
  CHECK(engine::traits_of(device, {}).half_denormals);
  SimulatedLimits without;
  without.no_float_controls = true;
  CHECK_FALSE(engine::traits_of(device, without).half_denormals);
  device.half_denormals = false;
  for (const VkDriverId known : {VK_DRIVER_ID_MESA_LLVMPIPE, VK_DRIVER_ID_GOOGLE_SWIFTSHADER}) {
    device.driver_id = known;
    CHECK(engine::traits_of(device, {}).half_denormals);
    CHECK_FALSE(engine::traits_of(device, without).half_denormals);
  }
}

TEST_CASE("subgroups that may have less than four lanes are not used", "[selection]") {
  vk::PhysicalDevice device = physical();
  device.subgroup_operations = true;
  device.min_subgroup_size = 4;
  CHECK(engine::traits_of(device, {}).subgroup_operations);
  device.min_subgroup_size = 1;
  CHECK_FALSE(engine::traits_of(device, {}).subgroup_operations);
}

TEST_CASE("simulated limits lower traits and never raise them", "[selection]") {
  SimulatedLimits low;
  low.max_group_count = 1500;
  low.max_group_invocations = 64;
  low.max_shared_bytes = 1024;
  low.max_storage_range = 4096;
  low.max_loop_iterations = 77;
  const plan::Traits lowered = engine::traits_of(physical(), low);
  CHECK(lowered.max_group_count == std::array<std::uint32_t, 3>{1000, 1500, 1500});
  CHECK(lowered.max_group_invocations == 64);
  CHECK(lowered.max_shared_bytes == 1024);
  CHECK(lowered.max_storage_range == 4096);
  CHECK(lowered.max_loop_iterations == 77);

  SimulatedLimits high;
  high.max_group_count = high.max_group_invocations = high.max_shared_bytes = 0xffffffff;
  high.max_storage_range = ~std::uint64_t{0};
  const plan::Traits same = engine::traits_of(physical(), high);
  CHECK(same.max_group_count == std::array<std::uint32_t, 3>{1000, 2000, 3000});
  CHECK(same.max_group_invocations == 512);
  CHECK(same.max_shared_bytes == 32768);
  CHECK(same.max_storage_range == 1u << 30);
}

TEST_CASE("old lavapipe gets a loop allowance, other drivers and newer ones do not", "[selection]") {
  vk::PhysicalDevice device = physical();
  device.info.type = DeviceType::cpu;
  device.driver_id = VK_DRIVER_ID_MESA_LLVMPIPE;
  // What every lavapipe says its version is; the real one is in the text.
  device.info.driver_version = 1;
  device.info.driver = "llvmpipe Mesa 22.3.6 (LLVM 15.0.6)";
  CHECK(engine::traits_of(device, {}).max_loop_iterations < 65535);
  CHECK(engine::traits_of(device, {}).cpu);
  SimulatedLimits high;
  high.max_loop_iterations = 0xffffffff;
  CHECK(engine::traits_of(device, high).max_loop_iterations < 65535);
  device.info.driver = "llvmpipe";  // some build that does not say
  CHECK(engine::traits_of(device, {}).max_loop_iterations < 65535);
  device.info.driver = "llvmpipe Mesa 25.0.7-2~bpo12+1 (LLVM 15.0.6)";
  CHECK(engine::traits_of(device, {}).max_loop_iterations == ~std::uint64_t{0});
  device.driver_id = VK_DRIVER_ID_GOOGLE_SWIFTSHADER;
  device.info.driver = "SwiftShader driver";
  CHECK(engine::traits_of(device, {}).max_loop_iterations == ~std::uint64_t{0});
}

TEST_CASE("how memory is reached goes by the driver, unless it is asked for", "[selection]") {
  using kernels::AccessMode;
  vk::PhysicalDevice device = physical();
  device.pointers = true;
  auto modes = [&](brontes::AccessMode wish) {
    const plan::Access access = engine::choose_access(device, wish).value();
    CHECK(access.reductions == access.panels);
    CHECK(access.elementwise == access.general);
    return std::pair(access.general, access.panels);
  };
  CHECK(modes(brontes::AccessMode::automatic) == std::pair(AccessMode::storage, AccessMode::storage));
  device.driver_id = VK_DRIVER_ID_MESA_LLVMPIPE;
  device.info.driver = "llvmpipe Mesa 22.3.6 (LLVM 15.0.6)";
  CHECK(modes(brontes::AccessMode::automatic) == std::pair(AccessMode::texel, AccessMode::texel));
  device.info.driver = "llvmpipe Mesa 25.0.7 (LLVM 15.0.6)";
  CHECK(modes(brontes::AccessMode::automatic) == std::pair(AccessMode::pointer, AccessMode::texel));
  CHECK(modes(brontes::AccessMode::pointer) == std::pair(AccessMode::pointer, AccessMode::pointer));
  CHECK(modes(brontes::AccessMode::storage) == std::pair(AccessMode::storage, AccessMode::storage));
  device.pointers = false;
  CHECK(modes(brontes::AccessMode::automatic) == std::pair(AccessMode::texel, AccessMode::texel));
  CHECK(engine::choose_access(device, brontes::AccessMode::pointer).error().code == Errc::unsupported);
}

TEST_CASE("alignment in the arena holds a vec4, and a subgroup is never empty", "[selection]") {
  vk::PhysicalDevice device = physical();
  device.limits.minStorageBufferOffsetAlignment = 4;
  device.info.subgroup_size = 0;
  CHECK(engine::traits_of(device, {}).storage_alignment == 16);
  CHECK(engine::traits_of(device, {}).subgroup_size == 1);
}
