#include "plan/dump.hpp"

#include "plan/homes.hpp"

#include <algorithm>

namespace brontes::plan {

using record::join;
using record::json_list;
using record::json_members;
using record::json_string;
using record::number;
using record::text_of;
using record::ValueId;

Words::Words(const Plan& plan, const record::Graph& graph) : plan_(plan), graph_(graph), parts_(plan.groups.size()) {
  for (std::uint32_t i = 0; i < plan.dispatches.size(); ++i) parts_[plan.dispatches[i].group].push_back(i);
}

std::string Words::summary() const {
  std::string text = "plan: " + number(graph_.nodes().size() - graph_.first_pending_node()) + " ops, " +
                     number(plan_.dispatches.size()) + " dispatches, " + number(plan_.barriers.size()) +
                     " barriers, arena " + number(plan_.arena_bytes) + " bytes";
  if (plan_.arena_bytes != plan_.arena_bytes_without_reuse) {
    text += " (" + number(plan_.arena_bytes_without_reuse) + " without reuse)";
  }
  return text;
}

std::vector<std::uint32_t> Words::nodes(const Group& g) const {
  std::vector<std::uint32_t> all;
  if (g.prologue != no_prologue) {
    const ElementwiseProgram& prologue = plan_.prologues[g.prologue];
    for (std::size_t s = 0; s < prologue.step_count; ++s) all.push_back(prologue.steps[s].node);
  }
  if (g.root != no_node) all.push_back(g.root);
  for (std::size_t s = 0; s < g.program.step_count; ++s) all.push_back(g.program.steps[s].node);
  return all;
}

std::vector<std::uint32_t> Words::dropped() const {
  const std::size_t first = graph_.first_pending_node();
  std::vector<bool> runs(graph_.nodes().size() - first);
  for (const Group& g : plan_.groups) {
    for (std::uint32_t n : nodes(g)) runs[n - first] = true;
  }
  std::vector<std::uint32_t> all;
  for (std::size_t i = first; i < graph_.nodes().size(); ++i) {
    // What a store or a concat in no group does is done by the dispatches that make its operands.
    if (!runs[i - first] && graph_.nodes()[i].output_count != 0 && !is_home(graph_.nodes()[i].output)) {
      all.push_back(static_cast<std::uint32_t>(i));
    }
  }
  return all;
}

bool Words::is_home(ValueId value) const {
  return std::any_of(plan_.homes.begin(), plan_.homes.end(), [&](const Home& home) { return home.in == value; });
}

std::string Words::with_home(ValueId value) const {
  std::string text = text_of(value);
  for (const Home* home = Home::find(plan_.homes, value); home != nullptr;) {
    const bool buffer = home->in == record::no_value;
    text += " in " + (buffer ? "buffer " + number(home->resource) : text_of(home->in));
    if (!buffer || home->offset != 0) text += " at " + number(home->offset);
    home = buffer ? nullptr : Home::find(plan_.homes, home->in);
  }
  return text;
}

std::vector<ValueId> Words::inputs(const Group& g) const {
  std::vector<ValueId> all;
  if (g.root != no_node) {
    const record::Node& root = node(g.root);
    const auto operands = graph_.inputs(root);
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (root.op->moves == nullptr || !is_there(graph_, plan_.homes, root, k)) all.push_back(operands[k]);
    }
  }
  if (g.prologue != no_prologue) {
    // In place of the operand that they make.
    const ElementwiseProgram& prologue = plan_.prologues[g.prologue];
    all[0] = prologue.inputs[0].value;
    if (prologue.input_count > 1) all.insert(all.begin() + 1, prologue.inputs[1].value);
  }
  for (std::size_t i = 0; i < g.program.input_count; ++i) all.push_back(g.program.inputs[i].value);
  return all;
}

