// Values that live inside others: what concat() and store() move is written where it goes.
#include "ops/catalogue.hpp"
#include "ops/matmul.hpp"
#include "ops/reduce.hpp"
#include "ops/store.hpp"
#include "plan/plan.hpp"
#include "record/elementwise.hpp"
#include "record/view.hpp"
#include "support/dump_checker.hpp"
#include "support/hazard_checker.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

using namespace brontes;
using plan::Plan;
using record::ElementwiseOp;
using record::Graph;
using record::ValueId;

namespace {

constexpr plan::PlanOptions plain{false, false, false, false, 0};  // neither fused nor reused

const record::Op& concat_op() {
  for (const ops::NamedRoom& room : ops::catalogue()) {
    for (const record::Op& op : room.ops) {
      if (std::strcmp(op.name, "concat") == 0) return op;
    }
  }
  std::abort();
}

struct Recording {
  Graph graph{std::uint64_t{1} << 30};

  ValueId upload(const Shape& shape) {
    const std::vector<float> data(shape.count());
    return graph.upload(data, shape).value();
  }
  ValueId unary(ElementwiseOp op, ValueId x) { return record::elementwise(graph, op, {&x, 1}, 2.0f).value(); }
  ValueId relu(ValueId x) { return unary(ElementwiseOp::relu, x); }
  ValueId relu(const Shape& shape) { return relu(upload(shape)); }
  ValueId sum(ValueId x) { return ops::reduce(graph, ops::ReduceOp::sum, {&x, 1}).value(); }
  ValueId product(std::uint64_t m, std::uint64_t k, std::uint64_t n) {
    const ValueId a = upload(Shape(m, k));
    return plan::matmul(graph, a, upload(Shape(k, n)), {}).value();
  }
  ValueId concat(const std::vector<ValueId>& parts, std::int64_t axis = 0) {
    return graph.apply(concat_op(), parts, axis).value();
  }
  void store(ValueId x, record::ResourceId into) { CHECK_FALSE(ops::store(graph, x, into, graph.value(x).shape)); }
  void store(ValueId x, record::ResourceId into, const Shape& shape, const std::vector<Range>& ranges) {
    CHECK_FALSE(ops::store_slice(graph, x, into, shape, ranges));
  }

  // Proved, with memory reused and not.
  Plan make(plan::PlanOptions options = {}, const plan::Traits& traits = {}) const {
    options.reuse_memory = false;
    const Plan apart = plan::make_plan(graph, traits, options).value();
    CHECK(test::describe(test::check_plan(apart, graph, options)) == "");
    options.reuse_memory = true;
    Plan plan = plan::make_plan(graph, traits, options).value();
    CHECK(test::describe(test::check_plan(plan, graph, options)) == "");
    CHECK(test::is_json(plan::dump(plan, graph, DumpFormat::json)));
    CHECK(test::dangling_edge(plan::dump(plan, graph, DumpFormat::dot)).empty());
    return plan;
  }
  std::string dump(const plan::PlanOptions& options = {}, const plan::Traits& traits = {}) const {
    return "\n" + plan::dump(make(options, traits), graph);
  }
};

plan::Traits aligned(std::uint32_t bytes) {
  plan::Traits traits;
  traits.storage_alignment = bytes;
  return traits;
}

}  // namespace

TEST_CASE("concat of two products along axis 0 is two dispatches, which write it in place", "[plan][homes][dump]") {
  Recording r;
  const ValueId above = r.product(4, 8, 64);
  r.concat({above, r.product(2, 8, 64)});
  CHECK(r.dump() == R"(
plan: 3 ops, 2 dispatches, 0 barriers, arena 6144 bytes
upload %0 [4, 8] at 0
upload %1 [8, 64] at 256
upload %3 [2, 8] at 2304
upload %4 [8, 64] at 2560
#0 matmul_naive matmul 4x8x64 kn %0, %1 -> %2 in %6 at 0 groups 4x1x1
#1 matmul_naive matmul 2x8x64 kn %3, %4 -> %5 in %6 at 1024 groups 4x1x1
read %6 [6, 64] at 4608
)");
  CHECK(r.make(plain).dispatches.size() == 3);
  CHECK(
      plan::dump(r.make(), r.graph, DumpFormat::json).find(R"({"value": 5, "in": 6, "offset": 5632, "bytes": 512})") !=
      std::string::npos);
}

