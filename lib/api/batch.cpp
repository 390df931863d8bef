#include <brontes/batch.hpp>

#include "api/access.hpp"
#include "plan/plan.hpp"
#include "record/graph.hpp"
#include "submit/program.hpp"
#include "submit/transfer.hpp"

#include <atomic>
#include <optional>

namespace brontes {
namespace {

using record::ElementwiseOp;
using record::ReduceOp;
using record::ResourceId;
using record::ValueId;

// Batches are told apart for as long as the process lives. 0 marks an invalid Tensor.
std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> serial{0};
  return ++serial;
}

}  // namespace

struct Batch::State {
  State(std::shared_ptr<vk::Context> device_context, const BatchOptions& batch_options)
      : context(std::move(device_context)),
        options(batch_options),
        graph(context ? context->traits().max_storage_range : 0) {}

  std::shared_ptr<vk::Context> context;  // null when the Device had been moved from
  BatchOptions options;
  std::uint64_t serial = next_serial();
  std::uint32_t generation = 0;
  record::Graph graph;
  Error error;
  BatchStats stats;
  /// What the graph's resource ids mean: imported buffers and arenas of earlier executions.
  std::vector<std::shared_ptr<vk::Allocation>> resources;
  /// By resource id; set for arenas, whose read-back range may lie apart.
  std::vector<std::optional<submit::Results>> results;

  void fail(Error e) {
    if (!error) error = std::move(e);
  }

  Tensor finish(Result<ValueId> recorded) {
    if (!recorded) {
      fail(recorded.error());
      return {};
    }
    const record::Value& value = graph.values()[*recorded];
    return Tensor(serial, generation, *recorded, value.shape, value.dtype);
  }

  /// Why `x` cannot be used by `op`, if so.
  Error check(const char* op, const Tensor& x) const {
    if (!context) return Error(Errc::invalid_argument, std::string(op) + ": the batch's Device had been moved from");
    if (!x.valid()) {
      return Error(Errc::invalid_tensor, std::string(op) +
                                             ": the tensor is empty: default-constructed, or the "
                                             "result of an op that failed");
    }
    if (x.serial_ != serial) {
      return Error(Errc::foreign_tensor,
                   std::string(op) + ": the tensor " + to_string(x.shape()) + " belongs to another batch");
    }
    if (x.generation_ != generation) {
      return Error(Errc::stale_tensor,
                   std::string(op) + ": the tensor " + to_string(x.shape()) + " is from before the batch was reset");
    }
    return {};
  }

  template <class Record, class... Tensors>
  Tensor apply(const char* op, Record record, const Tensors&... tensors) {
    Error e;
    // The first bad operand counts.
    static_cast<void>(((e = check(op, tensors), !e) && ...));
    if (e) {
      fail(std::move(e));
      return {};
    }
    const std::array<ValueId, sizeof...(Tensors)> inputs{tensors.index_...};
    return finish(record(inputs));
  }

  template <class... Tensors>
  Tensor elementwise(ElementwiseOp op, float p, float q, const Tensors&... tensors) {
    return apply(
        record::info(op).name, [&](auto& inputs) { return graph.elementwise(op, inputs, p, q); }, tensors...);
  }

  template <class... Tensors>
  Tensor reduce(ReduceOp op, const Tensors&... tensors) {
    return apply(
        record::name(op), [&](auto& inputs) { return graph.reduce(op, inputs); }, tensors...);
  }

  MatmulOptions with_default_kernel(MatmulOptions matmul) const {
    if (matmul.kernel == MatmulKernel::automatic) matmul.kernel = options.matmul;
    return matmul;
  }

  /// The resource id of a buffer, the same for the same memory, or an error.
  Result<ResourceId> resource_of(const char* op, const Buffer& buffer) {
    const auto& memory = BufferAccess::memory(buffer);
    if (!context || !memory) {
      return Error(Errc::invalid_argument, std::string(op) + ": the Device or Buffer has been moved from");
    }
    if (memory->context() != context) {
      return Error(Errc::invalid_argument,
                   std::string(op) + ": the buffer " + to_string(buffer.shape()) + " belongs to another device");
    }
    for (std::size_t i = 0; i < resources.size(); ++i) {
      if (resources[i] == memory) return static_cast<ResourceId>(i);
    }
    resources.push_back(memory);
    results.emplace_back();
    return static_cast<ResourceId>(resources.size() - 1);
  }

