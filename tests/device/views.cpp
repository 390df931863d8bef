// Views: the same elements in another shape, some of them, or in another order.
#include "fixture.hpp"
#include "reference.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <random>

namespace brontes::test {

TEST_CASE_METHOD(DeviceTest, "a reshape between elementwise ops costs no dispatch and no byte", "[views]") {
  const std::vector<float> x = counting(24);
  Batch batch(shared_device());
  const Tensor y = batch.neg(batch.reshape(batch.relu(batch.upload(x, {4, 6})), {2, 3, 4}));
  const Tensor z = batch.offset(batch.flatten(y), 1.0f);
  CHECK(y.shape() == Shape(2, 3, 4));
  CHECK(z.shape() == Shape(24));
  REQUIRE_OK(batch.execute());
  CHECK(batch.stats().dispatches == 1);
  CHECK(batch.stats().operations == 3);
  std::vector<float> want;
  for (float v : x) want.push_back(1.0f - v);
  CHECK(read(batch, z) == want);
}

TEST_CASE_METHOD(DeviceTest, "a view that nobody consumes is read, and what it shows is not", "[views]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload({1.f, 2.f, 3.f, 4.f});
  const Tensor y = batch.neg(x);
  const Tensor square = batch.reshape(y, {2, 2});
  const Tensor column = batch.reshape(square, {4, 1});
  REQUIRE_OK(batch.execute());
  CHECK(read(batch, column) == std::vector<float>{-1, -2, -3, -4});
  CHECK(batch.read(y).error().code == Errc::not_kept);
  CHECK(batch.read(square).error().code == Errc::not_kept);
  CHECK(batch.stats().bytes_down == 16);
}

TEST_CASE_METHOD(DeviceTest, "a value that is kept and its views come down once", "[views]") {
  Batch batch(shared_device());
  const Tensor y = batch.keep(batch.neg(batch.upload({1.f, 2.f, 3.f, 4.f})));
  const Tensor square = batch.reshape(y, {2, 2});
  REQUIRE_OK(batch.execute());
  CHECK(read(batch, y) == std::vector<float>{-1, -2, -3, -4});
  CHECK(read(batch, square) == std::vector<float>{-1, -2, -3, -4});
  CHECK(batch.stats().bytes_down == 16);
}

TEST_CASE_METHOD(DeviceTest, "views of earlier executions, uploads and buffers go on being operands", "[views]") {
  const Buffer buffer = Buffer::from(shared_device(), counting(6)).value();
  Batch batch(shared_device());
  const Tensor upload = batch.upload(counting(6));
  const Tensor row = batch.reshape(upload, {1, 6});
  const Tensor sum = batch.add(row, batch.reshape(batch.import_buffer(buffer), {1, 6}));
  const Tensor columns = batch.reshape(sum, {3, 2});
  REQUIRE_OK(batch.execute());
  const Tensor product = batch.matmul(columns, batch.reshape(row, {2, 3}));
  const Tensor later = batch.scale(batch.reshape(columns, {6}), 0.5f);
  REQUIRE_OK(batch.execute());
  CHECK(read(batch, later) == counting(6));
  // {{0, 2}, {4, 6}, {8, 10}} x {{0, 1, 2}, {3, 4, 5}}
  CHECK(read(batch, product) == std::vector<float>{6, 8, 10, 18, 28, 38, 30, 48, 66});
}

TEST_CASE_METHOD(DeviceTest, "matmul, reductions and stores take views", "[views]") {
  const Buffer out = Buffer::create(shared_device(), {6}).value();
  Batch batch(shared_device());
  const Tensor a = batch.neg(batch.upload(counting(6)));
  const Tensor product = batch.matmul(batch.reshape(a, {2, 3}), batch.reshape(a, {3, 2}));
  const Tensor total = batch.sum(batch.reshape(a, {3, 2}));
  batch.store(batch.reshape(a, {2, 3}), out);
  REQUIRE_OK(batch.execute());
  CHECK(read(batch, product) == std::vector<float>{10, 13, 28, 40});
  CHECK(read(batch, total) == std::vector<float>{-15});
  CHECK(out.read().value() == std::vector<float>{0, -1, -2, -3, -4, -5});
}

TEST_CASE_METHOD(DeviceTest, "a program replays views with new data", "[views]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload(counting(4));
  const Tensor y = batch.reshape(batch.neg(batch.reshape(x, {2, 2})), {4, 1});
  Program program = batch.compile().value();
  REQUIRE_OK(program.run());
  CHECK(program.read(y).value() == std::vector<float>{0, -1, -2, -3});
  REQUIRE_OK(program.write(x, std::vector<float>{5, 6, 7, 8}));
  REQUIRE_OK(program.run());
  CHECK(program.read(y).value() == std::vector<float>{-5, -6, -7, -8});
}

TEST_CASE_METHOD(DeviceTest, "squeeze and unsqueeze change nothing but dims of extent 1", "[views]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload(counting(6), {1, 2, 1, 3});
  CHECK(batch.squeeze(x).shape() == Shape(2, 3));
  CHECK(batch.squeeze(batch.upload({1.f}, {1, 1})).shape() == Shape(1));
  const Tensor flat = batch.flatten(x);
  CHECK(batch.unsqueeze(flat, 0).shape() == Shape(1, 6));
  CHECK(batch.unsqueeze(flat, 1).shape() == Shape(6, 1));
  CHECK(batch.unsqueeze(flat, -1).shape() == Shape(6, 1));
  CHECK(batch.unsqueeze(flat, -2).shape() == Shape(1, 6));
  CHECK(batch.error().code == Errc::ok);
}

TEST_CASE_METHOD(DeviceTest, "a shape of another size, an axis that is not there and a weight are refused", "[views]") {
  const Weight weight = Weight::from(shared_device(), counting(6), 2, 3).value();
  Batch batch(shared_device());
  const Tensor x = batch.upload(counting(6));
  CHECK_FALSE(batch.reshape(x, {4}).valid());
  CHECK(batch.error().code == Errc::shape_mismatch);
  CHECK(contains(batch.clear_error().message, "[6] has 6 elements and [4] has 4"));
  CHECK_FALSE(batch.unsqueeze(x, 3).valid());
  CHECK(batch.clear_error().code == Errc::invalid_argument);
  CHECK_FALSE(batch.unsqueeze(batch.reshape(x, {1, 1, 1, 1, 1, 1, 1, 6}), 0).valid());
  CHECK(batch.clear_error().code == Errc::invalid_argument);
  CHECK_FALSE(batch.reshape(batch.import_weight(weight), {6}).valid());
  CHECK(batch.clear_error().code == Errc::invalid_argument);
  CHECK_FALSE(batch.reshape(Tensor(), {6}).valid());
  CHECK(batch.clear_error().code == Errc::invalid_tensor);
}

namespace {

// Which elements of `shape` a view shows, step by step as numpy has it.
struct Model {
  Shape shape;
  std::vector<float> data;

