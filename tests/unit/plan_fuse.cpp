// Which ops share a dispatch.
#include "ops/matmul.hpp"
#include "ops/reduce.hpp"
#include "ops/store.hpp"
#include "plan/plan.hpp"
#include "record/elementwise.hpp"
#include "support/hazard_checker.hpp"
#include "support/random_graph.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <string>
#include <vector>

using namespace brontes;
using ops::ReduceOp;
using plan::Group;
using plan::Plan;
using record::ElementwiseOp;
using record::Graph;
using record::ValueId;

namespace {

struct Recording {
  Graph graph{std::uint64_t{1} << 30};

  ValueId upload(const Shape& shape) {
    const std::vector<float> data(shape.count());
    return graph.upload(data, shape).value();
  }
  ValueId unary(ElementwiseOp op, ValueId x) { return record::elementwise(graph, op, {&x, 1}, 2.0f).value(); }
  ValueId relu(ValueId x) { return unary(ElementwiseOp::relu, x); }
  ValueId binary(ElementwiseOp op, ValueId x, ValueId y) {
    const ValueId inputs[] = {x, y};
    return record::elementwise(graph, op, inputs).value();
  }
  ValueId add(ValueId x, ValueId y) { return binary(ElementwiseOp::add, x, y); }
  ValueId sum(ValueId x) { return ops::reduce(graph, ReduceOp::sum, {&x, 1}).value(); }
  ValueId matmul(ValueId a, ValueId b) { return plan::matmul(graph, a, b, {}).value(); }
  void store(ValueId x, record::ResourceId into) { REQUIRE_FALSE(ops::store(graph, x, into, graph.values()[x].shape)); }

  // Proved, in every way to plan it.
  Plan plan(plan::PlanOptions options = {}) const {
    const bool fuse = options.fuse;
    const bool reuse = options.reuse_memory;
    for (const bool fused : {!fuse, fuse}) {
      for (const bool reused : {!reuse, reuse}) {
        options.fuse = fused;
        options.reuse_memory = reused;
        const Plan plan = plan::make_plan(graph, {}, options).value();
        CHECK(test::describe(test::check_plan(plan, graph, options)).empty());
        if (fused == fuse && reused == reuse) return plan;
      }
    }
    return {};
  }

  // The groups as text: "relu+add | matmul+relu", with a bar in front of a root that has a prologue: "square|sum".
  std::string groups(const plan::PlanOptions& options = {}) const {
    std::string all;
    const Plan made = plan(options);
    for (const Group& g : made.groups) {
      std::string ops;
      auto op = [&](std::uint32_t node) {
        ops += (ops.empty() ? "" : "+") + std::string(record::name(graph.nodes()[node]));
      };
      if (g.prologue != plan::no_prologue) {
        const plan::ElementwiseProgram& prologue = made.prologues[g.prologue];
        for (std::size_t s = 0; s < prologue.step_count; ++s) op(prologue.steps[s].node);
        ops += "|" + std::string(record::name(graph.nodes()[g.root]));
      } else if (g.root != plan::no_node) {
        op(g.root);
      }
      for (std::size_t s = 0; s < g.program.step_count; ++s) op(g.program.steps[s].node);
      all += (all.empty() ? "" : " | ") + ops;
    }
    return all;
  }
};

}  // namespace

TEST_CASE("fuse: a chain is one group of one input and one result", "[plan][fuse]") {
  Recording r;
  r.relu(r.unary(ElementwiseOp::scale, r.unary(ElementwiseOp::neg, r.upload(Shape(4)))));
  const Plan plan = r.plan();
  REQUIRE(plan.groups.size() == 1);
  CHECK(plan.groups[0].program.step_count == 3);
  CHECK(plan.groups[0].program.input_count == 1);
  CHECK(plan.groups[0].written == 0b100);
  CHECK(plan.fused_operations == 2);
}

TEST_CASE("fuse: an operand used twice is loaded once", "[plan][fuse]") {
  Recording r;
  const ValueId x = r.upload(Shape(4));
  const ValueId y = r.relu(x);
  r.add(r.binary(ElementwiseOp::mul, y, y), x);
  const Plan plan = r.plan();
  REQUIRE(plan.groups.size() == 1);
  CHECK(plan.groups[0].program.input_count == 1);
}

