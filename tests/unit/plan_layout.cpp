// Where values lie in the arena.
#include "ops/store.hpp"
#include "plan/plan.hpp"
#include "record/elementwise.hpp"
#include "support/random_graph.hpp"
#include "support/recorded.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

using namespace brontes;
using plan::Placement;
using plan::Plan;
using plan::Region;
using record::ElementwiseOp;
using record::Graph;
using record::ValueId;

namespace {

constexpr plan::PlanOptions plain{false, false, false, false, 0};

bool overlap(std::uint64_t a, std::uint64_t a_bytes, std::uint64_t b, std::uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

bool lies_in(const Plan& plan, ValueId value, ValueId whole) {
  const plan::Home* home = plan::Home::find(plan.homes, value);
  return home != nullptr && home->in != record::no_value && (home->in == whole || lies_in(plan, home->in, whole));
}

ValueId whole_of(const Plan& plan, ValueId value) {
  const plan::Home* home = plan::Home::find(plan.homes, value);
  return home == nullptr || home->in == record::no_value ? value : whole_of(plan, home->in);
}

// The rule that a layout breaks, or nothing.
std::string broken_rule(const Plan& plan, const Graph& graph, const plan::Traits& traits,
                        const plan::PlanOptions& options) {
  const std::uint64_t alignment = traits.storage_alignment;
  auto inside = [](const Placement& p, std::uint64_t begin, std::uint64_t end) {
    return p.offset >= begin && p.offset + p.bytes <= end;
  };
  std::uint64_t up = 0;
  std::uint64_t down = 0;
  for (const Placement& p : plan.uploads) {
    up += p.bytes;
    if (p.bytes != graph.values()[p.value].bytes()) return "an upload has the size of its value";
    if (!inside(p, 0, plan.upload_bytes)) return "uploads are one range from the start";
    if (p.offset % alignment != 0) return "uploads are aligned";
    bool read = false;
    for (record::ValueId v = 0; v < graph.values().size(); ++v) {
      read |= graph.base(v) == p.value && test::must_be_readable(graph, v, options);
    }
    if (!read && p.bytes != 0 && p.offset + p.bytes > plan.readback_begin && plan.readback_begin < plan.upload_bytes &&
        p.offset >= plan.readback_begin) {
      return "uploads nobody reads lie before those that are read";
    }
  }
  std::set<record::ValueId> counted;
  for (const Placement& p : plan.readable) {
    // A value, its views and what lies in it come down together.
    if (whole_of(plan, graph.base(p.value)) == graph.base(p.value) && counted.insert(graph.base(p.value)).second) {
      down += p.bytes;
    }
    if (p.bytes != graph.values()[p.value].bytes()) return "a result has the size of its value";
    if (!inside(p, plan.readback_begin, plan.readback_end)) return "what is read is one range";
    if (p.offset % alignment != 0) return "results are aligned";
  }
  if (up != plan.element_bytes_up || down != plan.element_bytes_down) return "element bytes are counted";
  if (plan.readback_begin > plan.upload_bytes || plan.readback_end > plan.arena_bytes ||
      plan.upload_bytes > plan.arena_bytes) {
    return "the ranges lie in the arena";
  }
  std::vector<Placement> all = plan.readable;
  for (const Placement& p : plan.uploads) {
    bool known = false;
    for (const Placement& q : plan.readable) known = known || (p.value == q.value && p.offset == q.offset);
    if (!known) all.push_back(p);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (all[i].bytes == 0 || all[j].bytes == 0) continue;
      if (graph.base(all[i].value) == graph.base(all[j].value)) {
        if (all[i].offset != all[j].offset) return "a view lies where its value does";
        continue;
      }
      if (!overlap(all[i].offset, all[i].bytes, all[j].offset, all[j].bytes)) continue;
      const ValueId x = graph.base(all[i].value);
      const ValueId y = graph.base(all[j].value);
      if (!lies_in(plan, x, y) && !lies_in(plan, y, x)) return "values do not overlap";
    }
  }
  for (const plan::Dispatch& d : plan.dispatches) {
    for (std::size_t b = 0; b < d.binding_count; ++b) {
      const Region& r = d.bindings[b];
      if (r.bytes == 0) return "every descriptor is of something";
      if (d.writes(b) && r.offset % alignment != 0) return "what is written is bound from an aligned offset on";
      if (r.resource != plan::arena) continue;
      if (r.offset % alignment != 0) return "bindings are aligned";
      // Kernels load whole vec4s, also at the end.
      if ((r.offset + r.bytes + 15) / 16 * 16 > plan.arena_bytes) return "the last vec4 lies in the arena";
      if (!d.writes(b)) continue;
      for (const Placement& p : plan.uploads) {
        if (p.bytes != 0 && overlap(r.offset, r.bytes, p.offset, p.bytes)) return "nothing is written over an upload";
      }
    }
  }
  return "";
}

}  // namespace

