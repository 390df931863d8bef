#include "record/elementwise.hpp"

#include "record/shape.hpp"
#include "record/view.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string>
#include <string_view>

namespace brontes::record {
namespace {

constexpr ElementwiseInfo table[] = {
#define BRONTES_OP(name, code, arity, scalars, types, formula) {#name, code, arity, scalars, #types},
#include "elementwise.def"
#undef BRONTES_OP
};

constexpr bool codes_are_positions() {
  std::size_t position = 0;
  for (const ElementwiseInfo& row : table) {
    if (row.code != position++) return false;
  }
  return true;
}
static_assert(codes_are_positions(), "elementwise.def: codes count up from 0");

// The op NAME_i32 of every op, or the op itself where there is none.
constexpr std::size_t i32_version(std::size_t op) {
  const std::string_view name = table[op].name;
  for (const ElementwiseInfo& row : table) {
    const std::string_view other = row.name;
    if (other.size() == name.size() + 4 && other.substr(0, name.size()) == name &&
        other.substr(name.size()) == "_i32") {
      return row.code;
    }
  }
  return op;
}

constexpr auto i32_versions = [] {
  std::array<std::uint8_t, std::size(table)> versions{};
  for (std::size_t i = 0; i < versions.size(); ++i) versions[i] = static_cast<std::uint8_t>(i32_version(i));
  return versions;
}();

// What a letter of ElementwiseInfo::types stands for; nothing for any type. An operand of f32 may as well be f16.
constexpr std::optional<DType> type_of(char letter) {
  switch (letter) {
    case 'f': return DType::f32;
    case 'i': return DType::i32;
    case 'm': return DType::mask;
    case 'h': return DType::f16;
    default: return std::nullopt;
  }
}

constexpr bool types_are_complete() {
  for (const ElementwiseInfo& row : table) {
    const std::string_view types = row.types;
    if (row.arity == 0 ? types.substr(0, 5) != "none_" : types.size() != row.arity + 2u || types[row.arity] != '_') {
      return false;
    }
  }
  return true;
}
static_assert(types_are_complete(), "elementwise.def: types have a letter for each operand and one for the result");

constexpr Field fields[] = {
    {"p", Field::Type::f32, Field::Text::last, offsetof(ElementwiseAttributes, p)},
    {"q", Field::Type::f32, Field::Text::last, offsetof(ElementwiseAttributes, q)},
};

constexpr Field i32_fields[] = {
    {"p", Field::Type::i32, Field::Text::last, offsetof(ElementwiseAttributes, p)},
    {"q", Field::Type::i32, Field::Text::last, offsetof(ElementwiseAttributes, q)},
};

constexpr auto make_ops() {
  std::array<Op, std::size(table)> ops{};
  for (std::size_t i = 0; i < ops.size(); ++i) {
    ops[i].name = table[i].name;
    const bool integer = std::string_view(table[i].types).back() == 'i';
    ops[i].fields = {integer ? i32_fields : fields, table[i].scalars};
    ops[i].types = ~0u;  // checked here
    ops[i].elementwise = &table[i];
  }
  return ops;
}
constexpr auto ops = make_ops();

// The shapes of the operands, for messages: "[2, 3] and [4]".
std::string shapes(const Graph& graph, Span<const ValueId> inputs) {
  std::string text;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    text += (k == 0 ? "" : k + 1 == inputs.size() ? " and " : ", ") + to_string(graph.value(inputs[k]).shape);
  }
  return text;
}

// The operands as one dispatch can read them: where they repeat in too many ways to say at once, some are expanded
// first.
Result<std::array<ValueId, elementwise_max_arity>> readable(Graph& graph, const Op& op, Span<const ValueId> inputs,
                                                            const ValueType& result) {
  std::array<ValueId, elementwise_max_arity> operands{};
  std::array<std::uint32_t, elementwise_max_arity> words{};
  std::copy(inputs.begin(), inputs.end(), operands.begin());
  std::uint32_t total = 0;
  bool strided = false;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Shape& shape = graph.value(inputs[k]).shape;
    if (shape == result.shape || repetition(shape, result.shape)) continue;
    strided = true;
  }
  if (!strided) return operands;
  // Nothing is recorded that the op itself cannot follow.
  if (Error e = graph.check(op, inputs, {&result, 1})) return e;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    words[k] = access_words(broadcast_access(graph.value(inputs[k]).shape, result.shape));
    total += words[k];
  }
  graph.reserve(inputs.size() + 1);
  while (total > max_access_words) {
    const auto most = static_cast<std::size_t>(std::max_element(words.begin(), words.end()) - words.begin());
    auto expanded = expand(graph, operands[most], result.shape);
    if (!expanded) return expanded.error();
    operands[most] = *expanded;
    total -= words[most];
    words[most] = 0;
  }
  return operands;
}

bool is_number(DType type) { return type == DType::f32 || type == DType::f16; }

// Whether an operand of the one type will do where the other is wanted.
bool will_do(DType type, DType wanted) { return type == wanted || (wanted == DType::f32 && is_number(type)); }

// The type of the result, if the operands are of the row's types: where any type will do, that of all of them, and f32
// for f16 beside f32. Weights are refused later, whatever they are.
std::optional<DType> result_type(const Graph& graph, const ElementwiseInfo& row, Span<const ValueId> inputs) {
  std::optional<DType> any;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Value& value = graph.value(inputs[k]);
    if (value.weight) continue;
    const auto wanted = type_of(row.types[k]);
    if (wanted) {
      if (!will_do(value.dtype, *wanted)) return std::nullopt;
    } else if (!any || *any == value.dtype) {
      any = value.dtype;
    } else if (is_number(*any) && is_number(value.dtype)) {
      any = DType::f32;
    } else {
      return std::nullopt;
    }
  }
  const auto own = type_of(std::string_view(row.types).back());
  return own ? *own : any.value_or(DType::f32);
}

