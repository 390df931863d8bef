#include "submit/program.hpp"

#include "submit/ticks_of.hpp"
#include "vk/context.hpp"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

namespace brontes::submit {

void add(BatchStats& stats, const BatchStats& more) {
  stats.dropped_operations += more.dropped_operations;
  stats.fused_operations += more.fused_operations;
  stats.dispatches += more.dispatches;
  stats.barriers += more.barriers;
  stats.boundary_barriers += more.boundary_barriers;
  stats.submits += more.submits;
  stats.transfers_up += more.transfers_up;
  stats.transfers_down += more.transfers_down;
  stats.bytes_up += more.bytes_up;
  stats.bytes_down += more.bytes_down;
  stats.copy_commands += more.copy_commands;
  stats.pipelines_created += more.pipelines_created;
  stats.allocations += more.allocations;
  stats.arena_bytes += more.arena_bytes;
  stats.arena_bytes_without_reuse += more.arena_bytes_without_reuse;
  stats.pipelines_used += more.pipelines_used;
  stats.spirv_bytes += more.spirv_bytes;
  stats.fused_programs += more.fused_programs;
}

MemoryNeeds needs_of(const plan::Plan& plan, vk::Context& context) noexcept {
  MemoryNeeds needs;
  needs.device_bytes = plan.arena_bytes;
  const vk::HostAccess access = context.memory().host_access();
  if (access == vk::HostAccess::none) needs.upload_bytes = plan.upload_bytes;
  if (access != vk::HostAccess::full) needs.readback_bytes = plan.readback_bytes();
  for (std::uint64_t bytes : {needs.device_bytes, needs.upload_bytes, needs.readback_bytes}) {
    needs.buffers += bytes != 0 ? 1 : 0;
  }
  std::uint32_t tables = 0;
  for (const plan::Dispatch& d : plan.dispatches) tables += d.access == kernels::AccessMode::pointer ? 1 : 0;
  needs.table_bytes = vk::address_bytes(context, tables);
  return needs;
}

Program::Program(std::shared_ptr<vk::Context> context, plan::Plan plan, Resources resources, encode::Use use)
    : context_(std::move(context)), plan_(std::move(plan)), resources_(std::move(resources)), use_(use) {}

namespace {

// The plan has no barriers between resources: one that is written must not lie in another.
Error check_apart(const plan::Plan& plan, const Program::Resources& resources, const char* call) {
  bool any = false;
  for (const auto& memory : resources) any = any || (memory && memory->borrowed());
  if (!any) return {};
  enum : std::uint8_t { used = 1, written = 2 };
  std::vector<std::uint8_t> uses(resources.size());
  for (const plan::Dispatch& d : plan.dispatches) {
    for (std::size_t b = 0; b < d.binding_count; ++b) {
      if (d.bindings[b].resource == plan::arena || (d.used >> b & 1u) == 0) continue;
      std::uint8_t& use = uses[d.bindings[b].resource];
      use = static_cast<std::uint8_t>(use | (d.writes(b) ? used | written : used));
    }
  }
  for (std::size_t i = 0; i < resources.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (uses[i] == 0 || uses[j] == 0 || ((uses[i] | uses[j]) & written) == 0) continue;
      if (resources[i] == resources[j] || !resources[i]->overlaps(*resources[j])) continue;
      return Error(Errc::invalid_argument,
                   std::string(call) + ": two imported buffers share bytes from " +
                       std::to_string(std::max(resources[i]->offset(), resources[j]->offset())) +
                       " of a VkBuffer on, and one of them is stored to; import the whole range once, and use slices");
    }
  }
  return {};
}

// Something is written to it 16 bytes at a time, whatever its size. Slices and kernels of users are not.
bool writes_vectors(const plan::Plan& plan, record::ResourceId resource) {
  for (const plan::Dispatch& d : plan.dispatches) {
    if (!d.kernel.is_library() || d.kernel == kernels::Id::store_slice) continue;
    for (std::size_t b = 0; b < d.binding_count; ++b) {
      if (d.writes(b) && d.bindings[b].resource == resource) return true;
    }
  }
  return false;
}

class Timer final : public vk::RunTimer {
 public:
  Timer(std::shared_ptr<plan::SpeedGauge> gauge, const plan::Cost& cost) : gauge_(std::move(gauge)), cost_(cost) {}
  void took(double seconds, bool at_most) noexcept override { gauge_->observe(cost_, seconds, at_most); }

