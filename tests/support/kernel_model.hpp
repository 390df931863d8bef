// Runs a dispatch on symbols as its kernel runs it on numbers: from the specialization constants, push
// constants and bindings alone, whatever the planner says it is for.
#pragma once

#include "plan/plan.hpp"
#include "support/recorded.hpp"

#include <functional>
#include <string>
#include <vector>

namespace brontes::test {

using Object = std::function<void(const std::string&)>;

/// Bindings that are neither needed nor missing, grids that cover the work and accesses inside their
/// regions are checked on the way.
void run_kernel(const plan::Dispatch& dispatch, Memory& memory, Symbols& symbols, const Object& object);

/// The constant or binding of that name. A kernel without it is a bug of the test.
std::uint32_t constant(const plan::Dispatch& dispatch, const char* name);
std::size_t binding(const plan::Dispatch& dispatch, const char* name);

/// By binding: the specialised kernel really reads it, or writes it.
struct Touched {
  std::uint8_t read = 0;
  std::uint8_t written = 0;
};
Touched touched(const plan::Dispatch& dispatch);

}  // namespace brontes::test
