#include "support/random_graph.hpp"

#include "op_case.hpp"
#include "ops/call.hpp"
#include "ops/catalogue.hpp"
#include "ops/matmul.hpp"
#include "ops/reduce.hpp"
#include "ops/store.hpp"
#include "record/elementwise.hpp"
#include "record/view.hpp"

#include "accumulate.spv.h"
#include "split.spv.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <vector>

namespace brontes::test {
namespace {

using ops::ReduceOp;
using record::ElementwiseOp;
using record::Graph;
using record::ResourceId;
using record::ValueId;

constexpr ResourceId resource_count = 3;
constexpr std::uint64_t resource_elements = 48;
constexpr std::uint64_t most_elements = 400;

// The cases that are small enough, by room. Rooms without such cases are left out.
const std::vector<std::vector<cases::OpCase>>& small_cases() {
  static const auto rooms = [] {
    std::vector<std::vector<cases::OpCase>> all;
    for (const cases::NamedCaseRoom& room : cases::op_cases()) {
      std::vector<cases::OpCase> small = room.room.cases();
      std::erase_if(small, [](const cases::OpCase& c) {
        return std::any_of(c.operands.begin(), c.operands.end(),
                           [](const cases::Operand& o) { return o.shape.count() > most_elements; });
      });
      if (!small.empty()) all.push_back(std::move(small));
    }
    return all;
  }();
  return rooms;
}

class Recorder {
 public:
  explicit Recorder(Random& random) : random_(random), batch_(OpAccess::detached()), graph_(*OpAccess::graph(batch_)) {}

  Graph run() {
    for (std::uint32_t i = random_.between(1, 3); i-- > 0;) source();
    if (random_.one_in(6)) execute_so_far();
    for (std::uint32_t i = random_.between(1, 5); i-- > 0;) {
      if (random_.one_in(2)) {
        pattern();
      } else {
        for (std::uint32_t j = random_.between(1, 5); j-- > 0;) step();
      }
    }
    return std::move(graph_);
  }

  std::uint32_t ops_of_cases() const { return ops_of_cases_; }

 private:
  // Ops that do not fit are part of the game: nothing is recorded, and `otherwise` stands in.
  ValueId add(const Result<ValueId>& value, ValueId otherwise) {
    if (!value) return otherwise;
    values_.push_back(*value);
    return *value;
  }
  void add(const Result<ValueId>& value) { add(value, 0); }

  const Shape& shape_of(ValueId value) const { return graph_.values()[value].shape; }
  DType type_of(ValueId value) const { return graph_.values()[value].dtype; }

  bool is_number(ValueId value) const { return type_of(value) == DType::f32 || type_of(value) == DType::f16; }
  DType number() { return random_.one_in(5) ? DType::f16 : DType::f32; }
  ValueId half(ValueId x) { return add(record::cast(graph_, x, DType::f16), x); }

  ValueId any() {
    // Recent values make chains, old ones make fans.
    const auto count = static_cast<std::uint32_t>(values_.size());
    return values_[random_.one_in(2) ? random_.below(count) : count - 1 - random_.below(std::min(3u, count))];
  }

  Shape shape() {
    switch (random_.below(10)) {
      case 0:
      case 1: return Shape(resource_elements);
      case 2:
      case 3: return Shape(6, 8);
      case 4: return Shape(8);
      case 5: return Shape(6, 1);
      case 6: return Shape(1);
      case 7: return Shape(2, 3, 8);
      case 8: return Shape(random_.between(0, 100));
      default: return Shape(random_.between(0, 9), random_.between(0, 9));
    }
  }

  ValueId upload(const Shape& s, DType type = DType::f32) {
    if (type == DType::f32) return add(graph_.upload(std::vector<float>(s.count()), s), 0);
    if (type == DType::f16) return add(graph_.upload_f16(std::vector<std::uint16_t>(s.count()), s), 0);
    const ValueId whole = add(graph_.upload_i32(std::vector<std::int32_t>(s.count()), s), 0);
    return type == DType::i32 ? whole : add(record::cast(graph_, whole, type), whole);
  }

