// Kernels of the user's own, in batches and programs.
#include "fixture.hpp"

#include "accumulate.spv.h"
#include "axpy.spv.h"
#include "bindings.spv.h"
#include "float64.spv.h"
#include "local_size.spv.h"
#include "old.spv.h"
#include "read_only.spv.h"
#include "shared.spv.h"
#include "split.spv.h"
#include "subgroup.spv.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <thread>

namespace brontes::test {
namespace {

struct AxpyParams {
  float a;
  std::uint32_t n;
};

Kernel load(const Device& device, Span<const std::uint32_t> words, const KernelOptions& options = {}) {
  auto kernel = Kernel::from_spirv(device, words, options);
  INFO(kernel.error().message);
  REQUIRE(kernel.has_value());
  return std::move(*kernel);
}

KernelOptions named(const char* name, std::vector<KernelConstant> constants = {}) {
  KernelOptions options;
  options.name = name;
  options.constants = std::move(constants);
  return options;
}

Error refusal(const Device& device, Span<const std::uint32_t> words, const KernelOptions& options = {}) {
  return Kernel::from_spirv(device, words, options).error();
}

Tensor axpy(Batch& batch, const Kernel& kernel, float a, Tensor x, Tensor y) {
  const AxpyParams params{a, static_cast<std::uint32_t>(x.size())};
  return batch.call(kernel, {x, y}, x.shape(), kernel.groups_for(x.size()), push_data(params));
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "a kernel runs between elementwise ops", "[kernel]") {
  const Device& device = shared_device();
  const Kernel kernel = load(device, axpy_spv, named("axpy"));
  Batch batch(device);
  const Tensor x = batch.upload(counting(100));
  const Tensor y = batch.scale(batch.offset(x, 1), 0.5f);
  const Tensor z = axpy(batch, kernel, 2, x, y);
  const Tensor out = batch.relu(batch.offset(z, -100));
  const std::string dump = batch.dump().value();
  INFO(dump);
  CHECK(contains(dump, "axpy call axpy "));
  const std::vector<float> result = run(batch, out);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto v = static_cast<float>(i);
    CHECK(result[i] == std::max(0.0f, 2 * v + (v + 1) * 0.5f - 100));
  }
  // The neighbours fuse among themselves: one dispatch before, one after.
  CHECK(batch.stats().dispatches == 3);
  CHECK(batch.stats().barriers == 2);
}

TEST_CASE_METHOD(DeviceTest, "what a kernel asks for can be seen", "[kernel]") {
  const Device& device = shared_device();
  const Kernel kernel = load(device, axpy_spv);
  CHECK(kernel.name() == "kernel");
  CHECK(kernel.entry_point() == "main");
  CHECK(kernel.num_inputs() == 2);
  CHECK(kernel.num_outputs() == 1);
  REQUIRE(kernel.bindings().size() == 3);
  CHECK(kernel.bindings()[0].name == "X");
  CHECK(kernel.bindings()[1].binding == 2);
  CHECK(kernel.bindings()[1].access == KernelAccess::write);
  CHECK(kernel.bindings()[2].binding == 4);
  CHECK(kernel.push_bytes() == 8);
  CHECK(kernel.shared_bytes() == 0);
  CHECK(!kernel.uses_subgroups());
  CHECK(std::vector<std::uint32_t>(kernel.capabilities().begin(), kernel.capabilities().end()) ==
        std::vector<std::uint32_t>{1});
  REQUIRE(kernel.constants().size() == 4);
  CHECK(kernel.constants()[1].name == "bias");
  CHECK(kernel.constants()[1].kind == KernelConstant::Kind::floating);
  CHECK(kernel.groups_for(100).x == 100);
  const Kernel wide = load(device, axpy_spv, named("wide", {{0, 32}}));
  CHECK(wide.workgroup_size() == std::array<std::uint32_t, 3>{32, 1, 1});
  CHECK(wide.constants()[0].bits == 32);
  CHECK(load(device, axpy_spv, named("low", {{3, -2}})).constants()[3].bits == 0xfffffffe);
  CHECK(wide.groups_for(100).x == 4);
  Kernel taken = wide;
  const Kernel owner = std::move(taken);
  CHECK(taken.bindings().empty());  // NOLINT: what is left of it can be asked
  CHECK(taken.name().empty());
  CHECK(owner.num_inputs() == 2);
}

TEST_CASE_METHOD(DeviceTest, "specialization constants choose what a kernel does", "[kernel]") {
  const Device& device = shared_device();
  Batch batch(device);
  const Tensor x = batch.upload(counting(70));
  const Kernel plain = load(device, axpy_spv);
  const Kernel special = load(device, axpy_spv, named("special", {{0, 16u}, {1, 0.5f}, {2, true}, {3, -3}}));
  const Tensor a = axpy(batch, plain, 1, x, x);
  const Tensor b = axpy(batch, special, 1, x, x);
  REQUIRE_OK(batch.execute());
  for (std::size_t i = 0; i < 70; ++i) {
    CHECK(read(batch, a)[i] == static_cast<float>(2 * i));
    CHECK(read(batch, b)[i] == -(static_cast<float>(2 * i) + 0.5f - 3));
  }
}

TEST_CASE_METHOD(DeviceTest, "buffers without access qualifiers are what the kernel does with them", "[kernel]") {
  const Device& device = shared_device();
  for (const bool old : {false, true}) {
    INFO((old ? "SPIR-V 1.0" : "SPIR-V 1.3"));
    const Kernel kernel =
        old ? load(device, Span<const std::uint32_t>(old_spv)) : load(device, Span<const std::uint32_t>(split_spv));
    CHECK(kernel.num_inputs() == 1);
    CHECK(kernel.num_outputs() == 2);
    Batch batch(device);
    // Of 13 elements, not of whole vec4s: the kernel asks for the length.
    const Tensor x = batch.scale(batch.upload(counting(13)), 0.75f);
    const std::vector<Tensor> parts = batch.call_all(kernel, {x}, {x.shape(), x.shape()}, kernel.groups_for(13));
    REQUIRE(parts.size() == 2);
    const Tensor product = batch.mul(parts[0], parts[1]);
    batch.keep(parts[0]);
    batch.keep(parts[1]);
    REQUIRE_OK(batch.execute());
    for (std::size_t i = 0; i < 13; ++i) {
      const float v = 0.75f * static_cast<float>(i);
      CHECK(read(batch, parts[0])[i] == std::floor(v));
      CHECK(read(batch, parts[1])[i] == v - std::floor(v));
      CHECK(read(batch, product)[i] == std::floor(v) * (v - std::floor(v)));
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "a buffer that is updated in place leaves its operand alone", "[kernel]") {
  const Device& device = shared_device();
  const Kernel kernel = load(device, accumulate_spv, named("accumulate"));
  CHECK(kernel.bindings()[0].access == KernelAccess::read_write);
  CHECK(kernel.num_inputs() == 2);
  CHECK(kernel.num_outputs() == 1);
  CHECK(kernel.shared_bytes() == 32 * 16 + 4);
  Batch batch(device);
  const Tensor x = batch.upload(counting(75));
  const Tensor y = batch.offset(x, 1);
  const Groups groups{3};
  // A chain of updates, and an operand that is needed afterwards.
  const Tensor once = batch.call(kernel, {y, x}, y.shape(), groups);
  const Tensor twice = batch.call(kernel, {once, x}, y.shape(), groups);
  const Tensor all = batch.add(batch.add(y, once), twice);
  REQUIRE_OK(batch.execute());
  for (std::size_t i = 0; i < 75; ++i) {
    const auto v = static_cast<float>(i);
    CHECK(read(batch, all)[i] == (v + 1) + (2 * v + 1) + (3 * v + 1));
  }
}

TEST_CASE_METHOD(DeviceTest, "what a kernel does not store to stays, in a buffer that it is said to update",
                 "[kernel]") {
  const Device& device = shared_device();
  KernelOptions options = named("axpy");
  options.updates = {2};
  const Kernel kernel = load(device, axpy_spv, options);
  CHECK(kernel.num_inputs() == 3);
  Batch batch(device);
  const Tensor x = batch.upload(counting(6));
  const Tensor old = batch.fill(-1, Shape(6));
  const AxpyParams first_four{1, 4};
  const Tensor z = batch.call(kernel, {x, old, x}, x.shape(), {6}, push_data(first_four));
  CHECK(run(batch, z) == std::vector<float>{0, 2, 4, 6, -1, -1});
  options.updates = {0};
  CHECK(contains(refusal(device, axpy_spv, options).message, "binding 0, which the kernel does not write"));
  options.updates = {7};
  CHECK(refusal(device, axpy_spv, options).code == Errc::invalid_argument);
}

TEST_CASE_METHOD(DeviceTest, "calls in a chain have barriers and share memory", "[kernel]") {
  const Device& device = shared_device();
  const Kernel kernel = load(device, axpy_spv, named("axpy", {{0, 64}}));
  Batch batch(device);
  const Tensor x = batch.upload(counting(1000));
  Tensor y = x;
  for (int i = 0; i < 8; ++i) y = axpy(batch, kernel, 1, x, y);
  // Independent of the chain.
  const Tensor aside = axpy(batch, kernel, 3, x, x);
  const std::string dump = batch.dump().value();
  INFO(dump);
  CHECK(contains(dump, "without reuse"));
  REQUIRE_OK(batch.execute());
  CHECK(batch.stats().dispatches == 9);
  CHECK(batch.stats().barriers == 7);
  CHECK(batch.stats().pipelines_created <= 1);
  for (std::size_t i = 0; i < 1000; i += 37) {
    CHECK(read(batch, y)[i] == static_cast<float>(9 * i));
    CHECK(read(batch, aside)[i] == static_cast<float>(4 * i));
  }
}

TEST_CASE_METHOD(DeviceTest, "a program replays a kernel whose handle is gone", "[kernel]") {
  const Device& device = shared_device();
  std::optional<Kernel> kernel = load(device, axpy_spv, named("axpy"));
  std::optional<Batch> batch(std::in_place, device);
  const Tensor x = batch->upload(counting(40));
  AxpyParams params{3, 40};
  const Tensor z = batch->call(*kernel, {x, x}, x.shape(), {40}, push_data(params));
  params = {};
  kernel.reset();
  const Tensor out = batch->offset(z, 1);
  auto program = batch->compile();
  INFO(program.error().message);
  REQUIRE(program.has_value());
  REQUIRE_OK(batch->execute());
  CHECK(read(*batch, out)[7] == 4 * 7 + 1);
  batch.reset();
  CHECK(contains(program->dump(), "call axpy"));
  CHECK(contains(program->dump(DumpFormat::json), "\"kernel\": \"axpy\""));
  for (int i = 0; i < 3; ++i) {
    const std::vector<float> input(40, static_cast<float>(i));
    REQUIRE_OK(program->write(x, input));
    REQUIRE_OK(program->run());
    CHECK(program->read(out).value() == std::vector<float>(40, static_cast<float>(4 * i + 1)));
  }
}

TEST_CASE_METHOD(DeviceTest, "a kernel's result goes straight into the buffer it is stored to", "[kernel]") {
  const Device& device = shared_device();
  const Kernel kernel = load(device, axpy_spv, named("axpy"));
  const Buffer buffer = Buffer::create(device, Shape(64)).value();
  Batch batch(device);
  const Tensor x = batch.upload(counting(64));
  batch.store(axpy(batch, kernel, 1, x, x), buffer);
  REQUIRE_OK(batch.execute());
  CHECK(batch.stats().dispatches == 1);
  // An update of the buffer itself.
  Batch update(device);
  const Tensor old = update.import_buffer(buffer);
  update.store(axpy(update, kernel, 1, old, old), buffer);
  REQUIRE_OK(update.execute());
  const std::vector<float> result = buffer.read().value();
  for (std::size_t i = 0; i < 64; ++i) CHECK(result[i] == static_cast<float>(4 * i));
}

TEST_CASE_METHOD(DeviceTest, "equal kernels share a pipeline, others do not", "[kernel]") {
  const Device device = open_device();
  auto run_with = [&](std::vector<KernelConstant> constants) {
    Batch batch(device);
    const Tensor x = batch.upload({1.0f, 2.0f});
    const Kernel kernel = load(device, axpy_spv, named("axpy", std::move(constants)));
    axpy(batch, kernel, 1, x, x);
    REQUIRE_OK(batch.execute());
    return device.stats().pipelines_created;
  };
  const std::uint64_t first = run_with({});
  CHECK(run_with({}) == first);
  CHECK(run_with({{1, 0.0f}}) == first);  // the default
  CHECK(run_with({{1, 1.0f}}) == first + 1);
  CHECK(run_with({{1, 1.0f}, {0, 2}}) == first + 2);
}

TEST_CASE_METHOD(DeviceTest, "calls that do not fit the kernel are errors that say why", "[kernel]") {
  const Device& device = shared_device();
  const Kernel kernel = load(device, axpy_spv, named("axpy"));
  const Kernel update = load(device, accumulate_spv, named("update"));
  const AxpyParams params{1, 4};
  struct Refused {
    const char* why;
    Errc code;
    std::function<Tensor(Batch&, Tensor)> call;
  };
  const Refused all[] = {
      {"call axpy: 1 input for a kernel that reads 2 buffers (binding 0 ('X'), binding 4 ('Y'))",
       Errc::invalid_argument,
       [&](Batch& b, Tensor x) { return b.call(kernel, {x}, x.shape(), {1}, push_data(params)); }},
      {"call axpy: 0 outputs for a kernel that writes 1 buffer (binding 2 ('Z'))", Errc::invalid_argument,
       [&](Batch& b, Tensor x) {
         CHECK(b.call_all(kernel, {x, x}, {}, {1}, push_data(params)).empty());
         return Tensor();
       }},
      {"call axpy: 0 bytes of push constants for a kernel that has 8", Errc::shape_mismatch,
       [&](Batch& b, Tensor x) {
         return b.call(kernel, {x, x}, x.shape(), {1});
       }},
      {"call axpy: 32 bytes of push constants", Errc::shape_mismatch,
       [&](Batch& b, Tensor x) {
         return b.call(kernel, {x, x}, x.shape(), {1}, push_data(std::array<float, 8>{}));
       }},
      {"call axpy: no workgroups along y", Errc::invalid_argument,
       [&](Batch& b, Tensor x) {
         return b.call(kernel, {x, x}, x.shape(), {1, 0, 1}, push_data(params));
       }},
      {"call axpy: the result of binding 2 ('Z') has no elements", Errc::empty_input,
       [&](Batch& b, Tensor x) {
         return b.call(kernel, {x, x}, Shape(0), {1}, push_data(params));
       }},
      {"call axpy: the operand of binding 4 ('Y') has no elements", Errc::empty_input,
       [&](Batch& b, Tensor x) {
         return b.call(kernel, {x, b.fill(0, Shape(0))}, x.shape(), {1}, push_data(params));
       }},
      {"a kernel gives f32 or i32", Errc::unsupported,
       [&](Batch& b, Tensor x) {
         return b.call(kernel, {x, x}, ValueSpec(x.shape(), DType::q4_0), {1}, push_data(params));
       }},
      {"a shape has", Errc::invalid_argument,
       [&](Batch& b, Tensor x) {
         return b.call(kernel, {x, x}, Shape(-1), {1}, push_data(params));
       }},
      {"call update: binding 0 ('Total') is read and written, so its operand [4] and its result [5]",
       Errc::shape_mismatch,
       [&](Batch& b, Tensor x) {
         return b.call(update, {x, x}, Shape(5), {1});
       }},
      {"call: the tensor is empty", Errc::invalid_tensor,
       [&](Batch& b, Tensor x) {
         return b.call(kernel, {x, Tensor()}, x.shape(), {1}, push_data(params));
       }},
  };
  for (const Refused& r : all) {
    INFO(r.why);
    Batch batch(device);
    const Tensor x = batch.upload(counting(4));
    CHECK(!r.call(batch, x).valid());
    INFO(batch.error().message);
    CHECK(batch.error().code == r.code);
    CHECK(contains(batch.error().message, r.why));
    CHECK(batch.num_operations() <= 1);
    static_cast<void>(batch.clear_error());
    const Tensor good = axpy(batch, kernel, 1, x, x);
    CHECK(run(batch, good) == std::vector<float>{0, 2, 4, 6});
  }
}

TEST_CASE_METHOD(DeviceTest, "call_all gives as many tensors as were asked for, good or not", "[kernel]") {
  const Device& device = shared_device();
  const Kernel kernel = load(device, split_spv);
  Batch batch(device);
  const std::vector<Tensor> none = batch.call_all(kernel, {}, {Shape(1), Shape(2)}, {1});
  REQUIRE(none.size() == 2);
  CHECK(!none[0].valid());
  CHECK(!none[1].valid());
}

TEST_CASE_METHOD(DeviceTest, "too many workgroups for the device are an error", "[kernel]") {
  DeviceOptions options = checked_options();
  options.simulate.max_group_count = 10;
  const Device device = open_device(options);
  const Kernel kernel = load(device, axpy_spv, named("axpy"));
  Batch batch(device);
  axpy(batch, kernel, 1, batch.upload(counting(11)), batch.upload(counting(11)));
  CHECK(batch.error().code == Errc::limit_exceeded);
  CHECK(contains(batch.error().message, "11 workgroups along x"));
}

TEST_CASE_METHOD(DeviceTest, "a kernel of another device is an error", "[kernel]") {
  const Device other = open_device();
  const Kernel kernel = load(other, axpy_spv, named("axpy"));
  Batch batch(shared_device());
  const Tensor x = batch.upload({1.0f});
  CHECK(!axpy(batch, kernel, 1, x, x).valid());
  CHECK(batch.error().code == Errc::invalid_argument);
  CHECK(contains(batch.error().message, "belongs to another device"));
}

TEST_CASE_METHOD(DeviceTest, "modules that the device cannot run are refused before it sees them", "[kernel]") {
  const Device& device = shared_device();
  const std::vector<std::uint32_t> nothing;
  CHECK(refusal(device, nothing).code == Errc::invalid_argument);
  CHECK(refusal(device, {static_cast<const std::uint32_t*>(nullptr), 7}).code == Errc::null_data);
  CHECK(refusal(device, Span<const std::uint32_t>(axpy_spv, 40)).code == Errc::invalid_argument);
  CHECK(contains(refusal(device, float64_spv).message, "capability Float64"));
  CHECK(refusal(device, bindings_spv).code == Errc::limit_exceeded);
  CHECK(contains(refusal(device, read_only_spv).message, "writes none of its 1 buffers"));
  CHECK(refusal(device, axpy_spv, named("two words")).code == Errc::invalid_argument);
  CHECK(refusal(device, axpy_spv, named("axpy", {{9, 1}})).code == Errc::invalid_argument);
  // 64 x 1 x 2 fits, and no device takes 64 x 100000 x 2.
  CHECK(!refusal(device, local_size_spv));
  CHECK(refusal(device, local_size_spv, named("large", {{7, 100000}})).code == Errc::limit_exceeded);
  CHECK(!refusal(device, shared_spv));
  CHECK(contains(refusal(device, shared_spv, named("large", {{3, 1000000}})).message, "shared variables take"));
  KernelOptions other;
  other.entry_point = "other";
  CHECK(contains(refusal(device, axpy_spv, other).message, "its entry points are \"main\""));
  Device moved = open_device();
  const Device owner = std::move(moved);
  CHECK(refusal(moved, axpy_spv).code == Errc::invalid_argument);  // NOLINT: what is left of it can be asked
}

TEST_CASE_METHOD(DeviceTest, "subgroup kernels run where the device has the operations", "[kernel]") {
  DeviceOptions without = checked_options();
  without.simulate.no_subgroup_operations = true;
  CHECK(contains(refusal(open_device(without), subgroup_spv).message, "GroupNonUniform"));

  const Device& device = shared_device();
  auto kernel = Kernel::from_spirv(device, subgroup_spv);
  if (!kernel) SKIP(kernel.error().message);
  CHECK(kernel->uses_subgroups());
  Batch batch(device);
  const Tensor x = batch.upload(std::vector<float>(64, 1.0f));
  const std::vector<float> sums = run(batch, batch.call(*kernel, {x}, x.shape(), {1}));
  // However large the subgroups are, and whether or not they are full.
  CHECK(sums[0] >= 1);
  CHECK(sums[0] <= 64);
}

TEST_CASE_METHOD(DeviceTest, "threads share a kernel", "[kernel]") {
  const Device& device = shared_device();
  const Kernel kernel = load(device, axpy_spv, named("axpy", {{1, 7.0f}}));
  std::vector<std::thread> threads;
  std::vector<std::vector<float>> results(4);
  for (std::size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([&, t] {
      Batch batch(device);
      const Tensor x = batch.upload(counting(20));
      const Tensor z = axpy(batch, kernel, static_cast<float>(t), x, x);
      if (!batch.execute()) results[t] = batch.read(z).value();
    });
  }
  for (std::thread& t : threads) t.join();
  for (std::size_t t = 0; t < results.size(); ++t) {
    REQUIRE(results[t].size() == 20);
    CHECK(results[t][3] == static_cast<float>(3 * t + 3 + 7));
  }
}

}  // namespace brontes::test
