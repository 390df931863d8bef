// Recordings as text, before planning.
#include "ops/matmul.hpp"
#include "ops/reduce.hpp"
#include "ops/store.hpp"
#include "record/dump.hpp"
#include "record/elementwise.hpp"
#include "support/dump_checker.hpp"
#include "support/random_graph.hpp"

#include <catch2/catch_test_macros.hpp>

#include <limits>
#include <string>
#include <vector>

using namespace brontes;
using record::ElementwiseOp;
using record::Graph;
using record::ValueId;

namespace {

Graph empty_graph() { return Graph(std::uint64_t{1} << 30); }

ValueId upload(Graph& graph, const Shape& shape) {
  const std::vector<float> data(shape.count());
  return graph.upload(data, shape).value();
}

ValueId unary(Graph& graph, ElementwiseOp op, ValueId x, float p = 0, float q = 0) {
  return record::elementwise(graph, op, {&x, 1}, p, q).value();
}

// Every kind of input, op and output.
Graph example() {
  Graph graph = empty_graph();
  const ValueId x = upload(graph, Shape(4, 8));
  const ValueId w = graph.import(Shape(16, 8), 0);
  const ValueId bias = graph.import(Shape(16), 1);
  MatmulOptions options;
  options.layout = Layout::nk;
  options.alpha = 0.5f;
  options.kernel = MatmulKernel::naive;
  const ValueId add[] = {plan::matmul(graph, x, w, options).value(), bias};
  const ValueId h = record::elementwise(graph, ElementwiseOp::add, add).value();
  graph.keep(h);
  const ValueId y = unary(graph, ElementwiseOp::clamp, h, -1, std::numeric_limits<float>::infinity());
  const ValueId twice[] = {y, y};
  static_cast<void>(ops::reduce(graph, ops::ReduceOp::dot, twice).value());
  CHECK_FALSE(ops::store(graph, y, 2, Shape(4, 16)));
  static_cast<void>(record::fill(graph, 0.1f, Shape(3)).value());
  return graph;
}

}  // namespace

TEST_CASE("recorded: the same recording as text, DOT and JSON", "[record][dump]") {
  CHECK("\n" + record::dump(example()) == R"(
recorded: 6 ops, 3 inputs
upload %0 [4, 8]
import %1 [16, 8] in buffer 0
import %2 [16] in buffer 1
matmul 4x8x16 nk alpha 0.5 forced naive %0, %1 -> %3 [4, 16]
add %3, %2 -> %4 [4, 16] keep
clamp %4, -1, inf -> %5 [4, 16]
dot %5, %5 -> %6 [1]
store %5 -> buffer 2
fill 0.1 -> %7 [3]
)");
  CHECK("\n" + record::dump(example(), DumpFormat::dot) == R"(
digraph recorded {
  rankdir=TB; fontname="sans-serif"; fontsize=10; labeljust=l; labelloc=b;
  node [shape=box, style=rounded, fontname="sans-serif", fontsize=11];
  edge [fontname="sans-serif", fontsize=9];
  v0 [shape=ellipse, label="upload %0\n[4, 8]"];
  v1 [shape=ellipse, label="import %1\n[16, 8] in buffer 0"];
  v2 [shape=ellipse, label="import %2\n[16] in buffer 1"];
  v3 [label="matmul 4x8x16 nk alpha 0.5 forced naive %0, %1\n%3 [4, 16]"];
  v0 -> v3;
  v1 -> v3;
  v4 [label="add %3, %2\n%4 [4, 16], keep", peripheries=2];
  v3 -> v4;
  v2 -> v4;
  v5 [label="clamp %4, -1, inf\n%5 [4, 16]"];
  v4 -> v5;
  v6 [label="dot %5, %5\n%6 [1]"];
  v5 -> v6;
  s0 [shape=ellipse, label="store %5\nto buffer 2"];
  v5 -> s0;
  v7 [label="fill 0.1\n%7 [3]"];
}
)");
  CHECK("\n" + record::dump(example(), DumpFormat::json) == R"(
{
  "stage": "recorded",
  "inputs": [
    {"value": 0, "from": "upload", "shape": [4, 8], "keep": false},
    {"value": 1, "from": "import", "buffer": 0, "shape": [16, 8], "keep": false},
    {"value": 2, "from": "import", "buffer": 1, "shape": [16], "keep": false}
  ],
  "ops": [
    {"op": "matmul", "inputs": [0, 1], "matmul": {"m": 4, "k": 8, "n": 16, "layout": "nk", "alpha": 0.5, "forced": "naive"}, "output": 3, "shape": [4, 16], "keep": false},
    {"op": "add", "inputs": [3, 2], "output": 4, "shape": [4, 16], "keep": true},
    {"op": "clamp", "inputs": [4], "scalars": [-1, "inf"], "output": 5, "shape": [4, 16], "keep": false},
    {"op": "dot", "inputs": [5, 5], "output": 6, "shape": [1], "keep": false},
    {"op": "store", "inputs": [5], "buffer": 2},
    {"op": "fill", "inputs": [], "scalars": [0.1], "output": 7, "shape": [3], "keep": false}
  ]
}
)");
}

