#include "record/words.hpp"

#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

namespace brontes::record {
namespace {

template <class T>
T read(const Node& node, const Field& field) {
  T value;
  std::memcpy(&value, node.attributes.at(field.offset), sizeof value);
  return value;
}

std::uint32_t bits(const Node& node, const Field& field) {
  if (field.type == Field::Type::flag || field.type == Field::Type::word) return read<std::uint8_t>(node, field);
  return read<std::uint32_t>(node, field);
}

bool is_default(const Node& node, const Field& field) {
  return field.default_bits != Field::no_default && bits(node, field) == field.default_bits;
}

std::string list_of(const Node& node, const Field& field, const char* separator) {
  const auto list = read<List>(node, field);
  std::string text;
  for (std::int32_t i = 0; i < list.count; ++i) {
    text += (i == 0 ? "" : separator) + std::to_string(list.items[static_cast<std::size_t>(i)]);
  }
  return text;
}

std::string text_of(const Node& node, const Field& field) {
  switch (field.type) {
    case Field::Type::u64: return number(read<std::uint64_t>(node, field));
    case Field::Type::i64: return std::to_string(read<std::int64_t>(node, field));
    case Field::Type::i32: return std::to_string(read<std::int32_t>(node, field));
    case Field::Type::u32: return number(read<std::uint32_t>(node, field));
    case Field::Type::f32: return scalar(read<float>(node, field));
    case Field::Type::flag: return read<std::uint8_t>(node, field) != 0 ? "true" : "false";
    case Field::Type::word: return field.words(read<std::uint8_t>(node, field));
    case Field::Type::text: return read<const char*>(node, field);
    case Field::Type::list: return list_of(node, field, ",");
  }
  return "";
}

// JSON has no word for what is not finite.
std::string json_scalar(float x) { return std::isfinite(x) ? scalar(x) : json_string(scalar(x)); }

std::string json_value(const Node& node, const Field& field) {
  if (field.type == Field::Type::list) return "[" + list_of(node, field, ", ") + "]";
  if (field.type == Field::Type::word || field.type == Field::Type::text) return json_string(text_of(node, field));
  return field.type == Field::Type::f32 ? json_scalar(read<float>(node, field)) : text_of(node, field);
}

// The numbers behind the operands of an elementwise op, and what other ops have under their own name.
std::string json_attributes(const Node& node) {
  std::string scalars;
  std::string members;
  auto add = [](std::string& list, const std::string& item) { list += (list.empty() ? "" : ", ") + item; };
  for (const Field& field : node.op->fields) {
    if (field.text == Field::Text::hidden || (!field.json_default && is_default(node, field))) continue;
    if (field.text == Field::Text::last) {
      add(scalars, json_value(node, field));
    } else {
      add(members, json_string(field.name) + ": " + json_value(node, field));
    }
  }
  std::string text;
  if (!scalars.empty()) text += ", \"scalars\": [" + scalars + "]";
  if (!members.empty()) text += ", " + json_string(node.op->name) + ": {" + members + "}";
  return text;
}

}  // namespace

std::string scalar(float x) {
  if (std::isnan(x)) return "nan";
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, x);
  return {digits, end.ptr};
}

std::string detail(const Node& node) {
  std::string text;
  const Field* before = nullptr;
  for (const Field& field : node.op->fields) {
    if (field.text == Field::Text::hidden || field.text == Field::Text::last || is_default(node, field)) continue;
    const bool extents = before != nullptr && before->text == Field::Text::extent && field.text == Field::Text::extent;
    if (before != nullptr) text += extents ? "x" : " ";
    if (field.text == Field::Text::named) text += std::string(field.name) + " ";
    text += text_of(node, field);
    before = &field;
  }
  return text;
}

std::string call(const Graph& graph, const Node& node) {
  std::string text = name(node);
  if (const std::string more = detail(node); !more.empty()) text += " " + more;
  const char* separator = " ";
  for (ValueId in : graph.inputs(node)) text += std::exchange(separator, ", ") + text_of(in);
  for (const Field& field : node.op->fields) {
    if (field.text == Field::Text::last) text += std::exchange(separator, ", ") + text_of(node, field);
  }
  return text;
}

std::string results(const Node& node) {
  if (node.output_count == 0) return "buffer " + number(node.destination);
  std::string text = text_of(node.output);
  for (ValueId i = 1; i < node.output_count; ++i) text += ", " + text_of(node.output + i);
  return text;
}

std::string sentence(const Graph& graph, const Node& node) { return call(graph, node) + " -> " + results(node); }

std::uint64_t fingerprint(const Node& node) {
  // FNV-1a, field by field: what lies between them is nothing.
  std::uint64_t hash = 0xcbf29ce484222325u;
  auto add = [&](std::uint64_t word) {
    for (int byte = 0; byte < 8; ++byte) hash = (hash ^ (word >> 8 * byte & 255u)) * 0x100000001b3u;
  };
  for (const char* c = node.op->name; *c != 0; ++c) add(static_cast<unsigned char>(*c));
  for (const Field& field : node.op->fields) {
    if (field.type == Field::Type::text) {
      for (const char* c = read<const char*>(node, field); *c != 0; ++c) add(static_cast<unsigned char>(*c));
      continue;
    }
    if (field.type == Field::Type::list) {
      const auto list = read<List>(node, field);
      for (std::int32_t item : list.items) add(static_cast<std::uint32_t>(item));
      add(static_cast<std::uint32_t>(list.count));
      continue;
    }
    const bool wide = field.type == Field::Type::u64 || field.type == Field::Type::i64;
    add(wide ? read<std::uint64_t>(node, field) : bits(node, field));
  }
  return hash;
}

const char* origin(const Graph& graph, ValueId id) {
  const Value& value = graph.values()[id];
  if (value.imported) return "import";
  return value.resource == no_resource ? "upload" : "earlier";
}

std::string dot_head(const char* name) {
  return std::string("digraph ") + name +
         " {\n"
         "  rankdir=TB; fontname=\"sans-serif\"; fontsize=10; labeljust=l; labelloc=b;\n"
         "  node [shape=box, style=rounded, fontname=\"sans-serif\", fontsize=11];\n"
         "  edge [fontname=\"sans-serif\", fontsize=9];\n";
}

// Nothing a dump says has quotes, backslashes or control characters in it.
std::string json_members(const Graph& graph, const Node& node) {
  std::string text = "\"op\": " + json_string(name(node)) + ", \"inputs\": " + json_list(graph.inputs(node));
  text += json_attributes(node);
  if (node.output_count == 0) return text + ", \"buffer\": " + number(node.destination);
  if (node.output_count == 1) return text + ", \"output\": " + number(node.output);
  text += ", \"outputs\": [";
  for (ValueId i = 0; i < node.output_count; ++i) text += (i == 0 ? "" : ", ") + number(node.output + i);
  return text + "]";
}

}  // namespace brontes::record
