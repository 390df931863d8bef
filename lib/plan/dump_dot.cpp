// A plan as a picture: a box per dispatch with the ops it fuses, levels in frames, and between dispatches
// the values that pass and the hazards that a barrier is for.
#include "plan/dump.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace brontes::plan {
namespace {

using record::join;
using record::number;
using record::text_of;
using record::ValueId;

// In labels of record shapes these characters draw.
std::string escaped(const std::string& text) {
  std::string all;
  for (char c : text) {
    if (c == '<' || c == '>' || c == '{' || c == '}' || c == '|') all += '\\';
    all += c;
  }
  return all;
}

std::string edge(const std::string& from, const std::string& to, const std::string& attributes = "") {
  return "  " + from + " -> " + to + (attributes.empty() ? "" : " [" + attributes + "]") + ";\n";
}

std::string ellipse(const std::string& id, const std::string& label) {
  return "  " + id + " [shape=ellipse, label=\"" + label + "\"];\n";
}

constexpr const char* faded = "style=dashed, color=gray";

class Dot : Words {
 public:
  Dot(const Plan& plan, const record::Graph& graph) : Words(plan, graph), dropped_(dropped()) {
    for (const Placement& p : plan.uploads) source_[p.value] = "v" + number(p.value);
    for (std::uint32_t n : dropped_) {
      for (ValueId i = 0; i < node(n).output_count; ++i) source_[node(n).output + i] = "n" + number(n);
    }
    for (std::uint32_t i = 0; i < plan.dispatches.size(); ++i) {
      for (ValueId out : outputs(group(plan.dispatches[i]))) {
        source_[out] = "d" + number(i);
        maker_[out] = i;
      }
    }
  }

  std::string run() {
    std::string text = record::dot_head("plan") + "  label=\"" + summary();
    if (!plan_.barriers.empty()) text += "\\lred: what the barrier between two levels is for";
    text += "\\l\";\n";
    for (const Placement& p : plan_.uploads) text += ellipse("v" + number(p.value), "upload " + place(p));
    text += submits();
    if (!dropped_.empty()) text += unused();
    text += operands();
    text += between();
    text += stores();
    for (const Placement& p : plan_.readable) {
      text += ellipse("r" + number(p.value), "read " + place(p));
      for (ValueId piece : pieces(p.value)) {
        // Nothing makes a result without elements.
        if (auto from = source_.find(piece); from != source_.end()) text += edge(from->second, "r" + number(p.value));
      }
    }
    return text + "}\n";
  }

 private:
  // The values that a value is put together of by those who make them; itself if it is not, or not entirely.
  std::vector<ValueId> pieces(ValueId id) const {
    std::vector<ValueId> all;
    for (const Home& home : plan_.homes) {
      if (home.in != graph_.base(id)) continue;
      const std::vector<ValueId> inside = pieces(home.of);
      all.insert(all.end(), inside.begin(), inside.end());
    }
    if (all.empty() || source_.count(id) != 0) all.push_back(id);
    return all;
  }

  std::string shape(ValueId id) const { return to_string(graph_.values()[id].shape); }

  std::string place(const Placement& p) const {
    return text_of(p.value) + "\\n" + shape(p.value) + " at " + number(p.offset);
  }

  std::string submits() const {
    std::string text;
    const bool several = plan_.submits.size() > 1;
    for (std::size_t s = 0; s < plan_.submits.size(); ++s) {
      const DispatchRange range = plan_.submits[s];
      if (several) text += "  subgraph cluster_submit" + number(s) + " {\n    label=\"submit " + number(s) + "\";\n";
      // What goes on from the submit before is shown there.
      for (std::uint32_t i = range.begin + (range.begin_row != 0 ? 1 : 0); i < range.end;) {
        const std::uint32_t level = plan_.dispatches[i].level;
        // A level may go on in the next submit.
        text += "  subgraph cluster_level" + number(level) + (several ? "_" + number(s) : "") +
                " {\n    label=\"level " + number(level) + "\"; style=dashed; color=gray;\n" +
                "    node [shape=record, style=filled, fillcolor=gray97];\n";
        for (; i < range.end && plan_.dispatches[i].level == level; ++i) text += "    " + dispatch(i);
        text += "  }\n";
      }
      if (several) text += "  }\n";
    }
    return text;
  }

  std::string dispatch(std::uint32_t i) const {
    const Dispatch& d = plan_.dispatches[i];
    std::string label = "#" + number(i) + " " + kernels::get(d.kernel).name;
    if (const auto& all = parts(d); all.size() > 1) {
      label += " (part " + number(static_cast<std::uint64_t>(std::find(all.begin(), all.end(), i) - all.begin()) + 1) +
               " of " + number(all.size()) + ")";
    }
    label += "|";
    for (std::uint32_t n : nodes(group(d))) label += escaped(sentence(graph_, node(n))) + "\\l";
    label += "|groups " + grid(d) + "\\l" + join(results(i), "", [&](const Result& r) { return written(r); });
    return "d" + number(i) + " [label=\"{" + label + "}\"];\n";
  }

  std::string written(const Result& r) const {
    if (Home::find(plan_.homes, r.value) != nullptr) return with_home(r.value) + "\\l";
    const std::string what = r.value != record::no_value ? text_of(r.value) + " " : "";
    if (r.region.resource != arena) return what + "in buffer " + number(r.region.resource) + "\\l";
    return (what.empty() ? "partials " : what) + "at " + number(r.region.offset) + "\\l";
  }

