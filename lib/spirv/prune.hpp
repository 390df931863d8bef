// Control flow without what cannot be reached.
#pragma once

#include <cstdint>
#include <vector>

namespace brontes::spirv {

// Folds what functions compute from constants alone, follows branches that hang on the results, and
// leaves out blocks, functions, instructions, variables, constants and types that nothing needs then. A
// function called with constants becomes one copy for each set of them: a switch over an argument goes.
//
// Structured control flow stays valid. A selection that always goes one way is no selection any more,
// unless a selection inside it leaves it early, which only a switch allows: that one keeps its one case.
// A loop stays a loop. What the entry point lists as its interface stays declared.
//
// Takes any words; memory and time are bounded by their number, since copies stop at a limit. A valid module
// without specialization constants becomes a valid one that computes the same. It comes back as it was if
// it holds what is not known here: another instruction, decoration groups, debug information beyond lines
// and names, extended instructions other than GLSL.std.450 and prints, or control flow that is not
// structured. So do words that are no SPIR-V. OpLine stays with what it describes.
std::vector<std::uint32_t> prune(std::vector<std::uint32_t> module);

}  // namespace brontes::spirv
