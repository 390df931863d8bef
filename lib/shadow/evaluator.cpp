#include "shadow/evaluator.hpp"

#include "record/elementwise.hpp"
#include "record/view.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace brontes::shadow {

using record::Node;
using record::ValueId;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr auto smallest_normal = static_cast<double>(std::numeric_limits<float>::min());

// An element that may be off by so much.
struct Inexact {
  double value = 0;
  double off = 0;
};

// The device may have flushed a denormal operand.
double spread_of(const Inexact& x) {
  return x.value != 0 && std::fabs(x.value) < smallest_normal ? std::max(x.off, std::fabs(x.value)) : x.off;
}

// One element: the tolerance of the op, and what the errors of its operands make of it. The corners of the box that
// these span show how far that is: formulas are monotonic over so small a box, or jump.
Inexact apply(const reference::Elementwise& op, const std::array<Inexact, 3>& x, float p, float q) {
  auto formula = [&](double a, double b, double c) {
    return op.formula(a, b, c, static_cast<double>(p), static_cast<double>(q));
  };
  const double value = formula(x[0].value, x[1].value, x[2].value);
  double off = op.tolerance.absolute + op.tolerance.relative * std::fabs(value);
  const std::array<double, 3> spread{spread_of(x[0]), spread_of(x[1]), spread_of(x[2])};
  if (spread[0] == 0 && spread[1] == 0 && spread[2] == 0) return {value, std::isfinite(value) ? off : 0};
  double furthest = 0;
  for (unsigned corner = 0; corner < 8; ++corner) {
    std::array<double, 3> at{};
    for (unsigned k = 0; k < 3; ++k) at[k] = x[k].value + ((corner >> k & 1u) != 0 ? spread[k] : -spread[k]);
    const double there = formula(at[0], at[1], at[2]);
    if (std::isnan(there) != std::isnan(value) || std::isinf(there) != std::isinf(value)) return {value, infinity};
    if (std::isfinite(there)) furthest = std::max(furthest, std::fabs(there - value));
  }
  return {value, std::isfinite(value) ? off + furthest : 0};
}

bool exact(const Expected& x) {
  return std::all_of(x.allowed.begin(), x.allowed.end(), [](double off) { return off == 0; });
}

}  // namespace

Evaluator::Evaluator(const plan::Plan& plan, const record::Graph& graph)
    : Words(plan, graph), maker_(graph.values().size(), plan::no_node) {
  for (std::size_t n = graph.first_pending_node(); n < graph.nodes().size(); ++n) {
    const Node& made = graph.nodes()[n];
    for (ValueId v = 0; v < made.output_count; ++v) maker_[made.output + v] = static_cast<std::uint32_t>(n);
  }
}

// One evaluation of a group.
class Evaluator::Run {
 public:
  Run(const Evaluator& of, const Fetch& fetch) : of_(of), graph_(of.graph_), fetch_(fetch) {}

  Error node(const Node& node) {
    if (node.output_count != 1) return refuse(node, "has no single result");
    std::vector<Expected> operands;
    for (ValueId v : graph_.inputs(node)) {
      if (graph_.value(v).weight) return refuse(node, "has a stored weight");
      auto operand = value(v);
      if (!operand) return operand.error();
      if (!result_.not_checked.empty()) return {};
      operands.push_back(std::move(*operand));
    }
    if (node.op->elementwise != nullptr) return elementwise(node, operands);
    if (node.op->reference == nullptr) return refuse(node, "has no reference");
    std::vector<Values> values;
    values.reserve(operands.size());
    for (const Expected& operand : operands) values.push_back(operand.values);
    Expected made = node.op->reference(graph_, node, values);
    if (!operands.empty() && !exact(operands[0])) widen(node, operands[0], values, made);
    result_.made[node.output] = std::move(made);
    return {};
  }

  Evaluation take() { return std::move(result_); }

 private:
  Error refuse(const Node& node, const char* why) {
    if (result_.not_checked.empty()) result_.not_checked = std::string(name(node)) + ": " + why;
    return {};
  }

