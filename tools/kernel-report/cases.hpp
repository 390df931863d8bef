// The pipelines that are looked at: what the planner makes of recordings that between them use every
// kernel, op and vetted tile set, and of the benchmarks of every op with a kernel of its own.
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
  brontes::kernels::Ref kernel;
  std::vector<std::uint32_t> constants;  // in the order of Kernel::constants
  /// How often the hot loop runs for each turn of the loop around it; 0 where that is not known.
  std::uint32_t hot_loop_turns = 0;
};

/// For a device with these traits. No pipeline is listed twice.
brontes::Result<std::vector<Case>> all_cases(const brontes::plan::Traits& traits);

inline constexpr const char* fused_case = "fused/relu-scale-add";
/// Pipelines of the benchmarks of tests/cases that no other case has, as "ops/" and the name of the case.
inline constexpr const char* catalogue_prefix = "ops/";

}  // namespace kernel_report
