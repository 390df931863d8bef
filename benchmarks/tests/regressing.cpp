// A benchmark that becomes worse on demand, to see whether the gate notices. BENCH_TEST_REGRESS is `barrier`,
// `device-allocation`, `host-allocation`, `slow` (1.5 times as many elements) or nothing.
#include <brontes/bench.hpp>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace {

using brontes::Batch;
using brontes::Buffer;
using brontes::Tensor;
using brontes::bench::Case;
using brontes::bench::Environment;
using brontes::bench::must;

bool regress(const char* how) {
  const char* value = std::getenv("BENCH_TEST_REGRESS");
  return value != nullptr && value == std::string(how);
}

std::vector<Case> work(const Environment& environment) {
  constexpr std::size_t elements = 1u << 17;  // what a dispatch costs by itself is little beside it
  const std::size_t count = regress("slow") ? elements * 3 / 2 : elements;
  struct Data {
    const brontes::Device& device;
    Buffer x, y;
    brontes::Program program;
    std::unique_ptr<int> kept = {};
  };
  Buffer x = must(Buffer::from(environment.device, std::vector<float>(count, 0.5f)));
  Buffer y = must(Buffer::create(environment.device, {count}));
  Batch batch(environment.device);
  Tensor value = batch.import_buffer(x);
  for (int i = 0; i < 6; ++i) value = batch.tanh(value);
  if (regress("barrier")) value = batch.add(value, batch.max(value));
  batch.store(value, y);
  brontes::Program program = must(batch.compile());
  auto data = std::make_shared<Data>(Data{environment.device, std::move(x), std::move(y), std::move(program)});
  Case c;
  c.run = [data] {
    must(data->program.run());
    if (regress("device-allocation")) must(Buffer::create(data->device, {16}));
    if (regress("host-allocation")) data->kept = std::make_unique<int>(1);
  };
  c.dump = [data] { return data->program.dump(); };
  return {c};
}

}  // namespace

int main(int argc, char** argv) {
  return brontes::bench::main(argc, argv, {{{"gate", {{"gate/tanh/6", {"op"}, {}, true, work}}}}});
}
