#include "plan/plan.hpp"

#include <algorithm>

namespace brontes::plan {

Dispatch::Dispatch(kernels::Id id, std::uint32_t for_node) : kernel(id), node(for_node) {
  const kernels::Kernel& k = kernels::get(id);
  assert(k.constants.size <= max_constants && k.bindings.size <= max_bindings && k.push_bytes <= max_push_bytes);
  constant_count = static_cast<std::uint8_t>(k.constants.size);
  binding_count = static_cast<std::uint8_t>(k.bindings.size);
  push_bytes = static_cast<std::uint8_t>(k.push_bytes);
  for (std::size_t i = 0; i < k.constants.size; ++i) constants[i] = k.constants[i].default_bits;
}

void Dispatch::set_constant(std::uint32_t id, std::uint32_t value) {
  const kernels::Kernel& k = kernels::get(kernel);
  for (std::size_t i = 0; i < k.constants.size; ++i) {
    if (k.constants[i].id == id) {
      constants[i] = value;
      return;
    }
  }
  assert(false && "the kernel has no such specialization constant");
}

void Dispatch::bind_region(std::uint32_t binding, const Region& region) {
  const kernels::Kernel& k = kernels::get(kernel);
  for (std::size_t i = 0; i < k.bindings.size; ++i) {
    if (k.bindings[i].binding == binding) {
      bindings[i] = region;
      used = static_cast<std::uint8_t>(used | 1u << i);
      return;
    }
  }
  assert(false && "the kernel has no such binding");
}

void Dispatch::close() {
  assert(used != 0);
  std::size_t any = 0;
  while ((used >> any & 1u) == 0) ++any;
  for (std::size_t i = 0; i < binding_count; ++i) {
    if ((used >> i & 1u) == 0) bindings[i] = bindings[any];
  }
}

bool Dispatch::reads(std::size_t binding) const noexcept {
  return (used >> binding & 1u) != 0 && kernels::get(kernel).bindings[binding].access != kernels::Access::write;
}

bool Dispatch::writes(std::size_t binding) const noexcept {
  return (used >> binding & 1u) != 0 && kernels::get(kernel).bindings[binding].access != kernels::Access::read;
}

namespace {

Error lower(Lowering& to, std::uint32_t index, Plan& plan) {
  const record::Node& node = to.graph.nodes()[index];
  switch (node.kind) {
    case record::NodeKind::elementwise: return lower_elementwise(to, index);
    case record::NodeKind::reduce: return lower_reduce(to, index);
    case record::NodeKind::matmul: return lower_matmul(to, index);
    case record::NodeKind::store: {
      const record::Value& value = to.graph.values()[node.inputs[0]];
      plan.writes_resources = plan.uses_resources = true;
      return lower_copy(to, index, to.regions[node.inputs[0]], {node.store.resource, 0, value.bytes()},
                        value.shape.count());
    }
  }
  return {};
}

}  // namespace

Result<Plan> make_plan(const record::Graph& graph, const Traits& traits, const PlanOptions& options) {
  Plan plan;
  Arena memory(traits.storage_alignment);
  const auto& values = graph.values();
  std::vector<Region> regions(values.size());

  for (std::size_t id = 0; id < values.size(); ++id) {
    if (values[id].resource != record::no_resource) {
      regions[id] = {values[id].resource, values[id].offset, values[id].bytes()};
    }
  }

  // Uploads: those that are read back lie last, next to the results.
  plan.uploads.resize(graph.uploads().size());
  auto place = [&](record::ValueId id) {
    regions[id] = memory.reserve(values[id].bytes());
    return Placement{id, regions[id].offset, values[id].bytes()};
  };
  for (const bool readable : {false, true}) {
    if (readable) plan.readback_begin = memory.end();
    for (std::size_t i = 0; i < graph.uploads().size(); ++i) {
      const record::ValueId id = graph.uploads()[i].value;
      if (graph.readable(id, options.keep_all) != readable) continue;
      plan.uploads[i] = place(id);
      plan.element_bytes_up += plan.uploads[i].bytes;
      if (readable) plan.readable.push_back(plan.uploads[i]);
    }
  }
  plan.upload_bytes = memory.end();

  for (const bool readable : {true, false}) {
    for (std::size_t i = graph.first_pending_node(); i < graph.nodes().size(); ++i) {
      const record::ValueId id = graph.nodes()[i].output;
      if (id == record::no_value || graph.readable(id, options.keep_all) != readable) continue;
      const Placement placement = place(id);
      if (readable) plan.readable.push_back(placement);
    }
    if (readable) plan.readback_end = memory.end();
  }
  for (const Placement& p : plan.readable) plan.element_bytes_down += p.bytes;

  plan.dispatches.reserve(graph.nodes().size() - graph.first_pending_node());
  Lowering to{graph, traits, regions, memory, plan.dispatches};
  for (std::size_t i = graph.first_pending_node(); i < graph.nodes().size(); ++i) {
    for (std::size_t input = 0; input < graph.nodes()[i].input_count; ++input) {
      plan.uses_resources |= regions[graph.nodes()[i].inputs[input]].resource != arena;
    }
    if (Error e = lower(to, static_cast<std::uint32_t>(i), plan)) {
      e.message = std::string(record::name(graph.nodes()[i])) + ": " + e.message;
      return e;
    }
  }
  plan.arena_bytes = memory.end();
  order(plan.dispatches, plan.barriers);
  return plan;
}

}  // namespace brontes::plan
