// No exception leaves the library: a call that lacks host memory says so as an Error.
#pragma once

#include <brontes/error.hpp>

#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace brontes {

/// Errc::out_of_memory of a call; where there is no memory for a message either, a text that needs none.
inline Error no_host_memory(const char* call) noexcept {
  try {
    return Error(Errc::out_of_memory, std::string(call) + ": the host is out of memory");
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "out of memory");  // short enough to lie in the string itself
  }
}

/// The body of a public call that returns an Error or a Result.
template <class Body>
auto guarded(const char* call, Body&& body) -> std::invoke_result_t<Body&> {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return no_host_memory(call);
  } catch (const std::length_error&) {
    return no_host_memory(call);
  }
}

/// The body of one that has only a value to return: an empty one where memory is lacking.
template <class Body>
auto value_or_empty(Body&& body) -> std::invoke_result_t<Body&> {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return {};
  }
}

}  // namespace brontes
