// What the automatic choice of kernel and access mode costs against every other choice there is: regret.
//
//   select/matmul/MxKxN/LAYOUT/auto         the library's choice; LAYOUT is kn, nk or the type of a stored weight
//   select/matmul/MxKxN/LAYOUT/KERNEL       one kernel by force
//   select/matmul/MxKxN/LAYOUT/auto-MODE    the library's choice on a device that was opened with one access mode
//   select/OP/SIZE/auto, .../MODE           the same for ops with one kernel
//
// All are programs that were compiled before, so that kernels alone are timed. benchmarks/regret.py makes a table of
// the JSON, with the reason that the library gives for each choice.
#include "suites.hpp"
#include "support.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace brontes::bench {
namespace {

using brontes::AccessMode;
using brontes::Batch;
using brontes::Buffer;
using brontes::Device;
using brontes::DeviceOptions;
using brontes::DType;
using brontes::Layout;
using brontes::MatmulKernel;
using brontes::MatmulOptions;
using brontes::Program;
using brontes::Shape;
using brontes::Tensor;
using brontes::Weight;

constexpr std::array modes{AccessMode::storage, AccessMode::texel, AccessMode::pointer};

std::string uuid_of(const Device& device) {
  constexpr const char* digits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : device.info().uuid) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

/// The same device again, with one access mode for everything.
Result<Device> opened_with(const Device& device, AccessMode mode) {
  DeviceOptions options;
  options.select = uuid_of(device);
  options.access = mode;
  options.tuning.enabled = false;
  options.pipeline_cache.save_on_close = false;
  return Device::open(options);
}

/// What a program needs as long as it runs. The device is last to go.
struct Held {
  std::optional<Device> device;
  std::vector<Buffer> buffers;
  std::optional<Weight> weight;
  std::optional<Program> program;
};

Case replay(const std::shared_ptr<Held>& held) {
  Case c;
  c.counted = false;  // another Device may run it
  c.run = [held] { must(held->program->run()); };
  c.dump = [held] { return held->program->dump(); };
  return c;
}

Case unavailable(const Error& error) {
  Case c;
  c.unavailable = error.message;
  c.counted = false;
  return c;
}

/// An op on operands of these shapes, recorded by `record`.
struct Work {
  std::vector<Shape> operands;
  Shape result;
  std::function<Tensor(Batch&, const std::vector<Tensor>&)> record;
};

Case of(const Work& work, const Device& device, const std::shared_ptr<Held>& held) {
  Batch batch(device);
  std::vector<Tensor> operands;
  for (const Shape& shape : work.operands) {
    held->buffers.push_back(must(Buffer::from(device, noise(shape.count(), 1), shape)));
    operands.push_back(batch.import_buffer(held->buffers.back()));
  }
  held->buffers.push_back(must(Buffer::create(device, work.result)));
  batch.store(work.record(batch, operands), held->buffers.back());
  auto program = batch.compile();
  if (!program) return unavailable(program.error());
  held->program = std::move(*program);
  return replay(held);
}

std::vector<Case> in_every_mode(const Environment& environment, const Work& work) {
  std::vector<Case> cases{of(work, environment.device, std::make_shared<Held>())};
  for (const AccessMode mode : modes) {
    auto device = opened_with(environment.device, mode);
    if (!device) {
      cases.push_back(unavailable(device.error()));
      continue;
    }
    auto held = std::make_shared<Held>();
    held->device = std::move(*device);
    cases.push_back(of(work, *held->device, held));
  }
  double bytes = static_cast<double>(work.result.count());
  for (const Shape& shape : work.operands) bytes += static_cast<double>(shape.count());
  for (Case& c : cases) c.bytes = sizeof(float) * bytes;
  return cases;
}

struct Product {
  std::size_t m, k, n;
  Layout layout;
  DType type = DType::f32;
};

Case of(const Product& p, const Device& device, MatmulKernel kernel, const std::shared_ptr<Held>& held) {
  Batch batch(device);
  held->buffers.push_back(must(Buffer::from(device, noise(p.m * p.k, 1), {p.m, p.k})));
  const Tensor a = batch.import_buffer(held->buffers.back());
  const std::vector<float> host_b = noise(p.k * p.n, 2);
  Tensor b;
  if (p.type != DType::f32) {
    held->weight = must(Weight::from(device, host_b, p.n, p.k, p.type));
    b = batch.import_weight(*held->weight);
  } else {
    const Shape shape = p.layout == Layout::nk ? Shape(p.n, p.k) : Shape(p.k, p.n);
    held->buffers.push_back(must(Buffer::from(device, host_b, shape)));
    b = batch.import_buffer(held->buffers.back());
  }
  held->buffers.push_back(must(Buffer::create(device, {p.m, p.n})));
  MatmulOptions options;
  options.layout = p.layout;
  options.kernel = kernel;
  batch.store(batch.matmul(a, b, options), held->buffers.back());
  auto program = batch.compile();
  if (!program) return unavailable(program.error());
  held->program = std::move(*program);
  return replay(held);
}

std::vector<MatmulKernel> kernels_for(std::size_t m) {
  std::vector<MatmulKernel> kernels{MatmulKernel::subgroup, MatmulKernel::panel};
  if (m <= 8) kernels.push_back(MatmulKernel::gemv);
  return kernels;
}

std::vector<Case> every_choice(const Environment& environment, const Product& p) {
  std::vector<Case> cases{of(p, environment.device, MatmulKernel::automatic, std::make_shared<Held>())};
  for (const MatmulKernel kernel : kernels_for(p.m)) {
    cases.push_back(of(p, environment.device, kernel, std::make_shared<Held>()));
  }
  for (const AccessMode mode : modes) {
    auto device = opened_with(environment.device, mode);
    if (!device) {
      cases.push_back(unavailable(device.error()));
      continue;
    }
    auto held = std::make_shared<Held>();
    held->device = std::move(*device);
    cases.push_back(of(p, *held->device, MatmulKernel::automatic, held));
  }
  const double m = static_cast<double>(p.m), k = static_cast<double>(p.k), n = static_cast<double>(p.n);
  for (Case& c : cases) c.flops = 2 * m * k * n;
  return cases;
}

std::string size_of(std::size_t rows, std::size_t columns) {
  return std::to_string(rows) + "x" + std::to_string(columns);
}

void add(Suite& suite, const std::string& name, bool quick, std::vector<std::string> others,
         std::function<std::vector<Case>(const Environment&)> prepare) {
  std::vector<Comparison> comparisons;
  for (const std::string& other : others) comparisons.push_back({"auto", other});
  others.insert(others.begin(), "auto");
  suite.groups.push_back({name, std::move(others), std::move(comparisons), quick, std::move(prepare)});
}

void add_product(Suite& suite, const Product& p, bool quick) {
  std::vector<std::string> others;
  for (const MatmulKernel kernel : kernels_for(p.m)) others.emplace_back(brontes::to_string(kernel));
  for (const AccessMode mode : modes) others.push_back(std::string("auto-") + brontes::to_string(mode));
  const std::string operand = p.type == DType::f32 ? brontes::to_string(p.layout) : brontes::to_string(p.type);
  add(suite, "select/matmul/" + std::to_string(p.m) + "x" + size_of(p.k, p.n) + "/" + operand, quick, std::move(others),
      [p](const Environment& e) { return every_choice(e, p); });
}

void add_op(Suite& suite, const std::string& name, bool quick, const Work& work) {
  std::vector<std::string> others;
  for (const AccessMode mode : modes) others.emplace_back(brontes::to_string(mode));
  add(suite, "select/" + name, quick, std::move(others),
      [work](const Environment& e) { return in_every_mode(e, work); });
}

}  // namespace

