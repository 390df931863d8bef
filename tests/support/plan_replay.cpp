#include "support/plan_replay.hpp"

#include "plan/params.hpp"

#include <cstring>
#include <map>
#include <string_view>

namespace brontes::test {
namespace {

using plan::Dispatch;
using plan::Region;
using record::Node;
using record::NodeKind;
using record::ResourceId;
using record::ValueId;

// What one word holds: word `index` of something.
struct Word {
  enum Kind : std::uint8_t { garbage, initial, value, stored, partial } kind = garbage;
  std::uint8_t pass = 0;  // of a partial
  std::uint32_t id = 0;   // resource, value or node
  std::uint32_t index = 0;

  friend bool operator==(const Word&, const Word&) = default;
};

std::string text(const Word& w) {
  const std::string id = std::to_string(w.id);
  const std::string index = "[" + std::to_string(w.index) + "]";
  switch (w.kind) {
    case Word::garbage: return "garbage";
    case Word::initial: return "what was in buffer " + id + index;
    case Word::value: return "%" + id + index;
    case Word::stored: return "what op " + id + " stored" + index;
    case Word::partial: return "partial " + std::to_string(w.pass) + " of op " + id + index;
  }
  return "?";
}

std::vector<Word> words(Word::Kind kind, std::uint32_t id, std::uint64_t bytes, std::uint8_t pass = 0) {
  std::vector<Word> all(bytes / 4);
  for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = {kind, pass, id, i};
  return all;
}

class Memory {
 public:
  std::vector<Word> read(const Region& r) {
    std::vector<Word>& m = at_least(r);
    return {m.begin() + static_cast<std::ptrdiff_t>(r.offset / 4),
            m.begin() + static_cast<std::ptrdiff_t>((r.offset + r.bytes) / 4)};
  }
  void write(const Region& r, const std::vector<Word>& content) {
    std::vector<Word>& m = at_least(r);
    for (std::size_t i = 0; i < content.size() && i < r.bytes / 4; ++i) m[r.offset / 4 + i] = content[i];
  }
  const std::map<ResourceId, std::vector<Word>>& all() const { return memory_; }

 private:
  std::vector<Word>& at_least(const Region& r) {
    std::vector<Word>& m = memory_[r.resource];
    while (m.size() < (r.offset + r.bytes) / 4) {
      const Word fresh{Word::initial, 0, r.resource, static_cast<std::uint32_t>(m.size())};
      m.push_back(r.resource == plan::arena ? Word{} : fresh);
    }
    return m;
  }

  std::map<ResourceId, std::vector<Word>> memory_;
};

class Replay {
 public:
  Replay(const plan::Plan& plan, const record::Graph& graph) : plan_(plan), graph_(graph) {}

  std::vector<std::string> run() {
    run_recording();
    place_uploads();
    for (const Dispatch& d : plan_.dispatches) ++passes_[d.node];
    for (std::size_t i = 0; i < plan_.dispatches.size(); ++i) {
      current_ = i;
      run_dispatch(plan_.dispatches[i]);
    }
    check_everything_ran();
    check_readable();
    check_resources();
    return objections_;
  }

 private:
  void object(const std::string& what) { objections_.push_back(what); }
  void object_here(const std::string& what) {
    const Dispatch& d = plan_.dispatches[current_];
    object("#" + std::to_string(current_) + " (" + record::name(graph_.nodes()[d.node]) + ") " + what);
  }

  // Recording order: values never change, so only resources need memory.
  void run_recording() {
    for (std::size_t n = graph_.first_pending_node(); n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      for (std::size_t i = 0; i < node.input_count; ++i) {
        const record::Value& v = graph_.values()[node.inputs[i]];
        operands_[{n, i}] = v.resource == record::no_resource ? words(Word::value, node.inputs[i], v.bytes())
                                                              : recorded_.read({v.resource, v.offset, v.bytes()});
      }
      if (node.kind == NodeKind::store) {
        const std::uint64_t bytes = graph_.values()[node.inputs[0]].bytes();
        recorded_.write({node.store.resource, 0, bytes}, words(Word::stored, static_cast<std::uint32_t>(n), bytes));
      }
    }
  }

