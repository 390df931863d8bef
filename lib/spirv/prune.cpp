#include "spirv/prune.hpp"

#include <utility>

#include "spirv/prune_function.hpp"
#include "spirv/prune_module.hpp"
#include "spirv/specialize_ops.hpp"

namespace brontes::spirv {
namespace {

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
    if (instances_.bound() > max_bound) return {};

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

  void mark(std::uint32_t id) {
    if (id < module_.bound) functions_.is_used[id] = 1;
  }
  void mark_from(const std::uint32_t* word, std::uint32_t from) {
    for (std::uint32_t i = from; i < length(word); ++i) mark(word[i]);
  }

  void mark_globals() {
    std::vector<const std::uint32_t*> definitions;
    for (const std::uint32_t* word = begin(); word != end(); word += length(word)) {
      const std::uint32_t op = opcode(word);
      const std::uint32_t count = length(word);
      if (declares(op)) {
        definitions.push_back(word);
      } else if (op == op_entry_point) {
        // The interface follows the name, whose last word ends in a zero byte.
        std::uint32_t i = 3;
        while (i < count && (word[i] >> 24) != 0) ++i;
        mark_from(word, i + 1);
      } else if (op == op_decorate) {
        // The size of the workgroup is a constant that nothing else mentions.
        if (count > 2 && word[2] == decoration_built_in) mark(word[1]);
      } else if (op == op_execution_mode_id || op == op_decorate_id) {
        mark_from(word, 3);
      } else if (op == op_type_forward_pointer && count > 1) {
        mark(word[1]);
      }
    }
    // Definitions come before uses, but for pointers that are declared to come.
    for (auto it = definitions.rbegin(); it != definitions.rend(); ++it) {
      const std::uint32_t* word = *it;
      if (functions_.is_used[result_of(word)] == 0) continue;
      if (layout_of(opcode(word)).type) mark(word[1]);
      each_operand(word, [&](std::uint32_t i) { mark(word[i]); });
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
      case op_decorate_string:
      case op_member_decorate_string: break;
      default:
        if (!declares(opcode(word)) || functions_.is_used[result_of(word)] != 0) copy();
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

}  // namespace brontes::spirv