  Error execute();
  Error read(const Tensor& x, Span<float> out) const;
};

Error Batch::State::execute() {
  if (error) return error;
  if (!context) return Error(Errc::invalid_argument, "execute: the batch's Device had been moved from");
  auto plan = plan::make_plan(graph, context->traits(), {options.keep_all});
  if (!plan) return plan.error();
  auto done = submit::run(context, graph, *plan, resources, stats);
  if (!done) return done.error();

  std::vector<record::Graph::Residence> residences;
  if (done->arena) {
    const auto resource = static_cast<ResourceId>(resources.size());
    resources.push_back(done->arena);
    results.emplace_back(std::move(*done));
    // Uploads stay usable as operands, readable or not.
    for (const plan::Placement& p : plan->uploads) residences.push_back({p.value, resource, p.offset});
    for (const plan::Placement& p : plan->readable) residences.push_back({p.value, resource, p.offset});
  }
  graph.executed(residences);
  return {};
}

Batch::Batch(const Device& device, const BatchOptions& options)
    : state_(std::make_unique<State>(DeviceAccess::context(device), options)) {}
Batch::Batch(Batch&&) noexcept = default;
Batch& Batch::operator=(Batch&&) noexcept = default;
Batch::~Batch() = default;

Tensor Batch::upload(Span<const float> data) { return upload(data, Shape()); }

Tensor Batch::upload(Span<const float> data, Shape shape) { return state_->finish(state_->graph.upload(data, shape)); }

Tensor Batch::upload(std::initializer_list<float> data) { return upload(data, Shape()); }

Tensor Batch::upload(std::initializer_list<float> data, Shape shape) {
  return upload(Span<const float>(data.begin(), data.size()), shape);
}

Tensor Batch::import_buffer(const Buffer& buffer) {
  auto resource = state_->resource_of("import_buffer", buffer);
  if (!resource) {
    state_->fail(resource.error());
    return {};
  }
  return state_->finish(state_->graph.import(buffer.shape(), *resource));
}

Tensor Batch::fill(float value, Shape shape) { return state_->finish(state_->graph.fill(value, shape)); }

#define BRONTES_UNARY(op) \
  Tensor Batch::op(Tensor x) { return state_->elementwise(ElementwiseOp::op, 0, 0, x); }
BRONTES_UNARY(relu)
BRONTES_UNARY(neg)
BRONTES_UNARY(abs)
BRONTES_UNARY(exp)
BRONTES_UNARY(log)
BRONTES_UNARY(sqrt)
BRONTES_UNARY(sigmoid)
BRONTES_UNARY(tanh)
BRONTES_UNARY(swish)
BRONTES_UNARY(gelu)
BRONTES_UNARY(gelu_tanh)
BRONTES_UNARY(copy)
#undef BRONTES_UNARY

Tensor Batch::scale(Tensor x, float factor) { return state_->elementwise(ElementwiseOp::scale, factor, 0, x); }
Tensor Batch::offset(Tensor x, float amount) { return state_->elementwise(ElementwiseOp::offset, amount, 0, x); }
Tensor Batch::clamp(Tensor x, float low, float high) { return state_->elementwise(ElementwiseOp::clamp, low, high, x); }

#define BRONTES_BINARY(op) \
  Tensor Batch::op(Tensor x, Tensor y) { return state_->elementwise(ElementwiseOp::op, 0, 0, x, y); }
BRONTES_BINARY(add)
BRONTES_BINARY(sub)
BRONTES_BINARY(mul)
BRONTES_BINARY(div)
BRONTES_BINARY(min)
BRONTES_BINARY(max)
#undef BRONTES_BINARY

Tensor Batch::sum(Tensor x) { return state_->reduce(ReduceOp::sum, x); }
Tensor Batch::dot(Tensor x, Tensor y) { return state_->reduce(ReduceOp::dot, x, y); }
Tensor Batch::max(Tensor x) { return state_->reduce(ReduceOp::max, x); }
Tensor Batch::min(Tensor x) { return state_->reduce(ReduceOp::min, x); }

Tensor Batch::matmul(Tensor a, Tensor b, const MatmulOptions& options) {
  return state_->apply(
      "matmul", [&](auto& in) { return state_->graph.matmul(in[0], in[1], state_->with_default_kernel(options)); }, a,
      b);
}

