// vulkan.hpp: memory of the application's in Brontes, and of Brontes in the application.
#include "fixture.hpp"
#include "host_vulkan.hpp"

#include <brontes/vulkan.hpp>

#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace brontes::test {
namespace {

constexpr VkDeviceSize guard = 4096;

// Numbers of both signs that every op here takes.
std::vector<float> sample(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(static_cast<int>(i % 13) - 6) * 0.5f;
  return values;
}

std::vector<float> relu_plus_one(std::vector<float> values) {
  for (float& x : values) x = std::max(x, 0.0f) + 1.0f;
  return values;
}

struct Mode {
  const char* name;
  Device device;
};

// Every way that kernels reach memory and the host reaches results, as far as the device has it.
std::vector<Mode> modes() {
  std::vector<Mode> all;
  auto add = [&](const char* name, AccessMode access, bool staged) {
    DeviceOptions options = checked_options();
    options.access = access;
    options.simulate.staged_memory = staged;
    Result<Device> device = Device::open(options);
    if (!device && access == AccessMode::pointer && device.error().code == Errc::unsupported) return;
    REQUIRE_OK(device.error());
    all.push_back({name, std::move(*device)});
  };
  (void)shared_device();  // skips where there is none
  add("storage", AccessMode::storage, false);
  add("texel", AccessMode::texel, false);
  add("pointer", AccessMode::pointer, false);
  add("staged", AccessMode::automatic, true);
  return all;
}

void check_refused(const Error& error, const std::string& because, Errc code = Errc::invalid_argument) {
  INFO(error.message);
  CHECK(error.code == code);
  CHECK(contains(error.message, because));
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "a range of an application's VkBuffer is read and stored to in place",
                 "[vulkan][sharing]") {
  for (const Mode& mode : modes()) {
    INFO(mode.name);
    const std::uint64_t alignment = vulkan::import_alignment(mode.device);
    REQUIRE(alignment >= 16);
    const std::uint64_t begin = (guard + alignment - 1) / alignment * alignment;
    for (std::size_t count : std::vector<std::size_t>{1, 2, 3, 4, 5, 7, 8, 63, 64, 65, 1022, 4097}) {
      const std::uint64_t end = begin + count * 4;
      const std::uint64_t whole = begin + (count * 4 + 15) / 16 * 16;
      for (bool padded : {false, true}) {
        INFO(count << " elements, " << (padded ? "with room" : "exactly"));
        HostBuffer in(mode.device, whole + guard);
        HostBuffer out(mode.device, whole + guard);
        in.put(begin, sample(count));
        const auto source = vulkan::import_buffer(mode.device, in.range(begin), {count});
        REQUIRE_OK(source.error());
        const auto target = vulkan::import_buffer(mode.device, out.range(begin, padded ? whole - begin : 0), {count});
        REQUIRE_OK(target.error());
        Batch batch(mode.device);
        const Tensor x = batch.import_buffer(*source);
        batch.store(batch.offset(batch.relu(x), 1), *target);
        REQUIRE_OK(batch.execute());
        CHECK(out.get(begin, count) == relu_plus_one(sample(count)));
        CHECK(out.touched_outside(begin, padded ? whole : end) == 0);
        CHECK(in.get(begin, count) == sample(count));
        CHECK(in.touched_outside(begin, end) == 0);
      }
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "no op writes past the end of a range that ends within a vec4", "[vulkan][sharing]") {
  struct Case {
    const char* name;
    Shape out;
    std::function<Tensor(Batch&, Tensor)> record;  // of x [6, 7]
  };
  const std::vector<Case> cases{
      {"sum", {1}, [](Batch& b, Tensor x) { return b.sum(x); }},
      {"sum over an axis", {7}, [](Batch& b, Tensor x) { return b.sum(x, {0}); }},
      {"softmax", {6, 7}, [](Batch& b, Tensor x) { return b.softmax(x); }},
      {"matmul", {7, 7}, [](Batch& b, Tensor x) { return b.matmul(b.transpose(x), x); }},
      {"matrix by vector",
       {1, 6},
       [](Batch& b, Tensor x) {
         return b.linear(b.fill(0.5f, {1, 7}), x);
       }},
      {"slice",
       {3, 3},
       [](Batch& b, Tensor x) {
         return b.slice(x, {{1, 4}, {2, 5}});
       }},
      {"transpose", {7, 6}, [](Batch& b, Tensor x) { return b.transpose(x); }},
      {"fill", {9}, [](Batch& b, Tensor) { return b.fill(3, {9}); }},
      {"cumsum", {42}, [](Batch& b, Tensor x) { return b.cumsum(b.flatten(x), 0); }},
      {"concat",
       {13},
       [](Batch& b, Tensor x) {
         const Tensor row = b.flatten(b.slice(x, {{0, 1}}));
         return b.concat({row, b.slice(row, {{1, 7}})}, 0);
       }},
  };
  for (const Mode& mode : modes()) {
    const std::uint64_t begin = (guard + vulkan::import_alignment(mode.device) - 1) /
                                vulkan::import_alignment(mode.device) * vulkan::import_alignment(mode.device);
    for (const Case& c : cases) {
      INFO(mode.name << ", " << c.name);
      const auto count = static_cast<std::size_t>(c.out.count());
      HostBuffer in(mode.device, begin + 42 * 4 + 8 + guard);
      HostBuffer out(mode.device, begin + (count * 4 + 15) / 16 * 16 + guard);
      in.put(begin, sample(42));
      const Buffer source = vulkan::import_buffer(mode.device, in.range(begin), {6, 7}).value();
      const Buffer target = vulkan::import_buffer(mode.device, out.range(begin), c.out).value();
      std::vector<float> expected;
      {
        Batch batch(mode.device);
        expected = run(batch, c.record(batch, batch.upload(sample(42), {6, 7})));
      }
      Batch batch(mode.device);
      batch.store(c.record(batch, batch.import_buffer(source)), target);
      REQUIRE_OK(batch.execute());
      CHECK(out.get(begin, count) == expected);
      CHECK(out.touched_outside(begin, begin + count * 4) == 0);

      // And through store() into slices of it.
      out.clear();
      Batch slices(mode.device);
      slices.store(slices.fill(2, Shape(count)), vulkan::import_buffer(mode.device, out.range(begin), {count}).value(),
                   {{0, static_cast<std::int64_t>(count)}});
      REQUIRE_OK(slices.execute());
      CHECK(out.get(begin, count) == std::vector<float>(count, 2.0f));
      CHECK(out.touched_outside(begin, begin + count * 4) == 0);
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "a buffer that was not made for texels or addresses is used as a storage buffer",
                 "[vulkan][sharing]") {
  // Such a buffer in a texel view or an address table would be a validation error.
  for (const Mode& mode : modes()) {
    INFO(mode.name);
    const bool addresses = mode.device.info().access == AccessMode::pointer;
    const VkBufferUsageFlags all = HostBuffer::storage | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT |
                                   (addresses ? VkBufferUsageFlags{VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT} : 0u);
    for (VkBufferUsageFlags usage : {HostBuffer::storage, all}) {
      HostBuffer a(mode.device, 64 * 64 * 4, usage);
      HostBuffer b(mode.device, 64 * 64 * 4, usage);
      a.put(0, sample(64 * 64));
      const Buffer left = vulkan::import_buffer(mode.device, a.external, {64, 64}).value();
      const Buffer into = vulkan::import_buffer(mode.device, b.external, {64, 64}).value();
      Batch batch(mode.device);
      const Tensor x = batch.import_buffer(left);
      batch.store(batch.add(batch.matmul(x, x), batch.softmax(x)), into);
      REQUIRE_OK(batch.execute());
      Batch reference(mode.device);
      const Tensor y = reference.upload(sample(64 * 64), {64, 64});
      CHECK(b.get(0, 64 * 64) == run(reference, reference.add(reference.matmul(y, y), reference.softmax(y))));
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "an imported buffer can be updated in place, run after run", "[vulkan][sharing]") {
  const Device& device = shared_device();
  for (std::size_t count : {std::size_t{5}, std::size_t{16}}) {
    HostBuffer host(device, 4096);
    host.put(0, std::vector<float>(count, 1.0f));
    const Buffer state = vulkan::import_buffer(device, host.external, {count}).value();
    Batch batch(device);
    batch.store(batch.scale(batch.import_buffer(state), 2), state);
    Program program = batch.compile().value();
    for (int i = 0; i < 5; ++i) REQUIRE_OK(program.run());
    CHECK(host.get(0, count) == std::vector<float>(count, 32.0f));
    CHECK(host.touched_outside(0, count * 4) == 0);
    // The host's own writes are seen by the next run.
    host.put(0, std::vector<float>(count, 3.0f));
    REQUIRE_OK(program.run());
    CHECK(host.get(0, count) == std::vector<float>(count, 6.0f));
  }
}

TEST_CASE_METHOD(DeviceTest, "an imported buffer of f16 is written up to its last half, and not behind it",
                 "[vulkan][sharing][f16]") {
  for (const Mode& mode : modes()) {
    const std::uint64_t begin = vulkan::import_alignment(mode.device);
    for (std::size_t count = 1; count < 18; ++count) {
      INFO(mode.name << ", " << count << " halves");
      HostBuffer host(mode.device, 4096);
      host.put(begin, std::vector<std::uint16_t>(count, 0x4200));  // 3
      const Buffer buffer = vulkan::import_buffer(mode.device, host.range(begin), {count}, DType::f16).value();
      Batch batch(mode.device);
      batch.store(batch.cast(batch.offset(batch.import_buffer(buffer), -1), DType::f16), buffer);
      REQUIRE_OK(batch.execute());
      CHECK(host.get<std::uint16_t>(begin, count) == std::vector<std::uint16_t>(count, 0x4000));  // 2
      CHECK(host.touched_outside(begin, begin + count * 2) == 0);
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "imported integers and masks keep their types", "[vulkan][sharing]") {
  const Device& device = shared_device();
  HostBuffer numbers(device, 4096);
  HostBuffer masks(device, 4096);
  numbers.put(0, std::vector<std::int32_t>{-3, 4, 5, -6, 7});
  const Buffer i32 = vulkan::import_buffer(device, numbers.external, {5}, DType::i32).value();
  const Buffer mask = vulkan::import_buffer(device, masks.external, {5}, DType::mask).value();
  Batch batch(device);
  const Tensor x = batch.import_buffer(i32);
  CHECK(x.dtype() == DType::i32);
  batch.store(batch.gt(x, batch.upload(std::vector<std::int32_t>{0, 0, 9, 0, 0})), mask);
  batch.store(batch.neg(x), i32);
  REQUIRE_OK(batch.execute());
  CHECK(numbers.get<std::int32_t>(0, 5) == std::vector<std::int32_t>{3, -4, -5, 6, -7});
  CHECK(masks.get<std::int32_t>(0, 5) == std::vector<std::int32_t>{0, 1, 0, 0, 1});
  CHECK(vulkan::import_buffer(device, masks.external, {5}, DType::bf16).error().code == Errc::invalid_argument);
}

TEST_CASE_METHOD(DeviceTest, "an imported buffer is read and written by the host where it was made for copies",
                 "[vulkan][sharing]") {
  const Device& device = shared_device();
  const std::uint64_t begin = vulkan::import_alignment(device) * 3;
  HostBuffer host(device, begin + guard, HostBuffer::storage | HostBuffer::copies);
  Buffer buffer = vulkan::import_buffer(device, host.range(begin), {7}).value();
  REQUIRE_OK(buffer.write(counting(7)));
  CHECK(host.get(begin, 7) == counting(7));
  REQUIRE_OK(buffer.write(std::vector<float>{9}, 6));
  CHECK(buffer.read().value() == std::vector<float>{0, 1, 2, 3, 4, 5, 9});
  CHECK(host.touched_outside(begin, begin + 28) == 0);
  const vulkan::BufferRegion region = vulkan::region(buffer);
  CHECK(region.buffer == host.external.buffer);
  CHECK(region.offset == begin);
  CHECK(region.bytes == 28);

  HostBuffer plain(device, 4096);
  Buffer mute = vulkan::import_buffer(device, plain.external, {8}).value();
  check_refused(mute.write(counting(8)), "VK_BUFFER_USAGE_TRANSFER_DST_BIT");
  check_refused(mute.read().error(), "VK_BUFFER_USAGE_TRANSFER_SRC_BIT");
  CHECK(plain.touched_outside(0, 0) == 0);
}

TEST_CASE_METHOD(DeviceTest, "a VkBuffer that will not do is refused by what is missing", "[vulkan][sharing]") {
  const Device& device = shared_device();
  const std::uint64_t alignment = vulkan::import_alignment(device);
  HostBuffer host(device, 4 * alignment);
  auto import = [&](const vulkan::ExternalBuffer& external, Shape shape) {
    return vulkan::import_buffer(device, external, shape).error();
  };
  CHECK(import(host.external, {static_cast<std::size_t>(alignment)}).code == Errc::ok);
  vulkan::ExternalBuffer bad = host.external;
  bad.buffer = VK_NULL_HANDLE;
  check_refused(import(bad, {4}), "ExternalBuffer::buffer is null");
  bad = host.external;
  bad.usage = VK_BUFFER_USAGE_VERTEX_BUFFER_BIT;
  check_refused(import(bad, {4}), "VK_BUFFER_USAGE_STORAGE_BUFFER_BIT");
  for (std::uint64_t offset : {std::uint64_t{4}, alignment / 2, alignment + 4}) {
    check_refused(import(host.range(offset), {4}), "not a multiple of " + std::to_string(alignment));
  }
  check_refused(import(host.external, {static_cast<std::size_t>(alignment + 1)}), "kernels read 16 bytes at a time");
  check_refused(import(host.range(4 * alignment), {1}), "the range takes 16 from offset");
  check_refused(import(host.range(~std::uint64_t{0} / alignment * alignment), {4}), "the VkBuffer has");
  check_refused(import(host.range(0, 4 * alignment + 4), {4}), "the VkBuffer has");
  check_refused(import(host.range(0, 8), {4}), "a range of 8 bytes for elements that take 16");
  check_refused(import(host.external, {0}), "without elements");
  check_refused(import(host.external, {}), "a shape has");
  bad = host.external;
  bad.buffer_bytes = 12;  // ends within the vec4 that kernels read
  check_refused(import(bad, {3}), "kernels read 16 bytes at a time");

  DeviceOptions small = checked_options();
  small.simulate.max_storage_range = 1024;
  const Device limited = open_device(small);
  HostBuffer large(limited, 4096);
  check_refused(vulkan::import_buffer(limited, large.external, {1024}).error(), "maxStorageBufferRange",
                Errc::limit_exceeded);
  check_device_works(device);
}

TEST_CASE_METHOD(DeviceTest, "overlapping ranges of one VkBuffer may be read together, and not stored to",
                 "[vulkan][sharing]") {
  const Device& device = shared_device();
  const std::uint64_t half = vulkan::import_alignment(device);
  const auto n = static_cast<std::size_t>(half / 4);
  HostBuffer host(device, 2 * half);
  host.put(0, counting(2 * n));
  const Buffer whole = vulkan::import_buffer(device, host.external, {2 * n}).value();
  const Buffer first = vulkan::import_buffer(device, host.external, {n}).value();
  const Buffer second = vulkan::import_buffer(device, host.range(half), {n}).value();

  Batch reads(device);
  const Tensor total = reads.sub(reads.sum(reads.import_buffer(whole)), reads.sum(reads.import_buffer(second)));
  const float sum = static_cast<float>(n * (n - 1) / 2);
  CHECK(run(reads, total) == std::vector<float>{sum});

  Batch apart(device);
  apart.store(apart.neg(apart.import_buffer(first)), second);
  REQUIRE_OK(apart.execute());
  CHECK(host.get(half, n)[1] == -1.0f);

  Batch over(device);
  over.store(over.neg(over.import_buffer(whole)), whole);
  over.store(over.import_buffer(first), second);
  check_refused(over.execute(), "share bytes from");
  check_refused(over.compile().error(), "share bytes from");

  // Nor by rebinding, which leaves the program as it was.
  Batch recorded(device);
  const Buffer own = Buffer::from(device, std::vector<float>(n, 5.0f)).value();
  const Tensor x = recorded.import_buffer(own);
  recorded.store(recorded.neg(x), second);
  Program program = recorded.compile().value();
  const Buffer also_second = vulkan::import_buffer(device, host.range(half), {n}).value();
  check_refused(program.rebind(x, also_second), "share bytes from");
  REQUIRE_OK(program.run());
  CHECK(host.get(half, n) == std::vector<float>(n, -5.0f));
  REQUIRE_OK(program.rebind(x, first));
  REQUIRE_OK(program.run());
  CHECK(host.get(half, n)[3] == -3.0f);
}

TEST_CASE_METHOD(DeviceTest, "a program that stores whole vec4s is not rebound to a range that ends within one",
                 "[vulkan][sharing]") {
  const Device& device = shared_device();
  HostBuffer host(device, 4096);
  const Buffer exact = vulkan::import_buffer(device, host.external, {5}).value();
  const Buffer roomy = vulkan::import_buffer(device, host.range(0, 32), {5}).value();
  const Buffer own = Buffer::from(device, counting(5)).value();

  auto stores_to = [&](const Buffer& buffer, Tensor& x) {
    Batch batch(device);
    x = batch.import_buffer(buffer);
    batch.store(batch.fill(7, {5}), buffer);
    return batch.compile().value();
  };
  Tensor x;
  Program whole = stores_to(own, x);
  check_refused(whole.rebind(x, exact), "ends within one");
  REQUIRE_OK(whole.rebind(x, roomy));
  REQUIRE_OK(whole.run());
  CHECK(host.get(0, 5) == std::vector<float>(5, 7.0f));
  CHECK(host.touched_outside(0, 32) == 0);

  host.clear();
  Program careful = stores_to(exact, x);
  REQUIRE_OK(careful.rebind(x, own));
  REQUIRE_OK(careful.run());
  CHECK(own.read().value() == std::vector<float>(5, 7.0f));
  REQUIRE_OK(careful.rebind(x, exact));
  REQUIRE_OK(careful.run());
  CHECK(host.get(0, 5) == std::vector<float>(5, 7.0f));
  CHECK(host.touched_outside(0, 20) == 0);

  // Reading is no matter.
  Batch batch(device);
  const Tensor y = batch.import_buffer(own);
  const Tensor sum = batch.sum(y);
  Program reader = batch.compile().value();
  host.put(0, counting(5));
  REQUIRE_OK(reader.rebind(y, exact));
  REQUIRE_OK(reader.run());
  CHECK(reader.read(sum).value() == std::vector<float>{10});
}

TEST_CASE_METHOD(DeviceTest, "the last use of a buffer says when its VkBuffer may be destroyed", "[vulkan][sharing]") {
  const Device& device = shared_device();
  std::optional<HostBuffer> host(std::in_place, device, 4096);
  host->put(0, counting(64));
  std::optional<Buffer> buffer(vulkan::import_buffer(device, host->external, {64}).value());
  CHECK(vulkan::last_use(*buffer).ready());
  Submission done;
  Tensor y;
  Batch batch(device);
  y = batch.sum(batch.import_buffer(*buffer));
  const Submission submission = batch.submit().value();
  done = vulkan::last_use(*buffer);
  REQUIRE_OK(done.wait());
  CHECK(submission.ready());
  buffer.reset();
  host.reset();  // validation would object to a VkBuffer in use
  CHECK(read(batch, y) == std::vector<float>{2016});
  // The batch goes on with values of its own.
  CHECK(run(batch, batch.scale(y, 2)) == std::vector<float>{4032});
}

TEST_CASE_METHOD(DeviceTest, "an imported buffer counts neither as a buffer nor as memory of the Device",
                 "[vulkan][sharing]") {
  const Device& device = shared_device();
  HostBuffer host(device, 4096);
  const DeviceStats before = device.stats();
  const Buffer buffer = vulkan::import_buffer(device, host.external, {64}).value();
  CHECK(device.stats().live_buffers == before.live_buffers);
  CHECK(device.stats().live_bytes == before.live_bytes);
  CHECK(device.stats().allocations == before.allocations);
}

TEST_CASE_METHOD(DeviceTest, "a Buffer with further usage flags can be bound as vertices and indices",
                 "[vulkan][sharing]") {
  const Device& device = shared_device();
  if (checked_options().validation == Toggle::off) SKIP("BRONTES_VALIDATION=0");
  const vulkan::Handles h = vulkan::handles(device);
  VkCommandPoolCreateInfo pool_info{};
  pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool_info.queueFamilyIndex = h.queue_family;
  VkCommandPool pool = VK_NULL_HANDLE;
  REQUIRE(HOST_FUNCTION(h, vkCreateCommandPool)(h.device, &pool_info, nullptr, &pool) == VK_SUCCESS);
  auto bind = [&](const Buffer& buffer) {
    VkCommandBufferAllocateInfo allocate{};
    allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    allocate.commandPool = pool;
    allocate.commandBufferCount = 1;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    REQUIRE(HOST_FUNCTION(h, vkAllocateCommandBuffers)(h.device, &allocate, &commands) == VK_SUCCESS);
    VkCommandBufferBeginInfo begin{};
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    REQUIRE(HOST_FUNCTION(h, vkBeginCommandBuffer)(commands, &begin) == VK_SUCCESS);
    const vulkan::BufferRegion region = vulkan::region(buffer);
    HOST_FUNCTION(h, vkCmdBindVertexBuffers)(commands, 0, 1, &region.buffer, &region.offset);
    HOST_FUNCTION(h, vkCmdBindIndexBuffer)(commands, region.buffer, region.offset, VK_INDEX_TYPE_UINT32);
    REQUIRE(HOST_FUNCTION(h, vkEndCommandBuffer)(commands) == VK_SUCCESS);
  };
  const Buffer drawable = vulkan::create_buffer(device, {100}, DType::i32,
                                                VK_BUFFER_USAGE_VERTEX_BUFFER_BIT | VK_BUFFER_USAGE_INDEX_BUFFER_BIT)
                              .value();
  CHECK(drawable.read_i32().value() == std::vector<std::int32_t>(100, 0));
  Batch batch(device);
  batch.store(batch.upload(std::vector<std::int32_t>(100, 3)), drawable);
  REQUIRE_OK(batch.execute());
  CHECK(drawable.read_i32().value() == std::vector<std::int32_t>(100, 3));
  bind(drawable);
  CHECK(take_messages().empty());
  bind(Buffer::create(device, {100}).value());
  CHECK(take_messages().size() >= 2);  // or binding would prove nothing
  HOST_FUNCTION(h, vkDestroyCommandPool)(h.device, pool, nullptr);
}

TEST_CASE_METHOD(DeviceTest, "a Buffer has an address for the application only where the Device uses addresses",
                 "[vulkan][sharing]") {
  for (const Mode& mode : modes()) {
    INFO(mode.name);
    const auto made = vulkan::create_buffer(mode.device, {16}, DType::f32, VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT);
    if (mode.device.info().access == AccessMode::pointer) {
      CHECK_FALSE(made.error());
    } else if (!made) {
      check_refused(made.error(), "SHADER_DEVICE_ADDRESS", Errc::unsupported);
    }
  }
}

}  // namespace brontes::test
