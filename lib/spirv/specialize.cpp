#include "spirv/specialize.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <unordered_map>
#include <utility>

#include "spirv/prune.hpp"
#include "spirv/specialize_ops.hpp"
#include "spirv/words.hpp"

namespace brontes::spirv {
namespace {

// What a specialization constant is given, and what follows for the constants made of it.
class Specializer {
 public:
  Specializer(kernels::View<std::uint32_t> words, kernels::View<ConstantValue> values)
      : words_(words), values_(values) {}

  // Nothing if that is no SPIR-V.
  std::vector<std::uint32_t> run() {
    const kernels::View<std::uint32_t>& words = words_;
    if (words.size < header_words || words[0] != magic || words[3] > max_bound) return {};
    out_.reserve(words.size);
    out_.assign(words.begin(), words.begin() + header_words);
    bool in_functions = false;
    for (std::size_t at = header_words; at < words.size; at += length(words.begin() + at)) {
      const std::uint32_t* word = words.begin() + at;
      if (length(word) == 0 || length(word) > words.size - at) return {};
      in_functions |= opcode(word) == op_function;
      if (in_functions || !take(word)) out_.insert(out_.end(), word, word + length(word));
    }
    return std::move(out_);
  }

 private:
  struct Id {
    enum Kind : std::uint8_t { other, boolean, integer, floating, vector, value, composite };
    Kind kind = other;
    bool is_signed = false;            // of integer
    bool is_open = false;              // it is not an ordinary constant yet
    std::uint32_t bits = 0;            // of a type: how many; of a vector's: components
    std::uint32_t component = 0;       // of a vector's type: their type
    std::vector<std::uint32_t> parts;  // of a composite
    std::optional<std::uint64_t> chosen;
  };

  // True if something else is written in the instruction's place.
  bool take(const std::uint32_t* word) {
    const std::uint32_t op = opcode(word);
    const std::uint32_t count = length(word);
    if (count < 2) return false;
    switch (op) {
      case op_type_bool: ids_[word[1]].kind = Id::boolean; return false;
      case op_type_int:
      case op_type_float:
        if (count < 3) return false;
        ids_[word[1]].kind = op == op_type_int ? Id::integer : Id::floating;
        ids_[word[1]].is_signed = op == op_type_int && count == 4 && word[3] != 0;
        ids_[word[1]].bits = word[2];
        return false;
      case op_type_vector:
        if (count < 4) return false;
        ids_[word[1]].kind = Id::vector;
        ids_[word[1]].component = word[2];
        ids_[word[1]].bits = word[3];
        return false;
      case op_group_decorate:
        for (std::uint32_t i = 2; i < count; ++i) {
          if (const auto chosen = ids_[word[1]].chosen) ids_[word[i]].chosen = chosen;
        }
        return false;
      default: break;
    }
    if (count < 3) return false;
    switch (op) {
      case op_decorate:
        if (word[2] != decoration_spec_id || count != 4) return false;
        for (const ConstantValue& value : values_) {
          if (value.id == word[3]) ids_[word[1]].chosen = value.bits;
        }
        return true;
      case op_constant:
        if (count == 4 && is_int(word[1])) know(word[2], word[3]);
        return false;
      case op_constant_true:
      case op_constant_false: know(word[2], op == op_constant_true ? 1 : 0); return false;
      case op_spec_constant_true:
      case op_spec_constant_false:
        constant(word[1], word[2], ids_[word[2]].chosen.value_or(op == op_spec_constant_true ? 1 : 0));
        return true;
      case op_spec_constant:
        if (count != (ids_[word[1]].bits > 32 ? 5u : 4u)) return false;
        constant(word[1], word[2],
                 ids_[word[2]].chosen.value_or(count == 4 ? word[3] : std::uint64_t{word[4]} << 32 | word[3]));
        return true;
      case op_constant_composite:
      case op_spec_constant_composite:
        ids_[word[2]].is_open =
            std::any_of(word + 3, word + count, [this](std::uint32_t part) { return ids_[part].is_open; });
        if (ids_[word[2]].is_open) return false;
        composite(word[1], word[2], {word + 3, word + count});
        return true;
      case op_spec_constant_op:
        if (const std::optional<std::uint32_t> value = count < 5 ? std::nullopt : fold(word)) {
          constant(word[1], word[2], *value);
          return true;
        }
        ids_[word[2]].is_open = count < 5 || !fold_vector(word);
        return !ids_[word[2]].is_open;
      default: return false;
    }
  }

  bool is_int(std::uint32_t type) { return ids_[type].kind == Id::integer && ids_[type].bits == 32; }

