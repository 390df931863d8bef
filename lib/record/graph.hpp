// What was asked: values, and the nodes that make them. Plain data, no Vulkan.
#pragma once

#include "record/op.hpp"

#include <brontes/error.hpp>
#include <brontes/tensor.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace brontes::record {

/// Memory that exists apart from the plan: resident buffers, and arenas of earlier executions.
using ResourceId = std::uint32_t;
inline constexpr ResourceId no_resource = ~ResourceId{0};

inline constexpr std::uint32_t no_view = ~std::uint32_t{0};

struct Value {
  Shape shape;
  DType dtype = DType::f32;
  bool keep = false;
  bool imported = false;
  bool weight = false;    // an imported Weight: nothing but the second operand of a matmul
  bool readable = false;  // now: an import, or a result of an execution that can be read
  std::uint32_t consumers = 0;
  /// A view has the elements of this pending value, in the same order, in another shape. Never a view itself.
  ValueId base = no_value;
  /// The node that makes it, if that is a view op (Op::view) which is still pending.
  std::uint32_t view_node = no_view;
  /// Where it lies if it needs no computing: an import, or a result of an earlier execution.
  ResourceId resource = no_resource;
  std::uint64_t offset = 0;  // bytes
  /// A weight lies in consecutive resources, each but the last with this many of its rows.
  std::uint64_t part_rows = 0;

  std::uint64_t parts() const noexcept { return part_rows == 0 ? 1 : (shape[0] + part_rows - 1) / part_rows; }
  /// Not for weights.
  std::uint64_t bytes() const noexcept { return row_bytes(dtype, shape.count()); }
  bool half() const noexcept { return dtype == DType::f16 && !weight; }
};

/// An op that was recorded.
struct Node {
  const Op* op = nullptr;
  std::uint32_t first_input = 0;  // Graph::inputs() has them
  std::uint32_t input_count = 0;
  ValueId output = no_value;  // the first of its results, which are consecutive values
  std::uint32_t output_count = 0;
  /// Memory apart from values that it writes: a store.
  ResourceId destination = no_resource;
  Attributes attributes;
};

/// "relu", "matmul": for messages and dumps.
inline const char* name(const Node& node) noexcept { return node.op->name; }

/// Memory that takes the data of uploads as they are recorded, one after the other: where a plan will want them, if
/// none of them can be read.
class Landing {
 public:
  Landing(std::uint64_t bytes, std::uint64_t alignment) : bytes_(bytes), alignment_(alignment) {}
  virtual ~Landing() = default;
  Landing(const Landing&) = delete;
  Landing& operator=(const Landing&) = delete;

  virtual Error write(std::uint64_t offset, const void* data, std::uint64_t bytes) = 0;
  /// What was written.
  virtual const std::byte* memory() const noexcept = 0;

  bool has_room(std::uint64_t bytes) const noexcept { return bytes <= bytes_ - end_; }
  /// Where the next one goes.
  std::uint64_t end() const noexcept { return end_; }
  void add(std::uint64_t bytes) noexcept {
    const std::uint64_t rounded = (bytes + alignment_ - 1) / alignment_ * alignment_;
    end_ = rounded < bytes_ - end_ ? end_ + rounded : bytes_;
  }

 private:
  std::uint64_t bytes_;
  std::uint64_t alignment_;
  std::uint64_t end_ = 0;
};

struct Upload {
  static constexpr std::uint64_t not_landed = ~std::uint64_t{0};

  ValueId value;
  /// Elements of any type; null for a value without elements, for input(), and for what has landed.
  std::unique_ptr<float[]> data;
  std::size_t room = 0;                 // words that `data` has room for
  std::uint64_t landed = not_landed;    // offset in the Landing
  std::uint32_t executions_unused = 0;  // as a block for later uploads
};

/// Makes room for `count` more, so that the push_backs that follow cannot fail.
template <class T>
void reserve_more(std::vector<T>& vector, std::size_t count) {
  if (vector.capacity() - vector.size() < count) {
    vector.reserve(std::max<std::size_t>({8, 2 * vector.size(), vector.size() + count}));
  }
}
template <class T>
void reserve_one_more(std::vector<T>& vector) {
  reserve_more(vector, 1);
}

/// The recording of one batch. Every method checks its input completely and changes nothing on
/// failure, nor when it throws std::bad_alloc. Ids of values given to it must be in range; whose handles they are is
/// the Batch's matter.
class Graph {
 public:
  /// No value may be larger than `max_value_bytes`.
  explicit Graph(std::uint64_t max_value_bytes) : max_value_bytes_(max_value_bytes) {}

  Result<ValueId> upload(Span<const float> data, const Shape& shape);
  Result<ValueId> upload_i32(Span<const std::int32_t> data, const Shape& shape);
  /// The bits of f16.
  Result<ValueId> upload_f16(Span<const std::uint16_t> data, const Shape& shape);
  /// An upload whose data whoever runs the plan brings along.
  Result<ValueId> input(const Shape& shape);
  ValueId import(const Shape& shape, ResourceId resource, DType dtype = DType::f32);
  /// Its parts are the resources from `first` on.
  ValueId import_weight(const Shape& shape, DType dtype, ResourceId first, std::uint64_t part_rows);

