// Every mistake has its own code and a message that names op and sizes, and leaves the graph as it was.
#include "ops/matmul.hpp"
#include "ops/reduce.hpp"
#include "ops/store.hpp"
#include "record/elementwise.hpp"
#include "record/graph.hpp"
#include "record/view.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

using namespace brontes;
using ops::ReduceOp;
using record::ElementwiseOp;
using record::Graph;
using record::ValueId;

namespace {

// Everything of a graph that an op could have changed.
struct Snapshot {
  std::size_t values, nodes, uploads;
  std::vector<std::uint32_t> consumers;

  explicit Snapshot(const Graph& graph)
      : values(graph.values().size()), nodes(graph.nodes().size()), uploads(graph.uploads().size()) {
    for (const record::Value& v : graph.values()) consumers.push_back(v.consumers);
  }
  friend bool operator==(const Snapshot&, const Snapshot&) = default;
};

// A graph with operands of many shapes, and the checks every failing call must pass.
struct Fixture {
  static constexpr std::uint64_t limit = 4000;  // bytes
  Graph graph{limit};
  ValueId two_three = upload(Shape(2, 3));
  ValueId four = upload(Shape(4));
  ValueId empty = upload(Shape(0));
  ValueId cube = upload(Shape(2, 2, 3));

  ValueId upload(const Shape& shape) {
    const std::vector<float> data(shape.count());
    return graph.upload(data, shape).value();
  }

  template <class Call>
  void fails(Errc code, std::initializer_list<const char*> parts, Call call) {
    const Snapshot before(graph);
    const Error error = error_of(call());
    CHECK(to_string(error.code) == std::string(to_string(code)));
    INFO(error.message);
    for (const char* part : parts) {
      INFO("expected: " << part);
      CHECK(error.message.find(part) != std::string::npos);
    }
    CHECK(Snapshot(graph) == before);
  }

  Result<ValueId> binary(ElementwiseOp op, ValueId x, ValueId y) {
    const ValueId inputs[] = {x, y};
    return record::elementwise(graph, op, inputs);
  }

 private:
  static Error error_of(const Result<ValueId>& result) { return result.error(); }
  static Error error_of(const Error& error) { return error; }
};

constexpr std::uint64_t two_to_33 = std::uint64_t{1} << 33;

}  // namespace

TEST_CASE("upload: null data", "[record][errors]") {
  Fixture f;
  f.fails(Errc::null_data, {"upload", "5"}, [&] { return f.graph.upload({nullptr, 5}, {}); });
  f.fails(Errc::null_data, {"upload", "5"}, [&] { return f.graph.upload({nullptr, 5}, Shape(5)); });
}

TEST_CASE("upload: no data and no shape", "[record][errors]") {
  Fixture f;
  f.fails(Errc::empty_input, {"upload", "{0}"}, [&] { return f.graph.upload({}, {}); });
}

TEST_CASE("upload: data that does not fill the shape", "[record][errors]") {
  Fixture f;
  const std::vector<float> data(5);
  f.fails(Errc::shape_mismatch, {"upload", "5", "[2, 3]", "6"}, [&] { return f.graph.upload(data, Shape(2, 3)); });
  f.fails(Errc::shape_mismatch, {"upload", "0", "[7]"}, [&] { return f.graph.upload({}, Shape(7)); });
}

TEST_CASE("upload and fill: a shape no op accepts", "[record][errors]") {
  Fixture f;
  const std::vector<float> data(5);
  f.fails(Errc::invalid_argument, {"upload", "1 to 8"}, [&] { return f.graph.upload(data, Shape(-5)); });
  f.fails(Errc::invalid_argument, {"upload", "1 to 8"},
          [&] { return f.graph.upload(data, Shape(1, 1, 1, 1, 1, 1, 1, 1, 5)); });
  f.fails(Errc::invalid_argument, {"fill", "1 to 8"}, [&] { return record::fill(f.graph, 0, Shape(3, -1)); });
  f.fails(Errc::invalid_argument, {"fill", "1 to 8"}, [&] { return record::fill(f.graph, 0, Shape()); });
}

