// Runs a plan on symbols (kernel_model.hpp) and compares with what the recording means (recorded.hpp):
// every result that leaves a group, what can be read in the end, and what the buffers hold.
#pragma once

#include "plan/plan.hpp"
#include "record/graph.hpp"
#include "support/recorded.hpp"

#include <string>
#include <vector>

namespace brontes::test {

/// What the plan does otherwise than the recording; empty when it does the same.
std::vector<std::string> replay(const plan::Plan& plan, const record::Graph& graph, const plan::PlanOptions& options,
                                Recorded& recorded);

}  // namespace brontes::test
