#include <brontes/batch.hpp>

#include "api/access.hpp"
#include "api/program.hpp"
#include "plan/plan.hpp"
#include "record/dump.hpp"
#include "record/graph.hpp"
#include "submit/program.hpp"
#include "submit/transfer.hpp"

#include <array>
#include <atomic>
#include <unordered_map>

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
  TensorOwner owner{next_serial(), 0};
  record::Graph graph;
  Error error;
  BatchStats stats;
  /// What the graph's resource ids mean: imported buffers and arenas of earlier executions.
  std::vector<std::shared_ptr<vk::Allocation>> resources;
  /// By resource id: whose arena it is; null for a buffer.
  std::vector<std::unique_ptr<submit::Program>> programs;
  std::unordered_map<const vk::Allocation*, ResourceId> buffers;
  /// An arena from before reset(), for the next execution.
  std::shared_ptr<vk::Allocation> spare_arena;

  void fail(Error e) {
    if (!error) error = std::move(e);
  }

  Tensor finish(Result<ValueId> recorded) {
    if (!recorded) {
      fail(recorded.error());
      return {};
    }
    return TensorAccess::make(owner, *recorded, graph.values()[*recorded]);
  }

  /// Why nothing can be done, if so.
  Error check_device(const char* op) const {
    if (context) return {};
    return Error(Errc::invalid_argument, std::string(op) + ": the batch's Device had been moved from");
  }

  template <class Record, class... Tensors>
  Tensor apply(const char* op, Record record, const Tensors&... tensors) {
    Error e;
    // The first bad operand counts.
    static_cast<void>(((e = TensorAccess::check(op, tensors, owner), !e) && ...));
    if (e) {
      fail(std::move(e));
      return {};
    }
    const std::array<ValueId, sizeof...(Tensors)> inputs{TensorAccess::id(tensors)...};
    return finish(record(inputs));
  }

  template <class... Tensors>
  Tensor elementwise(ElementwiseOp op, float p, float q, const Tensors&... tensors) {
    auto record = [&](auto& inputs) { return graph.elementwise(op, inputs, p, q); };
    return apply(record::info(op).name, record, tensors...);
  }

  template <class... Tensors>
  Tensor reduce(ReduceOp op, const Tensors&... tensors) {
    auto record = [&](auto& inputs) { return graph.reduce(op, inputs); };
    return apply(record::name(op), record, tensors...);
  }

  MatmulOptions with_default_kernel(MatmulOptions matmul) const {
    if (matmul.kernel == MatmulKernel::automatic) matmul.kernel = options.matmul;
    return matmul;
  }

  ResourceId add_resource(std::shared_ptr<vk::Allocation> memory, std::unique_ptr<submit::Program> program) {
    resources.push_back(std::move(memory));
    programs.push_back(std::move(program));
    return static_cast<ResourceId>(resources.size() - 1);
  }

  /// The resource id of a buffer, the same for the same memory, or an error.
  Result<ResourceId> resource_of(const char* op, const Buffer& buffer) {
    return resource_of(op, {&BufferAccess::memory(buffer), 1}, "buffer", buffer.shape());
  }
  /// Of the first part; the others have the ids that follow.
  Result<ResourceId> resource_of(const char* op, const Weight& weight) {
    return resource_of(op, WeightAccess::parts(weight), "weight", weight.shape());
  }
  Result<ResourceId> resource_of(const char* op, Span<const std::shared_ptr<vk::Allocation>> memories, const char* what,
                                 const Shape& shape) {
    if (!context || memories.empty() || !memories[0]) {
      return Error(Errc::invalid_argument, std::string(op) + ": the Device or the " + what + " has been moved from");
    }
    if (&memories[0]->context() != context.get()) {
      return Error(Errc::invalid_argument,
                   std::string(op) + ": the " + what + " " + to_string(shape) + " belongs to another device");
    }
    auto [entry, fresh] = buffers.try_emplace(memories[0].get(), ResourceId{});
    if (fresh) {
      entry->second = static_cast<ResourceId>(resources.size());
      for (const auto& memory : memories) add_resource(memory, nullptr);
    }
    return entry->second;
  }

  Result<plan::Plan> plan(bool to_run) const;
  Result<std::unique_ptr<submit::Program>> build(encode::Use use, const std::shared_ptr<vk::Allocation>& spare) const;
  Result<Submission> submit();
  Error read(const Tensor& x, Span<float> out) const;
};

