// SPDX-License-Identifier: MIT
#pragma once

#include <brontes/export.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>

#if defined(__cpp_exceptions)
#  include <stdexcept>
#endif

namespace brontes {

/// What went wrong. Every kind of caller mistake has a code of its own, so that a program can react
/// to it; the message of the Error says which op, which sizes, and what was expected.
enum class Errc : std::uint8_t {
  ok = 0,

  // The caller's input.
  invalid_argument,  ///< an option or argument that can never be right
  empty_input,       ///< no data where an op needs at least one element
  null_data,         ///< a null pointer with a size that is not zero
  shape_mismatch,    ///< the operands' shapes, or data and shape, do not fit each other
  type_mismatch,     ///< the operands' types, or a value and host data, do not fit each other or the op
  size_overflow,     ///< a size that does not fit in 64 bits
  limit_exceeded,    ///< larger than this device can do; the message names the limit
  not_found,         ///< no weight has that name
  already_exists,    ///< a weight has that name; replacing is another call

  // Tensor handles.
  invalid_tensor,  ///< a default-constructed Tensor, or one returned by an op that failed
  foreign_tensor,  ///< a Tensor of another Batch
  stale_tensor,    ///< a Tensor from before Batch::reset()
  not_executed,    ///< read() of a value whose op has not been executed yet
  not_kept,        ///< the value was consumed by other ops and was not marked with keep()

  // Finding a device.
  no_loader,  ///< the Vulkan loader library is not installed
  no_driver,  ///< the loader found no Vulkan driver
  no_device,  ///< there are devices, but none that meets the options

  // Running.
  out_of_memory,  ///< host or device memory is exhausted
  device_lost,    ///< the driver reset or lost the device, or the process was forked; open a new Device
  timeout,        ///< the wait ended before the work did
  unsupported,    ///< the device or driver lacks something that was asked for
  io,             ///< a file could not be read or written
  vulkan,         ///< any other failing Vulkan call; see Error::vk_result
};

/// The enumerator's name, for example "shape_mismatch". Never null.
BRONTES_API const char* to_string(Errc code) noexcept;

/// Success, or one failure with its reason.
///
/// No call of the library throws. One that runs out of host memory returns Errc::out_of_memory (a recording call of
/// Batch makes it the batch's error); the few that return a plain value, such as names() or dump(), return an empty
/// one. A call that failed has changed nothing, except where its own documentation says so.
///
/// Converts to true when there IS an error, so the usual form is
///
///     if (brontes::Error e = batch.execute()) return fail(e);
///
/// Thread-safety: a plain value.
class [[nodiscard]] Error {
 public:
  /// No error.
  Error() = default;
  Error(Errc error_code, std::string text, std::int32_t vulkan_result = 0)
      : code(error_code), vk_result(vulkan_result), message(std::move(text)) {}

  /// True when something went wrong.
  explicit operator bool() const noexcept { return code != Errc::ok; }

  Errc code = Errc::ok;
  /// The VkResult behind the error, or 0 when no Vulkan call failed.
  std::int32_t vk_result = 0;
  /// For people: names the op, the sizes, and what was expected. Empty on success.
  std::string message;
};

#if defined(__cpp_exceptions)
/// Thrown by Result::value() and by nothing else in the library, std::bad_alloc included.
class BadResult : public std::runtime_error {
 public:
  explicit BadResult(Error error) : std::runtime_error(error.message), error_(std::move(error)) {}
  const Error& error() const noexcept { return error_; }

 private:
  Error error_;
};
#endif

namespace detail {
[[noreturn]] inline void bad_result(const Error& error) {
#if defined(__cpp_exceptions)
  throw BadResult(error);
#else
  std::fprintf(stderr, "brontes: %s: %s\n", to_string(error.code), error.message.c_str());
  std::abort();
#endif
}
}  // namespace detail

/// A T, or the Error that explains why there is none.
///
/// Thread-safety: a plain value, as safe as T.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  /// True when there is a value (note: the opposite sense of Error's conversion).
  explicit operator bool() const noexcept { return state_.index() == 0; }
  bool has_value() const noexcept { return state_.index() == 0; }

  /// The value. Without one: throws BadResult where exceptions are enabled, otherwise prints the
  /// message and aborts. Test first, or use this where a failure is a bug of your own.
  T& value() & { return checked(); }
  const T& value() const& { return const_cast<Result*>(this)->checked(); }
  /// By value, so that `for (float f : batch.read(x).value())` is safe.
  T value() && { return std::move(checked()); }

  T& operator*() & { return checked(); }
  const T& operator*() const& { return const_cast<Result*>(this)->checked(); }
  T operator*() && { return std::move(checked()); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &const_cast<Result*>(this)->checked(); }

  /// The error; Errc::ok and no message when there is a value.
  Error error() const { return has_value() ? Error() : std::get<1>(state_); }

 private:
  T& checked() {
    if (!has_value()) detail::bad_result(std::get<1>(state_));
    return *std::get_if<0>(&state_);
  }

  std::variant<T, Error> state_;
};

}  // namespace brontes