  ValueId import(ResourceId resource) {
    constexpr std::array<std::array<int, 2>, 3> shapes{{{48, 1}, {6, 8}, {8, 6}}};
    const auto& dims = random_.pick(shapes);
    values_.push_back(graph_.import(Shape(dims[0], dims[1]), resource, number()));
    return values_.back();
  }

  void source() {
    if (random_.one_in(2)) {
      upload(shape(), number());
    } else {
      const ResourceId resource = random_.below(resource_count);
      random_.one_in(3) ? import_slice(resource) : import(resource);
    }
  }

  // Everything so far now lies in resources, at places that overlap; also in those that are stored to.
  void execute_so_far() {
    for (std::uint32_t i = random_.between(0, 4); i-- > 0;) operation();
    std::vector<Graph::Residence> residences;
    for (std::size_t id = 0; id < graph_.values().size(); ++id) {
      if (graph_.values()[id].resource != record::no_resource || random_.one_in(4)) continue;
      residences.push_back(
          {static_cast<ValueId>(id), random_.below(resource_count + 1), std::uint64_t{16} * random_.below(8), true});
    }
    graph_.executed(residences);
    source();
  }

  void step() {
    switch (random_.below(16)) {
      case 0: return source();
      case 1:
      case 2: {
        const ResourceId into = random_.below(resource_count);
        return random_.one_in(2) ? store(any(), into) : store_slice(any(), into);
      }
      case 3: return graph_.keep(any());
      default: return operation();
    }
  }

  void store(ValueId x, ResourceId into) {
    const record::Value& value = graph_.values()[x];
    // Mostly to a resource of that very size; otherwise to the beginning of one.
    if (value.bytes() > resource_elements * sizeof(float)) return;
    if (value.shape.count() != resource_elements && !random_.one_in(3)) return;
    // A copy within a buffer has the same place at both ends: buffers are imported and stored as a whole.
    if (value.resource == into && value.offset != 0) return;
    // Buffers that are no whole vec4s have a size of their own.
    if (value.shape.count() % 4 != 0) {
      into = resource_count + 1 + static_cast<ResourceId>(value.shape.count()) + (value.half() ? 100u : 0u);
    }
    // A value of an earlier execution that was not kept cannot be stored.
    if (ops::store(graph_, x, into, value.shape, value.dtype)) return;
  }

  // The elements of a dim that a slice takes: most of them, or a few.
  Range range() {
    const std::int64_t begin = random_.below(3);
    const std::int64_t end = random_.one_in(2) ? Range::past_last : std::int64_t{random_.between(1, 9)};
    const std::int64_t step = random_.one_in(3) ? 2 : 1;
    return random_.one_in(5) ? Range{Range::past_last, begin - 1, -step} : Range{begin, end, step};
  }

  std::vector<Range> ranges(std::size_t rank) {
    std::vector<Range> all;
    for (std::size_t d = 0; d < rank; ++d) all.push_back(range());
    return all;
  }

  const Shape& shape_of_resource() {
    static const std::array<Shape, 4> shapes{Shape(48), Shape(6, 8), Shape(8, 6), Shape(2, 3, 8)};
    return random_.pick(shapes);
  }

  // x where it fits, or else what does.
  void store_slice(ValueId x, ResourceId into) {
    const Shape& whole = shape_of_resource();
    std::vector<Range> chosen = ranges(whole.rank());
    if (random_.one_in(4)) {  // all of it, in some order
      for (Range& range : chosen) range = random_.one_in(2) ? Range{} : Range::reversed();
    }
    const Shape slice = record::choose(whole, chosen, "store")->shape;
    const auto broadcast = record::broadcast(shape_of(x), slice);
    const bool fits = shape_of(x).count() == slice.count() || (broadcast && *broadcast == slice);
    if (!fits) x = random_.one_in(4) ? upload(Shape(1)) : of_shape(slice, DType::f32);
    // As in store(), where the slice is all there is.
    const record::Value& value = graph_.values()[x];
    if (value.resource == into && value.offset != 0 && slice.count() == whole.count()) return;
    if (ops::store_slice(graph_, x, into, whole, chosen, value.dtype)) return;
  }