// Why the operands are of the wrong types, where neither the op nor its version for i32 takes them.
Error type_error(const Graph& graph, ElementwiseOp op, Span<const ValueId> inputs) {
  const ElementwiseInfo& row = info(op);
  const ElementwiseInfo& i32 = table[i32_versions[row.code]];
  auto operand = [&](std::size_t k) {
    return "operand %" + std::to_string(inputs[k]) + " is " + to_string(graph.value(inputs[k]).dtype);
  };
  auto dtype = [&](std::size_t k) { return graph.value(inputs[k]).dtype; };
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const auto wanted = type_of(row.types[k]);
    const auto other = type_of(i32.types[k]);
    if (!wanted || graph.value(inputs[k]).weight || will_do(dtype(k), *wanted) || dtype(k) == *other) continue;
    return Error(Errc::type_mismatch, std::string(row.name) + ": " + operand(k) + "; expected " + to_string(*wanted) +
                                          (*other != *wanted ? std::string(" or ") + to_string(*other) : ""));
  }
  // Each is right by itself.
  std::size_t first = 0;
  std::size_t second = 0;
  for (std::size_t k = 1; k < inputs.size() && second == 0; ++k) {
    while (first < k && row.types[first] != row.types[k]) ++first;
    if (first < k && dtype(first) != dtype(k)) second = k;
  }
  return Error(Errc::type_mismatch,
               std::string(row.name) + ": " + operand(first) + " and " + operand(second) + "; expected the same type");
}

}  // namespace

const ElementwiseInfo& info(ElementwiseOp op) noexcept { return table[static_cast<std::size_t>(op)]; }

Span<const Op> elementwise_ops() noexcept { return ops; }

Result<ValueId> elementwise(Graph& graph, ElementwiseOp op, Span<const ValueId> inputs, float p, float q) {
  auto dtype = result_type(graph, info(op), inputs);
  const std::uint8_t version = dtype ? static_cast<std::uint8_t>(op) : i32_versions[static_cast<std::size_t>(op)];
  if (!dtype) dtype = result_type(graph, table[version], inputs);
  if (!dtype) return type_error(graph, op, inputs);
  const Op& entry = ops[version];
  if (op == ElementwiseOp::clamp && !(p <= q)) {
    return Error(Errc::invalid_argument, "clamp: low " + std::to_string(p) + " is not <= high " + std::to_string(q));
  }
  ValueType result{graph.value(inputs[0]).shape, *dtype};
  bool alike = true;
  for (ValueId input : inputs) {
    if (graph.value(input).shape == result.shape) continue;
    alike = false;
    const auto joined = broadcast(result.shape, graph.value(input).shape);
    if (!joined) {
      return Error(Errc::shape_mismatch, std::string(entry.name) + ": shapes " + shapes(graph, inputs) +
                                             " do not fit; expected equal dims, or 1, from the last dim on");
    }
    result.shape = *joined;
  }
  if (alike) return graph.append(entry, inputs, ElementwiseAttributes{p, q}, {&result, 1});
  const auto operands = readable(graph, entry, inputs, result);
  if (!operands) return operands.error();
  return graph.append(entry, {operands->data(), inputs.size()}, ElementwiseAttributes{p, q}, {&result, 1});
}

Result<ValueId> fill(Graph& graph, float value, const Shape& shape) {
  const ValueType result{shape, DType::f32};
  return graph.append(ops[static_cast<std::size_t>(ElementwiseOp::fill)], {}, ElementwiseAttributes{value, 0},
                      {&result, 1});
}

Result<ValueId> fill_i32(Graph& graph, std::int32_t value, const Shape& shape) {
  const ValueType result{shape, DType::i32};
  return graph.append(ops[static_cast<std::size_t>(ElementwiseOp::fill_i32)], {},
                      ElementwiseAttributes{std::bit_cast<float>(value), 0}, {&result, 1});
}

Result<ValueId> cast(Graph& graph, ValueId x, DType type) {
  const Value& value = graph.value(x);
  if (value.half() && type == DType::f32) return elementwise(graph, ElementwiseOp::f16_to_f32, {&x, 1});
  if (!value.weight && !value.half() && type == DType::f16) {
    // Whole numbers that f16 has are exact in f32, so that there is one rounding.
    graph.reserve(2);
    const auto number = cast(graph, x, DType::f32);
    return number ? elementwise(graph, ElementwiseOp::f32_to_f16, {&*number, 1}) : number;
  }
  auto op = ElementwiseOp::copy;
  auto choose = [&](DType to, ElementwiseOp from_f32, ElementwiseOp from_i32, ElementwiseOp from_mask) {
    if (type != to) return;
    op = value.dtype == DType::i32 ? from_i32 : value.dtype == DType::mask ? from_mask : from_f32;
  };
  choose(DType::f32, ElementwiseOp::copy, ElementwiseOp::i32_to_f32, ElementwiseOp::mask_to_f32);
  choose(DType::i32, ElementwiseOp::f32_to_i32, ElementwiseOp::copy, ElementwiseOp::mask_to_i32);
  choose(DType::mask, ElementwiseOp::f32_to_mask, ElementwiseOp::i32_to_mask, ElementwiseOp::copy);
  if (op == ElementwiseOp::copy && type != value.dtype) {
    return Error(Errc::invalid_argument,
                 std::string("cast: to ") + to_string(type) + "; expected f32, f16, i32 or mask");
  }
  if (op == ElementwiseOp::copy && !value.weight) return x;
  return elementwise(graph, op, {&x, 1});
}

}  // namespace brontes::record
