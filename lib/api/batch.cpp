#include <brontes/batch.hpp>
#include <brontes/prepare.hpp>

#include "api/access.hpp"
#include "api/elements.hpp"
#include "api/kernel.hpp"
#include "api/program.hpp"
#include "api/spare_arena.hpp"
#include "ops/catalogue.hpp"
#include "ops/matmul.hpp"
#include "ops/reduce.hpp"
#include "ops/row.hpp"
#include "ops/store.hpp"
#include "plan/labels.hpp"
#include "plan/plan.hpp"
#include "record/dump.hpp"
#include "record/elementwise.hpp"
#include "record/graph.hpp"
#include "record/shape.hpp"
#include "record/view.hpp"
#include "submit/program.hpp"
#include "submit/transfer.hpp"
#include "tune/verifier.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <tuple>
#include <unordered_map>

namespace brontes {
namespace {

using ops::ReduceOp;
using record::ElementwiseOp;
using record::reserve_one_more;
using record::ResourceId;
using record::ValueId;

// Batches are told apart for as long as the process lives. 0 marks an invalid Tensor.
std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> serial{0};
  return ++serial;
}

Error no_state(const char* op) {
  return Error(Errc::invalid_argument,
               std::string(op) + ": the Batch has been moved from, or there was no memory to make it");
}

}  // namespace

struct Batch::State {
  State(std::shared_ptr<engine::Engine> device_engine, const BatchOptions& batch_options)
      : engine(std::move(device_engine)),
        context(engine ? engine->context() : nullptr),
        options(batch_options),
        graph(max_value_bytes()),
        spare(context.get()) {}

  std::uint64_t max_value_bytes() const { return engine ? engine->traits().max_storage_range : ~std::uint64_t{0}; }

  /// The body of a public method that records: without a state, a device or memory there is no tensor.
  template <class Call>
  static Tensor record(State* state, const char* op, Call call) {
    if (state == nullptr) return {};
    try {
      if (state->context) {
        const trace::Span span(state->context->trace(), trace::Stage::record, op);
        return call(*state);
      }
      if (state->detached) return call(*state);
      state->fail(state->check_device(op));
    } catch (const std::bad_alloc&) {
      state->fail(no_host_memory(op));
    } catch (const std::length_error&) {
      state->fail(no_host_memory(op));
    }
    return {};
  }

  /// Records several ops as one: if one fails, none of them stays.
  template <class Call>
  static Tensor together(State* state, std::initializer_list<Tensor> operands, Call call) {
    if (state == nullptr) return {};
    std::array<ValueId, 3> known{};
    std::size_t count = 0;
    for (const Tensor& x : operands) {
      if (TensorAccess::belongs(x, state->owner)) known[count++] = TensorAccess::id(x);
    }
    const record::Graph::Mark mark = state->graph.mark({known.data(), count});
    const Tensor made = call();
    if (!made.valid()) state->graph.forget_since(mark);
    return made;
  }

  std::shared_ptr<engine::Engine> engine;  // null when the Device had been moved from
  bool detached = false;                   // records without a device, to be looked at
  std::shared_ptr<vk::Context> context;    // its own, or null
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
  SpareArena spare;

  void fail(Error e) noexcept {
    if (!error) error = std::move(e);
  }

  Tensor finish(Result<ValueId> recorded) {
    if (!recorded) {
      fail(recorded.error());
      return {};
    }
    return TensorAccess::make(owner, *recorded, graph.values()[*recorded]);
  }

  static Tensor not_a_mask(State* state, const char* op, const Tensor& x) {
    return record(state, op, [&](State& s) -> Tensor {
      s.fail(Error(Errc::type_mismatch, std::string(op) + ": operand %" + std::to_string(TensorAccess::id(x)) + " is " +
                                            to_string(x.dtype()) + "; expected mask"));
      return {};
    });
  }

  /// Why nothing can be done, if so.
  Error check_device(const char* op) const {
    if (context && !context->abandoned()) return {};
    if (context) return context->usable();
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
    auto record = [&](auto& inputs) { return record::elementwise(graph, op, inputs, p, q); };
    return apply(record::info(op).name, record, tensors...);
  }

  template <class... Tensors>
  Tensor reduce(ReduceOp op, const Tensors&... tensors) {
    auto record = [&](auto& inputs) { return ops::reduce(graph, op, inputs); };
    return apply(ops::name(op), record, tensors...);
  }

  MatmulOptions with_defaults(MatmulOptions matmul) const {
    if (matmul.kernel == MatmulKernel::automatic) matmul.kernel = options.matmul;
    if (matmul.precision == Precision::automatic) matmul.precision = options.precision;
    return matmul;
  }

  ResourceId add_resource(std::shared_ptr<vk::Allocation> memory, std::unique_ptr<submit::Program> program) {
    reserve_one_more(resources);
    reserve_one_more(programs);
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
    if (const auto known = buffers.find(memories[0].get()); known != buffers.end()) return known->second;
    const auto first = static_cast<ResourceId>(resources.size());
    for (const auto& memory : memories) add_resource(memory, nullptr);
    // Last: without it the resources are nobody's.
    buffers.emplace(memories[0].get(), first);
    return first;
  }

