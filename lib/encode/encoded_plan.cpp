#include "encode/encoded_plan.hpp"

#include "vk/context.hpp"

#include <utility>

namespace brontes::encode {
namespace {

Error write_parts(vk::Context& context, const plan::Plan& plan, const Memories& memories, Use use,
                  const Bindings& bindings, Marks* marks, CommandBuffers& out) {
  BatchStats& per_run = out.per_run;
  for (std::size_t part = 0; part < plan.submits.size(); ++part) {
    auto slot = context.recycler().take_commands();
    if (!slot) return slot.error();
    out.commands.push_back(std::move(*slot));
    out.buffers.push_back(out.commands.back()->buffer);
    const plan::DispatchRange range = plan.submits[part];
    Encoder encoder(context, out.buffers.back());
    auto boundary = [&](Stage before, Stage after) {
      encoder.barrier(before, after);
      ++per_run.boundary_barriers;
    };
    auto mark = [&](Marks::What what) {
      if (marks != nullptr) marks->add(out.buffers.back(), {what});
    };
    if (Error e = encoder.begin(use)) return e;
    if (marks != nullptr && part == 0) marks->timestamps->reset(out.buffers.back());
    // Whatever ran before may still use the arena or the resources: earlier parts, earlier runs.
    boundary(Stage::all, Stage::all);
    mark(Marks::What::begin);
    if (part == 0 && memories.staging != nullptr) {
      encoder.copy(*memories.staging, 0, *memories.arena, 0, plan.upload_bytes);
      ++per_run.copy_commands;
      mark(Marks::What::upload);
      boundary(Stage::transfer, Stage::all);
    }
    per_run.barriers += encoder.dispatches(plan, range, bindings, memories.labels, marks);
    per_run.dispatches += range.end - range.begin;
    if (part + 1 == plan.submits.size()) {
      if (memories.readback != nullptr) {
        boundary(Stage::compute, Stage::transfer);
        encoder.copy(*memories.arena, plan.readback_begin, *memories.readback, 0, plan.readback_bytes());
        ++per_run.copy_commands;
        mark(Marks::What::readback);
      }
      boundary(Stage::all, Stage::host);
    }
    if (Error e = encoder.end()) return e;
    ++per_run.submits;
  }
  return {};
}

bool runs_several_ops(const plan::Plan& plan, const plan::Dispatch& dispatch) {
  const plan::Group& group = plan.groups[dispatch.group];
  std::size_t steps = group.program.step_count;
  if (group.prologue != plan::no_prologue) steps += plan.prologues[group.prologue].step_count;
  return steps > 1;
}

void count_pipelines(const plan::Plan& plan, const Bindings& bindings, BatchStats& per_run) {
  for (const Bindings::Distinct& pipeline : bindings.pipelines()) {
    ++per_run.pipelines_used;
    per_run.spirv_bytes += pipeline.bound.spirv_bytes;
    if (runs_several_ops(plan, plan.dispatches[pipeline.dispatch])) ++per_run.fused_programs;
  }
}

}  // namespace

Result<EncodedPlan> encode_plan(vk::Context& context, const plan::Plan& plan, const Memories& memories, Use use,
                                BatchStats& cost) {
  EncodedPlan out;
  BatchStats& per_run = out.per_run;
  if (plan.readback_bytes() != 0) {
    per_run.transfers_down = 1;
    per_run.bytes_down = plan.element_bytes_down;
  }
  if (plan.dispatches.empty() && memories.staging == nullptr && memories.readback == nullptr) return out;
  auto bindings = Bindings::make(context, plan, memories, cost);
  if (!bindings) return bindings.error();
  out.bindings = std::move(*bindings);
  count_pipelines(plan, out.bindings, per_run);

  if (Error e = write_parts(context, plan, memories, use, out.bindings, nullptr, out)) return e;
  return out;
}

Result<CommandBuffers> encode_parts(vk::Context& context, const plan::Plan& plan, const Memories& memories,
                                    const EncodedPlan& encoded) {
  CommandBuffers out;
  if (encoded.buffers.empty()) return out;
  if (Error e = write_parts(context, plan, memories, Use::often, encoded.bindings, nullptr, out)) return e;
  return out;
}

Result<TimedRun> encode_timed(vk::Context& context, const plan::Plan& plan, const Memories& memories,
                              const EncodedPlan& encoded) {
  // A beginning per part, the two copies, and the dispatches, which may be in several parts.
  std::size_t count = plan.submits.size() + 2;
  for (const plan::DispatchRange& part : plan.submits) count += part.end - part.begin;
  auto timestamps = context.recycler().take_timestamps(static_cast<std::uint32_t>(count));
  if (!timestamps) return timestamps.error();
  TimedRun out(std::move(*timestamps));
  if (encoded.buffers.empty()) return out;
  if (Error e = write_parts(context, plan, memories, Use::often, encoded.bindings, &out.marks, out)) return e;
  return out;
}

void record_run(const vk::Context& context, const plan::Plan& plan, const Memories& memories,
                const EncodedPlan& encoded, const Surroundings& around, const char* name, VkCommandBuffer commands) {
  if (encoded.buffers.empty()) return;
  Encoder encoder(context, commands);
  encoder.begin_label(name);
  encoder.barrier_from(around.before_stages, around.before_writes, Stage::all);
  if (memories.staging != nullptr) {
    encoder.copy(*memories.staging, 0, *memories.arena, 0, plan.upload_bytes);
    encoder.barrier(Stage::transfer, Stage::all);
  }
  static_cast<void>(encoder.dispatches(plan, {0, static_cast<std::uint32_t>(plan.dispatches.size())}, encoded.bindings,
                                       memories.labels));
  if (memories.readback != nullptr) {
    encoder.barrier(Stage::compute, Stage::transfer);
    encoder.copy(*memories.arena, plan.readback_begin, *memories.readback, 0, plan.readback_bytes());
  }
  encoder.barrier_to(Stage::all, around.after_stages | VK_PIPELINE_STAGE_HOST_BIT,
                     around.after_accesses | VK_ACCESS_HOST_READ_BIT);
  encoder.end_label();
}

}  // namespace brontes::encode
