// What the groups of a plan must give, in double precision.
#pragma once

#include "plan/dump.hpp"
#include "plan/plan.hpp"
#include "record/graph.hpp"
#include "reference/reference.hpp"

#include <brontes/error.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace brontes::shadow {

using reference::Expected;
using reference::Values;

/// The elements of a value that lies in memory now; nothing if it does not.
using Fetch = std::function<Result<std::optional<Values>>(record::ValueId)>;

/// Of one group.
struct Evaluation {
  std::map<record::ValueId, Expected> made;    // by every op of the group
  std::map<record::ValueId, Values> operands;  // from memory
  std::string not_checked;                     // why nothing is known; empty if it is
};

/// Thread-safety: one thread at a time.
class Evaluator : public plan::Words {
 public:
  Evaluator(const plan::Plan& plan, const record::Graph& graph);

  // What a plan's dump knows of it.
  using Words::node;
  using Words::nodes;
  using Words::parts;
  using Words::Result;
  using Words::results;

  /// Before the group runs: `fetch` gives what its operands are then.
  brontes::Result<Evaluation> evaluate(const plan::Group& group, const Fetch& fetch) const;

 private:
  class Run;
  std::vector<std::uint32_t> maker_;  // by value: the node that makes it, or no_node
};

/// Whether the device's element is as expected.
bool matches(double got, double expected, double allowed, DType type);

}  // namespace brontes::shadow
