// Memory that the application and Brontes share, and how much of it Brontes takes.
#include "application.hpp"

#include <unistd.h>

using app::Application;
using brontes::Batch;
using brontes::Buffer;
using brontes::Device;
using brontes::Errc;
namespace vulkan = brontes::vulkan;

namespace {

constexpr VkBufferUsageFlags storage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;

// A VkBuffer of the application's in mapped memory.
class OwnBuffer {
 public:
  OwnBuffer(Application& application, VkDeviceSize size, VkBufferUsageFlags usage)
      : application_(application), bytes(size) {
    VkBufferCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.size = size;
    info.usage = usage;
    Application::require(application.vkCreateBuffer(application.device, &info, nullptr, &buffer), "vkCreateBuffer");
    VkMemoryRequirements needs{};
    application.vkGetBufferMemoryRequirements(application.device, buffer, &needs);
    VkPhysicalDeviceMemoryProperties properties{};
    application.get<PFN_vkGetPhysicalDeviceMemoryProperties>("vkGetPhysicalDeviceMemoryProperties")(application.gpu,
                                                                                                    &properties);
    constexpr VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkMemoryAllocateInfo allocate{};
    allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    allocate.allocationSize = needs.size;
    while ((needs.memoryTypeBits >> allocate.memoryTypeIndex & 1u) == 0 ||
           (properties.memoryTypes[allocate.memoryTypeIndex].propertyFlags & wanted) != wanted) {
      ++allocate.memoryTypeIndex;
    }
    Application::require(application.vkAllocateMemory(application.device, &allocate, nullptr, &memory_), "memory");
    Application::require(application.vkBindBufferMemory(application.device, buffer, memory_, 0), "vkBindBufferMemory");
    void* mapped = nullptr;
    Application::require(application.vkMapMemory(application.device, memory_, 0, VK_WHOLE_SIZE, 0, &mapped), "map");
    data = static_cast<float*>(mapped);
    for (VkDeviceSize i = 0; i < size / sizeof(float); ++i) data[i] = static_cast<float>(i);
  }
  ~OwnBuffer() {
    application_.vkDestroyBuffer(application_.device, buffer, nullptr);
    application_.vkFreeMemory(application_.device, memory_, nullptr);
  }
  OwnBuffer(const OwnBuffer&) = delete;
  OwnBuffer& operator=(const OwnBuffer&) = delete;

 private:
  Application& application_;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;