  float at(const std::vector<std::uint64_t>& where) const {
    std::uint64_t index = 0;
    for (std::size_t d = 0; d < shape.rank(); ++d) index = index * shape[d] + where[d];
    return data[static_cast<std::size_t>(index)];
  }

  // Element `where` of the result is element from(where) of this one.
  template <class From>
  Model view(const Shape& result, From from) const {
    Model made{result, {}};
    for (std::uint64_t j = 0; j < result.count(); ++j) {
      std::vector<std::uint64_t> where(result.rank());
      std::uint64_t rest = j;
      for (std::size_t d = result.rank(); d-- > 0; rest /= result[d]) where[d] = rest % result[d];
      made.data.push_back(at(from(where)));
    }
    return made;
  }
};

struct Viewed {
  Tensor tensor;
  Model model;
};

// A random view of x, and its model.
Viewed random_view(Batch& batch, const Viewed& x, std::mt19937& random) {
  auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  const Shape& shape = x.model.shape;
  const std::size_t rank = shape.rank();
  switch (below(3)) {
    case 0: {
      std::vector<Range> ranges;
      std::vector<std::uint64_t> dims;
      std::vector<std::int64_t> begin, step;
      for (std::size_t d = 0; d < rank; ++d) {
        const auto n = static_cast<std::int64_t>(shape[d]);
        const auto first = static_cast<std::int64_t>(below(shape[d]));
        const auto last = first + static_cast<std::int64_t>(below(shape[d] - static_cast<std::size_t>(first)));
        const auto by = static_cast<std::int64_t>(1 + below(2));
        const bool reverse = below(4) == 0;
        const std::int64_t before = first == 0 ? Range::before_first : first - 1;
        ranges.push_back(reverse ? Range{last, before, -by} : Range{below(2) == 0 ? first : first - n, last + 1, by});
        dims.push_back(static_cast<std::uint64_t>((last - first) / by + 1));
        begin.push_back(reverse ? last : first);
        step.push_back(reverse ? -by : by);
      }
      return {batch.slice(x.tensor, ranges), x.model.view(Shape::of(dims), [&](std::vector<std::uint64_t> where) {
                for (std::size_t d = 0; d < rank; ++d) {
                  where[d] = static_cast<std::uint64_t>(begin[d] + step[d] * static_cast<std::int64_t>(where[d]));
                }
                return where;
              })};
    }
    case 1: {
      std::vector<std::int64_t> axes(rank);
      std::iota(axes.begin(), axes.end(), 0);
      std::shuffle(axes.begin(), axes.end(), random);
      std::vector<std::uint64_t> dims;
      for (std::int64_t axis : axes) dims.push_back(shape[static_cast<std::size_t>(axis)]);
      return {batch.permute(x.tensor, Span<const std::int64_t>(axes)),
              x.model.view(Shape::of(dims), [&](const std::vector<std::uint64_t>& where) {
                std::vector<std::uint64_t> from(rank);
                for (std::size_t d = 0; d < rank; ++d) from[static_cast<std::size_t>(axes[d])] = where[d];
                return from;
              })};
    }
    default: {
      std::vector<std::uint64_t> dims;
      const bool more = rank < Shape::max_rank && shape.count() < 500;
      if (more) dims.push_back(2);
      for (std::size_t d = 0; d < rank; ++d) dims.push_back(shape[d] == 1 && shape.count() < 500 ? 3 : shape[d]);
      return {batch.expand(x.tensor, Shape::of(dims)),
              x.model.view(Shape::of(dims), [&](const std::vector<std::uint64_t>& where) {
                std::vector<std::uint64_t> from(where.begin() + (more ? 1 : 0), where.end());
                for (std::size_t d = 0; d < rank; ++d) from[d] = shape[d] == 1 ? 0 : from[d];
                return from;
              })};
    }
  }
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "random views of views show what numpy's would, read, fused, stored or multiplied",
                 "[views]") {
  std::mt19937 random(7);
  auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  for (int round = 0; round < (soak() ? 400 : 40); ++round) {
    BatchOptions options;
    options.fuse = below(4) != 0;
    Batch batch(shared_device(), options);
    std::vector<std::uint64_t> dims(1 + below(5));
    for (std::uint64_t& extent : dims) extent = 1 + below(below(3) == 0 ? 9 : 4) * (below(2) == 0 ? 1 : 4) % 13;
    Viewed x;
    x.model = {Shape::of(dims), cases::random_integers(Shape::of(dims).count(), 100, random())};
    x.tensor = batch.upload(x.model.data, x.model.shape);
    if (below(2) == 0) {
      x.tensor = batch.neg(x.tensor);
      for (float& v : x.model.data) v = -v;
    }
    for (std::size_t i = 1 + below(3); i-- > 0;) {
      x = random_view(batch, x, random);
      if (below(3) == 0) x.tensor = batch.keep(x.tensor);
    }
    INFO("round " << round << ", " << to_string(x.model.shape));
    REQUIRE(x.tensor.shape() == x.model.shape);
    const Tensor copied = batch.reshape(batch.keep(x.tensor), Shape(x.model.shape.count()));
    const Tensor fused = batch.offset(batch.scale(x.tensor, 2.0f), 1.0f);
    const Tensor product = batch.matmul(copied, batch.fill(1.0f, Shape(x.model.shape.count())));
    const Buffer stored = Buffer::create(shared_device(), Shape(x.model.shape.count())).value();
    batch.store(x.tensor, stored);
    REQUIRE_OK(batch.execute());
    CHECK(read(batch, x.tensor) == x.model.data);
    CHECK(stored.read().value() == x.model.data);
    std::vector<float> doubled;
    for (float v : x.model.data) doubled.push_back(v * 2 + 1);
    CHECK(read(batch, fused) == doubled);
    CHECK(read(batch, product)[0] == static_cast<float>(cases::sum(x.model.data)));
  }
}

TEST_CASE_METHOD(DeviceTest, "slices are cut off where the dim ends, as in numpy", "[views]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload(counting(5));
  struct Case {
    Range range;
    std::vector<float> want;
  };
  const Case table[] = {
      {{}, {0, 1, 2, 3, 4}},
      {{1, 100}, {1, 2, 3, 4}},
      {{-2}, {3, 4}},
      {{-100, 2}, {0, 1}},
      {{0, -1}, {0, 1, 2, 3}},
      {{0, Range::past_last, 2}, {0, 2, 4}},
      {{1, 4, 100}, {1}},
      {{1, 4, INT64_MAX}, {1}},
      {Range::reversed(), {4, 3, 2, 1, 0}},
      {{3, 0, -2}, {3, 1}},
      {{3, Range::before_first, -2}, {3, 1}},
      {{100, 1, -1}, {4, 3, 2}},
      {{4, 0, INT64_MIN}, {4}},
      {{3, 1}, {}},
      {{5, 9}, {}},
      {{1, 3, -1}, {}},
      {{-100, -50, -1}, {}},
      {Range::at(2), {2}},
      {Range::at(-1), {4}},
  };
  std::vector<Tensor> slices;
  for (const Case& c : table) slices.push_back(batch.slice(x, {c.range}));
  REQUIRE_OK(batch.execute());
  for (std::size_t i = 0; i < std::size(table); ++i) {
    INFO("case " << i);
    CHECK(slices[i].shape() == Shape(table[i].want.size()));
    if (table[i].want.size() != 5 || table[i].range.step == -1) CHECK(read(batch, slices[i]) == table[i].want);
  }
}

TEST_CASE_METHOD(DeviceTest, "slices, splits and expansions between elementwise ops cost no dispatch and no byte",
                 "[views]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload(counting(4800), {60, 80});
  const std::vector<Tensor> halves = batch.split(x, 2, 1);
  REQUIRE(halves.size() == 2);
  CHECK(halves[1].shape() == Shape(60, 40));
  const Tensor y = batch.sub(batch.relu(halves[1]), batch.slice(halves[0], {{0, Range::past_last}, Range::reversed()}));
  REQUIRE_OK(batch.execute());
  CHECK(batch.stats().dispatches == 1);
  CHECK(batch.stats().copy_commands == 0);
  // The upload and the result, each rounded up to what the device aligns to.
  CHECK(batch.stats().arena_bytes < 4800 * 4 + 2400 * 4 + 512);
  std::vector<float> want;
  for (int i = 0; i < 2400; ++i) want.push_back(static_cast<float>(40 + i % 40 - (39 - i % 40)));
  CHECK(read(batch, y) == want);
}

TEST_CASE_METHOD(DeviceTest, "operands broadcast along any dims, also those in between", "[views][broadcast]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload(counting(6), {2, 1, 3});
  const Tensor y = batch.upload(counting(4), {1, 4, 1});
  const Tensor z = batch.mul(x, y);
  // Two dims take turns eight times: more than one dispatch can be told.
  const Tensor odd = batch.upload(counting(16), {2, 1, 2, 1, 2, 1, 2, 1});
  const Tensor even = batch.upload(counting(16), {1, 2, 1, 2, 1, 2, 1, 2});
  const Tensor w = batch.add(odd, even);
  REQUIRE_OK(batch.execute());
  CHECK(z.shape() == Shape(2, 4, 3));
  std::vector<float> want;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 4; ++j) {
      for (int k = 0; k < 3; ++k) want.push_back(static_cast<float>((i * 3 + k) * j));
    }
  }
  CHECK(read(batch, z) == want);
  want.clear();
  for (int j = 0; j < 256; ++j) {
    int a = 0, b = 0;
    for (int bit = 7; bit >= 0; bit -= 2) {
      a = a * 2 + (j >> bit & 1);
      b = b * 2 + (j >> (bit - 1) & 1);
    }
    want.push_back(static_cast<float>(a + b));
  }
  CHECK(read(batch, w) == want);
}