TEST_CASE("a tensor past the device's range names the limit", "[record][errors]") {
  Fixture f;
  const std::vector<float> data(1001);
  f.fails(Errc::limit_exceeded, {"upload", "[1001]", "4004", "4000", "maxStorageBufferRange"},
          [&] { return f.graph.upload(data, {}); });
  f.fails(Errc::limit_exceeded, {"fill", "[1001]", "maxStorageBufferRange"},
          [&] { return record::fill(f.graph, 0, Shape(1001)); });
  CHECK(record::fill(f.graph, 0, Shape(1000)));

  const ValueId column = f.upload(Shape(100, 1));
  const ValueId row = f.upload(Shape(100));
  f.fails(Errc::limit_exceeded, {"add", "[100, 100]", "40000", "maxStorageBufferRange"},
          [&] { return f.binary(ElementwiseOp::add, column, row); });
  f.fails(Errc::limit_exceeded, {"matmul", "[100, 100]", "maxStorageBufferRange"},
          [&] { return plan::matmul(f.graph, column, row, 100, 1, 100, {}); });
}

TEST_CASE("a size past 64 bits is an overflow, not a small tensor", "[record][errors]") {
  Fixture f;
  f.fails(Errc::size_overflow, {"fill", "8589934592"},
          [&] { return record::fill(f.graph, 0, Shape(two_to_33, two_to_33)); });
  // 2^62 elements fit in 64 bits, their bytes do not.
  f.fails(Errc::size_overflow, {"fill"}, [&] { return record::fill(f.graph, 0, Shape(std::uint64_t{1} << 62)); });
  CHECK(record::fill(f.graph, 0, Shape(two_to_33, two_to_33, 0)));
}

TEST_CASE("elementwise: shapes that do not fit", "[record][errors]") {
  Fixture f;
  f.fails(Errc::shape_mismatch, {"add", "[2, 3]", "[4]"},
          [&] { return f.binary(ElementwiseOp::add, f.two_three, f.four); });
  f.fails(Errc::shape_mismatch, {"mul", "[4]", "[2, 3]"},
          [&] { return f.binary(ElementwiseOp::mul, f.four, f.two_three); });
  f.fails(Errc::shape_mismatch, {"sub", "[4]", "[0]"}, [&] { return f.binary(ElementwiseOp::sub, f.four, f.empty); });
}

TEST_CASE("views: ranges, axes and shapes that do not fit", "[record][errors]") {
  Fixture f;
  const Range step_of_zero[] = {{0, 2, 0}};
  f.fails(Errc::invalid_argument, {"slice", "step of 0", "dim 0", "[2, 3]"},
          [&] { return record::slice(f.graph, f.two_three, step_of_zero); });
  const Range three[] = {{}, {}, {}};
  f.fails(Errc::invalid_argument, {"slice", "3 ranges", "[2, 3]"},
          [&] { return record::slice(f.graph, f.two_three, three); });
  auto permute = [&](std::vector<std::int64_t> axes) { return record::permute(f.graph, f.two_three, axes); };
  f.fails(Errc::invalid_argument, {"permute", "1 axes", "[2, 3]", "expected 2"}, [&] { return permute({0}); });
  f.fails(Errc::invalid_argument, {"permute", "axis 2", "out of range"}, [&] { return permute({0, 2}); });
  f.fails(Errc::invalid_argument, {"permute", "axis -3", "out of range"}, [&] { return permute({0, -3}); });
  f.fails(Errc::invalid_argument, {"permute", "axis -1", "twice"}, [&] { return permute({1, -1}); });
  f.fails(Errc::shape_mismatch, {"expand", "[2, 3]", "[2, 4]"},
          [&] { return record::expand(f.graph, f.two_three, Shape(2, 4)); });
  f.fails(Errc::shape_mismatch, {"expand", "[2, 3]", "[3]"},
          [&] { return record::expand(f.graph, f.two_three, Shape(3)); });
  f.fails(Errc::shape_mismatch, {"expand"}, [&] { return record::expand(f.graph, f.two_three, Shape(-1, 3)); });
  const std::uint64_t many = std::uint64_t{1} << 40;
  f.fails(Errc::limit_exceeded, {"expand"}, [&] { return record::expand(f.graph, f.two_three, Shape(many, 2, 3)); });
}

TEST_CASE("clamp: bounds the wrong way round, and NaN bounds", "[record][errors]") {
  Fixture f;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto clamp = [&](float low, float high) {
    return record::elementwise(f.graph, ElementwiseOp::clamp, {&f.four, 1}, low, high);
  };
  f.fails(Errc::invalid_argument, {"clamp", "2.0", "1.0"}, [&] { return clamp(2, 1); });
  f.fails(Errc::invalid_argument, {"clamp", "nan"}, [&] { return clamp(nan, 1); });
  f.fails(Errc::invalid_argument, {"clamp", "nan"}, [&] { return clamp(1, nan); });
  CHECK(clamp(1, 1));
}