TEST_CASE("fuse: two chains meet in one group", "[plan][fuse]") {
  Recording r;
  const ValueId left = r.relu(r.unary(ElementwiseOp::neg, r.upload(Shape(4))));
  const ValueId right = r.unary(ElementwiseOp::exp, r.upload(Shape(4)));
  r.binary(ElementwiseOp::sub, left, right);
  CHECK(r.groups() == "neg+relu+exp+sub");
}

TEST_CASE("fuse: a diamond is one group", "[plan][fuse]") {
  Recording r;
  const ValueId top = r.relu(r.upload(Shape(4)));
  const ValueId left = r.unary(ElementwiseOp::neg, top);
  const ValueId right = r.unary(ElementwiseOp::exp, top);
  r.add(left, right);
  CHECK(r.groups() == "relu+neg+exp+add");
}

TEST_CASE("fuse: ops that read the same tensor share a dispatch, and read it once", "[plan][fuse]") {
  Recording r;
  const ValueId x = r.upload(Shape(4));
  r.relu(x);
  r.unary(ElementwiseOp::neg, x);
  const Plan plan = r.plan();
  REQUIRE(plan.groups.size() == 1);
  CHECK(plan.groups[0].program.input_count == 1);
  CHECK(plan.groups[0].written == 0b11);
}

TEST_CASE("fuse: an op does not wait for a sibling that comes later", "[plan][fuse]") {
  Recording r;
  const ValueId x = r.upload(Shape(4, 4));
  ValueId deep = r.upload(Shape(4, 4));
  for (int i = 0; i < 5; ++i) deep = r.matmul(deep, deep);
  r.sum(deep);
  r.add(x, r.relu(deep));
  ValueId other = r.relu(x);
  for (int i = 0; i < 5; ++i) other = r.matmul(other, other);
  CHECK(r.plan().barriers.size() == 5);
}

TEST_CASE("fuse: what others consume leaves the group", "[plan][fuse]") {
  Recording r;
  const ValueId y = r.relu(r.upload(Shape(4)));
  r.unary(ElementwiseOp::neg, y);
  r.sum(y);
  const Plan plan = r.plan();
  REQUIRE(plan.groups.size() == 2);
  CHECK(plan.groups[0].written == 0b11);
}

TEST_CASE("fuse: no group has more results than the kernel has outputs", "[plan][fuse]") {
  Recording r;
  ValueId y = r.upload(Shape(4));
  for (int i = 0; i < 6; ++i) {
    y = r.relu(y);
    r.graph.keep(y);
  }
  CHECK(r.groups() == "relu+relu+relu | relu+relu+relu");
}

TEST_CASE("fuse: no group has more inputs than the kernel", "[plan][fuse]") {
  Recording r;
  ValueId y = r.upload(Shape(4));
  for (int i = 0; i < 5; ++i) y = r.add(y, r.upload(Shape(4)));
  CHECK(r.groups() == "add+add+add | add+add");
}

TEST_CASE("fuse: no group has more steps than the kernel", "[plan][fuse]") {
  for (std::uint32_t length = 1; length <= 40; ++length) {
    Recording r;
    ValueId y = r.upload(Shape(4));
    for (std::uint32_t i = 0; i < length; ++i) y = r.relu(y);
    const Plan plan = r.plan();
    CHECK(plan.groups.size() == (length + plan::elementwise_max_steps - 1) / plan::elementwise_max_steps);
    CHECK(plan.fused_operations == length - plan.groups.size());
  }
}

TEST_CASE("fuse: rows, columns and scalars are inputs of a group", "[plan][fuse]") {
  Recording r;
  const ValueId x = r.upload(Shape(6, 8));
  const ValueId row = r.upload(Shape(8));
  const ValueId column = r.upload(Shape(6, 1));
  const ValueId scalar = r.upload(Shape(1));
  r.add(r.add(r.add(x, row), column), scalar);
  CHECK(r.groups() == "add+add+add");
}

