#include "plan/fuse.hpp"

#include "record/view.hpp"
#include "util/hash.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace brontes::plan {
namespace {

using record::Node;
using record::ResourceId;
using record::ValueId;
using GroupId = std::uint32_t;
constexpr GroupId no_group = ~GroupId{0};
constexpr std::uint8_t first_result = elementwise_max_inputs;  // the register of step 0

bool is_commutative(record::ElementwiseOp op) {
  using record::ElementwiseOp;
  return op == ElementwiseOp::add || op == ElementwiseOp::mul || op == ElementwiseOp::min || op == ElementwiseOp::max;
}

// Not for prologues: the kernels that take them unroll their loads, and row ops load an element up to three times. This
// is more code, or more work, than it costs to write the values and to read them again.
bool is_costly(const ElementwiseProgram& program) {
  using record::ElementwiseOp;
  constexpr ElementwiseOp costly[] = {ElementwiseOp::exp,       ElementwiseOp::log,     ElementwiseOp::sigmoid,
                                      ElementwiseOp::tanh,      ElementwiseOp::swish,   ElementwiseOp::gelu,
                                      ElementwiseOp::gelu_tanh, ElementwiseOp::sin,     ElementwiseOp::cos,
                                      ElementwiseOp::tan,       ElementwiseOp::erf,     ElementwiseOp::elu,
                                      ElementwiseOp::softplus,  ElementwiseOp::pow,     ElementwiseOp::mod,
                                      ElementwiseOp::div_i32,   ElementwiseOp::mod_i32, ElementwiseOp::f32_to_f16};
  for (std::size_t s = 0; s < program.step_count; ++s) {
    if (std::find(std::begin(costly), std::end(costly), program.steps[s].op) != std::end(costly)) return true;
  }
  return false;
}

class Fuser {
 public:
  Fuser(const record::Graph& graph, const PlanOptions& options)
      : graph_(graph),
        options_(options),
        nodes_(graph.nodes()),
        group_of_(graph.values().size(), no_group),
        last_reader_(graph.values().size(), no_group),
        consumers_(graph.values().size(), 0) {}

  Grouping run() {
    find_wanted();
    find_live();
    find_pinned();
    groups_.reserve(nodes_.size() - graph_.first_pending_node());
    for (std::size_t i = graph_.first_pending_node(); i < nodes_.size(); ++i) {
      if (live_[i - graph_.first_pending_node()] != 0) add(static_cast<std::uint32_t>(i));
    }
    return finish();
  }

 private:
  bool is_live(std::size_t node) const { return live_[node - graph_.first_pending_node()] != 0; }

  void find_wanted() {
    result_.wanted.assign(graph_.values().size(), 0);
    for (std::size_t id = graph_.first_pending_value(); id < graph_.values().size(); ++id) {
      const auto value = static_cast<ValueId>(id);
      if (readable(graph_, value, options_)) result_.wanted[graph_.base(value)] = 1;
    }
  }
  bool wanted(ValueId value) const { return result_.wanted[value] != 0; }

  // Backwards from what can be read and what is stored.
  void find_live() {
    const std::size_t first = graph_.first_pending_node();
    live_.assign(nodes_.size() - first, 0);
    for (std::size_t i = nodes_.size(); i-- > first;) {
      const Node& node = nodes_[i];
      bool live = node.output_count == 0;
      for (ValueId v = node.output; v - node.output < node.output_count && !live; ++v) {
        live = consumers_[v] != 0 || wanted(v);
      }
      if (!live) {
        ++result_.dropped_operations;
        continue;
      }
      live_[i - first] = 1;
      for (ValueId v : graph_.inputs(node)) ++consumers_[graph_.base(v)];
    }
  }

