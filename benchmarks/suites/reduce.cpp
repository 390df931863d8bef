// Reductions of long resident tensors to one number.
//
//   reduce/sum/N/resident  from a buffer
//   reduce/sum/N/host      a loop with 16 accumulators on one CPU thread, for scale
#include "suites.hpp"
#include "support.hpp"

#include <cmath>
#include <memory>
#include <utility>

namespace brontes::bench {
namespace {

using brontes::Batch;
using brontes::Buffer;
using brontes::Tensor;

float sum_of(const std::vector<float>& values) {
  constexpr std::size_t lanes = 16;
  float partial[lanes] = {};
  std::size_t i = 0;
  for (; i + lanes <= values.size(); i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) partial[lane] += values[i + lane];
  }
  float total = 0;
  for (; i < values.size(); ++i) total += values[i];
  for (const float p : partial) total += p;
  return total;
}

std::vector<Case> sum(const Environment& environment, std::size_t count) {
  struct Data {
    const brontes::Device& device;
    std::vector<float> host;
    float host_sum;
    Buffer x, out;
  };
  std::vector<float> host = noise(count, 5);
  Buffer x = resident(environment.device, host);
  Buffer out = must(Buffer::create(environment.device, {1}));
  auto data = std::make_shared<Data>(Data{environment.device, std::move(host), 0.0f, std::move(x), std::move(out)});
  // Against double precision: what rounding can do to partial sums of this many numbers below 1.
  auto wrong = [data](float got) {
    double want = 0;
    for (const float v : data->host) want += static_cast<double>(v);
    return compare(static_cast<double>(got), want, 1e-7 * static_cast<double>(data->host.size()));
  };

  Case device;
  device.run = [data] {
    Batch batch(data->device);
    leave_on_device(data->device, batch, batch.sum(batch.import_buffer(data->x)), data->out);
    must(batch.execute());
  };
  device.check = [data, wrong] {
    Batch batch(data->device);
    const Tensor total = batch.sum(batch.import_buffer(data->x));
    must(batch.execute());
    return wrong(must(batch.read(total))[0]);
  };

  device.dump = [data] {
    return dump_of(data->device, [&](Batch& batch) { batch.sum(batch.import_buffer(data->x)); });
  };

  Case host_loop;
  host_loop.counted = false;
  host_loop.run = [data] { data->host_sum = sum_of(data->host); };
  host_loop.check = [data, wrong] { return wrong(sum_of(data->host)); };

  for (Case* c : {&device, &host_loop}) {
    c->bytes = sizeof(float) * static_cast<double>(count);
    c->flops = static_cast<double>(count);
  }
  return {device, host_loop};
}

}  // namespace

Suite reduce_suite() {
  Suite suite{"reduce", {}};
  for (const std::size_t count : {100'000u, 1'000'000u, 16'000'000u}) {
    suite.groups.push_back({"reduce/sum/" + std::to_string(count),
                            {"resident", "host"},
                            {{"resident", "host"}},
                            count <= 100'000,
                            [count](const Environment& e) { return sum(e, count); }});
  }
  return suite;
}

}  // namespace brontes::bench
