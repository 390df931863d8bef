// Recording: what each op adds to the graph.
#include "ops/matmul.hpp"
#include "ops/reduce.hpp"
#include "ops/store.hpp"
#include "record/elementwise.hpp"
#include "record/graph.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

using namespace brontes;
using ops::ReduceOp;
using record::ElementwiseOp;
using record::Graph;
using record::ValueId;

namespace {

constexpr std::uint64_t plenty = std::uint64_t{1} << 30;

ValueId upload(Graph& graph, const Shape& shape) {
  const std::vector<float> data(shape.count(), 1.0f);
  return graph.upload(data, shape).value();
}

ValueId binary(Graph& graph, ElementwiseOp op, ValueId x, ValueId y) {
  const ValueId inputs[] = {x, y};
  return record::elementwise(graph, op, inputs).value();
}

ValueId unary(Graph& graph, ElementwiseOp op, ValueId x, float p = 0, float q = 0) {
  return record::elementwise(graph, op, {&x, 1}, p, q).value();
}

}  // namespace

TEST_CASE("an upload copies its data, so that the caller may change it", "[record]") {
  Graph graph(plenty);
  std::vector<float> data{1, 2, 3};
  const ValueId x = graph.upload(data, {}).value();
  data[0] = 9;
  CHECK(graph.values()[x].shape == Shape(3));
  REQUIRE(graph.uploads().size() == 1);
  CHECK(graph.uploads()[0].value == x);
  CHECK(graph.uploads()[0].data[0] == 1);
}

namespace {

/// Memory of the test's own.
class TestLanding final : public record::Landing {
 public:
  TestLanding(std::vector<float>& memory, std::uint64_t alignment)
      : Landing(memory.size() * sizeof(float), alignment), memory_(memory) {}
  Error write(std::uint64_t offset, const void* data, std::uint64_t bytes) override {
    if (fails) return Error(Errc::vulkan, "no");
    std::memcpy(reinterpret_cast<std::byte*>(memory_.data()) + offset, data, bytes);
    return {};
  }
  const std::byte* memory() const noexcept override { return reinterpret_cast<const std::byte*>(memory_.data()); }
  bool fails = false;

 private:
  std::vector<float>& memory_;
};

float first_of(const Graph& graph, std::size_t upload) {
  float value = 0;
  std::memcpy(&value, graph.data_of(graph.uploads()[upload]), sizeof(value));
  return value;
}

}  // namespace

TEST_CASE("uploads land one after the other, aligned, as far as there is room", "[record]") {
  Graph graph(plenty);
  std::vector<float> memory(40, 0.0f);
  graph.land(std::make_unique<TestLanding>(memory, 64));
  for (const std::size_t count : {3u, 16u, 9u, 8u}) {
    const std::vector<float> data(count, static_cast<float>(count));
    REQUIRE(graph.upload(data, {}));
  }
  REQUIRE(graph.upload({}, Shape(0)));
  CHECK(graph.uploads()[0].landed == 0);
  CHECK(graph.uploads()[1].landed == 64);
  CHECK(graph.uploads()[2].landed == record::Upload::not_landed);  // 8 of the 9 fit
  CHECK(graph.uploads()[3].landed == 128);
  CHECK(graph.uploads()[4].landed == record::Upload::not_landed);
  CHECK(memory[2] == 3);
  CHECK(memory[16] == 16);
  CHECK(memory[39] == 8);
  for (const std::size_t i : {0u, 1u, 2u, 3u}) {
    CHECK(first_of(graph, i) == static_cast<float>(graph.values()[graph.uploads()[i].value].shape.count()));
  }
  // Now it is full to the last byte.
  REQUIRE(graph.upload({memory.data(), 1}, {}));
  CHECK(graph.uploads()[5].landed == record::Upload::not_landed);
}

