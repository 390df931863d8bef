// relu -> scale -> add, the chain of the README: in one batch, and op by op.
//
//   chain/relu-scale-add/N           with transfers: data starts and ends in host memory; in one batch, as a
//                                    compiled program that is run again, and op by op
//   chain/relu-scale-add-resident/N  without: data starts and ends in buffers of the device
//   chain/relu-scale-add-f16/N       the same as a compiled program, from and to buffers of f16 and of f32
#include "suites.hpp"
#include "support.hpp"

#include <algorithm>
#include <memory>
#include <optional>

namespace brontes::bench {
namespace {

using brontes::Batch;
using brontes::Buffer;
using brontes::DType;
using brontes::Tensor;

constexpr float factor = 2.0f;

std::vector<float> expected(const std::vector<float>& x, const std::vector<float>& bias) {
  std::vector<float> out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = std::max(x[i], 0.0f) * factor + bias[i];
  return out;
}

std::vector<Case> with_transfers(const Environment& environment, std::size_t count) {
  struct Data {
    const brontes::Device& device;
    std::vector<float> x, bias, first, second, out;
  };
  auto data =
      std::make_shared<Data>(Data{environment.device, noise(count, 1), noise(count, 2), std::vector<float>(count),
                                  std::vector<float>(count), std::vector<float>(count)});

  auto checked = [data](std::function<void()> run) {
    Case c;
    c.run = run;
    c.check = [data, run] {
      std::fill(data->out.begin(), data->out.end(), 0.0f);
      run();
      return compare(data->out, expected(data->x, data->bias), 1e-6);
    };
    c.bytes = 3.0 * sizeof(float) * static_cast<double>(data->x.size());  // two in, one out
    return c;
  };

  // Compiled when it is first run, outside of any measurement.
  struct Compiled {
    Tensor x, bias, out;
    brontes::Program program;
  };
  auto compiled = std::make_shared<std::optional<Compiled>>();
  auto replay = [data, compiled] {
    if (!*compiled) {
      Batch batch(data->device);
      const Tensor x = batch.upload(data->x);
      const Tensor bias = batch.upload(data->bias);
      const Tensor out = batch.add(batch.scale(batch.relu(x), factor), bias);
      compiled->emplace(Compiled{x, bias, out, must(batch.compile())});
    }
    Compiled& c = **compiled;
    must(c.program.write(c.x, data->x));
    must(c.program.write(c.bias, data->bias));
    must(c.program.run());
    must(c.program.read(c.out, data->out));
  };

  auto dump = [data] {
    return dump_of(data->device, [&](Batch& batch) {
      const Tensor x = batch.upload(data->x);
      const Tensor bias = batch.upload(data->bias);
      batch.add(batch.scale(batch.relu(x), factor), bias);
    });
  };
  auto dumped = [](Case c, std::function<std::string()> how) {
    c.dump = std::move(how);
    return c;
  };

  // One Batch for all iterations, as a program that records the same work over and over would have it.
  auto reused = std::make_shared<Batch>(data->device);
  return {dumped(checked([data, reused] {
                   Batch& batch = *reused;
                   batch.reset();
                   const Tensor x = batch.upload(data->x);
                   const Tensor bias = batch.upload(data->bias);
                   const Tensor out = batch.add(batch.scale(batch.relu(x), factor), bias);
                   must(batch.execute());
                   must(batch.read(out, data->out));
                 }),
                 dump),
          dumped(checked(replay), [compiled] { return (*compiled)->program.dump(); }), checked([data] {
            must(brontes::ops::relu(data->device, data->x, data->first));
            must(brontes::ops::scale(data->device, data->first, factor, data->second));
            must(brontes::ops::add(data->device, data->second, data->bias, data->out));
          })};
}

std::vector<Case> without_transfers(const Environment& environment, std::size_t count) {
  struct Data {
    const brontes::Device& device;
    std::vector<float> host_x, host_bias;
    Buffer x, bias, first, second, out;
  };
  const auto room = [&] { return must(Buffer::create(environment.device, {count})); };
  std::vector<float> x = noise(count, 1);
  std::vector<float> bias = noise(count, 2);
  Buffer on_device_x = resident(environment.device, x);
  Buffer on_device_bias = resident(environment.device, bias);
  auto data = std::make_shared<Data>(Data{environment.device, std::move(x), std::move(bias), std::move(on_device_x),
                                          std::move(on_device_bias), room(), room(), room()});

  auto checked = [data](std::function<void()> run) {
    Case c;
    c.run = run;
    c.check = [data, run] {
      must(data->out.write(std::vector<float>(data->host_x.size())));
      run();
      return compare(must(data->out.read()), expected(data->host_x, data->host_bias), 1e-6);
    };
    c.bytes = 3.0 * sizeof(float) * static_cast<double>(data->host_x.size());
    return c;
  };

  auto in_one_batch = [data, checked](bool fuse) {
    brontes::BatchOptions options;
    options.fuse = fuse;
    auto record = [data](Batch& batch) {
      const Tensor y = batch.scale(batch.relu(batch.import_buffer(data->x)), factor);
      batch.store(batch.add(y, batch.import_buffer(data->bias)), data->out);
    };
    Case c = checked([data, options, record] {
      Batch batch(data->device, options);
      record(batch);
      must(batch.execute());
    });
    c.dump = [data, options, record] { return dump_of(data->device, record, options); };
    return c;
  };

  return {in_one_batch(true), in_one_batch(false), checked([data] {
            Batch first(data->device);
            first.store(first.relu(first.import_buffer(data->x)), data->first);
            must(first.execute());
            Batch second(data->device);
            second.store(second.scale(second.import_buffer(data->first), factor), data->second);
            must(second.execute());
            Batch third(data->device);
            third.store(third.add(third.import_buffer(data->second), third.import_buffer(data->bias)), data->out);
            must(third.execute());
          })};
}

// From and to buffers of a type; both compute in f32.
Case stored_as(const Environment& environment, std::size_t count, DType type) {
  struct Data {
    std::vector<float> host_x, host_bias;
    Buffer out;
    brontes::Program program;
  };
  const std::vector<float> x = noise(count, 1);
  const std::vector<float> bias = noise(count, 2);
  const auto buffer = [&](const std::vector<float>& from) {
    return must(type == DType::f16 ? Buffer::from_f16(environment.device, from)
                                   : Buffer::from(environment.device, from));
  };
  const Buffer on_device_x = buffer(x);
  const Buffer on_device_bias = buffer(bias);
  Buffer out = must(Buffer::create(environment.device, {count}, type));
  Batch batch(environment.device);
  const Tensor y = batch.scale(batch.relu(batch.import_buffer(on_device_x)), factor);
  batch.store(batch.cast(batch.add(y, batch.import_buffer(on_device_bias)), type), out);
  auto data = std::make_shared<Data>(
      Data{must(on_device_x.read()), must(on_device_bias.read()), std::move(out), must(batch.compile())});
  Case c;
  c.run = [data] { must(data->program.run()); };
  c.check = [data, type] {
    must(data->program.run());
    return compare(must(data->out.read()), expected(data->host_x, data->host_bias),
                   type == DType::f16 ? 0x1p-10 : 1e-6);
  };
  c.dump = [data] { return data->program.dump(); };
  c.bytes = 3.0 * static_cast<double>(row_bytes(type, count));
  return c;
}

}  // namespace

Suite chain_suite() {
  Suite suite{"chain", {}};
  for (const std::size_t count : {1'000u, 10'000u, 100'000u, 1'000'000u, 10'000'000u}) {
    // What the library promises: the batch beats the one-shots by 30% where overhead counts most.
    const double goal = count == 1'000 || count == 100'000 ? 1.3 : 0;
    suite.groups.push_back({"chain/relu-scale-add/" + std::to_string(count),
                            {"batch", "replay", "one-shot"},
                            {{"batch", "one-shot", goal}, {"replay", "one-shot"}},
                            count <= 100'000,
                            [count](const Environment& e) { return with_transfers(e, count); }});
  }
  for (const std::size_t count : {1'000u, 100'000u, 1'000'000u, 16'000'000u}) {
    suite.groups.push_back({"chain/relu-scale-add-resident/" + std::to_string(count),
                            {"batch", "unfused", "one-submit-each"},
                            {{"batch", "unfused", count >= 1'000'000 ? 2.0 : 0}, {"batch", "one-submit-each"}},
                            count <= 100'000,
                            [count](const Environment& e) { return without_transfers(e, count); }});
  }
  for (const std::size_t count : {100'000u, 1'000'000u, 16'000'000u}) {
    suite.groups.push_back({"chain/relu-scale-add-f16/" + std::to_string(count),
                            {"f16", "f32"},
                            {{"f16", "f32"}},
                            count <= 100'000,
                            [count](const Environment& e) -> std::vector<Case> {
                              return {stored_as(e, count, DType::f16), stored_as(e, count, DType::f32)};
                            }});
  }
  return suite;
}

}  // namespace brontes::bench
