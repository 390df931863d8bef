#include "plan/plan.hpp"

#include <cstdio>
#include <set>

namespace brontes::plan {
namespace {

using record::ValueId;

std::string text_of(ValueId id) { return "%" + std::to_string(id); }
std::string number(std::uint64_t n) { return std::to_string(n); }

template <class Items, class Text>
std::string join(const Items& items, const char* separator, Text text) {
  std::string all;
  for (const auto& item : items) all += (all.empty() ? "" : separator) + text(item);
  return all;
}

// What the formats have in common: the words for groups, hazards and sizes.
class Words {
 public:
  Words(const Plan& plan, const record::Graph& graph) : plan_(plan), graph_(graph) {}

  const Group& group(const Dispatch& d) const { return plan_.groups[d.group]; }

  // "relu+scale+add", "matmul+add+gelu"
  std::string ops(const Group& g) const {
    return join(nodes(g), "+", [&](std::uint32_t n) { return op(n); });
  }

  std::vector<std::uint32_t> nodes(const Group& g) const {
    std::vector<std::uint32_t> all;
    if (g.root != no_node) all.push_back(g.root);
    for (std::size_t s = 0; s < g.program.step_count; ++s) all.push_back(g.program.steps[s].node);
    return all;
  }

  std::string op(std::uint32_t node) const { return record::name(graph_.nodes()[node]); }

  // Sizes and options that decide what a root's kernel does: "2x3x4 kn", or nothing.
  std::string detail(const Group& g) const {
    if (g.root == no_node || graph_.nodes()[g.root].kind != record::NodeKind::matmul) return "";
    const record::MatmulNode& m = graph_.nodes()[g.root].matmul;
    return number(m.m) + "x" + number(m.k) + "x" + number(m.n) + " " + to_string(m.layout);
  }

  std::vector<ValueId> inputs(const Group& g) const {
    std::vector<ValueId> all;
    if (g.root != no_node) {
      const record::Node& root = graph_.nodes()[g.root];
      all.assign(root.inputs.begin(), root.inputs.begin() + root.input_count);
    }
    for (std::size_t i = 0; i < g.program.input_count; ++i) all.push_back(g.program.inputs[i].value);
    return all;
  }

  // Values that leave the group, the last result last. A value that was placed in no memory did not.
  std::vector<ValueId> outputs(const Group& g) const {
    std::vector<ValueId> all;
    const auto& p = g.program;
    for (std::size_t s = 0; s + 1 < p.step_count; ++s) {
      if ((g.written >> s & 1u) != 0) all.push_back(p.steps[s].result);
    }
    const ValueId last = p.step_count != 0 ? p.steps[p.step_count - 1].result : graph_.nodes()[g.root].output;
    if (last != record::no_value) all.push_back(last);
    return all;
  }

  // "%3", or "%3 in buffer 0" when it is written straight to where it is stored.
  std::string results(const Dispatch& d) const {
    const Group& g = group(d);
    if (g.root != no_node && graph_.nodes()[g.root].kind == record::NodeKind::store) {
      return "buffer " + number(graph_.nodes()[g.root].store.resource);
    }
    std::string text = join(outputs(g), ", ", text_of);
    for (std::size_t b = 0; b < d.binding_count; ++b) {
      if (d.writes(b) && d.bindings[b].resource != arena) text += " in buffer " + number(d.bindings[b].resource);
    }
    return text;
  }

  // What a hazard is about: a value, the partial results of one op, a buffer, or memory changing hands.
  std::string subject(const Hazard& h) const {
    const Dispatch& from = plan_.dispatches[h.from];
    const Dispatch& to = plan_.dispatches[h.to];
    if (h.region.resource != arena) return "buffer " + number(h.region.resource);
    if (from.group == to.group) return "partials";
    if (h.kind != HazardKind::read_after_write) return "reused memory at " + number(h.region.offset);
    for (ValueId value : outputs(group(from))) {
      for (ValueId input : inputs(group(to))) {
        if (value == input) return text_of(value);
      }
    }
    return "memory at " + number(h.region.offset);
  }

  std::string cause(const Hazard& h) const {
    return std::string(to_string(h.kind)) + " on " + subject(h) + " #" + number(h.from) + " -> #" + number(h.to);
  }

  static std::string grid(const Dispatch& d) {
    return number(d.groups[0]) + "x" + number(d.groups[1]) + "x" + number(d.groups[2]);
  }

  // The first place the dispatch writes.
  static std::string place(const Dispatch& d) {
    for (std::size_t b = 0; b < d.binding_count; ++b) {
      if (d.writes(b) && d.bindings[b].resource == arena) return number(d.bindings[b].offset);
    }
    return "";
  }

 protected:
  const Plan& plan_;
  const record::Graph& graph_;
};

class Text : Words {
 public:
  using Words::Words;

