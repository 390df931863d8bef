// The pipelines that are looked at: what the planner makes of recordings that between them use every
// kernel, op and vetted tile set.
#pragma once

#include "kernels.hpp"
#include "plan/traits.hpp"

#include <brontes/error.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace kernel_report {

struct Case {
  std::string name;
  brontes::kernels::Id kernel;
  std::vector<std::uint32_t> constants;  // in the order of Kernel::constants
  /// How often the hot loop runs for each turn of the loop around it; 0 where that is not known.
  std::uint32_t hot_loop_turns = 0;
};

/// For a device with these traits. No pipeline is listed twice.
brontes::Result<std::vector<Case>> all_cases(const brontes::plan::Traits& traits);

inline constexpr const char* fused_case = "fused/relu-scale-add";

}  // namespace kernel_report
