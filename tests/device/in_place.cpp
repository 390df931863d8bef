// Results that are written where concat() and store() want them: the same bits as with copies, in fewer dispatches.
#include "fixture.hpp"
#include "on_devices.hpp"

#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

namespace brontes::test {
namespace {

std::vector<std::uint32_t> bits(const std::vector<float>& data) {
  std::vector<std::uint32_t> words(data.size());
  if (!data.empty()) std::memcpy(words.data(), data.data(), data.size() * sizeof(float));
  return words;
}

std::vector<float> noise(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> data(count);
  for (float& x : data) x = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 512.0f;
  return data;
}

// A number in every element that nothing computes.
std::vector<float> poison(std::size_t count) {
  std::vector<float> data(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t word = 0x7fc00000u | static_cast<std::uint32_t>(i + 1);
    std::memcpy(&data[i], &word, sizeof word);
  }
  return data;
}

using Record = std::function<std::vector<Tensor>(Batch&)>;

// What the recording gives, value by value; and how many dispatches it took.
struct Outcome {
  std::vector<std::vector<std::uint32_t>> values;
  std::uint64_t dispatches = 0;
};

Outcome outcome(const Device& device, const Record& record, bool fuse) {
  BatchOptions options;
  options.fuse = fuse;
  Batch batch(device, options);
  const std::vector<Tensor> results = record(batch);
  REQUIRE_OK(batch.execute());
  Outcome found;
  for (const Tensor& x : results) found.values.push_back(bits(read(batch, x)));
  found.dispatches = batch.stats().dispatches;
  return found;
}

// The same bits whether results are moved or made in place; the dispatches when they are.
std::uint64_t same_bits(const Device& device, const Record& record) {
  const Outcome apart = outcome(device, record, false);
  const Outcome in_place = outcome(device, record, true);
  CHECK(in_place.values == apart.values);
  CHECK(in_place.dispatches <= apart.dispatches);
  return in_place.dispatches;
}

// 64 floats: aligned for every device.
constexpr std::size_t wide = 64;

}  // namespace

TEST_CASE_METHOD(DeviceTest, "concat of two products along axis 0 is two dispatches and no copy", "[in_place][views]") {
  const std::vector<float> a = noise(6 * 20, 1), b = noise(20 * wide, 2);
  const Record record = [&](Batch& batch) -> std::vector<Tensor> {
    const Tensor w = batch.upload(b, {20, wide});
    const Tensor rows = batch.upload(a, {6, 20});
    return {batch.concat({batch.matmul(batch.slice(rows, {{0, 4}}), w), batch.matmul(batch.slice(rows, {{4}}), w)})};
  };
  on_devices([&](const Device& device) { same_bits(device, record); });

  Batch batch(shared_device());
  const Tensor w = batch.upload(b, {20, wide});
  const Tensor joined = batch.concat({batch.matmul(batch.upload(noise(4 * 20, 3), {4, 20}), w),
                                      batch.relu(batch.matmul(batch.upload(noise(2 * 20, 4), {2, 20}), w))});
  REQUIRE_OK(batch.execute());
  CHECK(batch.stats().dispatches == 2);
  CHECK(batch.stats().barriers == 0);
  CHECK(joined.shape() == Shape(6, wide));
}

TEST_CASE_METHOD(DeviceTest, "joined parts have the same bits in place and copied, whatever lies between them",
                 "[in_place][views]") {
  on_devices([](const Device& device) {
    std::mt19937 random(5);
    auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    for (int round = 0; round < 12; ++round) {
      const std::uint32_t seed = static_cast<std::uint32_t>(random());
      const Record record = [&](Batch& batch) -> std::vector<Tensor> {
        random.seed(seed);
        std::vector<Tensor> parts, results;
        for (std::uint32_t i = 2 + below(4); i-- > 0;) {
          const std::size_t n = below(3) == 0 ? 1 + below(100) : wide * (1 + below(2));
          const Tensor x = batch.upload(noise(n, below(1000)));
          switch (below(6)) {
            case 0: parts.push_back(x); break;
            case 1: parts.push_back(batch.softmax(x)); break;
            case 2: parts.push_back(batch.flatten(batch.concat({batch.relu(x), batch.neg(x)}))); break;
            case 3: parts.push_back(batch.slice(batch.exp(x), {{n / 2 > 0 ? 1 : 0}})); break;
            default: parts.push_back(batch.scale(batch.add(x, x), 0.5f)); break;
          }
          if (below(4) == 0) results.push_back(batch.keep(parts.back()));
          if (below(4) == 0) results.push_back(batch.sum(parts.back()));
          if (below(5) == 0) parts.push_back(parts[below(static_cast<std::uint32_t>(parts.size()))]);
        }
        const Tensor joined = batch.concat(parts);
        if (below(2) == 0) results.push_back(batch.neg(joined));
        results.push_back(batch.keep(joined));
        return results;
      };
      same_bits(device, record);
    }
  });
}

TEST_CASE_METHOD(DeviceTest, "a program replays what is written in place with new data", "[in_place][program]") {
  on_devices([](const Device& device) {
    Batch batch(device);
    const Tensor x = batch.upload(std::vector<float>(wide));
    const Tensor y = batch.upload(std::vector<float>(wide));
    const Tensor left = batch.keep(batch.neg(x));
    const Tensor joined = batch.keep(batch.concat({left, batch.add(left, y)}));
    const Tensor sum = batch.sum(joined);
    Program program = batch.compile().value();
    for (std::uint32_t round = 0; round < 3; ++round) {
      const std::vector<float> a = noise(wide, round), b = noise(wide, round + 10);
      REQUIRE_OK(program.write(x, a));
      REQUIRE_OK(program.write(y, b));
      REQUIRE_OK(program.run());
      std::vector<float> want;
      for (float v : a) want.push_back(-v);
      CHECK(program.read(left).value() == want);
      for (std::size_t i = 0; i < wide; ++i) want.push_back(b[i] - a[i]);
      CHECK(program.read(joined).value() == want);
      float total = 0;
      for (float v : b) total += v;
      for (float v : a) total -= 2 * v;
      CHECK(program.read(sum).value()[0] == total);  // multiples of 1/512: exact
    }
  });
}

TEST_CASE_METHOD(DeviceTest, "parts and their whole go on being operands after an execute()", "[in_place][views]") {
  Batch batch(shared_device());
  const std::vector<float> data = noise(wide, 7);
  const Tensor left = batch.keep(batch.neg(batch.upload(data)));
  const Tensor joined = batch.concat({left, batch.scale(left, 2.0f)});
  REQUIRE_OK(batch.execute());
  CHECK(batch.stats().dispatches <= 2);
  const Tensor more = batch.concat({batch.scale(left, 3.0f), joined});
  REQUIRE_OK(batch.execute());
  std::vector<float> want;
  for (const float factor : {-3.0f, -1.0f, -2.0f}) {
    for (float v : data) want.push_back(factor * v);
  }
  CHECK(read(batch, more) == want);
  want.erase(want.begin(), want.begin() + wide);
  CHECK(read(batch, joined) == want);
  want.resize(wide);
  CHECK(read(batch, left) == want);
}

TEST_CASE_METHOD(DeviceTest, "results are written straight into a slice of a buffer, and nowhere else",
                 "[in_place][store_slice]") {
  on_devices([](const Device& device) {
    constexpr std::size_t rows = 6;
    for (const std::size_t width : {wide, std::size_t{16}, std::size_t{6}}) {
      for (std::size_t first = 0; first < rows; ++first) {
        for (const std::size_t count : {std::size_t{1}, std::size_t{2}, rows - first}) {
          if (first + count > rows) continue;
          std::vector<float> want = poison(rows * width);
          const Buffer buffer = Buffer::from(device, want, {rows, width}).value();
          const std::vector<float> data = noise(count * width, 3);
          Batch batch(device);
          batch.store(batch.neg(batch.upload(data, {count, width})), buffer,
                      {{static_cast<std::int64_t>(first), static_cast<std::int64_t>(first + count)}});
          REQUIRE_OK(batch.execute());
          // Where a row is a multiple of every alignment, or all of the buffer is meant, nothing is moved.
          if (width == wide || count == rows) CHECK(batch.stats().dispatches == 1);
          for (std::size_t i = 0; i < data.size(); ++i) want[first * width + i] = -data[i];
          CHECK(bits(buffer.read().value()) == bits(want));
        }
      }
    }
  });
}

TEST_CASE_METHOD(DeviceTest, "products, their epilogues and joined results go straight into a slice of a buffer",
                 "[in_place][store_slice]") {
  on_devices([](const Device& device) {
    std::vector<std::vector<std::uint32_t>> found;
    for (const bool fuse : {false, true}) {
      BatchOptions options;
      options.fuse = fuse;
      Batch batch(device, options);
      const Buffer buffer = Buffer::from(device, poison(8 * wide), {8, wide}).value();
      const Tensor w = batch.upload(noise(70 * wide, 1), {70, wide});
      const Tensor product = batch.matmul(batch.upload(noise(2 * 70, 2), {2, 70}), w);
      batch.store(batch.gelu(batch.add(product, batch.upload(noise(wide, 3)))), buffer, {{1, 3}});
      const Tensor x = batch.upload(noise(wide, 4), {1, wide});
      batch.store(batch.concat({batch.softmax(x), batch.neg(x)}), buffer, {{5, 7}});
      REQUIRE_OK(batch.execute());
      found.push_back(bits(buffer.read().value()));
    }
    CHECK(found[0] == found[1]);
  });
}

TEST_CASE_METHOD(DeviceTest, "a buffer that is read and written in parts by turns has what was recorded",
                 "[in_place][store_slice]") {
  on_devices([](const Device& device) {
    std::vector<std::vector<std::uint32_t>> found;
    for (const bool fuse : {false, true}) {
      BatchOptions options;
      options.fuse = fuse;
      Batch batch(device, options);
      const Buffer buffer = Buffer::from(device, noise(4 * wide, 9), {4, wide}).value();
      const Tensor window = batch.import_buffer(buffer);
      const Tensor before = batch.sum(window);
      batch.store(batch.neg(batch.upload(noise(wide, 1))), buffer, {Range::at(1)});
      const Tensor between = batch.sum(window);
      batch.store(batch.exp(batch.import_buffer(buffer, {Range::at(1)})), buffer, {Range::at(2)});
      batch.store(batch.concat({batch.import_buffer(buffer, {{2, 4}}),
                                batch.scale(batch.import_buffer(buffer, {{0, 2}}), 3.0f)}),
                  buffer);
      const Tensor after = batch.sum(window);
      REQUIRE_OK(batch.execute());
      for (const Tensor& x : {before, between, after}) found.push_back(bits(read(batch, x)));
      found.push_back(bits(buffer.read().value()));
    }
    for (std::size_t i = 0; i < 4; ++i) CHECK(found[i] == found[i + 4]);
  });
}

}  // namespace brontes::test
