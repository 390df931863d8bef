// A device of the application's that Brontes adopts: features, locks, allocators, names, messages, and pipelines that
// are there before they are needed.
#include "application.hpp"

#include <map>
#include <thread>

using app::Application;
using brontes::Batch;
using brontes::Buffer;
using brontes::Device;
using brontes::Errc;
namespace vulkan = brontes::vulkan;

namespace {

// relu(x) * 2 through a program, a buffer and a batch.
void use(const Device& device) {
  auto buffer = Buffer::from(device, std::vector<float>{1, -2, 3});
  if (!CHECK_OK(buffer.error())) return;
  Batch batch(device);
  const brontes::Tensor y = batch.scale(batch.relu(batch.import_buffer(*buffer)), 2);
  batch.keep(y);
  batch.store(y, *buffer);
  auto program = batch.compile();
  if (!CHECK_OK(program.error()) || !CHECK_OK(program->run())) return;
  CHECK(buffer->read().value() == std::vector<float>{2, 0, 6});
  CHECK_OK(batch.execute());
  CHECK(batch.read(y).value() == std::vector<float>{4, 0, 12});
}

void features() {
  {
    Application application;
    CHECK(application.features12.timelineSemaphore == VK_TRUE);
    const bool pointers = application.features12.bufferDeviceAddress == VK_TRUE;
    brontes::DeviceOptions options;
    options.access = brontes::AccessMode::pointer;
    options.pipeline_cache.enabled = false;
    const auto device = vulkan::adopt(application.external(), options);
    CHECK(pointers ? !device.error() : device.error().code == Errc::unsupported);
    if (device) use(*device);
    use(application.adopt());
  }
  // What the device was created without is not used.
  app::Options required;
  required.recommended = false;
  Application bare(required);
  CHECK(bare.extensions.empty());
  brontes::DeviceOptions options;
  options.access = brontes::AccessMode::pointer;
  CHECK(vulkan::adopt(bare.external(), options).error().code == Errc::unsupported);
  const Device device = bare.adopt();
  CHECK(device.info().access != brontes::AccessMode::pointer);
  CHECK(vulkan::host_memory_alignment(device) == 0);
  CHECK(vulkan::create_exportable_buffer(device, {4}).error().code == Errc::unsupported);
  use(device);
}

// The error is about the instance, not about what it hides.
void older_instance() {
  app::Options options;
  options.api_version = VK_API_VERSION_1_0;
  Application application(options);
  vulkan::ExternalDevice external = application.external();
  external.features = nullptr;
  const brontes::Error error = vulkan::adopt(external).error();
  CHECK(error.code == Errc::unsupported);
  if (!CHECK(app::contains(error.message, "Vulkan 1.0"))) std::fprintf(stderr, "%s\n", error.message.c_str());
}

// The application's own lock, and Brontes' where there is none.
void locks() {
  Application application;
  std::mutex mutex;
  std::atomic<int> taken{0}, held{0}, nested{0};
  vulkan::ExternalDevice external = application.external();
  external.lock = [&] {
    mutex.lock();
    if (++held != 1) ++nested;
    ++taken;
  };
  external.unlock = [&] {
    --held;
    mutex.unlock();
  };
  {
    const Device device = application.adopt(external);
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) threads.emplace_back([&] { use(device); });
    for (std::thread& thread : threads) thread.join();
    CHECK(taken >= 6 && held == 0 && nested == 0);
  }
  external.unlock = nullptr;
  CHECK(vulkan::adopt(external).error().code == Errc::invalid_argument);

  // One queue adopted twice has one lock; work under it is an error, and no hang.
  const Device one = application.adopt(), two = application.adopt();
  auto lock = vulkan::lock_queue(one);
  CHECK(lock.owns_lock());
  std::atomic<bool> had{false};
  std::thread other([&] {
    const auto second = vulkan::lock_queue(two);
    had = true;
  });
  for (const Device* device : {&one, &two}) {
    Batch batch(*device);
    static_cast<void>(batch.neg(batch.upload({1.f})));
    CHECK(batch.execute().code == Errc::invalid_argument);
  }
  CHECK(!had);
  lock.unlock();
  other.join();
  CHECK(had);
  use(two);
}

// VkAllocationCallbacks that know what they gave, and device memory from the application.
struct Memory {
  explicit Memory(Application& of) : application(of) {
    callbacks.pUserData = this;
    callbacks.pfnAllocation = [](void* self, std::size_t bytes, std::size_t alignment, VkSystemAllocationScope) {
      return static_cast<Memory*>(self)->allocate(bytes, alignment);
    };
    callbacks.pfnReallocation = [](void* self, void* old, std::size_t bytes, std::size_t alignment,
                                   VkSystemAllocationScope) {
      return static_cast<Memory*>(self)->reallocate(old, bytes, alignment);
    };
    callbacks.pfnFree = [](void* self, void* pointer) { static_cast<Memory*>(self)->release(pointer); };
    blocks.allocate = [this](const vulkan::MemoryRequest& wanted, vulkan::MemoryBlock& block) {
      return give(wanted, block);
    };
    blocks.free = [this](const vulkan::MemoryBlock& block) {
      --live_blocks;
      application.vkFreeMemory(application.device, block.memory, nullptr);
    };
  }

