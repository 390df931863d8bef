#include "support/symbols.hpp"

#include <algorithm>
#include <bit>

namespace brontes::test {
namespace {

enum Tag : std::uint64_t { tag_initial = 1, tag_upload, tag_reduction, tag_product, tag_accumulated, tag_op };

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

Symbol Symbols::elementwise(record::ElementwiseOp op, float p, float q, Symbol x, Symbol y) {
  using record::ElementwiseOp;
  if (op == ElementwiseOp::copy) return x;
  const record::ElementwiseInfo& info = record::info(op);
  const bool commutes =
      op == ElementwiseOp::add || op == ElementwiseOp::mul || op == ElementwiseOp::min || op == ElementwiseOp::max;
  if (commutes && x > y) std::swap(x, y);
  Symbol s = mix(tag_op, static_cast<std::uint64_t>(op));
  if (info.arity >= 1) s = mix(s, x);
  if (info.arity >= 2) s = mix(s, y);
  if (info.scalars >= 1) s = mix(s, bits(p));
  if (info.scalars >= 2) s = mix(s, bits(q));
  return s;
}

void Symbols::Reduction::add(Symbol x) {
  if (!symbols_.reductions_.empty()) {
    const auto known = symbols_.reductions_.find(x);
    if (known != symbols_.reductions_.end() && known->second.combine == combine_) {
      terms_ += known->second.terms;
      return;
    }
  }
  terms_ += mix(x);
}

void Symbols::Reduction::add_product(Symbol x, Symbol y) {
  terms_ += mix(elementwise(record::ElementwiseOp::mul, 0, 0, x, y));
}

Symbol Symbols::Reduction::result() {
  const Symbol s = mix(tag_reduction, static_cast<std::uint64_t>(combine_), terms_);
  symbols_.reductions_[s] = {combine_, terms_};
  return s;
}

void Symbols::Product::add(Symbol a, Symbol b) { terms_ += mix(end_++, a, b); }

Symbol Symbols::Product::result(float alpha) const { return mix(tag_product, bits(alpha), terms_); }

Symbol Symbols::Product::partial(Symbols& symbols, float alpha) const {
  const Symbol s = result(alpha);
  symbols.partials_[s] = {alpha, begin_, end_, terms_};
  return s;
}

void Symbols::Product::accumulate(const Symbols& symbols, float alpha, Symbol c) {
  const auto known = symbols.partials_.find(c);
  const bool follows =
      known != symbols.partials_.end() && bits(known->second.alpha) == bits(alpha) && known->second.end == begin_;
  // Onto anything else it is some other sum.
  terms_ += follows ? known->second.terms : mix(tag_accumulated, c);
}

void Symbols::Product::join(const Symbols& symbols, Symbol slice) {
  const auto known = symbols.partials_.find(slice);
  const bool follows = known != symbols.partials_.end() && bits(known->second.alpha) == bits(1.0f) &&
                       (!started_ || known->second.begin == end_);
  if (follows && !started_) begin_ = known->second.begin;
  if (follows) end_ = known->second.end;
  started_ = true;
  terms_ += follows ? known->second.terms : mix(tag_accumulated, slice);
}

}  // namespace brontes::test
