// Helpers for suites: data, references, and what cases have in common.
#pragma once

#include <brontes/bench.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace brontes::bench {

/// `count` numbers in [-1, 1), the same for the same seed.
std::vector<float> noise(std::size_t count, std::uint32_t seed);

/// Where `got` is further than `tolerance` from `want`, or "".
std::string compare(brontes::Span<const float> got, brontes::Span<const float> want, double tolerance);
std::string compare(double got, double want, double tolerance);

/// A buffer holding `data`.
brontes::Buffer resident(const brontes::Device& device, brontes::Span<const float> data);

/// What a batch would run after `record` has recorded it.
std::string dump_of(const brontes::Device& device, const std::function<void(brontes::Batch&)>& record,
                    const brontes::BatchOptions& options = {});

/// Keeps `result` on the device after its batch has run: where memory is mapped it needs nothing, and
/// elsewhere a store keeps execute() from copying it back, which is not what is being timed.
void leave_on_device(const brontes::Device& device, brontes::Batch& batch, brontes::Tensor result,
                     const brontes::Buffer& room);

}  // namespace brontes::bench