  void* allocate(std::size_t bytes, std::size_t alignment) {
    const std::size_t align = alignment < sizeof(void*) ? sizeof(void*) : alignment;
    void* const made = std::aligned_alloc(align, (bytes + align - 1) / align * align);
    const std::lock_guard<std::mutex> lock(mutex);
    sizes[made] = bytes;
    ++given;
    return made;
  }
  void* reallocate(void* old, std::size_t bytes, std::size_t alignment) {
    void* const made = bytes == 0 ? nullptr : allocate(bytes, alignment);
    if (old != nullptr && made != nullptr) {
      std::size_t before = 0;
      {
        const std::lock_guard<std::mutex> lock(mutex);
        before = sizes[old];
      }
      std::memcpy(made, old, before < bytes ? before : bytes);
    }
    release(old);
    return made;
  }
  void release(void* pointer) {
    if (pointer == nullptr) return;
    const std::lock_guard<std::mutex> lock(mutex);
    if (sizes.erase(pointer) == 0) ++strangers;
    std::free(pointer);
  }
  VkResult give(const vulkan::MemoryRequest& wanted, vulkan::MemoryBlock& block) {
    if (refuse) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    VkMemoryAllocateFlagsInfo flags{};
    flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    VkMemoryAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    if (wanted.device_address) info.pNext = &flags;
    info.allocationSize = wanted.requirements.size;
    info.memoryTypeIndex = wanted.memory_type;
    const VkResult made = application.vkAllocateMemory(application.device, &info, nullptr, &block.memory);
    if (made != VK_SUCCESS) return made;
    ++given_blocks;
    ++live_blocks;
    if (!wanted.mapped) return VK_SUCCESS;
    return application.vkMapMemory(application.device, block.memory, 0, VK_WHOLE_SIZE, 0, &block.mapped);
  }

  Application& application;
  VkAllocationCallbacks callbacks{};
  vulkan::MemoryAllocator blocks;
  std::mutex mutex;
  std::map<void*, std::size_t> sizes;
  std::uint64_t given = 0, strangers = 0;
  std::atomic<std::uint64_t> given_blocks{0}, live_blocks{0};
  std::atomic<bool> refuse{false};
};

void allocators() {
  Application application;
  Memory memory(application);
  vulkan::ExternalDevice external = application.external();
  external.allocation_callbacks = &memory.callbacks;
  external.memory = memory.blocks;
  {
    const Device device = application.adopt(external);
    use(device);
    CHECK(device.memory().block_bytes == 0);  // all of it is the application's
    memory.refuse = true;
    const brontes::Error error = Buffer::create(device, {1 << 20}).error();
    CHECK(error.code == Errc::out_of_memory);
    memory.refuse = false;
    use(device);
    CHECK(!memory.sizes.empty());
  }
  CHECK(memory.given > 0 && memory.sizes.empty() && memory.strangers == 0);
  CHECK(memory.given_blocks > 0 && memory.live_blocks == 0);
}

void names_and_messages() {
  Application application;
  std::vector<std::string> told;
  brontes::DeviceOptions options;
  options.on_message = [&](brontes::Severity severity, const std::string& text) {
    if (severity == brontes::Severity::warning) told.push_back(text);
  };
  options.pipeline_cache.path = "/dev/null";
  auto adopted = vulkan::adopt(application.external(), options);
  if (!CHECK_OK(adopted.error())) return;
  const Device& device = *adopted;
  CHECK(app::has(told, "brontes: ") && app::has(told, "/dev/null"));
  app::labels.clear();
  app::names.clear();
  Batch batch(device);
  const brontes::Tensor x = batch.upload(std::vector<float>(4 * 8, 1), {4, 8});
  const brontes::Tensor w = batch.upload(std::vector<float>(16 * 8, 1), {16, 8});
  static_cast<void>(batch.gelu(batch.linear(x, w, batch.upload(std::vector<float>(16, 1)))));
  auto program = batch.compile();
  if (!CHECK_OK(program.error())) return;
  const Buffer weights = Buffer::create(device, {4}).value();
  vulkan::set_name(weights, "weights of layer 3");
  vulkan::set_name(*program, "denoise");
  CHECK_OK(program->run());
  CHECK(app::has(app::labels, "matmul+add+gelu %"));
  CHECK(app::has(app::names, "weights of layer 3"));
  CHECK(app::has(app::names, "denoise"));
}

brontes::Tensor record_some(Batch& batch) {
  const brontes::Tensor x = batch.upload(std::vector<float>(64, 1), {8, 8});
  return batch.softmax(batch.matmul(x, batch.cumsum(batch.keep(batch.neg(x)))));
}

// On a thread of its own, cancelled once, and then without a pipeline left for the run.
void no_first_use_stall() {
  Application application;
  std::vector<std::uint8_t> bytes;
  {
    const Device device = application.adopt();
    Batch batch(device);
    const brontes::Tensor y = record_some(batch);
    std::thread([&] {
      brontes::PrepareOptions options;
      options.on_progress = [](std::size_t ready, std::size_t) { return ready < 1; };
      const auto first = brontes::prepare(batch, options);
      CHECK(first && first->ready == 1 && !first->complete());
      const auto rest = brontes::prepare(batch);
      CHECK(rest && rest->complete() && rest->total >= 3);
    }).join();
    const std::uint64_t before = app::Count_vkCreateComputePipelines::calls;
    CHECK(before > 0);
    auto program = batch.compile();
    if (!CHECK_OK(program.error())) return;
    CHECK_OK(program->run());
    CHECK(program->read(y).value().size() == 64);
    CHECK(app::Count_vkCreateComputePipelines::calls == before);
    bytes = brontes::save_pipelines(device).value();
  }
  const Device device = application.adopt();
  CHECK_OK(brontes::load_pipelines(device, bytes));
  bytes.back() ^= 1;
  CHECK(brontes::load_pipelines(device, bytes).code == Errc::invalid_argument);
  use(device);
}

}  // namespace

int main() {
  return app::run_all({{"features as data", features},
                       {"an instance for an older Vulkan", older_instance},
                       {"locks of the queue", locks},
                       {"allocators of the application's", allocators},
                       {"names and messages", names_and_messages},
                       {"pipelines ahead of time", no_first_use_stall}});
}
