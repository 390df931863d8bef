// Batches of matrix products of resident operands, the shapes of attention among them.
//
//   matmul-batched/BxMxKxN/LAYOUT/batched  B products by one matmul
//   matmul-batched/BxMxKxN/LAYOUT/loop     the same by B matmuls in one Batch, each with operands of its own
//
// Both are Programs compiled before. LAYOUT is kn for B[K,N] and nk for [N,K].
#include "suites.hpp"
#include "support.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace brontes::bench {
namespace {

using brontes::Batch;
using brontes::Buffer;
using brontes::Layout;
using brontes::MatmulOptions;
using brontes::Program;
using brontes::Shape;
using brontes::Tensor;

struct Problem {
  std::size_t count, m, k, n;
  Layout layout;
};

struct Data {
  Problem problem;
  std::vector<float> a, b;
};

// Programs, and where they leave their products: one after the other, in one buffer or in several.
struct Compiled {
  std::vector<Buffer> operands, results;
  Program program;
};

// Some elements of every product against double precision.
std::string spot_check(const Data& data, const std::vector<float>& c) {
  const Problem& p = data.problem;
  const std::size_t each = p.m * p.n;
  const std::size_t stride = std::max<std::size_t>(1, each / 13) | 1;
  for (std::size_t z = 0; z < p.count; ++z) {
    for (std::size_t at = 0; at < each; at += stride) {
      double want = 0;
      for (std::size_t i = 0; i < p.k; ++i) {
        const std::size_t b = p.layout == Layout::nk ? at % p.n * p.k + i : i * p.n + at % p.n;
        want += static_cast<double>(data.a[z * p.m * p.k + at / p.n * p.k + i]) *
                static_cast<double>(data.b[z * p.k * p.n + b]);
      }
      std::string wrong = compare(static_cast<double>(c[z * each + at]), want, 1e-6 * static_cast<double>(p.k));
      if (!wrong.empty()) return "element " + std::to_string(at) + " of matrix " + std::to_string(z) + " is " + wrong;
    }
  }
  return {};
}

// `parts` matmuls, each of an equal share of the matrices.
std::shared_ptr<Compiled> compile(const brontes::Device& device, const Data& data, std::size_t parts) {
  const Problem& p = data.problem;
  const std::size_t each = p.count / parts;
  const bool nk = p.layout == Layout::nk;
  MatmulOptions options;
  options.layout = p.layout;
  std::vector<Buffer> operands, results;
  Batch batch(device);
  for (std::size_t i = 0; i < parts; ++i) {
    const std::size_t a = each * p.m * p.k, b = each * p.k * p.n;
    operands.push_back(must(Buffer::from(device, {data.a.data() + i * a, a}, Shape(each, p.m, p.k))));
    operands.push_back(
        must(Buffer::from(device, {data.b.data() + i * b, b}, nk ? Shape(each, p.n, p.k) : Shape(each, p.k, p.n))));
    results.push_back(must(Buffer::create(device, Shape(each, p.m, p.n))));
    const Tensor left = batch.import_buffer(operands[2 * i]);
    const Tensor right = batch.import_buffer(operands[2 * i + 1]);
    batch.store(batch.matmul(left, right, options), results.back());
  }
  Program program = must(batch.compile());
  return std::make_shared<Compiled>(Compiled{std::move(operands), std::move(results), std::move(program)});
}

Case timed(const brontes::Device& device, const std::shared_ptr<Data>& data, std::size_t parts) {
  auto compiled = compile(device, *data, parts);
  Case c;
  c.run = [compiled] { must(compiled->program.run()); };
  c.check = [compiled, data] {
    must(compiled->program.run());
    std::vector<float> all;
    for (const Buffer& result : compiled->results) {
      std::vector<float> one(result.shape().count());
      must(result.read(one));
      all.insert(all.end(), one.begin(), one.end());
    }
    return spot_check(*data, all);
  };
  c.dump = [compiled] { return compiled->program.dump(); };
  const Problem& p = data->problem;
  const auto count = static_cast<double>(p.count), m = static_cast<double>(p.m), k = static_cast<double>(p.k),
             n = static_cast<double>(p.n);
  c.flops = 2 * count * m * k * n;
  c.bytes = sizeof(float) * count * (m * k + k * n + m * n);
  return c;
}

}  // namespace

Suite matmul_batched_suite() {
  Suite suite{"matmul-batched", {}};
  for (const Problem& p : {
           Problem{8, 16, 16, 16, Layout::kn},
           Problem{32, 128, 64, 128, Layout::nk},
           Problem{32, 128, 128, 64, Layout::kn},
           Problem{12, 1, 64, 1024, Layout::nk},
           Problem{12, 1, 1024, 64, Layout::kn},
           Problem{16, 100, 61, 100, Layout::nk},
       }) {
    suite.groups.push_back(
        {"matmul-batched/" + std::to_string(p.count) + "x" + std::to_string(p.m) + "x" + std::to_string(p.k) + "x" +
             std::to_string(p.n) + "/" + brontes::to_string(p.layout),
         {"batched", "loop"},
         {{"batched", "loop", 1}},
         p.count * p.m * p.k * p.n < 1000000,
         [p](const Environment& e) -> std::vector<Case> {
           auto data = std::make_shared<Data>(Data{p, noise(p.count * p.m * p.k, 1), noise(p.count * p.k * p.n, 2)});
           return {timed(e.device, data, 1), timed(e.device, data, p.count)};
         }});
  }
  return suite;
}

}  // namespace brontes::bench
