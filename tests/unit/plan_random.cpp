// Random recordings on random devices, planned in every way: every plan is proved.
#include "support/hazard_checker.hpp"
#include "support/kernel_model.hpp"
#include "support/random_graph.hpp"

#include "ops/catalogue.hpp"
#include "ops/matmul.hpp"
#include "plan/plan.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <string>

using namespace brontes;
using test::Random;

namespace {

// What a run of random plans came across, so that a generator gone stale is noticed.
class Seen {
 public:
  void count(const plan::Plan& plan, const record::Graph& graph) {
    seen_["barriers"] += plan.barriers.size();
    for (const plan::Barrier& b : plan.barriers) {
      for (const plan::Hazard& h : b.causes) {
        ++seen_[plan::to_string(h.kind)];
        if (h.region.resource == plan::arena && h.kind == plan::HazardKind::write_after_read) ++seen_["reused memory"];
      }
    }
    seen_["dropped ops"] += plan.dropped_operations;
    seen_["fused ops"] += plan.fused_operations;
    seen_["several submits"] += plan.submits.size() > 1;
    seen_["smaller arena"] += plan.arena_bytes < plan.arena_bytes_without_reuse;
    for (const plan::Group& g : plan.groups) count(g, graph);
    for (const plan::Home& home : plan.homes) {
      if (home.in == record::no_value) {
        ++seen_[home.offset == 0 ? "values in buffers" : "values in parts of buffers"];
        continue;
      }
      ++seen_["values in values"];
      seen_["f16 in values"] += graph.value(home.of).half();
      const plan::Home* outer = plan::Home::find(plan.homes, home.in);
      seen_["values in values in values"] += outer != nullptr && outer->in != record::no_value;
      seen_["values in values in buffers"] += outer != nullptr && outer->in == record::no_value;
      for (const plan::Placement& p : plan.readable) seen_["values in values that are read"] += p.value == home.of;
    }
    std::set<std::uint32_t> groups;
    for (std::size_t i = 0; i < plan.dispatches.size(); ++i) {
      const plan::Dispatch& d = plan.dispatches[i];
      count(d, plan.groups[d.group], graph);
      seen_["several passes"] += !groups.insert(d.group).second;
      if (i == 0) continue;
      seen_["shared gaps"] += d.level == plan.dispatches[i - 1].level;
      seen_["reordered"] += d.group < plan.dispatches[i - 1].group;
    }
  }

  /// For graphs, in which as many ops came from the cases of the catalogue.
  std::uint64_t& ops_of_cases() { return seen_["ops of cases"]; }

  void need(const std::string& what, std::uint64_t least) {
    INFO(what);
    CHECK(seen_[what] >= least);
  }

 private:
  void count(const plan::Group& g, const record::Graph& graph) {
    const auto& program = g.program;
    if (g.root != plan::no_node) {
      ++seen_[std::string("op ") + record::name(graph.nodes()[g.root])];
      const bool matmul = graph.nodes()[g.root].op == &plan::matmul_op;
      if (program.step_count != 0) ++seen_[matmul ? "matmul epilogues" : "reduce epilogues"];
      seen_["prologues"] += g.prologue != plan::no_prologue;
      seen_["full epilogues"] += program.step_count == plan::epilogue_max_steps;
      seen_["epilogues with two inputs"] += program.input_count == plan::epilogue_max_inputs;
      return;
    }
    if (program.step_count < 2) return;
    ++seen_["fused groups"];
    seen_["full programs"] += program.step_count == plan::elementwise_max_steps;
    seen_["four inputs"] += program.input_count == plan::elementwise_max_inputs;
    seen_["several results"] += (g.written & (g.written - 1)) != 0;
    for (std::size_t s = 0; s < program.step_count; ++s) {
      const auto& step = program.steps[s];
      const bool two = record::info(step.op).arity == 2;
      const auto [a, b, c] = step.operands;
      seen_["operands used twice"] += two && a == b;
      seen_["chains that meet"] += two && a >= 4 && b >= 4 && a != b;
    }
    for (std::size_t i = 0; i < program.input_count; ++i) {
      if (program.inputs[i].strided != plan::no_node) {
        ++seen_["strided inputs"];
        continue;
      }
      const record::Repeat& r = program.inputs[i].repeat;
      if (g.count == 1 || r.mod == g.count) continue;
      ++seen_[r.mod == 1 ? "scalars" : r.div == 1 ? "rows" : "columns"];
    }
  }

