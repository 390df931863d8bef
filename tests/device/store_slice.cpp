// Slices of buffers: stored to, imported, and both in one batch.
#include "fixture.hpp"
#include "on_devices.hpp"
#include "reference.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace brontes::test {
namespace {

// Bits that no op of these tests makes: a NaN with a payload of its own for every element.
std::vector<float> poison(std::size_t count) {
  std::vector<float> data(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits = 0x7fc00000u | static_cast<std::uint32_t>(i % 0x3fffff + 1);
    std::memcpy(&data[i], &bits, sizeof bits);
  }
  return data;
}

std::vector<std::uint32_t> bits(const std::vector<float>& data) {
  std::vector<std::uint32_t> words(data.size());
  if (!data.empty()) std::memcpy(words.data(), data.data(), data.size() * sizeof(float));
  return words;
}

std::vector<std::uint32_t> bits(const Buffer& buffer) { return bits(buffer.read().value()); }

std::vector<float> numbers(std::size_t count, float first) {
  std::vector<float> data = counting(count);
  for (float& x : data) x += first;
  return data;
}

// One dim of a slice, as a range and as the elements it takes.
struct Taken {
  Range range;
  std::vector<std::uint64_t> elements;
};

Taken taken(std::int64_t begin, std::int64_t step, std::uint64_t count) {
  Taken dim;
  const std::int64_t end = begin + step * static_cast<std::int64_t>(count);
  dim.range = {begin, end < 0 ? Range::before_first : end, step};
  for (std::uint64_t i = 0; i < count; ++i) {
    dim.elements.push_back(static_cast<std::uint64_t>(begin + step * static_cast<std::int64_t>(i)));
  }
  return dim;
}

// A slice of a tensor of some shape: by its ranges, and by the elements it takes, in order.
struct Slice {
  std::vector<Range> ranges;
  std::vector<std::uint64_t> dims;
  std::vector<std::size_t> elements;
};

Slice slice_of(const Shape& shape, const std::vector<Taken>& taken) {
  Slice slice;
  slice.elements = {0};
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    slice.ranges.push_back(taken[d].range);
    slice.dims.push_back(taken[d].elements.size());
    std::vector<std::size_t> more;
    for (std::size_t before : slice.elements) {
      for (std::uint64_t i : taken[d].elements) more.push_back(before * shape[d] + i);
    }
    slice.elements = more;
  }
  return slice;
}

Slice random_slice(const Shape& shape, std::mt19937& random) {
  auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  std::vector<Taken> dims;
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    const std::size_t extent = shape[d];
    const auto step = static_cast<std::int64_t>(below(3) == 0 ? 1 + below(3) : 1);
    // Whole dims and whole vec4s are worth a test, too.
    const std::size_t first = below(2) == 0 ? 0 : below(2) == 0 ? below(extent) / 4 * 4 : below(extent);
    const std::size_t most = (extent - first - 1) / static_cast<std::size_t>(step) + 1;
    std::size_t count = below(2) == 0 ? most : 1 + below(most);
    if (count > 4 && below(2) == 0) count = count / 4 * 4;
    const auto begin = static_cast<std::int64_t>(first);
    const std::int64_t last = begin + step * static_cast<std::int64_t>(count - 1);
    dims.push_back(below(4) == 0 ? taken(last, -step, count) : taken(begin, step, count));
  }
  return slice_of(shape, dims);
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "a KV cache is appended to row by row and read as far as it is filled",
                 "[store][store_slice]") {
  on_devices([](const Device& device) {
    for (const std::size_t width : {8u, 6u}) {
      constexpr std::size_t rows = 9;
      const Buffer cache = Buffer::from(device, poison(rows * width), {rows, width}).value();
      std::vector<float> want = poison(rows * width);
      Batch batch(device);
      for (std::size_t i = 0; i < rows; ++i) {
        batch.reset();
        const auto row = static_cast<std::int64_t>(i);
        const std::vector<float> key = numbers(width, static_cast<float>(10 * i));
        batch.store(batch.upload(key), cache, {Range::at(row)});
        const Tensor keys = batch.import_buffer(cache, {{0, row + 1}});
        CHECK(keys.shape() == Shape(i + 1, width));
        const Tensor scores = batch.linear(batch.fill(1.0f, Shape(1, width)), keys);
        const Tensor shifted = batch.offset(keys, 1.0f);
        REQUIRE_OK(batch.execute());
        std::copy(key.begin(), key.end(), want.begin() + static_cast<std::ptrdiff_t>(i * width));
        CHECK(bits(cache) == bits(want));
        std::vector<float> sums, more;
        for (std::size_t j = 0; j <= i; ++j) {
          const std::vector<float> earlier = numbers(width, static_cast<float>(10 * j));
          sums.push_back(static_cast<float>(cases::sum(earlier)));
          for (float x : earlier) more.push_back(x + 1);
        }
        CHECK(read(batch, scores) == sums);
        CHECK(read(batch, shifted) == more);
      }
    }
  });
}