TEST_CASE("fuse: a result is not broadcast within its group", "[plan][fuse]") {
  Recording r;
  const ValueId row = r.relu(r.upload(Shape(8)));
  r.add(r.upload(Shape(6, 8)), row);
  CHECK(r.groups() == "relu | add");
}

TEST_CASE("fuse: an operation is not its group's operand by a detour", "[plan][fuse]") {
  Recording r;
  const ValueId x = r.relu(r.upload(Shape(4, 4)));
  const ValueId detour = r.matmul(x, x);
  r.binary(ElementwiseOp::sub, x, detour);
  CHECK(r.groups() == "relu | matmul+sub");
}

TEST_CASE("fuse: a matmul runs bias, activation and residual", "[plan][fuse]") {
  Recording r;
  const ValueId x = r.upload(Shape(4, 4));
  const ValueId y = r.add(r.matmul(x, x), r.upload(Shape(4)));
  r.add(r.unary(ElementwiseOp::gelu, y), x);
  CHECK(r.groups() == "matmul+add+gelu+add");
}

TEST_CASE("fuse: a reduction runs what follows on its one result", "[plan][fuse]") {
  Recording r;
  const ValueId x = r.upload(Shape(100));
  r.add(r.unary(ElementwiseOp::sqrt, r.unary(ElementwiseOp::scale, r.sum(x))), r.upload(Shape(1)));
  CHECK(r.groups() == "sum+scale+sqrt+add");
}

TEST_CASE("fuse: an epilogue has as many steps and inputs as the kernels", "[plan][fuse]") {
  Recording steps;
  ValueId y = steps.sum(steps.upload(Shape(100)));
  for (int i = 0; i < 5; ++i) y = steps.relu(y);
  CHECK(steps.groups() == "sum+relu+relu+relu+relu | relu");
  Recording inputs;
  y = inputs.sum(inputs.upload(Shape(100)));
  for (int i = 0; i < 3; ++i) y = inputs.add(y, inputs.upload(Shape(1)));
  CHECK(inputs.groups() == "sum+add+add | add");
}

TEST_CASE("fuse: an epilogue takes a result only if nobody else needs it", "[plan][fuse]") {
  auto product = [](Recording& r) {
    const ValueId x = r.upload(Shape(4, 4));
    return r.matmul(x, x);
  };
  Recording consumed;
  const ValueId a = product(consumed);
  consumed.relu(a);
  consumed.sum(a);
  CHECK(consumed.groups() == "matmul | relu | sum");
  Recording kept;
  const ValueId b = product(kept);
  kept.graph.keep(b);
  kept.relu(b);
  CHECK(kept.groups() == "matmul | relu");
  Recording twice;
  const ValueId c = product(twice);
  twice.binary(ElementwiseOp::mul, c, c);
  CHECK(twice.groups() == "matmul+mul");
  Recording stored;
  const ValueId d = product(stored);
  stored.store(d, 0);
  stored.relu(d);
  CHECK(stored.groups() == "matmul | store | relu");
}

TEST_CASE("fuse: a product of nothing is a fill and has no epilogue", "[plan][fuse]") {
  Recording r;
  r.relu(r.matmul(r.upload(Shape(4, 0)), r.upload(Shape(0, 4))));
  CHECK(r.groups() == "matmul | relu");
}

TEST_CASE("fuse: values without elements are left alone", "[plan][fuse]") {
  Recording r;
  r.relu(r.relu(r.upload(Shape(0))));
  const Plan plan = r.plan();
  CHECK(plan.dispatches.empty());
  CHECK(plan.fused_operations == 0);
}

TEST_CASE("fuse: ops around stores and reads of the same buffer keep their order", "[plan][fuse]") {
  Recording r;
  const ValueId window = r.graph.import(Shape(4), 0);
  const ValueId before = r.relu(window);
  r.store(r.upload(Shape(4)), 0);
  const ValueId after = r.relu(window);
  r.binary(ElementwiseOp::sub, before, after);
  const Plan plan = r.plan();
  CHECK(plan.groups.size() >= 3);
}