std::vector<ValueId> Words::outputs(const Group& g) const {
  std::vector<ValueId> all;
  const auto& p = g.program;
  for (std::size_t s = 0; s + 1 < p.step_count; ++s) {
    if ((g.written >> s & 1u) != 0) all.push_back(p.steps[s].result);
  }
  if (p.step_count != 0) {
    all.push_back(p.steps[p.step_count - 1].result);
  } else {
    // The last binding of an op with several results is that of the last one.
    for (ValueId i = 0; i < node(g.root).output_count; ++i) all.push_back(node(g.root).output + i);
  }
  return all;
}

std::vector<Words::Result> Words::results(std::uint32_t dispatch) const {
  const Dispatch& d = plan_.dispatches[dispatch];
  // Elementwise kernels write the last result to their first output; ops with several results have them in order.
  std::vector<ValueId> values;
  if (dispatch == parts(d).back()) values = outputs(group(d));
  const bool in_order = group(d).program.step_count == 0;
  if (in_order) std::reverse(values.begin(), values.end());
  std::vector<Result> all;
  for (std::size_t b = 0; b < d.binding_count; ++b) {
    if (!d.writes(b)) continue;
    all.push_back({values.empty() ? record::no_value : values.back(), d.bindings[b]});
    if (!values.empty()) values.pop_back();
  }
  if (!in_order) std::reverse(all.begin(), all.end());
  return all;
}

std::string Words::subject(const Hazard& h) const {
  if (h.region.resource != arena) return "buffer " + number(h.region.resource);
  if (plan_.dispatches[h.from].group == plan_.dispatches[h.to].group) return "partials";
  if (h.kind != HazardKind::read_after_write) return "reused memory at " + number(h.region.offset);
  for (const Result& r : results(h.from)) {
    const bool shares = r.region.resource == arena && r.region.offset < h.region.offset + h.region.bytes &&
                        h.region.offset < r.region.offset + r.region.bytes;
    if (shares && r.value != record::no_value) return text_of(r.value);
  }
  return "memory at " + number(h.region.offset);
}

std::string Words::grid(const Dispatch& d) {
  return number(d.groups[0]) + "x" + number(d.groups[1]) + "x" + number(d.groups[2]);
}

namespace {

class Text : Words {
 public:
  using Words::Words;

  std::string run() const {
    std::string text = summary() + "\n";
    for (std::uint32_t n : dropped()) text += "dropped " + sentence(graph_, node(n)) + "\n";
    for (const Placement& p : plan_.uploads) text += placement("upload", p);
    auto barrier = plan_.barriers.begin();
    std::size_t part = 0;
    for (std::uint32_t i = 0; i < plan_.dispatches.size(); ++i) {
      auto next_begins = [&](bool within) {
        const DispatchRange* next = part + 1 < plan_.submits.size() ? &plan_.submits[part + 1] : nullptr;
        return next != nullptr && next->begin == i && (next->begin_row != 0) == within;
      };
      if (next_begins(false)) text += "submit " + number(++part) + "\n";
      if (barrier != plan_.barriers.end() && barrier->before == i) {
        text += "barrier " + join(barrier->causes, ", ", [&](const Hazard& h) { return cause(h); }) + "\n";
        ++barrier;
      }
      text += dispatch(i);
      while (next_begins(true)) {
        ++part;
        text += "submit " + number(part) + " from row " + number(plan_.submits[part].begin_row) + " of #" + number(i) +
                "\n";
      }
    }
    for (const Placement& p : plan_.readable) text += placement("read", p);
    return text;
  }

 private:
  std::string placement(const char* what, const Placement& p) const {
    return std::string(what) + " " + text_of(p.value) + " " + to_string(graph_.values()[p.value].shape) + " at " +
           number(p.offset) + "\n";
  }

  std::string cause(const Hazard& h) const {
    return std::string(to_string(h.kind)) + " on " + subject(h) + " #" + number(h.from) + " -> #" + number(h.to);
  }

