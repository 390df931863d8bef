// Where the time of a batch goes, what happens when, and whether the results are right.
//
// Snippets of docs/profiling.md are marked.
#include <brontes/brontes.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace {

int fail(const brontes::Error& error) {
  std::fprintf(stderr, "%s: %s\n", brontes::to_string(error.code), error.message.c_str());
  return 1;
}

// A layer of a network, with made-up numbers.
brontes::Tensor record(brontes::Batch& batch) {
  constexpr std::size_t rows = 64, inputs = 128, outputs = 256;
  const std::vector<float> x(rows * inputs, 0.25f);
  const std::vector<float> w(outputs * inputs, 0.01f);
  return batch.softmax(batch.gelu(batch.linear(batch.upload(x, {rows, inputs}), batch.upload(w, {outputs, inputs}))));
}

int profile(const brontes::Device& device, brontes::Batch& batch) {
  // snippet: profile
  auto program = batch.compile().value();
  brontes::ProfileOptions options;
  options.limits = brontes::measure_limits(device).value();
  const brontes::Profile profile = program.profile(options).value();
  std::fputs(profile.merged().text().c_str(), stdout);
  // end
  return profile.entries.empty() ? 1 : 0;
}

int trace(const brontes::Device& device, brontes::Program& program) {
  auto run_a_frame = [&] { static_cast<void>(program.run()); };
  // snippet: trace
  if (auto e = device.start_trace()) return fail(e);
  run_a_frame();
  const std::string trace = device.stop_trace().value();
  // end
  std::printf("%zu bytes of trace\n", trace.size());
  return trace.find("softmax") != std::string::npos ? 0 : 1;
}

int check(brontes::Program& program) {
  // snippet: shadow
  const brontes::ShadowReport report = program.shadow_check().value();
  if (!report.ok) std::fputs(report.text().c_str(), stderr);
  // end
  std::fputs(report.text().c_str(), stdout);
  return report.ok ? 0 : 1;
}

}  // namespace

int main() {
  auto device = brontes::Device::open();
  if (!device) return fail(device.error());
  brontes::Batch batch(*device);
  const brontes::Tensor y = record(batch);
  if (!y.valid()) return fail(batch.error());
  auto program = batch.compile();
  if (!program) return fail(program.error());
  if (int status = profile(*device, batch)) return status;
  if (int status = trace(*device, *program)) return status;
  return check(*program);
}