TEST_CASE("fuse: a store needs no copy if nobody reads the old contents later", "[plan][fuse]") {
  Recording r;
  r.store(r.relu(r.graph.import(Shape(4), 0)), 1);
  CHECK(r.groups() == "relu");
  Recording in_place;
  in_place.store(in_place.relu(in_place.graph.import(Shape(4), 0)), 0);
  CHECK(in_place.groups() == "relu");
}

TEST_CASE("fuse: a store that would overwrite what is still read is a copy", "[plan][fuse]") {
  Recording product;
  const ValueId x = product.graph.import(Shape(4, 4), 0);
  product.store(product.matmul(x, x), 0);
  CHECK(product.groups() == "matmul | store");

  Recording other_reader;
  const ValueId y = other_reader.graph.import(Shape(4, 4), 0);
  const ValueId result = other_reader.relu(other_reader.upload(Shape(4, 4)));
  other_reader.sum(y);
  other_reader.store(result, 0);
  CHECK(other_reader.groups() == "relu | sum | store");

  Recording row;  // broadcast from where it is written
  const ValueId w = row.graph.import(Shape(1), 0);
  row.store(row.add(w, row.upload(Shape(8))), 0);
  CHECK(row.groups() == "add | store");

  Recording several;
  const ValueId z = several.relu(several.graph.import(Shape(4), 0));
  several.graph.keep(z);
  several.store(several.unary(ElementwiseOp::neg, z), 0);
  CHECK(several.groups() == "relu+neg | store");
}

TEST_CASE("fuse: a store to another buffer reads the old contents before they are overwritten", "[plan][fuse]") {
  Recording r;
  const ValueId window = r.graph.import(Shape(4), 0);
  const ValueId fresh = r.relu(r.upload(Shape(4)));
  r.store(window, 1);
  r.store(fresh, 0);
  CHECK(r.groups() == "relu | store | store");
}

TEST_CASE("fuse: nobody waits longer because of a group", "[plan][fuse]") {
  Recording r;
  const ValueId x = r.relu(r.upload(Shape(4, 4)));
  ValueId deep = r.upload(Shape(4, 4));
  for (int i = 0; i < 5; ++i) deep = r.matmul(deep, deep);
  r.add(x, deep);
  ValueId other = x;
  for (int i = 0; i < 5; ++i) other = r.matmul(other, other);
  plan::PlanOptions unfused;
  unfused.fuse = false;
  CHECK(r.plan().barriers.size() <= r.plan(unfused).barriers.size());
}

TEST_CASE("fuse: a reduction takes the ops that make its operand as its prologue", "[plan][fuse]") {
  Recording r;
  const ValueId x = r.upload(Shape(3, 8));
  const ValueId y = r.upload(Shape(3, 8));
  r.sum(r.unary(ElementwiseOp::abs, r.binary(ElementwiseOp::sub, x, y)));
  CHECK(r.groups() == "sub+abs|sum");
  CHECK(r.plan().fused_operations == 2);
  CHECK(r.plan().dispatches.size() == 1);
}

TEST_CASE("fuse: a prologue and an epilogue go together", "[plan][fuse]") {
  Recording r;
  r.unary(ElementwiseOp::sqrt, r.sum(r.unary(ElementwiseOp::square, r.upload(Shape(8)))));
  CHECK(r.groups() == "square|sum+sqrt");
}

TEST_CASE("fuse: a prologue may broadcast either operand", "[plan][fuse]") {
  for (const bool first : {false, true}) {
    Recording r;
    const ValueId x = r.upload(Shape(3, 8));
    const ValueId row = r.upload(Shape(8));
    const ValueId y = r.binary(ElementwiseOp::sub, first ? row : x, first ? x : row);
    r.sum(r.binary(ElementwiseOp::mul, y, row));
    CHECK(r.groups() == "sub+mul|sum");
  }
}

