// vulkan.hpp: memory that is shared across devices, processes and with the host's own pages.
#include "fixture.hpp"

#include <brontes/vulkan.hpp>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace brontes::test {
namespace {

struct Free {
  void operator()(void* pages) const { std::free(pages); }
};

bool is_open(int fd) { return fcntl(fd, F_GETFD) != -1; }

void check_refused(const Error& error, const std::string& because, Errc code = Errc::invalid_argument) {
  INFO(error.message);
  CHECK(error.code == code);
  CHECK(contains(error.message, because));
}

/// True where the device cannot, for a reason that is named.
bool cannot(const Error& error, const char* extension) {
  if (error.code != Errc::unsupported) return false;
  INFO(error.message);
  CHECK(contains(error.message, extension));
  return true;
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "host memory is read and stored to in place, or refused with the cause",
                 "[vulkan][external]") {
  const Device& device = shared_device();
  const std::size_t alignment = static_cast<std::size_t>(vulkan::host_memory_alignment(device));
  const std::size_t page = alignment != 0 ? alignment : 4096;
  const std::unique_ptr<float, Free> pages(static_cast<float*>(std::aligned_alloc(page, 2 * page)));
  REQUIRE(pages);
  float* const data = pages.get();
  for (std::size_t i = 0; i < 2 * page / 4; ++i) data[i] = -1.0f;
  for (std::size_t count : {std::size_t{5}, std::size_t{64}, page / 4 + 1}) {
    INFO(count << " elements");
    for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<float>(i);
    auto buffer = vulkan::import_host_memory(device, data, 2 * page, {count});
    if (cannot(buffer.error(), "VK_EXT_external_memory_host")) return;
    REQUIRE_OK(buffer.error());
    const DeviceStats before = device.stats();
    {
      Batch batch(device);
      const Tensor x = batch.import_buffer(*buffer);
      const Tensor sum = batch.sum(x);
      batch.store(batch.scale(x, 2), *buffer);
      REQUIRE_OK(batch.execute());
      CHECK(read(batch, sum)[0] == static_cast<float>(count * (count - 1) / 2));
    }
    CHECK(data[count - 1] == 2.0f * static_cast<float>(count - 1));
    CHECK(data[count] == -1.0f);
    CHECK(device.stats().live_bytes == before.live_bytes);
    REQUIRE_OK(buffer->write(std::vector<float>{9}, count - 1));
    CHECK(data[count - 1] == 9.0f);
    data[0] = 4;
    CHECK(buffer->read().value()[0] == 4.0f);
    for (std::size_t i = 0; i < count; ++i) data[i] = -1.0f;
  }
  check_refused(vulkan::import_host_memory(device, nullptr, page, {5}).error(), "null");
  check_refused(vulkan::import_host_memory(device, data + 1, page, {5}).error(), "minImportedHostPointerAlignment");
  check_refused(vulkan::import_host_memory(device, data, page + 4, {5}).error(), "minImportedHostPointerAlignment");
  check_refused(vulkan::import_host_memory(device, data, page, {page}).error(), "bytes for elements that take");
}

TEST_CASE_METHOD(DeviceTest, "memory exported by one device is imported by another, and both see the same bytes",
                 "[vulkan][external]") {
  const Device one = open_device();
  const Device other = open_device();
  for (std::size_t count : {std::size_t{7}, std::size_t{4096}}) {
    const auto exported = vulkan::create_exportable_buffer(one, {count}, DType::f32, VK_BUFFER_USAGE_VERTEX_BUFFER_BIT);
    if (cannot(exported.error(), "VK_KHR_external_memory_fd")) return;
    REQUIRE_OK(exported.error());
    CHECK(exported->read().value() == std::vector<float>(count, 0.0f));
    const auto memory = vulkan::export_fd(*exported);
    REQUIRE_OK(memory.error());
    CHECK(memory->allocation_bytes >= count * 4);
    REQUIRE(is_open(memory->fd));
    const auto imported = vulkan::import_fd(other, *memory, {count});
    REQUIRE_OK(imported.error());
    CHECK_FALSE(is_open(memory->fd));

    Batch there(one);
    there.store(there.upload(counting(count)), *exported);
    REQUIRE_OK(there.execute());
    Batch here(other);
    const Tensor x = here.import_buffer(*imported);
    here.store(here.scale(x, -1), *imported);
    REQUIRE_OK(here.execute());
    CHECK(exported->read().value()[count - 1] == -static_cast<float>(count - 1));
  }
}

TEST_CASE_METHOD(DeviceTest, "a descriptor that cannot be imported stays the caller's", "[vulkan][external]") {
  const Device& device = shared_device();
  const auto exported = vulkan::create_exportable_buffer(device, {64});
  if (cannot(exported.error(), "VK_KHR_external_memory_fd")) return;
  REQUIRE_OK(exported.error());
  const vulkan::MemoryFd memory = vulkan::export_fd(*exported).value();
  check_refused(vulkan::import_fd(device, memory, {1 << 20}).error(), "bytes for elements that take");
  vulkan::MemoryFd bad = memory;
  bad.memory_type = 99;
  check_refused(vulkan::import_fd(device, bad, {64}).error(), "memory types");
  bad = memory;
  bad.fd = -1;
  check_refused(vulkan::import_fd(device, bad, {64}).error(), "descriptor");
  REQUIRE(is_open(memory.fd));
  CHECK(close(memory.fd) == 0);
  check_refused(vulkan::import_fd(device, memory, {64}).error(), "descriptor");
  check_refused(vulkan::export_fd(Buffer::create(device, {4}).value()).error(), "create_exportable_buffer");
}

TEST_CASE_METHOD(DeviceTest, "memory made for export counts as the Device's own", "[vulkan][external]") {
  DeviceOptions options = checked_options();
  options.memory_cap = 64 << 10;
  const Device device = open_device(options);
  const auto fits = vulkan::create_exportable_buffer(device, {8 << 10});
  if (cannot(fits.error(), "VK_KHR_external_memory_fd")) return;
  REQUIRE_OK(fits.error());
  CHECK(device.memory().used_bytes == 32 << 10);
  CHECK(device.stats().live_bytes == 32 << 10);
  check_refused(vulkan::create_exportable_buffer(device, {9 << 10}).error(), "memory_cap", Errc::out_of_memory);
  CHECK(device.memory().used_bytes == 32 << 10);
  CHECK(device.memory().buffers == 1);
}

}  // namespace brontes::test
