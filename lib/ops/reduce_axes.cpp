// Reductions over any set of axes.
//
// Neighbouring axes that are reduced, or not, collapse, and extents of 1 vanish: what remains alternates between blocks
// that are reduced and blocks that stay. The reduced blocks are done one after the other, the innermost first. Such a
// block makes the operand x[outer, n, inner], which is reduced along n: row by row if inner is 1, else by columns.
// Where that gives too few lanes to fill a device, or too many additions in a chain, n is cut into parts, and another
// pass reduces what these give.
#include "ops/reduce_axes.hpp"

#include "ops/catalogue.hpp"
#include "plan/plan.hpp"
#include "reference/reference.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>
#include <string>

namespace brontes {
namespace ops {
namespace {

using plan::Dispatch;
using plan::Lowering;
using plan::Region;
using record::Field;
using record::Graph;
using record::ValueId;

// "0,2" for every set of axes.
constexpr auto axes_texts = [] {
  std::array<std::array<char, 2 * Axes::max_size>, 1u << Axes::max_size> texts{};
  for (std::size_t set = 0; set < texts.size(); ++set) {
    std::size_t at = 0;
    for (std::size_t axis = 0; axis < Axes::max_size; ++axis) {
      if ((set >> axis & 1u) == 0) continue;
      if (at != 0) texts[set][at++] = ',';
      texts[set][at++] = static_cast<char>('0' + axis);
    }
  }
  return texts;
}();

const char* axes_text(std::uint32_t set) { return axes_texts[set & 255u].data(); }

constexpr Field fields[] = {
    {"axes", Field::Type::word, Field::Text::named, offsetof(AxesAttributes, axes), axes_text},
    {.name = "keep_dims",
     .type = Field::Type::flag,
     .text = Field::Text::named,
     .offset = offsetof(AxesAttributes, keep_dims),
     .default_bits = 0,
     .json_default = false},
};

enum class Kind : std::uint8_t { sum, mean, prod, max, min, sum_of_squares, l1_norm, l2_norm, logsumexp };
constexpr const char* names[] = {"sum",     "mean",    "prod",     "max", "min", "sum_of_squares",
                                 "l1_norm", "l2_norm", "logsumexp"};

struct BadAxis {
  std::int32_t axis;
  const char* what;
};

// The axes as a set of bits, or what is wrong with them.
std::optional<BadAxis> set_axes(const Shape& shape, AxesAttributes& attributes) noexcept {
  const auto rank = static_cast<std::int32_t>(shape.rank());
  attributes.axes = 0;
  if (attributes.given_count == 0) attributes.axes = static_cast<std::uint8_t>((1u << rank) - 1);
  for (std::uint32_t i = 0; i < attributes.given_count; ++i) {
    const std::int32_t axis = attributes.given[i];
    if (axis < -rank || axis >= rank) return BadAxis{axis, "is out of range"};
    const auto bit = static_cast<std::uint8_t>(1u << (axis < 0 ? axis + rank : axis));
    if ((attributes.axes & bit) != 0) return BadAxis{axis, "is given twice"};
    attributes.axes = static_cast<std::uint8_t>(attributes.axes | bit);
  }
  return std::nullopt;
}

Shape without(const Shape& shape, const AxesAttributes& attributes) {
  std::array<std::uint64_t, Shape::max_rank> dims{};
  std::size_t rank = 0;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    const bool reduced = (attributes.axes >> i & 1u) != 0;
    if (!reduced) dims[rank++] = shape[i];
    if (reduced && attributes.keep_dims) dims[rank++] = 1;
  }
  if (rank == 0) return Shape(1);
  return Shape::of({dims.data(), rank});
}

template <Kind kind>
Error infer(const Graph& graph, Span<const ValueId> inputs, record::Attributes& raw,
            std::vector<record::ValueType>& out) {
  const char* op = names[static_cast<std::size_t>(kind)];
  const Shape& shape = graph.value(inputs[0]).shape;
  auto attributes = raw.as<AxesAttributes>();
  if (const auto bad = set_axes(shape, attributes)) {
    return Error(Errc::invalid_argument, std::string(op) + ": axis " + std::to_string(bad->axis) + " " + bad->what +
                                             " for a tensor of " + to_string(shape));
  }
  const Shape result = without(shape, attributes);
  if ((kind == Kind::max || kind == Kind::min) && shape.count() == 0 && result.count() != 0) {
    return Error(Errc::empty_input, std::string(op) + ": axes " + axes_text(attributes.axes) + " of " +
                                        to_string(shape) + " have no elements, so there is no " + op);
  }
  raw = attributes;
  out.push_back({result});
  return {};
}

/// x[outer, n, inner], to be reduced along n.
struct Block {
  std::uint64_t outer = 1;
  std::uint64_t n = 1;
  std::uint64_t inner = 1;
};

/// The blocks, in the order they are reduced: each is what the one before left.
std::vector<Block> blocks_of(const Shape& shape, std::uint8_t axes) {
  struct Extent {
    std::uint64_t count;
    bool reduced;
  };
  std::vector<Extent> extents;
  std::uint64_t kept = 1;
  std::uint64_t all = 1;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    const bool reduced = (axes >> i & 1u) != 0;
    if (!reduced) kept *= shape[i];
    all *= shape[i];
    if (shape[i] == 1) continue;
    if (!extents.empty() && extents.back().reduced == reduced) {
      extents.back().count *= shape[i];
    } else {
      extents.push_back({shape[i], reduced});
    }
  }
  if (all == 0) return {{1, 0, kept}};
  std::vector<Block> blocks;
  std::uint64_t inner = 1;
  std::uint64_t left = all;
  for (std::size_t i = extents.size(); i-- > 0;) {
    if (!extents[i].reduced) {
      inner *= extents[i].count;
      continue;
    }
    left /= extents[i].count;
    blocks.push_back({left / inner, extents[i].count, inner});
  }
  // Every element is a result of its own.
  if (blocks.empty()) blocks.push_back({1, 1, all});
  return blocks;
}

struct Pass {
  AxesCombine combine = AxesCombine::sum;
  AxesMap map = AxesMap::none;
  AxesFinish finish = AxesFinish::none;
  float divisor = 1;
  Region x, shift, out;
  Block block;
  std::uint64_t parts = 1;
  bool epilogue = false;
  bool first = false;  // x is the operand, not what an earlier pass left

