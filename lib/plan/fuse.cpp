#include "plan/fuse.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

namespace brontes::plan {
namespace {

using record::Node;
using record::NodeKind;
using record::ResourceId;
using record::ValueId;
using GroupId = std::uint32_t;
constexpr GroupId no_group = ~GroupId{0};
constexpr std::uint8_t first_result = elementwise_max_inputs;  // the register of step 0

bool is_commutative(record::ElementwiseOp op) {
  using record::ElementwiseOp;
  return op == ElementwiseOp::add || op == ElementwiseOp::mul || op == ElementwiseOp::min || op == ElementwiseOp::max;
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

  // Backwards from what can be read and what is stored.
  void find_live() {
    const std::size_t first = graph_.first_pending_node();
    live_.assign(nodes_.size() - first, 0);
    for (std::size_t i = nodes_.size(); i-- > first;) {
      const Node& node = nodes_[i];
      const bool live =
          node.output == record::no_value || consumers_[node.output] != 0 || readable(graph_, node.output, options_);
      if (!live) {
        ++result_.dropped_operations;
        continue;
      }
      live_[i - first] = 1;
      for (std::size_t k = 0; k < node.input_count; ++k) ++consumers_[node.inputs[k]];
    }
  }

  // Reads of a resource may move freely among themselves. Only where something is read after a store,
  // or stored twice, does the order of recording matter; ops that touch such a resource stand alone.
  struct ResourceUse {
    std::uint32_t stores = 0;
    std::uint32_t store_node = no_node;
    GroupId store_group = no_group;
    bool pinned = false;
    std::uint32_t store_level = 0;
    std::vector<GroupId> readers;  // if pinned, only those since the last store
  };
  void find_pinned() {
    for (std::size_t i = graph_.first_pending_node(); i < nodes_.size(); ++i) {
      if (!is_live(i)) continue;
      const Node& node = nodes_[i];
      for (std::size_t k = 0; k < node.input_count; ++k) {
        if (ResourceUse* use = use_of(graph_.values()[node.inputs[k]].resource); use != nullptr && use->stores != 0) {
          use->pinned = true;
        }
      }
      if (node.kind == NodeKind::store) {
        if (uses_.size() <= node.store.resource) uses_.resize(node.store.resource + 1);
        ResourceUse& use = uses_[node.store.resource];
        use.pinned |= use.stores++ != 0;
        use.store_node = static_cast<std::uint32_t>(i);
      }
    }
  }
  // Null for resources nobody stores to.
  ResourceUse* use_of(ResourceId resource) { return resource < uses_.size() ? &uses_[resource] : nullptr; }

  std::uint32_t level_of(ValueId value) const {
    return group_of_[value] == no_group ? 0 : groups_[group_of_[value]].level;
  }

  // The level below which nothing that `node` depends on lies.
  std::uint32_t floor_of(const Node& node) {
    std::uint32_t level = 0;
    for (std::size_t k = 0; k < node.input_count; ++k) level = std::max(level, level_of(node.inputs[k]));
    return level;
  }

  void add(std::uint32_t index) {
    const Node& node = nodes_[index];
    bool pinned = false;
    for (std::size_t k = 0; k < node.input_count; ++k) {
      const ResourceUse* use = use_of(graph_.values()[node.inputs[k]].resource);
      pinned |= use != nullptr && use->pinned;
    }
    if (node.kind == NodeKind::elementwise && options_.fuse && !pinned && try_join(index)) return;

    Group group;
    group.first = index;
    group.level = floor_of(node) + 1;
    for (std::size_t k = 0; k < node.input_count; ++k) {
      if (ResourceUse* use = use_of(graph_.values()[node.inputs[k]].resource); use != nullptr) {
        if (use->pinned) group.level = std::max(group.level, use->store_level + 1);
      }
    }
    if (node.kind == NodeKind::store) {
      ResourceUse& use = uses_[node.store.resource];
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
    if (node.kind == NodeKind::elementwise) {
      group.count = graph_.values()[node.output].shape.count();
    } else {
      group.root = index;
      if (node.output != record::no_value) group.count = graph_.values()[node.output].shape.count();
    }
    groups_.push_back(group);
    if (node.kind == NodeKind::elementwise) append(groups_.back(), node);
    enter(id, node);
    note_resources(id, node);
  }

  // Book-keeping when `node` becomes part of group `id`.
  void enter(GroupId id, const Node& node) {
    for (std::size_t k = 0; k < node.input_count; ++k) {
      const GroupId from = group_of_[node.inputs[k]];
      if (from != no_group && from != id) groups_[from].has_dependents = true;
    }
    if (node.output != record::no_value) group_of_[node.output] = id;
    if (node.kind == NodeKind::elementwise && groups_[id].root == no_node) {
      for (std::size_t k = 0; k < node.input_count; ++k) last_reader_[node.inputs[k]] = id;
    }
  }

  GroupId resolve(GroupId id) const {
    while (groups_[id].dropped) id = groups_[id].merged_into;
    return id;
  }

  void note_resources(GroupId id, const Node& node) {
    for (std::size_t k = 0; k < node.input_count; ++k) {
      if (ResourceUse* use = use_of(graph_.values()[node.inputs[k]].resource); use != nullptr) {
        use->readers.push_back(id);
      }
    }
    if (node.kind == NodeKind::store) {
      uses_[node.store.resource].store_level = groups_[id].level;
      uses_[node.store.resource].store_group = id;
    }
  }

  // Elementwise `node` into the groups of its operands, if it can be.
  bool try_join(std::uint32_t index) {
    const Node& node = nodes_[index];
    std::array<GroupId, 2> candidates{no_group, no_group};
    std::size_t found = 0;
    for (std::size_t k = 0; k < node.input_count; ++k) {
      const GroupId g = group_of_[node.inputs[k]];
      if (g != no_group && (found == 0 || candidates[0] != g)) candidates[found++] = g;
    }
    if (found == 0) return try_sibling(node);
    // The younger group first: the other is more likely to be ready before it.
    if (found == 2 && groups_[candidates[1]].level > groups_[candidates[0]].level) {
      std::swap(candidates[0], candidates[1]);
    }
    if (found == 2 && try_merge(candidates[0], candidates[1], node)) return true;
    for (std::size_t c = 0; c < found; ++c) {
      if (try_append(candidates[c], node)) return true;
    }
    return try_sibling(node);
  }

  // Beside an op that reads the same tensor, which is then read once for both. What `node` needs is
  // ready before that group, so it cannot depend on it; and nobody waits longer for it than without.
  bool try_sibling(const Node& node) {
    for (std::size_t k = 0; k < node.input_count; ++k) {
      const GroupId reader = last_reader_[node.inputs[k]];
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
    for (std::size_t k = 0; k < node.input_count; ++k) {
      if (group_of_[node.inputs[k]] != id) others = std::max(others, level_of(node.inputs[k]));
    }
    if (others >= candidate.level) {
      // Something that is not ready before the group: it may depend on the group, unless nothing does.
      if (candidate.has_dependents || others_wait(candidate, node)) return false;
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
    auto inside = [&](ValueId v) { return group_of_[v] == id || group_of_[v] == other; };
    std::uint32_t uses_of_result = 0;
    for (std::size_t k = 0; k < node.input_count; ++k) {
      const ValueId v = node.inputs[k];
      if (!inside(v)) continue;
      if (graph_.values()[v].shape.count() != group.count) return false;  // it would be broadcast
      ++uses_of_result;
    }
    if (group.root != no_node) {
      const Node& root = nodes_[group.root];
      if (root.output == record::no_value) return false;
      if (root.kind == NodeKind::matmul && root.matmul.k == 0) return false;  // becomes a fill
      if (group.program.step_count >= epilogue_max_steps) return false;
      const ValueId result = last_value(group);
      for (std::size_t k = 0; k < node.input_count; ++k) {
        if (inside(node.inputs[k]) && node.inputs[k] != result) return false;
      }
      return consumers_[result] == uses_of_result && !readable(graph_, result, options_);
    }
    // Worst case: everything that has consumers elsewhere, so far, is written.
    std::size_t written = 1;  // the node's own result
    for (std::size_t s = 0; s < group.program.step_count; ++s) {
      written += open_consumers(group, s, &node) != 0 || readable(graph_, group.program.steps[s].result, options_);
    }
    return written <= elementwise_max_outputs;
  }

  // Consumers of step s's result that are neither steps of the group nor `node`, if given.
  std::uint32_t open_consumers(const Group& group, std::size_t s, const Node* node = nullptr) const {
    const ElementwiseProgram& program = group.program;
    std::uint32_t open = consumers_[program.steps[s].result];
    const auto reg = static_cast<std::uint8_t>(first_result + s);
    for (std::size_t t = s + 1; t < program.step_count; ++t) {
      const std::uint8_t arity = record::info(program.steps[t].op).arity;
      open -= (arity >= 1 && program.steps[t].a == reg) + (arity >= 2 && program.steps[t].b == reg);
    }
    for (std::size_t k = 0; node != nullptr && k < node->input_count; ++k) {
      open -= node->inputs[k] == program.steps[s].result;
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

  ValueId last_value(const Group& group) const { return Grouping::result(group, graph_); }

  static std::size_t max_inputs(const Group& group) {
    // Behind a root, register 0 is the root's result.
    return group.root == no_node ? elementwise_max_inputs : epilogue_max_inputs;
  }

  // The register of an external input, added if it is new and there is room.
  static std::optional<std::uint8_t> input_register(ElementwiseProgram& program, ValueId value,
                                                    const record::Repeat& repeat, std::size_t most,
                                                    std::size_t offset) {
    for (std::size_t i = 0; i < program.input_count; ++i) {
      const auto& in = program.inputs[i];
      if (in.value == value && in.repeat.div == repeat.div && in.repeat.mod == repeat.mod) {
        return static_cast<std::uint8_t>(i + offset);
      }
    }
    if (program.input_count == most) return std::nullopt;
    program.inputs[program.input_count] = {value, repeat};
    return static_cast<std::uint8_t>(program.input_count++ + offset);
  }

  // Adds `node` as the last step. The group is spoilt if it does not fit: callers work on a copy.
  bool append(Group& group, const Node& node) {
    ElementwiseProgram& program = group.program;
    const bool epilogue = group.root != no_node;
    if (program.step_count == elementwise_max_steps) return false;
    ElementwiseProgram::Step step{node.elementwise.op,
                                  0,
                                  0,
                                  node.elementwise.p,
                                  node.elementwise.q,
                                  static_cast<std::uint32_t>(&node - nodes_.data()),
                                  node.output};
    const Shape& shape = graph_.values()[node.output].shape;
    for (std::size_t k = 0; k < node.input_count; ++k) {
      const ValueId v = node.inputs[k];
      std::optional<std::uint8_t> reg;
      for (std::size_t s = 0; s < program.step_count; ++s) {
        if (program.steps[s].result == v) reg = static_cast<std::uint8_t>(first_result + s);
      }
      if (epilogue && v == nodes_[group.root].output) reg = std::uint8_t{0};
      if (!reg) {
        const record::Repeat repeat = *record::repetition(graph_.values()[v].shape, shape);
        reg = input_register(program, v, repeat, max_inputs(group), epilogue ? 1 : 0);
      }
      if (!reg) return false;
      (k == 0 ? step.a : step.b) = *reg;
    }
    // Fewer distinct programs.
    if (is_commutative(step.op) && step.a > step.b) std::swap(step.a, step.b);
    program.steps[program.step_count++] = step;
    return true;
  }

  // A step of another program, with its registers renamed.
  static bool append_step(ElementwiseProgram& to, const ElementwiseProgram& from, ElementwiseProgram::Step step) {
    if (to.step_count == elementwise_max_steps) return false;
    auto rename = [&](std::uint8_t reg) -> std::optional<std::uint8_t> {
      if (reg < first_result) {
        const auto& in = from.inputs[reg];
        return input_register(to, in.value, in.repeat, elementwise_max_inputs, 0);
      }
      const ValueId value = from.steps[reg - first_result].result;
      for (std::size_t s = 0; s < to.step_count; ++s) {
        if (to.steps[s].result == value) return static_cast<std::uint8_t>(first_result + s);
      }
      return std::nullopt;
    };
    const std::uint8_t arity = record::info(step.op).arity;
    if (arity >= 1) {
      const auto reg = rename(step.a);
      if (!reg) return false;
      step.a = *reg;
    }
    if (arity >= 2) {
      const auto reg = rename(step.b);
      if (!reg) return false;
      step.b = *reg;
    }
    to.steps[to.step_count++] = step;
    return true;
  }

  // What makes pipelines differ: the steps and how inputs are indexed, and behind which kind of root.
  std::vector<std::uint32_t> key_of(const Group& group) const {
    std::vector<std::uint32_t> key{group.root == no_node ? 0u
                                                         : 1u + static_cast<std::uint32_t>(nodes_[group.root].kind)};
    for (std::size_t s = 0; s < group.program.step_count; ++s) key.push_back(group.program.word(s));
    for (std::size_t i = 0; i < group.program.input_count; ++i) {
      key.push_back(static_cast<std::uint32_t>(mode_of(group.program.inputs[i].repeat, group.count)));
    }
    return key;
  }

  // Takes apart the groups whose programs are past the limit.
  void split_refused() {
    if (options_.programs == nullptr) return;
    const std::size_t count = groups_.size();
    for (GroupId id = 0; id < count; ++id) {
      const bool fused = groups_[id].program.step_count > (groups_[id].root == no_node ? 1 : 0);
      if (groups_[id].dropped || !fused || options_.programs->admit(key_of(groups_[id]), options_.only_ask)) continue;
      const ElementwiseProgram program = groups_[id].program;
      const std::uint32_t level = groups_[id].level;
      groups_[id].program = {};
      groups_[id].dropped = groups_[id].root == no_node;
      // On one level, in recording order, which is how finish() orders them.
      for (std::size_t s = 0; s < program.step_count; ++s) {
        const Node& node = nodes_[program.steps[s].node];
        Group single;
        single.first = program.steps[s].node;
        single.level = level;
        single.count = graph_.values()[node.output].shape.count();
        append(single, node);
        group_of_[node.output] = static_cast<GroupId>(groups_.size());
        groups_[id].merged_into = group_of_[node.output];  // for resolve(): the level is the same
        groups_.push_back(single);
      }
    }
  }

  Grouping finish() {
    split_refused();
    elide_stores();
    result_.written.assign(graph_.values().size(), 0);
    for (const Group& g : groups_) {
      if (g.dropped) continue;
      auto mark = [&](ValueId v, const Group& by) {
        if (group_of_[v] != no_group && &groups_[group_of_[v]] != &by) result_.written[v] = 1;
      };
      for (std::size_t i = 0; i < g.program.input_count; ++i) mark(g.program.inputs[i].value, g);
      if (g.root != no_node) {
        const Node& root = nodes_[g.root];
        for (std::size_t k = 0; k < root.input_count; ++k) mark(root.inputs[k], g);
        if (root.output != record::no_value && g.program.step_count == 0) result_.written[root.output] = 1;
      }
      if (g.program.step_count != 0) result_.written[g.program.steps[g.program.step_count - 1].result] = 1;
      for (std::size_t s = 0; s < g.program.step_count; ++s) {
        const ValueId v = g.program.steps[s].result;
        if (readable(graph_, v, options_)) result_.written[v] = 1;
      }
      const std::size_t ops = g.program.step_count + (g.root != no_node ? 1u : 0u);
      result_.fused_operations += ops - 1;
    }
    std::vector<GroupId> order(groups_.size());
    std::iota(order.begin(), order.end(), GroupId{0});
    std::stable_sort(order.begin(), order.end(), [&](GroupId x, GroupId y) {
      return groups_[x].level != groups_[y].level ? groups_[x].level < groups_[y].level
                                                  : groups_[x].first < groups_[y].first;
    });
    for (GroupId id : order) {
      Group& g = groups_[id];
      if (g.dropped) continue;
      for (std::size_t s = 0; s < g.program.step_count; ++s) {
        if (result_.written[g.program.steps[s].result] != 0) g.written = static_cast<std::uint8_t>(g.written | 1u << s);
      }
      result_.groups.push_back(g);
    }
    return std::move(result_);
  }

  // A value that is only stored is written where it belongs at once, instead of being copied there:
  // if nobody reads the old contents of the buffer later than that.
  void elide_stores() {
    result_.stored.assign(graph_.values().size(), record::no_resource);
    if (!options_.fuse) return;
    for (ResourceId resource = 0; resource < uses_.size(); ++resource) {
      const ResourceUse& use = uses_[resource];
      if (use.stores != 1 || use.pinned) continue;
      const ValueId value = nodes_[use.store_node].inputs[0];
      const GroupId id = group_of_[value];
      if (id == no_group || consumers_[value] != 1 || readable(graph_, value, options_)) continue;
      if (value != last_value(groups_[id]) || !old_contents_are_done_with(resource, id)) continue;
      result_.stored[value] = resource;
      groups_[use.store_group].dropped = true;
      ++result_.fused_operations;
    }
  }

  bool old_contents_are_done_with(ResourceId resource, GroupId writer) const {
    for (GroupId reader : uses_[resource].readers) {
      const GroupId id = resolve(reader);
      if (id == writer && updates_in_place(groups_[id], resource)) continue;
      if (groups_[id].level >= groups_[writer].level) return false;
    }
    return true;
  }

  // In place, element by element. Not with more outputs: a driver may load an input again after the
  // first store, as the kernel declares its inputs free of aliases.
  bool updates_in_place(const Group& group, ResourceId resource) const {
    if (group.root != no_node || !writes_only_last(group)) return false;
    bool reads = false;  // this part of a group that was taken apart
    for (std::size_t i = 0; i < group.program.input_count; ++i) {
      const auto& in = group.program.inputs[i];
      const record::Value& value = graph_.values()[in.value];
      if (value.resource != resource) continue;
      reads = true;
      if (in.repeat.div != 1 || in.repeat.mod != group.count || value.offset != 0) return false;
    }
    return reads;
  }

  bool writes_only_last(const Group& group) const {
    for (std::size_t s = 0; s + 1 < group.program.step_count; ++s) {
      if (readable(graph_, group.program.steps[s].result, options_)) return false;
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

bool ProgramSet::admit(std::vector<std::uint32_t> program, bool only_ask) {
  std::lock_guard lock(mutex_);
  if (known_.size() >= limit_) return known_.count(program) != 0;
  if (!only_ask) known_.insert(std::move(program));
  return true;
}

ElementwiseMode mode_of(const record::Repeat& repeat, std::uint64_t count) {
  if (repeat.div == 1 && repeat.mod == count) return ElementwiseMode::full;
  if (repeat.mod == 1) return ElementwiseMode::scalar;
  if (repeat.div == 1 && repeat.mod % 4 == 0) return ElementwiseMode::row_vec4;
  if (repeat.div % 4 == 0) return ElementwiseMode::column_vec4;
  return ElementwiseMode::general;
}

bool readable(const record::Graph& graph, ValueId value, const PlanOptions& options) {
  const record::Value& v = graph.values()[value];
  return options.keep_all || v.keep || (v.consumers == 0 && !options.keep_marked_only);
}

Grouping fuse(const record::Graph& graph, const PlanOptions& options) { return Fuser(graph, options).run(); }

}  // namespace brontes::plan
