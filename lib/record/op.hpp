// What an op is: a name, a table of its attributes, the rule for its results, and how it is planned. An op is one
// constant of this type, and everything that handles ops goes by what it says.
#pragma once

#include <brontes/error.hpp>
#include <brontes/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace brontes::plan {
struct Lowering;
}

namespace brontes::reference {
struct Expected;
}

namespace brontes::record {

using ValueId = std::uint32_t;
inline constexpr ValueId no_value = ~ValueId{0};

class Graph;
struct Node;
struct ViewAttributes;  // record/view.hpp

/// A field of an op's attributes. Dumps, JSON and comparisons of attributes go by the table of these.
struct Field {
  enum class Type : std::uint8_t { u64, i64, u32, i32, f32, flag, word, text /* a const char* */, list /* a List */ };
  enum class Text : std::uint8_t {
    hidden,  // in no dump
    extent,  // "4", joined to a neighbour of this kind by an x: "4x8x16"
    word,    // "nk"
    named,   // "alpha 0.5"
    last,    // behind the operands: "scale %0, 2"
  };

  const char* name;
  Type type;
  Text text;
  std::uint16_t offset;
  const char* (*words)(std::uint32_t) = nullptr;  // of a `word`, which is an 8-bit enum
  /// Text leaves the field out where it has this value; so does JSON if `json_default` is false.
  std::uint32_t default_bits = no_default;
  bool json_default = true;

  static constexpr std::uint32_t no_default = 0x7fedcba9;
};

/// A field of several numbers.
struct List {
  std::int32_t count = 0;
  std::array<std::int32_t, Shape::max_rank> items{};
};

/// The attributes of one node: a plain struct of the op's own.
class Attributes {
 public:
  static constexpr std::size_t max_bytes = 64;

  Attributes() = default;
  template <class T>
  requires(std::is_trivially_copyable_v<T> && !std::is_same_v<T, Attributes>)
      Attributes(const T& value) {  // NOLINT: implicit by design
    static_assert(sizeof(T) <= max_bytes);
    static_assert(alignof(T) <= 8);
    std::memcpy(bytes_.data(), &value, sizeof(T));
  }

  template <class T>
  T as() const {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= max_bytes);
    T value;
    std::memcpy(&value, bytes_.data(), sizeof(T));
    return value;
  }

  const std::byte* at(std::size_t offset) const { return bytes_.data() + offset; }

 private:
  alignas(8) std::array<std::byte, max_bytes> bytes_{};
};

/// A value before it is one.
struct ValueType {
  Shape shape;
  DType dtype = DType::f32;
};

/// A row of kernels/elementwise.def.
struct ElementwiseInfo {
  const char* name;
  std::uint8_t code;
  std::uint8_t arity;    // tensor operands
  std::uint8_t scalars;  // scalar operands, of the order p, q
  const char* types;     // a letter for each operand, an underscore, and one for the result: "ff_f"
};

struct Op {
  const char* name;
  Span<const Field> fields{};
  /// The shape-and-type rule: checks operands and attributes, completes the latter, and gives one entry per result.
  /// Null for ops without results.
  Error (*infer)(const Graph& graph, Span<const ValueId> inputs, Attributes& attributes,
                 std::vector<ValueType>& results) = nullptr;
  /// Turns the group of which such a node is the root into dispatches. Null for elementwise ops.
  Error (*lower)(plan::Lowering& to, std::uint32_t group) = nullptr;
  /// Bit k: operand k may be a Weight. The rule checks it. Bit 31 is also that of all operands behind it.
  std::uint32_t weights = 0;
  /// Bit k: operand k may be of another type than f32 and f16. The rule checks it.
  std::uint32_t types = 0;
  /// Its kernels read and write f32 only: operands of f16 are cast first.
  bool no_halves = false;
  /// Whether elementwise steps may follow within the op's own dispatches, on its single result; null for never.
  bool (*takes_epilogue)(const Node& node) = nullptr;
  /// Whether elementwise steps may run on its first operand as its dispatches load that, perhaps more than once.
  bool takes_prologue = false;
  /// For ops that only move elements: those of the result, or of the destination, that operand k goes to, in their
  /// order. Operands go to different elements; a result has no others, those of a destination keep their contents.
  /// Whoever makes an operand that goes to one piece may write it there at once (plan/homes.hpp). Null for ops that
  /// compute.
  ViewAttributes (*moves)(const Graph& graph, const Node& node, std::size_t k) = nullptr;
  /// Such an op writes all of its destination.
  bool fills = false;
  /// What its single result must be, given the elements of its operands as doubles. Null where nobody says; elementwise
  /// ops have a table (reference/reference.hpp).
  reference::Expected (*reference)(const Graph& graph, const Node& node,
                                   Span<const std::vector<double>> inputs) = nullptr;
  /// For elementwise ops, which are planned in programs of several.
  const ElementwiseInfo* elementwise = nullptr;
  /// A copy of the elements that ViewAttributes choose, in their order: what reads the result can read these instead.
  bool view = false;
};

}  // namespace brontes::record
