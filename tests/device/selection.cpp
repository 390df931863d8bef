// Finding a device: by default, by wish, and not at all.
#include "child.hpp"
#include "fixture.hpp"

#include <cctype>
#include <set>

namespace brontes::test {
namespace {

std::string uuid_text(const std::array<std::uint8_t, 16>& uuid, bool dashes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (dashes && (i == 4 || i == 6 || i == 8 || i == 10)) text += '-';
    text += digits[uuid[i] >> 4];
    text += digits[uuid[i] & 15];
  }
  return text;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

Result<Device> open_selected(const std::string& wish) {
  DeviceOptions options = checked_options();
  options.select = wish;
  return Device::open(options);
}

// The first two lines of a child's output: a code, and the message or name.
std::pair<std::string, std::string> two_lines(const ChildResult& result) {
  REQUIRE(result.status == 0);
  const std::size_t end = result.output.find('\n');
  REQUIRE(end != std::string::npos);
  return {result.output.substr(0, end), result.output.substr(end + 1)};
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "list describes every device", "[device]") {
  (void)shared_device();
  const std::vector<DeviceInfo> devices = Device::list().value();
  REQUIRE_FALSE(devices.empty());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    CHECK(devices[i].index == i);
    CHECK_FALSE(devices[i].name.empty());
    CHECK(devices[i].suitable == devices[i].unsuitable_because.empty());
    if (!devices[i].suitable) continue;
    CHECK(devices[i].api_version >= (1u << 22 | 2u << 12));
    CHECK(devices[i].max_group_invocations >= 128);
    CHECK(devices[i].max_shared_bytes >= 16384);
    CHECK(devices[i].max_group_count[0] >= 65535);
    CHECK(devices[i].max_storage_range >= std::uint64_t{1} << 27);
    CHECK(devices[i].subgroup_size >= 1);
    CHECK_FALSE(devices[i].driver.empty());
  }
}

TEST_CASE_METHOD(DeviceTest, "an open device describes itself as the list does", "[device]") {
  const DeviceInfo& info = shared_device().info();
  const std::vector<DeviceInfo> devices = Device::list().value();
  REQUIRE(info.index < devices.size());
  CHECK(devices[info.index].name == info.name);
  CHECK(devices[info.index].uuid == info.uuid);
  CHECK(devices[info.index].type == info.type);
  CHECK(info.suitable);
}

TEST_CASE_METHOD(DeviceTest, "a device is chosen by index, part of its name in any case, or UUID", "[device]") {
  const DeviceInfo own = shared_device().info();
  const std::string wishes[] = {
      std::to_string(own.index),    own.name,
      upper(own.name.substr(0, 6)), uuid_text(own.uuid, false),
      uuid_text(own.uuid, true),    upper(uuid_text(own.uuid, true)),
  };
  for (const std::string& wish : wishes) {
    INFO(wish);
    const Result<Device> device = open_selected(wish);
    REQUIRE_OK(device.error());
    CHECK(device->info().uuid == own.uuid);
    CHECK(device->info().index == own.index);
  }
}

TEST_CASE_METHOD(DeviceTest, "a wish that matches nothing is no_device and lists what there is", "[device]") {
  const DeviceInfo own = shared_device().info();
  for (const char* wish : {"9999", "no such device", "ffffffff-ffff-ffff-ffff-ffffffffffff", "-1", "0x0"}) {
    INFO(wish);
    const Error error = open_selected(wish).error();
    CHECK(error.code == Errc::no_device);
    CHECK(contains(error.message, wish));
    CHECK(contains(error.message, own.name));
  }
}

TEST_CASE_METHOD(DeviceTest, "CPU drivers can be refused", "[device]") {
  if (shared_device().info().type != DeviceType::cpu) SKIP("the device is no CPU driver");
  for (const DeviceInfo& device : Device::list().value()) {
    if (device.type != DeviceType::cpu) SKIP("there is another device to fall back to");
  }
  DeviceOptions options = checked_options();
  options.allow_cpu = false;
  const Error error = Device::open(options).error();
  CHECK(error.code == Errc::no_device);
  CHECK(contains(error.message, shared_device().info().name));
  CHECK(contains(error.message, "CPU"));
  options.select = std::to_string(shared_device().info().index);
  CHECK(Device::open(options).error().code == Errc::no_device);
}

TEST_CASE_METHOD(DeviceTest, "BRONTES_DEVICE chooses, and the options override it", "[device]") {
  const DeviceInfo own = shared_device().info();
  const auto by_index = two_lines(run_child({"open"}, {{"BRONTES_DEVICE", std::to_string(own.index)}}));
  CHECK(by_index.first == "ok");
  CHECK(contains(by_index.second, own.name));
  const auto by_uuid = two_lines(run_child({"open"}, {{"BRONTES_DEVICE", uuid_text(own.uuid, true)}}));
  CHECK(by_uuid.first == "ok");
  const auto bad = two_lines(run_child({"open"}, {{"BRONTES_DEVICE", "no such device"}}));
  CHECK(bad.first == "no_device");
  CHECK(contains(bad.second, "no such device"));
  const auto empty = two_lines(run_child({"open"}, {{"BRONTES_DEVICE", ""}}));
  CHECK(empty.first == "ok");
  const auto overridden =
      two_lines(run_child({"open", std::to_string(own.index)}, {{"BRONTES_DEVICE", "no such device"}}));
  CHECK(overridden.first == "ok");
}

TEST_CASE_METHOD(DeviceTest, "without a driver there is no_driver, without a loader no_loader", "[device]") {
  (void)shared_device();
  const Environment no_driver = {{"VK_DRIVER_FILES", "/nonexistent/driver.json"},
                                 {"VK_ICD_FILENAMES", "/nonexistent/driver.json"}};
  const Environment no_loader = {{"BRONTES_VULKAN_LIBRARY", "/nonexistent/libvulkan.so"}};
  for (const char* job : {"open", "list"}) {
    INFO(job);
    const auto driver = two_lines(run_child({job}, no_driver));
    CHECK(driver.first == "no_driver");
    CHECK(contains(driver.second, "driver"));
    const auto loader = two_lines(run_child({job}, no_loader));
    CHECK(loader.first == "no_loader");
    CHECK(contains(loader.second, "/nonexistent/libvulkan.so"));
  }
}

TEST_CASE_METHOD(DeviceTest, "a library that is no Vulkan loader is refused", "[device]") {
  (void)shared_device();
  const auto wrong = two_lines(run_child({"open"}, {{"BRONTES_VULKAN_LIBRARY", "libc.so.6"}}));
  CHECK(wrong.first == "no_loader");
  CHECK(contains(wrong.second, "libc.so.6"));
}

TEST_CASE_METHOD(DeviceTest, "device types have names", "[device]") {
  std::set<std::string> names;
  for (DeviceType type : {DeviceType::other, DeviceType::integrated_gpu, DeviceType::discrete_gpu,
                          DeviceType::virtual_gpu, DeviceType::cpu}) {
    names.insert(to_string(type));
  }
  CHECK(names.size() == 5);
}

TEST_CASE_METHOD(DeviceTest, "several devices can be open at once", "[device]") {
  const Device first = open_device();
  const Device second = open_device();
  check_device_works(first);
  check_device_works(second);
  check_device_works(shared_device());
}

TEST_CASE_METHOD(DeviceTest, "the linked version is the version of the headers", "[device]") {
  CHECK(std::string(version()) == std::to_string(BRONTES_VERSION_MAJOR) + "." + std::to_string(BRONTES_VERSION_MINOR) +
                                      "." + std::to_string(BRONTES_VERSION_PATCH));
}

}  // namespace brontes::test
