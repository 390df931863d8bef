#include "api/program.hpp"

#include "api/elements.hpp"
#include "plan/labels.hpp"
#include "submit/transfer.hpp"

#include <algorithm>

namespace brontes {
namespace {

// A placement of `id`, if it has one.
const plan::Placement* find(const std::vector<plan::Placement>& placements, record::ValueId id) {
  auto it = std::find_if(placements.begin(), placements.end(), [&](const auto& p) { return p.value == id; });
  return it == placements.end() ? nullptr : &*it;
}

}  // namespace

bool Submission::ready() const noexcept {
  // Asking may be what finds out that the device is lost.
  return !context_ || context_->abandoned() || context_->queue().reached(value_) || context_->lost();
}

Error Submission::wait(std::chrono::nanoseconds timeout) const {
  if (!context_) return {};
  const bool endless = timeout == std::chrono::nanoseconds::max();
  const auto count = std::max<std::chrono::nanoseconds::rep>(0, timeout.count());
  return guarded("wait", [&] {
    return context_->queue().wait(value_, endless ? vk::forever : static_cast<std::uint64_t>(count));
  });
}

Program::Program(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

template <class T>
Error Program::State::write(const Tensor& x, Span<const T> data) {
  if (Error e = check("write", x)) return e;
  const plan::Placement* place = find(program->plan().uploads, TensorAccess::id(x));
  if (place == nullptr) {
    return Error(Errc::invalid_argument,
                 "write: the tensor " + to_string(x.shape()) + " is not an upload of this program");
  }
  if (!is_seen_as<T>(x.dtype())) {
    return Error(Errc::type_mismatch, "write: the tensor " + to_string(x.shape()) + " is " + to_string(x.dtype()) +
                                          " and the data is " + name_of<T>());
  }
  if (data.data() == nullptr && !data.empty()) {
    return Error(Errc::null_data, "write: a null pointer for " + std::to_string(data.size()) + " elements");
  }
  if (data.size() != x.size()) {
    return Error(Errc::shape_mismatch, "write: " + std::to_string(data.size()) + " elements of data for " +
                                           to_string(x.shape()) + ", which has " + std::to_string(x.size()));
  }
  return write_elements(x.dtype(), data, [&](std::uint64_t offset, const void* from, std::uint64_t bytes) {
    return program->write(place->offset + offset, from, bytes);
  });
}

Error Program::State::rebind(const Tensor& x, const Buffer& buffer) {
  if (Error e = check("rebind", x)) return e;
  const record::Value& value = graph.values()[TensorAccess::id(x)];
  const auto& memory = BufferAccess::memory(buffer);
  if (!memory || &memory->context() != context.get()) {
    return Error(Errc::invalid_argument, "rebind: the buffer has been moved from or belongs to another device");
  }
  if (!value.imported || value.weight) {
    return Error(Errc::invalid_argument, "rebind: the tensor " + to_string(x.shape()) + " is not an import");
  }
  if (buffer.shape() != value.shape) {
    return Error(Errc::shape_mismatch,
                 "rebind: a buffer of " + to_string(buffer.shape()) + " for an import of " + to_string(value.shape));
  }
  if (buffer.dtype() != value.dtype) {
    return Error(Errc::type_mismatch, std::string("rebind: a buffer of ") + to_string(buffer.dtype()) +
                                          " for an import of " + to_string(value.dtype));
  }
  return program->rebind(value.resource, memory);
}

Result<Submission> Program::State::submit(const vk::Dependencies& dependencies, const vk::Context* of) {
  if (of != nullptr && of != context.get()) {
    return Error(Errc::invalid_argument, "submit: the submission to wait for is of another device");
  }
  if (context->trace().on() && !program->has_labels()) program->set_labels(plan::labels(program->plan(), graph));
  auto value = program->submit(dependencies);
  if (!value) return value.error();
  ran = true;
  return SubmissionAccess::make(context, *value);
}

Error Program::State::check(const char* op, const Tensor& x) const {
  if (Error e = TensorAccess::check(op, x, owner)) return e;
  if (TensorAccess::id(x) < graph.values().size()) return {};
  return Error(Errc::invalid_tensor,
               std::string(op) + ": the tensor " + to_string(x.shape()) + " is younger than the program");
}

template <class T>
Error Program::State::read(const Tensor& x, Span<T> out) const {
  if (Error e = check("read", x)) return e;
  const record::ValueId id = TensorAccess::id(x);
  const record::Value& value = graph.values()[id];
  if (Error e = check_output(value, out)) return e;
  if (value.readable) {
    return read_elements(value.dtype, out, [&](void* to, std::uint64_t bytes) {
      return submit::read(*program->resource(value.resource), value.offset, to, bytes);
    });
  }
  if (!ran) {
    return Error(Errc::not_executed,
                 "read: the program has not been run, so " + to_string(x.shape()) + " has no value");
  }
  const plan::Placement* place = find(program->plan().readable, id);
  if (place == nullptr) return not_kept(value.shape);
  return read_elements(value.dtype, out,
                       [&](void* to, std::uint64_t bytes) { return program->read(place->offset, to, bytes); });
}

namespace {

Error no_program(const char* call) {
  return Error(Errc::invalid_argument, std::string(call) + ": the Program has been moved from");
}

}  // namespace

Error Program::write(Tensor x, Span<const float> data) {
  return guarded("write", [&]() -> Error { return state_ ? state_->write(x, data) : no_program("write"); });
}

Error Program::write(Tensor x, Span<const std::int32_t> data) {
  return guarded("write", [&]() -> Error { return state_ ? state_->write(x, data) : no_program("write"); });
}

Error Program::write(Tensor x, Span<const std::uint16_t> data) {
  return guarded("write", [&]() -> Error { return state_ ? state_->write(x, data) : no_program("write"); });
}

Error Program::rebind(Tensor x, const Buffer& buffer) {
  return guarded("rebind", [&]() -> Error { return state_ ? state_->rebind(x, buffer) : no_program("rebind"); });
}

Result<Submission> Program::submit() { return submit(Submission()); }

Result<Submission> Program::submit(const Submission& after) {
  return guarded("submit", [&]() -> Result<Submission> {
    if (!state_) return no_program("submit");
    return state_->submit({SubmissionAccess::value(after), {}, {}}, SubmissionAccess::context(after).get());
  });
}

Result<Submission> RunAccess::submit(Program& program, const vk::Dependencies& dependencies, const vk::Context* of) {
  if (!program.state_) return no_program("submit");
  return program.state_->submit(dependencies, of);
}

Error RunAccess::record(Program& program, VkCommandBuffer commands, const vulkan::RecordOptions& options) {
  if (!program.state_) return no_program("record");
  Error e = program.state_->program->record(
      commands, {options.before_stages, options.before_writes, options.after_stages, options.after_accesses});
  if (!e) program.state_->ran = true;
  return e;
}

void RunAccess::set_name(Program& program, const char* name) {
  if (program.state_ && !program.state_->context->abandoned()) program.state_->program->set_name(name);
}

Error Program::run() {
  auto submission = submit();
  if (!submission) return submission.error();
  return submission->wait();
}

Error Program::read(Tensor x, Span<float> out) const {
  return guarded("read", [&]() -> Error { return state_ ? state_->read(x, out) : no_program("read"); });
}

Error Program::read(Tensor x, Span<std::int32_t> out) const {
  return guarded("read", [&]() -> Error { return state_ ? state_->read(x, out) : no_program("read"); });
}

Error Program::read(Tensor x, Span<std::uint16_t> out) const {
  return guarded("read", [&]() -> Error { return state_ ? state_->read(x, out) : no_program("read"); });
}

Result<std::vector<float>> Program::read(Tensor x) const {
  return read_vector<float>(x.size(), [&](Span<float> out) { return read(x, out); });
}

Result<std::vector<std::int32_t>> Program::read_i32(Tensor x) const {
  return read_vector<std::int32_t>(x.size(), [&](Span<std::int32_t> out) { return read(x, out); });
}

Result<std::vector<std::uint16_t>> Program::read_f16(Tensor x) const {
  return read_vector<std::uint16_t>(x.size(), [&](Span<std::uint16_t> out) { return read(x, out); });
}

BatchStats Program::stats() const noexcept {
  if (!state_) return {};
  BatchStats stats = state_->program->stats();
  stats.operations = state_->graph.nodes().size() - state_->graph.first_pending_node();
  stats.values = state_->graph.values().size();
  return stats;
}

MemoryNeeds Program::memory() const noexcept {
  return state_ ? submit::needs_of(state_->program->plan(), *state_->context) : MemoryNeeds();
}

std::string Program::dump(DumpFormat format) const {
  if (!state_) return {};
  return value_or_empty([&] { return plan::dump(state_->program->plan(), state_->graph, format); });
}

}  // namespace brontes
