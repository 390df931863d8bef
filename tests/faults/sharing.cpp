// What a host application does with vulkan.hpp and prepare.hpp, with everything failing in turn.
#include "injector.hpp"

#include <brontes/vulkan.hpp>

#include <catch2/catch_test_macros.hpp>

#include <optional>
#include <utility>
#include <vector>

#include <dlfcn.h>

namespace brontes::test {
namespace {

/// The host's own Vulkan: past the spy, so that nothing of it fails.
class HostDevice {
 public:
  explicit HostDevice(const Device& device) : handles_(vulkan::handles(device)) {
    void* library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    get_ = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
    VkSemaphoreTypeCreateInfo type{};
    type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    VkSemaphoreCreateInfo semaphore{};
    semaphore.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
    semaphore.pNext = &type;
    REQUIRE(load<PFN_vkCreateSemaphore>("vkCreateSemaphore")(handles_.device, &semaphore, nullptr, &timeline) ==
            VK_SUCCESS);
    VkCommandPoolCreateInfo pool{};
    pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    pool.queueFamilyIndex = handles_.queue_family;
    REQUIRE(load<PFN_vkCreateCommandPool>("vkCreateCommandPool")(handles_.device, &pool, nullptr, &pool_) ==
            VK_SUCCESS);
    VkCommandBufferAllocateInfo allocate{};
    allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    allocate.commandPool = pool_;
    allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    allocate.commandBufferCount = 1;
    REQUIRE(load<PFN_vkAllocateCommandBuffers>("vkAllocateCommandBuffers")(handles_.device, &allocate, &commands) ==
            VK_SUCCESS);
    begin_ = load<PFN_vkBeginCommandBuffer>("vkBeginCommandBuffer");
    end_ = load<PFN_vkEndCommandBuffer>("vkEndCommandBuffer");
    reset_ = load<PFN_vkResetCommandPool>("vkResetCommandPool");
    submit_ = load<PFN_vkQueueSubmit>("vkQueueSubmit");
    wait_ = load<PFN_vkQueueWaitIdle>("vkQueueWaitIdle");
  }
  ~HostDevice() {
    wait_(handles_.queue);
    load<PFN_vkDestroyCommandPool>("vkDestroyCommandPool")(handles_.device, pool_, nullptr);
    load<PFN_vkDestroySemaphore>("vkDestroySemaphore")(handles_.device, timeline, nullptr);
  }
  HostDevice(const HostDevice&) = delete;
  HostDevice& operator=(const HostDevice&) = delete;

  void begin() {
    wait_(handles_.queue);
    reset_(handles_.device, pool_, 0);
    VkCommandBufferBeginInfo begin{};
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    begin_(commands, &begin);
  }
  void run() {
    end_(commands);
    VkSubmitInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.commandBufferCount = 1;
    info.pCommandBuffers = &commands;
    submit_(handles_.queue, 1, &info, VK_NULL_HANDLE);
    wait_(handles_.queue);
  }

  VkSemaphore timeline = VK_NULL_HANDLE;
  VkCommandBuffer commands = VK_NULL_HANDLE;

 private:
  template <class Function>
  Function load(const char* name) {
    return reinterpret_cast<Function>(get_(handles_.instance, name));
  }
  vulkan::Handles handles_;
  PFN_vkGetInstanceProcAddr get_ = nullptr;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  PFN_vkBeginCommandBuffer begin_ = nullptr;
  PFN_vkEndCommandBuffer end_ = nullptr;
  PFN_vkResetCommandPool reset_ = nullptr;
  PFN_vkQueueSubmit submit_ = nullptr;
  PFN_vkQueueWaitIdle wait_ = nullptr;
};

class Sharing : public Workload {
 public:
  explicit Sharing(const DeviceOptions& options)
      : device_(Device::open(options).value()),
        state_(Buffer::create(device_, Shape(64)).value()),
        out_(64),
        host_(device_) {
    if (state_.read(out_)) wrong("set-up");
    Batch batch(device_);
    batch.store(batch.offset(batch.import_buffer(state_), 1.0f), state_);
    program_.emplace(batch.compile().value());
  }
  const Device* device() const override { return &device_; }