TEST_CASE_METHOD(DeviceTest, "a ring buffer wraps with two stores, which need not wait for each other",
                 "[store][store_slice]") {
  on_devices([](const Device& device) {
    constexpr std::size_t rows = 64, width = 16;  // four rows are the largest alignment of a binding
    const Buffer ring = Buffer::from(device, poison(rows * width), {rows, width}).value();
    const std::vector<float> block = counting(8 * width);
    Batch batch(device);
    const Tensor x = batch.upload(block, {8, width});
    batch.store(batch.slice(x, {{0, 4}}), ring, {{60, 64}});
    batch.store(batch.slice(x, {{4, 8}}), ring, {{0, 4}});
    REQUIRE_OK(batch.execute());
    std::vector<float> want = poison(rows * width);
    for (std::size_t i = 0; i < block.size(); ++i) want[(60 * width + i) % want.size()] = block[i];
    CHECK(bits(ring) == bits(want));
    CHECK(batch.stats().dispatches == 2);  // each half is copied straight to its place
    CHECK(batch.stats().barriers == 0);
  });
}

TEST_CASE_METHOD(DeviceTest, "a tile in the middle of an image changes nothing around it", "[store][store_slice]") {
  on_devices([](const Device& device) {
    struct Case {
      std::uint64_t height, width, top, left, tile_height, tile_width;
    };
    for (const Case& c : {Case{64, 64, 16, 32, 16, 16}, Case{37, 41, 3, 5, 11, 13}, Case{20, 24, 1, 4, 7, 8},
                          Case{20, 24, 1, 3, 7, 8}, Case{9, 9, 8, 8, 1, 1}, Case{5, 12, 0, 4, 5, 4}}) {
      INFO(c.height << "x" << c.width << ", " << c.tile_height << "x" << c.tile_width);
      const Shape shape(c.height, c.width);
      const Buffer image = Buffer::from(device, poison(shape.count()), shape).value();
      const std::vector<float> tile = counting(c.tile_height * c.tile_width);
      const auto top = static_cast<std::int64_t>(c.top);
      const auto left = static_cast<std::int64_t>(c.left);
      const Slice slice = slice_of(shape, {taken(top, 1, c.tile_height), taken(left, 1, c.tile_width)});
      Batch batch(device);
      batch.store(batch.upload(tile, {c.tile_height, c.tile_width}), image, slice.ranges);
      REQUIRE_OK(batch.execute());
      std::vector<float> want = poison(shape.count());
      for (std::size_t i = 0; i < tile.size(); ++i) want[slice.elements[i]] = tile[i];
      CHECK(bits(image) == bits(want));
    }
  });
}

