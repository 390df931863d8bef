// What was asked: values, and the nodes that make them. Plain data, no Vulkan.
#pragma once

#include <brontes/error.hpp>
#include <brontes/matmul.hpp>
#include <brontes/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace brontes::record {

using ValueId = std::uint32_t;
inline constexpr ValueId no_value = ~ValueId{0};

/// Memory that exists apart from the plan: resident buffers, and arenas of earlier executions.
using ResourceId = std::uint32_t;
inline constexpr ResourceId no_resource = ~ResourceId{0};

enum class ElementwiseOp : std::uint8_t {
#define BRONTES_OP(name, code, arity, scalars, formula) name = code,
#include "elementwise.def"
#undef BRONTES_OP
};

struct ElementwiseInfo {
  const char* name;
  std::uint8_t arity;    // tensor operands
  std::uint8_t scalars;  // scalar operands, of the order p, q
};

const ElementwiseInfo& info(ElementwiseOp op) noexcept;

enum class ReduceOp : std::uint8_t { sum, dot, max, min };
const char* name(ReduceOp op) noexcept;

struct Value {
  Shape shape;
  DType dtype = DType::f32;
  bool keep = false;
  bool imported = false;
  bool weight = false;    // an imported Weight: nothing but the second operand of a matmul
  bool readable = false;  // now: an import, or a result of an execution that can be read
  std::uint32_t consumers = 0;
  /// Where it lies if it needs no computing: an import, or a result of an earlier execution.
  ResourceId resource = no_resource;
  std::uint64_t offset = 0;  // bytes
  /// A weight lies in consecutive resources, each but the last with this many of its rows.
  std::uint64_t part_rows = 0;

  std::uint64_t parts() const noexcept { return part_rows == 0 ? 1 : (shape[0] + part_rows - 1) / part_rows; }
  /// Not for weights.
  std::uint64_t bytes() const noexcept { return row_bytes(dtype, shape.count()); }
};

struct ElementwiseNode {
  ElementwiseOp op;
  float p = 0;
  float q = 0;
};
struct ReduceNode {
  ReduceOp op;
};
struct MatmulNode {
  std::uint64_t m, k, n;
  float alpha;
  Layout layout;
  MatmulKernel kernel;
  std::uint32_t variant;
};
/// Copies its input into a resource.
struct StoreNode {
  ResourceId resource;
};

enum class NodeKind : std::uint8_t { elementwise, reduce, matmul, store };

struct Node {
  NodeKind kind;
  std::uint8_t input_count;
  std::array<ValueId, 2> inputs{no_value, no_value};
  ValueId output = no_value;  // no_value for store
  union {
    ElementwiseNode elementwise;
    ReduceNode reduce;
    MatmulNode matmul;
    StoreNode store;
  };

  Node(ElementwiseNode n, std::uint8_t inputs_used)
      : kind(NodeKind::elementwise), input_count(inputs_used), elementwise(n) {}
  Node(ReduceNode n, std::uint8_t inputs_used) : kind(NodeKind::reduce), input_count(inputs_used), reduce(n) {}
  explicit Node(MatmulNode n) : kind(NodeKind::matmul), input_count(2), matmul(n) {}
  explicit Node(StoreNode n) : kind(NodeKind::store), input_count(1), store(n) {}
};

/// "relu", "matmul": for messages and dumps.
const char* name(const Node& node) noexcept;

struct Upload {
  ValueId value;
  std::unique_ptr<float[]> data;  // null for a value without elements, and for input()
  std::size_t room = 0;           // elements that `data` has room for
};

/// The recording of one batch. Every method checks its input completely and changes nothing on
/// failure. Ids of values given to it must be in range; whose handles they are is the Batch's matter.
class Graph {
 public:
  /// No value may be larger than `max_value_bytes`.
  explicit Graph(std::uint64_t max_value_bytes) : max_value_bytes_(max_value_bytes) {}

  Result<ValueId> upload(Span<const float> data, const Shape& shape);
  /// An upload whose data whoever runs the plan brings along.
  Result<ValueId> input(const Shape& shape);
  ValueId import(const Shape& shape, ResourceId resource);
  /// Its parts are the resources from `first` on.
  ValueId import_weight(const Shape& shape, DType dtype, ResourceId first, std::uint64_t part_rows);

  Result<ValueId> elementwise(ElementwiseOp op, Span<const ValueId> inputs, float p = 0, float q = 0);
  Result<ValueId> fill(float value, const Shape& shape);
  Result<ValueId> reduce(ReduceOp op, Span<const ValueId> inputs);
  Result<ValueId> matmul(ValueId a, ValueId b, const MatmulOptions& options);
  Result<ValueId> matmul(ValueId a, ValueId b, std::uint64_t m, std::uint64_t k, std::uint64_t n,
                         const MatmulOptions& options);
  Error store(ValueId x, ResourceId destination, const Shape& destination_shape);

  void keep(ValueId x) { values_[x].keep = true; }

  const std::vector<Value>& values() const noexcept { return values_; }
  const std::vector<Node>& nodes() const noexcept { return nodes_; }
  const std::vector<Upload>& uploads() const noexcept { return uploads_; }

  /// Values and nodes before these indices have been executed.
  std::size_t first_pending_value() const noexcept { return first_pending_value_; }
  std::size_t first_pending_node() const noexcept { return first_pending_node_; }
  /// Called when everything pending has run: says where the values that still exist lie.
  struct Residence {
    ValueId value;
    ResourceId resource;
    std::uint64_t offset;
    bool readable;
  };
  void executed(Span<const Residence> residences);

  /// Takes over the memory that `other`, which is done with, has for uploads.
  void reuse_blocks(Graph&& other);

  /// A copy, but for the data of uploads.
  Graph without_data() const;

 private:
  Result<ValueId> append(Node node, Span<const ValueId> inputs, const Shape& shape);
  Error check_operands(const char* op, Span<const ValueId> inputs) const;
  Upload take_block(std::size_t count);
  void give_blocks(std::vector<Upload> uploads);
  Error check_not_weight(const char* op, Span<const ValueId> inputs) const;
  Error check_size(const char* op, const Shape& shape) const;

  std::uint64_t max_value_bytes_;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<Upload> uploads_;  // pending ones only
  std::vector<Upload> blocks_;   // memory of earlier ones
  std::size_t first_pending_value_ = 0;
  std::size_t first_pending_node_ = 0;
};

}  // namespace brontes::record