TEST_CASE("concat: epilogues, reductions and several results of one dispatch go to their places", "[plan][homes]") {
  Recording r;
  const ValueId x = r.upload(Shape(1, 64));
  const ValueId bias = r.upload(Shape(64));
  const ValueId product = r.product(1, 8, 64);
  const ValueId pair[] = {product, bias};
  const ValueId layer = r.relu(record::elementwise(r.graph, ElementwiseOp::add, pair).value());
  r.sum(r.concat({layer, r.relu(x), r.unary(ElementwiseOp::neg, x)}));
  const Plan plan = r.make();
  CHECK(plan.dispatches.size() == 3);
  CHECK(plan.homes.size() == 3);
  CHECK(plan.barriers.size() == 1);
}

TEST_CASE("concat: what is given, or lies between such, is copied by the one dispatch that is left", "[plan][homes]") {
  Recording r;
  const Shape row(1, 64);
  const ValueId first = r.relu(row);
  const ValueId given = r.upload(row);
  const ValueId between = r.relu(row);
  const ValueId import = r.graph.import(row, 3);
  const ValueId last = r.relu(row);
  r.concat({first, given, between, import, last});
  const Plan plan = r.make();
  CHECK(plan.homes.size() == 2);
  REQUIRE(plan.dispatches.size() == 4);
  const plan::Dispatch& copy = plan.dispatches.back();
  CHECK(copy.kernel == kernels::Id::concat);
  CHECK(copy.bindings[7].bytes == 3 * 256);
  CHECK(copy.bindings[7].offset == plan.readable[0].offset + 256);
}

TEST_CASE("concat: a copy does not wait for what is written in place", "[plan][homes]") {
  Recording r;
  const ValueId sum = r.sum(r.relu(r.relu(Shape(70))));
  const ValueId spread = record::expand(r.graph, sum, Shape(64)).value();
  r.concat({r.upload(Shape(64)), r.relu(spread)});
  const Plan plan = r.make();
  for (const plan::Dispatch& d : plan.dispatches) {
    if (d.kernel == kernels::Id::concat) CHECK(d.level == 0);
  }
}

TEST_CASE("concat: parts lie in place from aligned offsets to aligned offsets, the last one to any", "[plan][homes]") {
  auto homes = [](const std::vector<std::uint64_t>& sizes, std::uint32_t alignment) {
    Recording r;
    std::vector<ValueId> parts;
    for (std::uint64_t n : sizes) parts.push_back(r.relu(Shape(n)));
    r.concat(parts);
    return r.make({}, aligned(alignment)).homes.size();
  };
  CHECK(homes({64, 64}, 256) == 2);
  CHECK(homes({64, 5}, 256) == 2);
  CHECK(homes({32, 32}, 256) == 0);  // the first ends, and the second begins, where nothing can be bound
  CHECK(homes({32, 32}, 64) == 2);
  CHECK(homes({4, 4, 4}, 16) == 3);
  CHECK(homes({4, 4, 4}, 64) == 0);
  CHECK(homes({5, 3, 8}, 16) == 1);  // the first would write whole vec4s, over the second
  CHECK(homes({8, 5, 3, 8, 2}, 16) == 3);
  CHECK(homes({0, 64, 0, 64, 0}, 256) == 2);
  CHECK(homes({0, 0}, 256) == 0);
  CHECK(homes({7}, 256) == 1);
  CHECK(homes({64, 64, 64, 64, 64, 64, 64, 64, 64}, 256) == 9);
}

TEST_CASE("concat along an inner axis scatters its parts, and copies them", "[plan][homes]") {
  Recording r;
  r.concat({r.relu(Shape(2, 64)), r.relu(Shape(2, 64))}, 1);
  CHECK(r.make().homes.empty());
  Recording one_row;
  one_row.concat({one_row.relu(Shape(1, 64)), one_row.relu(Shape(1, 64))}, 1);
  CHECK(one_row.make().homes.size() == 2);
}