Result<plan::Plan> Batch::State::plan(bool to_run) const {
  plan::PlanOptions planning;
  planning.keep_all = options.keep_all;
  planning.keep_marked_only = options.keep_marked_only;
  planning.fuse = options.fuse;
  planning.reuse_memory = options.reuse_memory;
  planning.work_per_submit = options.work_per_submit;
  planning.batch_invariant = options.batch_invariant;
  planning.programs = &context->programs();
  planning.only_ask = !to_run;
  return plan::make_plan(graph, context->traits(), planning);
}

// The arena may be the `spare` one, if that is idle and neither too small nor much too large.
Result<std::unique_ptr<submit::Program>> Batch::State::build(encode::Use use,
                                                             const std::shared_ptr<vk::Allocation>& spare) const {
  if (error) return error;
  if (Error e = check_device("execute")) return e;
  auto planned = plan(true);
  if (!planned) return planned.error();
  submit::SharedMemory shared;
  const std::uint64_t needed = planned->arena_bytes;
  if (spare && needed <= spare->bytes() && spare->bytes() / 4 <= needed && context->queue().reached(spare->last_use)) {
    shared.arena = spare;
  }
  auto program = submit::Program::create(context, std::move(*planned), resources, use, shared);
  if (!program) return program.error();
  const auto& places = (*program)->plan().uploads;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (Error e = (*program)->write(places[i].offset, graph.uploads()[i].data.get(), places[i].bytes)) return e;
  }
  return program;
}