 private:
  std::shared_ptr<plan::SpeedGauge> gauge_;
  plan::Cost cost_;
};

}  // namespace

Result<std::unique_ptr<Program>> Program::create(std::shared_ptr<vk::Context> context, plan::Plan plan,
                                                 Resources resources, encode::Use use, const SharedMemory& shared,
                                                 std::vector<std::string> labels,
                                                 std::shared_ptr<plan::SpeedGauge> gauge) {
  const trace::Span span(context->trace(), trace::Stage::encode, "encode");
  if (Error e = check_apart(plan, resources, "store")) return e;
  std::unique_ptr<Program> self(new Program(std::move(context), std::move(plan), std::move(resources), use));
  self->labels_ = std::move(labels);
  if (gauge && self->plan_.worth_timing) self->timer_ = std::make_shared<Timer>(std::move(gauge), self->plan_.cost);
  if (Error e = self->allocate(shared)) return e;
  auto encoded = self->encode(self->resources_);
  if (!encoded) return encoded.error();
  self->encoded_ = std::move(*encoded);
  return self;
}

Error Program::allocate(const SharedMemory& shared) {
  vk::Memory& memory = context_->memory();
  auto reserve = [&](std::shared_ptr<vk::Allocation>& into, std::uint64_t bytes, vk::MemoryUse use, const char* name,
                     const std::shared_ptr<vk::Allocation>& given) -> Error {
    if (bytes == 0) return {};
    if (given) {
      assert(given->bytes() >= bytes);
      into = given;
      return {};
    }
    auto made = memory.allocate(context_, bytes, use, name);
    if (!made) return made.error();
    into = std::move(*made);
    ++stats_.allocations;
    return {};
  };
  const MemoryNeeds needs = needs_of(plan_, *context_);
  if (Error e = reserve(arena_, needs.device_bytes, vk::MemoryUse::device, "brontes arena", shared.arena)) return e;
  stats_.dropped_operations = plan_.dropped_operations;
  stats_.fused_operations = plan_.fused_operations;
  stats_.arena_bytes = plan_.arena_bytes;
  stats_.arena_bytes_without_reuse = plan_.arena_bytes_without_reuse;
  if (Error e = reserve(staging_, needs.upload_bytes, vk::MemoryUse::upload, "brontes staging", shared.staging)) {
    return e;
  }
  return reserve(readback_, needs.readback_bytes, vk::MemoryUse::readback, "brontes readback", shared.readback);
}

encode::Memories Program::memories(const Resources& resources) const {
  return {arena_.get(), resources, staging_.get(), readback_.get(), labels_};
}

Result<encode::EncodedPlan> Program::encode(const Resources& resources) {
  return encode::encode_plan(*context_, plan_, memories(resources), use_, stats_);
}

// All that is written between two runs goes up as one.
void Program::count_uploads() noexcept {
  if (!uploads_written_) return;
  uploads_written_ = false;
  ++stats_.transfers_up;
  context_->run_totals().add_transfer_up();
}

Error Program::write(std::uint64_t offset, const void* data, std::uint64_t bytes) {
  if (bytes == 0) return {};
  const trace::Span span(context_->trace(), trace::Stage::write, "write");
  if (Error e = wait()) return e;
  if (Error e = (staging_ ? *staging_ : *arena_).write(offset, data, bytes)) return e;
  has_written(bytes);
  return {};
}

void Program::has_written(std::uint64_t bytes) noexcept {
  if (bytes == 0) return;
  stats_.bytes_up += bytes;
  context_->run_totals().add_bytes_up(bytes);
  uploads_written_ = true;
  if (recorded_) count_uploads();
}