TEST_CASE("reduce: dot of different lengths", "[record][errors]") {
  Fixture f;
  const ValueId inputs[] = {f.two_three, f.four};
  f.fails(Errc::shape_mismatch, {"dot", "[2, 3]", "[4]", "6 and 4"},
          [&] { return ops::reduce(f.graph, ReduceOp::dot, inputs); });
}

TEST_CASE("reduce: max and min of nothing", "[record][errors]") {
  Fixture f;
  f.fails(Errc::empty_input, {"max", "[0]"}, [&] { return ops::reduce(f.graph, ReduceOp::max, {&f.empty, 1}); });
  f.fails(Errc::empty_input, {"min", "[0]"}, [&] { return ops::reduce(f.graph, ReduceOp::min, {&f.empty, 1}); });
}

TEST_CASE("matmul: leading dims that differ, and a single dim beside a batch", "[record][errors]") {
  Fixture f;
  const ValueId three = f.graph.import({3, 3, 4}, 7);
  const ValueId pairs = f.graph.import({5, 2, 3, 4}, 8);
  MatmulOptions nk;
  nk.layout = Layout::nk;
  f.fails(Errc::shape_mismatch, {"matmul", "[2, 2, 3]", "[3, 3, 4]", "leading dims 2 and 3", "expected the same, or 1"},
          [&] { return plan::matmul(f.graph, f.cube, three, {}); });
  f.fails(Errc::shape_mismatch, {"matmul", "[3, 3, 4]", "[5, 2, 3, 4]", "leading dims 3 and 2"},
          [&] { return plan::matmul(f.graph, three, pairs, nk); });
  f.fails(Errc::shape_mismatch, {"matmul", "[2, 2, 3]", "[2, 3]", "[K, N]", "3 and 2"},
          [&] { return plan::matmul(f.graph, f.cube, f.two_three, {}); });
  f.fails(Errc::shape_mismatch, {"matmul", "[4]", "[3, 3, 4]", "two or more dims", "[..., N, K]"},
          [&] { return plan::matmul(f.graph, f.four, three, nk); });
  f.fails(Errc::shape_mismatch, {"matmul", "[3, 3, 4]", "[4]", "two or more dims", "[..., K, N]"},
          [&] { return plan::matmul(f.graph, three, f.four, {}); });
}

TEST_CASE("matmul: inner sizes that differ, by layout", "[record][errors]") {
  Fixture f;
  MatmulOptions weights;
  weights.layout = Layout::nk;
  f.fails(Errc::shape_mismatch, {"matmul", "[2, 3]", "[K, N]", "3 and 2"},
          [&] { return plan::matmul(f.graph, f.two_three, f.two_three, {}); });
  CHECK(plan::matmul(f.graph, f.two_three, f.two_three, weights));
  f.fails(Errc::shape_mismatch, {"matmul", "[2, 3]", "[4]", "[N, K]", "3 and 4"},
          [&] { return plan::matmul(f.graph, f.two_three, f.four, weights); });
}

TEST_CASE("matmul: sizes the operands do not have", "[record][errors]") {
  Fixture f;
  f.fails(Errc::shape_mismatch, {"matmul", "m = 2, k = 3, n = 2", "6 and 6", "6 and 4"},
          [&] { return plan::matmul(f.graph, f.two_three, f.four, 2, 3, 2, {}); });
  f.fails(Errc::shape_mismatch, {"matmul", "m = 2, k = 2, n = 2", "4 and 4", "6 and 4"},
          [&] { return plan::matmul(f.graph, f.two_three, f.four, 2, 2, 2, {}); });
}

TEST_CASE("matmul: products past 64 bits, also where they wrap to the right size", "[record][errors]") {
  Fixture f;
  constexpr std::uint64_t two_to_32 = std::uint64_t{1} << 32;
  // m * k is 2^64, which is 0 in 64 bits: just what an empty operand has.
  f.fails(Errc::size_overflow, {"matmul", "m = 4294967296", "64 bits"},
          [&] { return plan::matmul(f.graph, f.empty, f.empty, two_to_32, two_to_32, 0, {}); });
  f.fails(Errc::size_overflow, {"matmul", "n = 4294967296", "64 bits"},
          [&] { return plan::matmul(f.graph, f.empty, f.empty, 0, two_to_32, two_to_32, {}); });
  f.fails(Errc::size_overflow, {"matmul", "k = 0", "64 bits"},
          [&] { return plan::matmul(f.graph, f.empty, f.empty, two_to_32, 0, two_to_32, {}); });
  // m * k is 2^64 + 6, and the operand has 6 elements.
  f.fails(Errc::size_overflow, {"matmul", "64 bits"},
          [&] { return plan::matmul(f.graph, f.two_three, f.four, (std::uint64_t{1} << 63) + 3, 2, 2, {}); });
}

