#include "record/graph.hpp"

#include "record/shape.hpp"

#include <cstring>
#include <new>
#include <optional>
#include <utility>

namespace brontes::record {
namespace {

constexpr ElementwiseInfo elementwise_table[] = {
#define BRONTES_OP(name, code, arity, scalars, formula) {#name, arity, scalars},
#include "elementwise.def"
#undef BRONTES_OP
};

constexpr bool codes_are_positions() {
  std::size_t position = 0;
#define BRONTES_OP(name, code, arity, scalars, formula) \
  if (code != position++) return false;
#include "elementwise.def"
#undef BRONTES_OP
  return true;
}
static_assert(codes_are_positions(), "elementwise.def: codes count up from 0");

Error shape_error(const char* op, const std::string& what) {
  return Error(Errc::shape_mismatch, std::string(op) + ": " + what);
}

}  // namespace

const ElementwiseInfo& info(ElementwiseOp op) noexcept { return elementwise_table[static_cast<std::size_t>(op)]; }

const char* name(ReduceOp op) noexcept {
  switch (op) {
    case ReduceOp::sum: return "sum";
    case ReduceOp::dot: return "dot";
    case ReduceOp::max: return "max";
    case ReduceOp::min: return "min";
  }
  return "reduce";
}

const char* name(const Node& node) noexcept {
  switch (node.kind) {
    case NodeKind::elementwise: return info(node.elementwise.op).name;
    case NodeKind::reduce: return name(node.reduce.op);
    case NodeKind::matmul: return "matmul";
    case NodeKind::store: return "store";
  }
  return "op";
}

Error Graph::check_size(const char* op, const Shape& shape) const {
  if (!shape.valid() || shape.rank() == 0) {
    return Error(Errc::invalid_argument, std::string(op) + ": a shape has 1 to 4 dims, none of them negative");
  }
  const std::uint64_t count = shape.count();
  const auto bytes = count == Shape::no_count ? std::nullopt : product(count, block_bytes(DType::f32));
  if (!bytes) {
    return Error(Errc::size_overflow,
                 std::string(op) + ": the size of " + to_string(shape) + " does not fit in 64 bits");
  }
  if (*bytes > max_value_bytes_) {
    return Error(Errc::limit_exceeded, std::string(op) + ": a tensor of " + to_string(shape) + " takes " +
                                           std::to_string(*bytes) + " bytes, and this device takes at most " +
                                           std::to_string(max_value_bytes_) + " per tensor (maxStorageBufferRange)");
  }
  return {};
}

Error Graph::check_operands(const char* op, Span<const ValueId> inputs) const {
  for (ValueId id : inputs) {
    if (id < first_pending_value_ && values_[id].resource == no_resource) {
      return Error(Errc::not_kept, std::string(op) + ": operand %" + std::to_string(id) + " " +
                                       to_string(values_[id].shape) +
                                       " is from an earlier execute() and was not kept; mark it with "
                                       "keep() before executing");
    }
  }
  return {};
}

Error Graph::check_not_weight(const char* op, Span<const ValueId> inputs) const {
  for (ValueId id : inputs) {
    if (values_[id].weight) {
      return Error(Errc::invalid_argument, std::string(op) + ": operand %" + std::to_string(id) + " " +
                                               to_string(values_[id].shape) +
                                               " is a weight, which only linear() and matmul() take, as their second "
                                               "operand");
    }
  }
  return {};
}

Result<ValueId> Graph::append(Node node, Span<const ValueId> inputs, const Shape& shape) {
  const char* op = name(node);
  // A matmul has looked at its second operand itself.
  const bool takes_weight = node.kind == NodeKind::matmul;
  if (Error e = check_operands(op, inputs)) return e;
  if (Error e = check_not_weight(op, takes_weight ? Span<const ValueId>(inputs.data(), 1) : inputs)) return e;
  if (Error e = check_size(op, shape)) return e;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    node.inputs[i] = inputs[i];
    ++values_[inputs[i]].consumers;
  }
  node.output = static_cast<ValueId>(values_.size());
  nodes_.push_back(node);
  Value value;
  value.shape = shape;
  values_.push_back(value);
  return node.output;
}

// Memory that was used before, if some is of about the right size, else new. No data: there is none.
Upload Graph::take_block(std::size_t count) {
  for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
    if (block->room < count || block->room / 2 > count) continue;
    Upload taken = std::move(*block);
    blocks_.erase(block);
    return taken;
  }
  return {no_value, std::unique_ptr<float[]>(new (std::nothrow) float[count]), count};
}

