#include "support/plan_replay.hpp"

#include "support/kernel_model.hpp"

#include <algorithm>

namespace brontes::test {
namespace {

using plan::Dispatch;
using plan::Group;
using plan::Region;
using record::NodeKind;
using record::ValueId;

class Replay {
 public:
  Replay(const plan::Plan& plan, const record::Graph& graph, const plan::PlanOptions& options, Recorded& recorded)
      : plan_(plan), graph_(graph), options_(options), recorded_(recorded) {}

  std::vector<std::string> run() {
    place_uploads();
    std::vector<std::uint32_t> left(plan_.groups.size(), 0);
    for (const Dispatch& d : plan_.dispatches) ++left[d.group];
    const std::vector<std::uint32_t> passes = left;
    for (std::size_t i = 0; i < plan_.dispatches.size(); ++i) {
      const Dispatch& d = plan_.dispatches[i];
      current_ = i;
      run_kernel(d, memory_, symbols_, [&](const std::string& what) { object_here(what); });
      if (--left[d.group] == 0) check_outputs(d);
      if (passes[d.group] != 1 && d.kernel == kernels::Id::elementwise) object_here("is dispatched more than once");
    }
    check_readable();
    check_buffers();
    return std::move(objections_);
  }

 private:
  void object(std::string what) { objections_.push_back(std::move(what)); }
  void object_here(const std::string& what) { object("#" + std::to_string(current_) + " " + what); }

  void place_uploads() {
    if (plan_.uploads.size() != graph_.uploads().size()) {
      object(std::to_string(plan_.uploads.size()) + " uploads are placed, " + std::to_string(graph_.uploads().size()) +
             " were recorded");
      return;
    }
    for (std::size_t i = 0; i < plan_.uploads.size(); ++i) {
      const plan::Placement& p = plan_.uploads[i];
      const ValueId id = graph_.uploads()[i].value;
      const auto& words = recorded_.values[id];
      if (p.value != id || p.bytes != words.size() * 4) {
        object("upload " + std::to_string(i) + " is placed as %" + std::to_string(p.value) + " of " +
               std::to_string(p.bytes) + " bytes");
        continue;
      }
      std::copy(words.begin(), words.end(), memory_.at({plan::arena, p.offset, p.bytes}));
    }
  }

  // The first word that is not as expected, as text; nothing when all are.
  std::string difference(const Region& region, const std::vector<Symbol>& expected) {
    if (region.bytes != expected.size() * 4) {
      return std::to_string(region.bytes) + " bytes, not " + std::to_string(expected.size() * 4);
    }
    const Symbol* found = memory_.at(region);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (found[i] != expected[i]) return recorded_.name(found[i]) + ", not " + recorded_.name(expected[i]);
    }
    return "";
  }

  void check_output(const Region& region, const std::vector<Symbol>& expected, const std::string& name) {
    const std::string other = difference(region, expected);
    if (!other.empty()) object_here("leaves in " + name + ": " + other);
  }

  // What the last dispatch of a group wrote is what the group says it is.
  void check_outputs(const Dispatch& d) {
    const Group& group = plan_.groups[d.group];
    const auto& program = group.program;
    auto text = [](ValueId v) { return "%" + std::to_string(v); };
    if (group.root == plan::no_node) {
      std::uint32_t written = 0;
      constexpr const char* results[] = {"result0", "result1", "result2"};
      constexpr const char* outputs[] = {"out0", "out1", "out2"};
      for (std::size_t o = 0; o < std::size(results); ++o) {
        const std::uint32_t reg = constant(d, results[o]);
        if (reg == 0) continue;
        if (reg < 4 || reg >= 4u + program.step_count) {
          object_here("writes register " + std::to_string(reg));
          continue;
        }
        written |= 1u << (reg - 4);
        const ValueId value = program.steps[reg - 4].result;
        check_output(d.bindings[binding(d, outputs[o])], recorded_.values[value], text(value));
      }
      if (written != group.written) object_here("does not write what its group says");
      return;
    }
    const record::Node& root = graph_.nodes()[group.root];
    if (root.kind == NodeKind::store) {
      const auto& expected = recorded_.stores[group.root];
      const Region& out = d.bindings[binding(d, "out0")];
      check_output(out, expected, "buffer " + std::to_string(root.store.resource));
      if (out != Region{root.store.resource, 0, expected.size() * 4}) object_here("stores to the wrong place");
      return;
    }
    const ValueId value = program.step_count == 0 ? root.output : program.steps[program.step_count - 1].result;
    const bool other_name = root.kind == NodeKind::matmul && d.kernel != kernels::Id::elementwise;
    check_output(d.bindings[binding(d, other_name ? "c" : "out0")], recorded_.values[value], text(value));
  }

  void check_readable() {
    std::vector<bool> placed(graph_.values().size(), false);
    for (const plan::Placement& p : plan_.readable) {
      placed[p.value] = true;
      const std::string other = difference({plan::arena, p.offset, p.bytes}, recorded_.values[p.value]);
      if (!other.empty()) object("%" + std::to_string(p.value) + " is read as " + other);
    }
    for (std::size_t v = graph_.first_pending_value(); v < graph_.values().size(); ++v) {
      if (graph_.values()[v].resource != record::no_resource) continue;
      const bool must = must_be_readable(graph_, static_cast<ValueId>(v), options_);
      if (must && !placed[v]) object("%" + std::to_string(v) + " cannot be read");
      if (!must && placed[v]) object("%" + std::to_string(v) + " is read back, and nobody asked for it");
    }
  }

  void check_buffers() {
    for (const auto& [resource, words] : recorded_.buffers.all()) memory_.at({resource, 0, words.size() * 4});
    for (const auto& [resource, words] : memory_.all()) {
      if (resource == plan::arena) continue;
      const Symbol* expected = recorded_.buffers.at({resource, 0, words.size() * 4});
      if (!std::equal(words.begin(), words.end(), expected)) {
        object("buffer " + std::to_string(resource) + " ends up with something else");
      }
    }
  }

  const plan::Plan& plan_;
  const record::Graph& graph_;
  const plan::PlanOptions& options_;
  Recorded& recorded_;
  std::size_t current_ = 0;
  Symbols symbols_;
  Memory memory_;
  std::vector<std::string> objections_;
};

}  // namespace

std::vector<std::string> replay(const plan::Plan& plan, const record::Graph& graph, const plan::PlanOptions& options,
                                Recorded& recorded) {
  return Replay(plan, graph, options, recorded).run();
}

}  // namespace brontes::test
