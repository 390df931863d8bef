#include "record/graph.hpp"

#include "record/elementwise.hpp"
#include "record/shape.hpp"

#include <cstring>
#include <new>
#include <optional>
#include <utility>

namespace brontes::record {
namespace {

Error shape_error(const char* op, const std::string& what) {
  return Error(Errc::shape_mismatch, std::string(op) + ": " + what);
}

std::size_t words_of(std::uint64_t bytes) { return (bytes + sizeof(float) - 1) / sizeof(float); }

Error no_memory_for(std::uint64_t elements) {
  return Error(Errc::out_of_memory, "upload: no host memory for " + std::to_string(elements) + " elements");
}

// The last bit is that of all operands from there on.
bool has_bit(std::uint32_t mask, std::size_t k) { return (mask >> std::min<std::size_t>(k, 31) & 1u) != 0; }

}  // namespace

Error Graph::check_size(const char* op, const Shape& shape, DType dtype) const {
  if (!shape.valid() || shape.rank() == 0) {
    return Error(Errc::invalid_argument, std::string(op) + ": a shape has 1 to 8 dims, none of them negative");
  }
  const std::uint64_t count = shape.count();
  const auto bytes = count == Shape::no_count ? std::nullopt : product(count, block_bytes(dtype));
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

Error Graph::check_exists(const char* op, ValueId id) const {
  if (id >= first_pending_value_ || values_[id].resource != no_resource) return {};
  return Error(Errc::not_kept, std::string(op) + ": operand %" + std::to_string(id) + " " +
                                   to_string(values_[id].shape) +
                                   " is from an earlier execute() and was not kept; mark it with "
                                   "keep() before executing");
}

Result<ValueId> Graph::reshape(const char* op, ValueId x, const Shape& shape) {
  if (Error e = check_exists(op, x)) return e;
  if (Error e = check_size(op, shape, values_[x].weight ? DType::f32 : values_[x].dtype)) return e;
  Value view = values_[x];
  if (view.weight) {
    return Error(Errc::invalid_argument,
                 std::string(op) + ": " + to_string(view.shape) + " is a weight, and has no other shape");
  }
  if (view.shape.count() != shape.count()) {
    return shape_error(op, to_string(view.shape) + " has " + std::to_string(view.shape.count()) + " elements and " +
                               to_string(shape) + " has " + std::to_string(shape.count()) +
                               "; expected the same number");
  }
  reserve_one_more(values_);
  view.shape = shape;
  view.keep = false;
  view.consumers = 0;
  view.view_node = no_view;
  // What has its place is seen there; what is still to be made is seen through its maker.
  if (view.resource == no_resource) view.base = base(x);
  ++values_[x].consumers;
  values_.push_back(view);
  return static_cast<ValueId>(values_.size() - 1);
}

Error Graph::check_operands(const Op& op, Span<const ValueId> inputs) const {
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Value& value = values_[inputs[k]];
    if (Error e = check_exists(op.name, inputs[k])) return e;
    if (value.weight && !has_bit(op.weights, k)) {
      return Error(Errc::invalid_argument, std::string(op.name) + ": operand %" + std::to_string(inputs[k]) + " " +
                                               to_string(value.shape) +
                                               " is a weight, which only linear() and matmul() take, as their second "
                                               "operand");
    }
    const bool number = value.dtype == DType::f32 || (value.dtype == DType::f16 && !op.no_halves);
    if (!value.weight && !number && !has_bit(op.types, k)) {
      return Error(Errc::type_mismatch, std::string(op.name) + ": operand %" + std::to_string(inputs[k]) + " " +
                                            to_string(value.shape) + " is " + to_string(value.dtype) +
                                            "; expected f32");
    }
  }
  return {};
}

void Graph::push_node(const Op& op, Span<const ValueId> inputs, const Attributes& attributes, ValueId output,
                      std::size_t output_count, ResourceId destination) noexcept {
  Node node;
  node.op = &op;
  node.first_input = static_cast<std::uint32_t>(operands_.size());
  node.input_count = static_cast<std::uint32_t>(inputs.size());
  node.output = output;
  node.output_count = static_cast<std::uint32_t>(output_count);
  node.destination = destination;
  node.attributes = attributes;
  for (ValueId id : inputs) {
    operands_.push_back(id);
    ++values_[id].consumers;
  }
  nodes_.push_back(node);
}

Result<ValueId> Graph::apply(const Op& op, Span<const ValueId> inputs, Attributes attributes) {
  return with_operands(op, inputs, [&](Span<const ValueId> operands) -> Result<ValueId> {
    std::vector<ValueType> results;
    if (Error e = op.infer(*this, operands, attributes, results)) return e;
    return append(op, operands, attributes, results);
  });
}

Result<std::vector<ValueId>> Graph::widened(Span<const ValueId> inputs) {
  std::vector<ValueId> operands(inputs.begin(), inputs.end());
  reserve(inputs.size());
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (!values_[inputs[k]].half()) continue;
    const auto same = std::find(inputs.begin(), inputs.begin() + k, inputs[k]);
    if (same != inputs.begin() + k) {
      operands[k] = operands[static_cast<std::size_t>(same - inputs.begin())];
      continue;
    }
    const auto wide = cast(*this, inputs[k], DType::f32);
    if (!wide) return wide.error();
    operands[k] = *wide;
  }
  return operands;
}

