// A program per worker: workers share the device and the weights, and nothing else.
#include <brontes/brontes.hpp>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int jobs = 64;

// snippet: worker
// Takes jobs until there are none. Returns what went wrong.
std::string work(const brontes::Device& device, const brontes::Buffer& weights, std::atomic<int>& next,
                 std::vector<float>& results) {
  brontes::Batch batch(device);
  const auto x = batch.upload(std::vector<float>(16), {1, 16});
  const auto y = batch.sum(batch.relu(batch.linear(x, batch.import_buffer(weights))));
  auto program = batch.compile();
  if (!program) return program.error().message;

  std::vector<float> data(16);
  for (int job = next++; job < jobs; job = next++) {
    data.assign(data.size(), static_cast<float>(job));
    if (auto e = program->write(x, data)) return e.message;
    if (auto e = program->run()) return e.message;
    if (auto e = program->read(y, {&results[static_cast<std::size_t>(job)], 1})) return e.message;
  }
  return {};
}
// end

}  // namespace

int main() {
  const auto device = brontes::Device::open();
  if (!device) {
    std::fprintf(stderr, "%s\n", device.error().message.c_str());
    return 1;
  }
  const auto weights = brontes::Buffer::from(*device, std::vector<float>(32 * 16, 0.5f), {32, 16});
  if (!weights) {
    std::fprintf(stderr, "%s\n", weights.error().message.c_str());
    return 1;
  }
  std::atomic<int> next{0};
  std::vector<float> results(jobs);
  std::vector<std::string> problems(3);
  {
    std::vector<std::jthread> workers;
    for (std::string& problem : problems) {
      workers.emplace_back([&] { problem = work(*device, *weights, next, results); });
    }
  }
  for (const std::string& problem : problems) {
    if (problem.empty()) continue;
    std::fprintf(stderr, "%s\n", problem.c_str());
    return 1;
  }
  for (int job = 0; job < jobs; ++job) {
    if (results[static_cast<std::size_t>(job)] != static_cast<float>(job) * 8 * 32) return 1;
  }
  std::printf("%d jobs by %zu workers\n", jobs, problems.size());
  return 0;
}