  ValueId import_slice(ResourceId resource) {
    const Shape& whole = shape_of_resource();
    const ValueId all = graph_.import(whole, resource, number());
    return add(record::slice(graph_, all, ranges(whole.rank())), all);
  }

  ValueId unary(ValueId x) {
    constexpr std::array ops{ElementwiseOp::relu,  ElementwiseOp::neg,  ElementwiseOp::exp,   ElementwiseOp::copy,
                             ElementwiseOp::scale, ElementwiseOp::gelu, ElementwiseOp::clamp, ElementwiseOp::offset};
    if (is_number(x) && random_.one_in(8)) return half(x);
    if (!is_number(x)) {
      constexpr std::array i32{ElementwiseOp::neg, ElementwiseOp::abs, ElementwiseOp::i32_to_f32,
                               ElementwiseOp::i32_to_mask};
      constexpr std::array mask{ElementwiseOp::logical_not, ElementwiseOp::copy, ElementwiseOp::mask_to_f32,
                                ElementwiseOp::mask_to_i32};
      return add(record::elementwise(graph_, random_.pick(type_of(x) == DType::i32 ? i32 : mask), {&x, 1}), x);
    }
    const float p = static_cast<float>(random_.below(3));
    return add(record::elementwise(graph_, random_.pick(ops), {&x, 1}, p, p + 1), x);
  }

  ValueId binary(ValueId x, ValueId y) {
    constexpr std::array ops{ElementwiseOp::add, ElementwiseOp::sub, ElementwiseOp::mul, ElementwiseOp::max,
                             ElementwiseOp::div};
    if (!record_fits(x, y)) return x;
    const bool fit = type_of(x) == type_of(y) || (is_number(x) && is_number(y));
    const ValueId inputs[] = {x, fit ? y : add(record::cast(graph_, y, type_of(x)), y)};
    if (type_of(x) == DType::mask) return add(record::elementwise(graph_, ElementwiseOp::logical_xor, inputs), x);
    return add(record::elementwise(graph_, random_.pick(ops), inputs), x);
  }

  // A comparison and what is chosen by it.
  ValueId select(ValueId x, ValueId y) {
    constexpr std::array ops{ElementwiseOp::lt, ElementwiseOp::ge, ElementwiseOp::ne};
    if (!record_fits(x, y) || type_of(x) != type_of(y) || type_of(x) == DType::mask) return x;
    const ValueId pair[] = {x, y};
    ValueId mask = add(record::elementwise(graph_, random_.pick(ops), pair), x);
    if (mask == x) return x;
    if (random_.one_in(3)) mask = unary(mask);
    if (type_of(mask) != DType::mask) return mask;
    const ValueId all[] = {mask, random_.one_in(2) ? x : y, random_.one_in(2) ? y : like(x)};
    return add(record::elementwise(graph_, ElementwiseOp::where, all), x);
  }

  // x where some mask is true, something else elsewhere.
  ValueId masked(ValueId x) {
    const ValueId all[] = {upload(random_.one_in(2) ? Shape(1) : shape_of(x), DType::mask), x, like(x)};
    return add(record::elementwise(graph_, ElementwiseOp::where, all), x);
  }

  // Outer products of vectors grow fast.
  bool record_fits(ValueId x, ValueId y) const {
    return shape_of(x).count() * shape_of(y).count() <= most_elements * most_elements;
  }

  ValueId chain(ValueId x, std::uint32_t length) {
    for (std::uint32_t i = 0; i < length; ++i) x = unary(x);
    return x;
  }

  // Some of its elements, or all in another order, or more of them.
  ValueId view(ValueId x) {
    const Shape s = shape_of(x);
    switch (random_.below(3)) {
      case 0: return add(record::slice(graph_, x, ranges(s.rank())), x);
      case 1: {
        std::vector<std::int64_t> axes(s.rank());
        for (std::size_t d = 0; d < axes.size(); ++d) {
          axes[d] = static_cast<std::int64_t>(d);
          std::swap(axes[d], axes[random_.below(static_cast<std::uint32_t>(d + 1))]);
        }
        return add(record::permute(graph_, x, axes), x);
      }
      default: {
        if (s.rank() == Shape::max_rank || s.count() > most_elements / 2) return x;
        std::vector<std::uint64_t> dims{2};
        for (std::size_t d = 0; d < s.rank(); ++d) dims.push_back(s[d] == 1 && random_.one_in(2) ? 2 : s[d]);
        return add(record::expand(graph_, x, Shape::of(dims)), x);
      }
    }
  }

