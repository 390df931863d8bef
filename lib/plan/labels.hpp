// What debuggers show for a dispatch.
#pragma once

#include "plan/plan.hpp"

#include <string>
#include <vector>

namespace brontes::plan {

/// The same in parts.
struct DispatchLabel {
  std::string op;      // "matmul+add+gelu 4x8x16 nk"; "sum 1000 (2/2)"
  std::string result;  // "%7", "buffer 3"
};
std::vector<DispatchLabel> dispatch_labels(const Plan& plan, const record::Graph& graph);

/// By dispatch: the ops it runs and what they make, "matmul+add+gelu %7". One of several dispatches of the same ops is
/// numbered: "sum %3 (2/2)".
std::vector<std::string> labels(const Plan& plan, const record::Graph& graph);

}  // namespace brontes::plan