TEST_CASE("concat: what is joined twice is copied to its second place from the first", "[plan][homes]") {
  Recording r;
  const ValueId x = r.relu(Shape(64));
  r.concat({x, r.upload(Shape(64)), x});
  const Plan plan = r.make();
  CHECK(plan.homes.size() == 1);
  CHECK(plan.dispatches.size() == 2);

  Recording twice;
  const ValueId y = twice.relu(Shape(64));
  twice.sum(twice.concat({y, twice.relu(Shape(64))}));
  twice.sum(twice.concat({twice.relu(Shape(64)), y}));
  CHECK(twice.make().homes.size() == 3);
}

TEST_CASE("concat: others read a part in place, and nobody writes over it as long as the whole lives",
          "[plan][homes][memory]") {
  Recording r;
  const ValueId x = r.relu(Shape(64));
  const ValueId joined = r.concat({x, r.relu(Shape(64))});
  const ValueId product = plan::matmul(r.graph, x, r.upload(Shape(64)), 8, 8, 8, {}).value();  // reads x alone
  const ValueId other = r.unary(ElementwiseOp::exp, x);
  r.sum(product);
  r.sum(other);
  r.sum(joined);
  CHECK(r.make().homes.size() == 2);
}

TEST_CASE("concat of concats: everything is written where it ends up", "[plan][homes][dump]") {
  Recording r;
  const ValueId inner = r.concat({r.relu(Shape(64)), r.relu(Shape(64))});
  r.concat({r.relu(Shape(64)), inner});
  CHECK(r.dump() == R"(
plan: 5 ops, 3 dispatches, 0 barriers, arena 1536 bytes
upload %0 [64] at 0
upload %2 [64] at 256
upload %5 [64] at 512
#0 elementwise relu %0 -> %1 in %4 at 0 in %7 at 256 groups 1x1x1
#1 elementwise relu %2 -> %3 in %4 at 256 in %7 at 256 groups 1x1x1
#2 elementwise relu %5 -> %6 in %7 at 0 groups 1x1x1
read %7 [192] at 768
)");
}

TEST_CASE("concat: a part that is read comes down with the whole, if that does", "[plan][homes]") {
  Recording r;
  const ValueId x = r.relu(Shape(64));
  r.graph.keep(x);
  const ValueId joined = r.concat({x, r.relu(Shape(64))});
  const Plan plan = r.make();
  CHECK(plan.homes.size() == 2);
  REQUIRE(plan.readable.size() == 2);
  CHECK(plan.readable[0].value == joined);
  CHECK(plan.readable[1].value == x);
  CHECK(plan.readable[1].offset == plan.readable[0].offset);
  CHECK(plan.element_bytes_down == 512);

  r.sum(joined);  // now the whole is not read, and the part alone has to be where results are
  const Plan apart = r.make();
  REQUIRE(apart.homes.size() == 1);
  CHECK(apart.homes[0].of != x);
  CHECK(apart.element_bytes_down == 256 + 4);
}

TEST_CASE("concat: views of results, and slices, are parts like any other", "[plan][homes]") {
  Recording r;
  const ValueId seen = r.graph.reshape("reshape", r.relu(Shape(8, 8)), Shape(64)).value();
  const Range range[] = {{64, 128}};
  const ValueId slice = record::slice(r.graph, r.relu(Shape(192)), range).value();
  r.concat({seen, slice});
  CHECK(r.make().homes.size() == 2);
}

TEST_CASE("store of joined results: their dispatches write the buffer", "[plan][homes][dump]") {
  Recording r;
  r.store(r.concat({r.relu(Shape(64)), r.relu(Shape(6))}), 5);
  CHECK(r.dump() == R"(
plan: 4 ops, 2 dispatches, 0 barriers, arena 512 bytes
upload %0 [64] at 0
upload %2 [6] at 256
#0 elementwise relu %0 -> %1 in %4 at 0 in buffer 5 groups 1x1x1
#1 elementwise relu %2 -> %3 in %4 at 256 in buffer 5 groups 1x1x1
)");
}

