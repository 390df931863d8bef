// A difference for people: on a terminal, and for a pull request.
#pragma once

#include "gate.hpp"

#include <ostream>

namespace brontes::bench {

void print_difference(std::ostream& out, const Difference& difference);
void write_markdown(std::ostream& out, const Difference& difference, const Report& old, const Report& now);

}  // namespace brontes::bench
