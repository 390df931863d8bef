#include "commands.hpp"
#include "terminal.hpp"

#include <brontes/brontes.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace tool {
namespace {

using brontes::Batch;
using brontes::BatchStats;
using brontes::Buffer;
using brontes::Device;
using brontes::Error;
using brontes::Tensor;

constexpr double tolerance = 1e-5;

void print_heading(const std::string& text) { std::printf("\n%s\n\n", bold(text).c_str()); }

// Prints both columns and the verdict; true when they agree. `columns` elements are one row of the result.
bool compare(const std::vector<float>& got, const std::vector<double>& want, std::size_t columns) {
  std::printf("  %-8s  %13s  %13s  %10s\n", "element", "brontes", "reference", "difference");
  bool agree = got.size() == want.size();
  double worst = 0;
  for (std::size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    const double difference = std::fabs(static_cast<double>(got[i]) - want[i]);
    agree = agree && difference <= tolerance;  // false for NaN
    worst = std::fmax(worst, difference);
    std::string element = std::to_string(i % columns);
    if (columns != want.size()) element.insert(0, std::to_string(i / columns) + ", ");
    std::printf("  %-8s  %13.8f  %13.8f  %10.2g\n", element.c_str(), static_cast<double>(got[i]), want[i], difference);
  }
  std::printf("  %s (largest difference %.2g)\n",
              (agree ? bold("agree within 1e-5") : warning("DO NOT AGREE within 1e-5")).c_str(), worst);
  return agree;
}

std::uint64_t transfers(const BatchStats& stats) { return stats.transfers_up + stats.transfers_down; }

// One row of what something cost. The middle column is padded before it is emphasised.
void print_row(const char* what, std::string batch, const std::string& others = {}, bool emphasise = false) {
  if (!others.empty() && batch.size() < 10) batch.resize(10, ' ');
  if (emphasise) batch = bold(batch);
  std::printf("  %-26s  %s%s%s\n", what, batch.c_str(), others.empty() ? "" : "  ", others.c_str());
}

void print_row(const char* what, std::uint64_t batch, std::uint64_t others) {
  print_row(what, std::to_string(batch), std::to_string(others));
}

void print_plan(const std::string& plan) {
  std::printf("\n  The plan, as batch.dump() prints it:\n\n");
  std::istringstream lines(plan);
  for (std::string line; std::getline(lines, line);) std::printf("    %s\n", line.c_str());
}

// A batch of one op, as brontes::ops makes it; adds what it cost to `total`.
Error run_alone(const Device& device, std::vector<float>& data, BatchStats& total,
                const std::function<Tensor(Batch&, Tensor)>& op) {
  Batch batch(device);
  const Tensor out = op(batch, batch.upload(data));
  if (Error e = batch.execute()) return e;
  auto result = batch.read(out);
  if (!result) return result.error();
  data = *result;
  const BatchStats cost = batch.stats();
  total.operations += cost.operations;
  total.fused_operations += cost.fused_operations;
  total.dispatches += cost.dispatches;
  total.barriers += cost.barriers;
  total.submits += cost.submits;
  total.transfers_up += cost.transfers_up;
  total.transfers_down += cost.transfers_down;
  total.bytes_up += cost.bytes_up;
  total.bytes_down += cost.bytes_down;
  total.allocations += cost.allocations;
  total.pipelines_created += cost.pipelines_created;
  return {};
}

// The chain of the README. Sets `agree` to false on a wrong result.
Error run_chain(const Device& device, bool& agree) {
  print_heading("1. relu -> scale -> add, recorded in one batch");
  const std::vector<float> x = {1, 2, -3, 4};
  const std::vector<float> b = {.5f, .5f, .5f, .5f};

  Batch batch(device);
  const Tensor input = batch.upload(x);
  const Tensor bias = batch.upload(b);
  const Tensor out = batch.add(batch.scale(batch.relu(input), 2.f), bias);
  const auto plan = batch.dump();
  if (!plan) return plan.error();
  if (Error e = batch.execute()) return e;
  const auto y = batch.read(out);
  if (!y) return y.error();

  std::vector<double> reference;
  for (std::size_t i = 0; i < x.size(); ++i)
    reference.push_back((x[i] < 0 ? 0.0 : static_cast<double>(x[i])) * 2 + static_cast<double>(b[i]));
  agree = compare(*y, reference, reference.size()) && agree;

  BatchStats alone;
  std::vector<float> data = x;
  if (Error e = run_alone(device, data, alone, [](Batch& one, Tensor t) { return one.relu(t); })) return e;
  if (Error e = run_alone(device, data, alone, [](Batch& one, Tensor t) { return one.scale(t, 2.f); })) return e;
  if (Error e = run_alone(device, data, alone, [&](Batch& one, Tensor t) { return one.add(t, one.upload(b)); })) {
    return e;
  }

  const BatchStats cost = batch.stats();
  std::printf("\n");
  print_row("What it cost", "this batch", "three one-op batches");
  print_row("ops", cost.operations, alone.operations);
  print_row("fused into another op", cost.fused_operations, alone.fused_operations);
  print_row("dispatches", cost.dispatches, alone.dispatches);
  print_row("barriers between them", cost.barriers, alone.barriers);
  print_row("submits", cost.submits, alone.submits);
  const std::string others = std::to_string(transfers(alone));
  print_row("transfers, up and down", std::to_string(transfers(cost)) + ", not " + others, others, true);
  print_row("bytes, up and down", std::to_string(cost.bytes_up) + ", " + std::to_string(cost.bytes_down),
            std::to_string(alone.bytes_up) + ", " + std::to_string(alone.bytes_down));
  print_row("memory blocks", cost.allocations, alone.allocations);
  print_row("pipelines created", std::to_string(cost.pipelines_created),
            std::to_string(alone.pipelines_created) + " (each is made once per device)");

  print_plan(*plan);
  return {};
}

// Numbers in [-amplitude, amplitude] without a pattern a wrong index could hide in.
std::vector<float> sample(std::size_t count, double amplitude, double phase) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(amplitude * std::sin(phase + 1.7 * static_cast<double>(i * i % 97)));
  }
  return values;
}

