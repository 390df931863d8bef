// Which ops share a dispatch.
//
// A group becomes one dispatch, or the few of one matmul or reduction. Elementwise ops join the group
// of an operand where the shapes are the same, the kernel has room, and nothing outside the group lies
// between them; they join a matmul or a reduction as its epilogue where nobody else needs its result.
// A reduction or a row op takes a whole group as its prologue where nobody else needs what that makes.
#pragma once

#include "plan/plan.hpp"
#include "record/graph.hpp"

namespace brontes::plan {

/// True for values that can be read after execution.
bool readable(const record::Graph& graph, record::ValueId value, const PlanOptions& options);

Grouping fuse(const record::Graph& graph, const PlanOptions& options);

}  // namespace brontes::plan