  // Reads of a resource may move freely among themselves. Only where something is read after a store,
  // or stored twice, does the order of recording matter; ops that touch such a resource stand alone.
  struct ResourceUse {
    std::uint32_t stores = 0;
    std::uint32_t store_node = no_node;
    bool pinned = false;
    std::uint32_t store_level = 0;
    std::vector<GroupId> readers;  // if pinned, only those since the last store
  };
  void find_pinned() {
    for (std::size_t i = graph_.first_pending_node(); i < nodes_.size(); ++i) {
      if (!is_live(i)) continue;
      const Node& node = nodes_[i];
      for (ValueId v : graph_.inputs(node)) {
        if (ResourceUse* use = use_of(graph_.value(v).resource); use != nullptr && use->stores != 0) use->pinned = true;
      }
      if (node.destination != record::no_resource) {
        if (uses_.size() <= node.destination) uses_.resize(node.destination + 1);
        ResourceUse& use = uses_[node.destination];
        use.pinned |= use.stores++ != 0;
        use.store_node = static_cast<std::uint32_t>(i);
      }
    }
  }
  // Null for resources nobody stores to.
  ResourceUse* use_of(ResourceId resource) { return resource < uses_.size() ? &uses_[resource] : nullptr; }

  // The group that makes a value, or that of which it is a view.
  GroupId group_of(ValueId value) const { return group_of_[graph_.base(value)]; }

  std::uint32_t level_of(ValueId value) const {
    return group_of(value) == no_group ? 0 : groups_[group_of(value)].level;
  }

  // The level below which nothing that `node` depends on lies.
  std::uint32_t floor_of(const Node& node) {
    std::uint32_t level = 0;
    for (ValueId v : graph_.inputs(node)) level = std::max(level, level_of(v));
    return level;
  }

  void add(std::uint32_t index) {
    const Node& node = nodes_[index];
    bool pinned = false;
    for (ValueId v : graph_.inputs(node)) {
      const ResourceUse* use = use_of(graph_.value(v).resource);
      pinned |= use != nullptr && use->pinned;
    }
    const bool elementwise = node.op->elementwise != nullptr;
    // What follows a view may join it; a view itself begins with other elements than its operand's group has.
    if (elementwise && !node.op->view && options_.fuse && !pinned && try_join(index)) return;

    Group group;
    group.first = index;
    group.level = floor_of(node) + 1;
    for (ValueId v : graph_.inputs(node)) {
      if (ResourceUse* use = use_of(graph_.value(v).resource); use != nullptr) {
        if (use->pinned) group.level = std::max(group.level, use->store_level + 1);
      }
    }
    if (node.destination != record::no_resource) {
      ResourceUse& use = uses_[node.destination];
      group.level = std::max(group.level, use.store_level + 1);
      for (GroupId reader : use.readers) {
        Group& before = groups_[resolve(reader)];
        before.has_dependents = true;
        group.level = std::max(group.level, before.level + 1);
      }
      if (use.pinned) use.readers.clear();
    }
    group.has_dependents = pinned;
    const auto id = static_cast<GroupId>(groups_.size());
    if (!elementwise) group.root = index;
    if (node.output_count != 0) group.count = graph_.value(node.output).shape.count();
    groups_.push_back(group);
    if (!elementwise && !pinned) take_prologue(id);
    if (elementwise) append(groups_.back(), node);
    enter(id, node);
    note_resources(id, node);
  }

  // The group that makes the first operand of a root may run as the root loads it, if that operand is all it makes and
  // nothing else is read from it.
  void take_prologue(GroupId id) {
    const Node& root = nodes_[groups_[id].root];
    if (!options_.fuse || !root.op->takes_prologue) return;
    const ValueId operand = graph_.base(graph_.inputs(root)[0]);
    const GroupId from = group_of_[operand];
    if (from == no_group) return;
    Group& maker = groups_[from];
    if (maker.root != no_node || maker.has_dependents || maker.count == 0 || operand != last_value(maker)) return;
    if (consumers_[operand] != 1 || wanted(operand) || !writes_only_last(maker)) return;
    auto program = as_prologue(maker);
    if (!program || is_costly(*program)) return;
    // It runs when the root does: not before the root's other operands are there.
    std::uint32_t level = maker.level;
    for (ValueId v : graph_.inputs(root)) {
      if (group_of(v) != from) level = std::max(level, level_of(v) + 1);
    }
    if (level > maker.level && delays_store(maker, from, level)) return;
    groups_[id].level = level;
    groups_[id].prologue = static_cast<std::uint32_t>(result_.prologues.size());
    maker.dropped = true;
    maker.merged_into = id;
    for (std::size_t s = 0; s < program->step_count; ++s) group_of_[program->steps[s].result] = id;
    result_.prologues.push_back(*program);
  }

