// A two-layer perceptron: weights stay on the device, inputs change with every run.
#include <brontes/brontes.hpp>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace {

constexpr std::size_t rows = 4, inputs = 8, hidden = 16, outputs = 3;

std::vector<float> wave(std::size_t count, float frequency) {
  std::vector<float> data(count);
  for (std::size_t i = 0; i < count; ++i) data[i] = std::sin(frequency * static_cast<float>(i + 1)) / 2;
  return data;
}

brontes::Error run() {
  auto device = brontes::Device::open();
  if (!device) return device.error();

  // Rows of a weight are the outputs, as model files store linear layers.
  auto weight1 = brontes::Buffer::from(*device, wave(hidden * inputs, 0.7f), {hidden, inputs});
  auto bias1 = brontes::Buffer::from(*device, wave(hidden, 0.3f));
  auto weight2 = brontes::Buffer::from(*device, wave(outputs * hidden, 0.9f), {outputs, hidden});
  auto bias2 = brontes::Buffer::from(*device, wave(outputs, 0.4f));
  for (const auto* buffer : {&weight1, &bias1, &weight2, &bias2}) {
    if (!*buffer) return buffer->error();
  }

  brontes::Batch batch(*device);
  const auto x = batch.upload(std::vector<float>(rows * inputs), {rows, inputs});
  const auto h = batch.gelu(batch.linear(x, batch.import_buffer(*weight1), batch.import_buffer(*bias1)));
  const auto y = batch.linear(h, batch.import_buffer(*weight2), batch.import_buffer(*bias2));

  auto program = batch.compile();  // reports whatever went wrong above
  if (!program) return program.error();
  std::printf("%s\n", program->dump().c_str());  // two dispatches: bias and gelu are part of the products
  for (float frequency : {0.1f, 0.2f}) {
    if (auto e = program->write(x, wave(rows * inputs, frequency))) return e;
    if (auto e = program->run()) return e;
    auto result = program->read(y);
    if (!result) return result.error();
    for (std::size_t i = 0; i < result->size(); ++i) {
      const float value = (*result)[i];
      if (!std::isfinite(value)) return brontes::Error(brontes::Errc::invalid_argument, "the result is not finite");
      std::printf("%9.6f%s", static_cast<double>(value), (i + 1) % outputs == 0 ? "\n" : "  ");
    }
    std::printf("\n");
  }
  return {};
}

}  // namespace

int main() {
  const brontes::Error error = run();
  if (error) std::fprintf(stderr, "%s\n", error.message.c_str());
  return error ? 1 : 0;
}
