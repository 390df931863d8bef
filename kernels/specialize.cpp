#include "specialize.hpp"

#include <cstddef>
#include <optional>
#include <unordered_map>
#include <utility>

namespace brontes::kernels {
namespace {

// Opcodes of the SPIR-V specification, section 3.
enum Op : std::uint32_t {
  op_type_bool = 20,
  op_type_int = 21,
  op_constant_true = 41,
  op_constant_false = 42,
  op_constant = 43,
  op_constant_composite = 44,
  op_spec_constant_true = 48,
  op_spec_constant_false = 49,
  op_spec_constant = 50,
  op_spec_constant_composite = 51,
  op_spec_constant_op = 52,
  op_decorate = 71,
  op_composite_extract = 81,
};
constexpr std::uint32_t decoration_spec_id = 1;

// The result of an operation on 32-bit integers and booleans, or nothing if it is not one of those
// that glslang makes of constant expressions.
std::optional<std::uint32_t> evaluate(std::uint32_t op, const std::uint32_t* x, std::size_t count) {
  if (count == 1) {
    switch (op) {
      case 126: return 0u - x[0];          // SNegate
      case 168: return x[0] == 0 ? 1 : 0;  // LogicalNot
      case 200: return ~x[0];              // Not
      default: return std::nullopt;
    }
  }
  if (count == 3) return op == 169 ? std::optional(x[0] != 0 ? x[1] : x[2]) : std::nullopt;  // Select
  if (count != 2) return std::nullopt;
  const std::uint32_t a = x[0];
  const std::uint32_t b = x[1];
  switch (op) {
    case 128: return a + b;                                          // IAdd
    case 130: return a - b;                                          // ISub
    case 132: return a * b;                                          // IMul
    case 134: return b != 0 ? std::optional(a / b) : std::nullopt;   // UDiv
    case 137: return b != 0 ? std::optional(a % b) : std::nullopt;   // UMod
    case 194: return b < 32 ? std::optional(a >> b) : std::nullopt;  // ShiftRightLogical
    case 196: return b < 32 ? std::optional(a << b) : std::nullopt;  // ShiftLeftLogical
    case 197: return a | b;                                          // BitwiseOr
    case 198: return a ^ b;                                          // BitwiseXor
    case 199: return a & b;                                          // BitwiseAnd
    case 164:
    case 170: return a == b ? 1 : 0;  // LogicalEqual, IEqual
    case 165:
    case 171: return a != b ? 1 : 0;            // LogicalNotEqual, INotEqual
    case 166: return a != 0 || b != 0 ? 1 : 0;  // LogicalOr
    case 167: return a != 0 && b != 0 ? 1 : 0;  // LogicalAnd
    case 172: return a > b ? 1 : 0;             // UGreaterThan
    case 174: return a >= b ? 1 : 0;            // UGreaterThanEqual
    case 176: return a < b ? 1 : 0;             // ULessThan
    case 178: return a <= b ? 1 : 0;            // ULessThanEqual
    default: return std::nullopt;
  }
}

class Specializer {
 public:
  Specializer(const Kernel& kernel, View<std::uint32_t> values, AccessMode mode) : words_(kernel.words(mode)) {
    for (std::size_t i = 0; i < kernel.constants.size && i < values.size; ++i)
      chosen_[kernel.constants[i].id] = values[i];
  }

  std::vector<std::uint32_t> run() {
    const View<std::uint32_t>& words = words_;
    out_.reserve(words.size);
    out_.assign(words.begin(), words.begin() + 5);
    for (std::size_t at = 5; at < words.size; at += words[at] >> 16)
      take(words[at] & 0xffff, words.begin() + at, words[at] >> 16);
    return std::move(out_);
  }

 private:
  void take(std::uint32_t op, const std::uint32_t* word, std::uint32_t length) {
    switch (op) {
      case op_decorate:
        if (word[2] != decoration_spec_id) break;
        spec_ids_[word[1]] = word[3];
        return;
      case op_type_bool: bool_type_ = word[1]; break;
      case op_type_int:
        if (word[2] == 32) int_types_[word[1]] = true;
        break;
      case op_constant:
        if (int_types_.count(word[1]) != 0) values_[word[2]] = word[3];
        break;
      case op_constant_true:
      case op_constant_false: values_[word[2]] = op == op_constant_true ? 1 : 0; break;
      case op_spec_constant_true:
      case op_spec_constant_false:
        return constant(word[1], word[2], choice(word[2], op == op_spec_constant_true ? 1 : 0));
      case op_spec_constant: return constant(word[1], word[2], choice(word[2], word[3]));
      case op_spec_constant_composite:
        composites_[word[2]] = word + 3;
        out_.push_back(length << 16 | op_constant_composite);
        out_.insert(out_.end(), word + 1, word + length);
        return;
      case op_spec_constant_op:
        if (std::optional<std::uint32_t> value = fold(word, length)) return constant(word[1], word[2], *value);
        break;
      default: break;
    }
    out_.insert(out_.end(), word, word + length);
  }

  std::uint32_t choice(std::uint32_t result, std::uint32_t otherwise) const {
    const auto id = spec_ids_.find(result);
    if (id == spec_ids_.end()) return otherwise;
    const auto value = chosen_.find(id->second);
    return value == chosen_.end() ? otherwise : value->second;
  }

  std::optional<std::uint32_t> fold(const std::uint32_t* word, std::uint32_t length) const {
    if (word[1] != bool_type_ && int_types_.count(word[1]) == 0) return std::nullopt;
    if (word[3] == op_composite_extract) {
      const auto composite = composites_.find(word[4]);
      if (composite == composites_.end() || length != 6) return std::nullopt;
      const auto part = values_.find(composite->second[word[5]]);
      return part == values_.end() ? std::nullopt : std::optional(part->second);
    }
    std::uint32_t operands[3] = {};
    const std::size_t count = length - 4;
    if (count > 3) return std::nullopt;
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = values_.find(word[4 + i]);
      if (value == values_.end()) return std::nullopt;
      operands[i] = value->second;
    }
    return evaluate(word[3], operands, count);
  }

  void constant(std::uint32_t type, std::uint32_t result, std::uint32_t value) {
    values_[result] = value;
    if (type == bool_type_)
      out_.insert(out_.end(), {3u << 16 | (value != 0 ? op_constant_true : op_constant_false), type, result});
    else
      out_.insert(out_.end(), {4u << 16 | op_constant, type, result, value});
  }

  const View<std::uint32_t>& words_;
  std::vector<std::uint32_t> out_;
  std::unordered_map<std::uint32_t, std::uint32_t> chosen_;    // by specialization id
  std::unordered_map<std::uint32_t, std::uint32_t> spec_ids_;  // by result id, as all below
  std::unordered_map<std::uint32_t, std::uint32_t> values_;
  std::unordered_map<std::uint32_t, bool> int_types_;
  std::unordered_map<std::uint32_t, const std::uint32_t*> composites_;
  std::uint32_t bool_type_ = 0;
};

}  // namespace

std::vector<std::uint32_t> specialize(const Kernel& kernel, View<std::uint32_t> values, AccessMode mode) {
  return Specializer(kernel, values, mode).run();
}

}  // namespace brontes::kernels
