// Numbers as names: a symbol stands for an element by the way it came about, "relu of word 3 of upload 7",
// hashed to 64 bits. Two elements are the same if their symbols are.
//
// What plans may change is not part of a name: copies, the order of the operands of commutative ops, and
// into how many passes a sum is cut.
#pragma once

#include "record/graph.hpp"

#include <cstdint>
#include <unordered_map>

namespace brontes::test {

using Symbol = std::uint64_t;

inline constexpr Symbol garbage = 0;  // memory nobody wrote

class Symbols {
 public:
  static Symbol initial(record::ResourceId resource, std::uint64_t word);
  static Symbol uploaded(record::ValueId value, std::uint64_t word);
  /// Operands and scalars past what the op takes do not matter.
  static Symbol elementwise(record::ElementwiseOp op, float p, float q, Symbol x, Symbol y);

  /// Ways to combine elements to one: `max` of a recording is `max` of a kernel.
  enum class Combine : std::uint32_t { sum, max, min };
  /// Goes through the elements of a reduction; partial results count as what went into them.
  class Reduction {
   public:
    Reduction(Symbols& symbols, Combine combine) : symbols_(symbols), combine_(combine) {}
    void add(Symbol x);
    void add_product(Symbol x, Symbol y);
    Symbol result();

   private:
    Symbols& symbols_;
    Combine combine_;
    std::uint64_t terms_ = 0;
  };

  /// An element of a matrix product: alpha times the terms of a range of k.
  class Product {
   public:
    explicit Product(std::uint64_t k_begin = 0) : begin_(k_begin), end_(k_begin) {}
    void add(Symbol a, Symbol b);  // the next k
    Symbol result(float alpha) const;
    /// Of a pass that is not the last: a later one may go on from it.
    Symbol partial(Symbols& symbols, float alpha) const;
    /// Goes on from `c`, which the pass before wrote.
    void accumulate(const Symbols& symbols, float alpha, Symbol c);
    /// The next range of k, which another pass summed up by itself.
    void join(const Symbols& symbols, Symbol slice);

   private:
    std::uint64_t begin_;
    std::uint64_t end_;
    std::uint64_t terms_ = 0;
    bool started_ = false;
  };

 private:
  struct Reduced {
    Combine combine;
    std::uint64_t terms;
  };
  struct Partial {
    float alpha;
    std::uint64_t begin, end;  // of k, without what was accumulated
    std::uint64_t terms;
  };
  std::unordered_map<Symbol, Reduced> reductions_;
  std::unordered_map<Symbol, Partial> partials_;
};

}  // namespace brontes::test