TEST_CASE_METHOD(DeviceTest, "random slices of any rank, with steps of either sign, are stored and read back",
                 "[store][store_slice]") {
  on_devices([](const Device& device) {
    std::mt19937 random(11);
    auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
    for (int round = 0; round < (soak() ? 400 : 25); ++round) {
      std::vector<std::uint64_t> dims(1 + below(round % 10 == 9 ? 8 : 4));
      for (std::uint64_t& extent : dims) extent = 1 + below(dims.size() > 4 ? 3 : 9) * (below(3) == 0 ? 4 : 1);
      const Shape shape = Shape::of(dims);
      INFO("round " << round << ", " << to_string(shape));
      const Buffer buffer = Buffer::from(device, poison(shape.count()), shape).value();
      std::vector<float> want = poison(shape.count());
      BatchOptions options;
      options.fuse = below(2) == 0;
      Batch batch(device, options);
      std::vector<std::pair<Tensor, std::vector<float>>> reads;
      for (std::size_t i = 1 + below(4); i-- > 0;) {
        const Slice to = random_slice(shape, random);
        const std::vector<float> data = cases::random_integers(to.elements.size(), 1000, random());
        Tensor x = batch.upload(data, below(2) == 0 ? Shape::of(to.dims) : Shape(data.size()));
        if (below(2) == 0) x = batch.neg(batch.neg(x));
        batch.store(x, buffer, to.ranges);
        for (std::size_t j = 0; j < data.size(); ++j) want[to.elements[j]] = data[j];
        const Slice from = random_slice(shape, random);
        std::vector<float> seen;
        for (std::size_t j : from.elements) seen.push_back(want[j]);
        reads.emplace_back(batch.import_buffer(buffer, from.ranges), seen);
        CHECK(reads.back().first.shape() == Shape::of(from.dims));
      }
      REQUIRE_OK(batch.execute());
      CHECK(bits(buffer) == bits(want));
      for (const auto& [tensor, seen] : reads) CHECK(bits(read(batch, tensor)) == bits(seen));
    }
  });
}

TEST_CASE_METHOD(DeviceTest, "integers and masks are stored to slices bit by bit", "[store][store_slice]") {
  on_devices([](const Device& device) {
    std::vector<std::int32_t> whole(6 * 10);
    for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<std::int32_t>(0x7f800001u + i * 0x01234567u);
    const Buffer numbers = Buffer::from(device, whole, {6, 10}).value();
    const Buffer flags = Buffer::create(device, {6, 10}, DType::mask).value();
    const Slice slice = slice_of(Shape(6, 10), {taken(4, -2, 2), taken(1, 3, 3)});
    const std::vector<std::int32_t> data{1, -1, std::numeric_limits<std::int32_t>::min(), 0x7fc00123, 0x00000001, 42};
    Batch batch(device);
    const Tensor x = batch.upload(data, {2, 3});
    batch.store(x, numbers, slice.ranges);
    batch.store(batch.gt(x, batch.fill_i32(0, {1})), flags, slice.ranges);
    const Tensor slice_of_flags = batch.import_buffer(flags, slice.ranges);
    CHECK(slice_of_flags.dtype() == DType::mask);
    REQUIRE_OK(batch.execute());
    std::vector<std::int32_t> want = whole;
    std::vector<std::int32_t> want_flags(whole.size());
    for (std::size_t i = 0; i < data.size(); ++i) {
      want[slice.elements[i]] = data[i];
      want_flags[slice.elements[i]] = data[i] > 0 ? 1 : 0;
    }
    CHECK(numbers.read_i32().value() == want);
    CHECK(flags.read_i32().value() == want_flags);
    CHECK(batch.read_i32(slice_of_flags).value() == std::vector<std::int32_t>{1, 0, 0, 1, 1, 1});
  });
}

TEST_CASE_METHOD(DeviceTest,
                 "what is recorded before a store to a slice reads the old contents, later ops the new ones",
                 "[store][store_slice]") {
  for (const bool fuse : {true, false}) {
    BatchOptions options;
    options.fuse = fuse;
    const Buffer buffer = Buffer::from(shared_device(), counting(8)).value();
    Batch batch(shared_device(), options);
    const Tensor window = batch.import_buffer(buffer);
    const Tensor before = batch.neg(window);
    const Tensor old_slice = batch.import_buffer(buffer, {{2, 6}});
    const Tensor old_whole = batch.import_buffer(buffer, {Range{}});
    batch.store(batch.upload({100.f, 200.f}), buffer, {{3, 5}});
    const Tensor after = batch.neg(window);
    const Tensor slice_then = batch.scale(old_slice, 1.0f);
    const Tensor whole_then = batch.scale(old_whole, 1.0f);
    batch.store(batch.fill(7.0f, {8}), buffer);
    batch.store(batch.upload({1.f}), buffer, {Range::at(-1)});
    const Tensor last = batch.neg(window);
    REQUIRE_OK(batch.execute());
    CHECK(read(batch, before) == std::vector<float>{-0.f, -1, -2, -3, -4, -5, -6, -7});
    CHECK(read(batch, after) == std::vector<float>{-0.f, -1, -2, -100, -200, -5, -6, -7});
    CHECK(read(batch, slice_then) == std::vector<float>{2, 3, 4, 5});
    CHECK(read(batch, whole_then) == counting(8));
    CHECK(read(batch, last) == std::vector<float>{-7, -7, -7, -7, -7, -7, -7, -1});
    CHECK(buffer.read().value() == std::vector<float>{7, 7, 7, 7, 7, 7, 7, 1});
  }
}

