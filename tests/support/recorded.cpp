#include "support/recorded.hpp"

#include <algorithm>

namespace brontes::test {
namespace {

using record::Graph;
using record::Node;
using record::NodeKind;
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
    return std::move(recorded_);
  }

 private:
  // What lies in a buffer now.
  std::vector<Symbol> window(ValueId value) {
    const record::Value& v = graph_.values()[value];
    const Symbol* words = recorded_.buffers.at({v.resource, v.offset, v.bytes()});
    return {words, words + v.shape.count()};
  }

  std::vector<Symbol> operand(ValueId value) {
    return graph_.values()[value].resource != record::no_resource ? window(value) : recorded_.values[value];
  }

  void step(std::uint32_t index) {
    const Node& node = graph_.nodes()[index];
    std::vector<Symbol> x = node.input_count > 0 ? operand(node.inputs[0]) : std::vector<Symbol>();
    const std::vector<Symbol> y = node.input_count > 1 ? operand(node.inputs[1]) : std::vector<Symbol>();
    switch (node.kind) {
      case NodeKind::elementwise: return elementwise(node, x, y);
      case NodeKind::reduce: return reduce(node, x, y);
      case NodeKind::matmul: return matmul(node, x, y);
      case NodeKind::store: {
        std::copy(x.begin(), x.end(), recorded_.buffers.at({node.store.resource, 0, x.size() * 4}));
        recorded_.stores[index] = std::move(x);
        return;
      }
    }
  }

  void elementwise(const Node& node, const std::vector<Symbol>& x, const std::vector<Symbol>& y) {
    const Shape& shape = graph_.values()[node.output].shape;
    auto& words = recorded_.values[node.output];
    words.resize(shape.count());
    std::vector<std::size_t> of_x;
    std::vector<std::size_t> of_y;
    if (node.input_count > 0 && x.size() != words.size()) {
      of_x = broadcast_indices(graph_.values()[node.inputs[0]].shape, shape);
    }
    if (node.input_count > 1 && y.size() != words.size()) {
      of_y = broadcast_indices(graph_.values()[node.inputs[1]].shape, shape);
    }
    for (std::size_t j = 0; j < words.size(); ++j) {
      const Symbol a = x.empty() ? garbage : x[of_x.empty() ? j : of_x[j]];
      const Symbol b = y.empty() ? garbage : y[of_y.empty() ? j : of_y[j]];
      words[j] = Symbols::elementwise(node.elementwise.op, node.elementwise.p, node.elementwise.q, a, b);
    }
  }

  void reduce(const Node& node, const std::vector<Symbol>& x, const std::vector<Symbol>& y) {
    const auto combine = node.reduce.op == record::ReduceOp::max   ? Symbols::Combine::max
                         : node.reduce.op == record::ReduceOp::min ? Symbols::Combine::min
                                                                   : Symbols::Combine::sum;
    Symbols::Reduction reduction(symbols_, combine);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (node.input_count == 2) {
        reduction.add_product(x[i], y[i]);
      } else {
        reduction.add(x[i]);
      }
    }
    recorded_.values[node.output] = {reduction.result()};
  }

  void matmul(const Node& node, const std::vector<Symbol>& a, const std::vector<Symbol>& b) {
    const record::MatmulNode& op = node.matmul;
    auto& words = recorded_.values[node.output];
    if (op.k == 0) {
      words.assign(op.m * op.n, Symbols::elementwise(record::ElementwiseOp::fill, 0, 0, garbage, garbage));
      return;
    }
    words.resize(op.m * op.n);
    for (std::uint64_t i = 0; i < op.m; ++i) {
      for (std::uint64_t j = 0; j < op.n; ++j) {
        Symbols::Product product(0);
        for (std::uint64_t k = 0; k < op.k; ++k) {
          product.add(a[i * op.k + k], op.layout == Layout::nk ? b[j * op.k + k] : b[k * op.n + j]);
        }
        words[i * op.n + j] = product.result(op.alpha);
      }
    }
  }

  const Graph& graph_;
  Symbols symbols_;
  Recorded recorded_;
};

}  // namespace

Symbol* Memory::at(const plan::Region& region) {
  std::vector<Symbol>& words = memory_[region.resource];
  const std::size_t end = (region.offset + region.bytes) / 4;
  if (words.size() < end) {
    const std::size_t before = words.size();
    words.resize(end, garbage);
    if (region.resource != plan::arena) {
      for (std::size_t i = before; i < end; ++i) words[i] = Symbols::initial(region.resource, i);
    }
  }
  return words.data() + region.offset / 4;
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

Recorded run_recording(const Graph& graph) { return Run(graph).run(); }

bool must_be_readable(const Graph& graph, ValueId value, const plan::PlanOptions& options) {
  const record::Value& v = graph.values()[value];
  if (options.keep_all || v.keep) return true;
  return !options.keep_marked_only && v.consumers == 0;
}

std::vector<bool> find_needed(const Graph& graph, const plan::PlanOptions& options) {
  std::vector<bool> needed(graph.nodes().size(), false);
  std::vector<bool> used(graph.values().size(), false);
  for (std::size_t n = graph.nodes().size(); n-- > graph.first_pending_node();) {
    const Node& node = graph.nodes()[n];
    needed[n] = node.kind == NodeKind::store || used[node.output] || must_be_readable(graph, node.output, options);
    if (!needed[n]) continue;
    for (std::size_t k = 0; k < node.input_count; ++k) used[node.inputs[k]] = true;
  }
  return needed;
}

}  // namespace brontes::test
