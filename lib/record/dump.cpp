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
    for (const Node& node : nodes_) {
      outside.insert(node.inputs.begin(), node.inputs.begin() + node.input_count);
    }
    for (const Node& node : nodes_) outside.erase(node.output);
    inputs_.assign(outside.begin(), outside.end());
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
    for (ValueId id : inputs_) text += origin(graph_, id) + (" " + text_of(id)) + shape(id) + place(id) + keep(id);
    for (const Node& node : nodes_) {
      text += sentence(node);
      text += node.output == no_value ? "\n" : shape(node.output) + keep(node.output);
    }
    return text;
  }

 private:
  std::string shape(ValueId id) const { return " " + to_string(value(id).shape); }
  std::string keep(ValueId id) const { return value(id).keep ? " keep\n" : "\n"; }
};

class Dot : Pending {
 public:
  using Pending::Pending;

  std::string run() const {
    std::string text = dot_head("recorded");
    for (ValueId id : inputs_) {
      text += "  v" + number(id) + " [shape=ellipse, label=\"" + origin(graph_, id) + " " + text_of(id) + "\\n" +
              to_string(value(id).shape) + place(id) + keep(id) + "];\n";
    }
    std::size_t stores = 0;
    for (const Node& node : nodes_) {
      const bool store = node.output == no_value;
      const std::string to = store ? "s" + number(stores++) : "v" + number(node.output);
      text += "  " + to + " [" + (store ? "shape=ellipse, " : "") + "label=\"" + call(node) + "\\n";
      text += store ? "to buffer " + number(node.store.resource) + "\""
                    : text_of(node.output) + " " + to_string(value(node.output).shape) + keep(node.output);
      text += "];\n";
      for (std::size_t i = 0; i < node.input_count; ++i) {
        if (i > 0 && node.inputs[i] == node.inputs[0]) continue;
        text += "  v" + number(node.inputs[i]) + " -> " + to + ";\n";
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
           join(inputs_, ",", [&](ValueId id) { return "\n    {" + input(id) + shape(id) + "}"; }) +
           "\n  ],\n  \"ops\": [" +
           join(nodes_, ",",
                [&](const Node& node) {
                  return "\n    {" + json_members(node) + (node.output == no_value ? "" : shape(node.output)) + "}";
                }) +
           "\n  ]\n}\n";
  }

 private:
  std::string input(ValueId id) const {
    std::string text = "\"value\": " + number(id) + ", \"from\": " + json_string(origin(graph_, id));
    const Value& v = value(id);
    if (v.resource != no_resource) text += ", \"buffer\": " + number(v.resource);
    if (v.resource != no_resource && !v.imported) text += ", \"offset\": " + number(v.offset);
    return text;
  }

  std::string shape(ValueId id) const {
    return ", \"shape\": " + to_string(value(id).shape) + ", \"keep\": " + (value(id).keep ? "true" : "false");
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
