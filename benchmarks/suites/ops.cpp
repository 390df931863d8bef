// The ops with kernels of their own, on resident operands: the benchmarks of tests/cases.
//
//   ops/CASE/op    a Program compiled before, from buffers into a buffer
//   ops/CASE/copy  the same for a copy that moves as many bytes, half of them read and half written
#include "op_case.hpp"
#include "suites.hpp"
#include "support.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace brontes::bench {
namespace {

using brontes::Batch;
using brontes::Buffer;
using brontes::Program;
using brontes::Tensor;
using brontes::cases::Data;
using brontes::cases::OpBenchmark;

struct Resident {
  std::vector<Buffer> operands;
  Buffer out;
  Program program;
};

std::shared_ptr<Resident> prepare(const brontes::Device& device, const brontes::cases::OpCase& c, const Data& data) {
  std::vector<Buffer> operands;
  Batch batch(device);
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < data.size(); ++i) {
    const brontes::cases::Operand& o = c.operands[i];
    if (o.type == brontes::DType::f32) {
      operands.push_back(must(Buffer::from(device, data[i], o.shape)));
    } else {
      const std::vector<std::int32_t> whole(data[i].begin(), data[i].end());
      operands.push_back(must(Buffer::from(device, whole, o.shape)));
    }
    tensors.push_back(batch.cast(batch.import_buffer(operands.back()), o.type));
  }
  const Tensor result = c.record(batch, tensors);
  must(batch.error());
  Buffer out = must(Buffer::create(device, result.shape(), result.dtype()));
  batch.store(result, out);
  Program program = must(batch.compile());
  return std::make_shared<Resident>(Resident{std::move(operands), std::move(out), std::move(program)});
}

Case timed(const brontes::Device& device, const brontes::cases::OpCase& c, double bytes, double flops) {
  const Data data = brontes::cases::random_data(c, 3);
  auto resident = prepare(device, c, data);
  Case timed;
  timed.run = [resident] { must(resident->program.run()); };
  timed.check = [resident, data, reference = c.reference] {
    must(resident->program.run());
    if (resident->out.dtype() != brontes::DType::f32) {
      return brontes::cases::mismatch(brontes::Span<const std::int32_t>(must(resident->out.read_i32())),
                                      reference(data));
    }
    std::vector<float> got(resident->out.shape().count());
    must(resident->out.read(got));
    return brontes::cases::mismatch(brontes::Span<const float>(got), reference(data));
  };
  timed.dump = [resident] { return resident->program.dump(); };
  timed.bytes = bytes;
  timed.flops = flops;
  return timed;
}

brontes::cases::OpCase copy_of(double bytes) {
  const auto count = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(bytes) / (2 * sizeof(float)));
  brontes::cases::OpCase c;
  c.operands = {{brontes::Shape(count)}};
  c.record = [](Batch& batch, const std::vector<Tensor>& in) { return batch.copy(in[0]); };
  c.reference = [](const Data& in) {
    return brontes::cases::Expected{{in[0].begin(), in[0].end()}, std::vector<double>(in[0].size())};
  };
  return c;
}

}  // namespace

Suite ops_suite() {
  Suite suite{"ops", {}};
  for (const brontes::cases::NamedCaseRoom& room : brontes::cases::op_cases()) {
    if (room.room.benchmarks == nullptr) continue;
    for (const OpBenchmark& b : room.room.benchmarks()) {
      suite.groups.push_back(
          {"ops/" + b.op.name,
           {"op", "copy"},
           {{"op", "copy"}},
           b.bytes <= 1e6,
           [b](const Environment& e) -> std::vector<Case> {
             return {timed(e.device, b.op, b.bytes, b.flops), timed(e.device, copy_of(b.bytes), b.bytes, 0)};
           }});
    }
  }
  return suite;
}

}  // namespace brontes::bench