TEST_CASE("matmul: gemv forced for more than eight rows", "[record][errors]") {
  Fixture f;
  const ValueId rows = f.graph.import({9, 3}, 7);
  MatmulOptions options;
  options.kernel = MatmulKernel::gemv;
  options.layout = Layout::nk;
  f.fails(Errc::invalid_argument, {"matmul", "m = 9, k = 3, n = 2", "gemv", "8"},
          [&] { return plan::matmul(f.graph, rows, f.two_three, options); });
}

TEST_CASE("store: another number of elements than the buffer", "[record][errors]") {
  Fixture f;
  f.fails(Errc::shape_mismatch, {"store", "[2, 3]", "[5]"},
          [&] { return ops::store(f.graph, f.two_three, 0, Shape(5)); });
  CHECK_FALSE(ops::store(f.graph, f.two_three, 0, Shape(6)));
}

TEST_CASE("store to a slice: ranges, sizes and types that do not fit", "[record][errors]") {
  Fixture f;
  auto store = [&](ValueId x, std::initializer_list<Range> ranges, DType type = DType::f32) {
    return ops::store_slice(f.graph, x, 0, Shape(4, 6), {ranges.begin(), ranges.size()}, type);
  };
  f.fails(Errc::shape_mismatch, {"store", "[2, 3]", "slice of [2, 2]", "buffer of [4, 6]"}, [&] {
    return store(f.two_three, {{0, 2}, {0, 2}});
  });
  f.fails(Errc::shape_mismatch, {"store", "[4]", "slice of [0, 6]"}, [&] { return store(f.four, {{0, 0}}); });
  f.fails(Errc::shape_mismatch, {"store", "[2, 2, 3]", "slice of [2, 3]"}, [&] {
    return store(f.cube, {{0, 2}, {0, 3}});
  });
  f.fails(Errc::type_mismatch, {"store", "is f32", "buffer is i32"}, [&] {
    return store(f.two_three, {{0, 1}}, DType::i32);
  });
  f.fails(Errc::invalid_argument, {"store", "step of 0", "dim 1", "[4, 6]"}, [&] {
    return store(f.two_three, {{0, 1}, {0, 6, 0}});
  });
  f.fails(Errc::invalid_argument, {"store", "3 ranges", "[4, 6]"}, [&] {
    return store(f.two_three, {Range{}, Range{}, Range{}});
  });
  CHECK_FALSE(store(f.two_three, {{1, 2}}));
  CHECK_FALSE(store(f.empty, {{1, 1}}));
}

TEST_CASE("a value of an earlier execution that was not kept cannot be used by any op", "[record][errors]") {
  Fixture f;
  const ValueId kept = record::elementwise(f.graph, ElementwiseOp::relu, {&f.two_three, 1}).value();
  const Graph::Residence residence{kept, 0, 0, true};
  f.graph.executed({&residence, 1});

  const ValueId gone = f.two_three;
  const ValueId pair[] = {kept, gone};
  const auto parts = {"%0", "[2, 3]", "keep()"};
  f.fails(Errc::not_kept, parts, [&] { return record::elementwise(f.graph, ElementwiseOp::relu, {&gone, 1}); });
  f.fails(Errc::not_kept, {"add"}, [&] { return record::elementwise(f.graph, ElementwiseOp::add, pair); });
  f.fails(Errc::not_kept, {"sum"}, [&] { return ops::reduce(f.graph, ReduceOp::sum, {&gone, 1}); });
  f.fails(Errc::not_kept, {"dot"}, [&] { return ops::reduce(f.graph, ReduceOp::dot, pair); });
  f.fails(Errc::not_kept, {"matmul"}, [&] { return plan::matmul(f.graph, kept, gone, 3, 2, 3, {}); });
  f.fails(Errc::not_kept, {"store"}, [&] { return ops::store(f.graph, gone, 0, Shape(2, 3)); });
  f.fails(Errc::not_kept, {"store"}, [&] { return ops::store_slice(f.graph, gone, 0, Shape(2, 3), {}); });
  CHECK(record::elementwise(f.graph, ElementwiseOp::relu, {&kept, 1}));
}

