#include "support.hpp"

#include <cmath>
#include <utility>

namespace brontes::bench {

std::vector<float> noise(std::size_t count, std::uint32_t seed) {
  std::vector<float> values(count);
  std::uint32_t state = seed * 2654435761u + 1u;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) * (2.0f / 16777216.0f) - 1.0f;
  }
  return values;
}

std::string compare(double got, double want, double tolerance) {
  // Written so that NaN is wrong.
  if (std::abs(got - want) <= tolerance) return {};
  return std::to_string(got) + " instead of " + std::to_string(want);
}

std::string compare(brontes::Span<const float> got, brontes::Span<const float> want, double tolerance) {
  if (got.size() != want.size()) {
    return std::to_string(got.size()) + " elements instead of " + std::to_string(want.size());
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    std::string wrong = compare(static_cast<double>(got[i]), static_cast<double>(want[i]), tolerance);
    if (!wrong.empty()) return "element " + std::to_string(i) + " is " + wrong;
  }
  return {};
}

brontes::Buffer resident(const brontes::Device& device, brontes::Span<const float> data) {
  return must(brontes::Buffer::from(device, data));
}

std::string dump_of(const brontes::Device& device, const std::function<void(brontes::Batch&)>& record,
                    const brontes::BatchOptions& options) {
  brontes::Batch batch(device, options);
  record(batch);
  return must(batch.dump());
}

void leave_on_device(const brontes::Device& device, brontes::Batch& batch, brontes::Tensor result,
                     const brontes::Buffer& room) {
  if (!device.info().mapped_memory) batch.store(result, room);
}

}  // namespace brontes::bench
