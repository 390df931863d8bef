// Memory that Brontes shares with its host, with everything failing in turn.
#include "../device/host_vulkan.hpp"
#include "injector.hpp"

#include <brontes/vulkan.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <unistd.h>

namespace brontes::test {
namespace {

/// Imports ranges of a VkBuffer, stores to one that ends within a vec4, copies to and fro, and makes a buffer for the
/// host. The VkBuffer was made without texels: kernels of the driver's usual way have to do without.
class Sharing final : public Workload {
 public:
  explicit Sharing(const DeviceOptions& options)
      : device_(Device::open(options).value()),
        stride_(std::max<std::uint64_t>(vulkan::import_alignment(device_), 64)),
        host_(device_, 3 * stride_, HostBuffer::storage | HostBuffer::copies),
        ones_(13, 1.0f),
        out_(13) {}
  ~Sharing() override {
    // Where the device is said to be lost, Brontes does not know what is in flight, and its host has to.
    const vulkan::Handles h = vulkan::handles(device_);
    HOST_FUNCTION(h, vkDeviceWaitIdle)(h.device);
  }
  const Device* device() const override { return &device_; }

  Error run() override {
    auto in = vulkan::import_buffer(device_, host_.range(0), {13});
    if (!in) return in.error();
    if (Error e = in->write(ones_)) return e;
    const auto into = vulkan::import_buffer(device_, host_.range(2 * stride_), {13});
    if (!into) return into.error();
    Batch batch(device_);
    const Tensor x = batch.import_buffer(*in);
    batch.store(batch.offset(batch.scale(x, 3), 1), *into);
    auto program = batch.compile();
    if (!program) return program.error();
    if (Error e = program->run()) return e;
    if (Error e = into->read(out_)) return e;
    if (out_[12] != 4.0f) wrong("what was stored to an imported range");
    const auto other = vulkan::import_buffer(device_, host_.range(stride_), {13});
    if (!other) return other.error();
    if (Error e = program->rebind(x, *other)) return e;
    if (Error e = vulkan::last_use(*into).wait()) return e;
    const auto drawn = vulkan::create_buffer(device_, {13}, DType::f32, VK_BUFFER_USAGE_VERTEX_BUFFER_BIT);
    if (!drawn) return drawn.error();
    return pass_on();
  }

 private:
  /// To itself, by a descriptor, which is closed or taken whatever fails.
  Error pass_on() {
    const auto exported = vulkan::create_exportable_buffer(device_, {13});
    if (exported.error().code == Errc::unsupported) return {};
    if (!exported) return exported.error();
    const auto memory = vulkan::export_fd(*exported);
    if (!memory) return memory.error();
    const auto imported = vulkan::import_fd(device_, *memory, {13});
    if (!imported) {
      if (close(memory->fd) != 0) wrong("a descriptor that was not imported is gone");
      return imported.error();
    }
    Batch batch(device_);
    batch.store(batch.fill(5, {13}), *imported);
    if (Error e = batch.execute()) return e;
    if (Error e = exported->read(out_)) return e;
    if (out_[12] != 5.0f) wrong("memory passed on by a descriptor");
    return {};
  }

  Device device_;
  std::uint64_t stride_;
  HostBuffer host_;
  std::vector<float> ones_;
  std::vector<float> out_;
};

}  // namespace

TEST_CASE("whatever fails in memory shared with the host", "[faults]") {
  const Result<Device> device = Device::open(world_options());
  const Errc code = device.error().code;
  if (code == Errc::no_device || code == Errc::no_driver || code == Errc::no_loader) SKIP(device.error().message);
  Injections how;
  how.make = [] { return std::make_unique<Sharing>(world_options()); };
  inject("shared memory", how);
}

}  // namespace brontes::test
