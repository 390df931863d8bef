// What goes into a batch, what comes out, and what stays: uploads, imports, stores, keep and read.
#include "fixture.hpp"
#include "reference.hpp"

namespace brontes::test {

TEST_CASE_METHOD(DeviceTest, "uploaded data may change as soon as upload returns", "[values]") {
  std::vector<float> data = {1, 2, 3};
  Batch batch(shared_device());
  const Tensor y = batch.neg(batch.upload(data));
  data.assign(3, 99.0f);
  CHECK(run(batch, y) == std::vector<float>{-1, -2, -3});
}

TEST_CASE_METHOD(DeviceTest, "an upload has the shape it was given, or one dim", "[values]") {
  Batch batch(shared_device());
  const std::vector<float> data = counting(6);
  CHECK(batch.upload(data).shape() == Shape(6));
  CHECK(batch.upload(data, {2, 3}).shape() == Shape(2, 3));
  CHECK(batch.upload(data, {1, 2, 3, 1}).shape() == Shape(1, 2, 3, 1));
  CHECK(batch.upload({1.f, 2.f}, {2, 1}).shape() == Shape(2, 1));
  CHECK(batch.relu(batch.upload(data, {3, 2})).shape() == Shape(3, 2));
}

TEST_CASE_METHOD(DeviceTest, "an upload that nothing consumes can be read back", "[values]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload({4.f, 5.f});
  CHECK(run(batch, x) == std::vector<float>{4, 5});
}

TEST_CASE_METHOD(DeviceTest, "a value consumed by another op cannot be read unless kept", "[values]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload({-1.f, 2.f});
  const Tensor consumed = batch.relu(x);
  const Tensor kept = batch.keep(batch.scale(consumed, 3.0f));
  const Tensor last = batch.neg(kept);
  REQUIRE_OK(batch.execute());
  const Error error = batch.read(consumed).error();
  CHECK(error.code == Errc::not_kept);
  CHECK(contains(error.message, "keep"));
  CHECK(read(batch, kept) == std::vector<float>{0, 6});
  CHECK(read(batch, last) == std::vector<float>{0, -6});
}

TEST_CASE_METHOD(DeviceTest, "a consumed upload cannot be read unless kept, mapped or staged", "[values]") {
  for (bool staged : {false, true}) {
    INFO((staged ? "staged" : "mapped") << " memory");
    DeviceOptions options = checked_options();
    options.simulate.staged_memory = staged;
    const Device device = open_device(options);
    Batch batch(device);
    const Tensor consumed = batch.upload(counting(1000));
    const Tensor kept = batch.keep(batch.upload({7.f}));
    const Tensor y = batch.add(consumed, kept);
    REQUIRE_OK(batch.execute());
    CHECK(batch.read(consumed).error().code == Errc::not_kept);
    CHECK(read(batch, kept) == std::vector<float>{7});
    CHECK(read(batch, y)[999] == 1006.0f);
    // It is still an operand, and what is made of it can be read.
    const Tensor again = batch.copy(consumed);
    CHECK(run(batch, again) == counting(1000));
    // Too late for this one: it must not give anything but its elements or an error.
    (void)batch.keep(consumed);
    const Result<std::vector<float>> late = batch.read(consumed);
    CHECK((late.error().code == Errc::not_kept || *late == counting(1000)));
  }
}

TEST_CASE_METHOD(DeviceTest, "keep returns its tensor and works before and after the value is consumed", "[values]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload({1.f});
  const Tensor y = batch.scale(x, 2.0f);
  const Tensor z = batch.scale(y, 2.0f);
  CHECK(batch.keep(y) == y);
  CHECK(batch.keep(x) == x);
  REQUIRE_OK(batch.execute());
  CHECK(read(batch, x) == std::vector<float>{1});
  CHECK(read(batch, y) == std::vector<float>{2});
  CHECK(read(batch, z) == std::vector<float>{4});
}

TEST_CASE_METHOD(DeviceTest, "keep_all keeps every value", "[values]") {
  BatchOptions options;
  options.keep_all = true;
  Batch batch(shared_device(), options);
  const Tensor x = batch.upload({-1.f, 2.f});
  const Tensor y = batch.relu(x);
  const Tensor z = batch.neg(y);
  REQUIRE_OK(batch.execute());
  CHECK(read(batch, x) == std::vector<float>{-1, 2});
  CHECK(read(batch, y) == std::vector<float>{0, 2});
  CHECK(read(batch, z) == std::vector<float>{0, -2});
}

TEST_CASE_METHOD(DeviceTest, "read into a span fills it, and refuses one of the wrong size", "[values]") {
  Batch batch(shared_device());
  const Tensor y = batch.neg(batch.upload({1.f, 2.f, 3.f}));
  REQUIRE_OK(batch.execute());
  std::vector<float> out(3);
  REQUIRE_OK(batch.read(y, out));
  CHECK(out == std::vector<float>{-1, -2, -3});
  std::vector<float> small(2, 7.0f);
  const Error error = batch.read(y, small);
  CHECK(error.code == Errc::shape_mismatch);
  CHECK(contains(error.message, "2"));
  CHECK(contains(error.message, "3"));
  CHECK(small == std::vector<float>{7, 7});
}

TEST_CASE_METHOD(DeviceTest, "a value can be read again and again", "[values]") {
  Batch batch(shared_device());
  const Tensor y = batch.neg(batch.upload(counting(1000)));
  const std::vector<float> first = run(batch, y);
  for (int i = 0; i < 3; ++i) CHECK(read(batch, y) == first);
}

TEST_CASE_METHOD(DeviceTest, "an empty tensor passes through every kind of op", "[values]") {
  Batch batch(shared_device());
  const Tensor none = batch.upload(Span<const float>(), {0, 3});
  CHECK(none.valid());
  const Tensor y = batch.add(batch.relu(none), batch.fill(1, {3}));
  CHECK(y.shape() == Shape(0, 3));
  CHECK(run(batch, y).empty());
}

TEST_CASE_METHOD(DeviceTest, "a buffer starts as zeros and remembers what is written", "[buffer]") {
  Buffer buffer = Buffer::create(shared_device(), {2, 300}).value();
  CHECK(buffer.shape() == Shape(2, 300));
  CHECK(buffer.size() == 600);
  CHECK(buffer.bytes() == 2400);
  CHECK(buffer.read().value() == std::vector<float>(600, 0.0f));
  REQUIRE_OK(buffer.write(std::vector<float>{1, 2, 3}, 297));
  std::vector<float> part(5);
  REQUIRE_OK(buffer.read(part, 296));
  CHECK(part == std::vector<float>{0, 1, 2, 3, 0});
  REQUIRE_OK(buffer.write(counting(600)));
  CHECK(buffer.read().value() == counting(600));
}

TEST_CASE_METHOD(DeviceTest, "a buffer refuses what does not fit and keeps its contents", "[buffer]") {
  Buffer buffer = Buffer::from(shared_device(), counting(4)).value();
  CHECK(buffer.shape() == Shape(4));
  CHECK(buffer.write(counting(5)).code == Errc::shape_mismatch);
  CHECK(buffer.write(counting(2), 3).code == Errc::shape_mismatch);
  CHECK(buffer.write(counting(2), ~std::uint64_t{0}).code == Errc::shape_mismatch);
  std::vector<float> out(2);
  CHECK(buffer.read(out, 3).code == Errc::shape_mismatch);
  CHECK(buffer.read(out, ~std::uint64_t{0}).code == Errc::shape_mismatch);
  const Error null = buffer.write(Span<const float>(nullptr, 2));
  CHECK(null.code == Errc::null_data);
  CHECK(buffer.read().value() == counting(4));
  const Error mismatch = Buffer::from(shared_device(), counting(4), {5}).error();
  CHECK(mismatch.code == Errc::shape_mismatch);
  CHECK(contains(mismatch.message, "4"));
  CHECK(contains(mismatch.message, "[5]"));
}

TEST_CASE_METHOD(DeviceTest, "a buffer of impossible size is an error, and the device still works", "[buffer]") {
  const std::uint64_t huge = std::uint64_t{1} << 33;
  CHECK(Buffer::create(shared_device(), {huge, huge}).error().code == Errc::size_overflow);
  CHECK(Buffer::create(shared_device(), {-1}).error().code == Errc::invalid_argument);
  CHECK(Buffer::create(shared_device(), {shared_device().info().max_storage_range / 4 + 1}).error().code ==
        Errc::limit_exceeded);
  CHECK(Buffer::from(shared_device(), Span<const float>(nullptr, 3)).error().code == Errc::null_data);
  check_device_works(shared_device());
}

TEST_CASE_METHOD(DeviceTest, "a buffer of no elements can be made, read and imported", "[buffer]") {
  Buffer buffer = Buffer::create(shared_device(), {0}).value();
  CHECK(buffer.read().value().empty());
  Batch batch(shared_device());
  const Tensor y = batch.relu(batch.import_buffer(buffer));
  CHECK(run(batch, y).empty());
}

TEST_CASE_METHOD(DeviceTest, "an imported buffer is used without a transfer", "[buffer]") {
  const Buffer buffer = Buffer::from(shared_device(), counting(6), {2, 3}).value();
  Batch batch(shared_device());
  const Tensor x = batch.import_buffer(buffer);
  CHECK(x.shape() == Shape(2, 3));
  const Tensor y = batch.scale(x, 2.0f);
  CHECK(run(batch, y) == std::vector<float>{0, 2, 4, 6, 8, 10});
  CHECK(batch.stats().transfers_up == 0);
  CHECK(batch.stats().bytes_up == 0);
  CHECK(buffer.read().value() == counting(6));
}

TEST_CASE_METHOD(DeviceTest, "a store reaches the buffer, and later batches see it", "[buffer]") {
  const Buffer buffer = Buffer::create(shared_device(), {4}).value();
  {
    Batch batch(shared_device());
    batch.store(batch.neg(batch.upload(counting(4))), buffer);
    REQUIRE_OK(batch.execute());
  }
  CHECK(buffer.read().value() == std::vector<float>{0, -1, -2, -3});
  Batch batch(shared_device());
  const Tensor y = batch.offset(batch.import_buffer(buffer), 10.0f);
  CHECK(run(batch, y) == std::vector<float>{10, 9, 8, 7});
}

TEST_CASE_METHOD(DeviceTest, "an op before a store reads the old elements, one after it the new", "[buffer]") {
  const std::size_t n = 70001;
  const Buffer buffer = Buffer::from(shared_device(), std::vector<float>(n, 1.0f)).value();
  Batch batch(shared_device());
  const Tensor window = batch.import_buffer(buffer);
  const Tensor before = batch.scale(window, 10.0f);
  batch.store(batch.fill(5.0f, {n}), buffer);
  const Tensor after = batch.scale(window, 10.0f);
  REQUIRE_OK(batch.execute());
  CHECK(read(batch, before) == std::vector<float>(n, 10.0f));
  CHECK(read(batch, after) == std::vector<float>(n, 50.0f));
  CHECK(buffer.read().value() == std::vector<float>(n, 5.0f));
}

TEST_CASE_METHOD(DeviceTest, "of two stores to one buffer the later wins", "[buffer]") {
  const std::size_t n = 70001;
  const Buffer buffer = Buffer::create(shared_device(), {n}).value();
  Batch batch(shared_device());
  batch.store(batch.fill(1.0f, {n}), buffer);
  batch.store(batch.fill(2.0f, {n}), buffer);
  REQUIRE_OK(batch.execute());
  CHECK(buffer.read().value() == std::vector<float>(n, 2.0f));
}

TEST_CASE_METHOD(DeviceTest, "two imports of one buffer see each other's stores", "[buffer]") {
  const Buffer buffer = Buffer::from(shared_device(), counting(4)).value();
  Batch batch(shared_device());
  const Tensor first = batch.import_buffer(buffer);
  const Tensor second = batch.import_buffer(buffer);
  batch.store(batch.neg(first), buffer);
  const Tensor y = batch.offset(second, 0.5f);
  CHECK(run(batch, y) == std::vector<float>{0.5f, -0.5f, -1.5f, -2.5f});
}

TEST_CASE_METHOD(DeviceTest, "storing a buffer's own elements back changes nothing", "[buffer]") {
  const Buffer buffer = Buffer::from(shared_device(), counting(100)).value();
  Batch batch(shared_device());
  batch.store(batch.import_buffer(buffer), buffer);
  REQUIRE_OK(batch.execute());
  CHECK(buffer.read().value() == counting(100));
}

TEST_CASE_METHOD(DeviceTest, "a buffer is updated in place, execute by execute", "[buffer]") {
  const Buffer state = Buffer::from(shared_device(), std::vector<float>(300, 0.0f)).value();
  Batch batch(shared_device());
  for (int i = 0; i < 5; ++i) {
    batch.store(batch.offset(batch.import_buffer(state), 1.0f), state);
    REQUIRE_OK(batch.execute());
  }
  CHECK(state.read().value() == std::vector<float>(300, 5.0f));
}

TEST_CASE_METHOD(DeviceTest, "a stored upload is copied, and a store of a wrong size is refused", "[buffer]") {
  const Buffer buffer = Buffer::create(shared_device(), {3}).value();
  Batch batch(shared_device());
  batch.store(batch.upload({1.f, 2.f}), buffer);
  CHECK(batch.error().code == Errc::shape_mismatch);
  CHECK(contains(batch.error().message, "store"));
  CHECK(contains(batch.error().message, "[2]"));
  CHECK(contains(batch.error().message, "[3]"));
  (void)batch.clear_error();
  batch.store(batch.upload({1.f, 2.f, 3.f}), buffer);
  REQUIRE_OK(batch.execute());
  CHECK(buffer.read().value() == std::vector<float>{1, 2, 3});
}

TEST_CASE_METHOD(DeviceTest, "a buffer destroyed before execute lives on in the batch", "[buffer]") {
  Batch batch(shared_device());
  Tensor y;
  {
    const Buffer buffer = Buffer::from(shared_device(), counting(300)).value();
    y = batch.neg(batch.import_buffer(buffer));
  }
  const std::vector<float> got = run(batch, y);
  CHECK(got[299] == -299.0f);
}

TEST_CASE_METHOD(DeviceTest, "memory goes when buffers and batches do", "[buffer]") {
  const DeviceStats before = shared_device().stats();
  {
    const Buffer buffer = Buffer::from(shared_device(), counting(5000)).value();
    Batch batch(shared_device());
    const Tensor y = batch.neg(batch.import_buffer(buffer));
    REQUIRE_OK(batch.execute());
    CHECK(read(batch, y).size() == 5000);
    CHECK(shared_device().stats().live_buffers > before.live_buffers);
    CHECK(shared_device().stats().live_bytes >= before.live_bytes + 2 * 5000 * sizeof(float));
  }
  CHECK(shared_device().stats().live_buffers == before.live_buffers);
  CHECK(shared_device().stats().live_bytes == before.live_bytes);
}

}  // namespace brontes::test