  std::optional<std::uint32_t> fold(const std::uint32_t* word) {
    if (ids_[word[1]].kind != Id::boolean && !is_int(word[1])) return std::nullopt;
    const std::uint32_t count = length(word) - 4;
    if (word[3] == op_composite_extract) {
      const Id& composite = ids_[word[4]];
      if (composite.kind != Id::composite || count != 2 || word[5] >= composite.parts.size()) return std::nullopt;
      const Id& part = ids_[composite.parts[word[5]]];
      return part.kind == Id::value ? std::optional(part.bits) : std::nullopt;
    }
    std::uint32_t operands[3] = {};
    if (count > 3) return std::nullopt;
    for (std::uint32_t i = 0; i < count; ++i) {
      const Id& operand = ids_[word[4 + i]];
      if (operand.kind != Id::value) return std::nullopt;
      operands[i] = operand.bits;
    }
    return evaluate(word[3], operands, count);
  }

  // Component by component. True if the constant is written.
  bool fold_vector(const std::uint32_t* word) {
    const Id type = ids_[word[1]];
    const std::uint32_t count = length(word) - 4;
    if (type.kind != Id::vector || type.bits > 4 || count > 3 || out_[3] > max_bound - type.bits) return false;
    if (ids_[type.component].kind != Id::boolean && !is_int(type.component)) return false;
    std::uint32_t values[4] = {};
    for (std::uint32_t i = 0; i < type.bits; ++i) {
      std::uint32_t operands[3] = {};
      for (std::uint32_t k = 0; k < count; ++k) {
        const Id& operand = ids_[word[4 + k]];
        if (operand.kind != Id::composite || operand.parts.size() != type.bits) return false;
        const Id& part = ids_[operand.parts[i]];
        if (part.kind != Id::value) return false;
        operands[k] = part.bits;
      }
      const std::optional<std::uint32_t> value = evaluate(word[3], operands, count);
      if (!value) return false;
      values[i] = *value;
    }
    std::vector<std::uint32_t> parts;
    for (std::uint32_t i = 0; i < type.bits; ++i) {
      parts.push_back(out_[3]++);
      constant(type.component, parts.back(), values[i]);
    }
    composite(word[1], word[2], std::move(parts));
    return true;
  }

  void composite(std::uint32_t type, std::uint32_t result, std::vector<std::uint32_t> parts) {
    out_.insert(out_.end(), {static_cast<std::uint32_t>(parts.size() + 3) << 16 | op_constant_composite, type, result});
    out_.insert(out_.end(), parts.begin(), parts.end());
    ids_[result].kind = Id::composite;
    ids_[result].parts = std::move(parts);
  }

  void know(std::uint32_t result, std::uint32_t value) {
    ids_[result].kind = Id::value;
    ids_[result].bits = value;
  }

  void constant(std::uint32_t type, std::uint32_t result, std::uint64_t value) {
    const Id number = ids_[type];
    if (number.kind == Id::boolean) {
      know(result, value != 0 ? 1 : 0);
      out_.insert(out_.end(), {3u << 16 | (value != 0 ? op_constant_true : op_constant_false), type, result});
      return;
    }
    // A narrow number fills its word: with its sign if it has one, else with zeros.
    const std::uint32_t unused = number.bits < 32 ? 32 - number.bits : 0;
    auto low = static_cast<std::uint32_t>(value) << (unused & 31);
    low = number.is_signed ? static_cast<std::uint32_t>(static_cast<std::int32_t>(low) >> (unused & 31))
                           : low >> (unused & 31);
    if (is_int(type)) know(result, low);
    const std::uint32_t count = number.bits > 32 ? 5 : 4;
    out_.insert(out_.end(), {count << 16 | op_constant, type, result, low});
    if (count == 5) out_.push_back(static_cast<std::uint32_t>(value >> 32));
  }

  kernels::View<std::uint32_t> words_;
  kernels::View<ConstantValue> values_;
  std::vector<std::uint32_t> out_;
  std::unordered_map<std::uint32_t, Id> ids_;  // a bound that is too large costs nothing
};

}  // namespace

std::vector<std::uint32_t> freeze(kernels::View<std::uint32_t> module, kernels::View<ConstantValue> values) {
  std::vector<std::uint32_t> frozen = Specializer(module, values).run();
  return frozen.empty() ? std::vector<std::uint32_t>(module.begin(), module.end()) : frozen;
}

std::vector<std::uint32_t> specialize(kernels::View<std::uint32_t> module, kernels::View<ConstantValue> values) {
  return prune(freeze(module, values));
}

std::vector<std::uint32_t> specialize(const kernels::Kernel& kernel, kernels::View<std::uint32_t> values,
                                      kernels::AccessMode mode) {
  std::vector<ConstantValue> named;
  for (std::size_t i = 0; i < kernel.constants.size && i < values.size; ++i) {
    named.push_back({kernel.constants[i].id, values[i]});
  }
  const std::vector<std::uint32_t> module = words(kernel, mode);
  return specialize({module.data(), module.size()}, {named.data(), named.size()});
}

}  // namespace brontes::spirv
