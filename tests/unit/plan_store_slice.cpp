// Stores to slices of a buffer: what is recorded, how it is planned, and that the checkers would notice if it were not.
#include "ops/reduce.hpp"
#include "ops/store.hpp"
#include "plan/plan.hpp"
#include "record/dump.hpp"
#include "record/elementwise.hpp"
#include "record/view.hpp"
#include "support/hazard_checker.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

using namespace brontes;
using record::ElementwiseOp;
using record::Graph;
using record::ValueId;

namespace {

constexpr plan::PlanOptions plain{false, false, false, false, 0};  // neither fused nor reused

struct Recording {
  Graph graph{std::uint64_t{1} << 30};

  ValueId upload(const Shape& shape) {
    const std::vector<float> data(shape.count());
    return graph.upload(data, shape).value();
  }
  ValueId unary(ElementwiseOp op, ValueId x) { return record::elementwise(graph, op, {&x, 1}, 2.0f).value(); }
  ValueId sum(ValueId x) { return ops::reduce(graph, ops::ReduceOp::sum, {&x, 1}).value(); }
  void store(ValueId x, record::ResourceId into, const Shape& shape, std::initializer_list<Range> ranges) {
    CHECK_FALSE(ops::store_slice(graph, x, into, shape, {ranges.begin(), ranges.size()}));
  }

  plan::Plan make(const plan::PlanOptions& options = {}, const plan::Traits& traits = {}) const {
    plan::Plan plan = plan::make_plan(graph, traits, options).value();
    CHECK(test::describe(test::check_plan(plan, graph, options)).empty());
    return plan;
  }
  std::string plan(const plan::PlanOptions& options = {}, const plan::Traits& traits = {}) const {
    return "\n" + plan::dump(make(options, traits), graph);
  }
};

kernels::StoreSliceParams params_of(const plan::Dispatch& d) {
  kernels::StoreSliceParams params;
  std::memcpy(&params, d.push.data(), sizeof params);
  return params;
}

}  // namespace

TEST_CASE("store to a slice: a recorded dump shows where the elements go", "[record][dump][store]") {
  Recording r;
  const ValueId x = r.upload(Shape(8));
  r.store(x, 3, Shape(4, 8), {Range::at(2)});
  r.store(r.upload(Shape(2, 3)), 3, Shape(4, 8), {{0, 4, 2}, {7, 1, -2}});
  CHECK("\n" + record::dump(r.graph, DumpFormat::text) == R"(
recorded: 2 ops, 2 inputs
upload %0 [8]
view %1 of %0 [1, 8]
upload %2 [2, 3]
store offset 16 strides 0,1 %1 -> buffer 3
store offset 7 strides 16,-2 %2 -> buffer 3
)");
  CHECK(record::dump(r.graph, DumpFormat::json)
            .find(R"({"op": "store", "inputs": [2], "store": {"offset": 7, "strides": [16, -2]}, "buffer": 3)") !=
        std::string::npos);
}

TEST_CASE("store to a slice: what broadcasts is expanded, and all of a buffer is a plain store",
          "[record][dump][store]") {
  Recording r;
  const ValueId x = r.upload(Shape(8));
  r.store(x, 3, Shape(4, 8), {{0, 2}});
  r.store(r.upload(Shape(32)), 3, Shape(4, 8), {});
  r.store(r.upload(Shape(4, 8)), 3, Shape(4, 8), {Range::reversed()});
  CHECK("\n" + record::dump(r.graph, DumpFormat::text) == R"(
recorded: 4 ops, 3 inputs
upload %0 [8]
upload %2 [32]
view %3 of %2 [4, 8]
upload %4 [4, 8]
expand strides 0,1 %0 -> %1 [2, 8]
store strides 8,1 %1 -> buffer 3
store %3 -> buffer 3
store offset 24 strides -8,1 %4 -> buffer 3
)");
}

