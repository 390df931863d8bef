#include "plan/plan.hpp"

#include "plan/fuse.hpp"
#include "plan/homes.hpp"

#include <algorithm>
#include <string_view>

namespace brontes::plan {

Dispatch::Dispatch(kernels::Ref of, std::uint32_t for_group) : kernel(of), group(for_group) {
  const kernels::Kernel& k = of.kernel();
  assert(k.constants.size <= max_constants && k.bindings.size <= max_bindings && k.push_bytes <= max_push_bytes);
  constant_count = static_cast<std::uint8_t>(k.constants.size);
  binding_count = static_cast<std::uint8_t>(k.bindings.size);
  push_bytes = static_cast<std::uint8_t>(k.push_bytes);
  for (std::size_t i = 0; i < k.constants.size; ++i) constants[i] = k.constants[i].default_bits;
  if (of == kernels::Id::elementwise || of == kernels::Id::elementwise_strided) family = Family::elementwise;
}

std::size_t Dispatch::constant_index(std::uint32_t id) const {
  const kernels::Kernel& k = kernels::get(kernel);
  for (std::size_t i = 0; i < k.constants.size; ++i) {
    if (k.constants[i].id == id) return i;
  }
  assert(false && "the kernel has no such specialization constant");
  return 0;
}

std::size_t Dispatch::binding_index(std::uint32_t binding) const {
  const kernels::Kernel& k = kernels::get(kernel);
  for (std::size_t i = 0; i < k.bindings.size; ++i) {
    if (k.bindings[i].binding == binding) return i;
  }
  assert(false && "the kernel has no such binding");
  return 0;
}

void Dispatch::bind_region(std::uint32_t binding, const Region& region) { bind_at(binding_index(binding), region); }

void Dispatch::bind_at(std::size_t index, const Region& region) {
  bindings[index] = region;
  used = static_cast<std::uint8_t>(used | 1u << index);
  if (!region.half) return;
  // Every kernel of the library has it under the same number.
  const std::size_t halves = constant_index(kernels::elementwise::half_slots);
  constants[halves] |= 1u << kernels::get(kernel).bindings[index].binding;
}

void Dispatch::set_overwritten(std::uint32_t binding, bool yes) {
  const auto bit = 1u << binding_index(binding);
  overwritten = static_cast<std::uint8_t>(yes ? overwritten | bit : overwritten & ~bit);
}

void Dispatch::close() {
  const kernels::Kernel& k = kernels::get(kernel);
  // A binding the kernel writes gets a region it writes: to a validation layer, which does not know the
  // constants, all bindings are used.
  auto any = [&](bool written) {
    for (std::size_t i = 0; i < binding_count; ++i) {
      if ((used >> i & 1u) != 0 && (k.bindings[i].access != kernels::Access::read) == written) return i;
    }
    return std::size_t{max_bindings};
  };
  const std::size_t output = any(true);
  const std::size_t input = any(false) != max_bindings ? any(false) : output;
  assert(output != max_bindings);
  for (std::size_t i = 0; i < binding_count; ++i) {
    if ((used >> i & 1u) == 0) bindings[i] = bindings[k.bindings[i].access == kernels::Access::read ? input : output];
  }
}

bool Dispatch::reads(std::size_t binding) const noexcept {
  return ((used & ~overwritten) >> binding & 1u) != 0 &&
         kernels::get(kernel).bindings[binding].access != kernels::Access::write;
}

bool Dispatch::writes(std::size_t binding) const noexcept {
  return (used >> binding & 1u) != 0 && kernels::get(kernel).bindings[binding].access != kernels::Access::read;
}

bool Plan::writes(record::ResourceId resource) const noexcept {
  for (const Dispatch& d : dispatches) {
    for (std::size_t b = 0; b < d.binding_count; ++b) {
      if (d.writes(b) && d.bindings[b].resource == resource) return true;
    }
  }
  return false;
}

namespace {

// The device's access mode, where the kernel has it and the regions are within its limits.
kernels::AccessMode access_of(const Dispatch& d, const Traits& traits) {
  using kernels::AccessMode;
  const kernels::Kernel& kernel = kernels::get(d.kernel);
  const AccessMode mode = traits.access.of(d.family);
  if (!kernel.has(mode)) return AccessMode::storage;
  if (mode != AccessMode::texel) return mode;
  for (std::size_t b = 0; b < d.binding_count; ++b) {
    const bool input = (d.used >> b & 1u) != 0 && kernel.bindings[b].access == kernels::Access::read;
    if (input && d.bindings[b].bytes > traits.max_texel_elements * 16) return AccessMode::storage;
  }
  return AccessMode::texel;
}

}  // namespace

bool Lowering::is_there(const record::Node& mover, std::size_t k) const {
  return plan::is_there(graph, grouping.homes, mover, k);
}

Error Lowering::emit(const Dispatch& dispatch, std::uint64_t groups) {
  auto folded = fold(groups, traits);
  if (!folded) return folded.error();
  emit_grid(dispatch, *folded);
  dispatches.back().folded = true;
  return {};
}

void Lowering::emit_grid(const Dispatch& from, const std::array<std::uint32_t, 3>& groups) {
  dispatches.push_back(from);
  Dispatch& dispatch = dispatches.back();
  dispatch.groups = groups;
  dispatch.access = access_of(dispatch, traits);
  dispatch.close();
  if (dispatches.size() < 2) return;
  const Dispatch& before = dispatches[dispatches.size() - 2];
  if (before.group == dispatch.group) dispatch.pass = before.pass + 1;
}

namespace {

Error lower(Lowering& to, std::uint32_t index) {
  if (to.grouping.groups[index].root == no_node) return lower_elementwise(to, index);
  return to.root(index).op->lower(to, index);
}

const char* name_of(const Group& group, const record::Graph& graph) {
  return record::name(graph.nodes()[group.root != no_node ? group.root : group.program.steps[0].node]);
}

// Places values in the arena: see Plan. Temporaries come last.
class Layout {
 public:
  Layout(const record::Graph& graph, const PlanOptions& options, const Grouping& grouping, Arena& memory,
         std::vector<Region>& regions, Plan& plan)
      : graph_(graph), options_(options), grouping_(grouping), memory_(memory), regions_(regions), plan_(plan) {}