  // With the input that has an element for each of the operand's in register 0; nothing if the kernels have no room.
  static std::optional<ElementwiseProgram> as_prologue(const Group& group) {
    ElementwiseProgram program = group.program;
    if (program.strided || program.step_count > prologue_max_steps || program.input_count > prologue_max_inputs) {
      return std::nullopt;
    }
    auto is_full = [&](std::size_t i) {
      return i < program.input_count && mode_of(program.inputs[i].repeat, group.count) == ElementwiseMode::full;
    };
    if (is_full(0)) return program;
    if (!is_full(1)) return std::nullopt;
    std::swap(program.inputs[0], program.inputs[1]);
    for (std::size_t s = 0; s < program.step_count; ++s) {
      ElementwiseProgram::Step& step = program.steps[s];
      for (std::size_t k = 0; k < record::info(step.op).arity; ++k) {
        if (step.operands[k] < prologue_max_inputs) step.operands[k] ^= 1u;
      }
    }
    return program;
  }

  // Book-keeping when `node` becomes part of group `id`.
  void enter(GroupId id, const Node& node) {
    for (ValueId v : graph_.inputs(node)) {
      const GroupId from = group_of(v);
      if (from != no_group && from != id) groups_[from].has_dependents = true;
    }
    for (ValueId v = node.output; v - node.output < node.output_count; ++v) group_of_[v] = id;
    if (groups_[id].root == no_node) {
      for (ValueId v : graph_.inputs(node)) last_reader_[graph_.base(v)] = id;
    }
  }

  GroupId resolve(GroupId id) const {
    while (groups_[id].dropped) id = groups_[id].merged_into;
    return id;
  }

  void note_resources(GroupId id, const Node& node) {
    for (ValueId v : graph_.inputs(node)) {
      if (ResourceUse* use = use_of(graph_.value(v).resource); use != nullptr) use->readers.push_back(id);
    }
    if (node.destination != record::no_resource) {
      uses_[node.destination].store_level = groups_[id].level;
    }
  }

  // Elementwise `node` into the groups of its operands, if it can be.
  bool try_join(std::uint32_t index) {
    const Node& node = nodes_[index];
    std::array<GroupId, record::elementwise_max_arity> candidates{};
    std::uint32_t found = 0;
    for (ValueId v : graph_.inputs(node)) {
      const GroupId g = group_of(v);
      const auto end = candidates.begin() + found;
      if (g != no_group && std::find(candidates.begin(), end, g) == end) candidates[found++] = g;
    }
    if (found == 0) return try_sibling(node);
    // The youngest group first: the others are more likely to be ready before it.
    std::stable_sort(candidates.begin(), candidates.begin() + found,
                     [&](GroupId x, GroupId y) { return groups_[x].level > groups_[y].level; });
    for (std::size_t c = 1; c < found; ++c) {
      if (try_merge(candidates[0], candidates[c], node)) return true;
    }
    for (std::size_t c = 0; c < found; ++c) {
      if (try_append(candidates[c], node)) return true;
    }
    return try_sibling(node);
  }

  // Beside an op that reads the same tensor, which is then read once for both. What `node` needs is
  // ready before that group, so it cannot depend on it; and nobody waits longer for it than without.
  bool try_sibling(const Node& node) {
    for (ValueId v : graph_.inputs(node)) {
      const GroupId reader = last_reader_[graph_.base(v)];
      if (reader == no_group) continue;
      const GroupId id = resolve(reader);
      const std::uint32_t alone = floor_of(node) + 1;
      const std::uint32_t level = groups_[id].level;
      const bool in_time = alone == level || (alone < level && consumers_[node.output] == 0);
      if (groups_[id].root == no_node && in_time && try_append(id, node)) return true;
    }
    return false;
  }