// y = x W^T + bias in double precision, for W[outputs, inputs].
std::vector<double> linear(const std::vector<double>& x, const std::vector<float>& w, const std::vector<float>& bias) {
  const std::size_t outputs = bias.size();
  const std::size_t inputs = w.size() / outputs;
  std::vector<double> y;
  for (std::size_t row = 0; row < x.size() / inputs; ++row) {
    for (std::size_t o = 0; o < outputs; ++o) {
      double sum = static_cast<double>(bias[o]);
      for (std::size_t i = 0; i < inputs; ++i) sum += x[row * inputs + i] * static_cast<double>(w[o * inputs + i]);
      y.push_back(sum);
    }
  }
  return y;
}

// Two layers with their weights resident on the device. Sets `agree` to false on a wrong result.
Error run_mlp(const Device& device, bool& agree) {
  constexpr std::size_t rows = 4, inputs = 8, hidden = 16, outputs = 3;
  print_heading("2. An MLP: 4 rows, 8 -> 16 (gelu) -> 3, weights resident on the device");
  const std::vector<float> x = sample(rows * inputs, 1, 0.1);
  const std::vector<float> w1 = sample(hidden * inputs, 0.5, 0.2);
  const std::vector<float> b1 = sample(hidden, 0.1, 0.3);
  const std::vector<float> w2 = sample(outputs * hidden, 0.5, 0.4);
  const std::vector<float> b2 = sample(outputs, 0.1, 0.5);

  const auto weight1 = Buffer::from(device, w1, {hidden, inputs});
  if (!weight1) return weight1.error();
  const auto bias1 = Buffer::from(device, b1);
  if (!bias1) return bias1.error();
  const auto weight2 = Buffer::from(device, w2, {outputs, hidden});
  if (!weight2) return weight2.error();
  const auto bias2 = Buffer::from(device, b2);
  if (!bias2) return bias2.error();

  Batch batch(device);
  const Tensor in = batch.upload(x, {rows, inputs});
  const Tensor first = batch.import_buffer(*weight1);
  const Tensor first_bias = batch.import_buffer(*bias1);
  const Tensor second = batch.import_buffer(*weight2);
  const Tensor second_bias = batch.import_buffer(*bias2);
  const Tensor h = batch.gelu(batch.linear(in, first, first_bias));
  const Tensor out = batch.linear(h, second, second_bias);
  const auto plan = batch.dump();
  if (!plan) return plan.error();
  if (Error e = batch.execute()) return e;
  const auto y = batch.read(out);
  if (!y) return y.error();

  std::vector<double> reference = linear(std::vector<double>(x.begin(), x.end()), w1, b1);
  for (double& v : reference) v = 0.5 * v * (1 + std::erf(v * std::sqrt(0.5)));
  reference = linear(reference, w2, b2);
  agree = compare(*y, reference, outputs) && agree;

  const BatchStats cost = batch.stats();
  auto text = [](std::uint64_t value) { return std::to_string(value); };
  std::printf("\n");
  print_row("What it cost", "this batch");
  print_row("ops", text(cost.operations), "each linear() is a matmul and an add");
  print_row("fused into another op", text(cost.fused_operations));
  print_row("dispatches", text(cost.dispatches));
  print_row("barriers between them", text(cost.barriers));
  print_row("submits", text(cost.submits));
  print_row("transfers, up and down", text(transfers(cost)));
  print_row("bytes, up and down", text(cost.bytes_up) + ", " + text(cost.bytes_down),
            "the weights stay where they are");
  print_row("pipelines created", text(cost.pipelines_created));
  brontes::MatmulOptions options;
  options.layout = brontes::Layout::nk;
  const auto choice = brontes::explain_matmul(device, rows, inputs, hidden, options);
  print_row("matmul kernel", brontes::to_string(choice.kernel), choice.reason);
  print_plan(*plan);
  return {};
}

}  // namespace

const char* const demo_help =
    "Usage: brontes demo [--device WHICH]\n"
    "\n"
    "Runs two batches through the public API: relu -> scale -> add, and a small MLP. Shows the results\n"
    "next to a double-precision CPU reference, what each batch cost, and its plan. Exits with 1 if a\n"
    "result differs from its reference by more than 1e-5.\n"
    "\n"
    "  --device WHICH  an index, a part of the name, or a UUID; see `brontes devices`\n";

int demo(const Arguments& arguments) {
  const Parsed parsed = parse(arguments, {{}, {"--device"}, 0});
  if (!parsed.problem.empty()) return report_misuse("demo", parsed.problem);

  brontes::DeviceOptions options;
  options.select = parsed.option("--device");
  const auto device = Device::open(options);
  if (!device) return report(device.error());
  std::printf("Brontes %s\n", brontes::version());
  print_device(device->info());

  bool agree = true;
  if (Error e = run_chain(*device, agree)) return report(e);
  if (Error e = run_mlp(*device, agree)) return report(e);

  const brontes::DeviceStats stats = device->stats();
  const brontes::PipelineCacheStatus cache = device->pipeline_cache();
  std::printf("\nIn all: %s pipelines asked for, %s created; pipeline cache %s.\n",
              std::to_string(stats.pipelines_requested).c_str(), std::to_string(stats.pipelines_created).c_str(),
              brontes::to_string(cache.state));
  return agree ? success : failure;
}

}  // namespace tool
