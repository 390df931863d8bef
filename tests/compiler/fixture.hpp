#pragma once

#include "compiler.hpp"

namespace brontes::test {

/// The one that main() opened.
const kernel_report::Compiler& compiler();

}  // namespace brontes::test
