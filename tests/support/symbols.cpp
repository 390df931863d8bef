#include "support/symbols.hpp"

#include "record/elementwise.hpp"
#include "record/words.hpp"

#include <algorithm>
#include <bit>

namespace brontes::test {
namespace {

enum Tag : std::uint64_t { tag_initial = 1, tag_upload, tag_op, tag_opaque, tag_scratch, tag_contents };

// splitmix64's finalizer.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b) { return mix(mix(a) + b); }
std::uint64_t mix(std::uint64_t a, std::uint64_t b, std::uint64_t c) { return mix(mix(a, b) + c); }

std::uint64_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

}  // namespace

Symbol Symbols::initial(record::ResourceId resource, std::uint64_t word) { return mix(tag_initial, resource, word); }
Symbol Symbols::uploaded(record::ValueId value, std::uint64_t word) { return mix(tag_upload, value, word); }

Symbol Symbols::elementwise(record::ElementwiseOp op, float p, float q, Symbol x, Symbol y, Symbol z) {
  using record::ElementwiseOp;
  if (op == ElementwiseOp::copy) return x;
  const record::ElementwiseInfo& info = record::info(op);
  const bool commutes =
      op == ElementwiseOp::add || op == ElementwiseOp::mul || op == ElementwiseOp::min || op == ElementwiseOp::max;
  if (commutes && x > y) std::swap(x, y);
  Symbol s = mix(tag_op, static_cast<std::uint64_t>(op));
  const Symbol operands[] = {x, y, z};
  for (std::size_t k = 0; k < info.arity; ++k) s = mix(s, operands[k]);
  if (info.scalars >= 1) s = mix(s, bits(p));
  if (info.scalars >= 2) s = mix(s, bits(q));
  return s;
}

Symbol Symbols::opaque(const record::Node& node, const std::vector<std::uint64_t>& operands, std::size_t result,
                       std::uint64_t element) {
  Symbol s = mix(tag_opaque, record::fingerprint(node), result);
  for (std::uint64_t o : operands) s = mix(s, o);
  return mix(s, element);
}

Symbol Symbols::scratch(std::uint64_t dispatch, std::uint64_t binding, std::uint64_t word) {
  return mix(mix(tag_scratch, dispatch, binding), word);
}

std::uint64_t Symbols::contents(const Symbol* words, std::size_t count) {
  std::uint64_t all = mix(tag_contents, count);
  for (std::size_t i = 0; i < count; ++i) all = mix(all, words[i]);
  return all;
}

}  // namespace brontes::test
