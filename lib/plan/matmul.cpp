// Products as dispatches: the selection's kernel, once for every chunk of k, each time with a combining
// dispatch if it has slices.
#include "plan/matmul.hpp"

#include "plan/plan.hpp"
#include "weights/device_layout.hpp"

#include <algorithm>

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
#undef BRONTES_SAME

#define BRONTES_SAME(name) static_assert(kernels::matmul_gemv::name + 0u == kernels::matmul_gemv_subgroup::name)
BRONTES_SAME(group_size);
BRONTES_SAME(b_layout);
BRONTES_SAME(vectorized);
BRONTES_SAME(rows);
BRONTES_SAME(columns);
BRONTES_SAME(teams);
BRONTES_SAME(b_type);
#undef BRONTES_SAME

// The kernel of a selection with its specialization constants.
Dispatch specialized(const MatmulSelection& s, Layout layout, DType type, std::uint32_t group) {
  const auto b_layout = static_cast<std::uint32_t>(kernel_layout(layout));
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
      return d;
    }
    case MatmulKernel::subgroup: {
      if (layout == Layout::nk) {
        namespace kernel = kernels::matmul_subgroup_nk;
        Dispatch d(kernels::Id::matmul_subgroup_nk, group);
        d.set(kernel::group_size, s.subgroup.group_size);
        d.set(kernel::vectorized, s.vectorized);
        d.set(kernel::rows, s.subgroup.rows);
        d.set(kernel::columns, s.subgroup.columns);
        d.set(kernel::tiles, s.subgroup.tiles);
        d.set(kernel::b_type, static_cast<std::uint32_t>(type));
        return d;
      }
      namespace kernel = kernels::matmul_subgroup_kn;
      Dispatch d(kernels::Id::matmul_subgroup_kn, group);
      d.set(kernel::group_size, s.subgroup.group_size);
      d.set(kernel::vectorized, s.vectorized);
      d.set(kernel::rows, s.subgroup.rows);
      d.set(kernel::vectors, s.subgroup.columns);
      d.set(kernel::width, s.subgroup.width);
      d.set(kernel::sources, s.subgroup.sources);
      d.set(kernel::tiles, s.subgroup.tiles);
      return d;
    }
    case MatmulKernel::panel: {
      namespace kernel = kernels::matmul_panel;
      Dispatch d(kernels::Id::matmul_panel, group);
      d.set(kernel::group_size, s.subgroup.group_size);
      d.set(kernel::rows, s.subgroup.rows);
      d.set(kernel::columns, s.subgroup.columns);
      d.set(kernel::width, s.subgroup.width);
      d.set(kernel::sources, s.subgroup.sources);
      d.set(kernel::tiles, s.subgroup.tiles);
      d.set(kernel::a_packed, s.subgroup.a_packed ? 1 : 0);
      d.set(kernel::b_packed, s.subgroup.b_packed ? 1 : 0);
      d.set(kernel::steps, s.subgroup.steps);
      // All it looks at, for the sake of fewer pipelines.
      d.set(kernel::vectorized, s.subgroup.a_packed && s.subgroup.b_packed ? 1 : s.vectorized & 1);
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
  return d;
}

// A part of the rows of W, or all of B.
struct Part {
  Region region;
  std::uint64_t begin, count;  // of the columns of C
};

Part part_of(const Lowering& to, record::ValueId b, const record::MatmulNode& op, std::uint64_t index) {
  const record::Value& value = to.graph.values()[b];
  if (!value.weight) return {to.region(b), 0, op.n};
  const std::uint64_t begin = index * value.part_rows;
  const std::uint64_t count = std::min(value.part_rows, op.n - begin);
  const std::uint64_t bytes = weights::device_layout(value.dtype, count, op.k).total_bytes;
  return {{static_cast<record::ResourceId>(value.resource + index), 0, bytes}, begin, count};
}

// An operand for the panel kernel: `count` rows of k, or columns of B[k,n].
struct Operand {
  Region region;
  Layout layout;
  DType type;
  std::uint64_t count, k;
};

// Lays it out in bands of `height`, in memory of its own.
Error lower_pack(Lowering& to, std::uint32_t group, const Operand& operand, std::uint32_t height, Region& packed) {
  namespace kernel = kernels::matmul_pack;
  const MatmulLayout layout = kernel_layout(operand.layout);
  packed = to.arena.reserve(matmul_packed_elements(operand.count, operand.k, height) * sizeof(float));
  const auto count = static_cast<std::uint32_t>(operand.count);
  const MatmulPackParams params{static_cast<std::uint32_t>(operand.k), count};
  Dispatch dispatch(kernels::Id::matmul_pack, group);
  dispatch.set(kernel::group_size, matmul_pack_group_size(to.traits));
  dispatch.set(kernel::b_layout, static_cast<std::uint32_t>(layout));
  dispatch.set(kernel::vectorized, matmul_vectorized(params.k, count));
  dispatch.set(kernel::height, height);
  dispatch.set(kernel::b_type, static_cast<std::uint32_t>(operand.type));
  dispatch.bind(kernel::b, operand.region);
  dispatch.bind(kernel::c, packed);
  dispatch.work = operand.count * operand.k;
  dispatch.late = true;
  dispatch.params(params);
  return to.emit(dispatch, matmul_pack_groups(to.traits, layout, operand.count, operand.k, height));
}