// Keeps what is large enough to be slow to get anew, and not too much of it.
void Graph::give_blocks(std::vector<Upload> uploads) {
  constexpr std::size_t worth_keeping = 16 << 10;
  constexpr std::size_t most = 16 << 20;  // 64 MiB
  std::size_t kept = 0;
  for (const Upload& block : blocks_) kept += block.room;
  for (Upload& upload : uploads) {
    if (!upload.data || upload.room < worth_keeping || upload.room > most - kept) continue;
    kept += upload.room;
    blocks_.push_back(std::move(upload));
  }
}

void Graph::reuse_blocks(Graph&& other) {
  blocks_ = std::move(other.blocks_);
  give_blocks(std::move(other.uploads_));
}

Result<ValueId> Graph::upload(Span<const float> data, const Shape& shape) {
  const char* op = "upload";
  if (data.data() == nullptr && data.size() != 0) {
    return Error(Errc::null_data, "upload: a null pointer for " + std::to_string(data.size()) + " elements");
  }
  Shape actual = shape;
  if (shape.rank() == 0) {
    if (data.empty()) {
      return Error(Errc::empty_input, "upload: no data; a tensor of 0 elements needs an explicit shape, such as {0}");
    }
    actual = Shape(data.size());
  }
  if (Error e = check_size(op, actual)) return e;
  if (actual.count() != data.size()) {
    return shape_error(op, std::to_string(data.size()) + " elements of data for shape " + to_string(actual) +
                               ", which has " + std::to_string(actual.count()));
  }
  Upload block;
  if (!data.empty()) {
    block = take_block(data.size());
    if (!block.data) {
      return Error(Errc::out_of_memory, "upload: no host memory for " + std::to_string(data.size()) + " elements");
    }
    std::memcpy(block.data.get(), data.data(), data.size() * sizeof(float));
  }
  const auto id = static_cast<ValueId>(values_.size());
  Value value;
  value.shape = actual;
  values_.push_back(value);
  block.value = id;
  uploads_.push_back(std::move(block));
  return id;
}

Result<ValueId> Graph::input(const Shape& shape) {
  if (Error e = check_size("input", shape)) return e;
  Value value;
  value.shape = shape;
  values_.push_back(value);
  uploads_.push_back({static_cast<ValueId>(values_.size() - 1), nullptr, 0});
  return uploads_.back().value;
}

ValueId Graph::import(const Shape& shape, ResourceId resource) {
  Value value;
  value.shape = shape;
  value.resource = resource;
  value.imported = true;
  value.readable = true;
  values_.push_back(value);
  return static_cast<ValueId>(values_.size() - 1);
}

ValueId Graph::import_weight(const Shape& shape, DType dtype, ResourceId first, std::uint64_t part_rows) {
  const ValueId id = import(shape, first);
  Value& value = values_[id];
  value.dtype = dtype;
  value.weight = true;
  value.readable = false;
  value.part_rows = part_rows;
  return id;
}

Result<ValueId> Graph::elementwise(ElementwiseOp op, Span<const ValueId> inputs, float p, float q) {
  const ElementwiseInfo& table = info(op);
  if (op == ElementwiseOp::clamp && !(p <= q)) {
    return Error(Errc::invalid_argument, "clamp: low " + std::to_string(p) + " is not <= high " + std::to_string(q));
  }
  Shape shape = values_[inputs[0]].shape;
  if (table.arity == 2) {
    const Shape& a = values_[inputs[0]].shape;
    const Shape& b = values_[inputs[1]].shape;
    const auto result = broadcast(a, b);
    if (!result) {
      return shape_error(table.name, "shapes " + to_string(a) + " and " + to_string(b) +
                                         " do not fit; expected equal dims, or 1, from the last dim on");
    }
    if (!repetition(a, *result) || !repetition(b, *result)) {
      return shape_error(table.name, "shapes " + to_string(a) + " and " + to_string(b) +
                                         " broadcast between two dims of one operand, which is not supported; "
                                         "reshape or expand one of them");
    }
    shape = *result;
  }
  return append(Node(ElementwiseNode{op, p, q}, table.arity), inputs, shape);
}

Result<ValueId> Graph::fill(float value, const Shape& shape) {
  return append(Node(ElementwiseNode{ElementwiseOp::fill, value, 0}, 0), {}, shape);
}

Result<ValueId> Graph::reduce(ReduceOp op, Span<const ValueId> inputs) {
  const std::uint64_t count = values_[inputs[0]].shape.count();
  if (op == ReduceOp::dot && values_[inputs[1]].shape.count() != count) {
    return shape_error("dot", "operands " + to_string(values_[inputs[0]].shape) + " and " +
                                  to_string(values_[inputs[1]].shape) + " have " + std::to_string(count) + " and " +
                                  std::to_string(values_[inputs[1]].shape.count()) +
                                  " elements; expected the same number");
  }
  if ((op == ReduceOp::max || op == ReduceOp::min) && count == 0) {
    return Error(Errc::empty_input, std::string(name(op)) + ": operand " + to_string(values_[inputs[0]].shape) +
                                        " has no elements, so there is no " + name(op));
  }
  return append(Node(ReduceNode{op}, static_cast<std::uint8_t>(inputs.size())), inputs, Shape(1));
}

