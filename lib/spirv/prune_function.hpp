// One function of a module, or one copy of it, for prune().
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "spirv/prune_module.hpp"

namespace brontes::spirv::pruning {

// What a parameter, or what it points to, is known to be.
struct Argument {
  bool is_known = false;
  std::uint32_t value = 0;
  bool operator==(const Argument&) const = default;
};

// A function as it is called with certain arguments.
struct Instance {
  std::uint32_t function = 0;
  std::vector<Argument> arguments;
  std::uint32_t first_id = 0;            // a copy's ids are first_id + ordinal; 0 for the one that keeps its own
  std::vector<std::uint8_t> is_defined;  // by ordinal: the id is in the result

  std::uint32_t id(const Module& module, std::uint32_t local) const {
    return first_id == 0 ? local : first_id + module.ids[local].ordinal;
  }
};

class Instances {
 public:
  explicit Instances(const Module& module) : bound_(module.bound), of_function_(module.functions.size()) {}

  // The one that is called so, made if there is none. Past a limit it knows nothing of its arguments.
  std::size_t request(const Module& module, std::uint32_t function, std::vector<Argument> arguments);

  std::vector<Instance> all;
  const std::vector<std::size_t>& of(std::uint32_t function) const { return of_function_[function]; }
  std::uint32_t bound() const { return bound_; }

 private:
  std::uint32_t bound_;
  std::size_t copied_ = 0;  // words of functions that there are copies of, as often as there are
  std::vector<std::vector<std::size_t>> of_function_;
};

class FunctionPruner {
 public:
  FunctionPruner(Module& module, Instances& instances);

  // Appends the instance to `out`, and asks for those that it calls. False if the module is not valid.
  bool run(std::size_t instance, std::vector<std::uint32_t>& out);

  // By id: something in the functions uses it, and it is not local to one.
  std::vector<std::uint8_t> is_used;

 private:
  enum class Stub : std::uint8_t { absent, unreachable, continues };
  struct BlockState {
    bool is_live = false;
    bool is_dissolved = false;    // the construct that it would be the header of
    bool is_target = false;       // of a merge instruction that stays
    bool is_appended = false;     // to the block that leads here
    bool comes_round = false;     // a live block behind it leads here
    Stub stub = Stub::absent;     // in place of a dead block that a merge instruction needs
    std::uint32_t taken = none;   // the one way out, where its terminator decides for it
    std::uint32_t entries = 0;    // live ways in
    std::uint32_t head = none;    // the block at whose end it is, itself if it is appended to none
    std::uint32_t header = none;  // of a stub that continues a loop
  };
  struct IdState {
    std::uint32_t replacement = 0;  // an id that is the same
    std::uint32_t root = 0;         // of a pointer: the function's variable that it is into
    bool is_marked = false;         // something needs it
    Argument pointee;               // of a parameter
    std::uint32_t stored = 0;       // of a variable: the id in it, as of block stored_in
    std::uint32_t stored_in = none;
    std::uint32_t last_store = none;  // of a variable, in stores_
  };
  struct Store {
    std::uint32_t where, previous;
  };

  void reset();
  bool analyse();
  bool analyse(std::uint32_t where, std::uint32_t block);
  void analyse_phi(std::uint32_t where, std::uint32_t block);
  bool analyse_call(std::uint32_t where, std::uint32_t block);
  void analyse_value(std::uint32_t where);
  void decide(std::uint32_t block);
  std::uint32_t way_out(std::uint32_t block) const;
  void dissolve();
  bool leaves_from_inside(std::uint32_t header) const;
  bool link();
  void mark_all();
  void mark(std::uint32_t id);
  void mark_operands(std::uint32_t where);

  void emit();
  void emit_block(std::uint32_t block);
  void emit_phi(std::uint32_t where, std::uint32_t block);
  void emit_instruction(std::uint32_t where);
  void emit_terminator(std::uint32_t block);
  std::uint32_t emitted(std::uint32_t id);
  std::uint32_t label(std::uint32_t block) { return emitted(function_->blocks[block].label); }

  bool is_edge_live(std::uint32_t from, std::uint32_t to) const;
  bool is_plain_branch(std::uint32_t block) const;
  bool declares_construct(std::uint32_t block) const;
  bool is_needed(std::uint32_t where) const;
  std::uint32_t resolve(std::uint32_t id) const;
  std::uint32_t local_variable(std::uint32_t pointer) const;
  bool is_read_only(std::uint32_t parameter) const;
  bool is_removable(const std::uint32_t* word) const;
  const Id& known(std::uint32_t id) const { return module_.ids[resolve(id)]; }
  void replace(std::uint32_t id, std::uint32_t by);
  void set(std::uint32_t id, std::uint32_t value);

  Module& module_;
  Instances& instances_;
  const Function* function_ = nullptr;
  std::uint32_t function_index_ = 0;
  std::size_t instance_ = 0;
  std::vector<std::uint32_t>* out_ = nullptr;
  std::vector<IdState> ids_;
  std::vector<BlockState> blocks_;
  std::vector<Store> stores_;
  std::vector<std::uint32_t> pending_;                        // marked, their operands not yet
  std::vector<std::pair<std::uint32_t, std::size_t>> calls_;  // where, and the instance
};

}  // namespace brontes::spirv::pruning