// Adds up the slices of the part's columns, which lie in `partials`.
Error lower_combine(Lowering& to, std::uint32_t group, const Part& part, const Region& partials, const Region& c,
                    MatmulCombineParams params, bool accumulate, bool last) {
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
  const record::Node& node = to.graph.nodes()[to.grouping.groups[group].root];
  const record::MatmulNode& op = node.matmul;
  const DType type = to.graph.values()[node.inputs[1]].dtype;
  auto selected = select_matmul({op.m, op.k, part.count, op.layout, type, to.options.batch_invariant}, to.traits,
                                {op.kernel, op.variant});
  if (!selected) return selected.error();

  // Four neighbours of C are a vec4 only where those of the part's first row are.
  if ((op.n | part.begin) % 4 != 0 && selected->slices == 1) selected->vectorized &= ~2u;
  const bool sliced = selected->slices > 1;
  const Region partials = sliced ? to.arena.reserve(op.m * part.count * selected->slices * sizeof(float)) : Region{};
  Dispatch dispatch = specialized(*selected, op.layout, type, group);
  Region a = to.region(node.inputs[0]);
  Region b = part.region;
  if (selected->subgroup.a_packed) {
    const std::uint32_t height = selected->subgroup.rows;
    if (packed.height != height) {
      packed.height = height;
      if (Error e = lower_pack(to, group, {a, Layout::nk, DType::f32, op.m, op.k}, height, packed.region)) return e;
    }
    a = packed.region;
  }
  if (selected->subgroup.b_packed) {
    if (Error e = lower_pack(to, group, {b, op.layout, type, part.count, op.k}, selected->subgroup.width, b)) return e;
  }
  dispatch.bind(Binding::a, a);
  dispatch.bind(Binding::b, b);

  MatmulParams params{};
  params.m = static_cast<std::uint32_t>(op.m);
  params.k = static_cast<std::uint32_t>(op.k);
  params.n = static_cast<std::uint32_t>(sliced ? part.count : op.n);
  params.alpha = sliced ? 1.0f : op.alpha;
  params.n_begin = static_cast<std::uint32_t>(sliced ? 0 : part.begin);
  params.n_count = static_cast<std::uint32_t>(part.count);
  params.k_slice = static_cast<std::uint32_t>(selected->k_slice);
  MatmulCombineParams combine{};
  combine.m = params.m;
  combine.n = static_cast<std::uint32_t>(op.n);
  combine.n_begin = static_cast<std::uint32_t>(part.begin);
  combine.n_count = params.n_count;
  combine.alpha = op.alpha;
  for (std::uint64_t k_begin = 0; k_begin < op.k; k_begin += selected->k_chunk) {
    params.k_begin = static_cast<std::uint32_t>(k_begin);
    params.k_count = static_cast<std::uint32_t>(std::min(selected->k_chunk, op.k - k_begin));
    const std::uint32_t slices = ceil_div(params.k_count, params.k_slice);
    const bool last = k_begin + params.k_count == op.k;
    params.groups = static_cast<std::uint32_t>(selected->groups * slices);
    dispatch.work = op.m * part.count * params.k_count;
    if (!sliced) {
      dispatch.set(kernels::matmul_naive::accumulate, k_begin == 0 ? 0 : 1);
      dispatch.bind(Binding::c, c);
      // Later parts leave the columns of earlier ones as they are.
      dispatch.overwrites(Binding::c, k_begin == 0 && part.begin == 0);
      if (last) set_epilogue(to, group, dispatch, params.epilogue);
    } else {
      dispatch.bind(Binding::c, {partials.resource, partials.offset, op.m * part.count * slices * sizeof(float)});
      dispatch.overwrites(Binding::c, true);
    }
    dispatch.params(params);
    if (Error e = to.emit(dispatch, params.groups)) return e;
    if (!sliced) continue;
    combine.slices = slices;
    if (Error e = lower_combine(to, group, part, dispatch.bindings[Binding::c], c, combine, k_begin != 0, last))
      return e;
  }
  return {};
}

}  // namespace

Error lower_matmul(Lowering& to, std::uint32_t index) {
  const Group& group = to.grouping.groups[index];
  const record::Node& node = to.graph.nodes()[group.root];
  const record::MatmulNode& op = node.matmul;
  const Region& c = to.region(to.grouping.result(group, to.graph));
  if (op.m == 0 || op.n == 0) return {};
  if (op.k == 0) return lower_fill(to, index, 0.0f, c, op.m * op.n);

  PackedRows packed;
  const std::uint64_t parts = to.graph.values()[node.inputs[1]].parts();
  for (std::uint64_t i = 0; i < parts; ++i) {
    if (Error e = lower_part(to, index, part_of(to, node.inputs[1], op, i), c, packed)) return e;
  }
  return {};
}

}  // namespace brontes::plan
