// Shape rules against a naive model of numpy's.
#include "record/shape.hpp"

#include "support/random_graph.hpp"

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

using brontes::Shape;
using brontes::record::broadcast;
using brontes::record::product;
using brontes::record::repetition;

namespace {

constexpr std::uint64_t huge = std::uint64_t{1} << 40;

// Every shape of 1 to 4 dims with these extents.
std::vector<Shape> all_shapes(const std::vector<std::uint64_t>& extents) {
  std::vector<Shape> shapes;
  std::vector<std::vector<std::uint64_t>> level{{}};
  for (std::size_t rank = 1; rank <= 4; ++rank) {
    std::vector<std::vector<std::uint64_t>> next;
    for (const auto& dims : level) {
      for (std::uint64_t e : extents) {
        next.push_back(dims);
        next.back().push_back(e);
        shapes.push_back(Shape::of(next.back()));
      }
    }
    level = std::move(next);
  }
  return shapes;
}

// The extent of dim `i` of 4, aligned at the last.
std::uint64_t extent4(const Shape& s, std::size_t i) {
  const std::size_t missing = 4 - s.rank();
  return i < missing ? 1 : s[i - missing];
}

// Where numpy finds the operand's element for element j of the result.
std::uint64_t numpy_index(const Shape& operand, const Shape& result, std::uint64_t j) {
  std::array<std::uint64_t, 4> at{};
  for (std::size_t i = 4; i-- > 0;) {
    at[i] = j % extent4(result, i);
    j /= extent4(result, i);
  }
  std::uint64_t index = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::uint64_t extent = extent4(operand, i);
    index = index * extent + (extent == 1 ? 0 : at[i]);
  }
  return index;
}

bool numpy_fits(const Shape& operand, const Shape& result) {
  if (operand.rank() > result.rank()) return false;
  for (std::size_t i = 0; i < 4; ++i) {
    if (extent4(operand, i) != 1 && extent4(operand, i) != extent4(result, i)) return false;
  }
  return true;
}

