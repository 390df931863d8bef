// f16 in recordings and plans: its bytes, its conversions, and where they run.
#include "ops/catalogue.hpp"
#include "ops/matmul.hpp"
#include "ops/reduce.hpp"
#include "ops/store.hpp"
#include "plan/plan.hpp"
#include "record/dump.hpp"
#include "record/elementwise.hpp"
#include "support/hazard_checker.hpp"

#include <brontes/batch.hpp>

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <vector>

using namespace brontes;
using record::ElementwiseOp;
using record::Graph;
using record::ValueId;

namespace {

ValueId halves(Graph& graph, const Shape& shape) {
  return graph.upload_f16(std::vector<std::uint16_t>(shape.count()), shape).value();
}
ValueId floats(Graph& graph, const Shape& shape) {
  return graph.upload(std::vector<float>(shape.count()), shape).value();
}
ValueId unary(Graph& graph, ElementwiseOp op, ValueId x) {
  return record::elementwise(graph, op, {&x, 1}, 2.0f).value();
}
ValueId to_half(Graph& graph, ValueId x) { return record::cast(graph, x, DType::f16).value(); }

plan::Plan planned(const Graph& graph, const plan::Traits& traits = {}, const plan::PlanOptions& options = {}) {
  plan::Plan plan = plan::make_plan(graph, traits, options).value();
  CHECK(test::describe(test::check_plan(plan, graph, options)).empty());
  return plan;
}
std::string dumped(const Graph& graph, const plan::Traits& traits = {}, const plan::PlanOptions& options = {}) {
  return "\n" + plan::dump(planned(graph, traits, options), graph);
}

Graph empty_graph() { return Graph(std::uint64_t{1} << 30); }

}  // namespace

TEST_CASE("a chain that ends in a cast to f16 is one dispatch with half the bytes", "[plan][f16]") {
  Graph graph = empty_graph();
  const ValueId x = halves(graph, Shape(1000));
  to_half(graph, unary(graph, ElementwiseOp::scale, unary(graph, ElementwiseOp::relu, x)));
  CHECK("\n" + record::dump(graph) == R"(
recorded: 3 ops, 1 inputs
upload %0 f16 [1000]
relu %0 -> %1 [1000]
scale %1, 2 -> %2 [1000]
f32_to_f16 %2 -> %3 f16 [1000]
)");
  CHECK(dumped(graph) == R"(
plan: 3 ops, 1 dispatches, 0 barriers, arena 4096 bytes
upload %0 [1000] at 0
#0 elementwise relu+scale+f32_to_f16 %0 -> %3 groups 2x1x1
read %3 [1000] at 2048
)");
  const plan::Plan plan = planned(graph);
  CHECK(plan.element_bytes_up == 2000);
  CHECK(plan.element_bytes_down == 2000);
  CHECK(plan.dispatches[0].get(kernels::elementwise::half_slots) ==
        (1u << kernels::elementwise::in0 | 1u << kernels::elementwise::out0));
}

TEST_CASE("without f16 no kernel is told of any", "[plan][f16]") {
  Graph graph = empty_graph();
  unary(graph, ElementwiseOp::relu, floats(graph, Shape(1000)));
  CHECK(planned(graph).dispatches[0].get(kernels::elementwise::half_slots) == 0);
}

TEST_CASE("a product takes f16 operands and gives f16 in its own dispatch", "[plan][f16]") {
  Graph graph = empty_graph();
  const ValueId a = halves(graph, Shape(4, 8));
  const ValueId b = halves(graph, Shape(8, 16));
  to_half(graph, unary(graph, ElementwiseOp::gelu, plan::matmul(graph, a, b, {}).value()));
  CHECK(dumped(graph) == R"(
plan: 3 ops, 1 dispatches, 0 barriers, arena 768 bytes
upload %0 [4, 8] at 0
upload %1 [8, 16] at 256
#0 matmul_naive matmul+gelu+f32_to_f16 4x8x16 kn %0, %1 -> %4 groups 1x1x1
read %4 [4, 16] at 512
)");
}

TEST_CASE("sums of a product that several dispatches add up are f32 until they are complete", "[plan][f16]") {
  Graph graph = empty_graph();
  const ValueId a = halves(graph, Shape(4, 4096));
  const ValueId b = halves(graph, Shape(4096, 16));
  MatmulOptions options;
  options.kernel = MatmulKernel::naive;
  to_half(graph, plan::matmul(graph, a, b, options).value());
  plan::Traits traits;
  traits.max_loop_iterations = 600;
  const plan::Plan plan = planned(graph, traits);
  REQUIRE(plan.dispatches.size() > 2);
  for (std::size_t i = 0; i + 1 < plan.dispatches.size(); ++i) {
    const plan::Dispatch& d = plan.dispatches[i];
    for (std::size_t slot = 0; slot < d.binding_count; ++slot) CHECK_FALSE((d.writes(slot) && d.bindings[slot].half));
  }
  CHECK(plan.dispatches.back().kernel == kernels::Id::matmul_combine);
}

