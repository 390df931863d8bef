// Proves a plan, independently of the passes that made it: brute force over pairs of dispatches, and a
// run of the plan on symbols (plan_replay.hpp). Shares no decisions with lib/plan: from a plan it takes
// dispatches as a device would, and from the graph what was recorded.
#pragma once

#include "plan/plan.hpp"
#include "record/graph.hpp"
#include "support/recorded.hpp"

#include <iosfwd>
#include <string>
#include <vector>

namespace brontes::test {

enum class Rule {
  malformed,               // barriers or submits out of place, levels that contradict them, regions outside the arena
  open_hazard,             // two dispatches between the same barriers conflict
  barrier_without_hazard,  // nothing right before it conflicts with anything right after it
  too_many_barriers,       // more than the longest chain of hazards needs
  false_cause,             // a barrier names a hazard that is none, or names one twice
  missing_cause,           // a barrier does not name a hazard it is there for
  unsafe_alias,            // a dispatch writes what it may still have to read
  miscounted,              // dropped and fused ops, bytes; an op in no group, or in two
  wrong_version,           // a dispatch leaves behind, or one can read, something else than recorded
};

const char* to_string(Rule rule) noexcept;

struct Objection {
  Rule rule;
  std::string text;
};

std::ostream& operator<<(std::ostream& out, const Objection& objection);

/// Everything that is wrong with a plan for what is pending in the graph. Empty when the plan is right.
std::vector<Objection> check_plan(const plan::Plan& plan, const record::Graph& graph,
                                  const plan::PlanOptions& options = {});
/// For several plans of one graph: `recorded` is run_recording(graph).
std::vector<Objection> check_plan(const plan::Plan& plan, const record::Graph& graph, const plan::PlanOptions& options,
                                  Recorded& recorded);

/// The same as text, for messages.
std::string describe(const std::vector<Objection>& objections);

bool objects(const std::vector<Objection>& objections, Rule rule);

}  // namespace brontes::test