  // Two groups that do not depend on each other become one, with `node` behind them.
  bool try_merge(GroupId into, GroupId from, const Node& node) {
    Group& a = groups_[into];
    Group& b = groups_[from];
    if (a.root != no_node || b.root != no_node || a.count != b.count) return false;
    // There is no path between them if they stand on one level. From the higher, a, there is none to b
    // anyway; from b there is none if nothing depends on it.
    if (a.level != b.level && (b.has_dependents || others_wait(b, node))) return false;

    Group merged = a;
    for (std::size_t s = 0; s < b.program.step_count; ++s) {
      if (!append_step(merged.program, b.program, b.program.steps[s])) return false;
    }
    merged.level = std::max(a.level, b.level);
    merged.first = std::min(a.first, b.first);
    merged.has_dependents = a.has_dependents || b.has_dependents;
    if (!fits(merged, node, into, from) || !append(merged, node)) return false;
    a = merged;
    b.dropped = true;
    b.merged_into = into;
    for (std::size_t s = 0; s < a.program.step_count; ++s) group_of_[a.program.steps[s].result] = into;
    enter(into, node);
    note_resources(into, node);
    return true;
  }

  bool try_append(GroupId id, const Node& node) {
    Group candidate = groups_[id];
    std::uint32_t others = 0;  // the highest level among operands from elsewhere
    for (ValueId v : graph_.inputs(node)) {
      if (group_of(v) != id) others = std::max(others, level_of(v));
    }
    if (others >= candidate.level) {
      // Something that is not ready before the group: it may depend on the group, unless nothing does.
      if (candidate.has_dependents || others_wait(candidate, node) || delays_store(candidate, id, others + 1))
        return false;
      candidate.level = others + 1;
    }
    if (!fits(candidate, node, id, id) || !append(candidate, node)) return false;
    groups_[id] = candidate;
    enter(id, node);
    note_resources(id, node);
    return true;
  }

  // Shapes and, behind a root, exclusive use; and no more written values than the kernel has outputs.
  bool fits(const Group& group, const Node& node, GroupId id, GroupId other) const {
    if (graph_.values()[node.output].shape.count() != group.count || group.count == 0) return false;
    auto inside = [&](ValueId v) { return group_of(v) == id || group_of(v) == other; };
    std::uint32_t uses_of_result = 0;
    for (ValueId v : graph_.inputs(node)) {
      if (!inside(v)) continue;
      if (graph_.values()[v].shape.count() != group.count) return false;  // it would be broadcast
      ++uses_of_result;
    }
    if (group.root != no_node) {
      const Node& root = nodes_[group.root];
      if (root.op->takes_epilogue == nullptr || !root.op->takes_epilogue(root)) return false;
      if (group.program.step_count >= epilogue_max_steps) return false;
      const ValueId result = last_value(group);
      for (ValueId v : graph_.inputs(node)) {
        if (inside(v) && graph_.base(v) != result) return false;
      }
      return consumers_[result] == uses_of_result && !wanted(result);
    }
    // Worst case: everything that has consumers elsewhere, so far, is written.
    std::size_t written = 1;  // the node's own result
    for (std::size_t s = 0; s < group.program.step_count; ++s) {
      written += open_consumers(group, s, &node) != 0 || wanted(group.program.steps[s].result);
    }
    return written <= elementwise_max_outputs;
  }

  // Consumers of step s's result that are neither steps of the group nor `node`, if given.
  std::uint32_t open_consumers(const Group& group, std::size_t s, const Node* node = nullptr) const {
    const ElementwiseProgram& program = group.program;
    std::uint32_t open = consumers_[program.steps[s].result];
    const auto reg = static_cast<std::uint8_t>(first_result + s);
    for (std::size_t t = s + 1; t < program.step_count; ++t) {
      const ElementwiseProgram::Step& step = program.steps[t];
      for (std::size_t k = 0; k < record::info(step.op).arity; ++k) open -= step.operands[k] == reg;
    }
    if (node != nullptr) {
      for (ValueId v : graph_.inputs(*node)) open -= graph_.base(v) == program.steps[s].result;
    }
    return open;
  }