  // Of the same shape as x, from somewhere else.
  ValueId like(ValueId x) {
    for (std::uint32_t tries = 0; tries < 3; ++tries) {
      const ValueId y = any();
      if (y != x && shape_of(y) == shape_of(x) && type_of(y) == type_of(x)) return y;
    }
    return upload(shape_of(x), type_of(x));
  }

  // A row, a column or a scalar that broadcasts to x.
  ValueId smaller(ValueId x) {
    const Shape s = shape_of(x);
    const DType type = type_of(x);
    if (s.rank() < 2 || random_.one_in(4)) return upload(Shape(1), type);
    if (s.rank() == 2 && random_.one_in(2)) return upload(Shape(s[0], 1), type);
    return upload(Shape(s[s.rank() - 1]), type);
  }

  ValueId any_with_elements() {
    for (std::uint32_t tries = 0; tries < 4; ++tries) {
      const ValueId x = any();
      if (shape_of(x).count() != 0) return x;
    }
    return upload(Shape(6, 8));
  }

  // A random case of a random room, on values that are there where their shapes allow it.
  ValueId op_of_case(ValueId otherwise) {
    const cases::OpCase& c = random_.pick(random_.pick(small_cases()));
    std::vector<Tensor> operands;
    for (const cases::Operand& o : c.operands) {
      operands.push_back(OpAccess::tensor(batch_, prepared(of_shape(o.shape, o.type))));
    }
    const auto before = static_cast<ValueId>(graph_.values().size());
    const std::size_t nodes_before = graph_.nodes().size();
    const Tensor result = c.record(batch_, operands);
    // All of its results, and what it took to get there.
    for (ValueId id = before; id < graph_.values().size(); ++id) values_.push_back(id);
    if (graph_.nodes().size() == nodes_before) return otherwise;
    ++ops_of_cases_;
    return result.valid() ? values_.back() : otherwise;
  }

  // x, or what elementwise ops of its own make of it: a prologue, if the op takes one.
  ValueId prepared(ValueId x) {
    if (!is_number(x) || !random_.one_in(3)) return x;
    ValueId y = chain(x, random_.below(3));
    if (random_.one_in(2)) y = random_.one_in(2) ? binary(y, smaller(y)) : binary(smaller(y), y);
    if (random_.one_in(3)) y = binary(y, like(y));
    return shape_of(y) == shape_of(x) ? y : x;
  }

  ValueId of_shape(const Shape& s, DType type) {
    const auto fits = [&](ValueId x) {
      return shape_of(x) == s && (type_of(x) == type || (type == DType::f32 && is_number(x)));
    };
    std::vector<ValueId> all;
    std::copy_if(values_.begin(), values_.end(), std::back_inserter(all), fits);
    return all.empty() || random_.one_in(4) ? upload(s, type) : random_.pick(all);
  }