  /// Records an op on values: the op's rule says what it gives. The first of its results.
  Result<ValueId> apply(const Op& op, Span<const ValueId> inputs, Attributes attributes = {});
  /// Calls record(operands), which records an op on them, with operands of f16 cast to f32 if its kernels cannot read
  /// them. Those casts go if it fails.
  template <class Record>
  Result<ValueId> with_operands(const Op& op, Span<const ValueId> inputs, Record record);
  /// The same where the results are known already. The graph and its copies keep `kept`, which attributes may point to.
  Result<ValueId> append(const Op& op, Span<const ValueId> inputs, const Attributes& attributes,
                         Span<const ValueType> results, std::shared_ptr<const void> kept = nullptr);
  /// Whether append() would take these.
  Error check(const Op& op, Span<const ValueId> inputs, Span<const ValueType> results) const;
  /// Makes room for so many nodes with up to three operands and one result each: appending them cannot throw.
  void reserve(std::size_t count);
  /// A place in the recording that can be gone back to.
  struct Mark {
    std::size_t values = 0;
    std::size_t nodes = 0;
    std::size_t operands = 0;
    struct Consumed {
      ValueId value = no_value;
      std::uint32_t consumers = 0;
    };
    std::array<Consumed, 3> consumed{};
  };
  /// `consumed` are the values, three at most, that ops recorded from here on may consume.
  Mark mark(Span<const ValueId> consumed) const noexcept;
  /// Forgets ops that were recorded since: not uploads, nor ops with a destination or attributes to keep.
  void forget_since(const Mark& mark) noexcept;

  /// Records an op without results that writes to `destination`.
  Error append_effect(const Op& op, Span<const ValueId> inputs, const Attributes& attributes, ResourceId destination);

  /// The same elements in another shape. It is no op: nothing is computed or copied.
  Result<ValueId> reshape(const char* op, ValueId x, const Shape& shape);

  /// Records a view op. `seen` is the value that was asked for a view of itself, and counts as consumed; `x` may be
  /// what that is a view of.
  Result<ValueId> append_view(const Op& op, ValueId seen, ValueId x, const Attributes& attributes, const Shape& shape);

  /// The view node that makes x, if reading what that reads is as good still: nothing has been written there since.
  const Node* view_of(ValueId x) const noexcept {
    const std::uint32_t node = values_[x].view_node;
    return node != no_view && node >= after_effects_ ? &nodes_[node] : nullptr;
  }
  /// Somebody uses x who is not an op: it is no result any more.
  void consume(ValueId x) noexcept { ++values_[x].consumers; }
  void keep(ValueId x) { values_[x].keep = true; }

  const std::vector<Value>& values() const noexcept { return values_; }
  const std::vector<Node>& nodes() const noexcept { return nodes_; }
  Span<const ValueId> inputs(const Node& node) const noexcept {
    return {operands_.data() + node.first_input, node.input_count};
  }
  const Value& value(ValueId id) const noexcept { return values_[id]; }
  /// The value whose memory a value has: its own, unless it is a view.
  ValueId base(ValueId id) const noexcept { return values_[id].base == no_value ? id : values_[id].base; }
  const std::vector<Upload>& uploads() const noexcept { return uploads_; }
  /// The elements of one of them, wherever they are.
  const void* data_of(const Upload& upload) const noexcept {
    return upload.landed == Upload::not_landed ? static_cast<const void*>(upload.data.get())
                                               : landing_->memory() + upload.landed;
  }

  /// Uploads go there from now on, as far as there is room, until what is pending has run. Only while there are none.
  void land(std::unique_ptr<Landing> landing) noexcept { landing_ = std::move(landing); }
  Landing* landing() const noexcept { return landing_.get(); }
  /// Does without the landing: what is there gets memory of its own.
  Error leave_landing();

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
  void executed(Span<const Residence> residences) noexcept;

  /// Host memory of uploads that have run, for those that come.
  std::uint64_t kept_bytes() const noexcept;
  /// Forgets everything, but keeps memory for the next recording.
  void restart() noexcept;

  /// A copy, but for the data of uploads.
  Graph without_data() const;

 private:
  Result<ValueId> upload_elements(const void* data, std::size_t count, DType dtype, const Shape& shape);
  /// f16 operands as f32.
  Result<std::vector<ValueId>> widened(Span<const ValueId> inputs);
  Error check_exists(const char* op, ValueId id) const;
  Error check_operands(const Op& op, Span<const ValueId> inputs) const;
  void push_node(const Op& op, Span<const ValueId> inputs, const Attributes& attributes, ValueId output,
                 std::size_t output_count, ResourceId destination) noexcept;
  Upload take_block(std::size_t count);
  void give_blocks() noexcept;
  Error check_size(const char* op, const Shape& shape, DType dtype) const;

  std::uint64_t max_value_bytes_;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<ValueId> operands_;                  // of all nodes, one after the other
  std::vector<std::shared_ptr<const void>> kept_;  // what attributes point to
  std::vector<Upload> uploads_;                    // pending ones only
  std::vector<Upload> blocks_;                     // memory of earlier ones
  std::unique_ptr<Landing> landing_;
  std::size_t first_pending_value_ = 0;
  std::size_t first_pending_node_ = 0;
  std::size_t after_effects_ = 0;  // no node from here on has a destination
};

template <class Record>
Result<ValueId> Graph::with_operands(const Op& op, Span<const ValueId> inputs, Record record) {
  const bool fits =
      !op.no_halves || std::none_of(inputs.begin(), inputs.end(), [&](ValueId x) { return value(x).half(); });
  if (fits) return record(inputs);
  struct Undo {
    Graph& graph;
    Mark mark;
    bool wanted = true;
    ~Undo() {
      if (wanted) graph.forget_since(mark);
    }
  } undo{*this, mark({})};
  const auto operands = widened(inputs);
  if (!operands) return operands.error();
  auto made = record(Span<const ValueId>(*operands));
  undo.wanted = !made;
  return made;
}

}  // namespace brontes::record