TEST_CASE("recorded: what has been executed is an input of what comes after", "[record][dump]") {
  Graph graph = empty_graph();
  const ValueId w = graph.import(Shape(4), 0);
  const ValueId x = upload(graph, Shape(4));
  const ValueId y = unary(graph, ElementwiseOp::relu, x);
  const Graph::Residence residence{y, 1, 256, true};
  graph.executed({&residence, 1});
  CHECK(record::dump(graph) == "recorded: 0 ops, 0 inputs\n");

  unary(graph, ElementwiseOp::neg, y);
  unary(graph, ElementwiseOp::scale, w, 3);
  CHECK("\n" + record::dump(graph) == R"(
recorded: 2 ops, 2 inputs
import %0 [4] in buffer 0
earlier %2 [4] in buffer 1 at 256
neg %2 -> %3 [4]
scale %0, 3 -> %4 [4]
)");
  CHECK("\n" + record::dump(graph, DumpFormat::json) == R"(
{
  "stage": "recorded",
  "inputs": [
    {"value": 0, "from": "import", "buffer": 0, "shape": [4], "keep": false},
    {"value": 2, "from": "earlier", "buffer": 1, "offset": 256, "shape": [4], "keep": false}
  ],
  "ops": [
    {"op": "neg", "inputs": [2], "output": 3, "shape": [4], "keep": false},
    {"op": "scale", "inputs": [0], "scalars": [3], "output": 4, "shape": [4], "keep": false}
  ]
}
)");
}

TEST_CASE("recorded: a number is printed so that it can be read back", "[record][dump]") {
  Graph graph = empty_graph();
  const ValueId x = upload(graph, Shape(1));
  unary(graph, ElementwiseOp::scale, x, 1.0f / 3);
  unary(graph, ElementwiseOp::scale, x, -1e-20f);
  unary(graph, ElementwiseOp::scale, x, -std::numeric_limits<float>::quiet_NaN());
  CHECK("\n" + record::dump(graph) == R"(
recorded: 3 ops, 1 inputs
upload %0 [1]
scale %0, 0.33333334 -> %1 [1]
scale %0, -1e-20 -> %2 [1]
scale %0, nan -> %3 [1]
)");
  CHECK(test::is_json(record::dump(graph, DumpFormat::json)));
}

TEST_CASE("recorded: an empty batch", "[record][dump]") {
  CHECK(record::dump(empty_graph()) == "recorded: 0 ops, 0 inputs\n");
  CHECK(test::is_json(record::dump(empty_graph(), DumpFormat::json)));
}

TEST_CASE("recorded: JSON of random recordings is JSON, and DOT has no edge to nowhere", "[record][dump][random]") {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    test::Random random(seed);
    const Graph graph = test::random_graph(random);
    const std::string json = record::dump(graph, DumpFormat::json);
    if (!test::is_json(json)) FAIL("seed " << seed << "\n" << json);
    const std::string dot = record::dump(graph, DumpFormat::dot);
    const std::string end = test::dangling_edge(dot);
    if (!end.empty()) FAIL("seed " << seed << ": " << end << "\n" << dot);
  }
}

TEST_CASE("a recorded dump shows views beside what they are views of", "[record][dump]") {
  record::Graph graph(std::uint64_t{1} << 20);
  const record::ValueId x = graph.upload(std::vector<float>(6), Shape(2, 3)).value();
  const record::ValueId row = graph.reshape("reshape", x, Shape(6)).value();
  const record::ValueId y = record::elementwise(graph, record::ElementwiseOp::neg, {&row, 1}).value();
  graph.keep(graph.reshape("reshape", y, Shape(3, 2)).value());
  CHECK(record::dump(graph, DumpFormat::text) ==
        "recorded: 1 ops, 1 inputs\n"
        "upload %0 [2, 3]\n"
        "view %1 of %0 [6]\n"
        "neg %1 -> %2 [6]\n"
        "view %3 of %2 [3, 2] keep\n");
  CHECK(test::is_json(record::dump(graph, DumpFormat::json)));
  CHECK(test::dangling_edge(record::dump(graph, DumpFormat::dot)) == "");
}