  void pattern() {
    const ValueId x = any_with_elements();
    switch (random_.below(24)) {
      case 22:
      case 23: return random_.one_in(2) ? store_joined() : joins();
      case 21: {  // results that make up parts of a buffer
        const ResourceId resource = random_.below(resource_count);
        for (std::uint32_t i = random_.between(2, 5); i-- > 0;) {
          store_piece(resource);
          if (random_.one_in(4)) chain(import(resource), random_.between(1, 2));
        }
        return;
      }
      case 20: return slices();
      case 18:
      case 19: {  // views between elementwise ops
        ValueId y = x;
        for (std::uint32_t i = random_.between(1, 4); i-- > 0;) {
          y = view(y);
          if (random_.one_in(8)) graph_.keep(y);
          if (random_.one_in(2))
            y = random_.one_in(2) ? unary(y) : binary(y, random_.one_in(2) ? view(like(y)) : smaller(y));
        }
        return;
      }
      case 0: {
        chain(x, random_.between(2, 5));
        return;
      }
      case 1: {
        chain(x, random_.between(9, 18));
        return;
      }
      case 2: {  // a diamond
        const ValueId top = unary(x);
        const ValueId left = chain(top, random_.between(0, 3));
        binary(left, chain(top, random_.between(0, 3)));
        return;
      }
      case 3: {  // two chains that meet
        const ValueId left = chain(x, random_.between(1, 4));
        const ValueId right = chain(like(x), random_.between(1, 4));
        const ValueId joined = binary(left, right);
        if (random_.one_in(3)) graph_.keep(left);
        if (random_.one_in(3)) binary(right, joined);
        return;
      }
      case 4: {  // many inputs
        ValueId sum = x;
        for (std::uint32_t i = random_.between(2, 7); i-- > 0;) sum = binary(sum, like(sum));
        return;
      }
      case 5:
      case 13: {
        ValueId y = x;
        for (std::uint32_t i = random_.between(1, 4); i-- > 0;) y = binary(unary(y), smaller(y));
        return;
      }
      case 6: {  // kept and used on the way
        ValueId y = x;
        for (std::uint32_t i = random_.between(2, 5); i-- > 0;) {
          y = unary(y);
          if (random_.one_in(2)) graph_.keep(y);
          if (random_.one_in(3)) add(ops::reduce(graph_, ReduceOp::sum, {&y, 1}));
        }
        return;
      }
      case 7:
      case 8:
      case 17: return layer();
      case 9: {  // a reduction and what follows
        ValueId y = add(ops::reduce(graph_, ReduceOp::sum, {&x, 1}), x);
        for (std::uint32_t i = random_.between(1, 6); i-- > 0;) y = random_.one_in(2) ? unary(y) : binary(y, like(y));
        return;
      }
      case 10: return update();
      case 14: {
        select(chain(x, random_.between(0, 2)), random_.one_in(2) ? like(x) : smaller(x));
        return;
      }
      case 15: {  // integers between floats
        ValueId y = add(record::cast(graph_, x, DType::i32), x);
        for (std::uint32_t i = random_.between(1, 4); i-- > 0;) y = random_.one_in(2) ? unary(y) : binary(y, like(y));
        chain(add(record::cast(graph_, y, DType::f32), y), random_.between(0, 2));
        return;
      }
      case 11:
      case 12: {  // an op of a case, between elementwise ops
        ValueId y = op_of_case(x);
        if (random_.one_in(6)) graph_.keep(y);
        for (std::uint32_t i = random_.between(0, 4); i-- > 0;) y = random_.one_in(2) ? unary(y) : binary(y, like(y));
        if (random_.one_in(3)) op_of_case(y);
        return;
      }
      default: {  // read, store, read again
        const ResourceId resource = random_.below(resource_count);
        const ValueId window = import(resource);
        if (random_.one_in(2)) unary(window);
        store(chain(random_.one_in(2) ? window : like(window), random_.between(0, 2)), resource);
        chain(random_.one_in(2) ? window : import(resource), random_.between(1, 3));
        if (random_.one_in(2)) store(chain(any(), 1), resource);
        return;
      }
    }
  }

  // Something of this shape that is computed; or given, or seen through a view.
  ValueId part(const Shape& s) {
    switch (random_.below(9)) {
      case 0: return of_shape(s, DType::f32);
      case 1: return upload(s);
      case 2: {  // of another shape
        const ValueId x = unary(of_shape(Shape(s.count()), DType::f32));
        return add(graph_.reshape("reshape", x, s), x);
      }
      case 3: {  // of something larger
        std::vector<std::uint64_t> dims;
        for (std::size_t d = 0; d < s.rank(); ++d) dims.push_back(s[d] + (d == 0 ? 1 : 0));
        const Range rows[] = {{1, Range::past_last}};
        return add(record::slice(graph_, of_shape(Shape::of(dims), DType::f32), rows), 0);
      }
      case 4:
      case 5: {
        if (s.rank() != 2) return unary(of_shape(s, DType::f32));
        const std::uint64_t k = random_.between(0, 4);
        const ValueId product = add(plan::matmul(graph_, upload(Shape(s[0], k)), upload(Shape(k, s[1])), {}), 0);
        return random_.one_in(2) ? product : binary(product, smaller(product));
      }
      default: {
        const ValueId x = chain(of_shape(s, DType::f32), random_.between(1, 2));
        return random_.one_in(3) ? binary(x, like(x)) : x;
      }
    }
  }