// Whether any div and mod describe numpy's repetition.
bool some_repetition_works(const Shape& operand, const Shape& result) {
  const std::uint64_t mod = operand.count();
  for (std::uint64_t div = 1; div <= result.count(); ++div) {
    bool works = true;
    for (std::uint64_t j = 0; works && j < result.count(); ++j)
      works = j / div % mod == numpy_index(operand, result, j);
    if (works) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("broadcast aligns at the last dim, and 1 stretches", "[record][shape]") {
  CHECK(broadcast(Shape(3), Shape(3)) == Shape(3));
  CHECK(broadcast(Shape(2, 3), Shape(3)) == Shape(2, 3));
  CHECK(broadcast(Shape(3), Shape(2, 3)) == Shape(2, 3));
  CHECK(broadcast(Shape(2, 1), Shape(1, 3)) == Shape(2, 3));
  CHECK(broadcast(Shape(1), Shape(4, 3, 2, 1)) == Shape(4, 3, 2, 1));
  CHECK(broadcast(Shape(5, 1, 7), Shape(6, 1)) == Shape(5, 6, 7));
  CHECK_FALSE(broadcast(Shape(3), Shape(4)));
  CHECK_FALSE(broadcast(Shape(2, 3), Shape(2)));
  CHECK_FALSE(broadcast(Shape(3, 2), Shape(2, 3)));
}

TEST_CASE("broadcast with an empty dim is empty, and fits only 0 and 1", "[record][shape]") {
  CHECK(broadcast(Shape(0), Shape(1)) == Shape(0));
  CHECK(broadcast(Shape(1), Shape(0)) == Shape(0));
  CHECK(broadcast(Shape(0), Shape(0)) == Shape(0));
  CHECK(broadcast(Shape(2, 0), Shape(2, 1)) == Shape(2, 0));
  CHECK_FALSE(broadcast(Shape(0), Shape(2)));
}

TEST_CASE("broadcast keeps 64-bit extents", "[record][shape]") {
  CHECK(broadcast(Shape(huge, 1), Shape(1, huge)) == Shape(huge, huge));
  CHECK_FALSE(broadcast(Shape(huge), Shape(huge + (std::uint64_t{1} << 32))));
}

TEST_CASE("broadcast does what numpy does for every pair of small shapes", "[record][shape]") {
  const std::vector<Shape> shapes = all_shapes({0, 1, 2, 3});
  std::size_t wrong = 0;
  for (const Shape& a : shapes) {
    for (const Shape& b : shapes) {
      bool fits = true;
      std::vector<std::uint64_t> dims;
      for (std::size_t i = 4 - std::max(a.rank(), b.rank()); i < 4; ++i) {
        const std::uint64_t x = extent4(a, i);
        const std::uint64_t y = extent4(b, i);
        fits = fits && (x == y || x == 1 || y == 1);
        dims.push_back(x == 1 ? y : x);
      }
      const std::optional<Shape> expected = fits ? std::optional(Shape::of(dims)) : std::nullopt;
      wrong += broadcast(a, b) != expected;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("a repetition finds numpy's element for every pattern of 1 to 4 dims", "[record][shape]") {
  const std::vector<Shape> results = all_shapes({1, 2, 3});
  const std::vector<Shape> operands = all_shapes({1, 2, 3});
  std::size_t found = 0;
  for (const Shape& result : results) {
    for (const Shape& operand : operands) {
      const auto repeat = repetition(operand, result);
      if (!numpy_fits(operand, result)) {
        if (repeat) FAIL(to_string(operand) << " over " << to_string(result));
        continue;
      }
      if (!repeat) {
        // Refused only where no div and mod would do.
        if (some_repetition_works(operand, result)) FAIL(to_string(operand) << " over " << to_string(result));
        continue;
      }
      ++found;
      for (std::uint64_t j = 0; j < result.count(); ++j) {
        if (j / repeat->div % repeat->mod != numpy_index(operand, result, j)) {
          FAIL(to_string(operand) << " over " << to_string(result) << " at " << j);
        }
      }
    }
  }
  CHECK(found > 500);
}

TEST_CASE("a repetition finds numpy's element for random shapes", "[record][shape]") {
  for (std::uint32_t seed = 0; seed < 5000; ++seed) {
    brontes::test::Random random(seed);
    std::vector<std::uint64_t> result(random.between(1, 4));
    for (std::uint64_t& extent : result) extent = random.between(1, 9);
    std::vector<std::uint64_t> operand(result.end() - random.between(1, static_cast<std::uint32_t>(result.size())),
                                       result.end());
    for (std::uint64_t& extent : operand) extent = random.one_in(2) ? 1 : extent;
    const Shape r = Shape::of(result);
    const Shape o = Shape::of(operand);
    const auto repeat = repetition(o, r);
    if (!repeat) continue;
    for (std::uint64_t j = 0; j < r.count(); ++j) {
      if (j / repeat->div % repeat->mod != numpy_index(o, r, j)) {
        FAIL("seed " << seed << ": " << to_string(o) << " over " << to_string(r) << " at " << j);
      }
    }
  }
}

TEST_CASE("an access finds numpy's element for every pattern of 1 to 4 dims", "[record][shape]") {
  std::size_t strided = 0;
  for (const Shape& result : all_shapes({1, 2, 3})) {
    for (const Shape& operand : all_shapes({1, 2, 3})) {
      if (!numpy_fits(operand, result)) continue;
      const brontes::record::Access access = brontes::record::broadcast_access(operand, result);
      for (std::uint64_t j = 0; j < result.count(); ++j) {
        if (access(j) != numpy_index(operand, result, j)) {
          FAIL(to_string(operand) << " over " << to_string(result) << " at " << j);
        }
      }
      const auto repeat = repetition(access);
      const auto expected = repetition(operand, result);
      if (repeat.has_value() != expected.has_value()) FAIL(to_string(operand) << " over " << to_string(result));
      if (!repeat) {
        ++strided;
        continue;
      }
      CHECK(repeat->div == expected->div);
      CHECK(repeat->mod == expected->mod);
      const brontes::record::Access back = brontes::record::access(*repeat, result.count());
      for (std::uint64_t j = 0; j < result.count(); ++j) {
        if (back(j) != access(j)) FAIL(to_string(operand) << " over " << to_string(result) << " and back at " << j);
      }
    }
  }
  CHECK(strided > 100);
}

TEST_CASE("dims that lie side by side are one, dims of extent 1 are none", "[record][shape]") {
  const std::int32_t rows[] = {24, 6, 1};
  const auto joined = brontes::record::access(Shape(2, 4, 6), rows, 0);
  CHECK(joined.rank == 1);
  CHECK(joined.extents[0] == 48);
  const std::int32_t window[] = {32, 8, 1};
  const auto apart = brontes::record::access(Shape(2, 4, 6), window, 3);
  CHECK(apart.rank == 2);
  CHECK(apart.extents[0] == 8);
  CHECK(apart.strides[0] == 8);
  CHECK(brontes::record::access_words(apart) == 4);
  const std::int32_t ones[] = {7, -9, 1};
  CHECK(brontes::record::access(Shape(1, 1, 6), ones, 0).rank == 1);
  CHECK(brontes::record::access_words(brontes::record::access(Shape(1, 1, 6), ones, 0)) == 0);
}

TEST_CASE("dims that repeat between an operand's own dims have no repetition", "[record][shape]") {
  CHECK_FALSE(repetition(Shape(2, 1, 3), Shape(2, 4, 3)));
  CHECK_FALSE(repetition(Shape(2, 1, 1, 3), Shape(2, 4, 5, 3)));
  CHECK(repetition(Shape(2, 1, 3), Shape(2, 1, 3)));
  CHECK(repetition(Shape(1, 2, 3, 1), Shape(5, 2, 3, 7)));
}

TEST_CASE("an operand of more dims, or of others, has no repetition", "[record][shape]") {
  CHECK_FALSE(repetition(Shape(1, 3), Shape(3)));
  CHECK_FALSE(repetition(Shape(3), Shape(1)));
  CHECK_FALSE(repetition(Shape(3), Shape(4)));
}

TEST_CASE("a product past 64 bits is nothing", "[record][shape]") {
  constexpr std::uint64_t most = ~std::uint64_t{0};
  CHECK(product(0, most) == 0);
  CHECK(product(most, 0) == 0);
  CHECK(product(most, 1) == most);
  CHECK(product(std::uint64_t{1} << 32, (std::uint64_t{1} << 32) - 1) == most - (std::uint64_t{1} << 32) + 1);
  CHECK_FALSE(product(std::uint64_t{1} << 32, std::uint64_t{1} << 32));
  CHECK_FALSE(product(most, 2));
}
