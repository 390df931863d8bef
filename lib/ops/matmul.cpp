// Products as dispatches: the selection's kernel, once for every chunk of k, each time with a combining
// dispatch if it has slices. All matrices of a batch share each of these.
#include "ops/matmul.hpp"

#include "ops/catalogue.hpp"
#include "ops/matmul_tuning.hpp"
#include "plan/plan.hpp"
#include "record/shape.hpp"
#include "record/view.hpp"
#include "reference/reference.hpp"
#include "weights/device_layout.hpp"

#include <algorithm>
#include <bit>

namespace brontes::plan {
namespace {

// Every matmul kernel calls its operands alike.
using kernels::matmul_naive::Binding;
#define BRONTES_SAME(other)                                                                     \
  static_assert(kernels::other::a + 0u == Binding::a && kernels::other::b + 0u == Binding::b && \
                kernels::other::c + 0u == Binding::c)
BRONTES_SAME(matmul_gemv);
BRONTES_SAME(matmul_gemv_subgroup);
BRONTES_SAME(matmul_panel);
BRONTES_SAME(matmul_subgroup_kn);
BRONTES_SAME(matmul_subgroup_nk);
BRONTES_SAME(matmul_tiled);
BRONTES_SAME(matmul_coopmat);
#undef BRONTES_SAME

#define BRONTES_SAME(name) static_assert(kernels::matmul_gemv::name + 0u == kernels::matmul_gemv_subgroup::name)
BRONTES_SAME(group_size);
BRONTES_SAME(b_layout);
BRONTES_SAME(vectorized);
BRONTES_SAME(rows);
BRONTES_SAME(columns);
BRONTES_SAME(teams);
BRONTES_SAME(b_type);
BRONTES_SAME(half_denormals);
#undef BRONTES_SAME

// Elements or scales of weights of this type are f16.
bool has_halves(DType type) { return type == DType::f16 || type == DType::q8_0 || type == DType::q4_0; }

// The kernel of a selection with its specialization constants.
Dispatch specialized(const MatmulSelection& s, Layout layout, DType type, const Traits& traits, std::uint32_t group) {
  const auto b_layout = static_cast<std::uint32_t>(kernel_layout(layout));
  // Only where it makes a difference, for the sake of fewer pipelines.
  const std::uint32_t half_denormals = has_halves(type) && traits.half_denormals ? 1 : 0;
  switch (s.kernel) {
    case MatmulKernel::gemv: {
      namespace kernel = kernels::matmul_gemv;
      Dispatch d(s.gemv.subgroups ? kernels::Id::matmul_gemv_subgroup : kernels::Id::matmul_gemv, group);
      d.set(kernel::group_size, s.gemv.group_size);
      d.set(kernel::b_layout, b_layout);
      d.set(kernel::vectorized, s.vectorized);
      d.set(kernel::rows, s.gemv.rows);
      d.set(kernel::columns, s.gemv.columns);
      d.set(kernel::teams, s.gemv.teams);
      d.set(kernel::b_type, static_cast<std::uint32_t>(type));
      d.set(kernel::half_denormals, half_denormals);
      return d;
    }
    case MatmulKernel::tiled: {
      namespace kernel = kernels::matmul_tiled;
      Dispatch d(kernels::Id::matmul_tiled, group);
      d.set(kernel::group_size, s.tiles.group_size());
      d.set(kernel::b_layout, b_layout);
      d.set(kernel::vectorized, s.vectorized);
      d.set(kernel::tile_m, s.tiles.tile_m);
      d.set(kernel::tile_n, s.tiles.tile_n);
      d.set(kernel::micro_m, s.tiles.micro_m);
      d.set(kernel::micro_n, s.tiles.micro_n);
      d.set(kernel::b_type, static_cast<std::uint32_t>(type));
      d.set(kernel::half_denormals, half_denormals);
      return d;
    }
    case MatmulKernel::subgroup: {
      if (layout == Layout::nk) {
        namespace kernel = kernels::matmul_subgroup_nk;
        Dispatch d(kernels::Id::matmul_subgroup_nk, group);
        d.family = Family::products;
        d.set(kernel::group_size, s.subgroup.group_size);
        d.set(kernel::vectorized, s.vectorized);
        d.set(kernel::rows, s.subgroup.rows);
        d.set(kernel::columns, s.subgroup.columns);
        d.set(kernel::tiles, s.subgroup.tiles);
        d.set(kernel::subgroup_lanes, s.subgroup.lanes);
        d.set(kernel::b_type, static_cast<std::uint32_t>(type));
        d.set(kernel::half_denormals, half_denormals);
        return d;
      }
      namespace kernel = kernels::matmul_subgroup_kn;
      Dispatch d(kernels::Id::matmul_subgroup_kn, group);
      d.family = Family::panels;
      d.set(kernel::group_size, s.subgroup.group_size);
      d.set(kernel::vectorized, s.vectorized);
      d.set(kernel::rows, s.subgroup.rows);
      d.set(kernel::vectors, s.subgroup.columns);
      d.set(kernel::width, s.subgroup.width);
      d.set(kernel::sources, s.subgroup.sources);
      d.set(kernel::tiles, s.subgroup.tiles);
      d.set(kernel::subgroup_lanes, s.subgroup.lanes);
      return d;
    }
    case MatmulKernel::panel: {
      namespace kernel = kernels::matmul_panel;
      Dispatch d(kernels::Id::matmul_panel, group);
      d.family = Family::panels;
      d.set(kernel::group_size, s.subgroup.group_size);
      d.set(kernel::rows, s.subgroup.rows);
      d.set(kernel::columns, s.subgroup.columns);
      d.set(kernel::width, s.subgroup.width);
      d.set(kernel::sources, s.subgroup.sources);
      d.set(kernel::tiles, s.subgroup.tiles);
      d.set(kernel::subgroup_lanes, s.subgroup.lanes);
      d.set(kernel::a_packed, s.subgroup.a_packed ? 1 : 0);
      d.set(kernel::b_packed, s.subgroup.b_packed ? 1 : 0);
      d.set(kernel::steps, s.subgroup.steps);
      // All it looks at, for the sake of fewer pipelines.
      d.set(kernel::vectorized, s.subgroup.a_packed && s.subgroup.b_packed ? 1 : s.vectorized & 1);
      return d;
    }
    case MatmulKernel::coopmat: {
      namespace kernel = kernels::matmul_coopmat;
      Dispatch d(kernels::Id::matmul_coopmat, group);
      d.set(kernel::group_size, s.coopmat.group_size());
      d.set(kernel::b_layout, b_layout);
      d.set(kernel::vectorized, s.vectorized);
      d.set(kernel::matrix_m, s.coopmat.matrix_m);
      d.set(kernel::matrix_n, s.coopmat.matrix_n);
      d.set(kernel::matrix_k, s.coopmat.matrix_k);
      d.set(kernel::subgroups_m, s.coopmat.subgroups_m);
      d.set(kernel::subgroups_n, s.coopmat.subgroups_n);
      d.set(kernel::matrices_m, s.coopmat.matrices_m);
      d.set(kernel::matrices_n, s.coopmat.matrices_n);
      d.set(kernel::subgroup_lanes, s.coopmat.lanes);
      d.set(kernel::b_type, static_cast<std::uint32_t>(type));
      d.set(kernel::half_denormals, half_denormals);
      return d;
    }
    case MatmulKernel::naive:
    case MatmulKernel::automatic: break;
  }
  namespace kernel = kernels::matmul_naive;
  Dispatch d(kernels::Id::matmul_naive, group);
  d.set(kernel::group_x, s.group_x);
  d.set(kernel::group_y, s.group_y);
  d.set(kernel::b_layout, b_layout);
  d.set(kernel::b_type, static_cast<std::uint32_t>(type));
  d.set(kernel::half_denormals, half_denormals);
  return d;
}

// A part of the rows of W, or all of B.
struct Part {
  Region region;
  std::uint64_t begin, count;  // of the columns of C
};

Part part_of(const Lowering& to, record::ValueId b, const MatmulAttributes& op, std::uint64_t index) {
  const record::Value& value = to.graph.values()[b];
  if (!value.weight) return {to.region(b), 0, op.n};
  const std::uint64_t begin = index * value.part_rows;
  const std::uint64_t count = std::min(value.part_rows, op.n - begin);
  const std::uint64_t bytes = weights::device_layout(value.dtype, count, op.k).total_bytes;
  return {{static_cast<record::ResourceId>(value.resource + index), 0, bytes}, begin, count};
}

// An operand for the panel kernel: matrices of `count` rows of k, or columns of B[k,n].
struct Operand {
  Region region;
  Layout layout;
  DType type;
  std::uint64_t matrices, count, k;
};

// Lays it out in bands of `height`, in memory of its own.
Error lower_pack(Lowering& to, std::uint32_t group, const Operand& operand, std::uint32_t height, Region& packed) {
  namespace kernel = kernels::matmul_pack;
  const MatmulLayout layout = kernel_layout(operand.layout);
  packed =
      to.arena.reserve(operand.matrices * matmul_packed_elements(operand.count, operand.k, height) * sizeof(float));
  const auto count = static_cast<std::uint32_t>(operand.count);
  const kernels::MatmulPackParams params{static_cast<std::uint32_t>(operand.k), count,
                                         static_cast<std::uint32_t>(operand.matrices)};
  Dispatch dispatch(kernels::Id::matmul_pack, group);
  dispatch.family = Family::products;
  dispatch.set(kernel::group_size, matmul_pack_group_size(to.traits));
  dispatch.set(kernel::b_layout, static_cast<std::uint32_t>(layout));
  dispatch.set(kernel::vectorized, matmul_vectorized(params.k, count));
  dispatch.set(kernel::height, height);
  dispatch.set(kernel::b_type, static_cast<std::uint32_t>(operand.type));
  dispatch.set(kernel::half_denormals, has_halves(operand.type) && to.traits.half_denormals ? 1 : 0);
  dispatch.set(kernel::batched, operand.matrices > 1 ? 1 : 0);
  dispatch.bind(kernel::b, operand.region);
  dispatch.bind(kernel::c, packed);
  dispatch.work = operand.matrices * operand.count * operand.k;
  dispatch.late = true;
  dispatch.params(params);
  return to.emit(dispatch, matmul_pack_groups(to.traits, layout, operand.matrices, operand.count, operand.k, height));
}

// Adds up the slices of the part's columns, which lie in `partials`.
Error lower_combine(Lowering& to, std::uint32_t group, const Part& part, const Region& partials, const Region& c,
                    kernels::MatmulCombineParams params, bool accumulate, bool last) {
  namespace kernel = kernels::matmul_combine;
  const bool four = (params.n | params.n_begin | params.n_count) % 4 == 0;
  const std::uint32_t group_size = std::min(64u, to.traits.max_group_invocations);
  const std::uint64_t elements = std::uint64_t{params.m} * params.n_count / (four ? 4 : 1);
  params.groups = static_cast<std::uint32_t>((elements + group_size - 1) / group_size);
  Dispatch dispatch(kernels::Id::matmul_combine, group);
  dispatch.set(kernel::group_size, group_size);
  dispatch.set(kernel::vectorized, four ? 1 : 0);
  dispatch.bind(kernel::partials, partials);
  dispatch.bind(kernel::c, c);
  dispatch.set(kernel::accumulate, accumulate ? 1 : 0);
  dispatch.overwrites(kernel::c, !accumulate && part.begin == 0);
  if (last) set_epilogue(to, group, dispatch, params.epilogue);
  dispatch.work = std::uint64_t{params.m} * params.n_count * params.slices;
  dispatch.params(params);
  return to.emit(dispatch, params.groups);
}

// A laid out for panels, once a part has needed it, for as long as the next ones want bands of as many rows.
struct PackedRows {
  Region region;
  std::uint32_t height = 0;
};

// The columns of C that one part of B gives.
Error lower_part(Lowering& to, std::uint32_t group, const Part& part, const Region& c, PackedRows& packed) {
  const auto op = to.root(group).attributes.as<MatmulAttributes>();
  const Span<const record::ValueId> inputs = to.graph.inputs(to.root(group));
  // Only weights have storage types to decode; f16 tensors are f32 once they are loaded.
  const record::Value& right = to.graph.value(inputs[1]);
  const DType type = right.weight ? right.dtype : DType::f32;
  MatmulProblem problem{op.m, op.k, part.count, op.layout, type, to.options.batch_invariant};
  problem.set(op.batch);
  problem.f16_inputs = op.precision == Precision::f16;
  auto selected = select_matmul(problem, to.traits, {op.kernel, op.variant});
  if (!selected) return selected.error();
  if (selected->tuned != nullptr && selected->tuned->choice.kernel != MatmulKernel::automatic) {
    to.tuned.push_back(selected->tuned);
  }

  const bool sliced = selected->slices > 1;
  const std::uint64_t rows = op.batch.count * op.m;  // of C
  // What several dispatches add up is f32 as long as they do; C may be f16.
  const bool apart = c.half && selected->k_chunk < op.k;
  const Region sums = apart ? to.arena.reserve(rows * part.count * sizeof(float)) : c;
  const Part into = apart ? Part{part.region, 0, part.count} : part;
  const std::uint64_t into_n = apart ? part.count : op.n;
  // Four neighbours of C are a vec4 only where those of the part's first row are.
  if ((into_n | into.begin) % 4 != 0 && !sliced) selected->vectorized &= ~2u;
  const Region partials = sliced ? to.arena.reserve(rows * part.count * selected->slices * sizeof(float)) : Region{};
  Dispatch dispatch = specialized(*selected, op.layout, type, to.traits, group);
  Region a = to.region(inputs[0]);
  Region b = part.region;
  if (selected->subgroup.a_packed) {
    const std::uint32_t height = selected->subgroup.rows;
    if (packed.height != height) {
      packed.height = height;
      const Operand operand{a, Layout::nk, DType::f32, problem.a_matrices, op.m, op.k};
      if (Error e = lower_pack(to, group, operand, height, packed.region)) return e;
    }
    a = packed.region;
  }
  if (selected->subgroup.b_packed) {
    const Operand operand{b, op.layout, type, problem.b_matrices, part.count, op.k};
    if (Error e = lower_pack(to, group, operand, selected->subgroup.width, b)) return e;
  }
  dispatch.bind(Binding::a, a);
  dispatch.bind(Binding::b, b);

  kernels::MatmulParams params{};
  params.m = static_cast<std::uint32_t>(op.m);
  params.k = static_cast<std::uint32_t>(op.k);
  params.n = static_cast<std::uint32_t>(sliced ? part.count : into_n);
  params.n_begin = static_cast<std::uint32_t>(sliced ? 0 : into.begin);
  params.n_count = static_cast<std::uint32_t>(part.count);
  params.k_slice = static_cast<std::uint32_t>(selected->k_slice);
  params.batch = op.batch.count;
  std::copy(op.batch.blocks.begin(), op.batch.blocks.end(), params.blocks);
  dispatch.set(kernels::matmul_naive::batched, op.batch.pattern);
  kernels::MatmulCombineParams combine{};
  // A slice has all matrices of a batch, one after the other.
  combine.m = static_cast<std::uint32_t>(rows);
  combine.n = static_cast<std::uint32_t>(into_n);
  combine.n_begin = static_cast<std::uint32_t>(into.begin);
  combine.n_count = params.n_count;
  for (std::uint64_t k_begin = 0; k_begin < op.k; k_begin += selected->k_chunk) {
    params.k_begin = static_cast<std::uint32_t>(k_begin);
    params.k_count = static_cast<std::uint32_t>(std::min(selected->k_chunk, op.k - k_begin));
    const std::uint32_t slices = ceil_div(params.k_count, params.k_slice);
    const bool last = k_begin + params.k_count == op.k && !apart;
    // Once, on the whole sum: an infinity times parts of it may be infinities of both signs.
    params.alpha = last && !sliced ? op.alpha : 1.0f;
    combine.alpha = last ? op.alpha : 1.0f;
    params.groups = static_cast<std::uint32_t>(selected->groups * slices);
    dispatch.work = rows * part.count * params.k_count;
    dispatch.multiply_adds = dispatch.work;
    if (!sliced) {
      dispatch.set(kernels::matmul_naive::accumulate, k_begin == 0 ? 0 : 1);
      dispatch.bind(Binding::c, sums);
      // Later parts leave the columns of earlier ones as they are.
      dispatch.overwrites(Binding::c, k_begin == 0 && into.begin == 0);
      if (last) set_epilogue(to, group, dispatch, params.epilogue);
    } else {
      dispatch.bind(Binding::c, {partials.resource, partials.offset, rows * part.count * slices * sizeof(float)});
      dispatch.overwrites(Binding::c, true);
    }
    dispatch.params(params);
    if (Error e = to.emit(dispatch, params.groups)) return e;
    if (!sliced) continue;
    combine.slices = slices;
    if (Error e = lower_combine(to, group, into, dispatch.bindings[Binding::c], sums, combine, k_begin != 0, last))
      return e;
  }
  if (!apart) return {};
  combine.n = static_cast<std::uint32_t>(op.n);
  combine.n_begin = static_cast<std::uint32_t>(part.begin);
  combine.slices = 1;
  combine.alpha = op.alpha;
  return lower_combine(to, group, part, sums, c, combine, false, true);
}

Error lower(Lowering& to, std::uint32_t index) {
  const auto op = to.root(index).attributes.as<MatmulAttributes>();
  const record::ValueId b = to.graph.inputs(to.root(index))[1];
  const Region& c = to.result(index);
  if (op.batch.count == 0 || op.m == 0 || op.n == 0) return {};
  if (op.k == 0) return lower_fill(to, index, op.alpha * 0.0f, c, op.batch.count * op.m * op.n);

  PackedRows packed;
  const std::uint64_t parts = to.graph.value(b).parts();
  for (std::uint64_t i = 0; i < parts; ++i) {
    if (Error e = lower_part(to, index, part_of(to, b, op, i), c, packed)) return e;
  }
  return {};
}

std::string text_of(std::uint64_t m, std::uint64_t k, std::uint64_t n) {
  return "m = " + std::to_string(m) + ", k = " + std::to_string(k) + ", n = " + std::to_string(n);
}

// What does not depend on shapes.
Error check(const record::Value& b, const MatmulAttributes& op) {
  if (b.weight && op.layout != Layout::nk) {
    return Error(Errc::invalid_argument,
                 "matmul: the weight " + to_string(b.shape) + " is W[N, K]: use linear(), or matmul() with Layout::nk");
  }
  if (op.kernel == MatmulKernel::coopmat && op.precision != Precision::f16) {
    return Error(Errc::invalid_argument,
                 "matmul: the coopmat kernel rounds its operands to f16, which takes Precision::f16");
  }
  if (op.kernel == MatmulKernel::gemv && op.m > matmul_gemv_max_rows) {
    return Error(Errc::invalid_argument,
                 "matmul: " + text_of(op.m, op.k, op.n) + ": the gemv kernel does up to 8 rows");
  }
  return {};
}

// Of one product, whose operands may have any shape.
Error infer(const record::Graph& graph, Span<const record::ValueId> inputs, record::Attributes& attributes,
            std::vector<record::ValueType>& results) {
  const auto op = attributes.as<MatmulAttributes>();
  const std::string sizes = text_of(op.m, op.k, op.n);
  const auto mk = record::product(op.m, op.k);
  const auto kn = record::product(op.k, op.n);
  if (!mk || !kn || !record::product(op.m, op.n)) {
    return Error(Errc::size_overflow, "matmul: " + sizes + ": a matrix of that size does not fit in 64 bits");
  }
  const std::uint64_t count_a = graph.value(inputs[0]).shape.count();
  const record::Value& b = graph.value(inputs[1]);
  if (count_a != *mk || b.shape.count() != *kn) {
    return Error(Errc::shape_mismatch, "matmul: " + sizes + " need " + std::to_string(*mk) + " and " +
                                           std::to_string(*kn) + " elements; the operands have " +
                                           std::to_string(count_a) + " and " + std::to_string(b.shape.count()));
  }
  if (Error e = check(b, op)) return e;
  results.push_back({Shape(op.m, op.n)});
  return {};
}

using record::Field;
constexpr Field fields[] = {
    {"m", Field::Type::u64, Field::Text::extent, offsetof(MatmulAttributes, m)},
    {"k", Field::Type::u64, Field::Text::extent, offsetof(MatmulAttributes, k)},
    {"n", Field::Type::u64, Field::Text::extent, offsetof(MatmulAttributes, n)},
    {"layout", Field::Type::word, Field::Text::word, offsetof(MatmulAttributes, layout),
     [](std::uint32_t layout) { return to_string(static_cast<Layout>(layout)); }},
    {"batch", Field::Type::u32, Field::Text::named, offsetof(MatmulAttributes, batch.count), nullptr, 1, false},
    {"alpha", Field::Type::f32, Field::Text::named, offsetof(MatmulAttributes, alpha), nullptr,
     std::bit_cast<std::uint32_t>(1.0f)},
    {"forced", Field::Type::word, Field::Text::named, offsetof(MatmulAttributes, kernel),
     [](std::uint32_t kernel) { return to_string(static_cast<MatmulKernel>(kernel)); },
     static_cast<std::uint32_t>(MatmulKernel::automatic), false},
    {"precision", Field::Type::word, Field::Text::named, offsetof(MatmulAttributes, precision),
     [](std::uint32_t precision) { return to_string(static_cast<Precision>(precision)); },
     static_cast<std::uint32_t>(Precision::f32), false},
    {"variant", Field::Type::u32, Field::Text::hidden, offsetof(MatmulAttributes, variant)},
    {"pattern", Field::Type::u32, Field::Text::hidden, offsetof(MatmulAttributes, batch.pattern)},
    {"block0", Field::Type::u32, Field::Text::hidden, offsetof(MatmulAttributes, batch.blocks) + 0},
    {"block1", Field::Type::u32, Field::Text::hidden, offsetof(MatmulAttributes, batch.blocks) + 4},
    {"block2", Field::Type::u32, Field::Text::hidden, offsetof(MatmulAttributes, batch.blocks) + 8},
    {"block3", Field::Type::u32, Field::Text::hidden, offsetof(MatmulAttributes, batch.blocks) + 12},
    {"block4", Field::Type::u32, Field::Text::hidden, offsetof(MatmulAttributes, batch.blocks) + 16},
};

// Without a batch the sizes count: leading dims of A are rows.
reference::Expected expected(const record::Graph& graph, const record::Node& node,
                             Span<const reference::Values> inputs) {
  const auto op = node.attributes.as<MatmulAttributes>();
  const bool single = op.batch.pattern == 0;
  const Span<const record::ValueId> operands = graph.inputs(node);
  const Shape a = single ? Shape(op.m, op.k) : graph.value(operands[0]).shape;
  const Shape flat = op.layout == Layout::nk ? Shape(op.n, op.k) : Shape(op.k, op.n);
  const Shape b = single ? flat : graph.value(operands[1]).shape;
  const bool f16_inputs = op.precision == Precision::f16;
  reference::Expected y = (f16_inputs ? reference::matmul_f16 : reference::matmul)(
      inputs[0], a, inputs[1], b, op.layout, static_cast<double>(op.alpha));
  if (f16_inputs) return y;
  for (double& allowed : y.allowed) allowed *= reference::matmul_bound(op.k, false);
  return y;
}

// Whoever has another default has put it in.
Precision precision_of(const MatmulOptions& options) {
  return options.precision == Precision::f16 ? Precision::f16 : Precision::f32;
}

}  // namespace

const record::Op matmul_op{
    .name = "matmul",
    .fields = fields,
    .infer = infer,
    .lower = lower,
    .weights = 2,
    // Without k it becomes a fill.
    .takes_epilogue = [](const record::Node& node) { return node.attributes.as<MatmulAttributes>().k != 0; },
    .reference = expected};

Result<record::ValueId> matmul(record::Graph& graph, record::ValueId a, record::ValueId b,
                               const MatmulOptions& options) {
  const auto sizes = matmul_sizes(graph.value(a).shape, graph.value(b).shape, options.layout);
  if (!sizes) return sizes.error();
  MatmulAttributes op{sizes->m,        sizes->k,       sizes->n,       sizes->batch,         options.alpha,
                      options.variant, options.layout, options.kernel, precision_of(options)};
  // A transposed operand is what it is a view of, in the other layout.
  const record::ValueId source = record::transposed_source(graph, b);
  const bool turned = source != record::no_value;
  if (turned) op.layout = op.layout == Layout::nk ? Layout::kn : Layout::nk;
  if (Error e = check(graph.value(b), op)) return e;
  const record::ValueId inputs[] = {a, turned ? source : b};
  const record::ValueType result{sizes->shape};
  auto made = graph.append(matmul_op, inputs, op, {&result, 1});
  if (made && turned) graph.consume(b);
  return made;
}

Result<record::ValueId> matmul(record::Graph& graph, record::ValueId a, record::ValueId b, std::uint64_t m,
                               std::uint64_t k, std::uint64_t n, const MatmulOptions& options) {
  const record::ValueId inputs[] = {a, b};
  return graph.apply(
      matmul_op, inputs,
      MatmulAttributes{
          m, k, n, {}, options.alpha, options.variant, options.layout, options.kernel, precision_of(options)});
}

}  // namespace brontes::plan

const brontes::ops::Room brontes::ops::matmul_room{&brontes::plan::matmul_op, 1};
