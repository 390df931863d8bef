#include "everything.hpp"

#include "stored_weights.hpp"

#include <chrono>

namespace brontes::test {
namespace {

constexpr std::uint64_t rows = 4;
constexpr std::uint64_t columns = 32;

}  // namespace

Everything::Everything(const DeviceOptions& options) : device(open_device(options)) {
  buffer.emplace(Buffer::from(*device, counting(64)).value());
  other.emplace(Buffer::create(*device, {64}).value());
  weight.emplace(Weight::from(*device, counting(rows * columns), rows, columns).value());
  executed.emplace(*device);
  y_ = executed->neg(executed->upload(counting(64)));
  REQUIRE_OK(executed->execute());
  pending.emplace(*device);
  (void)pending->neg(pending->import_buffer(*buffer));

  Batch batch(*device);
  input_ = batch.upload(counting(64));
  imported_ = batch.import_buffer(*buffer);
  output_ = batch.add(input_, imported_);
  program.emplace(batch.compile().value());
  submission.emplace(program->submit().value());
  REQUIRE_OK(submission->wait());

  cache.emplace(*device);
  REQUIRE_OK(cache->upload_weight("w", counting(rows * columns), rows, columns));
  std::vector<float> out(rows);
  REQUIRE_OK(cache->matmul("w", counting(columns), out, 1));
}

std::vector<Everything::Answer> Everything::call_all() {
  using namespace std::chrono_literals;
  std::vector<Answer> answers;
  auto add = [&](const char* call, Error error) { answers.push_back({call, std::move(error)}); };
  const std::vector<float> x = counting(64);
  const std::vector<float> matrix = counting(rows * columns);
  const StoredWeights stored = random_stored(DType::q8_0, rows, columns, 1);
  std::vector<float> out(64);

  add("Buffer::create", Buffer::create(*device, {64}).error());
  add("Buffer::from", Buffer::from(*device, x).error());
  add("Buffer::write", buffer->write(x));
  add("Buffer::read", buffer->read(out));
  add("Buffer::read of all", buffer->read().error());

  add("Weight::from", Weight::from(*device, matrix, rows, columns).error());
  add("Weight::from_transposed", Weight::from_transposed(*device, matrix, rows, columns).error());
  add("Weight::from_stored", Weight::from_stored(*device, stored.bytes, rows, columns, DType::q8_0).error());

  add("Batch::execute", pending->execute());
  add("Batch::submit", pending->submit().error());
  add("Batch::compile", pending->compile().error());
  add("Batch::read", executed->read(y_).error());
  add("Batch::read into", executed->read(y_, out));
  Batch fresh(*device);
  (void)fresh.linear(fresh.upload(counting(columns), {1, columns}), fresh.import_weight(*weight));
  add("Batch::execute of a new one", fresh.execute());

  add("Program::write", program->write(input_, x));
  add("Program::rebind", program->rebind(imported_, *other));
  add("Program::submit", program->submit().error());
  add("Program::submit after another", program->submit(*submission).error());
  add("Program::run", program->run());
  add("Program::read", program->read(output_).error());
  add("Program::read into", program->read(output_, out));

  add("Submission::wait", submission->wait());
  add("Submission::wait, no time", submission->wait(0ns));
  add("Submission::wait, some time", submission->wait(1h));
  if (!submission->ready()) add("Submission::ready", Error(Errc::vulkan, "it is not ready"));

  std::vector<float> product(rows);
  add("MatmulCache::upload_weight", cache->upload_weight("v", matrix, rows, columns));
  add("MatmulCache::upload_stored", cache->upload_stored("u", stored.bytes, rows, columns, DType::q8_0));
  add("MatmulCache::replace_weight", cache->replace_weight("w", matrix, rows, columns));
  add("MatmulCache::replace_stored", cache->replace_stored("w", stored.bytes, rows, columns, DType::q8_0));
  add("MatmulCache::matmul", cache->matmul("w", counting(columns), product, 1));
  add("MatmulCache::matmul, another m", cache->matmul("w", counting(2 * columns), out, 2));

  add("ops::neg", ops::neg(*device, x, out));
  add("ops::add", ops::add(*device, x, x, out));
  add("ops::sum", ops::sum(*device, x).error());
  add("ops::matmul", ops::matmul(*device, x, x, out, 8, 8, 8));
  add("tune_matmul", tune_matmul(*device).error());
  add("save_pipeline_cache", device->save_pipeline_cache());
  return answers;
}

std::string Everything::record() {
  Batch batch(*device);
  Tensor y = batch.upload(counting(64));
  for (int i = 0; i < 100; ++i) y = batch.offset(batch.mul(y, batch.import_buffer(*buffer)), 1.0f);
  batch.store(y, *buffer);
  if (batch.error()) return batch.error().message;
  if (!y.valid() || batch.num_operations() != 201) return "ops were not recorded";
  const Result<std::string> dump = batch.dump(DumpFormat::text, DumpStage::recorded);
  if (!dump) return dump.error().message;
  batch.reset();
  return batch.num_operations() == 0 ? "" : "the batch is not empty";
}

void Everything::destroy(unsigned part) {
  switch (part) {
    case 0: device.reset(); break;
    case 1: buffer.reset(); break;
    case 2: other.reset(); break;
    case 3: weight.reset(); break;
    case 4: executed.reset(); break;
    case 5: pending.reset(); break;
    case 6: program.reset(); break;
    case 7: submission.reset(); break;
    case 8: cache.reset(); break;
    default: break;
  }
}

}  // namespace brontes::test
