// Control flow without what cannot be reached.
#pragma once

#include <cstdint>
#include <vector>

namespace brontes::kernels {

// Folds what functions compute from constants alone, follows branches that hang on the results, and
// leaves out blocks, functions, instructions, variables, constants and types that nothing needs then. A
// function called with constants becomes one copy for each set of them: a switch over an argument goes.
//
// Structured control flow stays valid. A selection that always goes one way is no selection any more,
// unless a selection inside it leaves it early, which only a switch allows: that one keeps its one case.
// A loop stays a loop. What the entry point lists as its interface stays declared.
//
// Takes a module without specialization constants. One that holds an instruction not known here, or that
// is no valid module, comes back as it was.
std::vector<std::uint32_t> prune(std::vector<std::uint32_t> module);

}  // namespace brontes::kernels