  template <class Record>
  static void store(State* state, const Tensor& x, const Buffer& destination, Record record_store) {
    static_cast<void>(record(state, "store", [&](State& s) -> Tensor {
      Error e = TensorAccess::check("store", x, s.owner);
      if (!e) {
        auto resource = s.resource_of("store", destination);
        e = resource ? record_store(s.graph, TensorAccess::id(x), *resource, destination) : resource.error();
      }
      if (e) s.fail(std::move(e));
      return {};
    }));
  }

  Result<ValueId> call(const Kernel& kernel, Span<const Tensor> inputs, Span<const ValueSpec> outputs, Groups groups,
                       Span<const std::byte> push);
  Result<plan::Plan> plan(bool to_run) const;
  Result<std::unique_ptr<submit::Program>> build(encode::Use use, const std::shared_ptr<vk::Allocation>& given) const;
  Result<Submission> submit(const vk::Dependencies& dependencies = {});
  void reset() noexcept;
  void find_landing();
  bool is_in_place(Span<const plan::Placement> uploads) const;
  template <class T>
  Error read(const Tensor& x, Span<T> out) const;
};

Result<plan::Plan> Batch::State::plan(bool to_run) const {
  const trace::Span span(context->trace(), trace::Stage::plan, "plan");
  plan::PlanOptions planning;
  planning.keep_all = options.keep_all;
  planning.keep_marked_only = options.keep_marked_only;
  planning.fuse = options.fuse;
  planning.reuse_memory = options.reuse_memory;
  planning.work_per_submit = options.work_per_submit;
  planning.seconds_per_submit = engine->seconds_per_submit(options.milliseconds_per_submit);
  planning.batch_invariant = options.batch_invariant;
  planning.programs = &engine->programs();
  planning.only_ask = !to_run;
  if (!to_run) return plan::make_plan(graph, engine->traits(), planning);
  return tune::make_checked_plan(engine, graph, planning);
}

// The arena may be the `given` one if it is idle, and neither too small nor much too large.
Result<std::unique_ptr<submit::Program>> Batch::State::build(encode::Use use,
                                                             const std::shared_ptr<vk::Allocation>& given) const {
  if (error) return error;
  if (Error e = check_device("execute")) return e;
  if (Error e = context->usable()) return e;
  auto planned = plan(true);
  if (!planned) return planned.error();
  submit::SharedMemory shared;
  const std::uint64_t needed = planned->arena_bytes;
  if (given && needed <= given->bytes() && given->bytes() / 4 <= needed) {
    if (graph.landing() != nullptr ? is_in_place(planned->uploads) : is_idle(given)) shared.arena = given;
  }
  const bool in_place = graph.landing() != nullptr && shared.arena;
  std::vector<std::string> labels;
  if (context->labels() || context->trace().on()) labels = plan::labels(*planned, graph);
  auto program =
      submit::Program::create(context, std::move(*planned), resources, use, shared, std::move(labels), engine->gauge());
  if (!program) return program.error();
  const auto& places = (*program)->plan().uploads;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const record::Upload& upload = graph.uploads()[i];
    if (in_place && upload.landed != record::Upload::not_landed) {
      (*program)->has_written(places[i].bytes);
    } else if (Error e = (*program)->write(places[i].offset, graph.data_of(upload), places[i].bytes)) {
      return e;
    }
  }
  return program;
}

// Before the first upload of a recording: those may be written to the spare arena at once.
void Batch::State::find_landing() {
  if (graph.landing() != nullptr || !graph.uploads().empty() || !context ||
      context->memory().host_access() != vk::HostAccess::full)
    return;
  std::shared_ptr<vk::Allocation> arena = spare.take();
  if (!arena) return;
  if (!is_idle(arena)) {
    spare.offer(arena);
    return;
  }
  graph.land(std::make_unique<ArenaLanding>(std::move(arena), engine->traits().storage_alignment));
}

// What has landed is where these are.
bool Batch::State::is_in_place(Span<const plan::Placement> uploads) const {
  for (std::size_t i = 0; i < uploads.size(); ++i) {
    const std::uint64_t landed = graph.uploads()[i].landed;
    if (landed != record::Upload::not_landed && landed != uploads[i].offset) return false;
  }
  return true;
}

