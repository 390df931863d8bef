// Single elementwise ops on long resident tensors: how fast memory is moved.
//
//   elementwise/add/N/resident  from two buffers, the result stays on the device, in memory of the batch's own
//   elementwise/add/N/replay    the same as a Program compiled before, into a third buffer
//   elementwise/add/N/host      a plain loop on one CPU thread, for scale
#include "suites.hpp"
#include "support.hpp"

#include <memory>
#include <utility>

namespace brontes::bench {
namespace {

using brontes::Batch;
using brontes::Buffer;
using brontes::Tensor;

std::vector<Case> add(const Environment& environment, std::size_t count) {
  struct Data {
    const brontes::Device& device;
    std::vector<float> host_x, host_y, host_out;
    Buffer x, y, out;
  };
  std::vector<float> host_x = noise(count, 1);
  std::vector<float> host_y = noise(count, 2);
  Buffer x = resident(environment.device, host_x);
  Buffer y = resident(environment.device, host_y);
  Buffer out = must(Buffer::create(environment.device, {count}));
  auto data = std::make_shared<Data>(Data{environment.device, std::move(host_x), std::move(host_y),
                                          std::vector<float>(count), std::move(x), std::move(y), std::move(out)});
  auto record = [data](Batch& batch) { return batch.add(batch.import_buffer(data->x), batch.import_buffer(data->y)); };
  auto expected = [data] {
    std::vector<float> want(data->host_x.size());
    for (std::size_t i = 0; i < want.size(); ++i) want[i] = data->host_x[i] + data->host_y[i];
    return want;
  };

  Case device;
  device.run = [data, record] {
    Batch batch(data->device);
    leave_on_device(data->device, batch, record(batch), data->out);
    must(batch.execute());
  };
  device.check = [data, record, expected] {
    Batch batch(data->device);
    const Tensor sum = record(batch);
    must(batch.execute());
    return compare(must(batch.read(sum)), expected(), 1e-6);
  };
  device.dump = [data, record] { return dump_of(data->device, record); };

  Batch once(data->device);
  const Tensor summed = record(once);
  once.store(summed, data->out);
  auto program = std::make_shared<brontes::Program>(must(once.compile()));
  Case replay;
  replay.run = [data, program] { must(program->run()); };
  replay.check = [data, program, expected] {
    must(program->run());
    std::vector<float> got(data->host_x.size());
    must(data->out.read(got));
    return compare(got, expected(), 1e-6);
  };
  replay.dump = [program] { return program->dump(); };

  Case host;
  host.counted = false;
  host.run = [data] {
    for (std::size_t i = 0; i < data->host_x.size(); ++i) data->host_out[i] = data->host_x[i] + data->host_y[i];
  };
  host.check = [data, expected, run = host.run] {
    run();
    return compare(data->host_out, expected(), 0);
  };

  for (Case* c : {&device, &replay, &host}) {
    c->bytes = 3.0 * sizeof(float) * static_cast<double>(count);
    c->flops = static_cast<double>(count);
  }
  return {device, replay, host};
}

}  // namespace

Suite elementwise_suite() {
  Suite suite{"elementwise", {}};
  for (const std::size_t count : {100'000u, 1'000'000u, 16'000'000u}) {
    suite.groups.push_back({"elementwise/add/" + std::to_string(count),
                            {"resident", "replay", "host"},
                            {{"resident", "host"}, {"replay", "host"}},
                            count <= 100'000,
                            [count](const Environment& e) { return add(e, count); }});
  }
  return suite;
}

}  // namespace brontes::bench
