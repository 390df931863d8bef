#include "json.hpp"
#include "npy.hpp"
#include "on_batch.hpp"
#include "output_file.hpp"

#include <algorithm>
#include <cmath>

namespace tool {
namespace {

// What can be said of an output in a line.
struct Summary {
  double smallest = 0, largest = 0, mean = 0;
  std::uint64_t nans = 0;
};

template <class T>
Summary summarise(const std::vector<T>& values) {
  Summary s;
  double sum = 0;
  std::uint64_t count = 0;
  for (T element : values) {
    const auto x = static_cast<double>(element);
    if (std::isnan(x)) {
      ++s.nans;
      continue;
    }
    s.smallest = count == 0 ? x : std::min(s.smallest, x);
    s.largest = count == 0 ? x : std::max(s.largest, x);
    sum += x;
    ++count;
  }
  s.mean = count == 0 ? 0 : sum / static_cast<double>(count);
  return s;
}

struct Output {
  const NamedTensor& tensor;
  Npy array;
  Summary summary;
};

brontes::Result<Output> read(const brontes::Program& program, const NamedTensor& named) {
  Output output{named, {}, {}};
  const brontes::Tensor x = named.tensor;
  for (std::size_t i = 0; i < x.shape().rank(); ++i) output.array.shape.push_back(x.shape()[i]);
  if (x.dtype() == brontes::DType::f32) {
    auto floats = program.read(x);
    if (!floats) return floats.error();
    output.summary = summarise(*floats);
    output.array.floats = std::move(*floats);
    return output;
  }
  auto integers = program.read_i32(x);
  if (!integers) return integers.error();
  output.summary = summarise(*integers);
  output.array.type = x.dtype() == brontes::DType::mask ? Npy::Type::boolean : Npy::Type::i32;
  output.array.integers = std::move(*integers);
  return output;
}

bool write(const Output& output) {
  if (output.tensor.file.empty()) return true;
  OutputFile file;
  if (!file.open(output.tensor.file)) return false;
  const std::string bytes = write_npy(output.array);
  file.stream().write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return file.commit();
}

void print(const std::vector<Output>& outputs, const brontes::BatchStats& stats) {
  for (const Output& o : outputs) {
    std::printf("%s %s %s  from %.6g to %.6g, mean %.6g", bold(o.tensor.name).c_str(),
                brontes::to_string(o.tensor.tensor.dtype()), to_string(o.tensor.tensor.shape()).c_str(),
                o.summary.smallest, o.summary.largest, o.summary.mean);
    if (o.summary.nans != 0) std::printf(", %s NaN", std::to_string(o.summary.nans).c_str());
    if (!o.tensor.file.empty()) std::printf("  -> %s", o.tensor.file.c_str());
    std::printf("\n");
  }
  std::printf("%s ops, %s dispatches, %s barriers, %s submits\n", std::to_string(stats.operations).c_str(),
              std::to_string(stats.dispatches).c_str(), std::to_string(stats.barriers).c_str(),
              std::to_string(stats.submits).c_str());
}

void write_json(const std::vector<Output>& outputs, const brontes::BatchStats& stats) {
  Json json(std::cout);
  json.begin(nullptr, '{');
  json.begin("outputs", '[');
  for (const Output& o : outputs) {
    json.begin(nullptr, '{');
    json.put("name", o.tensor.name);
    json.put("type", brontes::to_string(o.tensor.tensor.dtype()));
    json.begin("shape", '[');
    for (std::uint64_t extent : o.array.shape) json.put(nullptr, extent);
    json.end(']');
    json.put("file", o.tensor.file);
    json.put("smallest", o.summary.smallest);
    json.put("largest", o.summary.largest);
    json.put("mean", o.summary.mean);
    json.put("nans", o.summary.nans);
    json.end('}');
  }
  json.end(']');
  json.put("operations", stats.operations);
  json.put("dispatches", stats.dispatches);
  json.put("barriers", stats.barriers);
  json.put("submits", stats.submits);
  json.put("arena_bytes", stats.arena_bytes);
  json.end('}');
  std::cout << '\n';
}

}  // namespace

const char* const run_help =
    "Usage: brontes run FILE [--json] [--device WHICH]\n"
    "\n"
    "Runs a batch file once, writes its outputs as .npy files where it names some, and says what they are and\n"
    "what the run took. docs/batch-files.md has the format.\n"
    "\n"
    "  --json          the same as JSON\n"
    "  --device WHICH  an index, a part of the name, or a UUID; see `brontes devices`\n";

int run(const Arguments& arguments) {
  const Parsed parsed = parse(arguments, {{"--json"}, {"--device"}, 1});
  return on_batch("run", parsed, [&](const brontes::Device&, BatchFile& file) -> int {
    auto program = file.batch.compile();
    if (!program) return report(program.error());
    if (brontes::Error e = program->run()) return report(e);
    std::vector<Output> outputs;
    for (const NamedTensor& tensor : file.outputs) {
      auto output = read(*program, tensor);
      if (!output) return report(output.error());
      if (!write(*output)) {
        std::fprintf(stderr, "brontes run: %s cannot be written\n", tensor.file.c_str());
        return failure;
      }
      outputs.push_back(std::move(*output));
    }
    if (parsed.flag("--json")) {
      write_json(outputs, program->stats());
    } else {
      print(outputs, program->stats());
    }
    return success;
  });
}

}  // namespace tool
