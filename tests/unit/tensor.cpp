#include <brontes/tensor.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

using brontes::DType;
using brontes::Shape;
using brontes::Span;
using brontes::Tensor;

TEST_CASE("a Shape counts its elements", "[shape]") {
  CHECK(Shape(5).count() == 5);
  CHECK(Shape(2, 3).count() == 6);
  CHECK(Shape(2, 3, 4, 5).count() == 120);
  CHECK(Shape(7, 0, 3).count() == 0);
}

TEST_CASE("a default Shape has rank 0: no shape was given", "[shape]") {
  const Shape shape;
  CHECK(shape.rank() == 0);
  CHECK(shape.valid());
  CHECK(shape != Shape(1));
}

TEST_CASE("a Shape gives its extents, and 1 past its rank", "[shape]") {
  const Shape shape = {2, 3};
  CHECK(shape.rank() == 2);
  CHECK(shape[0] == 2);
  CHECK(shape[1] == 3);
  CHECK(shape[2] == 1);
  CHECK(shape[100] == 1);
}

TEST_CASE("a Shape with a negative extent is invalid, whatever the integer type", "[shape]") {
  CHECK_FALSE(Shape(-1).valid());
  CHECK_FALSE(Shape(3, std::int64_t{-7}).valid());
  CHECK_FALSE(Shape(static_cast<signed char>(-2), 1).valid());
  CHECK(Shape(std::size_t{3}, 4u, std::int8_t{5}).valid());
}

TEST_CASE("a Shape with more than eight dims is invalid and stays in bounds", "[shape]") {
  CHECK(Shape(1, 2, 3, 4, 1, 2, 3, 4).valid());
  const Shape shape(1, 2, 3, 4, 1, 2, 3, 4, 5);
  CHECK_FALSE(shape.valid());
  CHECK(shape[8] == 1);
  CHECK(shape.count() == 576);
  CHECK_FALSE(Shape::of(std::vector<std::uint64_t>(300, 1)).valid());
}

TEST_CASE("a Shape of a rank known at run time is that of its extents", "[shape]") {
  const std::vector<std::uint64_t> dims = {4, 0, 7};
  CHECK(Shape::of(dims) == Shape(4, 0, 7));
  CHECK(Shape::of({}).rank() == 0);
}

TEST_CASE("a count past 64 bits is reported, not wrapped", "[shape]") {
  const std::uint64_t huge = std::uint64_t{1} << 33;
  CHECK(Shape(huge, huge).count() == Shape::no_count);
  CHECK(Shape(huge, huge, 0).count() == 0);
  CHECK(Shape(0, huge, huge).count() == 0);
  CHECK(Shape(huge, 2).count() == huge * 2);
}

TEST_CASE("Shapes are equal when rank and extents are", "[shape]") {
  CHECK(Shape(2, 3) == Shape(2, 3));
  CHECK(Shape(2, 3) != Shape(3, 2));
  CHECK(Shape(2) != Shape(2, 1));
  CHECK(Shape(2) != Shape(-2));
}

TEST_CASE("a Shape prints as its extents", "[shape]") {
  CHECK(to_string(Shape(2, 3)) == "[2, 3]");
  CHECK(to_string(Shape(0)) == "[0]");
  CHECK(to_string(Shape()) == "[]");
  CHECK_FALSE(to_string(Shape(-1)).empty());
  CHECK_FALSE(to_string(Shape(1, 2, 3, 4, 5)).empty());
}

TEST_CASE("a Shape works at compile time", "[shape]") {
  constexpr Shape shape(4, 5);
  static_assert(shape.count() == 20);
  static_assert(shape.rank() == 2);
  static_assert(!Shape(-1).valid());
  SUCCEED();
}

TEST_CASE("a Span views vectors, arrays and pointers without copying", "[span]") {
  std::vector<float> vector = {1, 2, 3};
  float array[] = {4, 5};
  std::array<float, 2> standard = {6, 7};
  CHECK(Span<const float>(vector).data() == vector.data());
  CHECK(Span<const float>(vector).size() == 3);
  CHECK(Span<float>(array).data() == array);
  CHECK(Span<float>(array).size() == 2);
  CHECK(Span<const float>(standard).size() == 2);
  CHECK(Span<const float>(vector.data() + 1, 2)[0] == 2);
}

TEST_CASE("a Span of mutable elements writes through and converts to a const one", "[span]") {
  std::vector<float> vector = {1, 2, 3};
  Span<float> span = vector;
  span[1] = 9;
  CHECK(vector[1] == 9);
  const Span<const float> view = span;
  CHECK(view[1] == 9);
  float total = 0;
  for (float v : view) total += v;
  CHECK(total == 13);
}

TEST_CASE("a default Span is empty", "[span]") {
  const Span<const float> span;
  CHECK(span.empty());
  CHECK(span.data() == nullptr);
  CHECK(span.begin() == span.end());
}

TEST_CASE("a Span cannot give write access to constant data", "[span]") {
  static_assert(!std::is_constructible_v<Span<float>, const std::vector<float>&>);
  static_assert(!std::is_constructible_v<Span<float>, Span<const float>>);
  static_assert(std::is_constructible_v<Span<const float>, const std::vector<float>&>);
  SUCCEED();
}

TEST_CASE("a default Tensor is invalid and equal only to another default one", "[tensor]") {
  const Tensor tensor;
  CHECK_FALSE(tensor.valid());
  CHECK(tensor == Tensor());
  CHECK(tensor.dtype() == DType::f32);
}

TEST_CASE("a DType has a name and the size of a block", "[dtype]") {
  struct Expected {
    DType type;
    std::string name;
    std::uint64_t elements, bytes;
  };
  const Expected table[] = {
      {DType::f32, "f32", 1, 4},     {DType::f16, "f16", 1, 2},     {DType::bf16, "bf16", 1, 2},
      {DType::q8_0, "q8_0", 32, 34}, {DType::q4_0, "q4_0", 32, 18},
  };
  for (const Expected& expected : table) {
    INFO(expected.name);
    CHECK(brontes::to_string(expected.type) == expected.name);
    CHECK(brontes::block_elements(expected.type) == expected.elements);
    CHECK(brontes::block_bytes(expected.type) == expected.bytes);
  }
  CHECK(std::string(brontes::to_string(static_cast<DType>(200))) == "unknown");
}

TEST_CASE("a row is as many bytes as its blocks, and a part of a block counts whole", "[dtype]") {
  static_assert(brontes::row_bytes(DType::f32, 5) == 20);
  static_assert(brontes::row_bytes(DType::bf16, 5) == 10);
  static_assert(brontes::row_bytes(DType::q8_0, 4096) == 128 * 34);
  static_assert(brontes::row_bytes(DType::q4_0, 4096) == 128 * 18);
  CHECK(brontes::row_bytes(DType::q4_0, 0) == 0);
  CHECK(brontes::row_bytes(DType::q4_0, 33) == 36);
  const std::uint64_t huge = std::uint64_t{1} << 62;
  CHECK(brontes::row_bytes(DType::q8_0, huge) == huge / 32 * 34);
}

TEST_CASE("a Tensor is a small plain value", "[tensor]") {
  static_assert(std::is_trivially_copyable_v<Tensor>);
  static_assert(sizeof(Tensor) <= 96);
  SUCCEED();
}