  ValueId join(std::vector<ValueId> parts, std::int64_t axis, DType type) {
    for (ValueId& x : parts) x = add(record::cast(graph_, x, type), x);
    std::vector<Tensor> tensors;
    for (ValueId x : parts) tensors.push_back(OpAccess::tensor(batch_, x));
    const auto before = static_cast<ValueId>(graph_.values().size());
    if (!batch_.concat(tensors, axis).valid() || graph_.values().size() == before) return parts[0];
    values_.push_back(before);
    return before;
  }

  // Tensors side by side, some of them used, read or stored besides, in others that are made so.
  void joins() {
    constexpr std::array<std::uint64_t, 5> widths{1, 3, 4, 16, 64};
    const std::uint64_t width = random_.pick(widths);
    const std::uint32_t most = width == 64 ? 1 : random_.one_in(4) ? 5 : 4;
    std::vector<ValueId> parts;
    const DType type = number();
    ValueId y = 0;
    for (std::uint32_t depth = random_.between(1, 3); depth-- > 0;) {
      for (std::uint32_t i = random_.one_in(8) ? 8 : random_.between(1, 3); i-- > 0;) {
        const std::uint64_t rows = random_.one_in(8)                 ? 0
                                   : width == 1 && random_.one_in(2) ? 4
                                                                     : random_.between(1, most);
        parts.push_back(!parts.empty() && random_.one_in(8) ? random_.pick(parts) : part(Shape(rows, width)));
        if (random_.one_in(10)) graph_.keep(parts.back());
        if (random_.one_in(8)) unary(parts.back());
      }
      std::uint64_t count = 0;
      for (ValueId x : parts) count += shape_of(x).count();
      if (count > most_elements) return;
      y = join(parts, random_.one_in(6) ? 1 : 0, type);
      if (random_.one_in(10)) graph_.keep(y);
      parts = {y};
      if (shape_of(y).rank() != 2 || shape_of(y)[1] != width) break;
    }
    switch (random_.below(5)) {
      case 0: return;
      case 1: return store(y, random_.below(resource_count));
      case 2: {
        const Shape flat(resource_elements);
        const std::uint64_t n = shape_of(y).count();
        if (n > resource_elements) return;
        const auto begin = static_cast<std::int64_t>(random_.below(4) * 4);
        const Range range[] = {{begin, begin + static_cast<std::int64_t>(n)}};
        if (ops::store_slice(graph_, y, random_.below(resource_count), flat, range, type_of(y))) return;
        return;
      }
      default: {
        chain(y, random_.between(1, 3));
        if (random_.one_in(3)) add(ops::reduce(graph_, ReduceOp::sum, {&y, 1}));
        return;
      }
    }
  }

  // Results that are joined in a buffer, or in a part of it.
  void store_joined() {
    std::vector<ValueId> parts;
    std::uint64_t n = 0;
    do {
      const std::uint64_t count = random_.one_in(8) ? random_.between(1, 20) : random_.one_in(2) ? 16 : 4;
      if (n + count > resource_elements) break;
      parts.push_back(part(Shape(count)));
      n += count;
    } while (!random_.one_in(4));
    const ValueId y = join(parts, 0, number());
    const ResourceId resource = random_.below(resource_count);
    const std::uint64_t begin = 16 * random_.below(static_cast<std::uint32_t>((resource_elements - n) / 16 + 1));
    const Range range[] = {{static_cast<std::int64_t>(begin), static_cast<std::int64_t>(begin + n)}};
    if (ops::store_slice(graph_, y, resource, Shape(resource_elements), range, type_of(y))) return;
    if (random_.one_in(3)) chain(import(resource), random_.between(1, 2));
  }