  std::string dispatch(std::uint32_t i) const {
    const Dispatch& d = plan_.dispatches[i];
    const Group& g = group(d);
    std::string text = "#" + number(i) + " " + kernels::get(d.kernel).name + " " +
                       join(nodes(g), "+", [&](std::uint32_t n) { return name(node(n)); });
    if (g.root != no_node) {
      if (const std::string more = record::detail(node(g.root)); !more.empty()) text += " " + more;
    }
    if (const auto in = inputs(g); !in.empty()) text += " " + join(in, ", ", text_of);
    return text + " -> " + target(d) + " groups " + grid(d) + "\n";
  }

  std::string target(const Dispatch& d) const {
    const Group& g = group(d);
    if (g.root != no_node && node(g.root).output_count == 0) return record::results(node(g.root));
    return join(outputs(g), ", ", [&](ValueId v) { return with_home(v); });
  }
};

class Json : Words {
 public:
  using Words::Words;

  std::string run() const {
    std::string text = "{\n  \"stage\": \"planned\",\n";
    text += "  \"operations\": " + number(graph_.nodes().size() - graph_.first_pending_node()) + ",\n";
    text += "  \"dropped_operations\": " + number(plan_.dropped_operations) + ",\n";
    text += "  \"fused_operations\": " + number(plan_.fused_operations) + ",\n";
    text += "  \"arena_bytes\": " + number(plan_.arena_bytes) + ",\n";
    text += "  \"arena_bytes_without_reuse\": " + number(plan_.arena_bytes_without_reuse) + ",\n";
    text += "  \"dropped\": " + ops(dropped()) + ",\n";
    text += "  \"uploads\": " + placements(plan_.uploads) + ",\n";
    text += "  \"readable\": " + placements(plan_.readable) + ",\n";
    text += "  \"submits\": [" +
            join(plan_.submits, ", ",
                 [](const DispatchRange& r) {
                   const bool parts = r.begin_row != 0 || r.end_row != 0;
                   return "[" + number(r.begin) + ", " + number(r.end) +
                          (parts ? ", " + number(r.begin_row) + ", " + number(r.end_row) : "") + "]";
                 }) +
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
  std::string ops(const std::vector<std::uint32_t>& all) const {
    return "[" + join(all, ", ", [&](std::uint32_t n) { return "{" + json_members(graph_, node(n)) + "}"; }) + "]";
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
    return "{\"index\": " + number(index) + ", \"level\": " + number(d.level) + ", \"group\": " + number(d.group) +
           ", \"kernel\": " + json_string(kernels::get(d.kernel).name) + ", \"groups\": " + json_list(d.groups) +
           ",\n     \"inputs\": " + json_list(inputs(group(d))) + ", \"outputs\": [" +
           join(results(index), ", ", [&](const Result& r) { return result(r); }) +
           "],\n     \"ops\": " + ops(nodes(group(d))) + "}";
  }

  std::string result(const Result& r) const {
    std::string text = "{";
    if (r.value != record::no_value) text += "\"value\": " + number(r.value) + ", ";
    const Home* home = Home::find(plan_.homes, r.value);
    if (home != nullptr && home->in != record::no_value) text += "\"in\": " + number(home->in) + ", ";
    if (r.region.resource != arena) text += "\"buffer\": " + number(r.region.resource) + ", ";
    return text + "\"offset\": " + number(r.region.offset) + ", \"bytes\": " + number(r.region.bytes) + "}";
  }

  std::string hazard(const Hazard& h) const {
    return std::string("{\"kind\": \"") + to_string(h.kind) + "\", \"on\": " + json_string(subject(h)) +
           ", \"from\": " + number(h.from) + ", \"to\": " + number(h.to) + "}";
  }
};

}  // namespace

std::string dump(const Plan& plan, const record::Graph& graph, DumpFormat format) {
  switch (format) {
    case DumpFormat::text: break;
    case DumpFormat::dot: return dump_dot(plan, graph);
    case DumpFormat::json: return Json(plan, graph).run();
  }
  return Text(plan, graph).run();
}

}  // namespace brontes::plan
