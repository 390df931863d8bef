// argmax and argmin: where the largest or smallest element along an axis lies.
//
// Lines that are too few to fill a device, or too long for the driver's loop limit, are cut into parts, whose extremes
// and places another dispatch compares.
#include "ops/catalogue.hpp"
#include "ops/row.hpp"
#include "plan/params.hpp"
#include "plan/plan.hpp"
#include "reference/reference.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <string>

namespace brontes {
namespace ops {
namespace {

namespace kernel = kernels::extreme;
using plan::Region;
using record::Field;

struct ExtremeAttributes {
  std::int64_t axis;
  bool keep_dim;
};

constexpr Field fields[] = {
    {"axis", Field::Type::i64, Field::Text::named, offsetof(ExtremeAttributes, axis)},
    {.name = "keep_dim",
     .type = Field::Type::flag,
     .text = Field::Text::named,
     .offset = offsetof(ExtremeAttributes, keep_dim),
     .default_bits = 0,
     .json_default = false},
};

enum class ExtremeInput : std::uint32_t { f32 = 0, i32 = 1, found = 2 };

// Rows of a matrix that one lane takes.
constexpr std::uint64_t most_rows = 256;

Shape without(const Shape& shape, const ExtremeAttributes& attributes) {
  std::array<std::uint64_t, Shape::max_rank> dims{};
  std::size_t rank = 0;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    const bool reduced = i == static_cast<std::size_t>(attributes.axis);
    if (!reduced || attributes.keep_dim) dims[rank++] = reduced ? 1 : shape[i];
  }
  return rank == 0 ? Shape(1) : Shape::of({dims.data(), rank});
}

template <bool smallest>
Error infer(const record::Graph& graph, Span<const record::ValueId> inputs, record::Attributes& raw,
            std::vector<record::ValueType>& results) {
  const char* op = smallest ? "argmin" : "argmax";
  auto attributes = raw.as<ExtremeAttributes>();
  const record::Value& x = graph.value(inputs[0]);
  if (x.dtype == DType::mask) {
    return Error(Errc::type_mismatch,
                 std::string(op) + ": operand %" + std::to_string(inputs[0]) + " is mask; expected f32 or i32");
  }
  if (Error e = resolve_axis(op, x.shape, attributes.axis)) return e;
  const Shape result = without(x.shape, attributes);
  if (x.shape.count() == 0 && result.count() != 0) {
    return Error(Errc::empty_input, std::string(op) + ": axis " + std::to_string(attributes.axis) + " of " +
                                        to_string(x.shape) + " has no elements");
  }
  raw = attributes;
  results.push_back({result, DType::i32});
  return {};
}

// Whether `parts` make rows and matrices of whole vec4s.
bool whole_vectors(const RowShape& shape, std::uint64_t parts) {
  return parts * shape.inner % 4 == 0 && (shape.outer == 1 || shape.n * shape.inner % 4 == 0);
}

std::uint64_t parts_of(const RowShape& shape, const plan::Traits& traits) {
  const std::uint64_t rows = std::clamp<std::uint64_t>(traits.max_loop_iterations, 18, most_rows + 2) - 2;
  std::uint64_t parts = (shape.n + rows - 1) / rows;
  const std::uint64_t lanes = std::max<std::uint64_t>(1, shape.outer * shape.inner / 4);
  const std::uint64_t enough = traits.cpu ? 2048 : 65536;
  parts = std::max({std::uint64_t{1}, parts, std::min((enough + lanes - 1) / lanes, shape.n / 16)});
  // Several rows together may be whole vec4s where one is not.
  const std::uint64_t together = 4 / std::gcd<std::uint64_t>(4, shape.inner);
  if (parts > 1 && whole_vectors(shape, together)) parts = (parts + together - 1) / together * together;
  return parts;
}

template <bool smallest>
Error lower(plan::Lowering& to, std::uint32_t group) {
  const record::Node& node = to.root(group);
  const record::ValueId x = to.graph.inputs(node)[0];
  const record::Value& value = to.graph.value(x);
  if (to.graph.value(node.output).shape.count() == 0) return {};
  const std::uint32_t group_size = std::min(to.traits.cpu ? 64u : 256u, to.traits.max_group_invocations);
  RowShape shape = row_shape(value.shape, node.attributes.as<ExtremeAttributes>().axis);
  ExtremeInput given = value.dtype == DType::i32 ? ExtremeInput::i32 : ExtremeInput::f32;
  Region numbers;
  Region places;
  for (;;) {
    const std::uint64_t parts = parts_of(shape, to.traits);
    const bool last = parts == 1;
    const std::uint64_t width = parts * shape.inner;
    const std::uint32_t columns = whole_vectors(shape, parts) ? 4 : 1;
    kernels::ExtremeParams params{};
    params.slab = static_cast<std::uint32_t>(shape.n * shape.inner);
    params.inner = static_cast<std::uint32_t>(shape.inner);
    params.parts = static_cast<std::uint32_t>(parts);
    params.width = static_cast<std::uint32_t>(width);
    params.full = static_cast<std::uint32_t>(shape.n / parts * width);
    params.units = static_cast<std::uint32_t>(shape.outer * width / columns);
    params.groups = plan::ceil_div(params.units, group_size);

    plan::Dispatch dispatch(kernels::Id::extreme, group);
    dispatch.work = shape.count();
    dispatch.set(kernel::group_size, group_size);
    dispatch.set(kernel::columns, columns);
    dispatch.set(kernel::given, static_cast<std::uint32_t>(given));
    dispatch.set(kernel::smallest, smallest ? 1 : 0);
    dispatch.set(kernel::partial, last ? 0 : 1);
    if (given == ExtremeInput::found) {
      dispatch.bind(kernel::in0, numbers);
      dispatch.bind(kernel::in1, places);
    } else {
      bind_operand(to, group, dispatch, params.prologue);
    }
    const std::uint64_t bytes = shape.outer * width * sizeof(std::int32_t);
    places = last ? to.result(group) : to.arena.reserve(bytes);
    dispatch.bind(kernel::out0, places);
    if (!last) {
      numbers = to.arena.reserve(bytes);
      dispatch.bind(kernel::out1, numbers);
    }
    if (last) set_epilogue(to, group, dispatch, params.epilogue);
    dispatch.params(params);
    if (Error e = to.emit(dispatch, params.groups)) return e;
    if (last) return {};
    shape.n = parts;
    given = ExtremeInput::found;
  }
}

template <bool smallest>
reference::Expected expected(const record::Graph& graph, const record::Node& node,
                             Span<const reference::Values> inputs) {
  const auto axis = static_cast<std::size_t>(node.attributes.as<ExtremeAttributes>().axis);
  return reference::extreme(inputs[0], graph.value(graph.inputs(node)[0]).shape, axis, smallest);
}

template <bool smallest>
constexpr record::Op entry() {
  return {.name = smallest ? "argmin" : "argmax",
          .fields = fields,
          .infer = infer<smallest>,
          .lower = lower<smallest>,
          .types = 1,
          .takes_epilogue = [](const record::Node&) { return true; },
          .takes_prologue = true,
          .reference = expected<smallest>};
}
constexpr std::array ops = {entry<false>(), entry<true>()};

}  // namespace

const Room extreme_room = ops;

}  // namespace ops

Tensor Batch::argmax(Tensor x, std::int64_t axis, bool keep_dim) {
  return OpAccess::record(*this, ops::ops[0], {x}, ops::ExtremeAttributes{axis, keep_dim});
}

Tensor Batch::argmin(Tensor x, std::int64_t axis, bool keep_dim) {
  return OpAccess::record(*this, ops::ops[1], {x}, ops::ExtremeAttributes{axis, keep_dim});
}

}  // namespace brontes