  void place_uploads() {
    if (plan_.uploads.size() != graph_.uploads().size()) {
      object(std::to_string(plan_.uploads.size()) + " uploads are placed, " + std::to_string(graph_.uploads().size()) +
             " were recorded");
      return;
    }
    for (std::size_t i = 0; i < plan_.uploads.size(); ++i) {
      const plan::Placement& p = plan_.uploads[i];
      const ValueId id = graph_.uploads()[i].value;
      if (p.value != id || p.bytes != graph_.values()[id].bytes()) {
        object("upload " + std::to_string(i) + " is placed as %" + std::to_string(p.value) + " of " +
               std::to_string(p.bytes) + " bytes");
      }
      memory_.write({plan::arena, p.offset, p.bytes}, words(Word::value, id, p.bytes));
    }
  }

  // The region of a binding the specialised kernel uses, or nothing.
  const Region* bound(const Dispatch& d, std::string_view name) const {
    const auto& bindings = kernels::get(d.kernel).bindings;
    for (std::size_t i = 0; i < bindings.size; ++i) {
      if (bindings[i].name == name) return (d.used >> i & 1u) != 0 ? &d.bindings[i] : nullptr;
    }
    return nullptr;
  }

  void expect(const Dispatch& d, std::string_view binding, const std::vector<Word>& expected) {
    const Region* region = bound(d, binding);
    const std::string operand(binding);
    if (region == nullptr) {
      if (!expected.empty()) object_here("does not read its operand " + operand);
      return;
    }
    if (region->offset % 4 != 0 || region->bytes != expected.size() * 4) {
      object_here("reads " + std::to_string(region->bytes) + " bytes at " + std::to_string(region->offset) + " as " +
                  operand + ", which has " + std::to_string(expected.size() * 4));
      return;
    }
    const std::vector<Word> found = memory_.read(*region);
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i] == expected[i]) continue;
      object_here("finds " + text(found[i]) + " in " + operand + ", not " + text(expected[i]));
      return;
    }
  }

  void expect_unused(const Dispatch& d, std::string_view binding) {
    if (bound(d, binding) != nullptr) object_here("reads " + std::string(binding) + " and has no such operand");
  }

  void produce(const Dispatch& d, std::string_view binding, const std::vector<Word>& content) {
    const Region* region = bound(d, binding);
    if (region == nullptr || region->offset % 4 != 0 || region->bytes != content.size() * 4) {
      object_here("does not write the " + std::to_string(content.size() * 4) + " bytes of its result");
      return;
    }
    memory_.write(*region, content);
  }

  std::vector<Word> result_of(const Node& node) const {
    return words(Word::value, node.output, graph_.values()[node.output].bytes());
  }

  void run_dispatch(const Dispatch& d) {
    const Node& node = graph_.nodes()[d.node];
    const std::uint32_t pass = seen_[d.node]++;
    switch (node.kind) {
      case NodeKind::elementwise: return run_elementwise(d, node, result_of(node));
      case NodeKind::store: {
        const std::uint64_t bytes = graph_.values()[node.inputs[0]].bytes();
        const Region* out = bound(d, "out0");
        if (out == nullptr || *out != Region{node.store.resource, 0, bytes}) object_here("stores to the wrong place");
        return run_elementwise(d, node, words(Word::stored, d.node, bytes));
      }
      case NodeKind::reduce: return run_reduce(d, node, pass);
      case NodeKind::matmul:
        if (node.matmul.k == 0) return produce(d, "out0", result_of(node));
        return run_matmul(d, node, pass);
    }
  }

  void run_elementwise(const Dispatch& d, const Node& node, const std::vector<Word>& result) {
    if (passes_[d.node] != 1) object_here("is dispatched more than once");
    constexpr std::string_view inputs[] = {"in0", "in1", "in2", "in3"};
    for (std::size_t i = 0; i < std::size(inputs); ++i) {
      if (i < node.input_count) {
        expect(d, inputs[i], operands_[{d.node, i}]);
      } else {
        expect_unused(d, inputs[i]);
      }
    }
    produce(d, "out0", result);
  }

  void run_reduce(const Dispatch& d, const Node& node, std::uint32_t pass) {
    if (pass == 0) {
      expect(d, "in0", operands_[{d.node, 0}]);
      if (node.input_count == 2) expect(d, "in1", operands_[{d.node, 1}]);
    } else {
      expect(d, "in0", partials_[d.node]);
    }
    if (pass != 0 || node.input_count == 1) expect_unused(d, "in1");
    if (pass + 1 == passes_[d.node]) return produce(d, "out0", result_of(node));
    const Region* out = bound(d, "out0");
    partials_[d.node] = words(Word::partial, d.node, out == nullptr ? 0 : out->bytes, static_cast<std::uint8_t>(pass));
    produce(d, "out0", partials_[d.node]);
  }

  void run_matmul(const Dispatch& d, const Node& node, std::uint32_t pass) {
    plan::MatmulParams params;
    std::memcpy(&params, d.push.data(), sizeof params);
    expect(d, "a", operands_[{d.node, 0}]);
    expect(d, "b", operands_[{d.node, 1}]);
    if (params.k_begin != k_done_[d.node]) {
      object_here("starts at k = " + std::to_string(params.k_begin) + ", not " + std::to_string(k_done_[d.node]));
    }
    if ((params.accumulate != 0) != (pass != 0)) object_here("accumulates onto nothing, or not at all");
    if (params.accumulate != 0) expect(d, "c", partials_[d.node]);
    k_done_[d.node] += params.k_count;
    const bool last = pass + 1 == passes_[d.node];
    partials_[d.node] =
        last ? result_of(node)
             : words(Word::partial, d.node, graph_.values()[node.output].bytes(), static_cast<std::uint8_t>(pass));
    produce(d, "c", partials_[d.node]);
    if (last && k_done_[d.node] != node.matmul.k) object_here("stops short of k");
  }

  void check_everything_ran() {
    for (std::size_t n = graph_.first_pending_node(); n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      const ValueId result = node.kind == NodeKind::store ? node.inputs[0] : node.output;
      if (graph_.values()[result].bytes() != 0 && passes_[static_cast<std::uint32_t>(n)] == 0) {
        object("op " + std::to_string(n) + " (" + record::name(node) + ") never runs");
      }
    }
  }

  void check_readable() {
    std::vector<bool> placed(graph_.values().size(), false);
    for (const plan::Placement& p : plan_.readable) {
      placed[p.value] = true;
      const std::vector<Word> expected = words(Word::value, p.value, graph_.values()[p.value].bytes());
      if (memory_.read({plan::arena, p.offset, p.bytes}) != expected) {
        object("%" + std::to_string(p.value) + " is not where it will be read");
      }
    }
    for (std::size_t v = graph_.first_pending_value(); v < graph_.values().size(); ++v) {
      if (graph_.values()[v].resource != record::no_resource || placed[v]) continue;
      if (graph_.readable(static_cast<ValueId>(v), false)) object("%" + std::to_string(v) + " cannot be read");
    }
  }

  void check_resources() {
    for (const auto& [resource, recorded] : recorded_.all()) {
      if (memory_.read({resource, 0, recorded.size() * 4}) != recorded) {
        object("buffer " + std::to_string(resource) + " ends up with something else");
      }
    }
    for (const auto& [resource, content] : memory_.all()) {
      if (resource == plan::arena) continue;
      if (recorded_.read({resource, 0, content.size() * 4}) != content) {
        object("buffer " + std::to_string(resource) + " is written where nothing was stored");
      }
    }
  }

  const plan::Plan& plan_;
  const record::Graph& graph_;
  std::size_t current_ = 0;
  Memory recorded_;
  Memory memory_;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<Word>> operands_;  // by node and input
  std::map<std::uint32_t, std::uint32_t> passes_;                              // dispatches by node
  std::map<std::uint32_t, std::uint32_t> seen_;
  std::map<std::uint32_t, std::vector<Word>> partials_;  // what the last pass of a node left for the next
  std::map<std::uint32_t, std::uint64_t> k_done_;
  std::vector<std::string> objections_;
};

}  // namespace

std::vector<std::string> replay(const plan::Plan& plan, const record::Graph& graph) {
  return Replay(plan, graph).run();
}

}  // namespace brontes::test