TEST_CASE("store to a slice: parts of a buffer that share no alignment are written side by side", "[plan][store]") {
  Recording r;
  const ValueId x = r.upload(Shape(2, 64));
  r.store(x, 5, Shape(16, 64), {{0, 2}});
  r.store(x, 5, Shape(16, 64), {{8, 10}});
  r.store(x, 5, Shape(16, 64), {{9, 11}});
  CHECK(r.plan() == R"(
plan: 3 ops, 3 dispatches, 1 barriers, arena 512 bytes
upload %0 [2, 64] at 0
#0 store_slice store strides 64,1 %0 -> buffer 5 groups 1x1x1
#1 store_slice store offset 512 strides 64,1 %0 -> buffer 5 groups 1x1x1
barrier WAW on buffer 5 #1 -> #2
#2 store_slice store offset 576 strides 64,1 %0 -> buffer 5 groups 1x1x1
)");
}

TEST_CASE("store to a slice: reads of the buffer keep their place before and after it", "[plan][store]") {
  Recording r;
  const ValueId window = r.graph.import(Shape(8), 5);
  r.unary(ElementwiseOp::relu, window);
  r.store(r.upload(Shape(2)), 5, Shape(8), {{3, 5}});
  r.unary(ElementwiseOp::neg, window);
  CHECK(r.plan() == R"(
plan: 3 ops, 3 dispatches, 2 barriers, arena 768 bytes
upload %2 [2] at 0
#0 elementwise relu %0 -> %1 groups 1x1x1
barrier WAR on buffer 5 #0 -> #1
#1 store_slice store offset 3 strides 1 %2 -> buffer 5 groups 1x1x1
barrier RAW on buffer 5 #1 -> #2
#2 elementwise neg %0 -> %3 groups 1x1x1
read %1 [8] at 256
read %3 [8] at 512
)");
}

TEST_CASE("store to a slice: a result is written to its part of the buffer and to nothing else", "[plan][store]") {
  Recording r;
  r.store(r.unary(ElementwiseOp::relu, r.upload(Shape(8))), 5, Shape(16), {{0, 8}});
  const plan::Plan plan = r.make();
  REQUIRE(plan.dispatches.size() == 1);
  CHECK(plan.dispatches[0].kernel == kernels::Id::elementwise);
  CHECK(plan.dispatches[0].bindings[4] == plan::Region{5, 0, 32});
  CHECK(plan.writes(5));
  CHECK_FALSE(plan.writes(4));
  CHECK(r.make(plain).dispatches.size() == 2);
}

TEST_CASE("store to a slice: elements that move within a buffer are copied out first", "[plan][store]") {
  Recording r;
  r.store(r.graph.import(Shape(8), 5), 5, Shape(8), {Range::reversed()});
  CHECK(r.plan() == R"(
plan: 1 ops, 2 dispatches, 1 barriers, arena 256 bytes
#0 elementwise store offset 7 strides -1 %0 -> buffer 5 groups 1x1x1
barrier RAW on partials #0 -> #1, WAR on buffer 5 #0 -> #1
#1 store_slice store offset 7 strides -1 %0 -> buffer 5 groups 1x1x1
)");
}

TEST_CASE("store to a slice: a slice of an import has what was there when it was recorded, even all of it",
          "[plan][store]") {
  Recording r;
  const ValueId window = r.graph.import(Shape(8), 5);
  const Range all[] = {Range{}};
  const ValueId then = record::slice(r.graph, window, all).value();
  r.store(r.upload(Shape(2)), 5, Shape(8), {{3, 5}});
  r.sum(then);
  r.sum(window);
  CHECK(r.plan().find("slice") != std::string::npos);  // the replay proves the rest
}

TEST_CASE("store to a slice: none of its elements takes no dispatch", "[plan][store]") {
  Recording r;
  r.store(r.upload(Shape(8)), 5, Shape(4, 8), {{3, 3}});
  const plan::Plan plan = r.make(plain);
  CHECK(plan.barriers.empty());
  CHECK_FALSE(plan.writes(5));
}