TEST_CASE_METHOD(DeviceTest, "matrices of any size are transposed, alone, in batches and in part", "[views]") {
  for (const bool small : {false, true}) {
    DeviceOptions options = checked_options();
    if (small) options.simulate.max_group_count = 7;
    const Device device = open_device(options);
    Batch batch(device);
    std::vector<std::pair<Tensor, std::vector<float>>> results;
    for (const auto& [b, rows, columns] : {std::array<std::size_t, 3>{1, 2, 2},
                                           {1, 4, 4},
                                           {1, 1, 9},
                                           {1, 33, 7},
                                           {1, 64, 36},
                                           {1, 5, 100},
                                           {1, 257, 130},
                                           {3, 8, 12},
                                           {5, 3, 6},
                                           {2, 31, 33}}) {
      const std::vector<float> x = counting(b * rows * columns);
      const Tensor whole = batch.upload(x, {b, rows, columns});
      std::vector<float> want, part;
      for (std::size_t m = 0; m < b; ++m) {
        for (std::size_t j = 0; j < columns; ++j) {
          for (std::size_t i = 0; i < rows; ++i) {
            want.push_back(x[(m * rows + i) * columns + j]);
            if (i != 0 && j != 0) part.push_back(want.back());
          }
        }
      }
      results.emplace_back(batch.transpose(whole), want);
      // From an odd place on, with rows that are further apart than they are long.
      results.emplace_back(batch.transpose(batch.slice(whole, {{}, {1}, {1}})), part);
    }
    REQUIRE_OK(batch.execute());
    for (const auto& [tensor, want] : results) {
      INFO(to_string(tensor.shape()));
      CHECK(read(batch, tensor) == want);
    }
  }
}

