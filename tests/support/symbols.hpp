// Numbers as names: a symbol stands for an element by the way it came about, "relu of word 3 of upload 7",
// hashed to 64 bits. Two elements are the same if their symbols are.
//
// What plans may change is not part of a name: copies, and the order of the operands of commutative ops.
#pragma once

#include "record/elementwise.hpp"
#include "record/graph.hpp"

#include <cstdint>
#include <vector>

namespace brontes::test {

using Symbol = std::uint64_t;

inline constexpr Symbol garbage = 0;  // memory nobody wrote

class Symbols {
 public:
  static Symbol initial(record::ResourceId resource, std::uint64_t word);
  static Symbol uploaded(record::ValueId value, std::uint64_t word);
  /// Operands and scalars past what the op takes do not matter.
  static Symbol elementwise(record::ElementwiseOp op, float p, float q, Symbol x, Symbol y = garbage,
                            Symbol z = garbage);
  /// Of an op with a kernel of its own, nothing but this is known: what it gives depends on its attributes and on all
  /// elements of its operands, `operands` being their contents() in order.
  static Symbol opaque(const record::Node& node, const std::vector<std::uint64_t>& operands, std::size_t result,
                       std::uint64_t element);
  /// What a dispatch leaves for a later one of the same op.
  static Symbol scratch(std::uint64_t dispatch, std::uint64_t binding, std::uint64_t word);
  /// All elements of a value in one number.
  static std::uint64_t contents(const Symbol* words, std::size_t count);
};

}  // namespace brontes::test