  void run() {
    for (std::size_t id = 0; id < graph_.values().size(); ++id) {
      const record::Value& value = graph_.values()[id];
      if (value.resource != record::no_resource && !value.weight) {
        regions_[id] = {value.resource, value.offset, value.bytes(), value.half()};
      }
    }
    place_uploads(false);
    plan_.readback_begin = memory_.end();
    place_uploads(true);
    plan_.upload_bytes = memory_.end();
    place_results(true);
    plan_.readback_end = memory_.end();
    place_results(false);
    place_homes();
    place_views();
    for (const Placement& p : plan_.uploads) plan_.element_bytes_up += p.bytes;
  }

 private:
  Placement place(record::ValueId id) {
    const record::Value& value = graph_.values()[id];
    regions_[id] = memory_.reserve(value.bytes(), value.half());
    return {id, regions_[id].offset, regions_[id].bytes};
  }

  bool wanted(record::ValueId id) const { return grouping_.wanted[id] != 0; }

  // The value itself can be read, or views of it can.
  void show(const Placement& placement) {
    plan_.element_bytes_down += placement.bytes;
    if (readable(graph_, placement.value, options_)) plan_.readable.push_back(placement);
  }

  // What lies in values was made before these: the last first.
  void place_homes() {
    for (auto home = grouping_.homes.rbegin(); home != grouping_.homes.rend(); ++home) {
      const Region whole = home->in != record::no_value ? regions_[home->in] : Region{home->resource, 0, 0};
      const record::Value& value = graph_.value(home->of);
      regions_[home->of] = {whole.resource, whole.offset + home->offset, value.bytes(), value.half()};
    }
    // They come down with what they lie in.
    for (const Home& home : grouping_.homes) {
      if (!readable(graph_, home.of, options_)) continue;
      plan_.readable.push_back({home.of, regions_[home.of].offset, regions_[home.of].bytes});
    }
  }