TEST_CASE_METHOD(DeviceTest, "matmul takes a transposed right operand as its other layout, without a copy",
                 "[views][matmul]") {
  Batch batch(shared_device());
  const std::vector<float> weights = cases::random_integers(2 * 7 * 5, 9, 3);
  const Tensor x = batch.upload(cases::random_integers(2 * 3 * 5, 9, 4), {2, 3, 5});
  const Tensor w = batch.upload(weights, {2, 7, 5});
  MatmulOptions transposed;
  transposed.layout = Layout::nk;
  const Tensor want = batch.matmul(x, w, transposed);
  REQUIRE_OK(batch.execute());
  const auto dispatches = batch.stats().dispatches;

  const Tensor got = batch.matmul(x, batch.transpose(w));
  const Tensor back = batch.matmul(x, batch.transpose(batch.transpose(w)), transposed);
  REQUIRE_OK(batch.execute());
  CHECK(batch.stats().dispatches == 3 * dispatches);
  CHECK(read(batch, got) == read(batch, want));
  CHECK(read(batch, back) == read(batch, want));

  // Not a plain transposition: one copy.
  const Tensor part = batch.matmul(x, batch.transpose(batch.slice(w, 1, Range{0, 4})));
  REQUIRE_OK(batch.execute());
  const std::vector<float> all = read(batch, want);
  std::vector<float> some;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i % 7 < 4) some.push_back(all[i]);
  }
  CHECK(read(batch, part) == some);
}

