// What specialize() knows about SPIR-V's instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>

namespace brontes::spirv {

// Opcodes of the SPIR-V specification, section 3: those that are told apart by name.
enum Op : std::uint32_t {
  op_undef = 1,
  op_source_continued = 2,
  op_source_extension = 4,
  op_name = 5,
  op_member_name = 6,
  op_string = 7,
  op_line = 8,
  op_extension = 10,
  op_ext_inst_import = 11,
  op_ext_inst = 12,
  op_memory_model = 14,
  op_entry_point = 15,
  op_execution_mode = 16,
  op_capability = 17,
  op_type_void = 19,
  op_type_bool = 20,
  op_type_int = 21,
  op_type_float = 22,
  op_type_vector = 23,
  op_type_pointer = 32,
  op_type_forward_pointer = 39,
  op_constant_true = 41,
  op_constant_false = 42,
  op_constant = 43,
  op_constant_composite = 44,
  op_spec_constant_true = 48,
  op_spec_constant_false = 49,
  op_spec_constant = 50,
  op_spec_constant_composite = 51,
  op_spec_constant_op = 52,
  op_function = 54,
  op_function_parameter = 55,
  op_function_end = 56,
  op_function_call = 57,
  op_variable = 59,
  op_load = 61,
  op_store = 62,
  op_access_chain = 65,
  op_in_bounds_access_chain = 66,
  op_decorate = 71,
  op_member_decorate = 72,
  op_decoration_group = 73,
  op_group_decorate = 74,
  op_group_member_decorate = 75,
  op_composite_extract = 81,
  op_copy_object = 83,
  op_logical_or = 166,
  op_logical_and = 167,
  op_select = 169,
  op_phi = 245,
  op_loop_merge = 246,
  op_selection_merge = 247,
  op_label = 248,
  op_branch = 249,
  op_branch_conditional = 250,
  op_switch = 251,
  op_unreachable = 255,
  op_no_line = 317,
  op_module_processed = 330,
  op_execution_mode_id = 331,
  op_decorate_id = 332,
  op_type_cooperative_matrix = 4456,
  op_decorate_string = 5632,
  op_member_decorate_string = 5633,
};

constexpr std::uint32_t decoration_spec_id = 1;
constexpr std::uint32_t decoration_built_in = 11;
constexpr std::uint32_t decoration_non_uniform = 5300;
constexpr std::uint32_t storage_function = 7;

constexpr std::uint32_t magic = 0x07230203;
constexpr std::size_t header_words = 5;
// The specification's limit for the bound of ids.
constexpr std::uint32_t max_bound = 0x3fffff;

inline std::uint32_t opcode(const std::uint32_t* word) { return word[0] & 0xffff; }
inline std::uint32_t length(const std::uint32_t* word) { return word[0] >> 16; }

// The result of an operation on 32-bit integers and booleans (0 or 1), or nothing if it is undefined or
// the operation is none of those.
std::optional<std::uint32_t> evaluate(std::uint32_t op, const std::uint32_t* x, std::size_t count);

// How the words of an instruction are to be read, of a function's or one that declares a type, a constant
// or a variable: the id of a type, the result's id, `leading` ids, `literals`, and then what `tail` says.
struct Layout {
  enum class Tail : std::uint8_t { ids, literals, nothing, memory, strided, image, cases, operation };
  bool known = false;
  bool type = false;
  bool result = false;
  std::uint8_t leading = 0;
  std::uint8_t literals = 0;
  Tail tail = Tail::nothing;

  std::uint32_t first_operand() const { return 1u + (type ? 1 : 0) + (result ? 1 : 0); }
};
Layout layout_of(std::uint32_t op);

// Whether the instruction may go when nothing uses its result; of OpExtInst, those of GLSL.std.450.
bool removable(const std::uint32_t* word);

// The id of the instruction's result, by its layout, or 0.
inline std::uint32_t result_of(const std::uint32_t* word) {
  const Layout layout = layout_of(opcode(word));
  return layout.result ? word[layout.type ? 2 : 1] : 0;
}

// What follows a load, a store or a copy, which may have two of them.
template <class Visit>
bool each_memory_operand(const std::uint32_t* word, std::uint32_t at, std::uint32_t end, Visit&& visit) {
  // Volatile, Aligned, Nontemporal, MakePointerAvailable, MakePointerVisible, NonPrivatePointer.
  constexpr std::uint32_t known = 0x3f, aligned = 2, available = 8, visible = 16;
  while (at < end) {
    const std::uint32_t mask = word[at++];
    if ((mask & ~known) != 0) return false;
    if ((mask & aligned) != 0) ++at;
    for (const std::uint32_t scope : {mask & available, mask & visible}) {
      if (scope == 0) continue;
      if (at >= end) return false;
      visit(at++);
    }
  }
  return at == end;
}

// Calls visit(i) for every word i of an instruction with a Layout that is the id of an operand; the type
// and the result are none. False, perhaps after some calls, if the instruction cannot be read.
template <class Visit>
bool each_operand(const std::uint32_t* word, Visit&& visit) {
  Layout layout = layout_of(opcode(word));
  const std::uint32_t end = length(word);
  std::uint32_t at = layout.first_operand();
  if (layout.known && layout.tail == Layout::Tail::operation) {
    // A constant computed by another instruction, whose operands follow.
    if (at >= end) return false;
    layout = layout_of(word[at++]);
    if (!layout.type || !layout.result || layout.tail == Layout::Tail::operation) return false;
  }
  if (!layout.known || at + (layout.leading + layout.literals) > end) return false;
  for (std::uint32_t i = 0; i < layout.leading; ++i) visit(at++);
  at += layout.literals;
  switch (layout.tail) {
    case Layout::Tail::ids:
      while (at < end) visit(at++);
      return true;
    case Layout::Tail::literals: return true;
    case Layout::Tail::nothing: return at == end;
    // Perhaps a stride, behind which there may be what follows a load.
    case Layout::Tail::strided:
      if (at < end) visit(at++);
      return each_memory_operand(word, at, end, visit);
    case Layout::Tail::memory: return each_memory_operand(word, at, end, visit);
    // A mask, and ids for some of its bits.
    case Layout::Tail::image:
      for (++at; at < end; ++at) visit(at);
      return true;
    case Layout::Tail::cases:
      for (; at + 1 < end; at += 2) visit(at + 1);
      return at == end;
    case Layout::Tail::operation: break;
  }
  return false;
}

}  // namespace brontes::spirv