  // A piece of a buffer of whole vec4s, or nearly.
  void store_piece(ResourceId resource) {
    const std::uint64_t begin = random_.one_in(6) ? random_.below(8) : 4 * random_.below(6);
    const std::uint64_t n = random_.one_in(6) ? random_.between(1, 20) : 4 * random_.between(1, 6);
    if (begin + n > resource_elements) return;
    ValueId x = part(Shape(1, n));
    if (random_.one_in(8)) unary(x);
    if (random_.one_in(6)) {
      const ValueId window = import(resource);
      x = add(graph_.reshape("reshape", x, Shape(n)), x);
      if (n == resource_elements) x = binary(x, add(graph_.reshape("reshape", window, Shape(n)), x));
    }
    const Range range[] = {{static_cast<std::int64_t>(begin), static_cast<std::int64_t>(begin + n)}};
    if (ops::store_slice(graph_, x, resource, Shape(resource_elements), range, type_of(x))) return;
  }

  // Parts of one buffer that are read and written by turns.
  void slices() {
    const ResourceId resource = random_.below(resource_count);
    for (std::uint32_t i = random_.between(2, 6); i-- > 0;) {
      switch (random_.below(6)) {
        case 0: {
          import_slice(resource);
          break;
        }
        case 1: {
          chain(import_slice(resource), random_.between(1, 3));
          break;
        }
        case 2: store(chain(import(resource), random_.between(0, 1)), resource); break;
        case 3: store_slice(import(resource), resource); break;
        default: store_slice(random_.one_in(2) ? any() : unary(any()), resource); break;
      }
    }
    if (random_.one_in(2)) op_of_case(import(resource));
  }

  // matmul, bias, activation, residual.
  void layer() {
    const std::uint64_t m = random_.between(1, 6);
    const std::uint64_t k = random_.between(random_.one_in(8) ? 0 : 1, 12);
    const std::uint64_t n = random_.between(1, 8);
    MatmulOptions options;
    options.layout = random_.one_in(2) ? Layout::kn : Layout::nk;
    const ValueId a = upload(Shape(m, k));
    const ValueId b = upload(options.layout == Layout::nk ? Shape(n, k) : Shape(k, n));
    ValueId y = add(plan::matmul(graph_, random_.one_in(2) ? unary(a) : a, b, options), a);
    if (random_.one_in(6)) graph_.keep(y);
    const ValueId product = y;
    if (!random_.one_in(3)) y = binary(y, upload(Shape(n)));
    if (!random_.one_in(3)) y = unary(y);
    if (random_.one_in(4)) y = masked(y);
    if (random_.one_in(2)) y = binary(y, random_.one_in(4) ? product : like(y));
    chain(y, random_.between(0, 3));
  }

  // A buffer brought up to date in place: b = op(b, ...).
  void update() {
    const ResourceId resource = random_.below(resource_count);
    const ValueId window = import(resource);
    ValueId y = chain(window, random_.between(1, 3));
    if (random_.one_in(2)) y = binary(y, like(y));
    if (random_.one_in(3)) y = binary(y, smaller(y));
    if (random_.one_in(4)) unary(window);
    store(y, resource);
  }

  // Another shape of a value, in front of whatever comes next.
  ValueId reshaped(ValueId x) {
    const std::uint64_t count = shape_of(x).count();
    switch (random_.below(3)) {
      case 0: return add(graph_.reshape("reshape", x, Shape(count)), x);
      case 1: return add(graph_.reshape("reshape", x, Shape(1, count)), x);
      default: return count % 2 == 0 ? add(graph_.reshape("reshape", x, Shape(count / 2, 2)), x) : x;
    }
  }

  void operation() {
    const ValueId x = random_.one_in(5) ? reshaped(any()) : any();
    const ValueId y = any();
    switch (random_.below(11)) {
      case 0:
      case 1: {
        unary(x);
        return;
      }
      case 2:
      case 3:
      case 4:
      case 5: {
        binary(x, random_.one_in(6) ? x : y);
        return;
      }
      case 6: return add(record::fill(graph_, 1.0f, shape()));
      case 7: {
        const ValueId inputs[] = {x, y};
        if (random_.one_in(2)) return add(ops::reduce(graph_, ReduceOp::dot, inputs));
        constexpr std::array ops{ReduceOp::sum, ReduceOp::max, ReduceOp::min};
        return add(ops::reduce(graph_, random_.pick(ops), {&x, 1}));
      }
      case 8: {
        op_of_case(x);
        return;
      }
      default: return random_.one_in(3) ? call(x, y) : matmul(x, y);
    }
  }