TEST_CASE_METHOD(DeviceTest, "integers keep their bits through every kind of view", "[views][types]") {
  // As floats these are NaN, denormals and infinities.
  const std::vector<std::int32_t> bits = {INT32_MIN,  -1,        0,         1, 2,  0x7f800001,
                                          0x7fc00000, -0x800000, 123456789, 7, -7, INT32_MAX};
  Batch batch(shared_device());
  const Tensor x = batch.upload(bits, {3, 4});
  const Tensor y = batch.reshape(batch.transpose(batch.slice(x, {Range::reversed(), {}})), {12});
  const Tensor z = batch.concat({batch.slice(y, {{0, 5}}), batch.slice(y, {{5}})});
  const Tensor sum =
      batch.add(batch.expand(batch.slice(x, {{0, 1}}), {3, 4}), batch.transpose(batch.reshape(x, {4, 3})));
  REQUIRE(z.dtype() == DType::i32);
  REQUIRE_OK(batch.execute());
  std::vector<std::int32_t> want, sums;
  for (std::size_t j = 0; j < 4; ++j) {
    for (std::size_t i = 0; i < 3; ++i) want.push_back(bits[(2 - i) * 4 + j]);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      sums.push_back(
          static_cast<std::int32_t>(static_cast<std::uint32_t>(bits[j]) + static_cast<std::uint32_t>(bits[j * 3 + i])));
    }
  }
  CHECK(batch.read_i32(z).value() == want);
  CHECK(batch.read_i32(sum).value() == sums);
}

