// What every function of the C API begins and ends with: no exception leaves it, and its Error becomes a status.
#pragma once

#include <brontes/brontes.h>
#include <brontes/error.hpp>

#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace brontes::capi {

/// Writes the error where the caller wants it, and returns its status.
brontes_status report(const Error& error, brontes_error* to) noexcept;

inline Error invalid(const char* call, const char* what) {
  return Error(Errc::invalid_argument, std::string(call) + ": " + what);
}
inline Error null_data(const char* call, const char* what) {
  return Error(Errc::null_data, std::string(call) + ": a null pointer for " + what);
}

/// Errc::out_of_memory of a call; where there is no memory for a message either, a text that needs none.
Error no_host_memory(const char* call) noexcept;

/// The Error of `body`, or that of what it throws: lack of memory, if anything.
template <class Body>
Error caught(const char* call, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return no_host_memory(call);
  } catch (const std::length_error&) {
    return no_host_memory(call);
  } catch (...) {
    return Error(Errc::vulkan, "exception");  // short enough to lie in the string itself
  }
}

/// A function that returns a status; `body` returns an Error.
template <class Body>
brontes_status guarded(const char* call, brontes_error* error, Body&& body) noexcept {
  return report(caught(call, std::forward<Body>(body)), error);
}

/// A function that returns a handle through `out`; `body` returns an Error and the handle in its argument.
template <class Handle, class Body>
brontes_status make(const char* call, Handle** out, brontes_error* error, Body&& body) noexcept {
  if (out != nullptr) *out = nullptr;
  return guarded(call, error, [&]() -> Error {
    if (out == nullptr) return invalid(call, "a null pointer where the handle goes");
    return body(*out);
  });
}

}  // namespace brontes::capi