  std::string unused() const {
    std::string text = "  subgraph cluster_dropped {\n    label=\"dropped: nothing can read them\"; ";
    text += "style=dashed; color=gray; fontcolor=gray50;\n";
    for (std::uint32_t n : dropped_) {
      text += "    n" + number(n) + " [label=\"" + sentence(graph_, node(n)) +
              "\", style=\"rounded,dashed\", color=gray, fontcolor=gray50];\n";
    }
    return text + "  }\n";
  }

  // Where a value comes from; buffers are drawn when somebody asks for them.
  std::string source(ValueId id, std::string& text) {
    const record::Value& value = graph_.values()[id];
    if (value.resource != record::no_resource && source_.try_emplace(id, "v" + number(id)).second) {
      const std::string at = value.imported ? "" : " at " + number(value.offset);
      text += ellipse("v" + number(id), std::string(origin(graph_, id)) + " " + text_of(id) + "\\n" + shape(id) +
                                            " in buffer " + number(value.resource) + at);
    }
    auto from = source_.find(id);
    return from == source_.end() ? "" : from->second;
  }

  // Edges from what was there before, and to what is dropped.
  std::string operands() {
    std::string text;
    auto connect = [&](const std::vector<ValueId>& values, const std::string& to, const char* attributes) {
      for (ValueId in : std::set<ValueId>(values.begin(), values.end())) {
        if (const std::string from = source(in, text); !from.empty()) text += edge(from, to, attributes);
      }
    };
    for (std::uint32_t i = 0; i < plan_.dispatches.size(); ++i) {
      const Dispatch& d = plan_.dispatches[i];
      if (i != parts(d).front()) continue;
      std::vector<ValueId> outside = inputs(group(d));
      std::erase_if(outside, [&](ValueId in) { return maker_.count(pieces(in).front()) != 0; });
      connect(outside, "d" + number(i), "");
    }
    for (std::uint32_t n : dropped_) {
      const auto in = graph_.inputs(node(n));
      connect({in.begin(), in.end()}, "n" + number(n), faded);
    }
    return text;
  }

  // Of the parts of the group of `d`: an epilogue's operands are for the last.
  std::uint32_t first_reader(const Dispatch& d, std::uint32_t maker, ValueId value) const {
    for (const Result& r : results(maker)) {
      if (r.value != value) continue;
      for (std::uint32_t i : parts(d)) {
        const Dispatch& part = plan_.dispatches[i];
        for (std::size_t b = 0; b < part.binding_count; ++b) {
          const Region& in = part.bindings[b];
          if (part.reads(b) && in.resource == r.region.resource && in.offset <= r.region.offset &&
              in.offset + in.bytes >= r.region.offset + r.region.bytes) {
            return i;
          }
        }
      }
    }
    return parts(d).front();
  }

  // Edges between dispatches: values, and in front of them the hazard where it needed a barrier.
  std::string between() const {
    struct Link {
      std::map<std::string, std::set<HazardKind>> subjects;
      bool data = false;     // something is read that was written
      bool barrier = false;  // one stands between them because of it
    };
    std::map<std::pair<std::uint32_t, std::uint32_t>, Link> links;
    for (std::uint32_t i = 0; i < plan_.dispatches.size(); ++i) {
      const Dispatch& d = plan_.dispatches[i];
      if (i != parts(d).front()) continue;
      for (ValueId in : inputs(group(d))) {
        for (ValueId piece : pieces(in)) {
          auto from = maker_.find(piece);
          if (from == maker_.end()) continue;
          Link& link = links[{from->second, first_reader(d, from->second, piece)}];
          link.subjects[text_of(piece)];
          link.data = true;
        }
      }
    }
    for (const Barrier& b : plan_.barriers) {
      for (const Hazard& h : b.causes) {
        Link& link = links[{h.from, h.to}];
        link.subjects[subject(h)].insert(h.kind);
        link.data |= h.kind == HazardKind::read_after_write;
        link.barrier = true;
      }
    }
    std::string text;
    for (const auto& [ends, link] : links) {
      const std::string label = join(link.subjects, "\\n", [](const auto& s) {
        const std::string hazards = join(s.second, ", ", [](HazardKind kind) { return to_string(kind); });
        return hazards.empty() ? s.first : hazards + " " + s.first;
      });
      text += edge("d" + number(ends.first), "d" + number(ends.second),
                   "label=\"" + label + "\"" + (link.barrier ? ", color=firebrick, fontcolor=firebrick" : "") +
                       (link.data ? "" : ", style=dotted"));
    }
    return text;
  }

  std::string stores() const {
    std::string text;
    for (std::uint32_t i = 0; i < plan_.dispatches.size(); ++i) {
      if (i != parts(plan_.dispatches[i]).back()) continue;
      for (const Result& r : results(i)) {
        if (r.region.resource == arena) continue;
        text += ellipse("s" + number(i), "store\\nbuffer " + number(r.region.resource));
        text += edge("d" + number(i), "s" + number(i));
      }
    }
    return text;
  }

  std::vector<std::uint32_t> dropped_;
  std::map<ValueId, std::string> source_;   // the node that makes or holds a value
  std::map<ValueId, std::uint32_t> maker_;  // the last dispatch of its group
};

}  // namespace

std::string dump_dot(const Plan& plan, const record::Graph& graph) { return Dot(plan, graph).run(); }

}  // namespace brontes::plan