  bool reads_shift() const { return map == AxesMap::exp || finish == AxesFinish::log; }
};

template <class Kernel, class Params>
void set_common(const Lowering& to, std::uint32_t group, Dispatch& dispatch, const Pass& pass, Params& params,
                Kernel in0, Kernel in1, Kernel out0) {
  params.divisor = pass.divisor;
  if (pass.epilogue) set_epilogue(to, group, dispatch, params.epilogue);
  if (pass.block.n != 0 && pass.first) bind_operand(to, group, dispatch, params.prologue);
  if (pass.block.n != 0 && !pass.first) dispatch.bind(in0, pass.x);
  if (pass.reads_shift()) dispatch.bind(in1, pass.shift);
  dispatch.bind(out0, pass.out);
  dispatch.work = pass.block.outer * pass.block.n * pass.block.inner;
}

struct RowsCut {
  std::uint32_t group_size;
  std::uint32_t lanes;  // that share a part
  std::uint64_t chunk;
};

RowsCut cut_rows(const Block& block, bool exp, const plan::Traits& traits) {
  RowsCut cut{};
  // On CPU drivers loads cost the same wherever lanes read, and lanes meet only at great cost: each has a part to
  // itself.
  cut.group_size = std::bit_floor(std::min(traits.cpu ? 64u : 256u, traits.max_group_invocations));
  cut.lanes = 1;
  if (!traits.cpu) {
    const std::uint32_t most = std::bit_floor(std::min(cut.group_size, std::max(1u, traits.max_shared_bytes / 4)));
    cut.lanes = static_cast<std::uint32_t>(std::bit_ceil(std::clamp<std::uint64_t>((block.n + 15) / 16, 1, most)));
    if (cut.lanes > 1) cut.group_size = std::min(cut.group_size, most);
  }
  while (cut.lanes > 1 && rows_iterations(16 * cut.lanes, cut.lanes, exp) > traits.max_loop_iterations) cut.lanes /= 2;

  // Enough parts to fill the device, as long as they are worth a pass more.
  const std::uint64_t units = traits.cpu ? 1024 : std::uint64_t{1024} * cut.group_size / cut.lanes;
  const std::uint64_t least = std::uint64_t{traits.cpu ? 1024u : 16u} * cut.lanes;
  const std::uint64_t most = std::uint64_t{exp ? rows_most_chunk / 2 : rows_most_chunk} * cut.lanes;
  const std::uint64_t wanted = (block.n * block.outer + units - 1) / units;
  cut.chunk = std::clamp((wanted + 3) / 4 * 4, least, most);
  while (cut.chunk > std::uint64_t{16} * cut.lanes &&
         rows_iterations(static_cast<std::uint32_t>(cut.chunk), cut.lanes, exp) > traits.max_loop_iterations) {
    cut.chunk = cut.chunk / 8 * 4;
  }
  return cut;
}

Error emit_rows(Lowering& to, std::uint32_t group, const Pass& pass, const RowsCut& cut) {
  namespace kernel = kernels::reduce_rows;
  Dispatch dispatch(kernels::Id::reduce_rows, group);
  kernel::Params params{};
  params.n = static_cast<std::uint32_t>(pass.block.n);
  params.chunk = static_cast<std::uint32_t>(cut.chunk);
  params.parts = static_cast<std::uint32_t>(pass.parts);
  params.units = static_cast<std::uint32_t>(pass.block.outer * pass.parts);
  params.groups = plan::ceil_div(params.units, cut.group_size / cut.lanes);
  set_common(to, group, dispatch, pass, params, kernel::in0, kernel::in1, kernel::out0);
  dispatch.params(params);
  dispatch.set(kernel::group_size, cut.group_size);
  dispatch.set(kernel::combine, static_cast<std::uint32_t>(pass.combine));
  dispatch.set(kernel::map, static_cast<std::uint32_t>(pass.map));
  dispatch.set(kernel::finish, static_cast<std::uint32_t>(pass.finish));
  dispatch.set(kernel::lanes, cut.lanes);
  dispatch.set(kernel::ragged, pass.block.n % 4 != 0 ? 1 : 0);
  return to.emit(dispatch, params.groups);
}

// Whether `parts` make rows and matrices of whole vec4s.
bool whole_vectors(const Block& block, std::uint64_t parts) {
  return parts * block.inner % 4 == 0 && (block.outer == 1 || block.n * block.inner % 4 == 0);
}

std::uint64_t columns_parts(const Block& block, const plan::Traits& traits) {
  std::uint32_t most_rows = columns_most_rows;
  while (most_rows > 16 && columns_iterations(most_rows) > traits.max_loop_iterations) most_rows /= 2;
  std::uint64_t parts = (block.n + most_rows - 1) / most_rows;
  const std::uint64_t lanes = std::max<std::uint64_t>(1, block.outer * block.inner / 4);
  const std::uint64_t enough = traits.cpu ? 2048 : 65536;
  parts = std::max(parts, std::min((enough + lanes - 1) / lanes, block.n / 16));
  parts = std::max<std::uint64_t>(parts, 1);
  // Several rows together may be whole vec4s where one is not. That is worth a pass if there is much to read.
  const std::uint64_t together = 4 / std::gcd<std::uint64_t>(4, block.inner);
  const bool large = block.outer * block.n * block.inner >= (1u << 16);
  if (together > 1 && whole_vectors(block, together) && block.n >= 16 * together && (parts > 1 || large)) {
    parts = (parts + together - 1) / together * together;
  }
  return parts;
}

Error emit_columns(Lowering& to, std::uint32_t group, const Pass& pass) {
  namespace kernel = kernels::reduce_columns;
  Dispatch dispatch(kernels::Id::reduce_columns, group);
  const std::uint32_t columns = whole_vectors(pass.block, pass.parts) ? 4 : 1;
  const std::uint32_t group_size = std::min(to.traits.cpu ? 64u : 256u, to.traits.max_group_invocations);
  const std::uint64_t width = pass.parts * pass.block.inner;
  kernel::Params params{};
  params.slab = static_cast<std::uint32_t>(pass.block.n * pass.block.inner);
  params.inner = static_cast<std::uint32_t>(pass.block.inner);
  params.width = static_cast<std::uint32_t>(width);
  // Where lanes fill whole cache lines of a row, parts of neighbouring rows are easier on a CPU's caches.
  const bool stacked = to.traits.cpu && pass.parts > 1 && pass.block.inner % columns == 0 &&
                       pass.block.inner >= std::uint64_t{columns} * to.traits.subgroup_size;
  const std::uint64_t rows = stacked ? (pass.block.n + pass.parts - 1) / pass.parts : 0;
  params.full = static_cast<std::uint32_t>(stacked ? rows * pass.block.inner : pass.block.n / pass.parts * width);
  params.units = static_cast<std::uint32_t>(pass.block.outer * width / columns);
  set_common(to, group, dispatch, pass, params, kernel::in0, kernel::in1, kernel::out0);
  dispatch.params(params);
  dispatch.set(kernel::group_size, group_size);
  dispatch.set(kernel::combine, static_cast<std::uint32_t>(pass.combine));
  dispatch.set(kernel::map, static_cast<std::uint32_t>(pass.map));
  dispatch.set(kernel::finish, static_cast<std::uint32_t>(pass.finish));
  dispatch.set(kernel::columns, columns);
  dispatch.set(kernel::stacked, stacked ? 1 : 0);
  return to.emit(dispatch, plan::ceil_div(params.units, group_size));
}

// Reduces one block to pass.out, in as many passes as it takes.
Error reduce(Lowering& to, std::uint32_t group, Pass pass) {
  const Region out = pass.out;
  const AxesFinish finish = pass.finish;
  const bool epilogue = pass.epilogue;
  for (;;) {
    const bool rows = pass.block.inner == 1;
    RowsCut cut{};
    if (rows) {
      cut = cut_rows(pass.block, pass.map == AxesMap::exp, to.traits);
      pass.parts = std::max<std::uint64_t>(1, (pass.block.n + cut.chunk - 1) / cut.chunk);
    } else {
      pass.parts = columns_parts(pass.block, to.traits);
    }
    const bool last = pass.parts == 1;
    pass.finish = last ? finish : AxesFinish::none;
    pass.epilogue = last && epilogue;
    pass.out = last ? out : to.arena.reserve(pass.block.outer * pass.parts * pass.block.inner * sizeof(float));
    if (Error e = rows ? emit_rows(to, group, pass, cut) : emit_columns(to, group, pass)) return e;
    if (last) return {};
    pass.x = pass.out;
    pass.first = false;
    pass.map = AxesMap::none;
    pass.block.n = pass.parts;
  }
}

template <Kind kind>
Error lower(Lowering& to, std::uint32_t index) {
  const record::Node& node = to.root(index);
  const ValueId x = to.graph.inputs(node)[0];
  const Shape& shape = to.graph.value(x).shape;
  const std::uint64_t results = to.graph.value(node.output).shape.count();
  if (results == 0) return {};
  const std::vector<Block> blocks = blocks_of(shape, node.attributes.as<AxesAttributes>().axes);

  Region from = to.region(x);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const bool first = i == 0;
    const bool last = i + 1 == blocks.size();
    const Block& block = blocks[i];
    Pass pass;
    pass.block = block;
    pass.x = from;
    pass.first = first;
    pass.epilogue = last;
    pass.out = last ? to.result(index) : to.arena.reserve(block.outer * block.inner * sizeof(float));
    if (kind == Kind::max) pass.combine = AxesCombine::max;
    if (kind == Kind::min) pass.combine = AxesCombine::min;
    if (kind == Kind::prod) pass.combine = AxesCombine::product;
    if (first && (kind == Kind::sum_of_squares || kind == Kind::l2_norm)) pass.map = AxesMap::square;
    if (first && kind == Kind::l1_norm) pass.map = AxesMap::magnitude;
    if (last && kind == Kind::l2_norm) pass.finish = AxesFinish::sqrt;
    if (last && kind == Kind::mean) {
      pass.finish = AxesFinish::divide;
      const std::uint64_t reduced = shape.count() / results;
      pass.divisor = static_cast<float>(reduced);
    }
    if (kind == Kind::logsumexp) {
      // The largest element is taken off before exp and added again at the end, block by block.
      Pass largest;
      largest.combine = AxesCombine::max;
      largest.block = block;
      largest.x = from;
      largest.first = first;
      largest.out = pass.shift = to.arena.reserve(block.outer * block.inner * sizeof(float));
      if (Error e = reduce(to, index, largest)) return e;
      pass.map = AxesMap::exp;
      pass.finish = AxesFinish::log;
    }
    if (Error e = reduce(to, index, pass)) return e;
    from = pass.out;
  }
  return {};
}