  // Somebody else than `node` needs a result of the group: for them it should not run later than it could.
  bool others_wait(const Group& group, const Node& node) const {
    for (std::size_t s = 0; s < group.program.step_count; ++s) {
      if (open_consumers(group, s, &node) != 0) return true;
    }
    return false;
  }

  // Made by none of the pending ops.
  bool is_given(ValueId value) const {
    const ValueId v = graph_.base(value);
    if (graph_.value(v).resource != record::no_resource) return true;
    const auto& uploads = graph_.uploads();
    const auto at = std::lower_bound(uploads.begin(), uploads.end(), v,
                                     [](const record::Upload& upload, ValueId id) { return upload.value < id; });
    return at != uploads.end() && at->value == v;
  }

  // It reads what a value that is ready before `level` will be stored to: the store would have to wait for it.
  bool delays_store(const Group& group, GroupId id, std::uint32_t level) {
    auto delayed = [&](ValueId read) {
      const ResourceUse* use = use_of(graph_.value(read).resource);
      if (use == nullptr || use->stores == 0) return false;
      const ValueId stored = graph_.inputs(nodes_[use->store_node])[0];
      const GroupId maker = group_of(stored);
      if (maker == no_group) return is_given(stored);  // else it is still to be made, nobody knows when
      return maker != id && groups_[maker].level < level;
    };
    for (std::size_t i = 0; i < group.program.input_count; ++i) {
      if (delayed(group.program.inputs[i].value)) return true;
    }
    if (group.root == no_node) return false;
    if (group.prologue != no_prologue) {
      const ElementwiseProgram& prologue = result_.prologues[group.prologue];
      for (std::size_t i = 0; i < prologue.input_count; ++i) {
        if (delayed(prologue.inputs[i].value)) return true;
      }
    }
    const auto inputs = graph_.inputs(nodes_[group.root]);
    return std::any_of(inputs.begin(), inputs.end(), delayed);
  }

  ValueId last_value(const Group& group) const { return Grouping::result(group, graph_); }

  static std::size_t max_inputs(const Group& group) {
    // Behind a root, register 0 is the root's result.
    return group.root == no_node ? elementwise_max_inputs : epilogue_max_inputs;
  }

  using Input = ElementwiseProgram::Input;

  // Operand k of an elementwise node, as an input from outside.
  Input input_of(const Node& node, std::size_t k) const {
    const ValueId operand = graph_.inputs(node)[k];
    Input input{graph_.base(operand), {}};
    if (!node.op->view) {
      const Shape& shape = graph_.value(operand).shape;
      const Shape& result = graph_.value(node.output).shape;
      if (shape == result) {
        input.repeat = {1, shape.count()};
        return input;
      }
      if (const auto repeat = record::repetition(shape, result)) {
        input.repeat = *repeat;
        return input;
      }
    }
    const record::Access access = record::operand_access(graph_, node, k);
    if (const auto repeat = record::repetition(access)) {
      input.repeat = *repeat;
      return input;
    }
    input.strided = static_cast<std::uint32_t>(&node - nodes_.data());
    input.operand = static_cast<std::uint8_t>(k);
    return input;
  }

  static bool same(const Input& a, const Input& b) {
    return a.value == b.value && a.repeat.div == b.repeat.div && a.repeat.mod == b.repeat.mod &&
           a.strided == b.strided && a.operand == b.operand;
  }