 public:
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceSize bytes;
  float* data = nullptr;
};

void imported_buffers() {
  Application application;
  const Device device = application.adopt();
  const VkDeviceSize alignment = vulkan::import_alignment(device);
  const std::size_t first = alignment / sizeof(float);
  OwnBuffer own(application, 2 * alignment, storage);
  vulkan::ExternalBuffer external;
  external.buffer = own.buffer;
  external.buffer_bytes = own.bytes;
  external.usage = storage;

  // All of it as input; a range, which ends within 16 bytes, as input and output.
  const auto whole = vulkan::import_buffer(device, external, {own.bytes / sizeof(float)});
  if (!CHECK_OK(whole.error())) return;
  external.offset = alignment;
  const auto range = vulkan::import_buffer(device, external, {3});
  if (!CHECK_OK(range.error())) return;
  Batch sums(device);
  const brontes::Tensor total = sums.sum(sums.import_buffer(*whole));
  CHECK_OK(sums.execute());
  const auto count = static_cast<float>(2 * first);
  CHECK(sums.read(total).value()[0] == count * (count - 1) / 2);
  Batch batch(device);
  batch.store(batch.neg(batch.import_buffer(*range)), *range);
  CHECK_OK(batch.execute());
  CHECK(vulkan::last_use(*range).ready());
  for (std::size_t i = 0; i < 2 * first; ++i) {
    const auto value = static_cast<float>(i);
    if (!CHECK(own.data[i] == (i >= first && i < first + 3 ? -value : value))) return;
  }

  // The error names what is missing.
  external.offset = 4;
  CHECK(vulkan::import_buffer(device, external, {3}).error().code == Errc::invalid_argument);
  external.offset = 0;
  external.usage = VK_BUFFER_USAGE_VERTEX_BUFFER_BIT;
  const brontes::Error error = vulkan::import_buffer(device, external, {3}).error();
  CHECK(error.code == Errc::invalid_argument && app::contains(error.message, "STORAGE_BUFFER"));
}

// Vertices that Brontes computes and the renderer binds: the validation layer knows the usage.
void buffers_with_usages() {
  Application application;
  const Device device = application.adopt();
  const auto vertices = vulkan::create_buffer(device, {16, 3}, brontes::DType::f32, VK_BUFFER_USAGE_VERTEX_BUFFER_BIT);
  if (!CHECK_OK(vertices.error())) return;
  Batch batch(device);
  batch.store(batch.fill(0.5f, {16, 3}), *vertices);
  CHECK_OK(batch.execute());
  const Buffer copy = Buffer::create(device, {16, 3}).value();
  const VkCommandBuffer commands = application.begin();
  const vulkan::BufferRegion region = vulkan::region(*vertices);
  application.vkCmdBindVertexBuffers(commands, 0, 1, &region.buffer, &region.offset);
  application.copy(commands, *vertices, copy);
  application.end(commands);
  application.submit(device, commands);
  application.finish(device);
  CHECK(app::holds(copy, 0.5f));
}

void host_memory() {
  Application application;
  const Device device = application.adopt();
  const std::size_t alignment = vulkan::host_memory_alignment(device);
  CHECK((alignment != 0) == application.has_extension(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME));
  if (alignment == 0) return;
  const std::unique_ptr<float, void (*)(void*)> pages(static_cast<float*>(std::aligned_alloc(alignment, alignment)),
                                                      std::free);
  for (int i = 0; i < 8; ++i) pages.get()[i] = 2;
  {
    auto buffer = vulkan::import_host_memory(device, pages.get(), alignment, {5});
    if (buffer.error().code == Errc::unsupported) return;  // some drivers refuse the pages
    if (!CHECK_OK(buffer.error())) return;
    Batch batch(device);
    batch.store(batch.square(batch.import_buffer(*buffer)), *buffer);
    CHECK_OK(batch.execute());
  }
  CHECK(pages.get()[4] == 4 && pages.get()[5] == 2);
  CHECK(vulkan::import_host_memory(device, pages.get() + 1, alignment, {5}).error().code == Errc::invalid_argument);
}

// Between two devices of the same driver, as two processes would.
void file_descriptors() {
  Application exporter, importer;
  const Device from = exporter.adopt(), to = importer.adopt();
  auto made = vulkan::create_exportable_buffer(from, {100});
  if (!exporter.has_extension(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME)) {
    CHECK(made.error().code == Errc::unsupported);
    return;
  }
  if (!CHECK_OK(made.error())) return;
  CHECK_OK(made->write(std::vector<float>(100, 3)));
  const auto memory = vulkan::export_fd(*made);
  if (!CHECK_OK(memory.error())) return;
  const auto shared = vulkan::import_fd(to, *memory, {100});
  if (!CHECK_OK(shared.error())) {
    close(memory->fd);
    return;
  }
  CHECK(app::holds(*shared, 3));
  Batch batch(to);
  batch.store(batch.scale(batch.import_buffer(*shared), 2), *shared);
  CHECK_OK(batch.execute());
  CHECK(app::holds(*made, 6));
}

// What is predicted is what is allocated; past the cap there is an error, and no less room afterwards.
void memory_contract() {
  Application application;
  brontes::DeviceOptions options;
  options.memory_cap = 16 << 20;
  const Device device = application.adopt(application.external(), options);
  Batch batch(device);
  const brontes::Tensor x = batch.upload(std::vector<float>(1000, 1));
  const brontes::Tensor y = batch.sum(batch.add(batch.cumsum(x), x));
  const auto needs = batch.predict_memory();
  if (!CHECK_OK(needs.error())) return;
  const std::uint64_t before = device.stats().live_bytes;
  auto program = batch.compile();
  if (!CHECK_OK(program.error())) return;
  CHECK(device.stats().live_bytes - before == needs->bytes());

  const brontes::DeviceMemory used = device.memory();
  CHECK(used.cap_bytes == 16 << 20 && used.used_bytes <= used.cap_bytes && used.heap_bytes > 0);
  const brontes::Error error = Buffer::create(device, {8 << 20}).error();
  CHECK(error.code == Errc::out_of_memory && app::contains(error.message, "16777216"));
  CHECK(device.memory().used_bytes <= used.used_bytes);

  CHECK_OK(program->run());
  const brontes::DeviceStats flat = device.stats();
  for (int i = 0; i < 2000; ++i) {
    if (!CHECK_OK(program->run())) return;
  }
  CHECK(program->read(y).value()[0] == 1000.f * 1001 / 2 + 1000);
  CHECK(device.stats().live_bytes == flat.live_bytes && device.stats().allocations == flat.allocations);
}

}  // namespace

int main() {
  return app::run_all({{"VkBuffers of the application's", imported_buffers},
                       {"buffers with further usages", buffers_with_usages},
                       {"host memory", host_memory},
                       {"memory by file descriptor", file_descriptors},
                       {"the memory contract", memory_contract}});
}
