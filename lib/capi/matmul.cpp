#include "capi/matmul.hpp"

#include "capi/enums.hpp"
#include "capi/handles.hpp"
#include "capi/structs.hpp"

using namespace brontes;
using namespace brontes::capi;

namespace brontes::capi {

Error set_alpha(const char* call, std::int32_t has_alpha, float alpha, float& to) {
  if (has_alpha != 0) {
    to = alpha;
  } else if (!(alpha == 0.0f)) {
    return invalid(call, "alpha is set, but has_alpha is not");
  }
  return {};
}

Error matmul_options(const char* call, const brontes_matmul_options* given, MatmulOptions& to) {
  brontes_matmul_options options;
  if (Error e = BRONTES_STRUCT(call, brontes_matmul_options, given, options)) return e;
  if (Error e = set(to.layout, options.layout, call, "brontes_layout")) return e;
  if (Error e = set(to.kernel, options.kernel, call, "brontes_matmul_kernel")) return e;
  if (Error e = set(to.precision, options.precision, call, "brontes_precision")) return e;
  to.variant = options.variant;
  return set_alpha(call, options.has_alpha, options.alpha, to.alpha);
}

}  // namespace brontes::capi

brontes_status brontes_explain_matmul(const brontes_device* device, const uint64_t* a_dims, size_t a_rank,
                                      const uint64_t* b_dims, size_t b_rank, const brontes_matmul_options* options,
                                      brontes_matmul_choice* choice, char** reason, brontes_error* error) {
  const char* const call = __func__;
  return guarded(call, error, [&]() -> Error {
    if (Error e = check(call, device, "device")) return e;
    Shape a;
    Shape b;
    MatmulOptions asked;
    if (Error e = shape_of(call, a_dims, a_rank, a)) return e;
    if (Error e = shape_of(call, b_dims, b_rank, b)) return e;
    if (Error e = matmul_options(call, options, asked)) return e;
    const MatmulChoice chosen = explain_matmul(device->device, a, b, asked);
    brontes_matmul_choice to{};
    to.groups = chosen.groups;
    to.kernel = to_c(chosen.kernel);
    to.dispatches = chosen.dispatches;
    to.slices = chosen.slices;
    char* const text = reason == nullptr ? nullptr : copy_text(chosen.reason);
    if (Error e = BRONTES_RESULT(call, brontes_matmul_choice, to, choice)) {
      std::free(text);
      return e;
    }
    if (reason != nullptr) *reason = text;
    return {};
  });
}
