#include "capi/enums.hpp"
#include "capi/handles.hpp"
#include "capi/structs.hpp"

using namespace brontes;
using namespace brontes::capi;

namespace {

Error add_constant(const char* call, const brontes_constant& given, std::vector<KernelConstant>& to) {
  KernelConstant::Kind kind{};
  if (Error e = set(kind, given.kind, call, "brontes_constant_kind")) return e;
  switch (kind) {
    case KernelConstant::Kind::boolean: to.emplace_back(given.id, given.value.boolean != 0); break;
    case KernelConstant::Kind::integer: to.emplace_back(given.id, given.value.integer); break;
    case KernelConstant::Kind::floating: to.emplace_back(given.id, given.value.floating); break;
  }
  return {};
}

Error kernel_options(const char* call, const brontes_kernel_options* given, KernelOptions& to) {
  brontes_kernel_options options;
  if (Error e = BRONTES_STRUCT(call, brontes_kernel_options, given, options)) return e;
  to.name = text_of(options.name);
  to.entry_point = text_of(options.entry_point);
  if (options.constants == nullptr && options.constant_count != 0) return null_data(call, "constants");
  for (std::size_t i = 0; i < options.constant_count; ++i) {
    if (Error e = add_constant(call, options.constants[i], to.constants)) return e;
  }
  if (options.updates == nullptr && options.update_count != 0) return null_data(call, "updates");
  if (options.update_count != 0) to.updates.assign(options.updates, options.updates + options.update_count);
  return {};
}

}  // namespace

brontes_status brontes_kernel_from_spirv(const brontes_device* device, const uint32_t* words, size_t word_count,
                                         const brontes_kernel_options* options, brontes_kernel** kernel,
                                         brontes_error* error) {
  const char* const call = __func__;
  return make(call, kernel, error, [&](brontes_kernel*& out) -> Error {
    if (Error e = check(call, device, "device")) return e;
    KernelOptions making;
    if (Error e = kernel_options(call, options, making)) return e;
    return wrap(Kernel::from_spirv(device->device, {words, word_count}, making), out);
  });
}

void brontes_kernel_destroy(brontes_kernel* kernel) { destroy(kernel); }

brontes_status brontes_kernel_get_info(const brontes_kernel* kernel, brontes_kernel_info* info, brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, kernel, "kernel")) return e;
    const Kernel& of = kernel->kernel;
    const auto size = of.workgroup_size();
    brontes_kernel_info to{};
    to.name = of.name().c_str();
    to.entry_point = of.entry_point().c_str();
    to.binding_count = of.bindings().size();
    to.input_count = of.num_inputs();
    to.output_count = of.num_outputs();
    std::copy(size.begin(), size.end(), to.workgroup_size);
    to.push_bytes = of.push_bytes();
    to.shared_bytes = of.shared_bytes();
    to.uses_subgroups = of.uses_subgroups() ? 1 : 0;
    return BRONTES_RESULT(call, brontes_kernel_info, to, info);
  });
}

brontes_status brontes_kernel_get_binding(const brontes_kernel* kernel, size_t index, brontes_kernel_binding* binding,
                                          brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, kernel, "kernel")) return e;
    const auto bindings = kernel->kernel.bindings();
    if (index >= bindings.size()) {
      return Error(Errc::invalid_argument,
                   std::string(call) + ": binding " + std::to_string(index) + " of " + std::to_string(bindings.size()));
    }
    brontes_kernel_binding to{};
    to.name = bindings[index].name.c_str();
    to.binding = bindings[index].binding;
    to.access = to_c(bindings[index].access);
    return BRONTES_RESULT(call, brontes_kernel_binding, to, binding);
  });
}

brontes_status brontes_kernel_groups_for(const brontes_kernel* kernel, uint64_t x, uint64_t y, uint64_t z,
                                         uint32_t groups[3], brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, kernel, "kernel")) return e;
    if (groups == nullptr) return invalid(call, "a null pointer where the groups go");
    const Groups count = kernel->kernel.groups_for(x, y, z);
    groups[0] = count.x;
    groups[1] = count.y;
    groups[2] = count.z;
    return {};
  });
}
