// The words dumps are made of, before and after planning.
#pragma once

#include "record/graph.hpp"

#include <cstdint>
#include <string>

namespace brontes::record {

inline std::string number(std::uint64_t n) { return std::to_string(n); }
/// The shortest digits that give the same float again: "2", "0.1", "-inf".
std::string scalar(float x);
/// "%3"
inline std::string text_of(ValueId id) { return "%" + std::to_string(id); }

template <class Items, class Text>
std::string join(const Items& items, const char* separator, Text text) {
  std::string all;
  for (const auto& item : items) {
    if (!all.empty()) all += separator;
    all += text(item);
  }
  return all;
}

/// What an op is besides its name and operands: "2x3x4 kn", or nothing.
std::string detail(const Node& node);
/// "scale %0, 2", "matmul 2x3x4 kn %0, %1"
std::string call(const Node& node);
/// The same with where it goes: "scale %0, 2 -> %1", "store %1 -> buffer 5"
std::string sentence(const Node& node);
/// Where a value that needs no computing comes from: "upload", "import", or "earlier" for an earlier execution.
const char* origin(const Graph& graph, ValueId id);

/// The opening of a directed graph, up to and including its defaults.
std::string dot_head(const char* name);

std::string json_string(const std::string& text);
template <class Items>
std::string json_list(const Items& items) {
  return "[" + join(items, ", ", [](auto n) { return number(n); }) + "]";
}
/// An op as the members of a JSON object, without the braces.
std::string json_members(const Node& node);

}  // namespace brontes::record