Result<Submission> Batch::State::submit(const vk::Dependencies& dependencies) {
  if (!error && graph.first_pending_value() == graph.values().size() &&
      graph.first_pending_node() == graph.nodes().size()) {
    if (dependencies.empty()) return Submission();
    auto value = context->queue().submit({}, dependencies);
    if (!value) return value.error();
    return SubmissionAccess::make(context, *value);
  }
  // Goes back unless it is used.
  const auto* landing = static_cast<const ArenaLanding*>(graph.landing());
  std::shared_ptr<vk::Allocation> given = landing != nullptr ? landing->arena() : spare.take();
  auto built = build(encode::Use::once, given);
  if (!built && built.error().code == Errc::out_of_memory && landing != nullptr) {
    // Without the arena of before there may be enough for that of now.
    if (Error e = graph.leave_landing()) return e;
    landing = nullptr;
    given.reset();
    built = build(encode::Use::once, nullptr);
  }
  if (!built) {
    if (given && landing == nullptr) spare.offer(given);
    return built.error();
  }
  std::unique_ptr<submit::Program> program = std::move(*built);

  // What will still exist: readable values, and uploads, which stay usable as operands. All memory that this takes is
  // had before the submit: what follows that must not fail.
  const auto& uploads = program->plan().uploads;
  const auto& readable = program->plan().readable;
  std::vector<record::Graph::Residence> residences;
  residences.reserve(uploads.size() + readable.size());
  const auto resource = static_cast<ResourceId>(resources.size());
  for (const plan::Placement& p : uploads) residences.push_back({p.value, resource, p.offset, false});
  for (const plan::Placement& p : readable) residences.push_back({p.value, resource, p.offset, true});
  reserve_one_more(resources);
  reserve_one_more(programs);

  auto value = program->submit(dependencies);
  if (!value) {
    if (given && landing == nullptr) spare.offer(given);
    return value.error();
  }
  if (given && program->arena() != given) spare.return_unused(given);
  program->finish();
  submit::add(stats, program->stats());
  auto arena = program->arena();
  add_resource(std::move(arena), std::move(program));
  graph.executed(residences);
  return SubmissionAccess::make(context, *value);
}

Batch::Batch(const Device& device, const BatchOptions& options)
    : state_(value_or_empty([&] { return std::make_unique<State>(DeviceAccess::engine(device), options); })) {}
Batch::Batch(Batch&&) noexcept = default;
Batch& Batch::operator=(Batch&&) noexcept = default;
Batch::~Batch() = default;

std::vector<Tensor> OpAccess::record_all(Batch& batch, const record::Op& op, Span<const Tensor> operands,
                                         const record::Attributes& attributes) {
  std::vector<Tensor> results;
  Batch::State::record(batch.state_.get(), op.name, [&](Batch::State& s) -> Tensor {
    std::vector<ValueId> inputs;
    for (const Tensor& x : operands) {
      if (Error e = TensorAccess::check(op.name, x, s.owner)) {
        s.fail(std::move(e));
        return {};
      }
      inputs.push_back(TensorAccess::id(x));
    }
    results.reserve(8);
    auto first = s.graph.apply(op, inputs, attributes);
    if (!first) {
      s.fail(first.error());
      return {};
    }
    const record::Node& node = s.graph.nodes().back();
    for (std::uint32_t i = 0; i < node.output_count; ++i) {
      results.push_back(TensorAccess::make(s.owner, node.output + i, s.graph.value(node.output + i)));
    }
    return {};
  });
  return results;
}

Tensor OpAccess::record(Batch& batch, const record::Op& op, Span<const Tensor> operands,
                        const record::Attributes& attributes) {
  const std::vector<Tensor> results = record_all(batch, op, operands, attributes);
  return results.empty() ? Tensor() : results[0];
}

Tensor OpAccess::record(Batch& batch, const record::Op& op, std::initializer_list<Tensor> operands,
                        const record::Attributes& attributes) {
  return record(batch, op, Span<const Tensor>(operands.begin(), operands.size()), attributes);
}

Batch OpAccess::detached() {
  Batch batch(DeviceAccess::make(nullptr));
  if (batch.state_) batch.state_->detached = true;
  return batch;
}

record::Graph* OpAccess::graph(Batch& batch) noexcept { return batch.state_ ? &batch.state_->graph : nullptr; }

Tensor OpAccess::tensor(Batch& batch, ValueId value) noexcept {
  if (!batch.state_) return {};
  return TensorAccess::make(batch.state_->owner, value, batch.state_->graph.value(value));
}

Tensor Batch::upload(Span<const float> data) { return upload(data, Shape()); }

Tensor Batch::upload(Span<const float> data, Shape shape) {
  return State::record(state_.get(), "upload", [&](State& s) {
    s.find_landing();
    return s.finish(s.graph.upload(data, shape));
  });
}

Tensor Batch::upload(std::initializer_list<float> data) { return upload(data, Shape()); }

Tensor Batch::upload(std::initializer_list<float> data, Shape shape) {
  return upload(Span<const float>(data.begin(), data.size()), shape);
}

Tensor Batch::upload(Span<const std::int32_t> data) { return upload(data, Shape()); }

Tensor Batch::upload(Span<const std::int32_t> data, Shape shape) {
  return State::record(state_.get(), "upload", [&](State& s) {
    s.find_landing();
    return s.finish(s.graph.upload_i32(data, shape));
  });
}

Tensor Batch::upload_i32(std::initializer_list<std::int32_t> data) { return upload_i32(data, Shape()); }

Tensor Batch::upload_i32(std::initializer_list<std::int32_t> data, Shape shape) {
  return upload(Span<const std::int32_t>(data.begin(), data.size()), shape);
}

Tensor Batch::upload_f16(Span<const float> data, Shape shape) {
  return State::record(state_.get(), "upload", [&](State& s) {
    if (data.data() == nullptr) return s.finish(s.graph.upload_f16({nullptr, data.size()}, shape));
    s.find_landing();
    return s.finish(s.graph.upload_f16(halves_of(data), shape));
  });
}