Suite select_suite() {
  Suite suite{"select", {}, true};
  for (const std::size_t count : {65536u, 1000000u, 16000000u}) {
    const Shape shape(count);
    const std::string size = std::to_string(count);
    add_op(suite, "add/" + size, count == 65536,
           {{shape, shape}, shape, [](Batch& b, const auto& x) { return b.add(x[0], x[1]); }});
    add_op(suite, "gelu/" + size, false, {{shape}, shape, [](Batch& b, const auto& x) { return b.gelu(x[0]); }});
    add_op(suite, "sum/" + size, false, {{shape}, Shape(1), [](Batch& b, const auto& x) { return b.sum(x[0]); }});
  }
  for (const auto& [rows, columns] : {std::pair<std::size_t, std::size_t>(1024, 1024), {37, 3001}}) {
    const Shape matrix(rows, columns);
    const std::string size = size_of(rows, columns);
    add_op(suite, "sum-axis0/" + size, false,
           {{matrix}, Shape(columns), [](Batch& b, const auto& x) { return b.sum(x[0], {0}); }});
    add_op(suite, "sum-axis1/" + size, false,
           {{matrix}, Shape(rows), [](Batch& b, const auto& x) { return b.sum(x[0], {1}); }});
    add_op(suite, "softmax/" + size, false,
           {{matrix}, matrix, [](Batch& b, const auto& x) { return b.softmax(x[0]); }});
    add_op(suite, "transpose/" + size, false,
           {{matrix}, Shape(columns, rows), [](Batch& b, const auto& x) { return b.transpose(x[0]); }});
  }
  for (const std::size_t m : {1u, 2u, 4u, 5u, 8u, 16u, 17u, 64u, 256u}) {
    for (const auto& [k, n] : {std::pair<std::size_t, std::size_t>(1024, 1024), {1040, 1040}, {1000, 1003}}) {
      for (const Layout layout : {Layout::nk, Layout::kn}) add_product(suite, {m, k, n, layout}, m == 5 && k == 1000);
    }
    if (m <= 64) add_product(suite, {m, 4096, 4096, Layout::nk}, false);
    for (const DType type : {DType::f16, DType::q8_0, DType::q4_0}) {
      add_product(suite, {m, 1024, 1024, Layout::nk, type}, false);
    }
  }
  for (const Layout layout : {Layout::nk, Layout::kn}) add_product(suite, {1024, 1024, 1024, layout}, false);
  return suite;
}

}  // namespace brontes::bench