TEST_CASE("store to a slice: rows of whole vec4s are stored as such, dims that lie side by side are one",
          "[plan][store]") {
  auto dispatch = [](const Shape& shape, std::initializer_list<Range> ranges) {
    Recording r;
    const Shape slice = record::choose(shape, {ranges.begin(), ranges.size()}, "store")->shape;
    r.store(r.upload(slice), 5, shape, ranges);
    return r.make().dispatches.back();
  };
  namespace kernel = kernels::store_slice;
  const auto tile = dispatch(Shape(8, 16, 32), {Range{}, {4, 8}, {8, 24}});
  CHECK(tile.get(kernel::columns) == 4);
  CHECK(tile.get(kernel::rank) == 3);
  CHECK(params_of(tile).n == 8 * 4 * 4);
  // From the 256 bytes on in which it begins: row 4.
  CHECK(tile.bindings[1] == plan::Region{5, 512, (7 * 16 * 32 + 7 * 32 + 24) * 4 - 512});
  CHECK(params_of(tile).offset == 2);
  CHECK(params_of(tile).extents[0] == 4);
  CHECK(params_of(tile).strides[0] == 1);
  CHECK(params_of(tile).strides[1] == 8);

  const auto rows = dispatch(Shape(8, 4, 6), {{2, 4}});
  CHECK(rows.get(kernel::columns) == 4);
  CHECK(rows.get(kernel::rank) == 1);
  CHECK(dispatch(Shape(8, 32), {{0, 2}, {1, 5}}).get(kernel::columns) == 1);
  CHECK(dispatch(Shape(8, 31), {{0, 2}, {0, 4}}).get(kernel::columns) == 1);
  CHECK(dispatch(Shape(8, 32), {{0, 2}, {0, 8, 2}}).get(kernel::columns) == 1);
  CHECK(dispatch(Shape(8, 32), {{7, 0, -3}, {0, 8}}).get(kernel::columns) == 4);
  CHECK(dispatch(Shape(8, 32), {Range::at(3), Range::at(3)}).get(kernel::columns) == 1);
}

TEST_CASE("the checker objects to every wrong number of a store to a slice", "[plan][checker][store]") {
  Recording r;
  r.store(r.upload(Shape(3, 8)), 5, Shape(6, 4, 16), {{5, 2, -1}, Range::at(1), {4, 12}});
  r.unary(ElementwiseOp::neg, r.graph.import(Shape(6, 4, 16), 5));
  const plan::Plan right = r.make(plain);
  auto broken = [&](auto change) {
    plan::Plan plan = right;
    plan::Dispatch& d = plan.dispatches[0];
    kernels::StoreSliceParams params = params_of(d);
    change(d, params);
    d.params(params);
    return test::objects(test::check_plan(plan, r.graph, plain), test::Rule::wrong_version);
  };
  using plan::Dispatch;
  using Params = kernels::StoreSliceParams;
  CHECK_FALSE(broken([](Dispatch&, Params&) {}));
  CHECK(broken([](Dispatch&, Params& p) { ++p.offset; }));
  CHECK(broken([](Dispatch&, Params& p) { --p.n; }));
  CHECK(broken([](Dispatch&, Params& p) { p.groups = 0; }));
  CHECK(broken([](Dispatch&, Params& p) { ++p.strides[0]; }));
  CHECK(broken([](Dispatch&, Params& p) { p.strides[1] = 0u - p.strides[1]; }));
  CHECK(broken([](Dispatch&, Params& p) { ++p.extents[0]; }));
  CHECK(broken([](Dispatch&, Params& p) { p.extents[0] = 0; }));
  CHECK(broken([](Dispatch& d, Params&) { d.set(kernels::store_slice::columns, 1); }));
  CHECK(broken([](Dispatch& d, Params&) { d.set(kernels::store_slice::rank, 1); }));
  CHECK(broken([](Dispatch& d, Params&) { d.bindings[1].offset += 16; }));
  CHECK(broken([](Dispatch& d, Params&) { d.bindings[1].bytes -= 4; }));
  CHECK(broken([](Dispatch& d, Params&) { d.groups[0] = 0; }));
}

TEST_CASE("the checker objects to a store to a slice that is out of order", "[plan][checker][store]") {
  Recording r;
  const ValueId x = r.upload(Shape(4));
  r.store(x, 5, Shape(8), {{0, 4}});
  r.store(r.upload(Shape(4)), 5, Shape(8), {{2, 6}});
  plan::Plan plan = r.make(plain);
  REQUIRE(plan.dispatches.size() == 2);
  std::swap(plan.dispatches[0], plan.dispatches[1]);
  std::swap(plan.dispatches[0].level, plan.dispatches[1].level);
  CHECK(test::objects(test::check_plan(plan, r.graph, plain), test::Rule::wrong_version));
}
