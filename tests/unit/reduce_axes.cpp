// Reductions along axes: what they refuse, how they are written, and that their passes keep the rules of every device.
#include "ops/reduce_axes.hpp"
#include "ops/catalogue.hpp"
#include "plan/plan.hpp"
#include "support/detached.hpp"
#include "support/hazard_checker.hpp"
#include "support/kernel_model.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

using namespace brontes;
using plan::Dispatch;
using test::constant;
using test::stand_in;

namespace {

template <class Params>
Params params_of(const Dispatch& d) {
  Params params;
  std::memcpy(&params, d.push.data(), sizeof params);
  return params;
}

// The rule a pass breaks, or nothing.
std::string broken_rule(const Dispatch& d, const plan::Traits& traits) {
  if (constant(d, "group_size") > traits.max_group_invocations) return "the workgroup fits the device";
  const bool exp = constant(d, "map") == static_cast<std::uint32_t>(ops::AxesMap::exp);
  const std::uint64_t grid = std::uint64_t{d.groups[0]} * d.groups[1] * d.groups[2];
  if (d.kernel == kernels::Id::reduce_rows) {
    const auto p = params_of<kernels::ReduceRowsParams>(d);
    const std::uint32_t lanes = constant(d, "lanes");
    if (traits.cpu && lanes != 1) return "lanes of a CPU do not meet";
    if (constant(d, "group_size") % lanes != 0) return "lanes divide the workgroup";
    if (lanes > 1 && 4 * constant(d, "group_size") > traits.max_shared_bytes) return "shared memory fits the device";
    if (grid * (constant(d, "group_size") / lanes) < p.units) return "there are workgroups for all parts";
    if (std::uint64_t{p.chunk} * p.parts < p.n || p.chunk % 4 != 0) return "the parts are the row";
    if (p.chunk > ops::rows_most_chunk * lanes) return "no chain of additions is long";
    // 16 elements for a single lane is the least there is.
    if (ops::rows_iterations(std::min(p.n, p.chunk), lanes, exp) >
        std::max<std::uint64_t>(traits.max_loop_iterations, ops::rows_iterations(16, 1, exp))) {
      return "loops keep within the device's allowance";
    }
    return "";
  }
  const auto p = params_of<kernels::ReduceColumnsParams>(d);
  if (grid * constant(d, "group_size") < p.units) return "there are workgroups for all columns";
  if (constant(d, "columns") == 4 && p.width % 4 != 0) return "rows are whole vec4s";
  const std::uint32_t rows = plan::ceil_div(p.slab, p.width);
  if (rows > ops::columns_most_rows) return "no chain of additions is long";
  if (ops::columns_iterations(rows) >
      std::max<std::uint64_t>(traits.max_loop_iterations, ops::columns_iterations(16))) {
    return "loops keep within the device's allowance";
  }
  return "";
}

std::vector<plan::Traits> devices() {
  std::vector<plan::Traits> all;
  for (const bool cpu : {false, true}) {
    for (const std::uint32_t most : {1u, 24u, 128u, 1024u}) {
      for (const std::uint32_t shared : {64u, 16384u}) {
        for (const std::uint64_t loops : {std::uint64_t{2}, std::uint64_t{64}, ~std::uint64_t{0}}) {
          plan::Traits traits;
          traits.cpu = cpu;
          traits.max_group_invocations = most;
          traits.max_shared_bytes = shared;
          traits.max_loop_iterations = loops;
          if (most == 24) traits.max_group_count = {3, 4, 65535};
          all.push_back(traits);
        }
      }
    }
  }
  return all;
}

void fails(Errc code, std::initializer_list<const char*> parts, const std::function<Tensor(Batch&)>& record) {
  Batch batch = OpAccess::detached();
  CHECK_FALSE(record(batch).valid());
  const Error error = batch.error();
  CHECK(to_string(error.code) == std::string(to_string(code)));
  INFO(error.message);
  for (const char* part : parts) {
    INFO("expected: " << part);
    CHECK(error.message.find(part) != std::string::npos);
  }
  CHECK(batch.num_operations() == 0);
}

}  // namespace

TEST_CASE("a reduction refuses axes that are out of range or given twice", "[record][reduction]") {
  const Shape shape(2, 3, 4);
  fails(Errc::invalid_argument, {"mean", "axis 3", "[2, 3, 4]", "out of range"},
        [&](Batch& b) { return b.mean(stand_in(b, shape), 3); });
  fails(Errc::invalid_argument, {"sum", "axis -4", "[2, 3, 4]"}, [&](Batch& b) {
    return b.sum(stand_in(b, shape), {0, -4});
  });
  fails(Errc::invalid_argument, {"prod", "axis -3", "twice"}, [&](Batch& b) {
    return b.prod(stand_in(b, shape), {0, -3});
  });
  fails(Errc::invalid_argument, {"l1_norm", "twice"}, [&](Batch& b) {
    return b.l1_norm(stand_in(b, shape), {0, 1, 2, 3, 4, 5, 6, 7, 8});
  });
  fails(Errc::invalid_argument, {"max", "out of range"},
        [&](Batch& b) { return b.max(stand_in(b, shape), std::int64_t{1} << 32); });
}