  // The register of an external input, added if it is new and there is room.
  static std::optional<std::uint8_t> input_register(ElementwiseProgram& program, const Input& input, std::size_t most,
                                                    std::size_t offset) {
    for (std::size_t i = 0; i < program.input_count; ++i) {
      if (same(program.inputs[i], input)) return static_cast<std::uint8_t>(i + offset);
    }
    if (program.input_count == most) return std::nullopt;
    program.inputs[program.input_count] = input;
    program.strided = program.strided || input.strided != no_node;
    return static_cast<std::uint8_t>(program.input_count++ + offset);
  }

  // Programs over strided inputs have room for less. Epilogues have none of them.
  bool has_room(const Group& group) const {
    const ElementwiseProgram& program = group.program;
    if (!program.strided) return true;
    if (group.root != no_node || program.step_count > strided_max_steps) return false;
    std::uint32_t words = 0;
    for (std::size_t i = 0; i < program.input_count; ++i) {
      words += record::access_words(access_of(graph_, program.inputs[i], group.count));
    }
    return words <= record::max_access_words;
  }

  // Adds `node` as the last step. The group is spoilt if it does not fit: callers work on a copy.
  bool append(Group& group, const Node& node) {
    ElementwiseProgram& program = group.program;
    const bool epilogue = group.root != no_node;
    if (program.step_count == elementwise_max_steps) return false;
    const auto scalars = record::scalars(node);
    ElementwiseProgram::Step step{record::elementwise_op(node),
                                  {},
                                  scalars.p,
                                  scalars.q,
                                  static_cast<std::uint32_t>(&node - nodes_.data()),
                                  node.output};
    for (std::size_t k = 0; k < node.input_count; ++k) {
      const ValueId v = graph_.base(graph_.inputs(node)[k]);
      std::optional<std::uint8_t> reg;
      for (std::size_t s = 0; s < program.step_count; ++s) {
        if (program.steps[s].result == v) reg = static_cast<std::uint8_t>(first_result + s);
      }
      if (epilogue && v == nodes_[group.root].output) reg = std::uint8_t{0};
      if (!reg) reg = input_register(program, input_of(node, k), max_inputs(group), epilogue ? 1 : 0);
      if (!reg) return false;
      step.operands[k] = *reg;
    }
    // Fewer distinct programs.
    if (is_commutative(step.op) && step.operands[0] > step.operands[1]) std::swap(step.operands[0], step.operands[1]);
    program.steps[program.step_count++] = step;
    return has_room(group);
  }

  // A step of another program, with its registers renamed.
  static bool append_step(ElementwiseProgram& to, const ElementwiseProgram& from, ElementwiseProgram::Step step) {
    if (to.step_count == elementwise_max_steps) return false;
    auto rename = [&](std::uint8_t reg) -> std::optional<std::uint8_t> {
      if (reg < first_result) {
        return input_register(to, from.inputs[reg], elementwise_max_inputs, 0);
      }
      const ValueId value = from.steps[reg - first_result].result;
      for (std::size_t s = 0; s < to.step_count; ++s) {
        if (to.steps[s].result == value) return static_cast<std::uint8_t>(first_result + s);
      }
      return std::nullopt;
    };
    for (std::size_t k = 0; k < record::info(step.op).arity; ++k) {
      const auto reg = rename(step.operands[k]);
      if (!reg) return false;
      step.operands[k] = *reg;
    }
    to.steps[to.step_count++] = step;
    return true;
  }

  // What makes pipelines differ: the steps and how inputs are indexed, and behind which kind of root.
  ProgramKey key_of(const Group& group) const {
    const auto root = reinterpret_cast<std::uintptr_t>(group.root == no_node ? nullptr : nodes_[group.root].op);
    ProgramKey key;
    key.add(static_cast<std::uint32_t>(root));
    key.add(static_cast<std::uint32_t>(std::uint64_t{root} >> 32));
    auto add = [&](const ElementwiseProgram& program, std::uint64_t count) {
      for (std::size_t s = 0; s < program.step_count; ++s) key.add(program.word(s));
      for (std::size_t i = 0; i < program.input_count; ++i) {
        const Input& in = program.inputs[i];
        const std::uint32_t half = graph_.value(in.value).half() ? 0x200u : 0;
        if (in.strided == no_node) {
          key.add(half + static_cast<std::uint32_t>(mode_of(in.repeat, count)));
        } else {
          const record::Access access = access_of(graph_, in, count);
          key.add(half + 0x100u + static_cast<std::uint32_t>(mode_of(access)) + 16 * access.rank);
        }
      }
    };
    add(group.program, group.count);
    if (group.prologue != no_prologue) {
      const ElementwiseProgram& prologue = result_.prologues[group.prologue];
      key.add(~std::uint32_t{prologue.step_count});  // no word of a step
      add(prologue, graph_.value(prologue.steps[0].result).shape.count());
    }
    return key;
  }