Result<std::uint64_t> Program::submit(const vk::Dependencies& dependencies) {
  trace::Span span(context_->trace(), trace::Stage::submit, "submit");
  if (!span.on() || context_->timestamp_bits() == 0) return submit(encoded_, dependencies);
  auto run = traced_run();
  if (!run) return run.error();
  auto value = submit((*run)->commands(), dependencies);
  if (!value) return value;
  span.about(*value);
  (*run)->submitted(*value, span.begin());
  if (!context_->trace().expect(*run)) (*run)->forget();
  return value;
}

// One that is not in use, or whose run is done; else one more.
Result<std::shared_ptr<TracedRun>> Program::traced_run() {
  for (const std::shared_ptr<TracedRun>& run : traced_) {
    if (!run->idle() && context_->queue().reached(run->value())) context_->trace().collect(*run);
    if (run->idle()) return run;
  }
  auto timed = encode::encode_timed(*context_, plan_, memories(resources_), encoded_);
  if (!timed) return timed.error();
  std::vector<TracedRun::Name> names;
  for (const encode::Marks::Mark& mark : timed->marks.all) {
    using What = encode::Marks::What;
    if (mark.what == What::dispatch) {
      const std::string kernel = kernels::get(plan_.dispatches[mark.dispatch].kernel).name;
      names.push_back({has_labels() ? labels_[mark.dispatch] : kernel, kernel});
    } else {
      names.push_back({mark.what == What::upload ? "upload" : "read back", {}});
    }
  }
  traced_.push_back(std::make_shared<TracedRun>(*context_, std::move(*timed), std::move(names)));
  return traced_.back();
}

// `run` is the encoded one, or the same with timestamps.
Result<std::uint64_t> Program::submit(const encode::CommandBuffers& run, const vk::Dependencies& dependencies) {
  if (Error e = context_->usable()) return e;
  count_uploads();
  // With nothing to run it is done when what it follows is.
  std::uint64_t value = std::max(last_submit_, dependencies.after);
  if (!run.buffers.empty() || !dependencies.waits.empty() || !dependencies.signals.empty()) {
    auto submitted = submit(run.buffers, run.commands, dependencies, timer_);
    if (!submitted) return submitted.error();
    value = *submitted;
  }
  add(stats_, encoded_.per_run);
  context_->run_totals().add(encoded_.per_run, plan_.arena_bytes, plan_.arena_bytes_without_reuse);
  return value;
}

Result<std::uint64_t> Program::submit(Span<const VkCommandBuffer> parts, Span<const vk::Commands> slots,
                                      const vk::Dependencies& dependencies,
                                      const std::shared_ptr<vk::RunTimer>& timer) {
  auto submitted = context_->queue().submit(parts, dependencies, timer);
  if (!submitted) return submitted.error();
  const std::uint64_t value = last_submit_ = *submitted;
  for (const vk::Commands& slot : slots) slot->last_use = value;
  encoded_.bindings.used(value);
  for (const auto* memory : {&arena_, &staging_, &readback_}) {
    if (*memory) (*memory)->last_use = value;
  }
  for (const auto& memory : resources_) {
    if (memory) vk::raise(memory->last_use, value);
  }
  return value;
}

Error Program::run_stepwise(const Step& before, const Step& after) {
  // The upload first, then a part for each dispatch.
  plan::Plan steps = plan_;
  steps.submits = {{0, 0}};
  for (std::uint32_t i = 0; i < plan_.dispatches.size(); ++i) steps.submits.push_back({i, i + 1});
  auto run = encode::encode_parts(*context_, steps, memories(resources_), encoded_);
  if (!run) return run.error();
  if (Error e = context_->usable()) return e;
  count_uploads();
  for (std::size_t part = 0; part < run->buffers.size(); ++part) {
    const auto dispatch = static_cast<std::uint32_t>(part) - 1;
    if (part != 0) {
      if (Error e = before(dispatch)) return e;
    }
    auto value = submit({&run->buffers[part], 1}, {&run->commands[part], 1}, {}, nullptr);
    if (!value) return value.error();
    if (Error e = wait()) return e;
    if (part != 0) {
      if (Error e = after(dispatch)) return e;
    }
  }
  run->per_run.transfers_down = encoded_.per_run.transfers_down;
  run->per_run.bytes_down = encoded_.per_run.bytes_down;
  add(stats_, run->per_run);
  return {};
}