Error Graph::check(const Op& op, Span<const ValueId> inputs, Span<const ValueType> results) const {
  if (Error e = check_operands(op, inputs)) return e;
  for (const ValueType& result : results) {
    if (Error e = check_size(op.name, result.shape, result.dtype)) return e;
  }
  return {};
}

void Graph::reserve(std::size_t count) {
  reserve_more(nodes_, count);
  reserve_more(operands_, 3 * count);
  reserve_more(values_, count);
}

Graph::Mark Graph::mark(Span<const ValueId> consumed) const noexcept {
  Mark mark{values_.size(), nodes_.size(), operands_.size(), {}};
  for (std::size_t i = 0; i < consumed.size(); ++i) {
    mark.consumed[i] = {consumed[i], values_[consumed[i]].consumers};
  }
  return mark;
}

void Graph::forget_since(const Mark& mark) noexcept {
  for (std::size_t i = mark.operands; i < operands_.size(); ++i) --values_[operands_[i]].consumers;
  // A view consumes what it is a view of, which is no operand.
  for (const Mark::Consumed& c : mark.consumed) {
    if (c.value != no_value) values_[c.value].consumers = c.consumers;
  }
  values_.erase(values_.begin() + static_cast<std::ptrdiff_t>(mark.values), values_.end());
  nodes_.erase(nodes_.begin() + static_cast<std::ptrdiff_t>(mark.nodes), nodes_.end());
  operands_.erase(operands_.begin() + static_cast<std::ptrdiff_t>(mark.operands), operands_.end());
}

Result<ValueId> Graph::append(const Op& op, Span<const ValueId> inputs, const Attributes& attributes,
                              Span<const ValueType> results, std::shared_ptr<const void> kept) {
  if (Error e = check(op, inputs, results)) return e;
  reserve_one_more(nodes_);
  reserve_more(operands_, inputs.size());
  reserve_more(values_, results.size());
  if (kept) {
    reserve_one_more(kept_);
    kept_.push_back(std::move(kept));
  }
  const auto output = static_cast<ValueId>(values_.size());
  push_node(op, inputs, attributes, output, results.size(), no_resource);
  for (const ValueType& result : results) {
    Value value;
    value.shape = result.shape;
    value.dtype = result.dtype;
    values_.push_back(value);
  }
  return output;
}

Result<ValueId> Graph::append_view(const Op& op, ValueId seen, ValueId x, const Attributes& attributes,
                                   const Shape& shape) {
  const ValueType result{shape, values_[x].dtype};
  auto made = append(op, {&x, 1}, attributes, {&result, 1});
  if (!made) return made;
  values_[*made].view_node = static_cast<std::uint32_t>(nodes_.size() - 1);
  if (seen != x) ++values_[seen].consumers;
  return made;
}

Error Graph::append_effect(const Op& op, Span<const ValueId> inputs, const Attributes& attributes,
                           ResourceId destination) {
  if (Error e = check_operands(op, inputs)) return e;
  reserve_one_more(nodes_);
  reserve_more(operands_, inputs.size());
  push_node(op, inputs, attributes, no_value, 0, destination);
  after_effects_ = nodes_.size();
  return {};
}

// Memory that was used before, if some is of about the right size in words, else new. No data: there is none.
Upload Graph::take_block(std::size_t count) {
  for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
    if (block->room < count || block->room / 2 > count) continue;
    Upload taken = std::move(*block);
    blocks_.erase(block);
    return taken;
  }
  Upload fresh;
  fresh.value = no_value;
  fresh.data.reset(new (std::nothrow) float[count]);
  fresh.room = count;
  return fresh;
}

// The memory of uploads that are done with is for those that come: as much as was just used, and what was used not long
// before. Small pieces are not worth it.
void Graph::give_blocks() noexcept {
  constexpr std::size_t worth_keeping = 16 << 10;
  constexpr std::uint32_t most_unused = 4;
  for (Upload& block : blocks_) ++block.executions_unused;
  std::erase_if(blocks_, [](const Upload& block) { return block.executions_unused >= most_unused; });
  std::vector<Upload> uploads = std::exchange(uploads_, {});
  try {
    blocks_.reserve(blocks_.size() + uploads.size());
  } catch (const std::bad_alloc&) {
    return;  // it is only kept to be quick
  }
  for (Upload& upload : uploads) {
    if (!upload.data || upload.room < worth_keeping) continue;
    upload.executions_unused = 0;
    blocks_.push_back(std::move(upload));
  }
  uploads.clear();
  uploads_ = std::move(uploads);  // empty, with its memory
}

std::uint64_t Graph::kept_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const Upload& block : blocks_) bytes += block.room * sizeof(float);
  return bytes;
}

