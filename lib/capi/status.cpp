#include "capi/status.hpp"

#include "capi/enums.hpp"

#include <brontes/version.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace brontes::capi {
namespace {

/// Cut off before a character rather than within it.
std::size_t fitting(const std::string& text, std::size_t room) noexcept {
  if (text.size() <= room) return text.size();
  std::size_t size = room;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0u) == 0x80u) --size;
  return size;
}

}  // namespace

brontes_status report(const Error& error, brontes_error* to) noexcept {
  const brontes_status status = to_c(error.code);
  if (to != nullptr) {
    to->status = status;
    to->vk_result = error.vk_result;
    const std::size_t size = fitting(error.message, sizeof to->message - 1);
    std::memcpy(to->message, error.message.data(), size);
    to->message[size] = '\0';
  }
  return status;
}

Error no_host_memory(const char* call) noexcept {
  try {
    return Error(Errc::out_of_memory, std::string(call) + ": the host is out of memory");
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "out of memory");  // short enough to lie in the string itself
  }
}

}  // namespace brontes::capi

using namespace brontes;
using capi::from_c;

const char* brontes_version() { return version(); }

void brontes_free(void* memory) { std::free(memory); }

uint64_t brontes_dtype_row_bytes(brontes_dtype dtype, uint64_t columns) {
  const auto type = from_c<DType>(dtype);
  return type ? row_bytes(*type, columns) : 0;
}

uint32_t brontes_matmul_variants(brontes_matmul_kernel kernel, brontes_layout layout) {
  const auto with_kernel = from_c<MatmulKernel>(kernel);
  const auto with_layout = from_c<Layout>(layout);
  return with_kernel && with_layout ? matmul_variants(*with_kernel, *with_layout) : 0;
}

#define BRONTES_NAMES(function, c_type, type)                 \
  const char* function(c_type value) {                        \
    const auto known = from_c<type>(value);                   \
    return known.has_value() ? to_string(*known) : "unknown"; \
  }
BRONTES_NAMES(brontes_status_name, brontes_status, Errc)
BRONTES_NAMES(brontes_dtype_name, brontes_dtype, DType)
BRONTES_NAMES(brontes_device_type_name, brontes_device_type, DeviceType)
BRONTES_NAMES(brontes_access_mode_name, brontes_access_mode, AccessMode)
BRONTES_NAMES(brontes_pipeline_cache_state_name, brontes_pipeline_cache_state, PipelineCacheState)
BRONTES_NAMES(brontes_tuning_state_name, brontes_tuning_state, TuningState)
BRONTES_NAMES(brontes_layout_name, brontes_layout, Layout)
BRONTES_NAMES(brontes_matmul_kernel_name, brontes_matmul_kernel, MatmulKernel)
BRONTES_NAMES(brontes_activation_name, brontes_activation, Activation)
#undef BRONTES_NAMES