Result<Submission> Batch::State::submit() {
  if (!error && graph.first_pending_value() == graph.values().size() &&
      graph.first_pending_node() == graph.nodes().size()) {
    return Submission();
  }
  auto built = build(encode::Use::once, spare_arena);
  if (!built) return built.error();
  if ((*built)->arena() == spare_arena) spare_arena.reset();
  std::unique_ptr<submit::Program> program = std::move(*built);
  auto value = program->submit();
  if (!value) return value.error();
  program->finish();
  submit::add(stats, program->stats());

  // What still exists: readable values, and uploads, which stay usable as operands.
  std::vector<record::Graph::Residence> residences;
  const auto resource = static_cast<ResourceId>(resources.size());
  for (const plan::Placement& p : program->plan().uploads) residences.push_back({p.value, resource, p.offset, false});
  for (const plan::Placement& p : program->plan().readable) residences.push_back({p.value, resource, p.offset, true});
  auto arena = program->arena();
  add_resource(std::move(arena), std::move(program));
  graph.executed(residences);
  return SubmissionAccess::make(context, *value);
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

Tensor Batch::import_weight(const Weight& weight) {
  auto first = state_->resource_of("import_weight", weight);
  if (!first) {
    state_->fail(first.error());
    return {};
  }
  return state_->finish(
      state_->graph.import_weight(weight.shape(), weight.dtype(), *first, WeightAccess::part_rows(weight)));
}

Tensor Batch::fill(float value, Shape shape) { return state_->finish(state_->graph.fill(value, shape)); }

// One method per row of the table, by its tensor and scalar operands. fill() has no operand to take a
// shape from and is above.
#define BRONTES_METHOD_0_1(op)
#define BRONTES_METHOD_1_0(op) \
  Tensor Batch::op(Tensor x) { return state_->elementwise(ElementwiseOp::op, 0, 0, x); }
#define BRONTES_METHOD_1_1(op) \
  Tensor Batch::op(Tensor x, float p) { return state_->elementwise(ElementwiseOp::op, p, 0, x); }
#define BRONTES_METHOD_1_2(op) \
  Tensor Batch::op(Tensor x, float p, float q) { return state_->elementwise(ElementwiseOp::op, p, q, x); }
#define BRONTES_METHOD_2_0(op) \
  Tensor Batch::op(Tensor x, Tensor y) { return state_->elementwise(ElementwiseOp::op, 0, 0, x, y); }
#define BRONTES_OP(name, code, arity, scalars, formula) BRONTES_METHOD_##arity##_##scalars(name)
#include "elementwise.def"
#undef BRONTES_OP

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

Tensor Batch::linear(Tensor x, Tensor w, Tensor bias) {
  const Tensor product = linear(x, w);
  if (product.valid() && bias.valid() && bias.shape() != Shape(product.shape()[1])) {
    state_->fail(Error(Errc::shape_mismatch, "linear: a bias of " + to_string(bias.shape()) + " for a product of " +
                                                 to_string(product.shape()) + "; expected [" +
                                                 std::to_string(product.shape()[1]) + "]"));
    return {};
  }
  return add(product, bias);
}

void Batch::store(Tensor x, const Buffer& destination) {
  if (Error e = TensorAccess::check("store", x, state_->owner)) return state_->fail(std::move(e));
  auto resource = state_->resource_of("store", destination);
  if (!resource) return state_->fail(resource.error());
  if (Error e = state_->graph.store(TensorAccess::id(x), *resource, destination.shape())) state_->fail(std::move(e));
}

Tensor Batch::keep(Tensor x) {
  if (Error e = TensorAccess::check("keep", x, state_->owner)) {
    state_->fail(std::move(e));
    return {};
  }
  const record::Graph& graph = state_->graph;
  if (TensorAccess::id(x) < graph.first_pending_value() && !graph.values()[TensorAccess::id(x)].readable) {
    state_->fail(Error(Errc::not_kept, "keep: the value " + to_string(x.shape()) +
                                           " has been executed already; mark it before execute()"));
    return {};
  }
  state_->graph.keep(TensorAccess::id(x));
  return x;
}

Result<Submission> Batch::submit() { return state_->submit(); }

Error Batch::execute() {
  auto submission = submit();
  if (!submission) return submission.error();
  return submission->wait();
}

Result<Program> Batch::compile() {
  auto program = state_->build(encode::Use::often, nullptr);
  if (!program) return program.error();
  auto state = std::make_unique<Program::State>(
      Program::State{state_->context, state_->owner, state_->graph.without_data(), std::move(*program)});
  return Program(std::move(state));
}

Error Batch::State::read(const Tensor& x, Span<float> out) const {
  if (Error e = TensorAccess::check("read", x, owner)) return e;
  const record::Value& value = graph.values()[TensorAccess::id(x)];
  if (!value.readable && !value.weight) {
    if (TensorAccess::id(x) >= graph.first_pending_value()) {
      return Error(Errc::not_executed, "read: the value " + to_string(x.shape()) + " has not been executed yet");
    }
    return not_kept(value.shape);
  }
  if (Error e = check_output(value, out)) return e;
  const std::uint64_t bytes = out.size() * sizeof(float);
  if (const auto& program = programs[value.resource]) return program->read(value.offset, out.data(), bytes);
  return submit::read(*resources[value.resource], value.offset, out.data(), bytes);
}

Error Batch::read(Tensor x, Span<float> out) const { return state_->read(x, out); }

Result<std::vector<float>> Batch::read(Tensor x) const {
  return read_vector(x.size(), [&](Span<float> out) { return state_->read(x, out); });
}

void Batch::reset() {
  auto fresh = std::make_unique<State>(state_->context, state_->options);
  fresh->owner = {state_->owner.serial, state_->owner.generation + 1};
  // Memory that has been touched is worth keeping: the largest arena, and room for uploads.
  fresh->spare_arena = std::move(state_->spare_arena);
  for (const auto& program : state_->programs) {
    if (!program || !program->arena()) continue;
    if (!fresh->spare_arena || fresh->spare_arena->bytes() < program->arena()->bytes()) {
      fresh->spare_arena = program->arena();
    }
  }
  fresh->graph.reuse_blocks(std::move(state_->graph));
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

Result<std::string> Batch::dump(DumpFormat format, DumpStage stage) const {
  if (stage == DumpStage::recorded) return record::dump(state_->graph, format);
  if (state_->error) return state_->error;
  if (Error e = state_->check_device("dump")) return e;
  auto plan = state_->plan(false);
  if (!plan) return plan.error();
  return plan::dump(*plan, state_->graph, format);
}

}  // namespace brontes
