#include "plan/plan.hpp"

#include <cstdio>

namespace brontes::plan {
namespace {

using record::ValueId;

std::string value_text(ValueId id) { return "%" + std::to_string(id); }

class Dumper {
 public:
  Dumper(const Plan& plan, const record::Graph& graph) : plan_(plan), graph_(graph) {}

  std::string run() {
    text_ = "plan: " + std::to_string(graph_.nodes().size() - graph_.first_pending_node()) + " ops, " +
            std::to_string(plan_.dispatches.size()) + " dispatches, " + std::to_string(plan_.barriers.size()) +
            " barriers, arena " + std::to_string(plan_.arena_bytes) + " bytes\n";
    for (const Placement& p : plan_.uploads) placement("upload", p);
    auto barrier = plan_.barriers.begin();
    for (std::uint32_t i = 0; i < plan_.dispatches.size(); ++i) {
      if (barrier != plan_.barriers.end() && barrier->before == i) write_barrier(*barrier++);
      write_dispatch(i);
    }
    for (const Placement& p : plan_.readable) placement("read", p);
    return std::move(text_);
  }

 private:
  void placement(const char* what, const Placement& p) {
    text_ += std::string(what) + " " + value_text(p.value) + " " + to_string(graph_.values()[p.value].shape) + " at " +
             std::to_string(p.offset) + "\n";
  }

  // A barrier's causes name what the ops call their operands, since memory has no names.
  std::string region_text(const Hazard& hazard) const {
    const record::Node& to = node_of(hazard.to);
    const record::Node& from = node_of(hazard.from);
    if (&to == &from) return "partials";
    if (to.kind == record::NodeKind::store && hazard.kind != HazardKind::read_after_write) {
      return "buffer " + std::to_string(to.store.resource);
    }
    if (from.output != record::no_value) return value_text(from.output);
    return "buffer " + std::to_string(hazard.region.resource);
  }

  const record::Node& node_of(std::uint32_t dispatch) const { return graph_.nodes()[plan_.dispatches[dispatch].node]; }

  void write_barrier(const Barrier& barrier) {
    text_ += "barrier";
    const char* separator = " ";
    for (const Hazard& h : barrier.causes) {
      text_ += std::string(separator) + to_string(h.kind) + " on " + region_text(h) + " #" + std::to_string(h.from) +
               " -> #" + std::to_string(h.to);
      separator = ", ";
    }
    text_ += "\n";
  }

  void write_dispatch(std::uint32_t i) {
    const Dispatch& d = plan_.dispatches[i];
    const record::Node& node = graph_.nodes()[d.node];
    text_ += "#" + std::to_string(i) + " " + kernels::get(d.kernel).name + " " + record::name(node);
    if (node.kind == record::NodeKind::matmul) {
      const record::MatmulNode& m = node.matmul;
      text_ +=
          " " + std::to_string(m.m) + "x" + std::to_string(m.k) + "x" + std::to_string(m.n) + " " + to_string(m.layout);
    }
    for (std::size_t input = 0; input < node.input_count; ++input) {
      text_ += (input == 0 ? " " : ", ") + value_text(node.inputs[input]);
    }
    text_ += node.output == record::no_value ? " -> buffer " + std::to_string(node.store.resource)
                                             : " -> " + value_text(node.output);
    text_ += " groups " + std::to_string(d.groups[0]) + "x" + std::to_string(d.groups[1]) + "x" +
             std::to_string(d.groups[2]) + "\n";
  }

  const Plan& plan_;
  const record::Graph& graph_;
  std::string text_;
};

}  // namespace

std::string dump(const Plan& plan, const record::Graph& graph) { return Dumper(plan, graph).run(); }

}  // namespace brontes::plan