  std::string run() const {
    std::string text = "plan: " + number(graph_.nodes().size() - graph_.first_pending_node()) + " ops, " +
                       number(plan_.dispatches.size()) + " dispatches, " + number(plan_.barriers.size()) +
                       " barriers, arena " + number(plan_.arena_bytes) + " bytes";
    if (plan_.arena_bytes != plan_.arena_bytes_without_reuse) {
      text += " (" + number(plan_.arena_bytes_without_reuse) + " without reuse)";
    }
    text += "\n";
    if (plan_.dropped_operations != 0) text += "dropped: " + number(plan_.dropped_operations) + " ops\n";
    for (const Placement& p : plan_.uploads) text += placement("upload", p);
    auto barrier = plan_.barriers.begin();
    std::size_t part = 0;
    for (std::uint32_t i = 0; i < plan_.dispatches.size(); ++i) {
      if (part + 1 < plan_.submits.size() && plan_.submits[part + 1].begin == i) {
        ++part;
        text += "submit " + number(part) + "\n";
      }
      if (barrier != plan_.barriers.end() && barrier->before == i) {
        text += "barrier " + join(barrier->causes, ", ", [&](const Hazard& h) { return cause(h); }) + "\n";
        ++barrier;
      }
      text += dispatch(i);
    }
    for (const Placement& p : plan_.readable) text += placement("read", p);
    return text;
  }

 private:
  std::string placement(const char* what, const Placement& p) const {
    return std::string(what) + " " + text_of(p.value) + " " + to_string(graph_.values()[p.value].shape) + " at " +
           number(p.offset) + "\n";
  }

  std::string dispatch(std::uint32_t i) const {
    const Dispatch& d = plan_.dispatches[i];
    const Group& g = group(d);
    std::string text = "#" + number(i) + " " + kernels::get(d.kernel).name + " " + ops(g);
    if (const std::string more = detail(g); !more.empty()) text += " " + more;
    if (const auto in = inputs(g); !in.empty()) text += " " + join(in, ", ", text_of);
    return text + " -> " + results(d) + " groups " + grid(d) + "\n";
  }
};

class Dot : Words {
 public:
  using Words::Words;

  std::string run() const {
    std::string text =
        "digraph plan {\n"
        "  rankdir=TB;\n"
        "  node [shape=box, style=rounded, fontname=\"sans-serif\", fontsize=11];\n"
        "  edge [fontname=\"sans-serif\", fontsize=9];\n";
    for (const Placement& p : plan_.uploads) {
      text += "  v" + number(p.value) + " [shape=ellipse, label=\"upload " + value_label(p.value) + "\"];\n";
    }
    const std::uint32_t levels = plan_.dispatches.empty() ? 0 : plan_.dispatches.back().level + 1;
    for (std::uint32_t level = 0; level < levels; ++level) {
      text += "  subgraph cluster_level" + number(level) + " {\n    label=\"level " + number(level) +
              "\"; style=dashed; color=gray; fontname=\"sans-serif\"; fontsize=9;\n";
      for (std::uint32_t i = 0; i < plan_.dispatches.size(); ++i) {
        if (plan_.dispatches[i].level == level) text += "    " + dispatch(i);
      }
      text += "  }\n";
    }
    text += edges();
    for (const Placement& p : plan_.readable) {
      text += "  r" + number(p.value) + " [shape=ellipse, label=\"read " + value_label(p.value) + "\"];\n";
      if (const std::string from = source_of(p.value); !from.empty())
        text += "  " + from + " -> r" + number(p.value) + ";\n";
    }
    return text + "}\n";
  }

 private:
  std::string value_label(ValueId id) const { return text_of(id) + "\\n" + to_string(graph_.values()[id].shape); }

  std::string dispatch(std::uint32_t i) const {
    const Dispatch& d = plan_.dispatches[i];
    const Group& g = group(d);
    std::string label = "#" + number(i) + " " + ops(g) + "\\n" + kernels::get(d.kernel).name;
    if (const std::string more = detail(g); !more.empty()) label += " " + more;
    label += "\\ngroups " + grid(d);
    if (const std::string at = place(d); !at.empty()) label += ", at " + at;
    return "d" + number(i) + " [label=\"" + label + "\"];\n";
  }

  // The last dispatch that writes a value, or its upload; nothing for a result without elements.
  std::string source_of(ValueId id) const {
    std::string source;
    for (const Placement& p : plan_.uploads) {
      if (p.value == id) source = "v" + number(id);
    }
    for (std::uint32_t i = 0; i < plan_.dispatches.size(); ++i) {
      for (ValueId out : outputs(group(plan_.dispatches[i]))) {
        if (out == id) source = "d" + number(i);
      }
    }
    return source;
  }

