// Values that live inside others.
//
// What an op moves in one piece (Op::moves: concat, store) its maker can write where it goes: the value has a home in
// the result, or in the buffer, and the op leaves it out. Nobody else need know: a home is a range of memory, which
// whoever reads the value is bound to, and hazards and lives go by bytes.
#pragma once

#include "plan/plan.hpp"
#include "record/graph.hpp"

#include <cstddef>
#include <vector>

namespace brontes::plan {

/// Finds the homes, and drops the groups that have nothing left to move. Adds neither dispatches nor barriers.
void find_homes(const record::Graph& graph, const Traits& traits, const PlanOptions& options, Grouping& grouping);

/// Whether operand k of a node that moves its operands is written where it goes. One that goes to several places lies
/// in the first of them.
bool is_there(const record::Graph& graph, const std::vector<Home>& homes, const record::Node& mover, std::size_t k);

}  // namespace brontes::plan
