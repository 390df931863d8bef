#include "spirv/specialize_ops.hpp"

namespace brontes::spirv {
namespace {

using Tail = Layout::Tail;

constexpr std::int32_t as_signed(std::uint32_t x) { return static_cast<std::int32_t>(x); }

constexpr bool divides(std::uint32_t a, std::uint32_t b) { return b != 0 && !(a == 0x80000000 && b == 0xffffffff); }

std::optional<std::uint32_t> evaluate_binary(std::uint32_t op, std::uint32_t a, std::uint32_t b) {
  switch (op) {
    case 128: return a + b;  // IAdd
    case 130: return a - b;  // ISub
    case 132: return a * b;  // IMul
    case 134:                // UDiv
      if (b == 0) return std::nullopt;
      return a / b;
    case 135:  // SDiv
      if (!divides(a, b)) return std::nullopt;
      return static_cast<std::uint32_t>(as_signed(a) / as_signed(b));
    case 138:  // SRem, with the sign of a
      if (!divides(a, b)) return std::nullopt;
      return static_cast<std::uint32_t>(as_signed(a) % as_signed(b));
    case 139: {  // SMod, with the sign of b
      if (!divides(a, b)) return std::nullopt;
      const std::int32_t rest = as_signed(a) % as_signed(b);
      return static_cast<std::uint32_t>(rest) + (rest != 0 && (rest < 0) != (as_signed(b) < 0) ? b : 0);
    }
    case 137:  // UMod
      if (b == 0) return std::nullopt;
      return a % b;
    case 194:  // ShiftRightLogical
      if (b >= 32) return std::nullopt;
      return a >> b;
    case 195:  // ShiftRightArithmetic
      if (b >= 32) return std::nullopt;
      return static_cast<std::uint32_t>(as_signed(a) >> b);
    case 196:  // ShiftLeftLogical
      if (b >= 32) return std::nullopt;
      return a << b;
    case 197: return a | b;                                 // BitwiseOr
    case 198: return a ^ b;                                 // BitwiseXor
    case 199: return a & b;                                 // BitwiseAnd
    case 164:                                               // LogicalEqual
    case 170: return a == b ? 1 : 0;                        // IEqual
    case 165:                                               // LogicalNotEqual
    case 171: return a != b ? 1 : 0;                        // INotEqual
    case op_logical_or: return a != 0 || b != 0 ? 1 : 0;    // LogicalOr
    case op_logical_and: return a != 0 && b != 0 ? 1 : 0;   // LogicalAnd
    case 172: return a > b ? 1 : 0;                         // UGreaterThan
    case 173: return as_signed(a) > as_signed(b) ? 1 : 0;   // SGreaterThan
    case 174: return a >= b ? 1 : 0;                        // UGreaterThanEqual
    case 175: return as_signed(a) >= as_signed(b) ? 1 : 0;  // SGreaterThanEqual
    case 176: return a < b ? 1 : 0;                         // ULessThan
    case 177: return as_signed(a) < as_signed(b) ? 1 : 0;   // SLessThan
    case 178: return a <= b ? 1 : 0;                        // ULessThanEqual
    case 179: return as_signed(a) <= as_signed(b) ? 1 : 0;  // SLessThanEqual
    default: return std::nullopt;
  }
}

constexpr Layout value(std::uint8_t leading, std::uint8_t literals, Tail tail) {
  return {true, true, true, leading, literals, tail};
}
constexpr Layout statement(std::uint8_t leading, std::uint8_t literals, Tail tail) {
  return {true, false, false, leading, literals, tail};
}
constexpr Layout type(std::uint8_t leading, std::uint8_t literals, Tail tail) {
  return {true, false, true, leading, literals, tail};
}
constexpr bool between(std::uint32_t op, std::uint32_t first, std::uint32_t last) { return first <= op && op <= last; }

}  // namespace

std::optional<std::uint32_t> evaluate(std::uint32_t op, const std::uint32_t* x, std::size_t count) {
  if (count == 1) {
    switch (op) {
      case 124: return x[0];               // Bitcast
      case 126: return 0u - x[0];          // SNegate
      case 168: return x[0] == 0 ? 1 : 0;  // LogicalNot
      case 200: return ~x[0];              // Not
      default: return std::nullopt;
    }
  }
  if (count == 2) return evaluate_binary(op, x[0], x[1]);
  if (count == 3 && op == op_select) return x[0] != 0 ? x[1] : x[2];
  return std::nullopt;
}

Layout layout_of(std::uint32_t op) {
  switch (op) {
    case op_undef: return value(0, 0, Tail::nothing);
    case op_line: return statement(1, 2, Tail::nothing);
    case op_no_line: return statement(0, 0, Tail::nothing);
    case op_ext_inst: return value(1, 1, Tail::ids);
    case op_type_void:
    case op_type_bool:
    case op_type_int:
    case op_type_float: return type(0, 0, Tail::literals);
    case op_type_vector:
    case 24:                                     // TypeMatrix
    case 25: return type(1, 0, Tail::literals);  // TypeImage
    case 26: return type(0, 0, Tail::nothing);   // TypeSampler
    case 27:                                     // TypeSampledImage
    case 29: return type(1, 0, Tail::nothing);   // TypeRuntimeArray
    case 28: return type(2, 0, Tail::nothing);   // TypeArray
    case 30:                                     // TypeStruct
    case 33: return type(0, 0, Tail::ids);       // TypeFunction
    case op_type_pointer: return type(0, 1, Tail::ids);
    case op_constant_true:
    case op_constant_false:
    case 46:  // ConstantNull
    case op_spec_constant_true:
    case op_spec_constant_false: return value(0, 0, Tail::nothing);
    case op_constant:
    case 45:  // ConstantSampler
    case op_spec_constant: return value(0, 0, Tail::literals);
    case op_constant_composite:
    case op_spec_constant_composite: return value(0, 0, Tail::ids);
    case op_spec_constant_op: return value(0, 0, Tail::operation);
    case op_function: return value(0, 1, Tail::ids);
    case op_function_parameter: return value(0, 0, Tail::nothing);
    case op_function_call: return value(1, 0, Tail::ids);
    case op_function_end: return statement(0, 0, Tail::nothing);
    case op_variable: return value(0, 1, Tail::ids);
    case op_load: return value(1, 0, Tail::memory);
    case op_store: return statement(2, 0, Tail::memory);
    case 63: return statement(2, 0, Tail::memory);  // CopyMemory
    case op_access_chain:
    case op_in_bounds_access_chain:
    case 67:                                      // PtrAccessChain
    case 70: return value(1, 0, Tail::ids);       // InBoundsPtrAccessChain
    case 68: return value(1, 0, Tail::literals);  // ArrayLength
    case 77:                                      // VectorExtractDynamic
    case 78: return value(2, 0, Tail::ids);       // VectorInsertDynamic
    case 79: return value(2, 0, Tail::literals);  // VectorShuffle
    case 80: return value(0, 0, Tail::ids);       // CompositeConstruct
    case op_composite_extract: return value(1, 0, Tail::literals);
    case 82: return value(2, 0, Tail::literals);  // CompositeInsert
    case op_copy_object:
    case 84:                                          // Transpose
    case 100:                                         // Image
    case 104:                                         // ImageQuerySize
    case 106:                                         // ImageQueryLevels
    case 107:                                         // ImageQuerySamples
    case 400: return value(1, 0, Tail::nothing);      // CopyLogical
    case 60: return value(3, 0, Tail::nothing);       // ImageTexelPointer
    case 86:                                          // SampledImage
    case 103:                                         // ImageQuerySizeLod
    case 401:                                         // PtrEqual
    case 402:                                         // PtrNotEqual
    case 403: return value(2, 0, Tail::nothing);      // PtrDiff
    case 88:                                          // ImageSampleExplicitLod
    case 92:                                          // ImageSampleProjExplicitLod
    case 95:                                          // ImageFetch
    case 98: return value(2, 0, Tail::image);         // ImageRead
    case 90:                                          // ImageSampleDrefExplicitLod
    case 94:                                          // ImageSampleProjDrefExplicitLod
    case 96:                                          // ImageGather
    case 97: return value(3, 0, Tail::image);         // ImageDrefGather
    case 99: return statement(3, 0, Tail::image);     // ImageWrite
    case 224: return statement(3, 0, Tail::nothing);  // ControlBarrier
    case 225: return statement(2, 0, Tail::nothing);  // MemoryBarrier
    case 228: return statement(4, 0, Tail::nothing);  // AtomicStore
    case 342: return value(1, 1, Tail::ids);          // GroupNonUniformBallotBitCount
    case op_type_cooperative_matrix: return type(5, 0, Tail::nothing);
    case 4457: return value(2, 0, Tail::strided);      // CooperativeMatrixLoad
    case 4458: return statement(3, 0, Tail::strided);  // CooperativeMatrixStore
    case 4459: return value(3, 0, Tail::literals);     // CooperativeMatrixMulAdd
    case 4460: return value(1, 0, Tail::nothing);      // CooperativeMatrixLength
    case op_phi: return value(0, 0, Tail::ids);
    case op_loop_merge: return statement(2, 1, Tail::literals);
    case op_selection_merge: return statement(1, 1, Tail::nothing);
    case op_label: return {true, false, true, 0, 0, Tail::nothing};
    case op_branch: return statement(1, 0, Tail::nothing);
    case op_branch_conditional: return statement(3, 0, Tail::literals);
    case op_switch: return statement(2, 0, Tail::cases);
    case 252:  // Kill
    case 253:  // Return
    case op_unreachable: return statement(0, 0, Tail::nothing);
    case 254: return statement(1, 0, Tail::nothing);  // ReturnValue
    default: break;
  }
  // Conversions; arithmetic; relations and logic; bits; atomics; subgroup operations without a literal.
  if (between(op, 109, 122) || op == 124 || between(op, 126, 152) || between(op, 154, 191) || between(op, 194, 205) ||
      op == 227 || between(op, 229, 242) || between(op, 333, 341) || between(op, 343, 348) || between(op, 365, 366)) {
    return value(1, 0, Tail::ids);
  }
  // Subgroup arithmetic: the scope, the literal kind of operation, the operands.
  if (between(op, 349, 364)) return value(1, 1, Tail::ids);
  return {};
}

bool removable(const std::uint32_t* word) {
  const std::uint32_t op = opcode(word);
  constexpr std::uint32_t volatile_bit = 1;
  switch (op) {
    // Of GLSL.std.450, Modf and Frexp write through a pointer.
    case op_ext_inst: return word[4] != 35 && word[4] != 51;
    case op_load: return length(word) == 4 || (word[4] & volatile_bit) == 0;
    case op_undef:
    case op_variable:
    case op_access_chain:
    case op_in_bounds_access_chain:
    case op_phi: return true;
    default:
      return between(op, 67, 70) || between(op, 77, 97) || between(op, 100, 107) || between(op, 109, 205) ||
             between(op, 400, 403) || between(op, 4459, 4460);
  }
}

}  // namespace brontes::spirv