TEST_CASE("reductions take f16 and give f16 in their own dispatches", "[plan][f16]") {
  Graph graph = empty_graph();
  const ValueId x = halves(graph, Shape(100));
  to_half(graph, ops::reduce(graph, ops::ReduceOp::sum, {&x, 1}).value());
  const ValueId y = unary(graph, ElementwiseOp::square, x);
  ops::reduce(graph, ops::ReduceOp::max, {&y, 1}).value();
  CHECK(dumped(graph) == R"(
plan: 4 ops, 2 dispatches, 0 barriers, arena 768 bytes
upload %0 [100] at 0
#0 reduce sum+f32_to_f16 %0 -> %2 groups 1x1x1
#1 reduce square+max %0 -> %4 groups 1x1x1
read %2 [1] at 256
read %4 [1] at 512
)");
}

TEST_CASE("parts of a joined tensor of f16 are made where they lie", "[plan][f16]") {
  Batch batch = OpAccess::detached();
  const Tensor x = batch.upload(std::vector<float>(128));
  const Tensor joined = batch.concat({batch.cast(batch.relu(x), DType::f16), batch.cast(batch.neg(x), DType::f16)});
  CHECK(joined.dtype() == DType::f16);
  const Graph& graph = *OpAccess::graph(batch);
  CHECK(dumped(graph) == R"(
plan: 5 ops, 1 dispatches, 0 barriers, arena 1024 bytes
upload %0 [128] at 0
#0 elementwise relu+f32_to_f16+neg+f32_to_f16 %0 -> %2 in %5 at 0, %4 in %5 at 256 groups 1x1x1
read %5 [256] at 512
)");
}

TEST_CASE("a slice of a buffer of f16 is bound by its own bytes", "[plan][f16]") {
  Graph graph = empty_graph();
  const ValueId x = halves(graph, Shape(1, 100));
  const Range rows[] = {Range::at(7)};
  REQUIRE_FALSE(ops::store_slice(graph, x, 0, Shape(16, 100), rows, DType::f16));
  const plan::Plan plan = planned(graph);
  REQUIRE(plan.dispatches.size() == 1);
  const plan::Region& into = plan.dispatches[0].bindings[1];
  CHECK(into.half);
  CHECK(into.offset == 1280);  // 1400, from where a binding may begin
  CHECK(into.offset + into.bytes == 1600);
}

TEST_CASE("f16 is limited by its bytes, not by those that f32 would have", "[record][f16]") {
  Graph graph(100);
  CHECK(graph.upload_f16(std::vector<std::uint16_t>(50), Shape(50)));
  const auto more = graph.upload_f16(std::vector<std::uint16_t>(51), Shape(51));
  CHECK(more.error().code == Errc::limit_exceeded);
  CHECK(more.error().message.find("takes 102 bytes") != std::string::npos);
}

TEST_CASE("a cast to or from f16 is one op, or two by way of f32, and none where nothing changes", "[record][f16]") {
  Graph graph = empty_graph();
  const ValueId f = floats(graph, Shape(3));
  const ValueId h = halves(graph, Shape(3));
  const ValueId i = graph.upload_i32(std::vector<std::int32_t>(3), Shape(3)).value();
  auto ops = [&](ValueId x, DType type) {
    const std::size_t before = graph.nodes().size();
    const ValueId y = record::cast(graph, x, type).value();
    CHECK(graph.value(y).dtype == type);
    std::string names;
    for (std::size_t n = before; n < graph.nodes().size(); ++n) names += std::string(" ") + graph.nodes()[n].op->name;
    return names;
  };
  CHECK(ops(f, DType::f16) == " f32_to_f16");
  CHECK(ops(h, DType::f32) == " f16_to_f32");
  CHECK(ops(h, DType::f16).empty());
  CHECK(ops(i, DType::f16) == " i32_to_f32 f32_to_f16");
  CHECK(ops(h, DType::i32) == " f32_to_i32");
  CHECK(ops(h, DType::mask) == " f32_to_mask");
}

TEST_CASE("what cannot read f16 gets casts to f32, which go where the op is refused", "[record][f16]") {
  static const record::Op plain{.name = "plain",
                                .infer = [](const Graph& g, Span<const ValueId> in, record::Attributes&,
                                            std::vector<record::ValueType>& results) -> Error {
                                  if (in.size() == 3) return Error(Errc::shape_mismatch, "plain: too many");
                                  results.push_back({g.value(in[0]).shape});
                                  return {};
                                },
                                .no_halves = true};
  Graph graph = empty_graph();
  const ValueId h = halves(graph, Shape(3));
  const ValueId f = floats(graph, Shape(3));
  const ValueId twice[] = {h, h};
  REQUIRE(graph.apply(plain, twice));
  CHECK("\n" + record::dump(graph) == R"(
recorded: 2 ops, 2 inputs
upload %0 f16 [3]
upload %1 [3]
f16_to_f32 %0 -> %2 [3]
plain %2, %2 -> %3 [3]
)");
  const std::string before = record::dump(graph);
  const ValueId refused[] = {h, f, h};
  CHECK(graph.apply(plain, refused).error().code == Errc::shape_mismatch);
  CHECK(record::dump(graph) == before);
  CHECK(graph.value(h).consumers == 1);
}
