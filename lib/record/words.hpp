// The words dumps are made of, before and after planning.
#pragma once

#include "record/graph.hpp"
#include "util/json.hpp"

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

/// "[2, 3]", or "i32 [2, 3]" for a value that is not f32. Weights do not say their type.
inline std::string type_and_shape(const Value& value) {
  const bool plain = value.weight || value.dtype == DType::f32;
  return (plain ? std::string() : std::string(to_string(value.dtype)) + " ") + to_string(value.shape);
}

/// What an op is besides its name and operands: "2x3x4 kn", or nothing.
std::string detail(const Node& node);
/// "scale %0, 2", "matmul 2x3x4 kn %0, %1"
std::string call(const Graph& graph, const Node& node);
/// The same with where it goes: "scale %0, 2 -> %1", "store %1 -> buffer 5"
std::string sentence(const Graph& graph, const Node& node);
/// "%1", "%1, %2", "buffer 5"
std::string results(const Node& node);
/// Of the op and all its attributes, hidden ones too: nodes with the same one do the same with the same operands.
std::uint64_t fingerprint(const Node& node);
/// Where a value that needs no computing comes from: "upload", "import", or "earlier" for an earlier execution.
const char* origin(const Graph& graph, ValueId id);

/// The opening of a directed graph, up to and including its defaults.
std::string dot_head(const char* name);

using util::json_string;
template <class Items>
std::string json_list(const Items& items) {
  return "[" + join(items, ", ", [](auto n) { return number(n); }) + "]";
}
/// An op as the members of a JSON object, without the braces.
std::string json_members(const Graph& graph, const Node& node);

}  // namespace brontes::record
