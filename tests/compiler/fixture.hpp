#pragma once

#include "compiler.hpp"

namespace brontes::test {

/// The one that main() opened.
const kernel_report::Compiler& compiler();

/// Whether the tests read RADV's assembly and count on its units: main() skips them elsewhere.
extern const bool radv_only;

}  // namespace brontes::test