TEST_CASE("a graph is usable after a mistake", "[record][errors]") {
  Fixture f;
  CHECK_FALSE(f.binary(ElementwiseOp::add, f.two_three, f.four));
  const auto sum = f.binary(ElementwiseOp::add, f.two_three, f.two_three);
  REQUIRE(sum);
  CHECK(f.graph.values()[*sum].shape == Shape(2, 3));
}

TEST_CASE("operands of types that do not fit an op are named with their types", "[record][errors]") {
  Fixture f;
  const std::vector<std::int32_t> whole(6);
  const ValueId i32 = f.graph.upload_i32(whole, Shape(2, 3)).value();
  const ValueId mask = record::cast(f.graph, i32, DType::mask).value();
  const ValueId f32 = f.two_three;
  auto unary = [&](ElementwiseOp op, ValueId x) { return record::elementwise(f.graph, op, {&x, 1}); };
  auto where = [&](ValueId x, ValueId y, ValueId z) {
    const ValueId inputs[] = {x, y, z};
    return record::elementwise(f.graph, ElementwiseOp::where, inputs);
  };
  f.fails(Errc::type_mismatch, {"add: operand %4 is i32 and operand %0 is f32; expected the same type"},
          [&] { return f.binary(ElementwiseOp::add, i32, f32); });
  f.fails(Errc::type_mismatch, {"lt: operand %0 is f32 and operand %4 is i32; expected the same type"},
          [&] { return f.binary(ElementwiseOp::lt, f32, i32); });
  f.fails(Errc::type_mismatch, {"max: operand %5 is mask; expected f32 or i32"},
          [&] { return f.binary(ElementwiseOp::max, f32, mask); });
  f.fails(Errc::type_mismatch, {"pow: operand %4 is i32; expected f32"},
          [&] { return f.binary(ElementwiseOp::pow, f32, i32); });
  f.fails(Errc::type_mismatch, {"exp: operand %4 is i32; expected f32"},
          [&] { return unary(ElementwiseOp::exp, i32); });
  f.fails(Errc::type_mismatch, {"logical_not: operand %0 is f32; expected mask"},
          [&] { return unary(ElementwiseOp::logical_not, f32); });
  f.fails(Errc::type_mismatch, {"logical_and: operand %4 is i32; expected mask"},
          [&] { return f.binary(ElementwiseOp::logical_and, mask, i32); });
  f.fails(Errc::type_mismatch, {"where: operand %4 is i32; expected mask"}, [&] { return where(i32, f32, f32); });
  f.fails(Errc::type_mismatch, {"where: operand %0 is f32 and operand %4 is i32; expected the same type"},
          [&] { return where(mask, f32, i32); });
  CHECK(where(mask, i32, i32));
  CHECK(where(mask, mask, mask));
  for (const DType type : {DType::bf16, DType::q8_0, DType::q4_0}) {
    f.fails(Errc::invalid_argument, {"cast", to_string(type), "f32, f16, i32 or mask"},
            [&] { return record::cast(f.graph, f32, type); });
  }
}

TEST_CASE("ops with kernels of their own take f32 unless they say otherwise", "[record][errors]") {
  Fixture f;
  const std::vector<std::int32_t> whole(6);
  const ValueId i32 = f.graph.upload_i32(whole, Shape(2, 3)).value();
  const ValueId mask = record::cast(f.graph, i32, DType::mask).value();
  f.fails(Errc::type_mismatch, {"sum: operand %4 [2, 3] is i32; expected f32"}, [&] {
    return ops::reduce(f.graph, ReduceOp::sum, {&i32, 1});
  });
  f.fails(Errc::type_mismatch, {"max: operand %5 [2, 3] is mask; expected f32"}, [&] {
    return ops::reduce(f.graph, ReduceOp::max, {&mask, 1});
  });
  f.fails(Errc::type_mismatch, {"matmul: operand %4 [2, 3] is i32; expected f32"},
          [&] { return plan::matmul(f.graph, f.two_three, i32, {.layout = Layout::nk}); });
}

TEST_CASE("a store into a buffer of another type names both types", "[record][errors]") {
  Fixture f;
  const std::vector<std::int32_t> whole(6);
  const ValueId i32 = f.graph.upload_i32(whole, Shape(2, 3)).value();
  f.fails(Errc::type_mismatch, {"store", "is i32", "buffer is f32"},
          [&] { return ops::store(f.graph, i32, 0, Shape(6)); });
  f.fails(Errc::type_mismatch, {"store", "is f32", "buffer is mask"},
          [&] { return ops::store(f.graph, f.two_three, 0, Shape(6), DType::mask); });
  CHECK_FALSE(ops::store(f.graph, i32, 0, Shape(6), DType::i32));
}
