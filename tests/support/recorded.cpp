#include "support/recorded.hpp"

#include "record/view.hpp"

#include <algorithm>
#include <array>

namespace brontes::test {
namespace {

using record::Graph;
using record::Node;
using record::ValueId;

// Which element of an operand each element of a broadcast result takes, dim by dim.
std::vector<std::size_t> broadcast_indices(const Shape& operand, const Shape& result) {
  const std::size_t missing = result.rank() - operand.rank();
  std::vector<std::size_t> indices(result.count());
  for (std::size_t j = 0; j < indices.size(); ++j) {
    std::size_t rest = j;
    std::size_t index = 0;
    std::size_t stride = 1;
    for (std::size_t d = result.rank(); d-- > 0;) {
      const std::size_t coordinate = rest % result[d];
      rest /= result[d];
      if (d < missing) continue;
      const std::size_t extent = operand[d - missing];
      if (extent != 1) index += coordinate * stride;
      stride *= extent;
    }
    indices[j] = index;
  }
  return indices;
}

// The same for a view op, and the other way round for a store to a slice: coordinates times strides.
std::vector<std::size_t> view_indices(const record::ViewAttributes& view, const Shape& result) {
  std::vector<std::size_t> indices(result.count());
  for (std::size_t j = 0; j < indices.size(); ++j) {
    std::size_t rest = j;
    std::int64_t index = view.offset;
    for (std::size_t d = std::min(result.rank(), Shape::max_rank); d-- > 0;) {
      index += static_cast<std::int64_t>(rest % result[d]) * view.strides.items[d];
      rest /= result[d];
    }
    indices[j] = static_cast<std::size_t>(index);
  }
  return indices;
}

class Run {
 public:
  explicit Run(const Graph& graph) : graph_(graph) {}

  Recorded run() {
    recorded_.values.resize(graph_.values().size());
    for (const record::Upload& u : graph_.uploads()) {
      auto& words = recorded_.values[u.value];
      words.resize(graph_.values()[u.value].shape.count());
      for (std::size_t i = 0; i < words.size(); ++i) words[i] = Symbols::uploaded(u.value, i);
    }
    for (ValueId v = 0; v < graph_.values().size(); ++v) {
      if (graph_.values()[v].resource != record::no_resource) recorded_.values[v] = window(v);
    }
    for (std::size_t n = graph_.first_pending_node(); n < graph_.nodes().size(); ++n) {
      step(static_cast<std::uint32_t>(n));
    }
    for (ValueId v = 0; v < graph_.values().size(); ++v) {
      if (graph_.base(v) != v) recorded_.values[v] = recorded_.values[graph_.base(v)];
    }
    return std::move(recorded_);
  }

 private:
  // What lies in a buffer now.
  std::vector<Symbol> window(ValueId value) { return recorded_.buffers.read(region_of(graph_.values()[value])); }

  std::vector<Symbol> operand(ValueId view) {
    const ValueId value = graph_.base(view);
    return graph_.values()[value].resource != record::no_resource ? window(value) : recorded_.values[value];
  }

  void step(std::uint32_t index) {
    const Node& node = graph_.nodes()[index];
    std::vector<std::vector<Symbol>> inputs;
    for (ValueId v : graph_.inputs(node)) inputs.push_back(operand(v));
    if (node.op->elementwise != nullptr) return elementwise(node, inputs);
    if (node.op->moves != nullptr) return move(index, inputs);
    auto& contents = recorded_.operands[index];
    for (const auto& words : inputs) contents.push_back(Symbols::contents(words.data(), words.size()));
    for (std::uint32_t result = 0; result < node.output_count; ++result) {
      auto& words = recorded_.values[node.output + result];
      words.resize(graph_.value(node.output + result).shape.count());
      for (std::size_t j = 0; j < words.size(); ++j) words[j] = Symbols::opaque(node, contents, result, j);
    }
  }

  void move(std::uint32_t index, const std::vector<std::vector<Symbol>>& inputs) {
    const Node& node = graph_.nodes()[index];
    const bool store = node.output_count == 0;
    if (!store) recorded_.values[node.output].assign(graph_.value(node.output).shape.count(), garbage);
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const std::vector<std::size_t> to = destinations(graph_, node, k);
      const plan::Region into{node.destination, 0, 0, graph_.value(graph_.inputs(node)[k]).half()};
      for (std::size_t i = 0; i < to.size(); ++i) {
        if (store) {
          recorded_.buffers.set(into, to[i], inputs[k][i]);
        } else {
          recorded_.values[node.output][to[i]] = inputs[k][i];
        }
      }
    }
    recorded_.moved[index] = inputs;
  }

