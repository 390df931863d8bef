#include "plan/homes.hpp"

#include "record/view.hpp"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <vector>

namespace brontes::plan {
namespace {

using record::Node;
using record::ResourceId;
using record::ValueId;
using GroupId = std::uint32_t;
constexpr GroupId no_group = ~GroupId{0};
constexpr std::uint32_t no_home = ~std::uint32_t{0};
constexpr std::uint64_t vec4_bytes = 16;

class Settler {
 public:
  Settler(const record::Graph& graph, const Traits& traits, Grouping& grouping)
      : graph_(graph), alignment_(traits.storage_alignment), grouping_(grouping), groups_(grouping.groups) {}

  void run() {
    std::vector<GroupId> movers;
    for (GroupId g = 0; g < groups_.size(); ++g) {
      if (groups_[g].root != no_node && root(g).op->moves != nullptr) movers.push_back(g);
    }
    if (movers.empty()) return;
    find_makers();
    find_accesses(movers);
    // The last first: where a result lies is known before where its parts do.
    std::sort(movers.begin(), movers.end(), [&](GroupId x, GroupId y) { return groups_[x].root > groups_[y].root; });
    for (GroupId mover : movers) settle(mover);
    std::sort(grouping_.homes.begin(), grouping_.homes.end(), [](const Home& x, const Home& y) { return x.of < y.of; });
    std::erase_if(groups_, [](const Group& g) { return g.dropped; });
  }

 private:
  const Node& root(GroupId group) const { return graph_.nodes()[groups_[group].root]; }

  // What a group reads from memory, once for each time that it is bound.
  template <class Visit>
  void for_each_input(const Group& group, Visit visit) const {
    for (std::size_t i = 0; i < group.program.input_count; ++i) visit(group.program.inputs[i].value);
    if (group.prologue != no_prologue) {
      const ElementwiseProgram& prologue = grouping_.prologues[group.prologue];
      for (std::size_t i = 0; i < prologue.input_count; ++i) visit(prologue.inputs[i].value);
    }
    if (group.root == no_node) return;
    const auto inputs = graph_.inputs(graph_.nodes()[group.root]);
    for (std::size_t k = group.prologue != no_prologue ? 1 : 0; k < inputs.size(); ++k) visit(graph_.base(inputs[k]));
  }

  void find_makers() {
    maker_.assign(graph_.values().size(), no_group);
    uses_.assign(graph_.values().size(), 0);
    home_.assign(graph_.values().size(), no_home);
    for (GroupId g = 0; g < groups_.size(); ++g) {
      const Group& group = groups_[g];
      for (std::size_t s = 0; s < group.program.step_count; ++s) {
        if ((group.written >> s & 1u) != 0) maker_[group.program.steps[s].result] = g;
      }
      if (group.root != no_node && group.program.step_count == 0) {
        const Node& node = root(g);
        for (ValueId v = node.output; v - node.output < node.output_count; ++v) maker_[v] = g;
      }
      for_each_input(group, [&](ValueId v) { ++uses_[v]; });
    }
  }

  // Of a resource that something is stored to.
  struct Access {
    std::uint64_t begin;
    std::uint64_t end;
    GroupId by;
    GroupId store;  // that the write is part of; no_group for a read
  };

  void find_accesses(const std::vector<GroupId>& movers) {
    for (GroupId g : movers) {
      const Node& node = root(g);
      if (node.destination == record::no_resource || graph_.value(graph_.inputs(node)[0]).shape.count() == 0) continue;
      // What lies between the first element and the last is as good as written.
      const record::Access to = access(node, 0);
      std::int64_t first = to.offset;
      std::int64_t last = to.offset;
      for (std::size_t d = 0; d < to.rank; ++d) {
        const std::int64_t distance = (std::int64_t{to.extents[d]} - 1) * to.strides[d];
        (distance < 0 ? first : last) += distance;
      }
      const std::uint64_t size = element_bytes(graph_.inputs(node)[0]);
      accesses_[node.destination].push_back(
          {static_cast<std::uint64_t>(first) * size, static_cast<std::uint64_t>(last + 1) * size, g, g});
    }
    if (accesses_.empty()) return;
    for (GroupId g = 0; g < groups_.size(); ++g) {
      for_each_input(groups_[g], [&](ValueId v) {
        const record::Value& value = graph_.value(v);
        if (value.weight) return;
        const auto at = accesses_.find(value.resource);
        if (at != accesses_.end()) at->second.push_back({value.offset, value.offset + value.bytes(), g, no_group});
      });
    }
  }