Result<ValueId> Graph::matmul(ValueId a, ValueId b, const MatmulOptions& options) {
  const Shape& sa = values_[a].shape;
  const Shape& sb = values_[b].shape;
  if (sa.rank() > 2 || sb.rank() > 2) {
    return shape_error("matmul",
                       "operands " + to_string(sa) + " and " + to_string(sb) + "; expected one or two dims each");
  }
  const bool transposed = options.layout == Layout::nk;
  const std::uint64_t m = sa.rank() == 2 ? sa[0] : 1;
  const std::uint64_t k = sa.rank() == 2 ? sa[1] : sa[0];
  // A 1-D right operand is a column [K, 1], which is the same memory as a weight [1, K].
  const std::uint64_t kb = sb.rank() == 1 ? sb[0] : transposed ? sb[1] : sb[0];
  const std::uint64_t n = sb.rank() == 1 ? 1 : transposed ? sb[0] : sb[1];
  if (k != kb) {
    return shape_error("matmul", "operands " + to_string(sa) + " and " + to_string(sb) +
                                     (transposed ? " (as [N, K])" : " (as [K, N])") + ": the inner sizes " +
                                     std::to_string(k) + " and " + std::to_string(kb) + " differ");
  }
  return matmul(a, b, m, k, n, options);
}

Result<ValueId> Graph::matmul(ValueId a, ValueId b, std::uint64_t m, std::uint64_t k, std::uint64_t n,
                              const MatmulOptions& options) {
  const std::string sizes = "m = " + std::to_string(m) + ", k = " + std::to_string(k) + ", n = " + std::to_string(n);
  const auto mk = product(m, k);
  const auto kn = product(k, n);
  if (!mk || !kn || !product(m, n)) {
    return Error(Errc::size_overflow, "matmul: " + sizes + ": a matrix of that size does not fit in 64 bits");
  }
  const std::uint64_t count_a = values_[a].shape.count();
  const std::uint64_t count_b = values_[b].shape.count();
  if (count_a != *mk || count_b != *kn) {
    return shape_error("matmul", sizes + " need " + std::to_string(*mk) + " and " + std::to_string(*kn) +
                                     " elements; the operands have " + std::to_string(count_a) + " and " +
                                     std::to_string(count_b));
  }
  if (values_[b].weight && options.layout != Layout::nk) {
    return Error(Errc::invalid_argument, "matmul: the weight " + to_string(values_[b].shape) +
                                             " is W[N, K]: use linear(), or matmul() with Layout::nk");
  }
  if (options.kernel == MatmulKernel::gemv && m > 8) {
    return Error(Errc::invalid_argument, "matmul: " + sizes + ": the gemv kernel does up to 8 rows");
  }
  const ValueId inputs[] = {a, b};
  return append(Node(MatmulNode{m, k, n, options.alpha, options.layout, options.kernel, options.variant}), inputs,
                Shape(m, n));
}

Error Graph::store(ValueId x, ResourceId destination, const Shape& destination_shape) {
  const ValueId inputs[] = {x};
  if (Error e = check_operands("store", inputs)) return e;
  if (Error e = check_not_weight("store", inputs)) return e;
  if (values_[x].shape.count() != destination_shape.count()) {
    return shape_error("store", "a tensor of " + to_string(values_[x].shape) + " into a buffer of " +
                                    to_string(destination_shape) + "; expected the same number of elements");
  }
  Node node(StoreNode{destination});
  node.inputs[0] = x;
  ++values_[x].consumers;
  nodes_.push_back(node);
  return {};
}

void Graph::executed(Span<const Residence> residences) {
  for (const Residence& r : residences) {
    values_[r.value].resource = r.resource;
    values_[r.value].offset = r.offset;
    values_[r.value].readable = r.readable;
  }
  give_blocks(std::exchange(uploads_, {}));
  first_pending_value_ = values_.size();
  first_pending_node_ = nodes_.size();
}

Graph Graph::without_data() const {
  Graph copy(max_value_bytes_);
  copy.values_ = values_;
  copy.nodes_ = nodes_;
  copy.first_pending_value_ = first_pending_value_;
  copy.first_pending_node_ = first_pending_node_;
  return copy;
}

}  // namespace brontes::record
