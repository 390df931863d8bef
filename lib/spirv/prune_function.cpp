#include "spirv/prune_function.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "spirv/specialize_ops.hpp"

namespace brontes::spirv::pruning {

namespace {

constexpr std::size_t max_instances = 256;
// How many words are looked at again for copies, for each word there is.
constexpr std::size_t max_growth = 16;

// A store that a volatile variable asks for must stay.
bool is_volatile_store(const std::uint32_t* word) { return length(word) > 3 && (word[3] & 1) != 0; }

}  // namespace

std::size_t Instances::request(const Module& module, std::uint32_t function, std::vector<Argument> arguments) {
  const Function& wanted = module.functions[function];
  const auto locals = static_cast<std::uint32_t>(wanted.locals.size());
  if (all.size() >= max_instances || copied_ / max_growth >= module.words.size()) {
    for (Argument& a : arguments) a = {};
  }
  std::vector<std::size_t>& known = of_function_[function];
  for (const std::size_t i : known) {
    if (all[i].arguments == arguments) return i;
  }
  Instance made{function, std::move(arguments), 0, std::vector<std::uint8_t>(locals)};
  if (!known.empty()) {
    made.first_id = bound_;
    bound_ += locals;
    copied_ += wanted.words;
  }
  known.push_back(all.size());
  all.push_back(std::move(made));
  return all.size() - 1;
}

FunctionPruner::FunctionPruner(Module& module, Instances& instances)
    : is_used(module.bound), module_(module), instances_(instances), ids_(module.bound) {}

bool FunctionPruner::run(std::size_t instance, std::vector<std::uint32_t>& out) {
  instance_ = instance;
  out_ = &out;
  function_index_ = instances_.all[instance].function;
  function_ = &module_.functions[function_index_];
  reset();
  if (!analyse()) return false;
  dissolve();
  if (!link()) return false;
  mark_all();
  emit();
  return true;
}

void FunctionPruner::reset() {
  blocks_.assign(function_->blocks.size(), {});
  stores_.clear();
  calls_.clear();
  for (const std::uint32_t id : function_->locals) {
    ids_[id] = {};
    module_.ids[id].is_known = false;
  }
  const std::vector<Argument>& arguments = instances_.all[instance_].arguments;
  for (std::size_t i = 0; i < arguments.size() && i < function_->parameters.size(); ++i) {
    if (!arguments[i].is_known) continue;
    const std::uint32_t parameter = function_->parameters[i];
    if (module_.is_scalar(module_.ids[parameter].type)) {
      set(parameter, arguments[i].value);
    } else {
      ids_[parameter].pointee = arguments[i];
    }
  }
}

// What is known, and what is reached.

bool FunctionPruner::analyse() {
  blocks_[0].is_live = true;
  for (const std::uint32_t b : function_->order) {
    if (!blocks_[b].is_live) continue;
    const Block& block = function_->blocks[b];
    for (std::uint32_t where = block.begin; where < block.terminator; where += length(module_.at(where))) {
      if (!analyse(where, b)) return false;
    }
    decide(b);
  }
  std::sort(calls_.begin(), calls_.end());
  return true;
}

bool FunctionPruner::analyse(std::uint32_t where, std::uint32_t block) {
  const std::uint32_t* word = module_.at(where);
  switch (opcode(word)) {
    case op_phi: analyse_phi(where, block); return true;
    case op_function_call: return analyse_call(where, block);
    case op_store:
      ids_[word[1]].stored = word[2];
      ids_[word[1]].stored_in = block;
      return true;
    case op_variable: ids_[word[2]].root = word[2]; return true;
    case op_access_chain:
    case op_in_bounds_access_chain: ids_[word[2]].root = local_variable(word[3]); return true;
    case op_load:
      if (ids_[word[3]].pointee.is_known) set(word[2], ids_[word[3]].pointee.value);
      return true;
    default: analyse_value(where); return true;
  }
}

void FunctionPruner::analyse_phi(std::uint32_t where, std::uint32_t block) {
  // What comes round a loop is not known yet.
  if (function_->blocks[block].is_loop) return;
  const std::uint32_t* word = module_.at(where);
  std::uint32_t only = 0;
  bool one_id = true;
  bool one_value = true;
  for (std::uint32_t i = 3; i < length(word); i += 2) {
    if (!is_edge_live(module_.block_of(*function_, word[i + 1]), block)) continue;
    const std::uint32_t id = resolve(word[i]);
    if (only == 0) only = id;
    one_id &= id == only;
    const Id& a = module_.ids[id];
    const Id& b = module_.ids[only];
    one_value &= a.is_known && b.is_known && a.value == b.value;
  }
  if (only == 0) return;
  if (one_id) {
    replace(word[2], only);
  } else if (one_value) {
    set(word[2], module_.ids[only].value);
  }
}

bool FunctionPruner::analyse_call(std::uint32_t where, std::uint32_t block) {
  const std::uint32_t* word = module_.at(where);
  const std::uint32_t index = module_.ids[word[3]].function;
  if (index == none || module_.functions[index].id != word[3]) return false;
  const Function& callee = module_.functions[index];
  if (length(word) - 4 != callee.parameters.size()) return false;
  std::vector<Argument> arguments(callee.parameters.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::uint32_t parameter = callee.parameters[i];
    const std::uint32_t argument = word[4 + i];
    if (module_.is_scalar(module_.ids[parameter].type)) {
      if (known(argument).is_known) arguments[i] = {true, known(argument).value};
      continue;
    }
    // glslang makes a variable of its own for every argument, and stores to it just before the call.
    const Id& variable = module_.ids[argument];
    if (!is_read_only(parameter) || local_variable(argument) != argument || variable.stores != 1 ||
        variable.arguments != 1 || variable.loads != 0 || variable.other_uses != 0 ||
        ids_[argument].stored_in != block) {
      continue;
    }
    const Id& stored = known(ids_[argument].stored);
    if (stored.is_known) arguments[i] = {true, stored.value};
  }
  calls_.emplace_back(where, instances_.request(module_, index, std::move(arguments)));
  return true;
}

void FunctionPruner::analyse_value(std::uint32_t where) {
  const std::uint32_t* word = module_.at(where);
  const std::uint32_t op = opcode(word);
  const Layout layout = layout_of(op);
  if (!layout.type || !layout.result) return;
  const std::uint32_t result = word[2];
  const std::uint32_t count = length(word) - 3;

  if (op == op_copy_object) replace(result, word[3]);
  if (op == op_select && count == 3 && known(word[3]).is_known) {
    replace(result, known(word[3]).value != 0 ? word[4] : word[5]);
  }
  if (op == op_copy_object || op == op_select) return;

  if (!module_.is_scalar(word[1])) return;
  if (op == op_composite_extract) {
    const std::uint32_t definition = module_.ids[word[3]].definition;
    if (definition == 0 || count != 2) return;
    const std::uint32_t* composite = module_.at(definition);
    if (opcode(composite) != op_constant_composite || word[4] >= length(composite) - 3) return;
    const std::uint32_t part = composite[3 + word[4]];
    if (part < module_.bound && module_.ids[part].is_known) replace(result, part);
    return;
  }
  if ((op == op_logical_and || op == op_logical_or) && count == 2) {
    const std::uint32_t deciding = op == op_logical_or ? 1 : 0;
    for (std::uint32_t i = 3; i < 5; ++i) {
      const Id& one = known(word[i]);
      if (!one.is_known) continue;
      replace(result, one.value == deciding ? word[i] : word[7 - i]);
      return;
    }
    return;
  }
  if (count == 0 || count > 3) return;
  std::uint32_t operands[3] = {};
  bool all_known = true;
  std::uint32_t ids = 0;
  each_operand(word, [&](std::uint32_t i) {
    const Id& operand = known(word[i]);
    all_known &= operand.is_known;
    operands[i - 3] = operand.value;
    ++ids;
  });
  if (!all_known || ids != count) return;
  if (const std::optional<std::uint32_t> value = evaluate(op, operands, count)) set(result, *value);
}

// The block that the terminator leads to whatever happens, if that can be written so.
std::uint32_t FunctionPruner::way_out(std::uint32_t b) const {
  const Block& block = function_->blocks[b];
  const std::uint32_t* word = module_.at(block.terminator);
  const std::uint32_t op = opcode(word);
  if (op != op_branch_conditional && op != op_switch) return none;
  if (block.is_loop || !known(word[1]).is_known) return none;
  for (const std::uint32_t successor : block.successors) {
    // The loop needs its back edge.
    if (function_->blocks[successor].position <= block.position) return none;
  }
  const std::uint32_t value = known(word[1]).value;
  if (op == op_branch_conditional) {
    // An open branch to the merge block is allowed by this construct alone, so that it must stay.
    if (block.merge != none && function_->blocks[block.merge].joins_open_branch) return none;
    return block.successors[value != 0 ? 0 : 1];
  }
  for (const std::uint32_t successor : block.successors) {
    // An open branch to another case is allowed by this construct alone too.
    if (successor != block.merge && function_->blocks[successor].joins_open_branch) return none;
  }
  for (std::uint32_t i = 3; i + 1 < length(word); i += 2) {
    if (word[i] == value) return block.successors[(i - 1) / 2];
  }
  return block.successors[0];
}

void FunctionPruner::decide(std::uint32_t b) {
  blocks_[b].taken = way_out(b);
  if (blocks_[b].taken != none) {
    blocks_[blocks_[b].taken].is_live = true;
    return;
  }
  for (const std::uint32_t successor : function_->blocks[b].successors) blocks_[successor].is_live = true;
}

// Which constructs stay.

void FunctionPruner::dissolve() {
  // Inner ones first: what leaves a switch directly depends on them.
  for (auto it = function_->order.rbegin(); it != function_->order.rend(); ++it) {
    BlockState& state = blocks_[*it];
    const Block& block = function_->blocks[*it];
    if (!state.is_live || state.taken == none || block.merge == none) continue;
    state.is_dissolved = opcode(module_.at(block.terminator)) != op_switch || !leaves_from_inside(*it);
  }
}

// Whether a construct or an open branch inside that of the header leads to its merge block.
bool FunctionPruner::leaves_from_inside(std::uint32_t header) const {
  const Block& switching = function_->blocks[header];
  const Block& merge = function_->blocks[switching.merge];
  for (std::uint32_t i = switching.position + 1; i < merge.position; ++i) {
    const std::uint32_t b = function_->order[i];
    const Block& block = function_->blocks[b];
    if (!blocks_[b].is_live ||
        std::find(block.successors.begin(), block.successors.end(), switching.merge) == block.successors.end()) {
      continue;
    }
    if (!is_edge_live(b, switching.merge)) continue;
    if (!is_plain_branch(b)) return true;
    std::uint32_t around = block.construct;
    while (around != none && around != header && blocks_[around].is_dissolved) {
      around = function_->blocks[around].construct;
    }
    if (around != header) return true;
  }
  return false;
}

// What the merge instructions that stay need, and which blocks follow others and nothing else.
// False if there is a loop that is entered and never comes round, which cannot be written without its blocks.
bool FunctionPruner::link() {
  const auto enter = [&](std::uint32_t from, std::uint32_t to) {
    ++blocks_[to].entries;
    blocks_[to].comes_round |= function_->blocks[to].position <= function_->blocks[from].position;
  };
  for (const std::uint32_t b : function_->order) {
    if (!blocks_[b].is_live) continue;
    const Block& block = function_->blocks[b];
    if (blocks_[b].taken != none) {
      enter(b, blocks_[b].taken);
    } else {
      for (const std::uint32_t successor : block.successors) enter(b, successor);
    }
    if (!declares_construct(b)) continue;
    BlockState& merge = blocks_[block.merge];
    merge.is_target = true;
    if (!merge.is_live && merge.stub == Stub::absent) merge.stub = Stub::unreachable;
    if (!block.is_loop) continue;
    BlockState& next = blocks_[block.continue_target];
    next.is_target = true;
    if (!next.is_live) {
      next.stub = Stub::continues;
      next.header = b;
    }
  }
  for (const std::uint32_t b : function_->order) {
    BlockState& state = blocks_[b];
    const Block& header = function_->blocks[b];
    if (state.is_live && header.is_loop && blocks_[header.continue_target].is_live && !state.comes_round) return false;
    if (state.head == none) state.head = b;
    if (!state.is_live || !is_plain_branch(b)) continue;
    const Block& block = function_->blocks[b];
    const std::uint32_t next = state.taken != none ? state.taken : block.successors[0];
    BlockState& following = blocks_[next];
    if (following.entries != 1 || following.is_target || function_->blocks[next].is_loop) continue;
    following.is_appended = true;
    following.head = state.head;
  }
  return true;
}

// What is needed.

void FunctionPruner::mark_all() {
  for (const std::uint32_t b : function_->order) {
    if (!blocks_[b].is_live) continue;
    const Block& block = function_->blocks[b];
    for (std::uint32_t where = block.begin; where < block.terminator; where += length(module_.at(where))) {
      const std::uint32_t* word = module_.at(where);
      if (where == block.merge_instruction || is_removable(word)) continue;
      if (opcode(word) == op_store && !is_volatile_store(word)) {
        if (const std::uint32_t variable = local_variable(word[1])) {
          stores_.push_back({where, ids_[variable].last_store});
          ids_[variable].last_store = static_cast<std::uint32_t>(stores_.size() - 1);
          continue;
        }
      }
      mark_operands(where);
    }
    if (!is_plain_branch(b)) mark_operands(block.terminator);
  }
  while (!pending_.empty()) {
    const std::uint32_t id = pending_.back();
    pending_.pop_back();
    mark_operands(module_.ids[id].definition);
    for (std::uint32_t i = ids_[id].last_store; i != none; i = stores_[i].previous) mark_operands(stores_[i].where);
  }
}

void FunctionPruner::mark(std::uint32_t id) {
  id = resolve(id);
  if (module_.ids[id].function != function_index_ || ids_[id].is_marked) return;
  ids_[id].is_marked = true;
  pending_.push_back(id);
}

void FunctionPruner::mark_operands(std::uint32_t where) {
  const std::uint32_t* word = module_.at(where);
  if (opcode(word) != op_phi) {
    each_operand(word, [&](std::uint32_t i) { mark(word[i]); });
    return;
  }
  const std::uint32_t block = module_.ids[word[2]].block;
  for (std::uint32_t i = 3; i < length(word); i += 2) {
    if (is_edge_live(module_.block_of(*function_, word[i + 1]), block)) mark(word[i]);
  }
}

// What comes out.

void FunctionPruner::emit() {
  std::uint32_t where = function_->begin;
  for (; opcode(module_.at(where)) != op_label; where += length(module_.at(where))) emit_instruction(where);
  for (const std::uint32_t b : function_->order) {
    const BlockState& state = blocks_[b];
    if (state.is_appended || (!state.is_live && state.stub == Stub::absent)) continue;
    const std::uint32_t name = label(b);
    instances_.all[instance_].is_defined[module_.ids[function_->blocks[b].label].ordinal] = 1;
    out_->insert(out_->end(), {2u << 16 | op_label, name});
    if (state.stub == Stub::unreachable) {
      out_->push_back(1u << 16 | op_unreachable);
    } else if (state.stub == Stub::continues) {
      out_->insert(out_->end(), {2u << 16 | op_branch, label(state.header)});
    } else {
      emit_block(b);
    }
  }
  out_->push_back(1u << 16 | op_function_end);
}

void FunctionPruner::emit_block(std::uint32_t b) {
  std::uint32_t line = 0;  // where the OpLine is that nothing has come behind yet
  for (;;) {
    const Block& block = function_->blocks[b];
    for (std::uint32_t where = block.begin; where < block.terminator; where += length(module_.at(where))) {
      const std::uint32_t op = opcode(module_.at(where));
      if (op == op_line || op == op_no_line) line = where;
      if (where == line || where == block.merge_instruction || !is_needed(where)) continue;
      if (line != 0) emit_instruction(std::exchange(line, 0));
      if (op == op_phi) {
        emit_phi(where, b);
      } else {
        emit_instruction(where);
      }
    }
    if (is_plain_branch(b)) {
      const std::uint32_t next = blocks_[b].taken != none ? blocks_[b].taken : block.successors[0];
      if (blocks_[next].is_appended) {
        b = next;
        continue;
      }
    }
    if (line != 0) emit_instruction(line);
    emit_terminator(b);
    return;
  }
}

void FunctionPruner::emit_phi(std::uint32_t where, std::uint32_t b) {
  const std::uint32_t* word = module_.at(where);
  const std::size_t begin = out_->size();
  const std::uint32_t type = emitted(word[1]);
  const std::uint32_t result = emitted(word[2]);
  out_->insert(out_->end(), {0, type, result});
  std::uint32_t first = 0;
  const auto add = [&](std::uint32_t value, std::uint32_t from) {
    if (first == 0) first = value;
    out_->insert(out_->end(), {value, label(blocks_[from].head)});
  };
  for (std::uint32_t i = 3; i < length(word); i += 2) {
    const std::uint32_t from = module_.block_of(*function_, word[i + 1]);
    if (is_edge_live(from, b)) add(emitted(word[i]), from);
  }
  // Nothing comes from a stub, and any value will do.
  const std::uint32_t back = function_->blocks[b].continue_target;
  if (back != none && blocks_[back].stub == Stub::continues && first != 0) add(first, back);
  (*out_)[begin] = static_cast<std::uint32_t>(out_->size() - begin) << 16 | op_phi;
  instances_.all[instance_].is_defined[module_.ids[word[2]].ordinal] = 1;
}

void FunctionPruner::emit_instruction(std::uint32_t where) {
  const std::uint32_t* word = module_.at(where);
  const Layout layout = layout_of(opcode(word));
  const std::size_t begin = out_->size();
  out_->insert(out_->end(), word, word + length(word));
  if (layout.type) (*out_)[begin + 1] = emitted(word[1]);
  if (layout.result) {
    const std::uint32_t result = word[layout.type ? 2 : 1];
    (*out_)[begin + layout.first_operand() - 1] = emitted(result);
    instances_.all[instance_].is_defined[module_.ids[result].ordinal] = 1;
  }
  each_operand(word, [&](std::uint32_t i) { (*out_)[begin + i] = emitted(word[i]); });
  if (opcode(word) == op_function_call) {
    const auto call = std::lower_bound(calls_.begin(), calls_.end(), std::pair(where, std::size_t{0}));
    (*out_)[begin + 3] = instances_.all[call->second].id(module_, word[3]);
  }
}

void FunctionPruner::emit_terminator(std::uint32_t b) {
  const Block& block = function_->blocks[b];
  if (declares_construct(b)) emit_instruction(block.merge_instruction);
  if (blocks_[b].taken == none) {
    emit_instruction(block.terminator);
  } else if (declares_construct(b)) {
    const std::uint32_t selector = emitted(module_.at(block.terminator)[1]);
    out_->insert(out_->end(), {3u << 16 | op_switch, selector, label(blocks_[b].taken)});
  } else {
    out_->insert(out_->end(), {2u << 16 | op_branch, label(blocks_[b].taken)});
  }
}

std::uint32_t FunctionPruner::emitted(std::uint32_t id) {
  id = resolve(id);
  if (module_.ids[id].function == function_index_) return instances_.all[instance_].id(module_, id);
  is_used[id] = 1;
  return id;
}

// Questions.

bool FunctionPruner::is_edge_live(std::uint32_t from, std::uint32_t to) const {
  if (from == none || !blocks_[from].is_live) return false;
  return blocks_[from].taken == none || blocks_[from].taken == to;
}

bool FunctionPruner::declares_construct(std::uint32_t block) const {
  return function_->blocks[block].merge != none && !blocks_[block].is_dissolved;
}

// It ends in an OpBranch and nothing before that.
bool FunctionPruner::is_plain_branch(std::uint32_t block) const {
  if (declares_construct(block)) return false;
  return blocks_[block].taken != none || opcode(module_.at(function_->blocks[block].terminator)) == op_branch;
}

bool FunctionPruner::is_needed(std::uint32_t where) const {
  const std::uint32_t* word = module_.at(where);
  if (is_removable(word)) {
    const IdState& result = ids_[result_of(word)];
    return result.is_marked && result.replacement == 0;
  }
  if (opcode(word) != op_store || is_volatile_store(word)) return true;
  const std::uint32_t variable = local_variable(word[1]);
  return variable == 0 || ids_[variable].is_marked;
}

std::uint32_t FunctionPruner::resolve(std::uint32_t id) const {
  // A replacement is resolved when it is set, and was defined before.
  return ids_[id].replacement != 0 ? ids_[id].replacement : id;
}

// The function's variable that the pointer is to, or into; 0 if it is to anything else.
std::uint32_t FunctionPruner::local_variable(std::uint32_t pointer) const {
  pointer = resolve(pointer);
  return module_.ids[pointer].function == function_index_ ? ids_[pointer].root : 0;
}

bool FunctionPruner::is_removable(const std::uint32_t* word) const {
  return removable(word) && (opcode(word) != op_ext_inst || module_.ids[word[3]].is_math);
}

// A pointer to a scalar, which the function does no more than load.
bool FunctionPruner::is_read_only(std::uint32_t parameter) const {
  const Id& id = module_.ids[parameter];
  if (id.stores != 0 || id.arguments != 0 || id.other_uses != 0) return false;
  const std::uint32_t type = module_.ids[id.type].definition;
  return type != 0 && opcode(module_.at(type)) == op_type_pointer && module_.at(type)[2] == storage_function &&
         module_.is_scalar(module_.at(type)[3]);
}

void FunctionPruner::replace(std::uint32_t id, std::uint32_t by) {
  // The decoration is what the copy is there for.
  if (!module_.ids[id].is_non_uniform) ids_[id].replacement = resolve(by);
}

void FunctionPruner::set(std::uint32_t id, std::uint32_t value) {
  module_.ids[id].is_known = true;
  module_.ids[id].value = value;
}

}  // namespace brontes::spirv::pruning