TEST_CASE("layout: uploads, what is read, and temporaries follow each other", "[plan][layout]") {
  Graph graph(1 << 20);
  const std::vector<float> data(10);
  const ValueId consumed = graph.upload(data, {}).value();
  const ValueId kept = graph.upload(data, {}).value();
  const ValueId temporary = record::elementwise(graph, ElementwiseOp::relu, {&consumed, 1}).value();
  const ValueId result = record::elementwise(graph, ElementwiseOp::relu, {&temporary, 1}).value();
  graph.keep(kept);
  const Plan plan = plan::make_plan(graph, {}, plain).value();
  CHECK(plan.uploads[0].offset == 0);
  CHECK(plan.readback_begin == 256);
  CHECK(plan.uploads[1].offset == 256);
  CHECK(plan.upload_bytes == 512);
  CHECK(plan.readable.size() == 2);
  CHECK(plan.readable[1].value == result);
  CHECK(plan.readable[1].offset == 512);
  CHECK(plan.readback_end == 768);
  CHECK(plan.arena_bytes == 1024);
  CHECK(plan.element_bytes_up == 80);
  CHECK(plan.element_bytes_down == 80);
}

TEST_CASE("layout: placements of uploads are in the order of the uploads", "[plan][layout]") {
  Graph graph(1 << 20);
  const std::vector<float> data(10);
  std::vector<ValueId> ids;
  for (int i = 0; i < 6; ++i) {
    ids.push_back(graph.upload(data, {}).value());
    if (i % 2 == 0) REQUIRE(record::elementwise(graph, ElementwiseOp::relu, {&ids.back(), 1}));
  }
  const Plan plan = plan::make_plan(graph, {}).value();
  REQUIRE(plan.uploads.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) CHECK(plan.uploads[i].value == ids[i]);
}

TEST_CASE("layout: a plan says which buffers it writes", "[plan][layout]") {
  Graph graph(1 << 20);
  const ValueId x = graph.import(Shape(4), 0);
  const ValueId y = record::elementwise(graph, ElementwiseOp::relu, {&x, 1}).value();
  CHECK_FALSE(plan::make_plan(graph, {})->writes(0));
  REQUIRE_FALSE(ops::store(graph, y, 1, Shape(4)));
  for (const bool fuse : {false, true}) {
    plan::PlanOptions options;
    options.fuse = fuse;
    const Plan plan = plan::make_plan(graph, {}, options).value();
    CHECK_FALSE(plan.writes(0));
    CHECK(plan.writes(1));
  }
}

TEST_CASE("layout: sizes past 32 bits are placed in 64", "[plan][layout]") {
  Graph graph(std::uint64_t{1} << 40);
  for (int i = 0; i < 3; ++i) REQUIRE(record::fill(graph, 0, Shape(std::uint64_t{1} << 29)));
  const Plan plan = plan::make_plan(graph, {}).value();
  CHECK(plan.arena_bytes == std::uint64_t{3} << 31);
  CHECK(plan.readable[2].offset == std::uint64_t{2} << 31);
  CHECK(plan.element_bytes_down == std::uint64_t{3} << 31);
}

TEST_CASE("layout: every rule holds for random graphs", "[plan][layout][random]") {
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    test::Random random(seed);
    const Graph graph = test::random_graph(random);
    const plan::Traits traits = test::random_traits(random);
    const plan::PlanOptions options = test::random_options(random);
    const Plan plan = plan::make_plan(graph, traits, options).value();
    const std::string rule = broken_rule(plan, graph, traits, options);
    if (!rule.empty()) FAIL("seed " << seed << ": not so: " << rule << "\n" << plan::dump(plan, graph));
  }
}
