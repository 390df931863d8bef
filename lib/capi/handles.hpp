// What is behind the handles of the C API.
#pragma once

#include "capi/status.hpp"
#include "capi/tensors.hpp"

#include <brontes/brontes.h>
#include <brontes/batch.hpp>
#include <brontes/buffer.hpp>
#include <brontes/device.hpp>
#include <brontes/kernel.hpp>
#include <brontes/matmul_cache.hpp>
#include <brontes/program.hpp>
#include <brontes/weight.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace brontes::capi {

/// The first word of every handle. Languages without C's types pass any pointer for any handle.
enum class Kind : std::uint64_t {
  device = 0x42726f6e74657300,
  device_list,
  buffer,
  weight,
  kernel,
  batch,
  program,
  submission,
  matmul_cache,
  queue_lock,
};

struct Object {
  Kind kind;
};

template <Kind which>
struct Handle : Object {
  static constexpr Kind expected = which;
  Handle() noexcept : Object{which} {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() = default;
};

/// Whether this is a handle of its type.
template <class H>
bool is(const H* handle) noexcept {
  return handle != nullptr && static_cast<const Object*>(handle)->kind == H::expected;
}

template <class H>
Error check(const char* call, const H* handle, const char* what) {
  if (is(handle)) return {};
  return Error(Errc::invalid_argument, std::string(call) + (handle == nullptr ? ": a null " : ": not a ") + what);
}

/// Does nothing for null and for a handle of another type.
template <class H>
void destroy(H* handle) noexcept {
  if (is(handle)) delete handle;
}

/// The Error of a Result, or its value as a new handle.
template <class H, class T>
Error wrap(Result<T> result, H*& out) {
  if (!result) return result.error();
  out = new H(std::move(*result));
  return {};
}

}  // namespace brontes::capi

struct brontes_device : brontes::capi::Handle<brontes::capi::Kind::device> {
  explicit brontes_device(brontes::Device opened) noexcept : device(std::move(opened)) {}
  brontes::Device device;
};

struct brontes_device_list : brontes::capi::Handle<brontes::capi::Kind::device_list> {
  explicit brontes_device_list(std::vector<brontes::DeviceInfo> found) noexcept : devices(std::move(found)) {}
  std::vector<brontes::DeviceInfo> devices;
};

struct brontes_buffer : brontes::capi::Handle<brontes::capi::Kind::buffer> {
  explicit brontes_buffer(brontes::Buffer made) noexcept : buffer(std::move(made)) {}
  brontes::Buffer buffer;
};

struct brontes_weight : brontes::capi::Handle<brontes::capi::Kind::weight> {
  explicit brontes_weight(std::shared_ptr<const brontes::Weight> made) noexcept : weight(std::move(made)) {}
  explicit brontes_weight(brontes::Weight made) : weight(std::make_shared<const brontes::Weight>(std::move(made))) {}
  std::shared_ptr<const brontes::Weight> weight;
};

struct brontes_kernel : brontes::capi::Handle<brontes::capi::Kind::kernel> {
  explicit brontes_kernel(brontes::Kernel made) noexcept : kernel(std::move(made)) {}
  brontes::Kernel kernel;
};

struct brontes_batch : brontes::capi::Handle<brontes::capi::Kind::batch> {
  brontes_batch(const brontes::Device& device, const brontes::BatchOptions& options)
      : batch(device, options), tensors(std::make_shared<brontes::capi::TensorTable>()) {}

  brontes::Batch batch;
  std::shared_ptr<brontes::capi::TensorTable> tensors;
  /// What this room found wrong before the batch had an error of its own, such as a number that is no tensor.
  brontes::Error error;
  /// Of before the last resets.
  std::array<std::uint64_t, 16> old_tags{};
  std::size_t resets = 0;

  const brontes::Error& first_error() const noexcept { return error ? error : batch.error(); }
  void fail(brontes::Error e) noexcept {
    if (!first_error()) error = std::move(e);
  }
  bool was_mine(std::uint64_t tag) const noexcept {
    return std::find(old_tags.begin(), old_tags.end(), tag) != old_tags.end();
  }
  brontes::Error find(const char* op, brontes_tensor number, brontes::Tensor& to) const;
};

struct brontes_program : brontes::capi::Handle<brontes::capi::Kind::program> {
  brontes_program(brontes::Program compiled, std::shared_ptr<const brontes::capi::TensorTable> table) noexcept
      : program(std::move(compiled)), tensors(std::move(table)), tensor_count(tensors->size()) {}

  brontes::Program program;
  std::shared_ptr<const brontes::capi::TensorTable> tensors;
  std::size_t tensor_count;

  brontes::Error find(const char* call, brontes_tensor number, brontes::Tensor& to) const;
};

struct brontes_submission : brontes::capi::Handle<brontes::capi::Kind::submission> {
  explicit brontes_submission(brontes::Submission made) noexcept : submission(std::move(made)) {}
  brontes::Submission submission;
};

namespace brontes::capi {

/// Submits, and returns the submission through `out` where that is not null. Its handle is made first: there is never
/// work that nobody could wait for.
template <class Submit>
Error submit_to(brontes_submission** out, Submit&& submit) {
  std::unique_ptr<brontes_submission> made;
  if (out != nullptr) made = std::make_unique<brontes_submission>(Submission());
  auto submitted = submit();
  if (!submitted) return submitted.error();
  if (out == nullptr) return {};
  made->submission = std::move(*submitted);
  *out = made.release();
  return {};
}

}  // namespace brontes::capi

struct brontes_matmul_cache : brontes::capi::Handle<brontes::capi::Kind::matmul_cache> {
  brontes_matmul_cache(const brontes::Device& device, const brontes::MatmulCacheOptions& options)
      : cache(device, options) {}
  brontes::MatmulCache cache;
};
