// Every mistake a caller can make has its own code, a message that names op and sizes, and leaves
// batch and device in working order.
#include "fixture.hpp"

#include <brontes/vulkan.hpp>

#include <cmath>
#include <functional>

namespace brontes::test {
namespace {

struct Mistake {
  const char* what;
  Errc code;
  std::function<void(Batch&)> make;
  std::vector<std::string> named;  // what the message must contain
};

const std::uint64_t huge = std::uint64_t{1} << 33;

// The tensors that mistakes are made with.
Tensor vector_of(Batch& batch, std::size_t n) { return batch.upload(counting(n)); }

std::vector<Mistake> mistakes() {
  const std::uint64_t too_many = shared_device().info().max_storage_range / sizeof(float) + 1;
  return {
      {"an upload of nothing", Errc::empty_input, [](Batch& b) { (void)b.upload(Span<const float>()); }, {"upload"}},
      {"an upload of an empty vector",
       Errc::empty_input,
       [](Batch& b) { (void)b.upload(std::vector<float>()); },
       {"upload"}},
      {"the max of no elements",
       Errc::empty_input,
       [](Batch& b) {
         (void)b.max(b.fill(1, {0, 5}));
       },
       {"max", "[0, 5]"}},
      {"the min of no elements", Errc::empty_input, [](Batch& b) { (void)b.min(b.fill(1, {0})); }, {"min", "[0]"}},
      {"an upload from null",
       Errc::null_data,
       [](Batch& b) { (void)b.upload(Span<const float>(nullptr, 17)); },
       {"upload", "17"}},
      {"an upload from null with a shape",
       Errc::null_data,
       [](Batch& b) {
         (void)b.upload(Span<const float>(nullptr, 6), {2, 3});
       },
       {"upload", "6"}},
      {"data that does not fill its shape",
       Errc::shape_mismatch,
       [](Batch& b) {
         (void)b.upload(counting(5), {2, 3});
       },
       {"upload", "5", "[2, 3]"}},
      {"no data for a shape",
       Errc::shape_mismatch,
       [](Batch& b) {
         (void)b.upload(Span<const float>(), {2, 3});
       },
       {"upload", "0", "[2, 3]"}},
      {"an add of different sizes",
       Errc::shape_mismatch,
       [](Batch& b) { (void)b.add(vector_of(b, 3), vector_of(b, 4)); },
       {"add", "[3]", "[4]"}},
      {"a dot of different sizes",
       Errc::shape_mismatch,
       [](Batch& b) { (void)b.dot(vector_of(b, 3), vector_of(b, 4)); },
       {"dot", "3", "4"}},
      {"a matmul of shapes that do not meet",
       Errc::shape_mismatch,
       [](Batch& b) {
         (void)b.matmul(b.fill(1, {2, 3}), b.fill(1, {4, 5}));
       },
       {"matmul", "[2, 3]", "[4, 5]"}},
      {"a batched matmul of two numbers of matrices",
       Errc::shape_mismatch,
       [](Batch& b) {
         (void)b.matmul(b.fill(1, {2, 3, 4}), b.fill(1, {3, 4, 5}));
       },
       {"matmul", "[2, 3, 4]"}},
      {"a flat matmul of wrong sizes",
       Errc::shape_mismatch,
       [](Batch& b) { (void)b.matmul(vector_of(b, 6), vector_of(b, 6), 2, 3, 4); },
       {"matmul", "6", "12"}},
      {"a linear with a bias of the wrong size",
       Errc::shape_mismatch,
       [](Batch& b) {
         (void)b.linear(b.fill(1, {2, 3}), b.fill(1, {4, 3}), b.fill(1, {5}));
       },
       {"[5]"}},
      {"a linear with a bias that would broadcast the result larger",
       Errc::shape_mismatch,
       [](Batch& b) {
         (void)b.linear(b.fill(1, {1, 3}), b.fill(1, {4, 3}), b.fill(1, {7, 4}));
       },
       {"linear", "[7, 4]"}},
      {"a clamp upside down",
       Errc::invalid_argument,
       [](Batch& b) { (void)b.clamp(vector_of(b, 3), 2.0f, 1.0f); },
       {"clamp", "2", "1"}},
      {"a clamp to NaN",
       Errc::invalid_argument,
       [](Batch& b) { (void)b.clamp(vector_of(b, 3), std::nanf(""), 1.0f); },
       {"clamp", "nan"}},
      {"a negative extent",
       Errc::invalid_argument,
       [](Batch& b) {
         (void)b.fill(1, {2, -3});
       },
       {"fill"}},
      {"nine dims",
       Errc::invalid_argument,
       [](Batch& b) {
         (void)b.fill(1, {1, 1, 1, 1, 1, 1, 1, 1, 1});
       },
       {"fill"}},
      {"a fill without a shape", Errc::invalid_argument, [](Batch& b) { (void)b.fill(1, Shape()); }, {"fill"}},
      {"gemv of nine rows",
       Errc::invalid_argument,
       [](Batch& b) {
         (void)b.matmul(b.fill(1, {9, 3}), b.fill(1, {3, 4}), {1.0f, Layout::kn, MatmulKernel::gemv});
       },
       {"matmul", "gemv", "9"}},
      {"a fill past 64 bits",
       Errc::size_overflow,
       [](Batch& b) {
         (void)b.fill(1, {huge, huge});
       },
       {"fill", std::to_string(huge)}},
      {"a fill whose bytes pass 64 bits",
       Errc::size_overflow,
       [](Batch& b) { (void)b.fill(1, {std::uint64_t{1} << 62}); },
       {"fill"}},
      {"m * k past 64 bits",
       Errc::size_overflow,
       [](Batch& b) { (void)b.matmul(vector_of(b, 4), vector_of(b, 4), huge, huge, 1); },
       {"matmul", std::to_string(huge)}},
      {"m * k past 32 bits, which must not wrap to a match",
       Errc::shape_mismatch,
       [](Batch& b) { (void)b.matmul(vector_of(b, 4), vector_of(b, 4), (std::uint64_t{1} << 32) + 4, 1, 4); },
       {"matmul", "4294967300"}},
      {"m * n past 64 bits with k = 0",
       Errc::size_overflow,
       [](Batch& b) { (void)b.matmul(b.fill(1, {0}), b.fill(1, {0}), huge, 0, huge); },
       {"matmul", std::to_string(huge)}},
      {"a tensor larger than the device takes",
       Errc::limit_exceeded,
       [=](Batch& b) { (void)b.fill(1, {too_many}); },
       {"fill", std::to_string(too_many), "maxStorageBufferRange"}},
      {"a product larger than the device takes",
       Errc::limit_exceeded,
       [](Batch& b) {
         (void)b.matmul(b.fill(1, {huge / 64, 0}), b.fill(1, {0, 64}));
       },
       {"matmul", "maxStorageBufferRange"}},
      {"a default tensor", Errc::invalid_tensor, [](Batch& b) { (void)b.relu(Tensor()); }, {"relu"}},
      {"a default tensor as second operand",
       Errc::invalid_tensor,
       [](Batch& b) { (void)b.add(vector_of(b, 3), Tensor()); },
       {"add"}},
      {"a default tensor to keep", Errc::invalid_tensor, [](Batch& b) { (void)b.keep(Tensor()); }, {"keep"}},
      {"a default tensor in matmul",
       Errc::invalid_tensor,
       [](Batch& b) { (void)b.matmul(Tensor(), Tensor(), 1, 1, 1); },
       {"matmul"}},
      {"a default tensor in linear",
       Errc::invalid_tensor,
       [](Batch& b) {
         (void)b.linear(b.fill(1, {2, 3}), Tensor());
       },
       {}},
      {"a default tensor in a reduction", Errc::invalid_tensor, [](Batch& b) { (void)b.sum(Tensor()); }, {"sum"}},
      {"a foreign tensor",
       Errc::foreign_tensor,
       [](Batch& b) {
         Batch other(shared_device());
         (void)b.scale(other.upload({1.f}), 2.0f);
       },
       {"scale"}},
      {"a stale tensor",
       Errc::stale_tensor,
       [](Batch& b) {
         const Tensor old = b.upload({1.f});
         b.reset();
         (void)b.sigmoid(old);
       },
       {"sigmoid"}},
  };
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "each mistake has its own code and a message that names op and sizes", "[errors]") {
  for (const Mistake& mistake : mistakes()) {
    INFO(mistake.what);
    Batch batch(shared_device());
    mistake.make(batch);
    CHECK(batch.error().code == mistake.code);
    INFO("message: " << batch.error().message);
    for (const std::string& part : mistake.named) CHECK(contains(batch.error().message, part));
    const Error reported = batch.execute();
    CHECK(reported.code == mistake.code);
    CHECK(reported.message == batch.error().message);
    CHECK(batch.stats().submits == 0);
  }
  check_device_works(shared_device());
}

TEST_CASE_METHOD(DeviceTest, "after a mistake the batch can be corrected and executed", "[errors]") {
  for (const Mistake& mistake : mistakes()) {
    if (mistake.code == Errc::stale_tensor) continue;  // its point is to reset the batch
    INFO(mistake.what);
    Batch batch(shared_device());
    const Tensor before = batch.neg(batch.upload({1.f, 2.f}));
    mistake.make(batch);
    const Tensor after = batch.scale(batch.upload({3.f}), 2.0f);
    CHECK(after.valid());
    CHECK(batch.execute().code == mistake.code);
    CHECK(batch.clear_error().code == mistake.code);
    CHECK_FALSE(batch.error());
    REQUIRE_OK(batch.execute());
    CHECK(read(batch, before) == std::vector<float>{-1, -2});
    CHECK(read(batch, after) == std::vector<float>{6});
  }
}

TEST_CASE_METHOD(DeviceTest, "the first error sticks, and calls on its result chain freely", "[errors]") {
  Batch batch(shared_device());
  const Tensor bad = batch.add(batch.upload({1.f, 2.f, 3.f}), batch.upload({1.f, 2.f}));
  CHECK_FALSE(bad.valid());
  const Tensor worse = batch.relu(batch.scale(bad, 2.0f));
  CHECK_FALSE(worse.valid());
  const Error error = batch.execute();
  CHECK(error.code == Errc::shape_mismatch);
  CHECK(contains(error.message, "add"));
  CHECK(batch.execute().code == Errc::shape_mismatch);
}

TEST_CASE_METHOD(DeviceTest, "an op that failed leaves no trace in the counts", "[errors]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload({1.f, 2.f, 3.f});
  const Tensor y = batch.upload({1.f, 2.f});
  (void)batch.add(x, y);
  (void)batch.matmul(x, y);
  CHECK(batch.num_operations() == 0);
  CHECK(batch.num_buffers() == 2);
  // x was not consumed by the failed op, so it can still be read.
  (void)batch.clear_error();
  REQUIRE_OK(batch.execute());
  CHECK(read(batch, x) == std::vector<float>{1, 2, 3});
}

TEST_CASE_METHOD(DeviceTest, "reading before execute says so", "[errors]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload({1.f, 2.f});
  const Tensor y = batch.relu(x);
  for (Tensor t : {x, y}) {
    const Error error = batch.read(t).error();
    CHECK(error.code == Errc::not_executed);
    CHECK(contains(error.message, "execute"));
  }
  std::vector<float> out(2, 7.0f);
  CHECK(batch.read(y, out).code == Errc::not_executed);
  CHECK(out == std::vector<float>{7, 7});
  // Reading is no recording: nothing sticks.
  CHECK(run(batch, y) == std::vector<float>{1, 2});
  const Tensor z = batch.neg(y);
  CHECK(batch.read(z).error().code == Errc::not_executed);
}

TEST_CASE_METHOD(DeviceTest, "reading a bad handle is an error and not a crash", "[errors]") {
  Batch batch(shared_device());
  Batch other(shared_device());
  const Tensor foreign = other.upload({1.f});
  REQUIRE_OK(batch.execute());
  CHECK(batch.read(Tensor()).error().code == Errc::invalid_tensor);
  CHECK(batch.read(foreign).error().code == Errc::foreign_tensor);
  CHECK_FALSE(batch.read(foreign).error().message.empty());
  std::vector<float> out(1);
  CHECK(batch.read(Tensor(), out).code == Errc::invalid_tensor);
  const Tensor x = batch.upload({1.f});
  REQUIRE_OK(batch.execute());
  CHECK(batch.read(x, Span<float>(nullptr, 1)).code == Errc::null_data);
}

TEST_CASE_METHOD(DeviceTest, "keep and store after execution cannot bring a dropped value back", "[errors]") {
  Batch batch(shared_device());
  const Buffer buffer = Buffer::create(shared_device(), {2}).value();
  const Tensor dropped = batch.relu(batch.upload({1.f, 2.f}));
  const Tensor y = batch.neg(dropped);
  REQUIRE_OK(batch.execute());
  (void)batch.keep(dropped);
  CHECK(batch.read(dropped).error().code == Errc::not_kept);
  (void)batch.clear_error();
  batch.store(dropped, buffer);
  CHECK(batch.clear_error().code == Errc::not_kept);
  CHECK(read(batch, y) == std::vector<float>{-1, -2});
}

TEST_CASE_METHOD(DeviceTest, "a buffer of another device is refused", "[errors]") {
  const Device other = open_device();
  const Buffer buffer = Buffer::from(other, counting(4)).value();
  Batch batch(shared_device());
  const Tensor x = batch.import_buffer(buffer);
  CHECK_FALSE(x.valid());
  CHECK(batch.error().code == Errc::invalid_argument);
  CHECK(contains(batch.error().message, "import_buffer"));
  (void)batch.clear_error();
  batch.store(batch.upload(counting(4)), buffer);
  CHECK(batch.error().code == Errc::invalid_argument);
  CHECK(contains(batch.error().message, "store"));
}

TEST_CASE_METHOD(DeviceTest, "more memory than there is gives an error that says so, and the device still works",
                 "[errors]") {
  // Without validation, which objects to the size itself.
  DeviceOptions options = checked_options();
  options.validation = Toggle::off;
  const Device device = open_device(options);
  const std::uint64_t each = device.info().max_storage_range / sizeof(float);
  const std::uint64_t count = (std::uint64_t{1} << 42) / device.info().max_storage_range + 1;  // 4 TiB
  Batch batch(device);
  const Tensor small = batch.neg(batch.upload({1.f}));
  REQUIRE_OK(batch.execute());
  const Tensor x = batch.fill(1.0f, {each});
  for (std::uint64_t i = 0; i < count; ++i) (void)batch.fill(1.0f, {each});
  const Error error = batch.execute();
  INFO(error.message);
  // A limit of one allocation, where the driver names one.
  CHECK((error.code == Errc::out_of_memory || error.code == Errc::limit_exceeded));
  CHECK((contains(error.message, "memory") || contains(error.message, "Memory")));
  CHECK(read(batch, small) == std::vector<float>{-1});
  CHECK(batch.read(x).error().code == Errc::not_executed);
  batch.reset();
  const Tensor y = batch.neg(batch.upload({1.f}));
  CHECK(run(batch, y) == std::vector<float>{-1});
  check_device_works(device);
}

TEST_CASE_METHOD(DeviceTest, "what was moved from is an error to use, and can be destroyed", "[errors]") {
  Device device = open_device();
  Device elsewhere = std::move(device);
  Batch orphan(device);
  (void)orphan.neg(orphan.upload({1.f}));
  CHECK(orphan.execute().code == Errc::invalid_argument);
  CHECK(contains(orphan.error().message, "moved from"));
  CHECK(Buffer::create(device, Shape(4)).error().code == Errc::invalid_argument);
  CHECK(device.info().name == "");
  CHECK(device.stats().submits == 0);
  CHECK(device.pipeline_cache().path == "");
  CHECK(device.tuning().path == "");
  CHECK(device.save_pipeline_cache().code == Errc::invalid_argument);
  CHECK(contains(explain_matmul(device, 4, 4, 4).reason, "moved from"));
  CHECK(contains(explain_matmul(device, Shape(4, 4), Shape(4, 4)).reason, "moved from"));
  CHECK(vulkan::handles(device).device == VK_NULL_HANDLE);
  CHECK_FALSE(vulkan::lock_queue(device).owns_lock());

  Buffer buffer = Buffer::from(elsewhere, counting(4)).value();
  const Buffer kept = std::move(buffer);
  std::vector<float> out(4);
  CHECK(buffer.read(out).code == Errc::invalid_argument);
  CHECK(buffer.write(out).code == Errc::invalid_argument);
  CHECK(contains(buffer.read(out).message, "moved from"));
  CHECK(vulkan::region(buffer).buffer == VK_NULL_HANDLE);
  CHECK(kept.read().value() == counting(4));

  Batch batch(elsewhere);
  const Tensor x = batch.upload(counting(4));
  const Tensor y = batch.neg(x);
  Program program = batch.compile().value();
  Program other = std::move(program);
  for (const Error& error : {program.run(), program.submit().error(), program.write(x, out), program.read(y, out)}) {
    CHECK(error.code == Errc::invalid_argument);
    CHECK(contains(error.message, "moved from"));
  }
  REQUIRE_OK(other.run());
  CHECK(other.read(y).value()[3] == -3.0f);
}

TEST_CASE_METHOD(DeviceTest, "a call that records several ops and fails leaves none of them behind", "[errors]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload(counting(6), {2, 3});
  const Tensor w = batch.upload(counting(12), {3, 4});
  const Tensor turned = batch.transpose(w);
  const Tensor bias = batch.upload(counting(5));
  const Tensor mask = batch.gt(x, batch.fill(2.0f, {1}));
  Batch other(shared_device());
  const Tensor foreign = other.upload(counting(4));
  const std::size_t operations = batch.num_operations();
  const std::size_t values = batch.num_buffers();
  for (const Tensor& made : {batch.linear(x, turned, bias), batch.linear(x, turned, Tensor()),
                             batch.linear(x, turned, foreign), batch.any(mask, {7}), batch.all(mask, {0, 0})}) {
    CHECK_FALSE(made.valid());
    CHECK(batch.num_operations() == operations);
    CHECK(batch.num_buffers() == values);
  }
  CHECK(batch.clear_error().code == Errc::shape_mismatch);
  // Nobody has consumed the operands but the ops that are there.
  CHECK(run(batch, bias) == counting(5));
  CHECK(batch.read_i32(mask).value() == std::vector<std::int32_t>{0, 0, 0, 1, 1, 1});
  CHECK(read(batch, turned) == std::vector<float>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});
  CHECK(batch.read(w).error().code == Errc::not_kept);
}

TEST_CASE_METHOD(DeviceTest, "a split into more parts than there can be is an error", "[errors]") {
  Batch batch(shared_device());
  const Tensor nothing = batch.upload(Span<const float>(), {0});
  CHECK(batch.split(nothing, std::uint64_t{1} << 62).empty());
  CHECK(batch.clear_error().code == Errc::out_of_memory);
  CHECK(batch.split(nothing, 3).size() == 3);
  CHECK_FALSE(batch.execute());
}

TEST_CASE_METHOD(DeviceTest, "a buffer from no data needs a shape", "[errors]") {
  const Error error = Buffer::from(shared_device(), Span<const float>()).error();
  CHECK(error.code == Errc::empty_input);
  CHECK(contains(error.message, "explicit shape"));
}

}  // namespace brontes::test
