// Attention over a cache of keys and values that stays on the device and grows by a row per step.
#include <brontes/brontes.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

constexpr std::size_t capacity = 6, width = 4;

// snippet: attend
// Appends a row to a KV cache, and attends to all rows so far.
brontes::Result<std::vector<float>> attend(const brontes::Device& device, const std::vector<float>& query,
                                           const std::vector<float>& key, const std::vector<float>& value,
                                           brontes::Buffer& keys, brontes::Buffer& values, std::int64_t position) {
  brontes::Batch batch(device);
  batch.store(batch.upload(key), keys, {brontes::Range::at(position)});
  batch.store(batch.upload(value), values, {brontes::Range::at(position)});
  auto scores = batch.linear(batch.upload(query, {1, query.size()}), batch.import_buffer(keys, {{0, position + 1}}));
  auto y = batch.matmul(batch.softmax(scores), batch.import_buffer(values, {{0, position + 1}}));
  if (brontes::Error e = batch.execute()) return e;
  return batch.read(y);
}
// end

brontes::Error run() {
  auto device = brontes::Device::open();
  if (!device) return device.error();
  auto keys = brontes::Buffer::create(*device, {capacity, width});
  if (!keys) return keys.error();
  auto values = brontes::Buffer::create(*device, {capacity, width});
  if (!values) return values.error();

  for (std::size_t step = 0; step < capacity; ++step) {
    // The last key fits the query far better than those before it, so that its value is what comes out.
    const auto scale = static_cast<float>(step);
    const std::vector<float> query(width, 10.0f);
    const std::vector<float> key(width, scale);
    const std::vector<float> value(width, 100.0f + scale);
    const auto y = attend(*device, query, key, value, *keys, *values, static_cast<std::int64_t>(step));
    if (!y) return y.error();
    std::printf("step %zu: %g\n", step, static_cast<double>((*y)[0]));
    if (!(std::abs((*y)[0] - value[0]) < 1e-3f)) {
      return brontes::Error(brontes::Errc::invalid_argument, "the result is not the last value");
    }
  }
  return {};
}

}  // namespace

int main() {
  const brontes::Error error = run();
  if (error) std::fprintf(stderr, "%s\n", error.message.c_str());
  return error ? 1 : 0;
}