Tensor Batch::matmul(Tensor a, Tensor b, std::uint64_t m, std::uint64_t k, std::uint64_t n,
                     const MatmulOptions& options) {
  return state_->apply(
      "matmul",
      [&](auto& in) { return state_->graph.matmul(in[0], in[1], m, k, n, state_->with_default_kernel(options)); }, a,
      b);
}

Tensor Batch::linear(Tensor x, Tensor w) {
  MatmulOptions options;
  options.layout = Layout::nk;
  return matmul(x, w, options);
}

Tensor Batch::linear(Tensor x, Tensor w, Tensor bias) { return add(linear(x, w), bias); }

void Batch::store(Tensor x, const Buffer& destination) {
  if (Error e = state_->check("store", x)) return state_->fail(std::move(e));
  auto resource = state_->resource_of("store", destination);
  if (!resource) return state_->fail(resource.error());
  if (Error e = state_->graph.store(x.index_, *resource, destination.shape())) state_->fail(std::move(e));
}

Tensor Batch::keep(Tensor x) {
  if (Error e = state_->check("keep", x)) {
    state_->fail(std::move(e));
    return {};
  }
  const record::Graph& graph = state_->graph;
  if (x.index_ < graph.first_pending_value() && graph.values()[x.index_].resource == record::no_resource) {
    state_->fail(Error(Errc::not_kept, "keep: the value " + to_string(x.shape()) +
                                           " has been executed already; mark it before execute()"));
    return {};
  }
  state_->graph.keep(x.index_);
  return x;
}

Error Batch::execute() { return state_->execute(); }

Error Batch::State::read(const Tensor& x, Span<float> out) const {
  const record::Value& value = graph.values()[x.index_];
  if (value.resource == record::no_resource) {
    if (x.index_ >= graph.first_pending_value()) {
      return Error(Errc::not_executed, "read: the value " + to_string(x.shape()) + " has not been executed yet");
    }
    return Error(Errc::not_kept, "read: the value " + to_string(x.shape()) +
                                     " was consumed by other ops and may not exist any more; mark it with keep() "
                                     "before execute()");
  }
  if (out.data() == nullptr && out.size() != 0) {
    return Error(Errc::null_data, "read: a null pointer for " + std::to_string(out.size()) + " elements");
  }
  if (out.size() != value.shape.count()) {
    return Error(Errc::shape_mismatch, "read: " + std::to_string(out.size()) + " elements of output for a value of " +
                                           to_string(value.shape) + ", which has " +
                                           std::to_string(value.shape.count()));
  }
  const std::uint64_t bytes = out.size() * sizeof(float);
  if (const auto& from = results[value.resource]) return from->read(value.offset, out.data(), bytes);
  return submit::read(*resources[value.resource], value.offset, out.data(), bytes);
}

Error Batch::read(Tensor x, Span<float> out) const {
  if (Error e = state_->check("read", x)) return e;
  return state_->read(x, out);
}

Result<std::vector<float>> Batch::read(Tensor x) const {
  if (Error e = state_->check("read", x)) return e;
  std::vector<float> out(x.size());
  if (Error e = state_->read(x, out)) return e;
  return out;
}

void Batch::reset() {
  auto fresh = std::make_unique<State>(state_->context, state_->options);
  fresh->serial = state_->serial;
  fresh->generation = state_->generation + 1;
  state_ = std::move(fresh);
}

const Error& Batch::error() const noexcept { return state_->error; }

Error Batch::clear_error() noexcept { return std::exchange(state_->error, Error()); }

std::size_t Batch::num_operations() const noexcept { return state_->graph.nodes().size(); }
std::size_t Batch::num_buffers() const noexcept { return state_->graph.values().size(); }

BatchStats Batch::stats() const noexcept {
  BatchStats stats = state_->stats;
  stats.operations = num_operations();
  stats.values = num_buffers();
  return stats;
}

Result<std::string> Batch::dump() const {
  if (state_->error) return state_->error;
  if (!state_->context) return Error(Errc::invalid_argument, "dump: the batch's Device had been moved from");
  auto plan = plan::make_plan(state_->graph, state_->context->traits(), {state_->options.keep_all});
  if (!plan) return plan.error();
  return plan::dump(*plan, state_->graph);
}

}  // namespace brontes