  // The elements that operand k goes to.
  record::Access access(const Node& node, std::size_t k) const {
    const Shape& shape = graph_.value(graph_.inputs(node)[k]).shape;
    const record::ViewAttributes view = node.op->moves(graph_, node, k);
    return record::access(shape, {view.strides.items.data(), shape.rank()}, view.offset);
  }

  // What a group moves its operands into, and the memory that is.
  struct Target {
    ValueId value = record::no_value;           // its result, if it has one
    ValueId whole = record::no_value;           // what that lies in: a value,
    ResourceId resource = record::no_resource;  // or a resource
    std::uint64_t offset = 0;                   // from the beginning of either
    GroupId store = no_group;                   // which would bring it there
  };

  Target target_of(GroupId mover) const {
    Target target;
    const Node& node = root(mover);
    if (node.destination != record::no_resource) {
      target.resource = node.destination;
      target.store = mover;
      return target;
    }
    target.value = target.whole = node.output;
    while (target.whole != record::no_value && home_[target.whole] != no_home) {
      const std::uint32_t index = home_[target.whole];
      const Home& home = grouping_.homes[index];
      target.whole = home.in;
      target.resource = home.resource;
      target.offset += home.offset;
      target.store = stores_[index];
    }
    return target;
  }

  struct Operand {
    ValueId value;
    record::Access to;
    bool again;  // an earlier operand is the same
  };

  std::vector<Operand> operands_with_elements(const Node& node) const {
    std::vector<Operand> all;
    for (std::size_t k = 0; k < node.input_count; ++k) {
      const ValueId x = graph_.base(graph_.inputs(node)[k]);
      if (graph_.value(x).shape.count() == 0) continue;
      const bool again = std::any_of(all.begin(), all.end(), [&](const Operand& other) { return other.value == x; });
      all.push_back({x, access(node, k), again});
    }
    return all;
  }

  // Gives the operands of a group homes in what it moves them into. What is left has to be moved by one dispatch, as
  // everything would be: all that lies between the first and the last of these stays, too.
  void settle(GroupId mover) {
    const Node& node = root(mover);
    const Target target = target_of(mover);
    const std::vector<Operand> operands = operands_with_elements(node);
    if (operands.empty()) return;
    const auto stays = [&](const Operand& x) { return x.again || !fits(node, x, target); };
    const auto first = std::find_if(operands.begin(), operands.end(), stays);
    const auto last = std::find_if(operands.rbegin(), std::make_reverse_iterator(first), stays).base();
    for (auto x = operands.begin(); x != operands.end(); ++x) {
      if (x < first || x >= last) move_in(*x, target);
    }
    if (first != operands.end()) return;
    groups_[mover].dropped = true;
    ++grouping_.fused_operations;
  }

  void move_in(const Operand& x, const Target& target) {
    const std::uint64_t offset = x.to.offset * element_bytes(x.value);
    home_[x.value] = static_cast<std::uint32_t>(grouping_.homes.size());
    const bool in_resource = target.value == record::no_value;
    grouping_.homes.push_back({x.value, target.value, in_resource ? target.resource : record::no_resource, offset});
    stores_.push_back(target.store);
    if (target.store == no_group) return;
    const std::uint64_t begin = target.offset + offset;
    const std::uint64_t end = begin + graph_.value(x.value).bytes();
    accesses_[target.resource].push_back({begin, end, maker_[x.value], target.store});
  }

