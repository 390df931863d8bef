// A recording for people and tools, before anything is planned.
#pragma once

#include "record/graph.hpp"

#include <brontes/program.hpp>

#include <string>

namespace brontes::record {

/// What is pending in the graph as it was recorded: inputs, ops in order, what is kept.
std::string dump(const Graph& graph, DumpFormat format = DumpFormat::text);

}  // namespace brontes::record
