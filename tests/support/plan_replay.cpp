#include "support/plan_replay.hpp"

#include "support/kernel_model.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace brontes::test {
namespace {

using plan::Dispatch;
using plan::Group;
using plan::Region;
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
      const bool last = --left[d.group] == 0;
      if (is_opaque(plan_.groups[d.group])) {
        run_opaque(d, last);
      } else {
        run_elementwise(d, memory_, object_);
        if (passes[d.group] > most_passes(plan_.groups[d.group])) object_here("is dispatched too often");
      }
      if (last) check_outputs(d);
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
      const Region region{plan::arena, p.offset, p.bytes, graph_.value(id).half()};
      if (p.value != id || p.bytes != words.size() * region.element_bytes()) {
        object("upload " + std::to_string(i) + " is placed as %" + std::to_string(p.value) + " of " +
               std::to_string(p.bytes) + " bytes");
        continue;
      }
      memory_.write(region, words);
    }
  }

  // The first word that is not as expected, as text; nothing when all are.
  std::string difference(const Region& region, const std::vector<Symbol>& expected) {
    if (region.bytes != expected.size() * region.element_bytes()) {
      return std::to_string(region.bytes) + " bytes, not " + std::to_string(expected.size() * region.element_bytes());
    }
    const std::vector<Symbol> found = memory_.read(region);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (found[i] != expected[i]) return recorded_.name(found[i]) + ", not " + recorded_.name(expected[i]);
    }
    return "";
  }

  void check_output(const Region& region, const std::vector<Symbol>& expected, const std::string& name) {
    const std::string other = difference(region, expected);
    if (!other.empty()) object_here("leaves in " + name + ": " + other);
  }

  // Of an op with a kernel of its own it is only known what it may touch: its operands, what an earlier dispatch of it
  // left behind, and its result. What it computes is for the tests on devices.
  bool is_opaque(const Group& group) const {
    return group.root != plan::no_node && graph_.nodes()[group.root].op->moves == nullptr;
  }

  // A store to a slice is preceded by a copy if it reads the buffer that it writes; what has many operands need not
  // move them all at once.
  std::uint32_t most_passes(const Group& group) const {
    if (group.root == plan::no_node) return 1;
    const record::Node& root = graph_.nodes()[group.root];
    return root.op->fills ? 1 : std::max(2u, root.input_count);
  }

  struct Opaque {
    struct Write {
      Region region;
      std::vector<Symbol> words;
      std::uint32_t pass;
      bool read = false;  // by a later dispatch of the group
    };
    std::vector<Write> writes;            // in the order they were made, without those that were written over
    std::vector<std::uint64_t> operands;  // contents of those that were read
  };

  static bool contains(const Region& outer, const Region& inner) {
    return outer.resource == inner.resource && outer.offset <= inner.offset &&
           inner.offset + inner.bytes <= outer.offset + outer.bytes;
  }

  void run_opaque(const Dispatch& d, bool last) {
    const Group& group = plan_.groups[d.group];
    const record::Node& root = graph_.nodes()[group.root];
    Opaque& state = opaque_[d.group];
    const Touched touch = touched(d);
    const unsigned used = touch.read | touch.written;
    // Whoever has no elements to read has nothing to bind.
    if ((d.used & ~used) != 0 || ((used & ~d.used) != 0 && !has_empty_operand(root))) {
      object_here("is said to use bindings " + std::to_string(d.used) + " and uses " + std::to_string(used));
    }
    if (!knows_its_halves(d)) object_here("takes f16 for f32, or the other way round");
    const bool epilogue = has_epilogue(d);
    const bool prologue = has_prologue(d);
    if (epilogue && !last) object_here("runs an epilogue on partial results");
    for (std::size_t b = 0; b < d.binding_count; ++b) {
      const std::string name = kernels::get(d.kernel).bindings[b].name;
      const bool extra =
          (epilogue && (name == "extra1" || name == "extra2")) || (prologue && (name == "in0" || name == "extra0"));
      if ((touch.read & d.used) >> b & 1u && !extra) read_opaque(state, group, d, d.bindings[b]);
    }
    if (prologue) {
      const std::vector<Symbol> words =
          run_prologue(d, memory_, object_, graph_.value(graph_.inputs(root)[0]).shape.count());
      read_operand(state, group, Symbols::contents(words.data(), words.size()));
    }
    std::vector<Symbol> result;
    for (std::size_t b = 0; b < d.binding_count; ++b) {
      if (((touch.written & d.used) >> b & 1u) == 0) continue;
      const Region& r = d.bindings[b];
      std::erase_if(state.writes, [&](const Opaque::Write& w) { return contains(r, w.region); });
      Opaque::Write write{r, std::vector<Symbol>(r.bytes / r.element_bytes()), d.pass};
      for (std::size_t i = 0; i < write.words.size(); ++i) write.words[i] = Symbols::scratch(current_, b, i);
      memory_.write(r, write.words);
      state.writes.push_back(std::move(write));
    }
    if (last) finish_opaque(d, group, state);
  }

  bool has_empty_operand(const record::Node& node) const {
    for (ValueId v : graph_.inputs(node)) {
      if (graph_.value(v).shape.count() == 0) return true;
    }
    return false;
  }

  void read_opaque(Opaque& state, const Group& group, const Dispatch& d, const Region& r) {
    const std::vector<Symbol> found = memory_.read(r);
    for (auto w = state.writes.rbegin(); w != state.writes.rend(); ++w) {
      if (!contains(w->region, r)) continue;
      w->read = true;
      if (w->pass >= d.pass) object_here("reads what a later pass has written");
      const Symbol* expected = w->words.data() + (r.offset - w->region.offset) / r.element_bytes();
      if (w->region.half != r.half || !std::equal(found.begin(), found.end(), expected)) {
        object_here("finds partial results changed");
      }
      return;
    }
    read_operand(state, group, Symbols::contents(found.data(), found.size()));
  }

  void read_operand(Opaque& state, const Group& group, std::uint64_t contents) {
    const auto& operands = recorded_.operands[group.root];
    if (std::find(operands.begin(), operands.end(), contents) == operands.end()) {
      object_here("reads something that is none of its operands");
    }
    state.operands.push_back(contents);
  }

  // Every operand has been read, and what was written and not read again is the result.
  void finish_opaque(const Dispatch& d, const Group& group, Opaque& state) {
    const record::Node& root = graph_.nodes()[group.root];
    const auto& operands = recorded_.operands[group.root];
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (graph_.value(graph_.inputs(root)[k]).shape.count() == 0) continue;
      if (std::find(state.operands.begin(), state.operands.end(), operands[k]) == state.operands.end()) {
        object_here("does not read operand " + std::to_string(k));
      }
    }
    std::vector<Region> results;
    for (const Opaque::Write& w : state.writes) {
      if (!w.read) results.push_back(w.region);
    }
    std::sort(results.begin(), results.end(), [](const Region& x, const Region& y) {
      return std::pair(x.resource, x.offset) < std::pair(y.resource, y.offset);
    });
    // Several results have the order of their bindings, where one dispatch writes them all.
    std::vector<Region> in_order;
    const Touched touch = touched(d);
    for (std::size_t b = 0; root.output_count > 1 && b < d.binding_count; ++b) {
      const bool result = std::find(results.begin(), results.end(), d.bindings[b]) != results.end();
      if (((touch.written & d.used) >> b & 1u) != 0 && result) in_order.push_back(d.bindings[b]);
    }
    if (in_order.size() == results.size()) results = in_order;
    for (std::size_t i = 1; root.output_count == 1 && i < results.size();) {
      Region& before = results[i - 1];
      if (before.resource != results[i].resource || before.offset + before.bytes != results[i].offset) {
        ++i;
        continue;
      }
      before.bytes += results[i].bytes;
      results.erase(results.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (results.size() != root.output_count) {
      object_here("leaves " + std::to_string(results.size()) + " results, not " + std::to_string(root.output_count));
      return;
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      std::vector<Symbol> words(results[i].bytes / results[i].element_bytes());
      for (std::size_t j = 0; j < words.size(); ++j) words[j] = Symbols::opaque(root, operands, i, j);
      if (has_epilogue(d)) run_epilogue(d, memory_, object_, words);
      memory_.write(results[i], words);
      const ValueId value = group.program.step_count == 0 ? root.output + static_cast<ValueId>(i)
                                                          : group.program.steps[group.program.step_count - 1].result;
      check_output(results[i], recorded_.values[value], "%" + std::to_string(value));
    }
  }

  // What the last dispatch of a group wrote is what the group says it is.
  void check_outputs(const Dispatch& d) {
    const Group& group = plan_.groups[d.group];
    const auto& program = group.program;
    if (is_opaque(group)) return;
    if (d.kernel == kernels::Id::transpose) {
      const ValueId value = program.steps[0].result;
      check_output(d.bindings[binding(d, "out0")], recorded_.values[value], "%" + std::to_string(value));
      if (program.step_count != 1) object_here("does more than transpose");
      return;
    }
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
        check_output(d.bindings[binding(d, outputs[o])], recorded_.values[value], "%" + std::to_string(value));
      }
      if (written != group.written) object_here("does not write what its group says");
      return;
    }
    const record::Node& root = graph_.nodes()[group.root];
    // Of a result, a part may still be missing, which whoever makes it writes in place: it is checked when it is read.
    if (root.output_count != 0) return;
    const auto& expected = recorded_.moved[group.root][0];
    const Region& out = d.bindings[binding(d, "out0")];
    if (!root.op->fills) return check_scattered(root, expected, out);
    check_output(out, expected, "buffer " + std::to_string(root.destination));
    if (out != Region{root.destination, 0, expected.size() * out.element_bytes(), out.half}) {
      object_here("stores to the wrong place");
    }
  }

  // Every element lies where it belongs, within what the dispatch is said to write. What lies between them is checked
  // by whoever reads it, and in the end.
  void check_scattered(const record::Node& store, const std::vector<Symbol>& expected, const Region& out) {
    const std::vector<std::size_t> to = destinations(graph_, store, 0);
    for (std::size_t i = 0; i < to.size(); ++i) {
      const std::uint64_t size = out.element_bytes();
      const Region element{store.destination, to[i] * size, size, out.half};
      if (!contains(out, element)) return object_here("stores to the wrong place");
      const Symbol found = memory_.get(element, 0);
      if (found != expected[i]) {
        return object_here("leaves in buffer " + std::to_string(store.destination) + ": " + recorded_.name(found) +
                           ", not " + recorded_.name(expected[i]));
      }
    }
  }

  void check_readable() {
    std::vector<bool> placed(graph_.values().size(), false);
    for (const plan::Placement& p : plan_.readable) {
      placed[p.value] = true;
      const Region region{plan::arena, p.offset, p.bytes, graph_.value(p.value).half()};
      const std::string other = difference(region, recorded_.values[p.value]);
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
    for (const auto& [resource, cells] : recorded_.buffers.all()) memory_.cells(resource, cells.size());
    for (const auto& [resource, cells] : memory_.all()) {
      if (resource == plan::arena) continue;
      const std::vector<Symbol>& expected = recorded_.buffers.cells(resource, cells.size());
      for (std::size_t i = 0; i < cells.size(); ++i) {
        if (cells[i] == expected[i] || (cells[i] == garbage && is_behind(resource, i))) continue;
        object("buffer " + std::to_string(resource) + " ends up with something else");
        break;
      }
    }
  }

  // A cell that no vec4 of the buffer is without, but that is not of the buffer.
  bool is_behind(record::ResourceId resource, std::size_t cell) const {
    for (std::size_t n = graph_.first_pending_node(); n < graph_.nodes().size(); ++n) {
      const record::Node& node = graph_.nodes()[n];
      if (node.destination != resource || !node.op->fills) continue;
      const record::Value& value = graph_.value(graph_.inputs(node)[0]);
      const std::uint64_t count = value.shape.count();
      const std::uint64_t each = value.half() ? 1 : 2;
      if (cell >= count * each && cell < (count + 3) / 4 * 4 * each) return true;
    }
    return false;
  }

  const plan::Plan& plan_;
  const record::Graph& graph_;
  const plan::PlanOptions& options_;
  Recorded& recorded_;
  std::size_t current_ = 0;
  Memory memory_;
  std::map<std::uint32_t, Opaque> opaque_;  // by group
  const Object object_ = [this](const std::string& what) { object_here(what); };
  std::vector<std::string> objections_;
};

}  // namespace

std::vector<std::string> replay(const plan::Plan& plan, const record::Graph& graph, const plan::PlanOptions& options,
                                Recorded& recorded) {
  return Replay(plan, graph, options, recorded).run();
}

}  // namespace brontes::test
