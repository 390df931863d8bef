// Whether dumps are well-formed.
#pragma once

#include <string>

namespace brontes::test {

/// Accepts what RFC 8259 does, as far as dumps go.
bool is_json(const std::string& text);

/// The end of an edge that no node statement declares, or nothing.
std::string dangling_edge(const std::string& dot);

}  // namespace brontes::test