Tensor Batch::upload_f16(Span<const std::uint16_t> data, Shape shape) {
  return State::record(state_.get(), "upload", [&](State& s) {
    s.find_landing();
    return s.finish(s.graph.upload_f16(data, shape));
  });
}

Tensor Batch::upload_f16(std::initializer_list<float> data, Shape shape) {
  return upload_f16(Span<const float>(data.begin(), data.size()), shape);
}

Tensor Batch::import_buffer(const Buffer& buffer) {
  return State::record(state_.get(), "import_buffer", [&](State& s) -> Tensor {
    auto resource = s.resource_of("import_buffer", buffer);
    if (!resource) {
      s.fail(resource.error());
      return {};
    }
    return s.finish(s.graph.import(buffer.shape(), *resource, buffer.dtype()));
  });
}

Tensor Batch::import_buffer(const Buffer& buffer, Span<const Range> ranges) {
  constexpr const char* call = "import_buffer";
  return State::record(state_.get(), call, [&](State& s) -> Tensor {
    auto resource = s.resource_of(call, buffer);
    if (!resource) return s.finish(resource.error());
    // Before there is an import that nobody uses.
    if (auto chosen = record::choose(buffer.shape(), ranges, call); !chosen) return s.finish(chosen.error());
    s.graph.reserve(2);
    const ValueId whole = s.graph.import(buffer.shape(), *resource, buffer.dtype());
    return s.finish(record::slice(s.graph, whole, ranges, call));
  });
}

Tensor Batch::import_buffer(const Buffer& buffer, std::initializer_list<Range> ranges) {
  return import_buffer(buffer, Span<const Range>(ranges.begin(), ranges.size()));
}

Tensor Batch::import_weight(const Weight& weight) {
  return State::record(state_.get(), "import_weight", [&](State& s) -> Tensor {
    auto first = s.resource_of("import_weight", weight);
    if (!first) {
      s.fail(first.error());
      return {};
    }
    return s.finish(s.graph.import_weight(weight.shape(), weight.dtype(), *first, WeightAccess::part_rows(weight)));
  });
}

Tensor Batch::fill(float value, Shape shape) {
  return State::record(state_.get(), "fill", [&](State& s) { return s.finish(record::fill(s.graph, value, shape)); });
}

Tensor Batch::fill_i32(std::int32_t value, Shape shape) {
  return State::record(state_.get(), "fill_i32",
                       [&](State& s) { return s.finish(record::fill_i32(s.graph, value, shape)); });
}

Tensor Batch::cast(Tensor x, DType type) {
  return State::record(state_.get(), "cast", [&](State& s) {
    return s.apply(
        "cast", [&](auto& in) { return record::cast(s.graph, in[0], type); }, x);
  });
}

Tensor Batch::reshape(Tensor x, Shape shape) {
  return State::record(state_.get(), "reshape", [&](State& s) {
    return s.apply(
        "reshape", [&](auto& in) { return s.graph.reshape("reshape", in[0], shape); }, x);
  });
}

Tensor Batch::flatten(Tensor x) {
  return State::record(state_.get(), "flatten", [&](State& s) {
    return s.apply(
        "flatten", [&](auto& in) { return s.graph.reshape("flatten", in[0], Shape(x.size())); }, x);
  });
}

Tensor Batch::squeeze(Tensor x) {
  return State::record(state_.get(), "squeeze", [&](State& s) {
    return s.apply(
        "squeeze", [&](auto& in) { return s.graph.reshape("squeeze", in[0], record::squeezed(x.shape())); }, x);
  });
}

Tensor Batch::unsqueeze(Tensor x, std::int64_t axis) {
  return State::record(state_.get(), "unsqueeze", [&](State& s) {
    auto record = [&](auto& in) -> Result<ValueId> {
      const auto shape = record::unsqueezed(x.shape(), axis);
      if (!shape) {
        return Error(Errc::invalid_argument, "unsqueeze: axis " + std::to_string(axis) + " of " + to_string(x.shape()) +
                                                 ", which has up to " + std::to_string(Shape::max_rank) + " dims");
      }
      return s.graph.reshape("unsqueeze", in[0], *shape);
    };
    return s.apply("unsqueeze", record, x);
  });
}

Tensor Batch::slice(Tensor x, Span<const Range> ranges) {
  return State::record(state_.get(), "slice", [&](State& s) {
    return s.apply(
        "slice", [&](auto& in) { return record::slice(s.graph, in[0], ranges); }, x);
  });
}

Tensor Batch::slice(Tensor x, std::initializer_list<Range> ranges) {
  return slice(x, Span<const Range>(ranges.begin(), ranges.size()));
}

Tensor Batch::slice(Tensor x, std::int64_t axis, Range range) {
  return State::record(state_.get(), "slice", [&](State& s) {
    auto record = [&](auto& in) -> Result<ValueId> {
      if (Error e = ops::resolve_axis("slice", x.shape(), axis)) return e;
      std::array<Range, Shape::max_rank> ranges{};
      ranges[static_cast<std::size_t>(axis)] = range;
      return record::slice(s.graph, in[0], {ranges.data(), static_cast<std::size_t>(axis) + 1});
    };
    return s.apply("slice", record, x);
  });
}