  // Takes apart the groups whose programs are past the limit.
  void split_refused() {
    if (options_.programs == nullptr) return;
    const std::size_t count = groups_.size();
    std::optional<ProgramKey> admitted;  // the last one: neighbours are often alike
    for (GroupId id = 0; id < count; ++id) {
      const bool fused =
          groups_[id].program.step_count > (groups_[id].root == no_node ? 1 : 0) || groups_[id].prologue != no_prologue;
      if (groups_[id].dropped || !fused) continue;
      const ProgramKey key = key_of(groups_[id]);
      if (admitted == key) continue;
      if (options_.programs->admit(key, options_.only_ask)) {
        admitted = key;
        continue;
      }
      const ElementwiseProgram program = std::exchange(groups_[id].program, {});
      const std::uint32_t prologue = std::exchange(groups_[id].prologue, no_prologue);
      groups_[id].dropped = groups_[id].root == no_node;
      if (prologue != no_prologue) split(id, result_.prologues[prologue]);
      split(id, program);
    }
  }

  // The steps of a program of group `id` as groups of their own: on one level, in recording order, which is how
  // finish() orders them.
  void split(GroupId id, const ElementwiseProgram& program) {
    for (std::size_t s = 0; s < program.step_count; ++s) {
      const Node& node = nodes_[program.steps[s].node];
      Group single;
      single.first = program.steps[s].node;
      single.level = groups_[id].level;
      single.count = graph_.values()[node.output].shape.count();
      append(single, node);
      group_of_[node.output] = static_cast<GroupId>(groups_.size());
      groups_[id].merged_into = group_of_[node.output];  // for resolve(): the level is the same
      groups_.push_back(single);
    }
  }

  Grouping finish() {
    split_refused();
    result_.written.assign(graph_.values().size(), 0);
    for (const Group& g : groups_) {
      if (g.dropped) continue;
      auto mark = [&](ValueId value, const Group& by) {
        const ValueId v = graph_.base(value);
        if (group_of_[v] != no_group && &groups_[group_of_[v]] != &by) result_.written[v] = 1;
      };
      for (std::size_t i = 0; i < g.program.input_count; ++i) mark(g.program.inputs[i].value, g);
      std::size_t ops = g.program.step_count;
      if (g.prologue != no_prologue) {
        const ElementwiseProgram& prologue = result_.prologues[g.prologue];
        for (std::size_t i = 0; i < prologue.input_count; ++i) mark(prologue.inputs[i].value, g);
        ops += prologue.step_count;
      }
      if (g.root != no_node) {
        const Node& root = nodes_[g.root];
        for (ValueId v : graph_.inputs(root)) mark(v, g);
        if (g.program.step_count == 0) {
          for (ValueId v = root.output; v - root.output < root.output_count; ++v) result_.written[v] = 1;
        }
      }
      if (g.program.step_count != 0) result_.written[g.program.steps[g.program.step_count - 1].result] = 1;
      for (std::size_t s = 0; s < g.program.step_count; ++s) {
        const ValueId v = g.program.steps[s].result;
        if (wanted(v)) result_.written[v] = 1;
      }
      ops += g.root != no_node ? 1u : 0u;
      result_.fused_operations += ops - 1;
    }
    std::vector<GroupId> order;
    order.reserve(groups_.size());
    for (GroupId id = 0; id < groups_.size(); ++id) {
      if (!groups_[id].dropped) order.push_back(id);
    }
    auto before = [&](GroupId x, GroupId y) {
      return groups_[x].level != groups_[y].level ? groups_[x].level < groups_[y].level
                                                  : groups_[x].first < groups_[y].first;
    };
    if (!std::is_sorted(order.begin(), order.end(), before)) std::stable_sort(order.begin(), order.end(), before);
    result_.groups.reserve(order.size());
    for (GroupId id : order) {
      Group& g = groups_[id];
      for (std::size_t s = 0; s < g.program.step_count; ++s) {
        if (result_.written[g.program.steps[s].result] != 0) g.written = static_cast<std::uint8_t>(g.written | 1u << s);
      }
      result_.groups.push_back(g);
    }
    return std::move(result_);
  }

