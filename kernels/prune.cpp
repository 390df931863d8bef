#include "prune.hpp"

#include <utility>

#include "prune_function.hpp"
#include "prune_module.hpp"
#include "specialize_ops.hpp"

namespace brontes::kernels {
namespace {

using namespace spirv;
using namespace pruning;

class Pruner {
 public:
  explicit Pruner(Module& module) : module_(module), instances_(module), functions_(module, instances_) {}

  // Empty if the module is not valid.
  std::vector<std::uint32_t> run() {
    for (const std::uint32_t id : module_.entry_points) {
      if (id >= module_.bound) return {};
      const std::uint32_t index = module_.ids[id].function;
      if (index == none || module_.functions[index].id != id) return {};
      instances_.request(module_, index, std::vector<Argument>(module_.functions[index].parameters.size()));
    }
    std::vector<std::uint32_t> bodies;
    for (std::size_t i = 0; i < instances_.all.size(); ++i) {
      if (!functions_.run(i, bodies)) return {};
    }

    mark_globals();
    std::vector<std::uint32_t> out(module_.words.begin(), module_.words.begin() + header_words);
    out[3] = instances_.bound();
    out.reserve(module_.functions_begin + bodies.size());
    for (const std::uint32_t* word = begin(); word != end(); word += length(word)) emit_global(word, out);
    out.insert(out.end(), bodies.begin(), bodies.end());
    return out;
  }

 private:
  const std::uint32_t* begin() const { return module_.words.data() + header_words; }
  const std::uint32_t* end() const { return module_.words.data() + module_.functions_begin; }

  void mark_word(std::uint32_t id) {
    if (id < module_.bound) functions_.is_used[id] = 1;
  }
  void mark_words(const std::uint32_t* word, std::uint32_t from) {
    for (std::uint32_t i = from; i < length(word); ++i) mark_word(word[i]);
  }

  // 0 for what is neither a type, a constant nor a variable.
  static std::uint32_t global_result(const std::uint32_t* word) {
    const std::uint32_t op = opcode(word);
    if (op >= 19 && op <= 38) return word[1];
    const bool is_value = (op >= op_constant_true && op <= op_spec_constant_op) || op == op_undef || op == op_variable;
    return is_value ? word[2] : 0;
  }

  void mark_operands(const std::uint32_t* word) {
    switch (opcode(word)) {
      case op_type_bool:
      case op_type_int:
      case 22: return;  // TypeFloat
      case 23:          // TypeVector
      case 24:          // TypeMatrix
      case 25:          // TypeImage
        if (length(word) > 2) mark_word(word[2]);
        return;
      case op_type_pointer: mark_word(word[3]); return;
      case op_constant:
      case op_spec_constant: mark_word(word[1]); return;
      case op_variable:
        mark_word(word[1]);
        mark_words(word, 4);
        return;
      // Some words here are literals, and what they keep by mistake is little.
      default: mark_words(word, 1); return;
    }
  }

  void mark_globals() {
    std::vector<const std::uint32_t*> definitions;
    for (const std::uint32_t* word = begin(); word != end(); word += length(word)) {
      const std::uint32_t op = opcode(word);
      const std::uint32_t count = length(word);
      if (global_result(word) != 0) {
        definitions.push_back(word);
      } else if (op == op_entry_point) {
        // The interface follows the name, whose last word ends in a zero byte.
        std::uint32_t i = 3;
        while (i < count && (word[i] >> 24) != 0) ++i;
        mark_words(word, i + 1);
      } else if (op == op_decorate) {
        // The size of the workgroup is a constant that nothing else mentions.
        if (count > 2 && word[2] == decoration_built_in) mark_word(word[1]);
      } else if (op == op_execution_mode_id || op == op_decorate_id || op == op_type_forward_pointer || op > 400) {
        mark_words(word, 1);
      }
    }
    // Definitions come before uses.
    for (auto it = definitions.rbegin(); it != definitions.rend(); ++it) {
      if (functions_.is_used[global_result(*it)] != 0) mark_operands(*it);
    }
  }

  void emit_global(const std::uint32_t* word, std::vector<std::uint32_t>& out) const {
    const auto copy = [&] { out.insert(out.end(), word, word + length(word)); };
    switch (opcode(word)) {
      case op_name:
      case op_member_name:
      case op_decorate:
      case op_member_decorate:
      case op_decorate_id:
      case op_decorate_string: break;
      default:
        if (global_result(word) == 0 || functions_.is_used[global_result(word)] != 0) copy();
        return;
    }
    if (length(word) < 2 || word[1] >= module_.bound) return;
    const Id& target = module_.ids[word[1]];
    if (target.function == none) {
      if (target.definition == 0 || functions_.is_used[word[1]] != 0) copy();
      return;
    }
    for (const std::size_t i : instances_.of(target.function)) {
      const Instance& instance = instances_.all[i];
      if (instance.is_defined[target.ordinal] == 0) continue;
      copy();
      out[out.size() - length(word) + 1] = instance.id(module_, word[1]);
    }
  }

  Module& module_;
  Instances instances_;
  FunctionPruner functions_;
};

}  // namespace

std::vector<std::uint32_t> prune(std::vector<std::uint32_t> words) {
  Module module;
  module.words = std::move(words);
  if (module.parse()) {
    if (std::vector<std::uint32_t> pruned = Pruner(module).run(); !pruned.empty()) return pruned;
  }
  return std::move(module.words);
}

}  // namespace brontes::kernels
