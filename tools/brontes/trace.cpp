#include "on_batch.hpp"
#include "output_file.hpp"

namespace tool {

const char* const trace_help =
    "Usage: brontes trace FILE --output TRACE [--runs N] [--device WHICH]\n"
    "\n"
    "Records, plans and runs a batch file while tracing, and writes what the host and the device did when, as a\n"
    "JSON file that https://ui.perfetto.dev and chrome://tracing open. docs/profiling.md says what is in it.\n"
    "\n"
    "  --output TRACE  the file to write; - for the standard output\n"
    "  --runs N        so many runs, 3 unless told\n"
    "  --device WHICH  an index, a part of the name, or a UUID; see `brontes devices`\n";

int trace(const Arguments& arguments) {
  const Parsed parsed = parse(arguments, {{}, {"--output", "--runs", "--device"}, 1});
  if (!parsed.problem.empty()) return report_misuse("trace", parsed.problem);
  const std::uint64_t runs = positive(parsed, "--runs", 3);
  if (runs == 0) return report_misuse("trace", "--runs is a number above 0");
  const std::string path = parsed.option("--output");
  if (path.empty()) return report_misuse("trace", "--output says where the trace goes");
  const auto device = open_device(parsed);
  if (!device) return report(device.error());
  if (brontes::Error e = device->start_trace()) return report(e);
  try {
    BatchFile file = read_batch(parsed.positional[0], *device);
    auto program = file.batch.compile();
    if (!program) return report(program.error());
    for (std::uint64_t i = 0; i < runs; ++i) {
      if (brontes::Error e = program->run()) return report(e);
      for (const NamedTensor& output : file.outputs) {
        const bool floats = output.tensor.dtype() == brontes::DType::f32;
        const auto e = floats ? program->read(output.tensor).error() : program->read_i32(output.tensor).error();
        if (e) return report(e);
      }
    }
  } catch (const InputError& e) {
    std::fprintf(stderr, "brontes trace: %s\n", e.what());
    return misuse;
  }
  const auto text = device->stop_trace();
  if (!text) return report(text.error());
  OutputFile out;
  if (!out.open(path)) {
    std::fprintf(stderr, "brontes trace: %s cannot be written\n", path.c_str());
    return failure;
  }
  out.stream() << *text;
  if (!out.commit()) {
    std::fprintf(stderr, "brontes trace: %s could not be written\n", path.c_str());
    return failure;
  }
  if (path != "-") std::printf("Wrote %s; open it in https://ui.perfetto.dev\n", path.c_str());
  return success;
}

}  // namespace tool
