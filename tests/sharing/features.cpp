// What a host's device is created with, and what Brontes makes of it.
#include "host.hpp"

namespace brontes::test {
namespace {

struct Chain {
  VkPhysicalDeviceFeatures2 features{};
  VkPhysicalDeviceVulkan12Features vulkan12{};
  Chain() {
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    features.pNext = &vulkan12;
    vulkan12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;
};

vulkan::DeviceFeatures recommended() {
  const vulkan::Handles h = vulkan::handles(shared_device());
  Result<vulkan::DeviceFeatures> features =
      vulkan::recommended_features(h.get_instance_proc_addr, h.instance, h.physical_device);
  REQUIRE_OK(features.error());
  return std::move(features).value();
}

bool has_pointers() {
  DeviceOptions options = checked_options();
  options.access = AccessMode::pointer;
  return Device::open(options).error().code == Errc::ok;
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "a device created with the recommended features is adopted with all of them",
                 "[vulkan][features]") {
  const vulkan::DeviceFeatures wanted = recommended();
  CHECK(wanted.vulkan12.timelineSemaphore == VK_TRUE);
  CHECK((wanted.vulkan12.bufferDeviceAddress == VK_TRUE) == has_pointers());
  CHECK((wanted.vulkan10.shaderInt64 == VK_TRUE) == has_pointers());
  Chain chain;
  REQUIRE_OK(vulkan::merge(wanted, chain.features));
  HostOptions options;
  options.features = &chain.features;
  options.extensions = wanted.extensions;
  Host host(options);
  host.external.features = &chain.features;
  host.external.extensions = wanted.extensions;
  host.external.api_version = VK_API_VERSION_1_2;
  for (AccessMode mode : {AccessMode::automatic, AccessMode::pointer}) {
    DeviceOptions device_options = checked_options();
    device_options.access = mode;
    const Result<Device> device = vulkan::adopt(host.external, device_options);
    if (mode == AccessMode::pointer && !has_pointers()) {
      CHECK(device.error().code == Errc::unsupported);
      continue;
    }
    REQUIRE_OK(device.error());
    CHECK((mode != AccessMode::pointer || device->info().access == AccessMode::pointer));
    check_device_works(*device);
  }
}

TEST_CASE_METHOD(DeviceTest, "what a device was created without is not used", "[vulkan][features]") {
  Chain chain;
  REQUIRE_OK(vulkan::merge(vulkan::required_features(), chain.features));
  CHECK(vulkan::required_features().extensions.empty());
  HostOptions options;
  options.features = &chain.features;
  Host host(options);
  host.external.features = &chain.features;
  host.external.pointers = true;  // the chain counts
  DeviceOptions pointer = checked_options();
  pointer.access = AccessMode::pointer;
  CHECK(vulkan::adopt(host.external, pointer).error().code == Errc::unsupported);
  const Result<Device> device = vulkan::adopt(host.external, checked_options());
  REQUIRE_OK(device.error());
  CHECK(device->info().access != AccessMode::pointer);
  check_device_works(*device);
}

TEST_CASE_METHOD(DeviceTest, "a device without timeline semaphores is refused by that name", "[vulkan][features]") {
  Chain chain;
  HostOptions options;
  options.features = &chain.features;
  Host host(options);
  host.external.features = &chain.features;
  const Error error = vulkan::adopt(host.external, checked_options()).error();
  CHECK(error.code == Errc::unsupported);
  CHECK(contains(error.message, "timelineSemaphore"));
}

TEST_CASE_METHOD(DeviceTest, "features are merged into whichever structures a chain has", "[vulkan][features]") {
  vulkan::DeviceFeatures wanted = vulkan::required_features();
  wanted.vulkan12.bufferDeviceAddress = VK_TRUE;
  wanted.vulkan10.shaderInt64 = VK_TRUE;

  VkPhysicalDeviceFeatures2 bare{};
  bare.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  Error error = vulkan::merge(wanted, bare);
  CHECK(error.code == Errc::invalid_argument);
  CHECK(contains(error.message, "timelineSemaphore"));
  CHECK(bare.features.shaderInt64 == VK_FALSE);

  VkPhysicalDeviceTimelineSemaphoreFeatures timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
  bare.pNext = &timeline;
  error = vulkan::merge(wanted, bare);
  CHECK(error.code == Errc::invalid_argument);
  CHECK(contains(error.message, "bufferDeviceAddress"));
  CHECK(timeline.timelineSemaphore == VK_FALSE);

  VkPhysicalDeviceBufferDeviceAddressFeatures addresses{};
  addresses.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES;
  timeline.pNext = &addresses;
  bare.features.robustBufferAccess = VK_TRUE;
  REQUIRE_OK(vulkan::merge(wanted, bare));
  CHECK(timeline.timelineSemaphore == VK_TRUE);
  CHECK(addresses.bufferDeviceAddress == VK_TRUE);
  CHECK(bare.features.shaderInt64 == VK_TRUE);
  CHECK(bare.features.robustBufferAccess == VK_TRUE);

  Chain whole;
  whole.vulkan12.hostQueryReset = VK_TRUE;
  REQUIRE_OK(vulkan::merge(wanted, whole.features));
  CHECK(whole.vulkan12.timelineSemaphore == VK_TRUE);
  CHECK(whole.vulkan12.bufferDeviceAddress == VK_TRUE);
  CHECK(whole.vulkan12.hostQueryReset == VK_TRUE);
  CHECK(vulkan::recommended_features(nullptr, nullptr, nullptr).error().code == Errc::invalid_argument);
}

TEST_CASE_METHOD(DeviceTest, "an instance for an older Vulkan is what the error is about", "[vulkan][features]") {
  for (std::uint32_t version : {VK_API_VERSION_1_0, VK_API_VERSION_1_1}) {
    HostOptions options;
    options.api_version = version;
    options.timeline = false;
    options.validation = false;
    options.debug_utils = false;
    Host host(options);
    const Error unknown = vulkan::adopt(host.external, checked_options()).error();
    INFO(unknown.message);
    // A driver that treats 1.1 like 1.2 cannot be told from one that need not.
    if (version == VK_API_VERSION_1_0 || unknown) {
      CHECK(unknown.code == Errc::unsupported);
      CHECK(contains(unknown.message, "the VkInstance was created for Vulkan 1.0"));
    }
    if (contains(shared_device().info().name, "llvmpipe")) CHECK(unknown.code == Errc::unsupported);
    host.external.api_version = version;
    const Error known = vulkan::adopt(host.external, checked_options()).error();
    INFO(known.message);
    CHECK(known.code == Errc::unsupported);
    CHECK(
        contains(known.message, version == VK_API_VERSION_1_0 ? "created for Vulkan 1.0 " : "created for Vulkan 1.1 "));
  }
}

}  // namespace brontes::test