TEST_CASE_METHOD(DeviceTest, "a view shows a buffer as it was when the view was recorded", "[views]") {
  const Buffer buffer = Buffer::from(shared_device(), counting(8)).value();
  Batch batch(shared_device());
  const Tensor window = batch.import_buffer(buffer);
  const Tensor before = batch.slice(window, {{0, 6}});
  batch.store(batch.fill(9.0f, Shape(8)), buffer);
  const Tensor of_before = batch.slice(before, {{2, 4}});
  const Tensor after = batch.slice(window, {{0, 2}});
  REQUIRE_OK(batch.execute());
  CHECK(read(batch, of_before) == std::vector<float>{2, 3});
  CHECK(read(batch, after) == std::vector<float>{9, 9});
}

TEST_CASE_METHOD(DeviceTest, "programs replay slices and joined tensors, and views outlive an execute()", "[views]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload(counting(8), {2, 4});
  const Tensor turned = batch.transpose(x);
  const Tensor y = batch.concat({turned, batch.neg(turned)}, 1);
  Program program = batch.compile().value();
  REQUIRE_OK(program.write(x, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
  REQUIRE_OK(program.run());
  CHECK(program.read(y).value() == std::vector<float>{1, 5, -1, -5, 2, 6, -2, -6, 3, 7, -3, -7, 4, 8, -4, -8});
  REQUIRE_OK(batch.execute());
  const Tensor corner = batch.slice(y, {{0, 2}, {1, 3}});
  REQUIRE_OK(batch.execute());
  CHECK(read(batch, corner) == std::vector<float>{4, -0.0f, 5, -1});
}

TEST_CASE_METHOD(DeviceTest, "splits that do not come out even, transposed vectors and joined strangers are refused",
                 "[views]") {
  Batch batch(shared_device());
  const Tensor x = batch.upload(counting(6), {2, 3});
  const std::size_t before = batch.num_buffers();
  CHECK(batch.split(x, 2, 1).empty());
  CHECK(contains(batch.clear_error().message, "axis 1 of [2, 3] into 2 equal parts"));
  CHECK(batch.split(x, 0).empty());
  CHECK(batch.clear_error().code == Errc::shape_mismatch);
  CHECK(batch.split(x, 1, 2).empty());
  CHECK(batch.clear_error().code == Errc::invalid_argument);
  CHECK_FALSE(batch.slice(x, 5, Range{}).valid());
  CHECK(batch.clear_error().code == Errc::invalid_argument);
  CHECK_FALSE(batch.permute(x, {0, 1, 0, 1, 0, 1, 0, 1, 0}).valid());
  CHECK(batch.clear_error().code == Errc::invalid_argument);
  CHECK(batch.num_buffers() == before);
  CHECK_FALSE(batch.transpose(batch.upload(counting(3))).valid());
  CHECK(batch.clear_error().code == Errc::invalid_argument);
  CHECK_FALSE(batch.concat({}).valid());
  CHECK(batch.clear_error().code == Errc::empty_input);
  CHECK_FALSE(batch.concat({x, batch.upload(counting(4), {2, 2})}, 0).valid());
  CHECK(contains(batch.clear_error().message, "[2, 2] does not fit [2, 3] along axis 0"));
  CHECK_FALSE(batch.concat({x, batch.cast(x, DType::i32)}).valid());
  CHECK(contains(batch.clear_error().message, "[2, 3] is i32 and [2, 3] is f32"));
  CHECK_FALSE(batch.concat({x, Tensor()}).valid());
  CHECK(batch.clear_error().code == Errc::invalid_tensor);
}

}  // namespace brontes::test