  void elementwise(const Node& node, const std::vector<std::vector<Symbol>>& inputs) {
    const Shape& shape = graph_.value(node.output).shape;
    auto& words = recorded_.values[node.output];
    words.resize(shape.count());
    std::vector<std::vector<std::size_t>> indices;
    if (node.op->view) indices.push_back(view_indices(node.attributes.as<record::ViewAttributes>(), shape));
    for (std::size_t k = indices.size(); k < inputs.size(); ++k) {
      indices.push_back(inputs[k].size() == words.size()
                            ? std::vector<std::size_t>()
                            : broadcast_indices(graph_.value(graph_.inputs(node)[k]).shape, shape));
    }
    const auto scalars = record::scalars(node);
    for (std::size_t j = 0; j < words.size(); ++j) {
      std::array<Symbol, record::elementwise_max_arity> x{garbage, garbage, garbage};
      for (std::size_t k = 0; k < inputs.size(); ++k) x[k] = inputs[k][indices[k].empty() ? j : indices[k][j]];
      words[j] = Symbols::elementwise(record::elementwise_op(node), scalars.p, scalars.q, x[0], x[1], x[2]);
    }
  }

  const Graph& graph_;
  Recorded recorded_;
};

}  // namespace

namespace {

// The cells of an element that has two.
constexpr Symbol lower = 0x5bd1e9955bd1e995u;
constexpr Symbol upper = 0xc2b2ae3d27d4eb4fu;

}  // namespace

std::vector<Symbol>& Memory::cells(record::ResourceId resource, std::uint64_t count) {
  std::vector<Symbol>& cells = memory_[resource];
  const std::size_t wanted = (count + 1) / 2 * 2;
  for (std::size_t at = cells.size(); at < wanted; at += 2) {
    const Symbol word = Symbols::initial(resource, at / 2);
    const bool nothing = resource == plan::arena;
    cells.push_back(nothing ? garbage : word ^ lower);
    cells.push_back(nothing ? garbage : word ^ upper);
  }
  return cells;
}

Symbol Memory::get(const plan::Region& region, std::uint64_t element) {
  const std::uint64_t size = region.element_bytes();
  const std::uint64_t at = (region.offset + element * size) / 2;
  const std::vector<Symbol>& all = cells(region.resource, at + size / 2);
  if (region.half) return all[at];
  if (all[at] == garbage && all[at + 1] == garbage) return garbage;
  const bool whole = (all[at] ^ lower) == (all[at + 1] ^ upper);
  return whole ? all[at] ^ lower : Symbols::contents(&all[at], 2);
}

void Memory::set(const plan::Region& region, std::uint64_t element, Symbol symbol) {
  const std::uint64_t size = region.element_bytes();
  const std::uint64_t at = (region.offset + element * size) / 2;
  std::vector<Symbol>& all = cells(region.resource, at + size / 2);
  all[at] = region.half || symbol == garbage ? symbol : symbol ^ lower;
  if (!region.half) all[at + 1] = symbol == garbage ? symbol : symbol ^ upper;
}

std::vector<Symbol> Memory::read(const plan::Region& region) {
  std::vector<Symbol> elements(region.bytes / region.element_bytes());
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = get(region, i);
  return elements;
}

void Memory::write(const plan::Region& region, const std::vector<Symbol>& elements) {
  for (std::size_t i = 0; i < elements.size(); ++i) set(region, i, elements[i]);
}

plan::Region region_of(const record::Value& value) {
  return {value.resource, value.offset, value.bytes(), value.half()};
}

std::string Recorded::name(Symbol symbol) const {
  if (symbol == garbage) return "garbage";
  for (std::size_t v = 0; v < values.size(); ++v) {
    const auto found = std::find(values[v].begin(), values[v].end(), symbol);
    if (found == values[v].end()) continue;
    return "%" + std::to_string(v) + "[" + std::to_string(found - values[v].begin()) + "]";
  }
  return "something never recorded";
}

std::vector<std::size_t> destinations(const Graph& graph, const Node& mover, std::size_t k) {
  return view_indices(mover.op->moves(graph, mover, k), graph.value(graph.inputs(mover)[k]).shape);
}

Recorded run_recording(const Graph& graph) { return Run(graph).run(); }

bool must_be_readable(const Graph& graph, ValueId value, const plan::PlanOptions& options) {
  const record::Value& v = graph.values()[value];
  if (options.keep_all || v.keep) return true;
  return !options.keep_marked_only && v.consumers == 0;
}

std::vector<bool> find_needed(const Graph& graph, const plan::PlanOptions& options) {
  std::vector<bool> needed(graph.nodes().size(), false);
  std::vector<bool> used(graph.values().size(), false);
  for (ValueId v = 0; v < graph.values().size(); ++v) {
    if (graph.base(v) != v && must_be_readable(graph, v, options)) used[graph.base(v)] = true;
  }
  for (std::size_t n = graph.nodes().size(); n-- > graph.first_pending_node();) {
    const Node& node = graph.nodes()[n];
    needed[n] = node.output_count == 0;
    for (ValueId v = node.output; v - node.output < node.output_count; ++v) {
      needed[n] = needed[n] || used[v] || must_be_readable(graph, v, options);
    }
    if (!needed[n]) continue;
    for (ValueId v : graph.inputs(node)) used[graph.base(v)] = true;
  }
  return needed;
}

}  // namespace brontes::test