  void place_views() {
    for (std::size_t id = graph_.first_pending_value(); id < graph_.values().size(); ++id) {
      const auto view = static_cast<record::ValueId>(id);
      const record::ValueId whole = graph_.base(view);
      if (whole == view) continue;
      regions_[view] = regions_[whole];
      if (readable(graph_, view, options_))
        plan_.readable.push_back({view, regions_[view].offset, regions_[view].bytes});
    }
  }

  void place_uploads(bool readable_ones) {
    plan_.uploads.resize(graph_.uploads().size());
    for (std::size_t i = 0; i < graph_.uploads().size(); ++i) {
      const record::ValueId id = graph_.uploads()[i].value;
      if (wanted(id) != readable_ones) continue;
      plan_.uploads[i] = place(id);
      if (readable_ones) show(plan_.uploads[i]);
    }
  }

  void place_results(bool readable_ones) {
    for (std::size_t i = graph_.first_pending_node(); i < graph_.nodes().size(); ++i) {
      const record::Node& node = graph_.nodes()[i];
      for (record::ValueId id = node.output; id - node.output < node.output_count; ++id) {
        if (grouping_.written[id] == 0) continue;
        if (wanted(id) != readable_ones || Home::find(grouping_.homes, id) != nullptr) continue;
        const Placement placement = place(id);
        if (readable_ones) show(placement);
      }
    }
  }

  const record::Graph& graph_;
  const PlanOptions& options_;
  const Grouping& grouping_;
  Arena& memory_;
  std::vector<Region>& regions_;
  Plan& plan_;
};

// A run that takes less of the bound than this is not timed: the estimate may be off by as much before a submit that
// takes too long is one that was never timed.
constexpr double least_share_timed = 1.0 / 64;

}  // namespace

Result<Plan> make_plan(const record::Graph& graph, const Traits& traits, const PlanOptions& options) {
  Plan plan;
  Grouping grouping = fuse(graph, options);
  find_homes(graph, traits, options, grouping);
  plan.dropped_operations = grouping.dropped_operations;
  plan.fused_operations = grouping.fused_operations;

  Arena memory(traits.storage_alignment);
  std::vector<Region> regions(graph.values().size());
  Layout(graph, options, grouping, memory, regions, plan).run();

  plan.dispatches.reserve(grouping.groups.size());
  Lowering to{graph, traits, options, grouping, regions, memory, plan.dispatches, plan.tuned};
  for (std::uint32_t i = 0; i < grouping.groups.size(); ++i) {
    if (Error e = lower(to, i)) {
      e.message = std::string(name_of(grouping.groups[i], graph)) + ": " + e.message;
      return e;
    }
  }
  plan.groups = std::move(grouping.groups);
  plan.prologues = std::move(grouping.prologues);
  plan.homes = std::move(grouping.homes);
  plan.arena_bytes = plan.arena_bytes_without_reuse = memory.end();
  order(plan.dispatches, plan.barriers);

  const auto& reserved = memory.reservations();
  const auto first_temporary = std::lower_bound(reserved.begin(), reserved.end(), plan.readback_end,
                                                [](const Region& r, std::uint64_t at) { return r.offset < at; });
  const Span<const Region> temporaries(reserved.data() + (first_temporary - reserved.begin()),
                                       static_cast<std::size_t>(reserved.end() - first_temporary));
  if (options.reuse_memory && !temporaries.empty()) {
    plan.arena_bytes = reuse_memory(plan.dispatches, temporaries, traits.storage_alignment);
    order(plan.dispatches, plan.barriers);  // memory that changes hands has hazards of its own
  }
  plan.submits = split(plan.dispatches, traits, options);
  for (const Dispatch& d : plan.dispatches) plan.cost += cost_of(d);
  plan.worth_timing = options.seconds_per_submit > 0 &&
                      estimate(plan.cost, traits.speed) >= options.seconds_per_submit * least_share_timed;
  return plan;
}

}  // namespace brontes::plan
