#include "spirv/prune_module.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "spirv/specialize_ops.hpp"

namespace brontes::spirv::pruning {

namespace {

// The specification's limit for constructs in one another.
constexpr std::size_t max_nesting = 1023;

bool is_line(std::uint32_t op) { return op == op_line || op == op_no_line; }

// Whether the words hold this text, its final zero included.
bool is_text(const std::uint32_t* words, std::uint32_t count, const char* text) {
  const std::size_t bytes = std::strlen(text) + 1;
  return bytes <= count * sizeof *words && std::memcmp(words, text, bytes) == 0;
}

}  // namespace

std::uint32_t Module::block_of(const Function& function, std::uint32_t label) const {
  if (label >= bound || ids[label].definition == 0 || opcode(at(ids[label].definition)) != op_label) return none;
  const std::uint32_t block = ids[label].block;
  return block < function.blocks.size() && function.blocks[block].label == label ? block : none;
}

bool Module::parse() {
  if (words.size() < header_words || words.size() > none) return false;
  bound = words[3];
  // Memory is taken by the bound, and a module has less than one id for each word: this one is very sparse.
  if (words[0] != magic || bound == 0 || bound > max_bound || bound / 16 > words.size()) return false;
  const auto size = static_cast<std::uint32_t>(words.size());
  for (std::uint32_t where = header_words; where < size; where += length(at(where))) {
    if (length(at(where)) == 0 || length(at(where)) > size - where) return false;
  }

  ids.assign(bound, {});
  is_int.assign(bound, 0);
  std::uint32_t where = header_words;
  for (; where < size && opcode(at(where)) != op_function; where += length(at(where))) {
    if (!parse_global(where)) return false;
  }
  functions_begin = where;
  while (where < size) {
    if (!parse_function(where)) return false;
  }
  for (Function& function : functions) {
    if (!link(function)) return false;
  }
  return !functions.empty() && !entry_points.empty();
}

bool declares(std::uint32_t op) {
  return (op >= op_type_void && op < op_type_forward_pointer) ||
         (op >= op_constant_true && op <= op_spec_constant_op) || op == op_undef || op == op_variable ||
         op == op_type_cooperative_matrix;
}

bool Module::parse_global(std::uint32_t where) {
  const std::uint32_t* word = at(where);
  const std::uint32_t op = opcode(word);
  const std::uint32_t count = length(word);
  if (!declares(op)) {
    switch (op) {
      case op_entry_point:
        if (count < 4) return false;
        entry_points.push_back(word[2]);
        return true;
      case op_ext_inst_import:
        if (count < 3 || word[1] >= bound) return false;
        ids[word[1]].is_math = is_text(word + 2, count - 2, "GLSL.std.450");
        ids[word[1]].is_print = is_text(word + 2, count - 2, "NonSemantic.DebugPrintf");
        return true;
      case op_line:
      case op_no_line:
      case op_name:
      case op_member_name:
      case op_string:
      case op_extension:
      case op_memory_model:
      case op_execution_mode:
      case op_execution_mode_id:
      case op_capability:
      case op_module_processed:
      case op_type_forward_pointer:
      case op_decorate:
        if (count > 2 && word[2] == decoration_non_uniform && word[1] < bound) ids[word[1]].is_non_uniform = true;
        return true;
      case op_member_decorate:
      case op_decorate_id:
      case op_decorate_string:
      case op_member_decorate_string: return true;
      default: return op >= op_source_continued && op <= op_source_extension;
    }
  }
  const Layout layout = layout_of(op);
  if (!layout.known || count < layout.first_operand()) return false;
  if (!each_operand(word, [](std::uint32_t) {})) return false;
  const std::uint32_t result = result_of(word);
  if (result == 0 || result >= bound || ids[result].definition != 0) return false;
  Id& id = ids[result];
  id.definition = where;
  if (!layout.type) {
    if (op == op_type_bool) bool_type = result;
    if (op == op_type_int && count == 4 && word[2] == 32) is_int[result] = 1;
    return op != op_type_pointer || (count == 4 && word[3] < bound);
  }
  if (word[1] == 0 || word[1] >= bound) return false;
  id.type = word[1];
  if (op == op_constant && count == 4 && is_int[id.type] != 0) {
    id.is_known = true;
    id.value = word[3];
  } else if (op == op_constant_true || op == op_constant_false) {
    id.is_known = true;
    id.value = op == op_constant_true ? 1 : 0;
  }
  return true;
}

bool Module::parse_function(std::uint32_t& where) {
  const auto size = static_cast<std::uint32_t>(words.size());
  while (where < size && is_line(opcode(at(where)))) where += length(at(where));
  if (where == size) return true;
  Function function;
  function.begin = where;
  bool in_block = false;
  for (; where < size; where += length(at(where))) {
    const std::uint32_t op = opcode(at(where));
    if ((op == op_function) != (where == function.begin)) return false;
    if (!parse_instruction(where, function)) return false;
    if (is_line(op) && !in_block) continue;
    const std::uint32_t next = where + length(at(where));
    if (op == op_function_end) {
      where = next;
      function.words = next - function.begin;
      if (in_block || function.blocks.empty()) return false;
      functions.push_back(std::move(function));
      return true;
    }
    if (op == op_function || op == op_function_parameter) {
      if (!function.blocks.empty()) return false;
      continue;
    }
    if ((op == op_label) == in_block) return false;
    if (op == op_label) {
      in_block = true;
      Block block;
      block.label = at(where)[1];
      block.begin = next;
      ids[block.label].block = static_cast<std::uint32_t>(function.blocks.size());
      function.blocks.push_back(std::move(block));
      continue;
    }
    Block& block = function.blocks.back();
    // Nothing but the terminator may come behind a merge instruction.
    const bool is_terminator = op >= op_branch && op <= op_unreachable;
    if (block.merge_instruction != 0 && !is_terminator) return false;
    if (op == op_loop_merge || op == op_selection_merge) block.merge_instruction = where;
    if (is_terminator) {
      block.terminator = where;
      block.end = next;
      in_block = false;
    }
  }
  return false;
}

bool Module::parse_instruction(std::uint32_t where, Function& function) {
  const std::uint32_t* word = at(where);
  const std::uint32_t op = opcode(word);
  const Layout layout = layout_of(op);
  if (!layout.known || length(word) < layout.first_operand()) return false;
  if (declares(op) && op != op_undef && op != op_variable) return false;
  if (layout.type && (word[1] == 0 || word[1] >= bound)) return false;
  if (layout.result) {
    const std::uint32_t result = word[layout.type ? 2 : 1];
    if (result == 0 || result >= bound || ids[result].definition != 0) return false;
    Id& id = ids[result];
    id.definition = where;
    id.type = layout.type ? word[1] : 0;
    id.function = static_cast<std::uint32_t>(functions.size());
    id.ordinal = static_cast<std::uint32_t>(function.locals.size());
    id.block = function.blocks.empty() ? 0 : static_cast<std::uint32_t>(function.blocks.size() - 1);
    if (op == op_function) function.id = result;
    if (op == op_function_parameter) function.parameters.push_back(result);
    function.locals.push_back(result);
  }
  bool valid = true;
  const bool readable = each_operand(word, [&](std::uint32_t i) {
    if (word[i] == 0 || word[i] >= bound) {
      valid = false;
      return;
    }
    Id& id = ids[word[i]];
    if (op == op_load) {
      ++id.loads;
    } else if (op == op_store && i == 1) {
      ++id.stores;
    } else if (op == op_function_call && i > 3) {
      ++id.arguments;
    } else {
      ++id.other_uses;
    }
  });
  if (!readable || !valid) return false;
  // Other sets of instructions may have effects that do not show here.
  if (op == op_ext_inst) return ids[word[3]].is_math || ids[word[3]].is_print;
  // Value and label take turns in a phi.
  return op != op_phi || length(word) % 2 != 0;
}

bool Module::link(Function& function) {
  for (Block& block : function.blocks) {
    if (!link(function, block)) return false;
  }
  return sort(function);
}

bool Module::link(Function& function, Block& block) {
  const std::uint32_t* word = at(block.terminator);
  const std::uint32_t op = opcode(word);
  bool valid = true;
  const auto target = [&](std::uint32_t label) {
    const std::uint32_t found = block_of(function, label);
    // Nothing leads to the first block of a function.
    valid &= found != none && found != 0;
    return found;
  };
  if (op == op_switch) {
    // Its literals are as wide as its selector.
    const std::uint32_t type = ids[word[1]].type;
    if (type >= bound || is_int[type] == 0) return false;
  }
  const bool leads_on = op == op_branch || op == op_branch_conditional || op == op_switch;
  const std::uint32_t first_target = op == op_branch ? 1 : 2;
  const std::uint32_t last_target = op == op_branch_conditional ? 3 : length(word) - 1;
  if (leads_on) {
    for (std::uint32_t i = first_target; i <= last_target; i += op == op_switch ? 2 : 1) {
      block.successors.push_back(target(word[i]));
    }
  }
  if (block.merge_instruction != 0) {
    const std::uint32_t* merge = at(block.merge_instruction);
    block.is_loop = opcode(merge) == op_loop_merge;
    block.merge = target(merge[1]);
    if (block.is_loop) block.continue_target = target(merge[2]);
    if (!valid || function.blocks[block.merge].is_merge) return false;
    function.blocks[block.merge].is_merge = true;
  }
  if (!valid) return false;
  if (block.merge == none && block.successors.size() > 1) {
    for (std::uint32_t successor : block.successors) function.blocks[successor].joins_open_branch = true;
  }
  return true;
}

bool Module::sort(Function& function) {
  enum State : std::uint8_t { unseen, open, done };
  std::vector<Block>& blocks = function.blocks;
  std::vector<std::uint8_t> state(blocks.size(), unseen);
  struct Visit {
    std::uint32_t block;
    std::size_t next;
  };
  // Depth first, and merge blocks and continue targets before all else, so that they end up behind it.
  const auto child = [&](const Block& block, std::size_t i) {
    const std::uint32_t ahead[] = {block.merge, block.continue_target};
    if (i < 2) return ahead[i];
    return block.successors[block.successors.size() - 1 - (i - 2)];
  };
  std::vector<Visit> path{{0, 0}};
  state[0] = open;
  while (!path.empty()) {
    Visit& visit = path.back();
    const Block& block = blocks[visit.block];
    if (visit.next == block.successors.size() + 2) {
      state[visit.block] = done;
      function.order.push_back(visit.block);
      path.pop_back();
      continue;
    }
    const std::uint32_t next = child(block, visit.next++);
    if (next == none || state[next] == done) continue;
    if (state[next] == open) {
      if (!blocks[next].is_loop) return false;
      continue;
    }
    state[next] = open;
    path.push_back({next, 0});
  }
  std::reverse(function.order.begin(), function.order.end());

  std::vector<std::uint32_t> headers;
  for (std::size_t i = 0; i < function.order.size(); ++i) {
    Block& block = blocks[function.order[i]];
    block.position = static_cast<std::uint32_t>(i);
    if (block.is_merge) {
      if (headers.empty() || blocks[headers.back()].merge != function.order[i]) return false;
      headers.pop_back();
    }
    if (!headers.empty()) block.construct = headers.back();
    if (block.merge != none) headers.push_back(function.order[i]);
    if (headers.size() > max_nesting) return false;
  }
  return true;
}

}  // namespace brontes::spirv::pruning
