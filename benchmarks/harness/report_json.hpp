// The own JSON: what docs/benchmarking.md describes, written and read.
#pragma once

#include "report.hpp"

#include <ostream>
#include <string>

namespace brontes::bench {

void write_json(std::ostream& out, const Report& report);

/// Throws std::runtime_error, with the path, when it is no such file.
Report read_report(const std::string& path);
/// The same for text; `name` is for the message.
Report parse_report(const std::string& text, const std::string& name);

}  // namespace brontes::bench