  bool writes_only_last(const Group& group) const {
    for (std::size_t s = 0; s + 1 < group.program.step_count; ++s) {
      if (wanted(group.program.steps[s].result)) return false;
      if (open_consumers(group, s) != 0) return false;
    }
    return true;
  }

  const record::Graph& graph_;
  const PlanOptions& options_;
  const std::vector<Node>& nodes_;
  std::vector<GroupId> group_of_;         // by value
  std::vector<GroupId> last_reader_;      // by value: the last elementwise group to read it
  std::vector<std::uint32_t> consumers_;  // by value: uses by live ops
  std::vector<std::uint8_t> live_;        // by pending node
  std::vector<ResourceUse> uses_;         // by resource
  std::vector<Group> groups_;
  Grouping result_;
};

}  // namespace

std::size_t ProgramKey::Hash::operator()(const ProgramKey& key) const noexcept {
  std::uint64_t hash = key.size_;
  for (std::size_t i = 0; i < key.size_; ++i) hash = util::mix(hash, key.words_[i]);
  return static_cast<std::size_t>(hash);
}

bool ProgramSet::admit(const ProgramKey& program, bool only_ask) {
  std::lock_guard lock(mutex_);
  if (known_.size() >= limit_) return known_.count(program) != 0;
  if (!only_ask) known_.insert(program);
  return true;
}

ElementwiseMode mode_of(const record::Repeat& repeat, std::uint64_t count) {
  if (repeat.div == 1 && repeat.mod == count) return ElementwiseMode::full;
  if (repeat.mod == 1) return ElementwiseMode::scalar;
  if (repeat.div == 1 && repeat.mod % 4 == 0) return ElementwiseMode::row_vec4;
  if (repeat.div % 4 == 0) return ElementwiseMode::column_vec4;
  return ElementwiseMode::general;
}

record::Access access_of(const record::Graph& graph, const ElementwiseProgram::Input& input, std::uint64_t count) {
  if (input.strided == no_node) return record::access(input.repeat, count);
  return record::operand_access(graph, graph.nodes()[input.strided], input.operand);
}

StridedMode mode_of(const record::Access& a) {
  if (record::access_words(a) == 0) return a.rank != 0 && a.strides[0] == 0 ? StridedMode::scalar : StridedMode::full;
  if (a.rank == 0) return StridedMode::any;
  const std::size_t last = a.rank - 1;
  if (a.extents[last] % 4 != 0) return StridedMode::any;
  if (a.strides[last] == 0) return StridedMode::same;
  bool whole_vectors = a.strides[last] == 1 && a.offset % 4 == 0;
  for (std::size_t d = 0; d < last; ++d) whole_vectors = whole_vectors && a.strides[d] % 4 == 0;
  return whole_vectors ? StridedMode::vec4 : StridedMode::row;
}

bool readable(const record::Graph& graph, ValueId value, const PlanOptions& options) {
  const record::Value& v = graph.values()[value];
  return options.keep_all || v.keep || (v.consumers == 0 && !options.keep_marked_only);
}

Grouping fuse(const record::Graph& graph, const PlanOptions& options) { return Fuser(graph, options).run(); }

}  // namespace brontes::plan