TEST_CASE("uploads that leave their landing have the same elements", "[record]") {
  Graph graph(plenty);
  std::vector<float> memory(40, 0.0f);
  graph.land(std::make_unique<TestLanding>(memory, 16));
  const std::vector<float> data{7, 8, 9};
  REQUIRE(graph.upload(data, {}));
  REQUIRE(graph.upload(data, {}));
  REQUIRE_FALSE(graph.leave_landing());
  CHECK(graph.landing() == nullptr);
  memory.assign(40, 0.0f);
  CHECK(graph.uploads()[1].data[2] == 9);
  CHECK(first_of(graph, 0) == 7);
  CHECK(graph.uploads()[1].value == 1);
}

TEST_CASE("an upload that cannot be written where it lands is not recorded", "[record]") {
  Graph graph(plenty);
  std::vector<float> memory(40, 0.0f);
  auto landing = std::make_unique<TestLanding>(memory, 16);
  landing->fails = true;
  graph.land(std::move(landing));
  const std::vector<float> data{7};
  CHECK(graph.upload(data, {}).error().code == Errc::vulkan);
  CHECK(graph.values().empty());
  CHECK(graph.uploads().empty());
  CHECK(graph.landing()->end() == 0);
}

TEST_CASE("memory of uploads is used again while it is of use, and given back after that", "[record]") {
  Graph graph(plenty);
  const std::vector<float> large(std::size_t{1} << 20, 1.0f);
  const std::vector<float> small(4, 1.0f);
  const float* block = nullptr;
  // Two of them, each of more than a quarter of what once was the most that was kept.
  for (int i = 0; i < 3; ++i) {
    REQUIRE(graph.upload(large, {}));
    REQUIRE(graph.upload(large, {}));
    const float* now = graph.uploads()[0].data.get();
    if (i != 0) CHECK(now == block);
    block = now;
    graph.executed({});
  }
  CHECK(graph.kept_bytes() >= 2 * large.size() * sizeof(float));
  for (int i = 0; i < 4; ++i) {
    REQUIRE(graph.upload(small, {}));
    graph.executed({});
  }
  CHECK(graph.kept_bytes() == 0);
}

TEST_CASE("a graph that starts anew has nothing of before but its memory", "[record]") {
  Graph graph(plenty);
  std::vector<float> memory(40, 0.0f);
  graph.land(std::make_unique<TestLanding>(memory, 16));
  const ValueId x = upload(graph, Shape(2));
  REQUIRE_FALSE(ops::store(graph, unary(graph, ElementwiseOp::relu, x), 0, Shape(2)));
  graph.executed({});
  REQUIRE(upload(graph, Shape(3)) == 2);
  graph.restart();
  CHECK(graph.values().empty());
  CHECK(graph.nodes().empty());
  CHECK(graph.uploads().empty());
  CHECK(graph.landing() == nullptr);
  CHECK(graph.first_pending_value() == 0);
  CHECK(graph.first_pending_node() == 0);
  const ValueId y = upload(graph, Shape(2));
  CHECK(y == 0);
  CHECK(graph.values()[y].consumers == 0);
  CHECK(unary(graph, ElementwiseOp::neg, y) == 1);
  CHECK(graph.inputs(graph.nodes()[0])[0] == y);
}

TEST_CASE("an upload without elements needs a shape and holds no data", "[record]") {
  Graph graph(plenty);
  const ValueId x = graph.upload({}, Shape(3, 0)).value();
  CHECK(graph.values()[x].shape == Shape(3, 0));
  CHECK(graph.values()[x].bytes() == 0);
  CHECK(graph.uploads()[0].data == nullptr);
}

TEST_CASE("an import lies in its resource and is no upload", "[record]") {
  Graph graph(plenty);
  const ValueId x = graph.import(Shape(2, 2), 7);
  CHECK(graph.values()[x].resource == 7);
  CHECK(graph.uploads().empty());
  CHECK(graph.nodes().empty());
}

