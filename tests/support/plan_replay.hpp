// Runs a plan over memory in which every word is a name: "word 3 of value 7". The recording says what
// each op must find in its operands; the plan has to bring exactly that about in its own order.
#pragma once

#include "plan/plan.hpp"
#include "record/graph.hpp"

#include <string>
#include <vector>

namespace brontes::test {

/// What the plan does otherwise than the recording; empty when it does the same.
std::vector<std::string> replay(const plan::Plan& plan, const record::Graph& graph);

}  // namespace brontes::test