  // The elements of a value: made in this group, from memory, or chosen by a view that is read where it lies.
  brontes::Result<Expected> value(ValueId id) {
    const ValueId v = graph_.base(id);
    if (const auto made = result_.made.find(v); made != result_.made.end()) return made->second;
    if (const auto known = result_.operands.find(v); known != result_.operands.end()) return certain(known->second);
    auto fetched = fetch_(v);
    if (!fetched) return fetched.error();
    if (fetched->has_value()) return certain(result_.operands.emplace(v, std::move(**fetched)).first->second);
    const std::uint32_t maker = of_.maker_[v];
    if (maker == plan::no_node || !of_.node(maker).op->view) {
      if (result_.not_checked.empty()) result_.not_checked = "an operand, " + record::text_of(v) + ", is not in memory";
      return Expected();
    }
    const Node& view = of_.node(maker);
    auto seen = value(graph_.inputs(view)[0]);
    if (!seen || !result_.not_checked.empty()) return seen;
    const record::Access access = record::operand_access(graph_, view, 0);
    Expected chosen;
    for (std::uint64_t j = 0; j < graph_.value(v).shape.count(); ++j) {
      chosen.values.push_back(seen->values[access(j)]);
      chosen.allowed.push_back(seen->allowed[access(j)]);
    }
    return chosen;
  }

  static Expected certain(const Values& values) { return {values, Values(values.size())}; }

  Error elementwise(const Node& node, const std::vector<Expected>& operands) {
    const reference::Elementwise* op = reference::elementwise(node.op->elementwise->name);
    if (op == nullptr) return refuse(node, "has no reference");
    std::array<record::Access, 3> accesses{};
    for (std::size_t k = 0; k < operands.size(); ++k) accesses[k] = record::operand_access(graph_, node, k);
    record::ElementwiseAttributes scalars = record::scalars(node);
    const std::uint64_t count = graph_.value(node.output).shape.count();
    Expected made{Values(count), Values(count)};
    for (std::uint64_t j = 0; j < count; ++j) {
      std::array<Inexact, 3> x{};
      for (std::size_t k = 0; k < operands.size(); ++k) {
        const std::uint64_t at = accesses[k](j);
        x[k] = {operands[k].values[at], operands[k].allowed[at]};
      }
      const Inexact y = apply(*op, x, scalars.p, scalars.q);
      made.values[j] = y.value;
      made.allowed[j] = y.off;
    }
    result_.made[node.output] = std::move(made);
    return {};
  }

  // The first operand is inexact: a prologue made it. How much that matters is tried out with errors of several
  // patterns, and taken fourfold, since these need not be the worst.
  void widen(const Node& node, const Expected& first, std::vector<Values>& operands, Expected& made) const {
    Values most(made.values.size());
    for (int pattern = 0; pattern < 6; ++pattern) {
      for (std::size_t i = 0; i < first.values.size(); ++i) {
        const double along = std::copysign(1.0, first.values[i]);
        const double alternating = i % 2 == 0 ? 1 : -1;
        const double sign = pattern < 2 ? 1 : pattern < 4 ? along : alternating;
        operands[0][i] = first.values[i] + (pattern % 2 == 0 ? sign : -sign) * first.allowed[i];
      }
      const Expected other = node.op->reference(graph_, node, operands);
      for (std::size_t i = 0; i < most.size(); ++i) {
        const double apart = std::fabs(other.values[i] - made.values[i]);
        if (std::isfinite(apart)) most[i] = std::max(most[i], apart);
      }
    }
    for (std::size_t i = 0; i < most.size(); ++i) made.allowed[i] += 4 * most[i];
  }

  const Evaluator& of_;
  const record::Graph& graph_;
  const Fetch& fetch_;
  Evaluation result_;
};

brontes::Result<Evaluation> Evaluator::evaluate(const plan::Group& group, const Fetch& fetch) const {
  Run run(*this, fetch);
  for (std::uint32_t n : nodes(group)) {
    if (Error e = run.node(node(n))) return e;
  }
  return run.take();
}

bool matches(double got, double expected, double allowed, DType type) {
  if (allowed == infinity) return true;
  if (type != DType::f32 && type != DType::f16) return std::fabs(got - expected) <= allowed;
  return reference::close(static_cast<float>(got), expected, {0, allowed});
}

}  // namespace brontes::shadow