  void count(const plan::Dispatch& d, const plan::Group& group, const record::Graph& graph) {
    seen_["folded"] += d.groups[1] > 1;
    for (std::size_t b = 0; b < d.binding_count; ++b) {
      const bool opaque = group.root != plan::no_node;
      if (d.reads(b) && d.bindings[b].half) ++seen_[opaque ? "f16 read by kernels of their own" : "f16 read"];
      if (!d.writes(b)) continue;
      const plan::Region& out = d.bindings[b];
      if (out.half) ++seen_[opaque ? "f16 written by kernels of their own" : "f16 written"];
      const record::Op* root = group.root == plan::no_node ? nullptr : graph.nodes()[group.root].op;
      const bool store = root != nullptr && root->moves != nullptr && root->infer == nullptr;
      const bool scatters = store && !root->fills;
      seen_["stores to slices"] += scatters && out.resource != plan::arena;
      seen_["stores within a buffer"] += scatters && out.resource == plan::arena;
      seen_["stores without a copy"] += out.resource != plan::arena && !store;
      for (std::size_t a = 0; a < d.binding_count; ++a) {
        if (a == b || !d.reads(a) || d.bindings[a] != out) continue;
        ++seen_[out.resource == plan::arena ? "in place" : store ? "copies onto themselves" : "updates in place"];
        seen_["f16 in place"] += out.half;
      }
    }
  }

  std::map<std::string, std::uint64_t> seen_;
};

constexpr std::uint32_t usual_count = 10000;

}  // namespace

TEST_CASE("random graphs: every plan does what was recorded, with no barrier too few or too many", "[plan][random]") {
  Seen seen;
  const std::uint32_t count = test::graph_count(usual_count);
  for (std::uint32_t seed = 0; seed < count; ++seed) {
    Random random(seed);
    const record::Graph graph = test::random_graph(random, &seen.ops_of_cases());
    const plan::Traits traits = test::random_traits(random);
    plan::PlanOptions options = test::random_options(random);
    const std::size_t limit = random.one_in(8) ? random.below(3) : ~std::size_t{0};  // of fused programs
    test::Recorded recorded = test::run_recording(graph);
    std::size_t dispatches = ~std::size_t{0};
    std::size_t barriers = ~std::size_t{0};
    for (const bool fuse : {false, true}) {
      for (const bool reuse : {false, true}) {
        options.fuse = fuse;
        options.reuse_memory = reuse;
        plan::ProgramSet programs(limit);
        options.programs = &programs;
        const auto plan = plan::make_plan(graph, traits, options);
        if (!plan) FAIL("seed " << seed << ": " << plan.error().message);
        const auto objections = test::check_plan(*plan, graph, options, recorded);
        if (!objections.empty()) {
          FAIL("seed " << seed << (fuse ? ", fused" : "") << (reuse ? ", reused" : "") << ":\n"
                       << test::describe(objections) << plan::dump(*plan, graph));
        }
        seen.count(*plan, graph);
        // Fusing and reusing cost nothing. What waits for several passes is not known when ops are fused.
        const bool single_passes = plan->dispatches.size() <= plan->groups.size();
        if (plan->dispatches.size() > dispatches || (plan->barriers.size() > barriers && single_passes)) {
          FAIL("seed " << seed << (fuse ? ", fused" : "") << (reuse ? ", reused" : "") << ": " << dispatches
                       << " dispatches and " << barriers << " barriers became\n"
                       << plan::dump(*plan, graph));
        }
        dispatches = plan->dispatches.size();
        barriers = plan->barriers.size();
      }
    }
  }
  for (const char* often : {"barriers", "RAW", "shared gaps", "fused ops", "fused groups"}) {
    seen.need(often, count);
  }
  for (const char* sometimes : {"WAR",
                                "WAW",
                                "reused memory",
                                "dropped ops",
                                "several submits",
                                "several passes",
                                "reordered",
                                "folded",
                                "matmul epilogues",
                                "reduce epilogues",
                                "several results",
                                "operands used twice",
                                "chains that meet",
                                "full programs",
                                "smaller arena",
                                "rows",
                                "columns",
                                "scalars",
                                "in place",
                                "values in values",
                                "op concat",
                                "f16 read",
                                "f16 written",
                                "f16 read by kernels of their own",
                                "f16 written by kernels of their own",
                                "stores without a copy",
                                "stores to slices"}) {
    seen.need(sometimes, count / 10);
  }
  for (const char* seldom :
       {"prologues", "full epilogues", "epilogues with two inputs", "updates in place", "four inputs", "strided inputs",
        "stores within a buffer", "values in buffers", "values in parts of buffers", "values in values in values",
        "values in values that are read", "f16 in values", "f16 in place"}) {
    seen.need(seldom, count / 40);
  }
  seen.need("values in values in buffers", count / 100);
  seen.need("ops of cases", count / 2);
  for (const ops::NamedRoom& room : ops::catalogue()) {
    for (const record::Op& op : room.ops) seen.need(std::string("op ") + op.name, count / 1000);
  }
}

TEST_CASE("random graphs: planning twice gives the same plan", "[plan][random]") {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const record::Graph graph = test::random_graph(random);
    const plan::Traits traits = test::random_traits(random);
    const plan::PlanOptions options = test::random_options(random);
    INFO("seed " << seed);
    const auto once = plan::make_plan(graph, traits, options);
    const auto again = plan::make_plan(graph, traits, options);
    REQUIRE((once && again));
    REQUIRE(plan::dump(*once, graph, DumpFormat::json) == plan::dump(*again, graph, DumpFormat::json));
  }
}