template <Kind kind>
reference::Expected expected(const Graph& graph, const record::Node& node, Span<const reference::Values> inputs) {
  return reference::reduce_axes(names[static_cast<std::size_t>(kind)], inputs[0],
                                graph.value(graph.inputs(node)[0]).shape, node.attributes.as<AxesAttributes>().axes);
}

template <Kind kind>
constexpr record::Op entry() {
  return {.name = names[static_cast<std::size_t>(kind)],
          .fields = fields,
          .infer = infer<kind>,
          .lower = lower<kind>,
          .takes_epilogue = [](const record::Node&) { return true; },
          .takes_prologue = true,
          .reference = expected<kind>};
}
constexpr std::array ops = {entry<Kind::sum>(),     entry<Kind::mean>(),    entry<Kind::prod>(),
                            entry<Kind::max>(),     entry<Kind::min>(),     entry<Kind::sum_of_squares>(),
                            entry<Kind::l1_norm>(), entry<Kind::l2_norm>(), entry<Kind::logsumexp>()};

// All elements to one: these have an op of their own, for all shapes alike.
bool is_whole(const Tensor& x, const AxesAttributes& attributes) {
  AxesAttributes normal = attributes;
  if (attributes.keep_dims || set_axes(x.shape(), normal)) return false;
  return normal.axes == (1u << x.shape().rank()) - 1;
}