TEST_CASE("an elementwise result has the shape its operands broadcast to", "[record]") {
  Graph graph(plenty);
  const ValueId matrix = upload(graph, Shape(2, 3));
  const ValueId row = upload(graph, Shape(3));
  const ValueId column = upload(graph, Shape(2, 1));
  CHECK(graph.values()[binary(graph, ElementwiseOp::add, matrix, row)].shape == Shape(2, 3));
  CHECK(graph.values()[binary(graph, ElementwiseOp::add, row, matrix)].shape == Shape(2, 3));
  CHECK(graph.values()[binary(graph, ElementwiseOp::mul, column, row)].shape == Shape(2, 3));
  CHECK(graph.values()[unary(graph, ElementwiseOp::relu, column)].shape == Shape(2, 1));
}

TEST_CASE("every elementwise op records its name, operands and scalars", "[record]") {
  struct Row {
    const char* name;
    std::uint32_t code;
    std::uint8_t arity, scalars;
    const char* types;
  };
  constexpr Row rows[] = {
#define BRONTES_OP(name, code, arity, scalars, types, formula) {#name, code, arity, scalars, #types},
#include "elementwise.def"
#undef BRONTES_OP
  };
  for (const Row& row : rows) {
    INFO(row.name);
    const auto op = static_cast<ElementwiseOp>(row.code);
    CHECK(record::info(op).arity == row.arity);
    CHECK(record::info(op).scalars == row.scalars);
    Graph graph(plenty);
    auto type = [](char letter) {
      return letter == 'i' ? DType::i32 : letter == 'm' ? DType::mask : letter == 'h' ? DType::f16 : DType::f32;
    };
    std::vector<ValueId> inputs;
    for (std::uint8_t k = 0; k < row.arity; ++k) inputs.push_back(graph.import(Shape(2), k, type(row.types[k])));
    const auto y = op == ElementwiseOp::fill_i32 ? record::fill_i32(graph, 0x3e800000, Shape(2))
                   : row.arity == 0              ? record::fill(graph, 0.25f, Shape(2))
                                                 : record::elementwise(graph, op, inputs, 0.25f, 0.5f);
    REQUIRE(y);
    CHECK(graph.value(*y).dtype == type(std::string(row.types).back()));
    const record::Node& node = graph.nodes().back();
    CHECK(std::string(record::name(node)) == row.name);
    CHECK(node.output == *y);
    CHECK(node.attributes.as<record::ElementwiseAttributes>().p == 0.25f);
    REQUIRE(node.input_count == row.arity);
    for (std::size_t i = 0; i < row.arity; ++i) CHECK(graph.inputs(node)[i] == inputs[i]);
  }
}

TEST_CASE("a reduction of any shape is one element", "[record]") {
  Graph graph(plenty);
  const ValueId x = upload(graph, Shape(2, 3));
  const ValueId flat = upload(graph, Shape(6));
  const ValueId pair[] = {x, flat};
  CHECK(graph.values()[ops::reduce(graph, ReduceOp::sum, {&x, 1}).value()].shape == Shape(1));
  CHECK(graph.values()[ops::reduce(graph, ReduceOp::dot, pair).value()].shape == Shape(1));
  CHECK(std::string(record::name(graph.nodes().back())) == "dot");
}

TEST_CASE("sum and dot of nothing are allowed", "[record]") {
  Graph graph(plenty);
  const ValueId empty = upload(graph, Shape(0));
  const ValueId pair[] = {empty, empty};
  CHECK(ops::reduce(graph, ReduceOp::sum, {&empty, 1}));
  CHECK(ops::reduce(graph, ReduceOp::dot, pair));
}

