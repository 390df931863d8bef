// Instructions counted by valgrind: slow, and the same on a busy machine and on an idle one.
#pragma once

#include "report.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace brontes::bench {

/// Whether this process runs under valgrind.
bool under_valgrind() noexcept;

/// Under valgrind: has it write down what `run` costs this thread, under a name. Otherwise it just runs.
void count_under_valgrind(const std::string& name, const std::function<void()>& run);

/// By the name that they were counted under; the least where there are several.
using InstructionCounts = std::map<std::string, std::uint64_t>;

/// Runs a program with these arguments under valgrind and collects what it counted. Throws std::runtime_error when
/// there is no valgrind, when this was built without its headers, or when the program fails.
InstructionCounts run_under_valgrind(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace brontes::bench