Result<Program::Timing> Program::time(std::uint32_t runs) {
  auto timed = encode::encode_timed(*context_, plan_, memories(resources_), encoded_);
  if (!timed) return timed.error();
  Timing timing;
  timing.marks = timed->marks.all;
  for (std::uint32_t i = 0; i < runs; ++i) {
    auto value = submit(*timed, {});
    if (!value) return value.error();
    timed->marks.timestamps->last_use = *value;
    if (Error e = wait()) return e;
    auto read = timed->marks.timestamps->read(timing.marks.size());
    if (!read) return read.error();
    timing.runs.push_back(ticks_of(*context_).since_first(*read));
  }
  return timing;
}

Error Program::record(VkCommandBuffer commands, const encode::Surroundings& around) {
  if (Error e = context_->usable()) return e;
  count_uploads();
  recorded_ = true;
  encode::record_run(*context_, plan_, memories(resources_), encoded_, around, name_.c_str(), commands);
  return {};
}

void Program::set_name(const std::string& name) {
  name_ = name;
  auto set = [&](VkObjectType type, auto handle, const char* what) {
    context_->set_name(type, reinterpret_cast<std::uint64_t>(handle), (name_ + what).c_str());
  };
  if (arena_) set(VK_OBJECT_TYPE_BUFFER, arena_->buffer(), " arena");
  if (staging_) set(VK_OBJECT_TYPE_BUFFER, staging_->buffer(), " staging");
  if (readback_) set(VK_OBJECT_TYPE_BUFFER, readback_->buffer(), " readback");
  for (VkCommandBuffer commands : encoded_.buffers) set(VK_OBJECT_TYPE_COMMAND_BUFFER, commands, "");
}

Error Program::wait(std::uint64_t nanoseconds) const { return context_->queue().wait(last_submit_, nanoseconds); }

Error Program::read(std::uint64_t offset, void* out, std::uint64_t bytes) const {
  if (bytes == 0) return {};
  const trace::Span span(context_->trace(), trace::Stage::read, "read");
  if (Error e = wait()) return e;
  const vk::Allocation& from = readback_ ? *readback_ : *arena_;
  const std::uint64_t begin = readback_ ? offset - plan_.readback_begin : offset;
  return from.read(begin, out, bytes);
}

Error Program::rebind(record::ResourceId resource, std::shared_ptr<vk::Allocation> memory) {
  // The plan has no barriers between resources: one that is written must not be another one, too.
  for (record::ResourceId other = 0; other < resources_.size(); ++other) {
    if (other != resource && resources_[other] == memory && (plan_.writes(other) || plan_.writes(resource))) {
      return Error(Errc::invalid_argument, "rebind: the buffer is bound to this program already, and stored to");
    }
  }
  if (memory->exact() && writes_vectors(plan_, resource)) {
    return Error(Errc::invalid_argument,
                 "rebind: the program stores whole vec4s, and the range of this imported buffer ends within one; "
                 "record the store with such a buffer, or import it with the bytes up to the next multiple of 16");
  }
  if (Error e = wait()) return e;
  Resources bound = resources_;
  bound[resource] = std::move(memory);
  if (Error e = check_apart(plan_, bound, "rebind")) return e;
  auto encoded = encode(bound);
  if (!encoded) return encoded.error();
  resources_ = std::move(bound);
  encoded_ = std::move(*encoded);
  traced_.clear();
  return {};
}

void Program::finish() noexcept {
  encoded_ = {};
  traced_.clear();
  staging_.reset();
  resources_.clear();
}

}  // namespace brontes::submit