Tensor record(Batch& batch, Kind kind, const Tensor& x, const AxesAttributes& attributes) {
  return OpAccess::record(batch, ops[static_cast<std::size_t>(kind)], {x}, attributes);
}

}  // namespace

const Room reduce_axes_room = ops;

AxesAttributes axes_attributes(const Axes& axes, bool keep_dims) {
  AxesAttributes attributes;
  attributes.keep_dims = keep_dims;
  attributes.given_count = static_cast<std::uint32_t>(std::min(axes.size(), Axes::max_size));
  for (std::size_t i = 0; i < attributes.given_count; ++i) {
    attributes.given[i] = static_cast<std::int32_t>(std::clamp<std::int64_t>(
        axes[i], std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()));
  }
  // No tensor has that many dims: one of them is given twice.
  if (axes.size() > Axes::max_size) attributes.given[1] = attributes.given[0];
  return attributes;
}

Result<record::ValueId> sum_rows(record::Graph& graph, record::ValueId x) {
  return graph.apply(ops[static_cast<std::size_t>(Kind::sum)], {&x, 1}, axes_attributes({-1}));
}

}  // namespace ops

#define BRONTES_REDUCE(op)                                                              \
  Tensor Batch::op(Tensor x, Axes axes, bool keep_dims) {                               \
    return ops::record(*this, ops::Kind::op, x, ops::axes_attributes(axes, keep_dims)); \
  }
BRONTES_REDUCE(mean)
BRONTES_REDUCE(prod)
BRONTES_REDUCE(sum_of_squares)
BRONTES_REDUCE(l1_norm)
BRONTES_REDUCE(l2_norm)
BRONTES_REDUCE(logsumexp)
#undef BRONTES_REDUCE

#define BRONTES_REDUCE(op)                                                                          \
  Tensor Batch::op(Tensor x, Axes axes, bool keep_dims) {                                           \
    const ops::AxesAttributes attributes = ops::axes_attributes(axes, keep_dims);                   \
    return ops::is_whole(x, attributes) ? op(x) : ops::record(*this, ops::Kind::op, x, attributes); \
  }
BRONTES_REDUCE(sum)
BRONTES_REDUCE(max)
BRONTES_REDUCE(min)
#undef BRONTES_REDUCE

}  // namespace brontes