TEST_CASE("fuse: what others need, or can read, is no prologue", "[plan][fuse]") {
  Recording r;
  const ValueId x = r.upload(Shape(8));
  const ValueId shared = r.relu(x);
  r.sum(shared);
  r.matmul(shared, r.upload(Shape(8, 2)));
  CHECK(r.groups() == "relu | sum | matmul");

  Recording kept;
  const ValueId y = kept.relu(kept.upload(Shape(8)));
  kept.graph.keep(y);
  kept.sum(y);
  CHECK(kept.groups() == "relu | sum");

  Recording inside;
  const ValueId a = inside.relu(inside.upload(Shape(8)));
  inside.graph.keep(a);
  inside.sum(inside.unary(ElementwiseOp::neg, a));
  CHECK(inside.groups() == "relu+neg | sum");
}

TEST_CASE("fuse: a prologue has as many steps and inputs as the kernels", "[plan][fuse]") {
  Recording steps;
  ValueId x = steps.upload(Shape(8));
  for (std::uint32_t i = 0; i < plan::prologue_max_steps; ++i) x = steps.relu(x);
  steps.sum(x);
  CHECK(steps.groups() == "relu+relu+relu+relu|sum");

  Recording more;
  x = more.upload(Shape(8));
  for (std::uint32_t i = 0; i <= plan::prologue_max_steps; ++i) x = more.relu(x);
  more.sum(x);
  CHECK(more.groups() == "relu+relu+relu+relu+relu | sum");

  Recording inputs;
  inputs.sum(inputs.add(inputs.add(inputs.upload(Shape(8)), inputs.upload(Shape(8))), inputs.upload(Shape(8))));
  CHECK(inputs.groups() == "add+add | sum");

  // Neither input has an element for each of the operand's.
  Recording outer;
  outer.sum(outer.add(outer.upload(Shape(3, 1)), outer.upload(Shape(1, 8))));
  CHECK(outer.groups() == "add | sum");
}

TEST_CASE("fuse: exponentials and the like are no prologue", "[plan][fuse]") {
  Recording r;
  r.sum(r.unary(ElementwiseOp::exp, r.relu(r.upload(Shape(8)))));
  CHECK(r.groups() == "relu+exp | sum");
}

TEST_CASE("fuse: a prologue reads a buffer before what is stored there later", "[plan][fuse]") {
  Recording r;
  const ValueId b = r.graph.import(Shape(8), 0);
  const ValueId y = r.relu(b);
  r.store(r.upload(Shape(8)), 0);
  r.sum(y);
  CHECK(r.groups() == "relu | store | sum");

  Recording after;
  const ValueId c = after.graph.import(Shape(8), 0);
  after.sum(after.relu(c));
  after.store(after.upload(Shape(8)), 0);
  CHECK(after.groups() == "relu|sum | store");
}

TEST_CASE("fuse: a prologue waits for the other operand of its root", "[plan][fuse]") {
  Recording r;
  const ValueId x = r.upload(Shape(4, 4));
  const ValueId y = r.relu(x);
  const ValueId product = r.matmul(x, r.matmul(x, x));
  const ValueId operands[] = {y, product};
  REQUIRE(ops::reduce(r.graph, ReduceOp::dot, operands));
  CHECK(r.groups() == "matmul | matmul | relu|dot");
}

TEST_CASE("fuse: dead ops are dropped and counted", "[plan][fuse]") {
  Recording r;
  const ValueId x = r.upload(Shape(4));
  const ValueId kept = r.relu(x);
  r.sum(r.unary(ElementwiseOp::neg, kept));
  r.graph.keep(kept);
  r.store(r.unary(ElementwiseOp::exp, x), 0);
  plan::PlanOptions options;
  options.keep_marked_only = true;
  CHECK(r.plan(options).dropped_operations == 2);
  CHECK(r.plan(options).readable.size() == 1);
  CHECK(r.plan().dropped_operations == 0);
}

TEST_CASE("fuse: without fusion every op is a group", "[plan][fuse]") {
  Recording r;
  const ValueId x = r.upload(Shape(4, 4));
  r.store(r.relu(r.add(r.matmul(x, x), x)), 0);
  plan::PlanOptions options;
  options.fuse = false;
  CHECK(r.groups(options) == "matmul | add | relu | store");
}

