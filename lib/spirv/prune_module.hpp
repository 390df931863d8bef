// A SPIR-V module taken apart, for prune().
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace brontes::spirv::pruning {

constexpr std::uint32_t none = 0xffffffff;

// Whether the instruction, outside of functions, declares a type, a constant or a variable.
bool declares(std::uint32_t op);

struct Block {
  std::uint32_t label = 0;  // its id
  // Its instructions, from the one behind the label, are the module's words [begin, end).
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t terminator = 0;         // where the last one is
  std::uint32_t merge_instruction = 0;  // where the one before it is, if it declares a construct; else 0
  bool is_loop = false;                 // a loop's header
  bool is_merge = false;                // a merge instruction names it as the end of its construct
  std::uint32_t merge = none;           // blocks, as all below
  std::uint32_t continue_target = none;
  std::vector<std::uint32_t> successors;  // in the order of the terminator, perhaps repeated
  std::uint32_t construct = none;         // the header of the innermost construct around it, itself apart
  std::uint32_t position = none;          // in Function::order; none if not even a merge instruction reaches it
  bool joins_open_branch = false;         // a branch of several ways without a merge instruction leads here
};

struct Function {
  std::uint32_t id = 0;
  std::uint32_t begin = 0;  // where OpFunction is
  std::uint32_t words = 0;  // up to OpFunctionEnd
  std::vector<std::uint32_t> parameters;
  std::vector<std::uint32_t> locals;  // the ids it defines, itself first
  std::vector<Block> blocks;
  // Blocks so that each comes after all that lead to it but a loop's back edge, and those of a construct
  // are together, before its merge block.
  std::vector<std::uint32_t> order;
};

// What is known about an id. Constants have their value from the start, and what a function defines gets
// its own as the function is looked at.
struct Id {
  std::uint32_t definition = 0;  // where the instruction is, 0 if there is none
  std::uint32_t type = 0;
  std::uint32_t function = none;  // the one that defines it, if it is local
  std::uint32_t ordinal = 0;      // in Function::locals
  std::uint32_t block = 0;        // the function's block that it is, if a label, or is defined in
  // Of pointers in a function: how often it is loaded from, stored to, passed to a function, or other.
  std::uint32_t loads = 0, stores = 0, arguments = 0, other_uses = 0;
  bool is_known = false;
  bool is_non_uniform = false;  // decorated so
  bool is_math = false;         // the instructions of GLSL.std.450, as imported
  bool is_print = false;        // those of NonSemantic.DebugPrintf
  std::uint32_t value = 0;
};

struct Module {
  std::vector<std::uint32_t> words;
  std::vector<Id> ids;
  std::vector<Function> functions;
  std::vector<std::uint32_t> entry_points;  // ids
  std::uint32_t bound = 0;
  std::uint32_t bool_type = 0;
  std::vector<std::uint8_t> is_int;  // by id: a type of 32-bit integers
  std::size_t functions_begin = 0;   // where the first OpFunction is

  const std::uint32_t* at(std::uint32_t where) const { return words.data() + where; }
  // Of 32-bit integers or booleans.
  bool is_scalar(std::uint32_t type) const { return type == bool_type || is_int[type] != 0; }
  // Of the function's, or none.
  std::uint32_t block_of(const Function& function, std::uint32_t label) const;

  // False if there is something in `words` that is not known here.
  bool parse();

 private:
  bool parse_global(std::uint32_t where);
  bool parse_function(std::uint32_t& where);
  bool parse_instruction(std::uint32_t where, Function& function);
  bool link(Function& function);
  bool link(Function& function, Block& block);
  bool sort(Function& function);
};

}  // namespace brontes::spirv::pruning
