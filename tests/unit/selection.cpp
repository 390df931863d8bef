// Which device is chosen, decided without any.
#include "vk/physical_device.hpp"

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <vector>

using brontes::DeviceInfo;
using brontes::DeviceType;
using brontes::Errc;
using brontes::vk::choose_device;

namespace {

DeviceInfo device(const char* name, DeviceType type, std::uint8_t uuid, bool suitable = true) {
  DeviceInfo info;
  info.name = name;
  info.type = type;
  info.uuid.fill(uuid);
  info.suitable = suitable;
  if (!suitable) info.unsuitable_because = "it has no compute queue";
  return info;
}

std::vector<DeviceInfo> numbered(std::vector<DeviceInfo> devices) {
  for (std::size_t i = 0; i < devices.size(); ++i) devices[i].index = static_cast<std::uint32_t>(i);
  return devices;
}

const std::vector<DeviceInfo> all = numbered({
    device("llvmpipe (LLVM 15, 256 bits)", DeviceType::cpu, 0x11),
    device("Virtual GPU", DeviceType::virtual_gpu, 0x22),
    device("Integrated 7", DeviceType::integrated_gpu, 0x33),
    device("Old Discrete", DeviceType::discrete_gpu, 0x44, false),
    device("Discrete A", DeviceType::discrete_gpu, 0x55),
    device("Discrete B", DeviceType::discrete_gpu, 0x66),
});

}  // namespace

TEST_CASE("the best device is discrete, integrated, virtual or CPU, in that order", "[selection]") {
  std::vector<DeviceInfo> devices = all;
  CHECK(choose_device(devices, "", true).value() == 4);
  devices.resize(4);
  CHECK(choose_device(devices, "", true).value() == 2);
  devices.resize(2);
  CHECK(choose_device(devices, "", true).value() == 1);
  devices.resize(1);
  CHECK(choose_device(devices, "", true).value() == 0);
}

TEST_CASE("refusing CPU drivers leaves the others", "[selection]") {
  CHECK(choose_device(all, "", false).value() == 4);
  const std::vector<DeviceInfo> only(all.begin(), all.begin() + 1);
  const brontes::Error error = choose_device(only, "", false).error();
  CHECK(error.code == Errc::no_device);
  CHECK(error.message.find("llvmpipe") != std::string::npos);
  CHECK(error.message.find("CPU") != std::string::npos);
}

TEST_CASE("a wish is an index, a UUID or a part of the name", "[selection]") {
  CHECK(choose_device(all, "1", true).value() == 1);
  CHECK(choose_device(all, "33333333-3333-3333-3333-333333333333", true).value() == 2);
  CHECK(choose_device(all, std::string(32, '6'), true).value() == 5);
  CHECK(choose_device(all, "discrete b", true).value() == 5);
  CHECK(choose_device(all, "LLVMPIPE", true).value() == 0);
}

TEST_CASE("a number that is no index may still be part of a name", "[selection]") {
  CHECK(choose_device(all, "256", true).value() == 0);
}

TEST_CASE("a name that fits several takes the first usable one", "[selection]") {
  CHECK(choose_device(all, "discrete", true).value() == 4);
}

TEST_CASE("an unsuitable device is refused with its reason, also when asked for", "[selection]") {
  for (const char* wish : {"3", "old", "44444444444444444444444444444444"}) {
    const brontes::Error error = choose_device(all, wish, true).error();
    CHECK(error.code == Errc::no_device);
    CHECK(error.message.find(wish) != std::string::npos);
    CHECK(error.message.find("no compute queue") != std::string::npos);
  }
}

TEST_CASE("a wish that matches nothing lists every device", "[selection]") {
  for (const char* wish : {"7000", "9999", "99999999999999999999", "geforce", "-1"}) {
    const brontes::Error error = choose_device(all, wish, true).error();
    INFO(wish);
    CHECK(error.code == Errc::no_device);
    for (const DeviceInfo& d : all) CHECK(error.message.find(d.name) != std::string::npos);
  }
}
