#include "submit/program.hpp"

#include "encode/encoder.hpp"
#include "vk/context.hpp"

#include <cstring>

namespace brontes::submit {
namespace {

using encode::Stage;

// All uploads, as one range at the start of the arena or of the staging buffer.
void gather_uploads(const record::Graph& graph, const plan::Plan& plan, std::byte* into) {
  for (std::size_t i = 0; i < plan.uploads.size(); ++i) {
    const plan::Placement& place = plan.uploads[i];
    if (place.bytes != 0) std::memcpy(into + place.offset, graph.uploads()[i].data.get(), place.bytes);
  }
}

}  // namespace

Error Results::read(std::uint64_t offset, void* out, std::uint64_t bytes) const {
  if (bytes == 0) return {};
  const vk::Allocation& from = readback ? *readback : *arena;
  const std::uint64_t begin = readback ? offset - readback_begin : offset;
  if (Error e = from.invalidate(begin, bytes)) return e;
  std::memcpy(out, from.mapped() + begin, bytes);
  return {};
}

Result<Results> run(const std::shared_ptr<vk::Context>& context, const record::Graph& graph, const plan::Plan& plan,
                    Span<const std::shared_ptr<vk::Allocation>> resources, BatchStats& stats) {
  vk::Memory& memory = context->memory();
  BatchStats cost = stats;
  auto allocate = [&](std::uint64_t bytes, vk::MemoryUse use, const char* name) {
    ++cost.allocations;
    return memory.allocate(context, bytes, use, name);
  };

  Results results;
  if (plan.arena_bytes != 0) {
    auto arena = allocate(plan.arena_bytes, vk::MemoryUse::device, "brontes arena");
    if (!arena) return arena.error();
    results.arena = *arena;
  }
  const bool mapped = memory.mapped();
  std::shared_ptr<vk::Allocation> staging;
  if (plan.upload_bytes != 0) {
    if (!mapped) {
      auto made = allocate(plan.upload_bytes, vk::MemoryUse::upload, "brontes staging");
      if (!made) return made.error();
      staging = *made;
    }
    const vk::Allocation& target = mapped ? *results.arena : *staging;
    gather_uploads(graph, plan, target.mapped());
    if (Error e = target.flush(0, plan.upload_bytes)) return e;
    ++cost.transfers_up;
    cost.bytes_up += plan.element_bytes_up;
  }
  const std::uint64_t readback_bytes = plan.readback_end - plan.readback_begin;
  if (readback_bytes != 0) {
    if (!mapped) {
      auto made = allocate(readback_bytes, vk::MemoryUse::readback, "brontes readback");
      if (!made) return made.error();
      results.readback = *made;
      results.readback_begin = plan.readback_begin;
    }
    ++cost.transfers_down;
    cost.bytes_down += plan.element_bytes_down;
  }
  cost.arena_bytes += plan.arena_bytes;

  const bool device_work = !plan.dispatches.empty() || staging || results.readback;
  if (device_work) {
    auto commands = context->recycler().take_commands();
    if (!commands) return commands.error();
    const auto needs = encode::descriptor_needs(plan);
    auto descriptors = context->recycler().take_descriptors(needs.sets, needs.descriptors);
    if (!descriptors) return descriptors.error();

    encode::Encoder encoder(*context, commands->buffer);
    auto boundary = [&](Stage before, Stage after) {
      encoder.barrier(before, after);
      ++cost.boundary_barriers;
    };
    if (Error e = encoder.begin()) return e;
    if (staging) {
      encoder.copy(*staging, 0, *results.arena, 0, plan.upload_bytes);
      ++cost.copy_commands;
    }
    // Earlier submits may have written the resources; the copy above has written the arena.
    if (staging || plan.uses_resources) boundary(Stage::all, Stage::all);
    if (Error e = encoder.dispatches(plan, {results.arena.get(), resources}, *descriptors, &cost.pipelines_created)) {
      return e;
    }
    if (results.readback) {
      if (!plan.dispatches.empty()) boundary(Stage::compute, Stage::transfer);
      encoder.copy(*results.arena, plan.readback_begin, *results.readback, 0, readback_bytes);
      ++cost.copy_commands;
      boundary(Stage::transfer, Stage::host);
    } else if (mapped && !plan.dispatches.empty()) {
      boundary(Stage::compute, Stage::host);
    }
    if (Error e = encoder.end()) return e;

    auto value = context->queue().submit(commands->buffer);
    if (!value) return value.error();
    ++cost.submits;
    cost.dispatches += plan.dispatches.size();
    cost.barriers += plan.barriers.size();
    if (Error e = context->queue().wait(*value)) return e;
    context->recycler().give(std::move(*commands));
    context->recycler().give(std::move(*descriptors));
  }
  stats = cost;
  return results;
}

}  // namespace brontes::submit