TEST_CASE("store to a slice: whole vec4s from an aligned offset on are written straight to it", "[plan][homes][dump]") {
  Recording r;
  r.store(r.relu(Shape(2, 64)), 5, Shape(16, 64), {{4, 6}});
  CHECK(r.dump() == R"(
plan: 2 ops, 1 dispatches, 0 barriers, arena 512 bytes
upload %0 [2, 64] at 0
#0 elementwise relu %0 -> %1 in buffer 5 at 1024 groups 1x1x1
)");
  auto dispatches = [](const Shape& shape, const std::vector<Range>& ranges, std::uint32_t alignment) {
    Recording some;
    some.store(some.relu(record::choose(shape, ranges, "store")->shape), 5, shape, ranges);
    return some.make({}, aligned(alignment)).dispatches.size();
  };
  CHECK(dispatches(Shape(64), {{4, 12}}, 16) == 1);
  CHECK(dispatches(Shape(64), {{4, 12}}, 64) == 2);  // nothing can be bound from there on
  CHECK(dispatches(Shape(64), {{4, 11}}, 16) == 2);  // the last vec4 is not all its own
  CHECK(dispatches(Shape(6), {{4, 6}}, 16) == 2);
  CHECK(dispatches(Shape(6), {{0, 6}}, 16) == 1);  // all there is
  CHECK(dispatches(Shape(64), {{5, 13}}, 16) == 2);
  CHECK(dispatches(Shape(64), {{0, 16, 2}}, 16) == 2);
  CHECK(dispatches(Shape(64), {{15, 7, -1}}, 16) == 2);
  CHECK(dispatches(Shape(8, 8), {{0, 4}, {0, 4}}, 16) == 2);
  CHECK(dispatches(Shape(8, 8), {{3, 4}, {4, 8}}, 16) == 1);
}

TEST_CASE("store to slices: a cache is appended to, read, and appended to again", "[plan][homes]") {
  Recording r;
  const ValueId cache = r.graph.import(Shape(4, 64), 5);
  r.store(r.relu(Shape(1, 64)), 5, Shape(4, 64), {Range::at(0)});
  r.sum(cache);
  r.store(r.relu(Shape(1, 64)), 5, Shape(4, 64), {Range::at(1)});
  r.sum(cache);
  // The first row is written at once. The second has to wait until the cache has been read, so it is copied.
  const Plan plan = r.make();
  CHECK(plan.homes.size() == 1);
  CHECK(plan.dispatches.size() <= r.make(plain).dispatches.size() - 1);
}

TEST_CASE("store to a slice: nothing is written before old contents have been read", "[plan][homes]") {
  auto homes = [](bool overlapping) {
    Recording r;
    const ValueId window = r.graph.import(Shape(64), 5);
    const Range range[] = {{0, 1}};
    const ValueId later = r.relu(r.sum(r.relu(r.sum(record::slice(r.graph, window, range).value()))));
    const ValueId pair[] = {later, window};
    record::elementwise(r.graph, ElementwiseOp::add, pair).value();  // reads the buffer late
    r.store(r.relu(Shape(64)), overlapping ? 5 : 6, Shape(128), {{0, 64}});
    return r.make().homes.size();
  };
  CHECK(homes(true) == 0);
  CHECK(homes(false) == 1);
}

TEST_CASE("store: what is also read, used, or stored twice is copied", "[plan][homes]") {
  Recording kept;
  const ValueId x = kept.relu(Shape(64));
  kept.graph.keep(x);
  kept.store(x, 5, Shape(128), {{64, 128}});
  CHECK(kept.make().homes.empty());

  Recording used;
  const ValueId y = used.relu(Shape(64));
  used.store(y, 5, Shape(128), {{64, 128}});
  used.sum(y);
  CHECK(used.make().homes.empty());

  Recording twice;
  const ValueId z = twice.relu(Shape(64));
  twice.store(z, 5, Shape(128), {{64, 128}});
  twice.store(z, 5, Shape(128), {{0, 64}});
  CHECK(twice.make().homes.empty());
}