  std::string edges() const {
    std::string text;
    std::set<ValueId> buffers;
    for (std::uint32_t i = 0; i < plan_.dispatches.size(); ++i) {
      const Dispatch& d = plan_.dispatches[i];
      if (i > 0 && plan_.dispatches[i - 1].group == d.group) {
        text += "  d" + number(i - 1) + " -> d" + number(i) + ";\n";
        continue;
      }
      for (ValueId in : inputs(group(d))) {
        std::string from = source_of(in);
        if (graph_.values()[in].resource != record::no_resource) {
          from = "v" + number(in);
          if (buffers.insert(in).second) {
            text += "  " + from + " [shape=ellipse, label=\"buffer " + number(graph_.values()[in].resource) + "\\n" +
                    value_label(in) + "\"];\n";
          }
        }
        if (from.empty()) continue;
        text += "  " + from + " -> d" + number(i) + " [label=\"" + text_of(in) + "\"];\n";
      }
    }
    // Barriers that are there for memory and not for a value.
    for (const Barrier& b : plan_.barriers) {
      for (const Hazard& h : b.causes) {
        if (h.kind == HazardKind::read_after_write) continue;
        text += "  d" + number(h.from) + " -> d" + number(h.to) + " [style=dotted, color=gray, label=\"" +
                to_string(h.kind) + "\"];\n";
      }
    }
    return text;
  }
};

class Json : Words {
 public:
  using Words::Words;

  std::string run() const {
    std::string text = "{\n";
    text += "  \"operations\": " + number(graph_.nodes().size() - graph_.first_pending_node()) + ",\n";
    text += "  \"dropped_operations\": " + number(plan_.dropped_operations) + ",\n";
    text += "  \"fused_operations\": " + number(plan_.fused_operations) + ",\n";
    text += "  \"arena_bytes\": " + number(plan_.arena_bytes) + ",\n";
    text += "  \"arena_bytes_without_reuse\": " + number(plan_.arena_bytes_without_reuse) + ",\n";
    text += "  \"uploads\": " + placements(plan_.uploads) + ",\n";
    text += "  \"readable\": " + placements(plan_.readable) + ",\n";
    text += "  \"submits\": [" +
            join(plan_.submits, ", ",
                 [](const DispatchRange& r) { return "[" + number(r.begin) + ", " + number(r.end) + "]"; }) +
            "],\n";
    std::uint32_t index = 0;
    text += "  \"dispatches\": [" +
            join(plan_.dispatches, ",", [&](const Dispatch& d) { return "\n    " + dispatch(d, index++); }) +
            "\n  ],\n";
    text += "  \"barriers\": [" +
            join(plan_.barriers, ",",
                 [&](const Barrier& b) {
                   return "\n    {\"before\": " + number(b.before) + ", \"causes\": [" +
                          join(b.causes, ", ", [&](const Hazard& h) { return hazard(h); }) + "]}";
                 }) +
            "\n  ]\n";
    return text + "}\n";
  }

 private:
  static std::string quoted(const std::string& text) { return "\"" + text + "\""; }

  static std::string ids(const std::vector<ValueId>& values) {
    return "[" + join(values, ", ", [](ValueId v) { return number(v); }) + "]";
  }

  std::string placements(const std::vector<Placement>& all) const {
    return "[" +
           join(all, ", ",
                [&](const Placement& p) {
                  return "{\"value\": " + number(p.value) +
                         ", \"shape\": " + to_string(graph_.values()[p.value].shape) +
                         ", \"offset\": " + number(p.offset) + ", \"bytes\": " + number(p.bytes) + "}";
                }) +
           "]";
  }

  std::string dispatch(const Dispatch& d, std::uint32_t index) const {
    const Group& g = group(d);
    const auto names = join(nodes(g), ", ", [&](std::uint32_t n) { return quoted(op(n)); });
    std::string text = "{\"index\": " + number(index) + ", \"level\": " + number(d.level) +
                       ", \"kernel\": " + quoted(kernels::get(d.kernel).name) + ", \"ops\": [" + names + "]";
    if (const std::string more = detail(g); !more.empty()) text += ", \"matmul\": " + quoted(more);
    text += ", \"inputs\": " + ids(inputs(g)) + ", \"outputs\": " + ids(outputs(g)) + ", \"groups\": [" +
            join(d.groups, ", ", [](std::uint32_t n) { return number(n); }) + "]";
    if (const std::string at = place(d); !at.empty()) text += ", \"offset\": " + at;
    return text + "}";
  }

  std::string hazard(const Hazard& h) const {
    return std::string("{\"kind\": \"") + to_string(h.kind) + "\", \"on\": " + quoted(subject(h)) +
           ", \"from\": " + number(h.from) + ", \"to\": " + number(h.to) + "}";
  }
};

}  // namespace

std::string dump(const Plan& plan, const record::Graph& graph, DumpFormat format) {
  switch (format) {
    case DumpFormat::text: break;
    case DumpFormat::dot: return Dot(plan, graph).run();
    case DumpFormat::json: return Json(plan, graph).run();
  }
  return Text(plan, graph).run();
}

}  // namespace brontes::plan