std::vector<Tensor> Batch::split(Tensor x, std::uint64_t parts, std::int64_t axis) {
  std::vector<Tensor> all;
  State::record(state_.get(), "split", [&](State& s) {
    auto record = [&](auto& in) -> Result<ValueId> {
      if (Error e = ops::resolve_axis("split", x.shape(), axis)) return e;
      const auto dim = static_cast<std::size_t>(axis);
      const std::uint64_t extent = x.shape()[dim];
      if (parts == 0 || extent % parts != 0) {
        return Error(Errc::shape_mismatch, "split: axis " + std::to_string(axis) + " of " + to_string(x.shape()) +
                                               " into " + std::to_string(parts) + " equal parts");
      }
      all.reserve(parts);
      s.graph.reserve(parts);
      std::array<Range, Shape::max_rank> ranges{};
      for (std::uint64_t i = 0; i < parts; ++i) {
        const auto size = static_cast<std::int64_t>(extent / parts);
        const std::int64_t begin = static_cast<std::int64_t>(i) * size;
        ranges[dim] = {begin, begin + size, 1};
        auto part = record::slice(s.graph, in[0], {ranges.data(), dim + 1}, "split");
        if (!part) return part.error();
        all.push_back(TensorAccess::make(s.owner, *part, s.graph.values()[*part]));
      }
      return in[0];
    };
    return s.apply("split", record, x);
  });
  return all;
}

Tensor Batch::permute(Tensor x, Axes axes) {
  return State::record(state_.get(), "permute", [&](State& s) {
    std::array<std::int64_t, Axes::max_size> order{};
    const std::size_t count = std::min(axes.size(), Axes::max_size);
    for (std::size_t i = 0; i < count; ++i) order[i] = axes[i];
    // No tensor has more dims than fit: one too many stays one too many.
    return s.apply(
        "permute",
        [&](auto& in) {
          return record::permute(s.graph, in[0], {order.data(), count});
        },
        x);
  });
}

Tensor Batch::transpose(Tensor x) {
  return State::record(state_.get(), "transpose", [&](State& s) {
    auto record = [&](auto& in) -> Result<ValueId> {
      const std::size_t rank = x.shape().rank();
      if (rank < 2) {
        return Error(Errc::invalid_argument,
                     "transpose: a tensor of " + to_string(x.shape()) + "; expected two dims or more");
      }
      std::array<std::int64_t, Shape::max_rank> order{};
      for (std::size_t d = 0; d < rank; ++d) order[d] = static_cast<std::int64_t>(d);
      std::swap(order[rank - 1], order[rank - 2]);
      return record::permute(s.graph, in[0], {order.data(), rank}, "transpose");
    };
    return s.apply("transpose", record, x);
  });
}

Tensor Batch::expand(Tensor x, Shape shape) {
  return State::record(state_.get(), "expand", [&](State& s) {
    return s.apply(
        "expand", [&](auto& in) { return record::expand(s.graph, in[0], shape); }, x);
  });
}