void Graph::restart() noexcept {
  if (!uploads_.empty()) give_blocks();
  landing_.reset();
  values_.clear();
  nodes_.clear();
  operands_.clear();
  kept_.clear();
  first_pending_value_ = first_pending_node_ = after_effects_ = 0;
}

Error Graph::leave_landing() {
  for (Upload& upload : uploads_) {
    if (upload.landed == Upload::not_landed) continue;
    const Value& value = values_[upload.value];
    Upload block = take_block(words_of(value.bytes()));
    if (!block.data) return no_memory_for(value.shape.count());
    std::memcpy(block.data.get(), data_of(upload), value.bytes());
    block.value = upload.value;
    upload = std::move(block);
  }
  landing_.reset();
  return {};
}

Result<ValueId> Graph::upload(Span<const float> data, const Shape& shape) {
  return upload_elements(data.data(), data.size(), DType::f32, shape);
}

Result<ValueId> Graph::upload_i32(Span<const std::int32_t> data, const Shape& shape) {
  return upload_elements(data.data(), data.size(), DType::i32, shape);
}

Result<ValueId> Graph::upload_f16(Span<const std::uint16_t> data, const Shape& shape) {
  return upload_elements(data.data(), data.size(), DType::f16, shape);
}

Result<ValueId> Graph::upload_elements(const void* data, std::size_t count, DType dtype, const Shape& shape) {
  const char* op = "upload";
  if (data == nullptr && count != 0) {
    return Error(Errc::null_data, "upload: a null pointer for " + std::to_string(count) + " elements");
  }
  Shape actual = shape;
  if (shape.rank() == 0) {
    if (count == 0) {
      return Error(Errc::empty_input, "upload: no data; a tensor of 0 elements needs an explicit shape, such as {0}");
    }
    actual = Shape(count);
  }
  if (Error e = check_size(op, actual, dtype)) return e;
  if (actual.count() != count) {
    return shape_error(op, std::to_string(count) + " elements of data for shape " + to_string(actual) + ", which has " +
                               std::to_string(actual.count()));
  }
  reserve_one_more(values_);
  reserve_one_more(uploads_);
  Upload block;
  const std::uint64_t bytes = row_bytes(dtype, count);
  if (count != 0 && landing_ && landing_->has_room(bytes)) {
    block.landed = landing_->end();
    if (Error e = landing_->write(block.landed, data, bytes)) return e;
    landing_->add(bytes);
  } else if (count != 0) {
    block = take_block(words_of(bytes));
    if (!block.data) return no_memory_for(count);
    std::memcpy(block.data.get(), data, bytes);
  }
  const auto id = static_cast<ValueId>(values_.size());
  Value value;
  value.shape = actual;
  value.dtype = dtype;
  values_.push_back(value);
  block.value = id;
  uploads_.push_back(std::move(block));
  return id;
}

Result<ValueId> Graph::input(const Shape& shape) {
  if (Error e = check_size("input", shape, DType::f32)) return e;
  reserve_one_more(values_);
  reserve_one_more(uploads_);
  Value value;
  value.shape = shape;
  values_.push_back(value);
  uploads_.emplace_back().value = static_cast<ValueId>(values_.size() - 1);
  return uploads_.back().value;
}

ValueId Graph::import(const Shape& shape, ResourceId resource, DType dtype) {
  Value value;
  value.shape = shape;
  value.dtype = dtype;
  value.resource = resource;
  value.imported = true;
  value.readable = true;
  values_.push_back(value);
  return static_cast<ValueId>(values_.size() - 1);
}

ValueId Graph::import_weight(const Shape& shape, DType dtype, ResourceId first, std::uint64_t part_rows) {
  const ValueId id = import(shape, first, dtype);
  Value& value = values_[id];
  value.weight = true;
  value.readable = false;
  value.part_rows = part_rows;
  return id;
}

void Graph::executed(Span<const Residence> residences) noexcept {
  for (const Residence& r : residences) {
    values_[r.value].resource = r.resource;
    values_[r.value].offset = r.offset;
    values_[r.value].readable = r.readable;
  }
  // Views of what still exists exist too.
  for (std::size_t id = first_pending_value_; id < values_.size(); ++id) {
    Value& view = values_[id];
    view.view_node = no_view;
    if (view.base == no_value) continue;
    const Value& whole = values_[view.base];
    if (view.resource == no_resource && whole.resource != no_resource) {
      view.resource = whole.resource;
      view.offset = whole.offset;
    }
    view.base = no_value;
  }
  give_blocks();
  landing_.reset();
  first_pending_value_ = values_.size();
  first_pending_node_ = nodes_.size();
}

Graph Graph::without_data() const {
  Graph copy(max_value_bytes_);
  copy.values_ = values_;
  copy.nodes_ = nodes_;
  copy.operands_ = operands_;
  copy.kept_ = kept_;
  copy.first_pending_value_ = first_pending_value_;
  copy.first_pending_node_ = first_pending_node_;
  copy.after_effects_ = after_effects_;
  return copy;
}

}  // namespace brontes::record
