// The enums of C++ as the numbers of C. A switch without a default names every enumerator: one that is added later has
// no constant, and does not compile.
#pragma once

#include <brontes/brontes.h>
#include <brontes/device.hpp>
#include <brontes/error.hpp>
#include <brontes/kernel.hpp>
#include <brontes/matmul.hpp>
#include <brontes/matmul_cache.hpp>
#include <brontes/pipeline_cache.hpp>
#include <brontes/program.hpp>
#include <brontes/tensor.hpp>
#include <brontes/tuning_file.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

namespace brontes::capi {

// -1 is no enumerator.

constexpr brontes_status to_c(Errc code) noexcept {
  switch (code) {
    case Errc::ok: return BRONTES_OK;
    case Errc::invalid_argument: return BRONTES_ERROR_INVALID_ARGUMENT;
    case Errc::empty_input: return BRONTES_ERROR_EMPTY_INPUT;
    case Errc::null_data: return BRONTES_ERROR_NULL_DATA;
    case Errc::shape_mismatch: return BRONTES_ERROR_SHAPE_MISMATCH;
    case Errc::type_mismatch: return BRONTES_ERROR_TYPE_MISMATCH;
    case Errc::size_overflow: return BRONTES_ERROR_SIZE_OVERFLOW;
    case Errc::limit_exceeded: return BRONTES_ERROR_LIMIT_EXCEEDED;
    case Errc::not_found: return BRONTES_ERROR_NOT_FOUND;
    case Errc::already_exists: return BRONTES_ERROR_ALREADY_EXISTS;
    case Errc::invalid_tensor: return BRONTES_ERROR_INVALID_TENSOR;
    case Errc::foreign_tensor: return BRONTES_ERROR_FOREIGN_TENSOR;
    case Errc::stale_tensor: return BRONTES_ERROR_STALE_TENSOR;
    case Errc::not_executed: return BRONTES_ERROR_NOT_EXECUTED;
    case Errc::not_kept: return BRONTES_ERROR_NOT_KEPT;
    case Errc::no_loader: return BRONTES_ERROR_NO_LOADER;
    case Errc::no_driver: return BRONTES_ERROR_NO_DRIVER;
    case Errc::no_device: return BRONTES_ERROR_NO_DEVICE;
    case Errc::out_of_memory: return BRONTES_ERROR_OUT_OF_MEMORY;
    case Errc::device_lost: return BRONTES_ERROR_DEVICE_LOST;
    case Errc::timeout: return BRONTES_ERROR_TIMEOUT;
    case Errc::unsupported: return BRONTES_ERROR_UNSUPPORTED;
    case Errc::io: return BRONTES_ERROR_IO;
    case Errc::vulkan: return BRONTES_ERROR_VULKAN;
  }
  return -1;
}

constexpr brontes_dtype to_c(DType type) noexcept {
  switch (type) {
    case DType::f32: return BRONTES_DTYPE_F32;
    case DType::f16: return BRONTES_DTYPE_F16;
    case DType::bf16: return BRONTES_DTYPE_BF16;
    case DType::q8_0: return BRONTES_DTYPE_Q8_0;
    case DType::q4_0: return BRONTES_DTYPE_Q4_0;
    case DType::i32: return BRONTES_DTYPE_I32;
    case DType::mask: return BRONTES_DTYPE_MASK;
  }
  return -1;
}

constexpr brontes_device_type to_c(DeviceType type) noexcept {
  switch (type) {
    case DeviceType::other: return BRONTES_DEVICE_OTHER;
    case DeviceType::integrated_gpu: return BRONTES_DEVICE_INTEGRATED_GPU;
    case DeviceType::discrete_gpu: return BRONTES_DEVICE_DISCRETE_GPU;
    case DeviceType::virtual_gpu: return BRONTES_DEVICE_VIRTUAL_GPU;
    case DeviceType::cpu: return BRONTES_DEVICE_CPU;
  }
  return -1;
}

constexpr brontes_severity to_c(Severity severity) noexcept {
  switch (severity) {
    case Severity::info: return BRONTES_SEVERITY_INFO;
    case Severity::warning: return BRONTES_SEVERITY_WARNING;
    case Severity::error: return BRONTES_SEVERITY_ERROR;
  }
  return -1;
}

constexpr brontes_toggle to_c(Toggle toggle) noexcept {
  switch (toggle) {
    case Toggle::automatic: return BRONTES_AUTOMATIC;
    case Toggle::off: return BRONTES_OFF;
    case Toggle::on: return BRONTES_ON;
  }
  return -1;
}

constexpr brontes_access_mode to_c(AccessMode mode) noexcept {
  switch (mode) {
    case AccessMode::automatic: return BRONTES_ACCESS_AUTOMATIC;
    case AccessMode::storage: return BRONTES_ACCESS_STORAGE;
    case AccessMode::texel: return BRONTES_ACCESS_TEXEL;
    case AccessMode::pointer: return BRONTES_ACCESS_POINTER;
  }
  return -1;
}

constexpr brontes_pipeline_cache_state to_c(PipelineCacheState state) noexcept {
  switch (state) {
    case PipelineCacheState::off: return BRONTES_PIPELINE_CACHE_OFF;
    case PipelineCacheState::cold: return BRONTES_PIPELINE_CACHE_COLD;
    case PipelineCacheState::warm: return BRONTES_PIPELINE_CACHE_WARM;
    case PipelineCacheState::rejected: return BRONTES_PIPELINE_CACHE_REJECTED;
  }
  return -1;
}

constexpr brontes_tuning_state to_c(TuningState state) noexcept {
  switch (state) {
    case TuningState::off: return BRONTES_TUNING_OFF;
    case TuningState::none: return BRONTES_TUNING_NONE;
    case TuningState::loaded: return BRONTES_TUNING_LOADED;
    case TuningState::measured: return BRONTES_TUNING_MEASURED;
    case TuningState::rejected: return BRONTES_TUNING_REJECTED;
  }
  return -1;
}

constexpr brontes_constant_kind to_c(KernelConstant::Kind kind) noexcept {
  switch (kind) {
    case KernelConstant::Kind::boolean: return BRONTES_CONSTANT_BOOLEAN;
    case KernelConstant::Kind::integer: return BRONTES_CONSTANT_INTEGER;
    case KernelConstant::Kind::floating: return BRONTES_CONSTANT_FLOATING;
  }
  return -1;
}

constexpr brontes_kernel_access to_c(KernelAccess access) noexcept {
  switch (access) {
    case KernelAccess::read: return BRONTES_KERNEL_READ;
    case KernelAccess::write: return BRONTES_KERNEL_WRITE;
    case KernelAccess::read_write: return BRONTES_KERNEL_READ_WRITE;
  }
  return -1;
}

constexpr brontes_layout to_c(Layout layout) noexcept {
  switch (layout) {
    case Layout::kn: return BRONTES_LAYOUT_KN;
    case Layout::nk: return BRONTES_LAYOUT_NK;
  }
  return -1;
}

constexpr brontes_matmul_kernel to_c(MatmulKernel kernel) noexcept {
  switch (kernel) {
    case MatmulKernel::automatic: return BRONTES_MATMUL_AUTOMATIC;
    case MatmulKernel::naive: return BRONTES_MATMUL_NAIVE;
    case MatmulKernel::gemv: return BRONTES_MATMUL_GEMV;
    case MatmulKernel::tiled: return BRONTES_MATMUL_TILED;
    case MatmulKernel::subgroup: return BRONTES_MATMUL_SUBGROUP;
    case MatmulKernel::panel: return BRONTES_MATMUL_PANEL;
    case MatmulKernel::coopmat: return BRONTES_MATMUL_COOPMAT;
  }
  return -1;
}

constexpr brontes_precision to_c(Precision precision) noexcept {
  switch (precision) {
    case Precision::automatic: return BRONTES_PRECISION_AUTOMATIC;
    case Precision::f32: return BRONTES_PRECISION_F32;
    case Precision::f16: return BRONTES_PRECISION_F16;
  }
  return -1;
}

constexpr brontes_dump_format to_c(DumpFormat format) noexcept {
  switch (format) {
    case DumpFormat::text: return BRONTES_DUMP_TEXT;
    case DumpFormat::dot: return BRONTES_DUMP_DOT;
    case DumpFormat::json: return BRONTES_DUMP_JSON;
  }
  return -1;
}

constexpr brontes_dump_stage to_c(DumpStage stage) noexcept {
  switch (stage) {
    case DumpStage::recorded: return BRONTES_DUMP_RECORDED;
    case DumpStage::planned: return BRONTES_DUMP_PLANNED;
  }
  return -1;
}

constexpr brontes_activation to_c(Activation activation) noexcept {
  switch (activation) {
    case Activation::none: return BRONTES_ACTIVATION_NONE;
    case Activation::relu: return BRONTES_ACTIVATION_RELU;
    case Activation::sigmoid: return BRONTES_ACTIVATION_SIGMOID;
    case Activation::tanh: return BRONTES_ACTIVATION_TANH;
    case Activation::swish: return BRONTES_ACTIVATION_SWISH;
    case Activation::gelu: return BRONTES_ACTIVATION_GELU;
    case Activation::gelu_tanh: return BRONTES_ACTIVATION_GELU_TANH;
  }
  return -1;
}

/// The enumerator with this number, if there is one. They have the same numbers in both languages.
template <class Enum>
constexpr std::optional<Enum> from_c(std::int32_t number) noexcept {
  using Underlying = std::underlying_type_t<Enum>;
  if (number < 0 || number > std::numeric_limits<Underlying>::max()) return std::nullopt;
  const auto value = static_cast<Enum>(number);
  if (to_c(value) != number) return std::nullopt;
  return value;
}

/// The same as part of a call: sets `to`, or says what is wrong.
template <class Enum>
Error set(Enum& to, std::int32_t number, const char* call, const char* what) {
  const auto value = from_c<Enum>(number);
  if (!value) {
    return Error(Errc::invalid_argument, std::string(call) + ": " + std::to_string(number) + " is no value of " + what);
  }
  to = *value;
  return {};
}

static_assert(from_c<Errc>(BRONTES_ERROR_VULKAN) == Errc::vulkan);
static_assert(from_c<DType>(BRONTES_DTYPE_MASK) == DType::mask);
static_assert(from_c<MatmulKernel>(BRONTES_MATMUL_COOPMAT) == MatmulKernel::coopmat);
static_assert(from_c<Precision>(BRONTES_PRECISION_F16) == Precision::f16);
static_assert(from_c<Activation>(BRONTES_ACTIVATION_GELU_TANH) == Activation::gelu_tanh);

}  // namespace brontes::capi