// One method per row of the table, by its types and scalar operands. fill() and cast() are above; rows for i32 belong
// to the method of the row for f32.
#define BRONTES_METHOD_none_f_1(op)
#define BRONTES_METHOD_none_i_1(op)
#define BRONTES_METHOD_i_i_0(op)
#define BRONTES_METHOD_ii_i_0(op)
#define BRONTES_METHOD_ii_m_0(op)
#define BRONTES_METHOD_f_i_0(op)
#define BRONTES_METHOD_f_m_0(op)
#define BRONTES_METHOD_i_f_0(op)
#define BRONTES_METHOD_i_m_0(op)
#define BRONTES_METHOD_m_f_0(op)
#define BRONTES_METHOD_m_i_0(op)
#define BRONTES_METHOD_f_h_0(op)
#define BRONTES_METHOD_h_f_0(op)
#define BRONTES_RECORD(op, ...) \
  return State::record(state_.get(), #op, [&](State& s) { return s.elementwise(ElementwiseOp::op, __VA_ARGS__); })
#define BRONTES_METHOD_f_f_0(op) \
  Tensor Batch::op(Tensor x) { BRONTES_RECORD(op, 0, 0, x); }
#define BRONTES_METHOD_f_f_1(op) \
  Tensor Batch::op(Tensor x, float p) { BRONTES_RECORD(op, p, 0, x); }
#define BRONTES_METHOD_f_f_2(op) \
  Tensor Batch::op(Tensor x, float p, float q) { BRONTES_RECORD(op, p, q, x); }
#define BRONTES_METHOD_ff_f_0(op) \
  Tensor Batch::op(Tensor x, Tensor y) { BRONTES_RECORD(op, 0, 0, x, y); }
#define BRONTES_METHOD_mtt_t_0(op) \
  Tensor Batch::op(Tensor x, Tensor y, Tensor z) { BRONTES_RECORD(op, 0, 0, x, y, z); }
#define BRONTES_METHOD_t_t_0(op) BRONTES_METHOD_f_f_0(op)
#define BRONTES_METHOD_m_m_0(op) BRONTES_METHOD_f_f_0(op)
#define BRONTES_METHOD_ff_m_0(op) BRONTES_METHOD_ff_f_0(op)
#define BRONTES_METHOD_mm_m_0(op) BRONTES_METHOD_ff_f_0(op)
#define BRONTES_OP(name, code, arity, scalars, types, formula) BRONTES_METHOD_##types##_##scalars(name)
#include "elementwise.def"
#undef BRONTES_OP

#define BRONTES_REDUCE(op, ...) \
  return State::record(state_.get(), #op, [&](State& s) { return s.reduce(ReduceOp::op, __VA_ARGS__); })
Tensor Batch::sum(Tensor x) { BRONTES_REDUCE(sum, x); }
Tensor Batch::dot(Tensor x, Tensor y) { BRONTES_REDUCE(dot, x, y); }
Tensor Batch::max(Tensor x) { BRONTES_REDUCE(max, x); }
Tensor Batch::min(Tensor x) { BRONTES_REDUCE(min, x); }

// The sum of ones and zeros is 0 only if there is no one.
Tensor Batch::any(Tensor x, Axes axes, bool keep_dims) {
  if (x.valid() && x.dtype() != DType::mask) return State::not_a_mask(state_.get(), "any", x);
  return State::together(state_.get(), {x},
                         [&] { return cast(sum(cast(x, DType::f32), axes, keep_dims), DType::mask); });
}

Tensor Batch::all(Tensor x, Axes axes, bool keep_dims) {
  if (x.valid() && x.dtype() != DType::mask) return State::not_a_mask(state_.get(), "all", x);
  return State::together(state_.get(), {x}, [&] { return logical_not(any(logical_not(x), axes, keep_dims)); });
}

Tensor Batch::matmul(Tensor a, Tensor b, const MatmulOptions& options) {
  return State::record(state_.get(), "matmul", [&](State& s) {
    auto record = [&](auto& in) { return plan::matmul(s.graph, in[0], in[1], s.with_defaults(options)); };
    return s.apply("matmul", record, a, b);
  });
}

Tensor Batch::matmul(Tensor a, Tensor b, std::uint64_t m, std::uint64_t k, std::uint64_t n,
                     const MatmulOptions& options) {
  return State::record(state_.get(), "matmul", [&](State& s) {
    auto record = [&](auto& in) { return plan::matmul(s.graph, in[0], in[1], m, k, n, s.with_defaults(options)); };
    return s.apply("matmul", record, a, b);
  });
}

Tensor Batch::linear(Tensor x, Tensor w) {
  MatmulOptions options;
  options.layout = Layout::nk;
  return matmul(x, w, options);
}

Tensor Batch::linear(Tensor x, Tensor w, Tensor bias) {
  return State::together(state_.get(), {x, w, bias}, [&]() -> Tensor {
    const Tensor product = linear(x, w);
    if (!product.valid()) return {};
    return State::record(state_.get(), "linear", [&](State& s) -> Tensor {
      const Shape expected(product.shape()[product.shape().rank() - 1]);
      if (bias.valid() && bias.shape() != expected) {
        s.fail(Error(Errc::shape_mismatch, "linear: a bias of " + to_string(bias.shape()) + " for a product of " +
                                               to_string(product.shape()) + "; expected " + to_string(expected)));
        return {};
      }
      return s.elementwise(ElementwiseOp::add, 0, 0, product, bias);
    });
  });
}

Result<ValueId> Batch::State::call(const Kernel& kernel, Span<const Tensor> inputs, Span<const ValueSpec> outputs,
                                   Groups groups, Span<const std::byte> push) {
  if (!context || KernelAccessor::context(kernel) == nullptr) {
    return Error(Errc::invalid_argument, "call: the Device or the Kernel has been moved from");
  }
  if (KernelAccessor::context(kernel) != context.get()) {
    return Error(Errc::invalid_argument, "call: the kernel " + kernel.name() + " belongs to another device");
  }
  if ((inputs.data() == nullptr && !inputs.empty()) || (outputs.data() == nullptr && !outputs.empty())) {
    return Error(Errc::null_data, "call: a null pointer for inputs or outputs");
  }
  std::vector<ValueId> ids;
  for (const Tensor& x : inputs) {
    if (Error e = TensorAccess::check("call", x, owner)) return e;
    ids.push_back(TensorAccess::id(x));
  }
  std::vector<record::ValueType> types;
  for (const ValueSpec& output : outputs) types.push_back({output.shape, output.dtype});
  ops::CallOptions call_options;
  call_options.groups = {groups.x, groups.y, groups.z};
  call_options.push = push;
  call_options.max_groups = engine->traits().max_group_count;
  return ops::call(graph, KernelAccessor::kernel(kernel), ids, types, call_options);
}

Tensor Batch::call(const Kernel& kernel, Span<const Tensor> inputs, const ValueSpec& output, Groups groups,
                   Span<const std::byte> push) {
  return State::record(state_.get(), "call", [&](State& s) {
    return s.finish(s.call(kernel, inputs, {&output, 1}, groups, push));
  });
}

Tensor Batch::call(const Kernel& kernel, std::initializer_list<Tensor> inputs, const ValueSpec& output, Groups groups,
                   Span<const std::byte> push) {
  return call(kernel, Span<const Tensor>(inputs.begin(), inputs.size()), output, groups, push);
}

std::vector<Tensor> Batch::call_all(const Kernel& kernel, Span<const Tensor> inputs, Span<const ValueSpec> outputs,
                                    Groups groups, Span<const std::byte> push) {
  std::vector<Tensor> results;
  State::record(state_.get(), "call", [&](State& s) -> Tensor {
    results.resize(outputs.size());
    const Tensor first = s.finish(s.call(kernel, inputs, outputs, groups, push));
    for (std::size_t i = 0; first.valid() && i < results.size(); ++i) {
      const ValueId id = TensorAccess::id(first) + static_cast<ValueId>(i);
      results[i] = TensorAccess::make(s.owner, id, s.graph.value(id));
    }
    return {};
  });
  return results;
}

std::vector<Tensor> Batch::call_all(const Kernel& kernel, std::initializer_list<Tensor> inputs,
                                    std::initializer_list<ValueSpec> outputs, Groups groups,
                                    Span<const std::byte> push) {
  return call_all(kernel, Span<const Tensor>(inputs.begin(), inputs.size()),
                  Span<const ValueSpec>(outputs.begin(), outputs.size()), groups, push);
}

void Batch::store(Tensor x, const Buffer& destination) {
  State::store(state_.get(), x, destination, [](auto& graph, ValueId id, ResourceId into, const Buffer& to) {
    return ops::store(graph, id, into, to.shape(), to.dtype(), BufferAccess::memory(to)->exact());
  });
}

void Batch::store(Tensor x, const Buffer& destination, Span<const Range> ranges) {
  State::store(state_.get(), x, destination, [&](auto& graph, ValueId id, ResourceId into, const Buffer& to) {
    return ops::store_slice(graph, id, into, to.shape(), ranges, to.dtype(), BufferAccess::memory(to)->exact());
  });
}

void Batch::store(Tensor x, const Buffer& destination, std::initializer_list<Range> ranges) {
  store(x, destination, Span<const Range>(ranges.begin(), ranges.size()));
}

Tensor Batch::keep(Tensor x) {
  return State::record(state_.get(), "keep", [&](State& s) -> Tensor {
    Error e = TensorAccess::check("keep", x, s.owner);
    if (!e && TensorAccess::id(x) < s.graph.first_pending_value() && !s.graph.values()[TensorAccess::id(x)].readable) {
      e = Error(Errc::not_kept,
                "keep: the value " + to_string(x.shape()) + " has been executed already; mark it before execute()");
    }
    if (e) {
      s.fail(std::move(e));
      return {};
    }
    s.graph.keep(TensorAccess::id(x));
    return x;
  });
}

Result<Submission> Batch::submit() {
  return guarded("submit", [&]() -> Result<Submission> {
    if (!state_) return no_state("submit");
    return state_->submit();
  });
}

Result<Prepared> RunAccess::prepare(const Batch& batch, const PrepareOptions& options) {
  if (!batch.state_) return no_state("prepare");
  const Batch::State& state = *batch.state_;
  if (state.error) return state.error;
  if (Error e = state.check_device("prepare")) return e;
  if (Error e = state.context->usable()) return e;
  auto plan = state.plan(true);
  if (!plan) return plan.error();
  using Key = std::tuple<const kernels::Kernel*, kernels::AccessMode, bool, std::vector<std::uint32_t>>;
  std::map<Key, const plan::Dispatch*> distinct;
  for (const plan::Dispatch& d : plan->dispatches) {
    distinct.emplace(
        Key(&d.kernel.kernel(), d.access, d.in_parts, {d.constants.begin(), d.constants.begin() + d.constant_count}),
        &d);
  }
  Prepared prepared;
  prepared.total = distinct.size();
  for (const auto& [key, dispatch] : distinct) {
    if (options.on_progress && !options.on_progress(prepared.ready, prepared.total)) return prepared;
    std::uint64_t created = 0;
    auto pipeline = state.context->pipelines().get(dispatch->kernel, dispatch->access, dispatch->constants.data(),
                                                   dispatch->constant_count, dispatch->in_parts, &created);
    if (!pipeline) return pipeline.error();
    prepared.created += created;
    ++prepared.ready;
  }
  if (options.on_progress && !distinct.empty()) static_cast<void>(options.on_progress(prepared.ready, prepared.total));
  return prepared;
}

Result<Submission> RunAccess::submit(Batch& batch, const vk::Dependencies& dependencies, const vk::Context* of) {
  if (!batch.state_) return no_state("submit");
  Batch::State& state = *batch.state_;
  if (!state.error) {
    if (Error e = state.check_device("submit")) return e;
  }
  if (of != nullptr && of != state.context.get()) {
    return Error(Errc::invalid_argument, "submit: the submission to follow is of another device");
  }
  return state.submit(dependencies);
}

Error Batch::execute() {
  return guarded("execute", [&]() -> Error {
    if (!state_) return no_state("execute");
    auto submission = state_->submit();
    if (!submission) return submission.error();
    return submission->wait();
  });
}

Result<Program> Batch::compile() {
  return guarded("compile", [&]() -> Result<Program> {
    if (!state_) return no_state("compile");
    auto program = state_->build(encode::Use::often, nullptr);
    if (!program && program.error().code == Errc::out_of_memory && state_->graph.landing() != nullptr) {
      // Without the arena that uploads were written to there may be enough.
      if (Error e = state_->graph.leave_landing()) return e;
      program = state_->build(encode::Use::often, nullptr);
    }
    if (!program) return program.error();
    auto state = std::make_unique<Program::State>(
        Program::State{state_->context, state_->owner, state_->graph.without_data(), std::move(*program)});
    return Program(std::move(state));
  });
}

template <class T>
Error Batch::State::read(const Tensor& x, Span<T> out) const {
  if (Error e = TensorAccess::check("read", x, owner)) return e;
  const record::Value& value = graph.values()[TensorAccess::id(x)];
  if (!value.readable && !value.weight) {
    if (TensorAccess::id(x) >= graph.first_pending_value()) {
      return Error(Errc::not_executed, "read: the value " + to_string(x.shape()) + " has not been executed yet");
    }
    return not_kept(value.shape);
  }
  if (Error e = check_output(value, out)) return e;
  return read_elements(value.dtype, out, [&](void* to, std::uint64_t bytes) {
    if (const auto& program = programs[value.resource]) return program->read(value.offset, to, bytes);
    return submit::read(*resources[value.resource], value.offset, to, bytes);
  });
}

Error Batch::read(Tensor x, Span<float> out) const {
  return guarded("read", [&]() -> Error { return state_ ? state_->read(x, out) : no_state("read"); });
}

Error Batch::read(Tensor x, Span<std::int32_t> out) const {
  return guarded("read", [&]() -> Error { return state_ ? state_->read(x, out) : no_state("read"); });
}

Error Batch::read(Tensor x, Span<std::uint16_t> out) const {
  return guarded("read", [&]() -> Error { return state_ ? state_->read(x, out) : no_state("read"); });
}

Result<std::vector<float>> Batch::read(Tensor x) const {
  return read_vector<float>(x.size(), [&](Span<float> out) { return read(x, out); });
}

Result<std::vector<std::int32_t>> Batch::read_i32(Tensor x) const {
  return read_vector<std::int32_t>(x.size(), [&](Span<std::int32_t> out) { return read(x, out); });
}

Result<std::vector<std::uint16_t>> Batch::read_f16(Tensor x) const {
  return read_vector<std::uint16_t>(x.size(), [&](Span<std::uint16_t> out) { return read(x, out); });
}

void Batch::State::reset() noexcept {
  if (const auto* landing = static_cast<const ArenaLanding*>(graph.landing())) spare.offer(landing->arena());
  graph.restart();
  ++owner.generation;
  error = {};
  stats = {};
  resources.clear();
  buffers.clear();
  // Memory that has been touched is worth keeping: the largest arena that no Program needs.
  for (auto& program : programs) {
    if (!program) continue;
    const std::shared_ptr<vk::Allocation> arena = program->arena();
    program.reset();
    if (arena && arena.use_count() == 1) spare.offer(arena);
  }
  programs.clear();
}

void Batch::reset() {
  if (state_) state_->reset();
}

const Error& Batch::error() const noexcept {
  static const Error none(Errc::out_of_memory, "no batch");  // lies in the string itself
  return state_ ? state_->error : none;
}

Error Batch::clear_error() noexcept { return state_ ? std::exchange(state_->error, Error()) : error(); }

std::size_t Batch::num_operations() const noexcept { return state_ ? state_->graph.nodes().size() : 0; }
std::size_t Batch::num_buffers() const noexcept { return state_ ? state_->graph.values().size() : 0; }

BatchStats Batch::stats() const noexcept {
  if (!state_) return {};
  BatchStats stats = state_->stats;
  stats.operations = num_operations();
  stats.values = num_buffers();
  return stats;
}

Result<MemoryNeeds> Batch::predict_memory() const {
  return guarded("predict_memory", [&]() -> Result<MemoryNeeds> {
    if (!state_) return no_state("predict_memory");
    if (state_->error) return state_->error;
    if (Error e = state_->check_device("predict_memory")) return e;
    auto plan = state_->plan(false);
    if (!plan) return plan.error();
    return submit::needs_of(*plan, *state_->context);
  });
}

Result<std::string> Batch::dump(DumpFormat format, DumpStage stage) const {
  return guarded("dump", [&]() -> Result<std::string> {
    if (!state_) return no_state("dump");
    if (stage == DumpStage::recorded) return record::dump(state_->graph, format);
    if (state_->error) return state_->error;
    if (Error e = state_->check_device("dump")) return e;
    auto plan = state_->plan(false);
    if (!plan) return plan.error();
    return plan::dump(*plan, state_->graph, format);
  });
}

}  // namespace brontes