TEST_CASE("store: a buffer is updated in place as a whole, not shifted", "[plan][homes]") {
  Recording r;
  r.store(r.relu(r.graph.import(Shape(64), 5)), 5);
  CHECK(r.make().dispatches.size() == 1);
  Recording shifted;
  shifted.store(shifted.relu(shifted.graph.import(Shape(64), 5)), 5, Shape(128), {{64, 128}});
  CHECK(shifted.make().dispatches.size() == 1);  // other bytes than it reads
  Recording joined;
  const ValueId window = joined.graph.import(Shape(128), 5);
  const Range halves[] = {{64, 128}, {0, 64}};
  const ValueId upper = joined.relu(record::slice(joined.graph, window, {halves, 1}).value());
  const ValueId lower = joined.relu(record::slice(joined.graph, window, {halves + 1, 1}).value());
  joined.store(joined.concat({upper, lower}), 5);
  // Each half is read from where the other goes: they are joined apart from the buffer, then moved into it at once.
  const Plan plan = joined.make();
  REQUIRE(plan.homes.size() == 1);
  CHECK(plan.homes[0].resource == 5);
}

TEST_CASE("homes are part of fusion: without it everything is moved", "[plan][homes]") {
  Recording r;
  r.store(r.concat({r.relu(Shape(64)), r.relu(Shape(64))}), 5);
  CHECK(r.make(plain).homes.empty());
  CHECK(r.make(plain).dispatches.size() == 4);
}

TEST_CASE("the checker objects to parts that are written to the wrong place, or over each other",
          "[plan][checker][homes]") {
  Recording r;
  r.concat({r.relu(Shape(64)), r.upload(Shape(64)), r.relu(Shape(6))});
  const plan::PlanOptions options;
  const Plan right = r.make();
  REQUIRE(right.dispatches.size() == 3);
  auto objects = [&](auto change) {
    Plan plan = right;
    change(plan);
    return !test::check_plan(plan, r.graph, options).empty();
  };
  CHECK_FALSE(objects([](Plan&) {}));
  for (std::size_t i = 0; i < right.dispatches.size(); ++i) {
    const std::size_t out = right.dispatches[i].kernel == kernels::Id::concat ? 7 : 4;
    CHECK(objects([&](Plan& p) { p.dispatches[i].bindings[out].offset += 16; }));
    CHECK(objects([&](Plan& p) { p.dispatches[i].bindings[out].offset -= 256; }));
    CHECK(objects([&](Plan& p) { p.dispatches.erase(p.dispatches.begin() + static_cast<std::ptrdiff_t>(i)); }));
  }
  // Results end in whole vec4s: what follows the six elements here is no longer nobody's.
  CHECK(objects([&](Plan& p) {
    for (plan::Dispatch& d : p.dispatches) {
      if (d.kernel == kernels::Id::concat) d.bindings[7].offset = p.readable[0].offset + 256 + 24 - 256;
    }
  }));
}

TEST_CASE("the checker objects to every wrong number of a concat", "[plan][checker][homes]") {
  Recording r;
  r.sum(r.concat({r.upload(Shape(2, 8)), r.upload(Shape(2, 4)), r.upload(Shape(2, 12))}, 1));
  const Plan right = r.make(plain);
  auto broken = [&](auto change) {
    Plan plan = right;
    plan::Dispatch& d = plan.dispatches[0];
    kernels::ConcatParams params;
    std::memcpy(&params, d.push.data(), sizeof params);
    change(d, params);
    d.params(params);
    return test::objects(test::check_plan(plan, r.graph, plain), test::Rule::wrong_version);
  };
  using plan::Dispatch;
  using Params = kernels::ConcatParams;
  CHECK_FALSE(broken([](Dispatch&, Params&) {}));
  CHECK(broken([](Dispatch&, Params& p) { --p.n; }));
  CHECK(broken([](Dispatch&, Params& p) { p.groups = 0; }));
  CHECK(broken([](Dispatch&, Params& p) { ++p.row; }));
  CHECK(broken([](Dispatch&, Params& p) { ++p.column; }));
  CHECK(broken([](Dispatch&, Params& p) { ++p.begin[1]; }));
  CHECK(broken([](Dispatch&, Params& p) { --p.begin[3]; }));
  CHECK(broken([](Dispatch& d, Params&) { d.set(kernels::concat::vectorized, 0); }));
  CHECK(broken([](Dispatch& d, Params&) { d.set(kernels::concat::count, 2); }));
  CHECK(broken([](Dispatch& d, Params&) { std::swap(d.bindings[0], d.bindings[1]); }));
  CHECK(broken([](Dispatch& d, Params&) { d.groups[0] = 0; }));
}