TEST_CASE("matmul infers its sizes from the shapes, in both layouts", "[record]") {
  Graph graph(plenty);
  struct Case {
    Shape a, b;
    Layout layout;
    std::uint64_t m, k, n;
  };
  const Case cases[] = {
      {Shape(2, 3), Shape(3, 5), Layout::kn, 2, 3, 5}, {Shape(2, 3), Shape(5, 3), Layout::nk, 2, 3, 5},
      {Shape(3), Shape(3, 5), Layout::kn, 1, 3, 5},    {Shape(3), Shape(5, 3), Layout::nk, 1, 3, 5},
      {Shape(2, 3), Shape(3), Layout::kn, 2, 3, 1},    {Shape(2, 3), Shape(3), Layout::nk, 2, 3, 1},
      {Shape(0, 3), Shape(3, 5), Layout::kn, 0, 3, 5}, {Shape(2, 0), Shape(0, 5), Layout::kn, 2, 0, 5},
      {Shape(2, 3), Shape(0, 3), Layout::nk, 2, 3, 0},
  };
  for (const Case& c : cases) {
    MatmulOptions options;
    options.layout = c.layout;
    options.alpha = 0.5f;
    INFO(to_string(c.a) << " x " << to_string(c.b));
    const auto y = plan::matmul(graph, upload(graph, c.a), upload(graph, c.b), options);
    REQUIRE(y);
    CHECK(graph.values()[*y].shape == Shape(c.m, c.n));
    const auto node = graph.nodes().back().attributes.as<plan::MatmulAttributes>();
    CHECK((node.m == c.m && node.k == c.k && node.n == c.n));
    CHECK(node.layout == c.layout);
    CHECK(node.alpha == 0.5f);
  }
}

TEST_CASE("matmul with sizes takes flat operands", "[record]") {
  Graph graph(plenty);
  const auto y = plan::matmul(graph, upload(graph, Shape(6)), upload(graph, Shape(15)), 2, 3, 5, {});
  REQUIRE(y);
  CHECK(graph.values()[*y].shape == Shape(2, 5));
}

TEST_CASE("consumers counts every use, also twice by one op and by a store", "[record]") {
  Graph graph(plenty);
  const ValueId x = upload(graph, Shape(2));
  CHECK(graph.values()[x].consumers == 0);
  unary(graph, ElementwiseOp::relu, x);
  CHECK(graph.values()[x].consumers == 1);
  const ValueId y = binary(graph, ElementwiseOp::add, x, x);
  CHECK(graph.values()[x].consumers == 3);
  CHECK(graph.values()[y].consumers == 0);
  CHECK_FALSE(ops::store(graph, y, 0, Shape(2)));
  CHECK(graph.values()[y].consumers == 1);
}

TEST_CASE("keep() marks a value, and a copy without data keeps the marks", "[record]") {
  Graph graph(plenty);
  const ValueId x = upload(graph, Shape(2));
  const ValueId y = unary(graph, ElementwiseOp::relu, x);
  graph.keep(x);
  for (const Graph& g : {graph.without_data(), graph.without_data().without_data()}) {
    CHECK(g.values()[x].keep);
    CHECK_FALSE(g.values()[y].keep);
    CHECK(g.values()[x].consumers == 1);
    CHECK(g.nodes().size() == 1);
    CHECK(g.uploads().empty());
  }
}

TEST_CASE("an import can be read at once, other values after they were executed", "[record]") {
  Graph graph(plenty);
  const ValueId x = graph.import(Shape(2), 0);
  const ValueId y = unary(graph, ElementwiseOp::relu, x);
  CHECK(graph.values()[x].imported);
  CHECK(graph.values()[x].readable);
  CHECK_FALSE(graph.values()[y].readable);
  const Graph::Residence residence{y, 1, 0, true};
  graph.executed({&residence, 1});
  CHECK(graph.values()[y].readable);
  CHECK_FALSE(graph.values()[y].imported);
}

TEST_CASE("executed() ends what is pending and says where kept values lie", "[record]") {
  Graph graph(plenty);
  const ValueId x = upload(graph, Shape(2));
  const ValueId y = unary(graph, ElementwiseOp::relu, x);
  const Graph::Residence residence{y, 4, 256, true};
  graph.executed({&residence, 1});
  CHECK(graph.uploads().empty());
  CHECK(graph.first_pending_value() == 2);
  CHECK(graph.first_pending_node() == 1);
  CHECK(graph.values()[y].resource == 4);
  CHECK(graph.values()[y].offset == 256);
  const ValueId z = unary(graph, ElementwiseOp::neg, y);
  CHECK(z == 2);
  CHECK(graph.inputs(graph.nodes().back())[0] == y);
}