TEST_CASE_METHOD(DeviceTest, "elements move within one buffer as if they were read before any is written",
                 "[store][store_slice]") {
  on_devices([](const Device& device) {
    constexpr std::size_t count = 5003;
    const Buffer buffer = Buffer::from(device, counting(count)).value();
    Batch batch(device);
    batch.store(batch.import_buffer(buffer), buffer, {Range::reversed()});
    batch.store(batch.import_buffer(buffer, {{0, -1}}), buffer, {{1}});
    REQUIRE_OK(batch.execute());
    std::vector<float> want = counting(count);
    std::reverse(want.begin(), want.end());
    for (std::size_t i = count; i-- > 1;) want[i] = want[i - 1];
    CHECK(buffer.read().value() == want);
  });
}

TEST_CASE_METHOD(DeviceTest, "a store broadcasts to its slice, and one without elements changes nothing",
                 "[store][store_slice]") {
  const Buffer buffer = Buffer::from(shared_device(), poison(24), {4, 6}).value();
  const Buffer none = Buffer::create(shared_device(), {0, 6}).value();
  Batch batch(shared_device());
  batch.store(batch.fill(3.0f, {1}), buffer, {{1, 3}, {2, 4}});
  batch.store(batch.upload({1.f, 2.f, 3.f, 4.f, 5.f, 6.f}), buffer, {{3}});
  batch.store(batch.upload({8.f, 9.f}, {2, 1}), buffer, {{0, 2}, {4, 6}});
  batch.store(batch.upload(counting(6)), buffer, {{2, 2}});
  batch.store(batch.upload(std::vector<float>(), {0}), buffer, {{9, 12}});
  batch.store(batch.upload(counting(6)), none, {{0, 1}});
  REQUIRE_OK(batch.execute());
  std::vector<float> want = poison(24);
  for (std::size_t i : {8u, 9u, 14u, 15u}) want[i] = 3;
  for (std::size_t i = 0; i < 6; ++i) want[18 + i] = static_cast<float>(i + 1);
  want[4] = want[5] = 8;
  want[10] = want[11] = 9;
  CHECK(bits(buffer) == bits(want));
}

TEST_CASE_METHOD(DeviceTest, "a slice that is all of a buffer is written without a copy", "[store][store_slice]") {
  const Buffer buffer = Buffer::create(shared_device(), {4, 6}).value();
  Batch batch(shared_device());
  batch.store(batch.relu(batch.upload(counting(24))), buffer, {{0, 4}, Range{}});
  REQUIRE_OK(batch.execute());
  CHECK(batch.stats().dispatches == 1);
  CHECK(buffer.read().value() == counting(24));
}

TEST_CASE_METHOD(DeviceTest, "a program stores to slices in every run, also after its buffer was replaced",
                 "[store][store_slice][program]") {
  on_devices([](const Device& device) {
    const Buffer one = Buffer::from(device, poison(40), {5, 8}).value();
    const Buffer two = Buffer::from(device, poison(40), {5, 8}).value();
    const Buffer other = Buffer::from(device, counting(40), {5, 8}).value();
    Batch batch(device);
    const Tensor row = batch.upload(counting(8));
    const Tensor handle = batch.import_buffer(one);
    const Tensor reader = batch.import_buffer(other);
    batch.store(row, one, {Range::at(2)});
    const Tensor stored = batch.scale(batch.import_buffer(one, {{2, 3}}), 2.0f);
    const Tensor more = batch.neg(reader);
    Program program = batch.compile().value();
    std::vector<float> want = poison(40);
    auto check = [&](const Buffer& buffer, float first) {
      const std::vector<float> data = numbers(8, first);
      REQUIRE_OK(program.write(row, data));
      REQUIRE_OK(program.run());
      std::copy(data.begin(), data.end(), want.begin() + 16);
      CHECK(bits(buffer) == bits(want));
      std::vector<float> twice;
      for (float x : data) twice.push_back(2 * x);
      CHECK(program.read(stored).value() == twice);
    };
    check(one, 0);
    check(one, 100);
    const std::vector<std::uint32_t> left = bits(one);
    REQUIRE_OK(program.rebind(handle, two));
    check(two, 200);
    CHECK(bits(one) == left);
    CHECK(program.rebind(reader, two).code == Errc::invalid_argument);  // stored to
    CHECK(program.rebind(stored, one).code == Errc::invalid_argument);  // no import
    CHECK(program.read(more).value()[1] == -1.0f);
  });
}

