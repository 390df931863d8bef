#include "specialize.hpp"

#include <cstddef>
#include <optional>
#include <utility>

#include "prune.hpp"
#include "specialize_ops.hpp"

namespace brontes::kernels {
namespace {

using namespace spirv;

// What a specialization constant is given, and what follows for the constants made of it.
class Specializer {
 public:
  Specializer(const Kernel& kernel, View<std::uint32_t> values, View<std::uint32_t> words)
      : kernel_(kernel), values_(values), words_(words) {}

  // Nothing if that is no SPIR-V.
  std::vector<std::uint32_t> run() {
    const View<std::uint32_t>& words = words_;
    if (words.size < header_words || words[3] > max_bound) return {};
    ids_.resize(words[3]);
    out_.reserve(words.size);
    out_.assign(words.begin(), words.begin() + header_words);
    for (std::size_t at = header_words; at < words.size; at += length(words.begin() + at)) {
      const std::uint32_t* word = words.begin() + at;
      if (length(word) == 0 || length(word) > words.size - at) return {};
      if (opcode(word) == op_function) {
        out_.insert(out_.end(), word, words.end());
        break;
      }
      if (!take(word)) out_.insert(out_.end(), word, word + length(word));
    }
    return std::move(out_);
  }

 private:
  struct Id {
    enum Kind : std::uint8_t { other, boolean, integer, value, composite };
    Kind kind = other;
    std::uint32_t bits = 0;
    const std::uint32_t* parts = nullptr;
    std::uint32_t part_count = 0;
    std::optional<std::uint32_t> chosen;
  };

  Id& id(std::uint32_t number) { return number < ids_.size() ? ids_[number] : nowhere_; }

  // True if something else is written in the instruction's place.
  bool take(const std::uint32_t* word) {
    const std::uint32_t op = opcode(word);
    const std::uint32_t count = length(word);
    if (count < 2) return false;
    switch (op) {
      case op_type_bool: id(word[1]).kind = Id::boolean; return false;
      case op_type_int:
        if (count == 4 && word[2] == 32) id(word[1]).kind = Id::integer;
        return false;
      default: break;
    }
    if (count < 3) return false;
    switch (op) {
      case op_decorate:
        if (word[2] != decoration_spec_id || count != 4) return false;
        choose(word[1], word[3]);
        return true;
      case op_constant:
        if (count == 4 && id(word[1]).kind == Id::integer) know(word[2], word[3]);
        return false;
      case op_constant_true:
      case op_constant_false: know(word[2], op == op_constant_true ? 1 : 0); return false;
      case op_spec_constant_true:
      case op_spec_constant_false:
        constant(word[1], word[2], id(word[2]).chosen.value_or(op == op_spec_constant_true ? 1 : 0));
        return true;
      case op_spec_constant:
        if (count != 4) return false;
        constant(word[1], word[2], id(word[2]).chosen.value_or(word[3]));
        return true;
      case op_constant_composite:
      case op_spec_constant_composite:
        id(word[2]).kind = Id::composite;
        id(word[2]).parts = word + 3;
        id(word[2]).part_count = count - 3;
        out_.push_back(count << 16 | op_constant_composite);
        out_.insert(out_.end(), word + 1, word + count);
        return true;
      case op_spec_constant_op:
        if (count < 5) return false;
        if (const std::optional<std::uint32_t> value = fold(word)) {
          constant(word[1], word[2], *value);
          return true;
        }
        return false;
      default: return false;
    }
  }

  void choose(std::uint32_t target, std::uint32_t spec_id) {
    for (std::size_t i = 0; i < kernel_.constants.size && i < values_.size; ++i) {
      if (kernel_.constants[i].id == spec_id) id(target).chosen = values_[i];
    }
  }

  std::optional<std::uint32_t> fold(const std::uint32_t* word) {
    const Id::Kind type = id(word[1]).kind;
    if (type != Id::boolean && type != Id::integer) return std::nullopt;
    const std::uint32_t count = length(word) - 4;
    if (word[3] == op_composite_extract) {
      const Id& composite = id(word[4]);
      if (composite.kind != Id::composite || count != 2 || word[5] >= composite.part_count) return std::nullopt;
      const Id& part = id(composite.parts[word[5]]);
      return part.kind == Id::value ? std::optional(part.bits) : std::nullopt;
    }
    std::uint32_t operands[3] = {};
    if (count > 3) return std::nullopt;
    for (std::uint32_t i = 0; i < count; ++i) {
      const Id& operand = id(word[4 + i]);
      if (operand.kind != Id::value) return std::nullopt;
      operands[i] = operand.bits;
    }
    return evaluate(word[3], operands, count);
  }

  void know(std::uint32_t result, std::uint32_t value) {
    id(result).kind = Id::value;
    id(result).bits = value;
  }

  void constant(std::uint32_t type, std::uint32_t result, std::uint32_t value) {
    if (id(type).kind == Id::boolean) {
      know(result, value != 0 ? 1 : 0);
      out_.insert(out_.end(), {3u << 16 | (value != 0 ? op_constant_true : op_constant_false), type, result});
    } else {
      if (id(type).kind == Id::integer) know(result, value);
      out_.insert(out_.end(), {4u << 16 | op_constant, type, result, value});
    }
  }

  const Kernel& kernel_;
  View<std::uint32_t> values_;
  View<std::uint32_t> words_;
  std::vector<std::uint32_t> out_;
  std::vector<Id> ids_;
  Id nowhere_;  // for ids past the bound
};

}  // namespace

std::vector<std::uint32_t> specialize(const Kernel& kernel, View<std::uint32_t> values, AccessMode mode) {
  const View<std::uint32_t>& words = kernel.words(mode);
  std::vector<std::uint32_t> frozen = Specializer(kernel, values, words).run();
  if (frozen.empty()) return {words.begin(), words.end()};
  return prune(std::move(frozen));
}

}  // namespace brontes::kernels
