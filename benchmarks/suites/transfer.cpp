// What it costs to bring data to the device and back.
//
//   transfer/upload/N/write     Buffer::write() of N elements into a resident buffer
//   transfer/upload/N/batch     a Batch that uploads them, and a copy of them stays in a resident buffer
//   transfer/readback/N/read    Buffer::read() of a resident buffer
//   transfer/readback/N/batch   a Batch that makes as many, and read() of them
//   transfer/.../host           memcpy on one CPU thread, for scale
#include "suites.hpp"
#include "support.hpp"

#include <cstring>
#include <memory>
#include <utility>

namespace brontes::bench {
namespace {

struct Data {
  const Device& device;
  std::vector<float> from, to;
  Buffer resident;
};

std::shared_ptr<Data> make_data(const Environment& environment, std::size_t count) {
  std::vector<float> from = noise(count, 5);
  Buffer buffer = resident(environment.device, std::vector<float>(count));
  return std::make_shared<Data>(
      Data{environment.device, std::move(from), std::vector<float>(count), std::move(buffer)});
}

// `bytes` are those that have to move: read once and written once.
Case moving(const std::shared_ptr<Data>& data, std::function<void()> run, std::function<std::string()> check) {
  Case c;
  c.run = std::move(run);
  c.check = std::move(check);
  c.bytes = 2.0 * sizeof(float) * static_cast<double>(data->from.size());
  return c;
}

Case by_host(const std::shared_ptr<Data>& data) {
  auto run = [data] { std::memcpy(data->to.data(), data->from.data(), data->from.size() * sizeof(float)); };
  Case c = moving(data, run, [data, run] {
    run();
    return compare(data->to, data->from, 0);
  });
  c.counted = false;
  return c;
}

std::vector<Case> upload(const Environment& environment, std::size_t count) {
  auto data = make_data(environment, count);
  auto checked = [data](const std::function<void()>& run) {
    return [data, run] {
      must(data->resident.write(std::vector<float>(data->from.size())));
      run();
      return compare(must(data->resident.read()), data->from, 0);
    };
  };
  auto write = [data] { must(data->resident.write(data->from)); };
  auto record = [data](Batch& batch) { batch.store(batch.upload(data->from), data->resident); };
  auto run = [data, record] {
    Batch batch(data->device);
    record(batch);
    must(batch.execute());
  };
  Case in_batch = moving(data, run, checked(run));
  in_batch.dump = [data, record] { return dump_of(data->device, record); };
  return {moving(data, write, checked(write)), in_batch, by_host(data)};
}

std::vector<Case> readback(const Environment& environment, std::size_t count) {
  auto data = make_data(environment, count);
  must(data->resident.write(data->from));
  auto checked = [data](const std::function<void()>& run) {
    return [data, run] {
      data->to.assign(data->to.size(), 0);
      run();
      return compare(data->to, data->from, 0);
    };
  };
  auto read = [data] { must(data->resident.read(data->to)); };
  auto record = [data](Batch& batch) { return batch.scale(batch.import_buffer(data->resident), 1.0f); };
  auto run = [data, record] {
    Batch batch(data->device);
    const Tensor made = record(batch);
    must(batch.execute());
    must(batch.read(made, data->to));
  };
  Case in_batch = moving(data, run, checked(run));
  in_batch.dump = [data, record] { return dump_of(data->device, record); };
  return {moving(data, read, checked(read)), in_batch, by_host(data)};
}

}  // namespace

Suite transfer_suite() {
  Suite suite{"transfer", {}};
  for (const std::size_t count : {1'000u, 1'000'000u, 16'000'000u}) {
    const std::string size = std::to_string(count);
    const bool quick = count <= 1'000;
    suite.groups.push_back({"transfer/upload/" + size,
                            {"write", "batch", "host"},
                            {{"write", "host"}, {"batch", "host"}},
                            quick,
                            [count](const Environment& e) { return upload(e, count); }});
    suite.groups.push_back({"transfer/readback/" + size,
                            {"read", "batch", "host"},
                            {{"read", "host"}, {"batch", "host"}},
                            quick,
                            [count](const Environment& e) { return readback(e, count); }});
  }
  return suite;
}

}  // namespace brontes::bench
