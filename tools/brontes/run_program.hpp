// Other programs of this project, in the place of this one.
#pragma once

#include "arguments.hpp"

#include <string>

namespace tool {

/// Becomes another program. Looks for it at `places`, relative to the folder of this program, and then in PATH by the
/// last component of the first. Returns, and says why on stderr, only if that fails; the status to end with.
int become(const char* command, const std::vector<std::string>& places, const Arguments& arguments);

}  // namespace tool
