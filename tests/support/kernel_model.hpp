// Runs elementwise programs and whatever only moves elements on symbols as their kernels run them on numbers: from
// the specialization constants, push constants and bindings alone, whatever the planner says they are for. Of other
// kernels it knows which bindings they touch.
#pragma once

#include "plan/plan.hpp"
#include "support/recorded.hpp"

#include <functional>
#include <string>
#include <vector>

namespace brontes::test {

using Object = std::function<void(const std::string&)>;

/// A dispatch of a kernel that computes elements one by one, or only moves them. Bindings that are neither needed nor
/// missing, grids that cover the work and accesses inside their regions are checked on the way.
void run_elementwise(const plan::Dispatch& dispatch, Memory& memory, const Object& object);

/// The epilogue of a dispatch, over all elements of its result.
void run_epilogue(const plan::Dispatch& dispatch, Memory& memory, const Object& object, std::vector<Symbol>& words);

/// True when what is behind the last element of a result, up to a whole vec4, is overwritten, too.
bool writes_whole_vectors(const plan::Dispatch& dispatch);

/// True when the dispatch ends in elementwise steps.
bool has_epilogue(const plan::Dispatch& dispatch);

/// The operand that a dispatch with a prologue works on, of so many elements.
std::vector<Symbol> run_prologue(const plan::Dispatch& dispatch, Memory& memory, const Object& object,
                                 std::uint64_t count);

/// True when the dispatch begins with elementwise steps.
bool has_prologue(const plan::Dispatch& dispatch);

/// The constant or binding of that name. A kernel without it is a bug of the test.
std::uint32_t constant(const plan::Dispatch& dispatch, const char* name);
std::size_t binding(const plan::Dispatch& dispatch, const char* name);

/// Whether a kernel is told of its bindings which of them hold f16, and of none that does not.
bool knows_its_halves(const plan::Dispatch& dispatch);

/// By binding: whether the kernel reads it, or writes it, once its specialization constants are given. Found in the
/// specialised SPIR-V.
struct Touched {
  std::uint8_t read = 0;
  std::uint8_t written = 0;
};
Touched touched(const plan::Dispatch& dispatch);

}  // namespace brontes::test