  bool fits(const Node& node, const Operand& operand, const Target& target) const {
    const ValueId x = operand.value;
    const record::Access& to = operand.to;
    if (maker_[x] == no_group || home_[x] != no_home) return false;
    if (to.rank > 1 || (to.rank == 1 && to.strides[0] != 1)) return false;
    // Ranges are bound from aligned offsets on, and what is written is whole vec4s. A part of a result also ends at an
    // aligned offset, where the rest can be bound, unless it is the last: what is behind that is nobody's.
    const std::uint64_t begin = target.offset + to.offset * element_bytes(x);
    const std::uint64_t end = begin + graph_.value(x).bytes();
    const bool ends_well = target.value == record::no_value
                               ? node.op->fills || end % vec4_bytes == 0
                               : end % alignment_ == 0 || end - target.offset == graph_.value(target.value).bytes();
    if (begin % alignment_ != 0 || !ends_well) return false;
    if (target.store == no_group) return !wanted(x) || wanted(target.whole);
    return uses_[x] == 1 && !wanted(x) && can_be_early(x, begin, end, target);
  }

  // Whether x may be written to these bytes of a resource when it is made: by then, all reads and writes of them that
  // come before the store are over.
  bool can_be_early(ValueId x, std::uint64_t begin, std::uint64_t end, const Target& target) const {
    const GroupId maker = maker_[x];
    const std::vector<Access>& all = accesses_.at(target.resource);
    return std::all_of(all.begin(), all.end(), [&](const Access& a) {
      if (a.end <= begin || a.begin >= end || a.store == target.store) return true;
      if (a.by == maker && a.store == no_group) {
        return updates_in_place(groups_[maker], target.resource, begin, end, graph_.value(x).half());
      }
      const std::uint32_t level = groups_[a.by].level;
      return level < groups_[maker].level || level > groups_[target.store].level;
    });
  }

  // Element by element, and with one output: a driver may load an input again after the first store, as the kernel
  // declares its inputs free of aliases.
  bool updates_in_place(const Group& group, ResourceId resource, std::uint64_t begin, std::uint64_t end,
                        bool half) const {
    if (group.root != no_node || group.program.strided || (group.written & (group.written - 1)) != 0) return false;
    for (std::size_t i = 0; i < group.program.input_count; ++i) {
      const auto& in = group.program.inputs[i];
      const record::Value& value = graph_.value(in.value);
      if (value.resource != resource || value.offset >= end || value.offset + value.bytes() <= begin) continue;
      const bool same = value.offset == begin && value.half() == half;
      if (!same || mode_of(in.repeat, group.count) != ElementwiseMode::full) return false;
    }
    return true;
  }

  bool wanted(ValueId value) const { return grouping_.wanted[value] != 0; }
  std::uint64_t element_bytes(ValueId value) const { return block_bytes(graph_.value(value).dtype); }

  const record::Graph& graph_;
  std::uint64_t alignment_;
  Grouping& grouping_;
  std::vector<Group>& groups_;
  std::vector<GroupId> maker_;       // by value that is written: by whom
  std::vector<std::uint32_t> uses_;  // by value: how often it is bound to be read
  std::vector<std::uint32_t> home_;  // by value: an index into the homes
  std::vector<GroupId> stores_;      // by home: the store that it is part of, if it is
  std::unordered_map<ResourceId, std::vector<Access>> accesses_;
};

}  // namespace

void find_homes(const record::Graph& graph, const Traits& traits, const PlanOptions& options, Grouping& grouping) {
  if (options.fuse) Settler(graph, traits, grouping).run();
}

bool is_there(const record::Graph& graph, const std::vector<Home>& homes, const Node& mover, std::size_t k) {
  const ValueId operand = graph.base(graph.inputs(mover)[k]);
  const Home* home = Home::find(homes, operand);
  return home != nullptr && home->in == mover.output && home->resource == mover.destination &&
         home->offset == mover.op->moves(graph, mover, k).offset * block_bytes(graph.value(operand).dtype);
}

}  // namespace brontes::plan