TEST_CASE_METHOD(DeviceTest, "a slice is stored to with more workgroups than one axis holds", "[store][store_slice]") {
  constexpr std::size_t count = (std::size_t{65535} + 3) * 64;
  const Buffer buffer = Buffer::create(shared_device(), {2 * count}).value();
  Batch batch(shared_device());
  batch.store(batch.upload(counting(count)), buffer, {{1, Range::past_last, 2}});
  REQUIRE_OK(batch.execute());
  const std::vector<float> got = buffer.read().value();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] != (i % 2 == 0 ? 0.0f : static_cast<float>(i / 2));
  CHECK(wrong == 0);
}

TEST_CASE_METHOD(DeviceTest, "wrong stores to slices and imports of slices say what is wrong and record nothing",
                 "[store][store_slice][errors]") {
  const Buffer buffer = Buffer::from(shared_device(), counting(24), {4, 6}).value();
  const Weight weight = Weight::from(shared_device(), counting(6), 2, 3).value();
  Batch batch(shared_device());
  const Tensor x = batch.upload(counting(6));
  const Tensor i32 = batch.upload_i32({1, 2, 3, 4, 5, 6});
  const Tensor w = batch.import_weight(weight);
  batch.store(x, buffer, {{1, 3}});  // broadcasts
  const std::string before = batch.dump(DumpFormat::text, DumpStage::recorded).value();
  auto fails = [&](Errc code, const char* message) {
    const Error e = batch.clear_error();
    INFO(e.message);
    CHECK(e.code == code);
    CHECK(contains(e.message, message));
  };
  batch.store(x, buffer, {{0, 1}, {0, 5}});
  fails(Errc::shape_mismatch, "store: a tensor of [6] into a slice of [1, 5] of a buffer of [4, 6]");
  batch.store(i32, buffer, {{0, 1}});
  fails(Errc::type_mismatch, "store: a tensor of [6] is i32 and the buffer is f32");
  batch.store(x, buffer, {Range{}, Range{}, Range{}});
  fails(Errc::invalid_argument, "store: 3 ranges for a tensor of [4, 6]");
  batch.store(x, buffer, {{0, 1, 0}});
  fails(Errc::invalid_argument, "store: a step of 0 along dim 0 of [4, 6]");
  batch.store(Tensor(), buffer, {{0, 1}});
  fails(Errc::invalid_tensor, "store");
  CHECK_FALSE(batch.import_buffer(buffer, {Range{}, Range{}, Range{}}).valid());
  fails(Errc::invalid_argument, "import_buffer: 3 ranges for a tensor of [4, 6]");
  CHECK_FALSE(batch.import_buffer(buffer, {{0, 1, 0}}).valid());
  fails(Errc::invalid_argument, "import_buffer: a step of 0");
  Buffer moved = Buffer::create(shared_device(), {6}).value();
  const Buffer owner = std::move(moved);
  batch.store(x, moved, {{0, 6}});  // NOLINT: on purpose
  fails(Errc::invalid_argument, "store");
  CHECK_FALSE(batch.import_buffer(moved, {{0, 6}}).valid());  // NOLINT: on purpose
  fails(Errc::invalid_argument, "import_buffer");
  batch.store(w, buffer, {{0, 1}});
  fails(Errc::invalid_argument, "is a weight");
  CHECK(batch.dump(DumpFormat::text, DumpStage::recorded).value() == before);
  REQUIRE_OK(batch.execute());
  std::vector<float> want = counting(24);
  for (std::size_t i = 0; i < 12; ++i) want[6 + i] = static_cast<float>(i % 6);
  CHECK(buffer.read().value() == want);
}

}  // namespace brontes::test
