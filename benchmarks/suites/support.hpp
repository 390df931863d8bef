// Helpers for suites: data, references, and errors that end a case.
#pragma once

#include <brontes/brontes.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

/// A case cannot go on.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws Failure when there is an error.
void must(const brontes::Error& error);

template <class T>
T must(brontes::Result<T> result) {
  must(result.error());
  return std::move(result).value();
}

/// `count` numbers in [-1, 1), the same for the same seed.
std::vector<float> noise(std::size_t count, std::uint32_t seed);

/// Where `got` is further than `tolerance` from `want`, or "".
std::string compare(brontes::Span<const float> got, brontes::Span<const float> want, double tolerance);
std::string compare(double got, double want, double tolerance);

/// A buffer holding `data`.
brontes::Buffer resident(const brontes::Device& device, brontes::Span<const float> data);

/// Keeps `result` on the device after its batch has run: where memory is mapped it needs nothing, and
/// elsewhere a store keeps execute() from copying it back, which is not what is being timed.
void leave_on_device(const brontes::Device& device, brontes::Batch& batch, brontes::Tensor result,
                     const brontes::Buffer& room);

}  // namespace bench
