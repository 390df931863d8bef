#include "record/words.hpp"

#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

namespace brontes::record {
namespace {

std::vector<float> scalars(const Node& node) {
  if (node.kind != NodeKind::elementwise) return {};
  const float all[] = {node.elementwise.p, node.elementwise.q};
  return {all, all + info(node.elementwise.op).scalars};
}

Span<const ValueId> inputs(const Node& node) { return {node.inputs.data(), node.input_count}; }

// JSON has no word for what is not finite.
std::string json_scalar(float x) { return std::isfinite(x) ? scalar(x) : json_string(scalar(x)); }

std::string json_matmul(const MatmulNode& m) {
  std::string text = "{\"m\": " + number(m.m) + ", \"k\": " + number(m.k) + ", \"n\": " + number(m.n) +
                     ", \"layout\": " + json_string(to_string(m.layout)) + ", \"alpha\": " + json_scalar(m.alpha);
  if (m.kernel != MatmulKernel::automatic) text += ", \"forced\": " + json_string(to_string(m.kernel));
  return text + "}";
}

}  // namespace

std::string scalar(float x) {
  if (std::isnan(x)) return "nan";
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, x);
  return {digits, end.ptr};
}

std::string detail(const Node& node) {
  if (node.kind != NodeKind::matmul) return "";
  const MatmulNode& m = node.matmul;
  std::string text = number(m.m) + "x" + number(m.k) + "x" + number(m.n) + " " + to_string(m.layout);
  if (m.alpha != 1.0f) text += " alpha " + scalar(m.alpha);
  if (m.kernel != MatmulKernel::automatic) text += std::string(" forced ") + to_string(m.kernel);
  return text;
}

std::string call(const Node& node) {
  std::string text = name(node);
  if (const std::string more = detail(node); !more.empty()) text += " " + more;
  const char* separator = " ";
  for (ValueId in : inputs(node)) text += std::exchange(separator, ", ") + text_of(in);
  for (float x : scalars(node)) text += std::exchange(separator, ", ") + scalar(x);
  return text;
}

std::string sentence(const Node& node) {
  if (node.kind == NodeKind::store) return call(node) + " -> buffer " + number(node.store.resource);
  return call(node) + " -> " + text_of(node.output);
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
std::string json_string(const std::string& text) { return "\"" + text + "\""; }

std::string json_members(const Node& node) {
  std::string text = "\"op\": " + json_string(name(node)) + ", \"inputs\": " + json_list(inputs(node));
  if (const auto all = scalars(node); !all.empty()) text += ", \"scalars\": [" + join(all, ", ", json_scalar) + "]";
  if (node.kind == NodeKind::matmul) text += ", \"matmul\": " + json_matmul(node.matmul);
  if (node.kind == NodeKind::store) return text + ", \"buffer\": " + number(node.store.resource);
  return text + ", \"output\": " + number(node.output);
}

}  // namespace brontes::record