TEST_CASE("there is no largest of no elements, unless there are no results", "[record][reduction]") {
  fails(Errc::empty_input, {"max", "axes 0", "[0, 3]"}, [](Batch& b) { return b.max(stand_in(b, {0, 3}), 0); });
  fails(Errc::empty_input, {"min", "axes 0,1"}, [](Batch& b) { return b.min(stand_in(b, {0, 3}), Axes(), true); });
  Batch batch = OpAccess::detached();
  CHECK(batch.max(stand_in(batch, {0, 3}), 1).shape() == Shape(0));
  CHECK(batch.error().message == "");
}

TEST_CASE("reduced dims are left out, or stay as ones", "[record][reduction]") {
  Batch batch = OpAccess::detached();
  const Tensor x = stand_in(batch, {2, 3, 4, 5});
  CHECK(batch.sum(x, 0).shape() == Shape(3, 4, 5));
  CHECK(batch.sum(x, {1, -1}).shape() == Shape(2, 4));
  CHECK(batch.sum(x, {1, -1}, true).shape() == Shape(2, 1, 4, 1));
  CHECK(batch.sum(x, Axes()).shape() == Shape(1));
  CHECK(batch.mean(x, {0, 1, 2, 3}).shape() == Shape(1));
  CHECK(batch.mean(x, Axes(), true).shape() == Shape(1, 1, 1, 1));
  CHECK(batch.error().message == "");
}

TEST_CASE("a reduction says its axes, and one over all of them is the op it always was", "[record][reduction]") {
  Batch batch = OpAccess::detached();
  const Tensor x = stand_in(batch, {2, 3});
  batch.sum(x, {0, 1});
  batch.sum(x, 1);
  batch.logsumexp(x, Axes(), true);
  CHECK(batch.dump(DumpFormat::text, DumpStage::recorded).value() ==
        "recorded: 3 ops, 1 inputs\n"
        "upload %0 [2, 3]\n"
        "sum %0 -> %1 [1]\n"
        "sum axes 1 %0 -> %2 [2]\n"
        "logsumexp axes 0,1 keep_dims true %0 -> %3 [1, 1]\n");
}

TEST_CASE("the passes of a reduction keep every rule on devices of all sizes", "[plan][reduction]") {
  struct Where {
    Shape shape;
    Axes axes;
  };
  const Where everywhere[] = {
      {Shape(1, 1), 0},
      {Shape(3, 5), 1},
      {Shape(3, 5), 0},
      {Shape(7, 9, 8), {0, 2}},
      {Shape(40000, 3), 0},
      {Shape(4096, 4096), 0},
      {Shape(4096, 4096), 1},
      {Shape(1, 1 << 22), 1},
      {Shape(1 << 20, 3), 1},
      {Shape(1 << 20, 3), 0},
      {Shape(2, 99999, 5), 1},
      {Shape(0, 6), 0},
      {Shape(17, 3001, 2, 33), {1, 3}},
  };
  for (const plan::Traits& traits : devices()) {
    for (const Where& where : everywhere) {
      INFO(to_string(where.shape) << ", " << traits.max_group_invocations << " invocations, " << traits.max_shared_bytes
                                  << " shared bytes, " << traits.max_loop_iterations << " iterations, cpu "
                                  << traits.cpu);
      record::Graph graph(std::uint64_t{1} << 34);
      const record::ValueId x = graph.import(where.shape, 0);
      for (const record::Op& op : ops::reduce_axes_room) {
        if (where.shape.count() == 0 && (std::string(op.name) == "max" || std::string(op.name) == "min")) continue;
        REQUIRE(graph.apply(op, {&x, 1}, ops::axes_attributes(where.axes)));
      }
      const auto planned = plan::make_plan(graph, traits);
      if (!planned) FAIL(planned.error().message);
      for (const Dispatch& d : planned->dispatches) {
        const std::string rule = broken_rule(d, traits);
        if (!rule.empty()) FAIL("not so: " << rule << "\n" << plan::dump(*planned, graph));
      }
      if (where.shape.count() < 2000) CHECK(test::describe(test::check_plan(*planned, graph)) == "");
    }
  }
}

TEST_CASE("sums along either axis of a large matrix give every core something to do", "[plan][reduction]") {
  plan::Traits traits;
  traits.cpu = true;
  for (const int axis : {0, 1}) {
    Batch batch = OpAccess::detached();
    batch.sum(stand_in(batch, {512, 512}), axis);
    const auto planned = plan::make_plan(*OpAccess::graph(batch), traits).value();
    CHECK(planned.dispatches.size() <= 2);
    CHECK(planned.dispatches[0].groups[0] >= 8);
  }
}

TEST_CASE("elementwise steps behind a reduction run in its last pass", "[plan][reduction]") {
  Batch batch = OpAccess::detached();
  const Tensor x = stand_in(batch, {300, 3, 40});
  batch.sqrt(batch.add(batch.mean(x, {0, 2}), stand_in(batch, {3})));
  const record::Graph& graph = *OpAccess::graph(batch);
  for (const plan::Traits& traits : devices()) {
    const auto planned = plan::make_plan(graph, traits).value();
    CHECK(planned.fused_operations == 2);
    CHECK(test::describe(test::check_plan(planned, graph)) == "");
  }
}