  // Kernels of the user's own: one with two results, and one that updates its first operand in place.
  void call(ValueId x, ValueId y) {
    static const auto split = std::make_shared<const ops::UserKernel>(*spirv::reflect(split_spv), "split");
    static const auto update = std::make_shared<const ops::UserKernel>(*spirv::reflect(accumulate_spv), "update");
    ops::CallOptions options;
    options.groups = {random_.between(1, 3), 1, 1};
    const record::ValueType type{shape_of(x)};
    const ValueId inputs[] = {x, y};
    if (random_.one_in(2)) return add(ops::call(graph_, update, inputs, {&type, 1}, options));
    const record::ValueType types[] = {type, type};
    const auto first = ops::call(graph_, split, {inputs, 1}, types, options);
    add(first);
    if (first) values_.push_back(*first + 1);
  }

  void matmul(ValueId x, ValueId y) {
    MatmulOptions options;
    options.layout = random_.one_in(2) ? Layout::kn : Layout::nk;
    constexpr std::array kernels{MatmulKernel::automatic, MatmulKernel::automatic, MatmulKernel::naive};
    options.kernel = random_.pick(kernels);
    options.alpha = random_.one_in(2) ? 1.0f : 0.5f;
    const std::uint64_t a = shape_of(x).count();
    const std::uint64_t b = shape_of(y).count();
    if (a * b > most_elements * 12) return;
    const auto inferred = plan::matmul(graph_, x, y, options);
    if (inferred) return add(inferred);
    // Flat views: any m, k, n whose products are the element counts.
    const std::uint64_t k = random_.between(1, 12);
    add(plan::matmul(graph_, x, y, a / k, k, b / k, options));
  }

  Random& random_;
  Batch batch_;
  Graph& graph_;  // of batch_
  std::vector<ValueId> values_;
  std::uint32_t ops_of_cases_ = 0;
};

}  // namespace

plan::Traits random_traits(Random& random) {
  plan::Traits traits;
  constexpr std::array<std::uint32_t, 6> invocations{1, 2, 24, 64, 128, 1024};
  constexpr std::array<std::uint32_t, 5> shared{64, 1024, 4096, 16384, 49152};
  constexpr std::array<std::uint32_t, 3> alignments{16, 64, 256};
  constexpr std::array<std::uint64_t, 4> loops{2, 6, 60000, ~std::uint64_t{0}};
  traits.max_group_invocations = random.pick(invocations);
  traits.max_shared_bytes = random.pick(shared);
  traits.storage_alignment = random.pick(alignments);
  traits.max_loop_iterations = random.pick(loops);
  traits.subgroup_size = random.one_in(2) ? 4 : 32;
  traits.cpu = random.one_in(3);
  if (random.one_in(3)) traits.max_group_count = {random.between(2, 5), random.between(2, 5), 65535};
  return traits;
}

plan::PlanOptions random_options(Random& random) {
  plan::PlanOptions options;
  switch (random.below(4)) {
    case 0: options.keep_all = true; break;
    case 1: options.keep_marked_only = true; break;
    default: break;
  }
  switch (random.below(3)) {
    case 0: options.work_per_submit = 1; break;
    case 1: options.work_per_submit = random.between(2, 500); break;
    default: break;
  }
  options.fuse = !random.one_in(4);
  options.reuse_memory = !random.one_in(4);
  return options;
}

Graph random_graph(Random& random, std::uint64_t* ops_of_cases) {
  Recorder recorder(random);
  Graph graph = recorder.run();
  if (ops_of_cases != nullptr) *ops_of_cases += recorder.ops_of_cases();
  return graph;
}

std::uint32_t graph_count(std::uint32_t usual) {
  const char* soak = std::getenv("BRONTES_SOAK");
  return soak != nullptr && std::string_view(soak) == "1" ? 10 * usual : usual;
}

}  // namespace brontes::test