TEST_CASE("fuse: past the limit of distinct programs ops run singly", "[plan][fuse]") {
  Recording r;
  for (const ElementwiseOp op : {ElementwiseOp::neg, ElementwiseOp::abs, ElementwiseOp::neg}) {
    r.sum(r.unary(op, r.relu(r.upload(Shape(4)))));
  }
  for (const std::size_t limit : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
    plan::ProgramSet programs(limit);
    plan::PlanOptions options;
    options.programs = &programs;
    const Plan plan = plan::make_plan(r.graph, {}, options).value();
    CHECK(test::describe(test::check_plan(plan, r.graph, options)).empty());
    CHECK(plan.fused_operations == (limit == 0 ? 0u : limit == 1 ? 4u : 6u));
  }
}

TEST_CASE("fuse: groups of ten thousand ops stay within the kernel", "[plan][fuse]") {
  Recording r;
  const ValueId x = r.upload(Shape(4));
  ValueId y = x;
  for (int i = 0; i < 10000; ++i) y = i % 7 == 0 ? r.add(y, x) : r.relu(y);
  const Plan plan = plan::make_plan(r.graph, {}).value();
  CHECK(plan.groups.size() == 1250);
  CHECK(plan.barriers.size() == 1249);
  std::size_t causes = 0;
  for (const plan::Barrier& b : plan.barriers) causes += b.causes.size();
  CHECK(causes <= 3 * plan.barriers.size());
}

TEST_CASE("fuse: an op joins a later one although it reads the buffer that their result is stored to", "[plan][fuse]") {
  Recording r;
  const ValueId state = r.graph.import(Shape(4, 4), 0);
  const ValueId left = r.matmul(state, r.upload(Shape(4, 4)));
  const ValueId right = r.matmul(r.upload(Shape(4, 4)), r.upload(Shape(4, 4)));
  r.store(r.relu(r.add(left, right)), 0);
  CHECK(r.groups() == "matmul | matmul+add+relu | store");
}

TEST_CASE("fuse: a store of an upload does not wait for an op that joined a later one", "[plan][fuse]") {
  Recording elementwise;
  const ValueId window = elementwise.graph.import(Shape(8), 0);
  const ValueId early = elementwise.relu(window);
  elementwise.add(early, elementwise.sum(elementwise.upload(Shape(4))));
  elementwise.store(elementwise.upload(Shape(8)), 0);
  CHECK(elementwise.groups() == "relu | sum | add | store");
  CHECK(elementwise.plan().barriers.size() == 1);

  Recording product;
  const ValueId matrix = product.graph.import(Shape(4, 4), 0);
  const ValueId squared = product.matmul(matrix, matrix);
  product.add(squared, product.sum(product.upload(Shape(4))));
  product.store(product.upload(Shape(4, 4)), 0);
  CHECK(product.groups() == "matmul | sum | add | store");
  CHECK(product.plan().barriers.size() == 1);
}

TEST_CASE("fuse: a store does not wait for an op that reads its buffer and joined a later one", "[plan][fuse]") {
  Recording r;
  const ValueId window = r.graph.import(Shape(4), 1);
  const ValueId early = r.relu(window);
  const ValueId total = r.sum(r.upload(Shape(8)));
  r.add(early, total);
  r.store(total, 1);
  plan::PlanOptions options;
  options.fuse = false;
  CHECK(r.plan(options).barriers.size() == 1);
  options.fuse = true;
  CHECK(r.plan(options).barriers.size() == 1);
}

TEST_CASE("fuse: elementwise ops join across a view", "[plan][fuse]") {
  Recording r;
  const ValueId x = r.upload(Shape(4, 6));
  const ValueId flat = r.graph.reshape("reshape", r.relu(x), Shape(24)).value();
  r.relu(r.add(flat, r.graph.reshape("reshape", x, Shape(24)).value()));
  const Plan plan = r.plan();
  CHECK(plan.dispatches.size() == 1);
  CHECK(plan.groups[0].program.input_count == 1);
}
