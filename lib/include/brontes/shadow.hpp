// SPDX-License-Identifier: MIT
#pragma once

#include <brontes/export.hpp>
#include <brontes/tensor.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace brontes {

struct ShadowOptions {
  /// Checks one dispatch in so many: 1 for all of them.
  std::uint32_t every = 1;
};

/// An operand of an op that went wrong.
struct ShadowInput {
  std::string value;  ///< as dump() names it: "%3"
  Shape shape;
  double smallest = 0;       ///< of its elements that are numbers
  double largest = 0;        ///< likewise
  std::uint64_t nans = 0;    ///< how many are not
  bool has_element = false;  ///< element by element: it has one that became the wrong one
  double element = 0;        ///< that one
};

/// A dispatch whose result is not what it should be.
struct ShadowMismatch {
  std::string op;              ///< the ops it runs: "matmul+add+gelu 4x8x16 nk"
  std::string kernel;          ///< "matmul_blocked"
  std::uint32_t dispatch = 0;  ///< which one, as dump() counts them: 3 for #3
  std::string result;          ///< the value that is wrong: "%7"
  std::uint64_t wrong = 0;     ///< elements of it that are
  std::uint64_t elements = 0;  ///< that it has
  std::uint64_t element = 0;   ///< the worst of them
  double got = 0;              ///< from the device
  double expected = 0;         ///< in double precision, from the same operands
  double allowed = 0;          ///< how far apart these may be
  std::vector<ShadowInput> inputs;
};

/// What Program::shadow_check() found.
struct ShadowReport {
  std::uint64_t checked = 0;             ///< dispatches
  std::vector<std::string> not_checked;  ///< the ops of the others, each once, and why: "gather: has no reference"
  bool ok = true;                        ///< all that were checked are right
  ShadowMismatch first;                  ///< the first that is not

  /// Some lines for people. Empty when the host is out of memory.
  BRONTES_API std::string text() const;
  /// All members by their names. Likewise.
  BRONTES_API std::string json() const;
};

}  // namespace brontes
