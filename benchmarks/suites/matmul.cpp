// Matrix products of resident operands.
//
//   matmul/MxKxN/LAYOUT/auto      the kernel the selector takes
//   matmul/MxKxN/LAYOUT/naive     and every kernel by force: naive, gemv for a single row, tiled, subgroup, panel
//   matmul/MxKxN/LAYOUT/openblas  the same product on the CPU
//   matmul/MxKxN/LAYOUT/onednn    and by another library
//
// LAYOUT is kn for B[K,N] and nk for weights W[N,K].
#include "blas.hpp"
#include "dnn.hpp"
#include "suites.hpp"
#include "support.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

namespace brontes::bench {
namespace {

using brontes::Batch;
using brontes::Buffer;
using brontes::Layout;
using brontes::MatmulKernel;
using brontes::MatmulOptions;
using brontes::Tensor;
using brontes::Weight;

struct Problem {
  std::size_t m, k, n;
  Layout layout;
};

struct Data {
  Environment environment;
  Problem problem;
  std::vector<float> host_a, host_b, host_c;
  Buffer a, c;
  std::variant<Buffer, Weight> b;  // a Weight where the device cannot bind all of it at once
};

MatmulKernel kernel_of(const std::string& variant) {
  for (const MatmulKernel kernel :
       {MatmulKernel::naive, MatmulKernel::gemv, MatmulKernel::tiled, MatmulKernel::subgroup, MatmulKernel::panel}) {
    if (variant == brontes::to_string(kernel)) return kernel;
  }
  return MatmulKernel::automatic;
}

// Some elements of the product against double precision; all of them would take longer than the rest.
std::string spot_check(const Data& data, const std::vector<float>& c) {
  const Problem& p = data.problem;
  const std::size_t count = p.m * p.n;
  if (c.size() != count) return std::to_string(c.size()) + " elements instead of " + std::to_string(count);
  // A prime stride visits many rows and columns; the last element is where tiles go wrong.
  const std::size_t stride = std::max<std::size_t>(1, count / 251) | 1;
  for (std::size_t at = 0;; at = std::min(at + stride, count - 1)) {
    const std::size_t row = at / p.n;
    const std::size_t column = at % p.n;
    double want = 0;
    for (std::size_t i = 0; i < p.k; ++i) {
      const std::size_t b = p.layout == Layout::nk ? column * p.k + i : i * p.n + column;
      want += static_cast<double>(data.host_a[row * p.k + i]) * static_cast<double>(data.host_b[b]);
    }
    // f32 sums of k products below 1.
    std::string wrong = compare(static_cast<double>(c[at]), want, 1e-6 * static_cast<double>(p.k));
    if (!wrong.empty()) return "element (" + std::to_string(row) + ", " + std::to_string(column) + ") is " + wrong;
    if (at == count - 1) return {};
  }
}

Tensor record(const Data& data, Batch& batch, MatmulKernel kernel) {
  MatmulOptions options;
  options.layout = data.problem.layout;
  options.kernel = kernel;
  const Tensor a = batch.import_buffer(data.a);
  if (const auto* weight = std::get_if<Weight>(&data.b)) return batch.matmul(a, batch.import_weight(*weight), options);
  return batch.matmul(a, batch.import_buffer(std::get<Buffer>(data.b)), options);
}

Case on_device(const std::shared_ptr<Data>& data, MatmulKernel kernel) {
  Case c;
  c.run = [data, kernel] {
    Batch batch(data->environment.device);
    leave_on_device(data->environment.device, batch, record(*data, batch, kernel), data->c);
    must(batch.execute());
  };
  c.check = [data, kernel] {
    Batch batch(data->environment.device);
    const Tensor product = record(*data, batch, kernel);
    must(batch.execute());
    return spot_check(*data, must(batch.read(product)));
  };
  c.dump = [data, kernel] {
    return dump_of(data->environment.device, [&](Batch& batch) { record(*data, batch, kernel); });
  };
  return c;
}

// A library of the host.
template <class Library>
Case on_host(const std::shared_ptr<Data>& data, const Library& library) {
  Case c;
  c.unavailable = library.unavailable();
  // Threads of OpenBLAS spin for 2^26 ticks of the time stamp counter before they sleep, those of OpenMP for less.
  c.settle_seconds = 0.06;
  c.counted = false;
  c.run = [data, &library] {
    const Problem& p = data->problem;
    library.matmul(data->host_a.data(), data->host_b.data(), data->host_c.data(), p.m, p.k, p.n,
                   p.layout == Layout::nk);
  };
  c.check = [data, run = c.run] {
    run();
    return spot_check(*data, data->host_c);
  };
  return c;
}

Case variant_of(const std::shared_ptr<Data>& data, const std::string& variant) {
  if (variant == "openblas") return on_host(data, blas());
  if (variant == "onednn") return on_host(data, dnn());
  return on_device(data, kernel_of(variant));
}

bool fits(const Environment& environment, const Problem& p) {
  return p.k * p.n * sizeof(float) <= environment.device.info().max_storage_range;
}

std::vector<Case> products(const Environment& environment, const Problem& p, const std::vector<std::string>& variants) {
  if (p.layout == Layout::kn && !fits(environment, p)) {
    Case none;
    none.unavailable = "B[K,N] is past the device's maxStorageBufferRange, and only weights are split";
    return std::vector<Case>(variants.size(), none);
  }
  std::vector<float> host_a = noise(p.m * p.k, 1);
  std::vector<float> host_b = noise(p.k * p.n, 2);
  Buffer a = must(Buffer::from(environment.device, host_a, {p.m, p.k}));
  auto b = [&]() -> std::variant<Buffer, Weight> {
    if (p.layout == Layout::kn) return must(Buffer::from(environment.device, host_b, {p.k, p.n}));
    if (fits(environment, p)) return must(Buffer::from(environment.device, host_b, {p.n, p.k}));
    return must(Weight::from(environment.device, host_b, p.n, p.k));
  }();
  Buffer c = must(Buffer::create(environment.device, {p.m, p.n}));
  auto data = std::make_shared<Data>(Data{environment, p, std::move(host_a), std::move(host_b),
                                          std::vector<float>(p.m * p.n), std::move(a), std::move(c), std::move(b)});
  std::vector<Case> cases;
  for (const std::string& variant : variants) {
    Case& made = cases.emplace_back(variant_of(data, variant));
    const double m = static_cast<double>(p.m), k = static_cast<double>(p.k), n = static_cast<double>(p.n);
    made.flops = 2 * m * k * n;
    made.bytes = sizeof(float) * (m * k + k * n + m * n);
  }
  return cases;
}

}  // namespace

Suite matmul_suite() {
  struct Size {
    std::size_t m, k, n;
    bool quick = false;
  };
  Suite suite{"matmul", {}};
  for (const Size& s :
       {Size{1, 256, 256, true}, Size{64, 64, 64, true}, Size{1, 4096, 4096}, Size{2, 4096, 4096}, Size{4, 4096, 4096},
        Size{8, 4096, 4096}, Size{1, 4096, 11008}, Size{64, 1024, 1024}, Size{512, 512, 512}, Size{1024, 1024, 1024},
        Size{3, 1000, 1003}, Size{17, 769, 1031}, Size{100, 100, 100}}) {
    for (const Layout layout : {Layout::nk, Layout::kn}) {
      std::vector<std::string> variants{"auto", "naive", "tiled", "subgroup", "panel", "openblas", "onednn"};
      std::vector<Comparison> comparisons{{"auto", "naive", 1}, {"auto", "tiled"}};
      if (s.m == 1) {
        variants.insert(variants.begin() + 2, "gemv");
        comparisons.push_back({"auto", "gemv"});
      }
      comparisons.push_back({"auto", "openblas"});
      comparisons.push_back({"auto", "onednn"});
      suite.groups.push_back({"matmul/" + std::to_string(s.m) + "x" + std::to_string(s.k) + "x" + std::to_string(s.n) +
                                  "/" + brontes::to_string(layout),
                              variants, comparisons, s.quick, [s, layout, variants](const Environment& e) {
                                return products(e, {s.m, s.k, s.n, layout}, variants);
                              }});
    }
  }
  return suite;
}

}  // namespace brontes::bench
