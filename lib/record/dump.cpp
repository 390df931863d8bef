#include "record/dump.hpp"

#include "record/words.hpp"

#include <set>
#include <vector>

namespace brontes::record {
namespace {

// What the formats walk: values that come from outside, and pending nodes.
class Pending {
 public:
  explicit Pending(const Graph& graph) : graph_(graph), nodes_(pending(graph)) {
    std::set<ValueId> outside;
    for (std::size_t id = graph.first_pending_value(); id < graph.values().size(); ++id) {
      outside.insert(static_cast<ValueId>(id));
    }
    for (const Node& node : nodes_) outside.insert(graph.inputs(node).begin(), graph.inputs(node).end());
    for (const Node& node : nodes_) {
      for (ValueId i = 0; i < node.output_count; ++i) outside.erase(node.output + i);
    }
    for (ValueId id : outside) (graph.base(id) == id ? inputs_ : views_).push_back(id);
  }

 protected:
  const Value& value(ValueId id) const { return graph_.values()[id]; }

  // " in buffer 2 at 256"; nothing for an upload, which has no place yet.
  std::string place(ValueId id) const {
    const Value& v = value(id);
    if (v.resource == no_resource) return "";
    return " in buffer " + number(v.resource) + (v.imported ? "" : " at " + number(v.offset));
  }

  const Graph& graph_;
  Span<const Node> nodes_;
  std::vector<ValueId> inputs_;  // ascending
  std::vector<ValueId> views_;   // ascending

 private:
  static Span<const Node> pending(const Graph& graph) {
    const std::size_t first = graph.first_pending_node();
    return {graph.nodes().data() + first, graph.nodes().size() - first};
  }
};

class Text : Pending {
 public:
  using Pending::Pending;

  std::string run() const {
    std::string text = "recorded: " + number(nodes_.size()) + " ops, " + number(inputs_.size()) + " inputs\n";
    for (ValueId id : inputs_) {
      text += origin(graph_, id) + (" " + text_of(id)) + shape(id) + place(id) + keep(id) + "\n" + views(id);
    }
    for (const Node& node : nodes_) {
      text += sentence(graph_, node);
      for (ValueId i = 0; i < node.output_count; ++i)
        text += (i == 0 ? "" : ",") + shape(node.output + i) + keep(node.output + i);
      text += "\n";
      for (ValueId i = 0; i < node.output_count; ++i) text += views(node.output + i);
    }
    return text;
  }

 private:
  // "view %6 of %5 [48]", for every view of a value.
  std::string views(ValueId id) const {
    std::string text;
    for (ValueId view : views_) {
      if (graph_.base(view) == id) {
        text += "view " + text_of(view) + " of " + text_of(id) + shape(view) + keep(view) + "\n";
      }
    }
    return text;
  }
  std::string shape(ValueId id) const { return " " + type_and_shape(value(id)); }
  std::string keep(ValueId id) const { return value(id).keep ? " keep" : ""; }
};

class Dot : Pending {
 public:
  using Pending::Pending;

  std::string run() const {
    std::string text = dot_head("recorded");
    for (ValueId id : inputs_) {
      text += "  v" + number(id) + " [shape=ellipse, label=\"" + origin(graph_, id) + " " + text_of(id) + "\\n" +
              type_and_shape(value(id)) + place(id) + keep(id) + "];\n";
    }
    for (ValueId id : views_) {
      text += "  v" + number(id) + " [shape=ellipse, label=\"view " + text_of(id) + "\\n" + to_string(value(id).shape) +
              keep(id) + "];\n  v" + number(graph_.base(id)) + " -> v" + number(id) + " [style=dashed];\n";
    }
    std::size_t stores = 0;
    for (const Node& node : nodes_) {
      const bool store = node.output_count == 0;
      const std::string to = store ? "s" + number(stores++) : "v" + number(node.output);
      text += "  " + to + " [" + (store ? "shape=ellipse, " : "") + "label=\"" + call(graph_, node) + "\\n";
      text += store ? "to buffer " + number(node.destination) + "\""
                    : text_of(node.output) + " " + type_and_shape(value(node.output)) + keep(node.output);
      text += "];\n";
      std::set<ValueId> seen;
      for (ValueId in : graph_.inputs(node)) {
        if (seen.insert(in).second) text += "  v" + number(in) + " -> " + to + ";\n";
      }
      for (ValueId i = 1; i < node.output_count; ++i) {
        const ValueId id = node.output + i;
        text += "  v" + number(id) + " [label=\"" + text_of(id) + " " + to_string(value(id).shape) + keep(id) +
                "];\n  " + to + " -> v" + number(id) + " [style=dashed];\n";
      }
    }
    return text + "}\n";
  }

 private:
  // Ends the label.
  std::string keep(ValueId id) const { return value(id).keep ? ", keep\", peripheries=2" : "\""; }
};

class Json : Pending {
 public:
  using Pending::Pending;

  std::string run() const {
    return "{\n  \"stage\": \"recorded\",\n  \"inputs\": [" +
           join(inputs_, ",", [&](ValueId id) { return "\n    {" + input(id) + shape(id) + "}"; }) + "\n  ]," +
           views() + "\n  \"ops\": [" +
           join(nodes_, ",",
                [&](const Node& node) {
                  return "\n    {" + json_members(graph_, node) + (node.output == no_value ? "" : shape(node.output)) +
                         "}";
                }) +
           "\n  ]\n}\n";
  }

 private:
  // Only where there are some.
  std::string views() const {
    if (views_.empty()) return "";
    return "\n  \"views\": [" +
           join(views_, ",",
                [&](ValueId id) {
                  return "\n    {\"value\": " + number(id) + ", \"of\": " + number(graph_.base(id)) + shape(id) + "}";
                }) +
           "\n  ],";
  }

  std::string input(ValueId id) const {
    std::string text = "\"value\": " + number(id) + ", \"from\": " + json_string(origin(graph_, id));
    const Value& v = value(id);
    if (v.resource != no_resource) text += ", \"buffer\": " + number(v.resource);
    if (v.resource != no_resource && !v.imported) text += ", \"offset\": " + number(v.offset);
    return text;
  }

  std::string shape(ValueId id) const {
    const Value& v = value(id);
    const bool plain = v.weight || v.dtype == DType::f32;
    return (plain ? "" : ", \"dtype\": " + json_string(to_string(v.dtype))) + ", \"shape\": " + to_string(v.shape) +
           ", \"keep\": " + (v.keep ? "true" : "false");
  }
};

}  // namespace

std::string dump(const Graph& graph, DumpFormat format) {
  switch (format) {
    case DumpFormat::text: break;
    case DumpFormat::dot: return Dot(graph).run();
    case DumpFormat::json: return Json(graph).run();
  }
  return Text(graph).run();
}

}  // namespace brontes::record
