#include "fixture.hpp"
#include "reference.hpp"

#include <array>
#include <optional>

namespace brontes::test {
namespace {

// numpy's rule, written as plainly as possible: align at the last dim, 1 stretches.
std::array<std::uint64_t, 4> padded(const Shape& shape) {
  std::array<std::uint64_t, 4> dims{1, 1, 1, 1};
  for (std::size_t i = 0; i < shape.rank(); ++i) dims[4 - shape.rank() + i] = shape[i];
  return dims;
}

std::vector<float> expected_difference(const std::vector<float>& x, const Shape& xs, const std::vector<float>& y,
                                       const Shape& ys) {
  const auto a = padded(xs);
  const auto b = padded(ys);
  std::array<std::uint64_t, 4> r{};
  for (std::size_t d = 0; d < 4; ++d) r[d] = a[d] == 1 ? b[d] : a[d];
  std::vector<float> result;
  const auto at = [](const std::array<std::uint64_t, 4>& dims, const std::array<std::uint64_t, 4>& index) {
    std::uint64_t offset = 0;
    for (std::size_t d = 0; d < 4; ++d) offset = offset * dims[d] + (dims[d] == 1 ? 0 : index[d]);
    return offset;
  };
  std::array<std::uint64_t, 4> i{};
  for (i[0] = 0; i[0] < r[0]; ++i[0])
    for (i[1] = 0; i[1] < r[1]; ++i[1])
      for (i[2] = 0; i[2] < r[2]; ++i[2])
        for (i[3] = 0; i[3] < r[3]; ++i[3]) result.push_back(x[at(a, i)] - y[at(b, i)]);
  return result;
}

struct Pair {
  Shape x, y, result;
};

// Subtraction tells the operands apart; whole numbers make it exact.
void check_pairs(const Device& device, const std::vector<Pair>& pairs) {
  Batch batch(device);
  std::vector<Tensor> results;
  std::vector<std::vector<float>> expected;
  for (const Pair& pair : pairs) {
    const std::vector<float> x = cases::random_integers(pair.x.count(), 1000, 1);
    const std::vector<float> y = cases::random_integers(pair.y.count(), 1000, 2);
    results.push_back(batch.sub(batch.upload(x, pair.x), batch.upload(y, pair.y)));
    INFO(to_string(pair.x) << " - " << to_string(pair.y));
    REQUIRE_OK(batch.error());
    CHECK(results.back().shape() == pair.result);
    expected.push_back(expected_difference(x, pair.x, y, pair.y));
  }
  REQUIRE_OK(batch.execute());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    INFO(to_string(pairs[i].x) << " - " << to_string(pairs[i].y));
    CHECK(cases::mismatch(read(batch, results[i]), expected[i]) == "");
  }
}

}  // namespace

TEST_CASE_METHOD(DeviceTest, "rows, columns and scalars broadcast against a matrix, on either side", "[broadcast]") {
  std::vector<Pair> pairs;
  for (int rows : {1, 2, 3, 4, 5, 8, 17, 64}) {
    for (int cols : {1, 2, 3, 4, 5, 7, 8, 12, 63, 64, 65}) {
      const Shape matrix(rows, cols);
      for (const Shape& small : {Shape(cols), Shape(1, cols), Shape(rows, 1), Shape(1), Shape(1, 1)}) {
        const Shape result = matrix;
        pairs.push_back({matrix, small, result});
        pairs.push_back({small, matrix, result});
      }
    }
  }
  check_pairs(shared_device(), pairs);
}

TEST_CASE_METHOD(DeviceTest, "blocks of dims broadcast in three and four dims", "[broadcast]") {
  check_pairs(shared_device(), {
                                   {{2, 3, 4}, {3, 4}, {2, 3, 4}},
                                   {{2, 3, 4}, {4}, {2, 3, 4}},
                                   {{2, 3, 4}, {3, 1}, {2, 3, 4}},
                                   {{2, 3, 4}, {2, 1, 1}, {2, 3, 4}},
                                   {{2, 3, 4}, {2, 3, 1}, {2, 3, 4}},
                                   {{2, 3, 4}, {1, 3, 4}, {2, 3, 4}},
                                   {{2, 3, 4, 5}, {3, 4, 1}, {2, 3, 4, 5}},
                                   {{2, 3, 4, 5}, {2, 3, 1, 1}, {2, 3, 4, 5}},
                                   {{2, 3, 4, 5}, {1, 3, 1, 1}, {2, 3, 4, 5}},
                                   {{3, 1, 1}, {2, 3, 4, 8}, {2, 3, 4, 8}},
                                   {{5}, {2, 3, 4, 5}, {2, 3, 4, 5}},
                                   {{2, 1, 4}, {1, 4}, {2, 1, 4}},
                                   {{1, 1, 1, 1}, {7}, {1, 1, 1, 7}},
                               });
}

TEST_CASE_METHOD(DeviceTest, "a column and a row make a matrix", "[broadcast]") {
  check_pairs(shared_device(), {
                                   {{3, 1}, {4}, {3, 4}},
                                   {{5}, {3, 1}, {3, 5}},
                                   {{64, 1}, {1, 65}, {64, 65}},
                               });
}

TEST_CASE_METHOD(DeviceTest, "shapes with a zero extent broadcast to nothing", "[broadcast]") {
  check_pairs(shared_device(), {
                                   {{0}, {1}, {0}},
                                   {{1}, {0}, {0}},
                                   {{0, 4}, {4}, {0, 4}},
                                   {{3, 0}, {3, 1}, {3, 0}},
                                   {{0}, {0}, {0}},
                               });
}

TEST_CASE_METHOD(DeviceTest, "broadcasting reaches past several workgroups", "[broadcast]") {
  check_pairs(shared_device(), {
                                   {{1031, 257}, {257}, {1031, 257}},
                                   {{1031, 256}, {256}, {1031, 256}},
                                   {{1031, 257}, {1031, 1}, {1031, 257}},
                                   {{1031, 256}, {1031, 1}, {1031, 256}},
                                   {{1}, {300001}, {300001}},
                               });
}

TEST_CASE_METHOD(DeviceTest, "shapes that do not fit are refused with both shapes in the message", "[broadcast]") {
  const std::pair<Shape, Shape> bad[] = {
      {{3}, {4}}, {{2, 3}, {2}}, {{2, 3}, {3, 2}}, {{0}, {2}}, {{2, 3, 4}, {2, 4}}, {{2, 3, 4}, {2, 2, 4}},
  };
  for (const auto& [xs, ys] : bad) {
    Batch batch(shared_device());
    const Tensor z = batch.add(batch.fill(1, xs), batch.fill(1, ys));
    INFO(to_string(xs) << " + " << to_string(ys));
    CHECK_FALSE(z.valid());
    CHECK(batch.error().code == Errc::shape_mismatch);
    CHECK(contains(batch.error().message, "add"));
    CHECK(contains(batch.error().message, to_string(xs)));
    CHECK(contains(batch.error().message, to_string(ys)));
  }
}

}  // namespace brontes::test