 protected:
  Error check() {
    if (Error e = state_.read(out_)) return e;
    if (out_[0] != expected_ || out_[63] != expected_) wrong("a run was applied twice, or not at all");
    return {};
  }

  Device device_;
  Buffer state_;
  std::vector<float> out_;
  std::optional<Program> program_;
  HostDevice host_;
  float expected_ = 0;
};

/// state += 1, by a program and by a batch, which signal and wait for a semaphore of the host's. What failed has
/// neither run nor signalled, so that the same value may be signalled again.
class Semaphores final : public Sharing {
 public:
  using Sharing::Sharing;
  Error run() override {
    if (Error e = submit(*program_)) return e;
    Batch batch(device_);
    batch.store(batch.offset(batch.import_buffer(state_), 1.0f), state_);
    if (Error e = submit(batch)) return e;
    return check();
  }

 private:
  template <class Work>
  Error submit(Work& work) {
    const vulkan::SemaphoreWait wait{host_.timeline, value_};
    const vulkan::SemaphoreSignal signal{host_.timeline, value_ + 1};
    vulkan::SubmitInfo info;
    info.waits = {&wait, 1};
    info.signals = {&signal, 1};
    auto run = vulkan::submit(work, info);
    if (!run) return run.error();
    ++value_;
    ++expected_;
    if (vulkan::timeline(*run).semaphore == VK_NULL_HANDLE) wrong("no timeline");
    return run->wait();
  }
  std::uint64_t value_ = 0;
};

class Recording final : public Sharing {
 public:
  using Sharing::Sharing;
  Error run() override {
    Batch batch(device_);
    batch.store(batch.offset(batch.import_buffer(state_), 1.0f), state_);
    auto program = batch.compile();
    if (!program) return program.error();
    host_.begin();
    if (Error e = vulkan::record(*program, host_.commands)) return e;
    host_.run();
    ++expected_;
    return check();
  }
};

/// Pipelines ahead of time, and the cache as bytes, on a device of its own.
class Preparing final : public Workload {
 public:
  explicit Preparing(const DeviceOptions& options) : options_(options) {}
  Error run() override {
    auto device = Device::open(options_);
    if (!device) return device.error();
    const vulkan::Handles h = vulkan::handles(*device);
    auto features = vulkan::recommended_features(h.get_instance_proc_addr, h.instance, h.physical_device);
    if (!features) return features.error();
    Batch batch(*device);
    (void)batch.neg(batch.fill(1.0f, Shape(4)));
    auto prepared = prepare(batch);
    if (!prepared) return prepared.error();
    if (!prepared->complete()) wrong("not all pipelines are ready");
    auto bytes = save_pipelines(*device);
    if (!bytes) return bytes.error();
    return load_pipelines(*device, *bytes);
  }

 private:
  DeviceOptions options_;
};

template <class W>
void inject_one(const char* name, Injections how = {}) {
  const Result<Device> device = Device::open(world_options());
  const Errc code = device.error().code;
  if (code == Errc::no_device || code == Errc::no_driver || code == Errc::no_loader) SKIP(device.error().message);
  how.make = [] { return std::make_unique<W>(world_options()); };
  inject(name, how);
}

}  // namespace

TEST_CASE("runs that wait for semaphores and signal them fail whole", "[faults][sharing]") {
  inject_one<Semaphores>("semaphores of the host's");
}

TEST_CASE("a run that cannot be recorded into the host's command buffer is an error", "[faults][sharing]") {
  // The host's own calls, which are not to fail, allocate, too.
  Injections how;
  how.host = false;
  inject_one<Recording>("the host's command buffer", how);
}

TEST_CASE("pipelines that cannot be prepared are prepared later", "[faults][sharing]") {
  inject_one<Preparing>("preparing pipelines");
}

}  // namespace brontes::test
