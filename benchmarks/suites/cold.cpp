// First use: a device is opened, one op is recorded and run, and nothing is cached. Some drivers compile when a
// pipeline is made, others when it first runs; this has both.
//
//   cold/KERNEL/first-use             the largest code a kernel of that kind makes: with bias and gelu behind it
//   cold/matmul-KERNEL-LAYOUT/first-use-V  each vetted variant V of a kernel of the matmul selector
#include "suites.hpp"
#include "support.hpp"

#include <functional>
#include <utility>

namespace brontes::bench {
namespace {

using brontes::Batch;
using brontes::Device;
using brontes::Layout;
using brontes::MatmulKernel;
using brontes::Tensor;

// `record` makes a tensor of which every element is `want`.
Case first_use(const std::function<Tensor(Batch&)>& record, float want) {
  auto once = [record] {
    brontes::DeviceOptions options;
    options.pipeline_cache.enabled = false;
    options.tuning.enabled = false;
    const Device device = must(Device::open(options));
    Batch batch(device);
    const Tensor result = record(batch);
    must(batch.execute());
    return must(batch.read(result));
  };
  Case c;
  c.counted = false;  // it opens a Device of its own
  c.run = [once] { once(); };
  c.check = [once, want] {
    const std::vector<float> got = once();
    return compare(got, std::vector<float>(got.size(), want), 1e-5);
  };
  return c;
}

Case product(MatmulKernel kernel, Layout layout, std::uint32_t variant) {
  constexpr std::uint64_t k = 64;
  const std::uint64_t m = kernel == MatmulKernel::gemv ? 8 : 64;
  return first_use(
      [=](Batch& batch) {
        // n past one tile, and nothing that a kernel could leave out.
        const Tensor a = batch.fill(1, {m, k});
        const Tensor b = batch.fill(1, layout == Layout::nk ? brontes::Shape(200, k) : brontes::Shape(k, 200));
        return batch.gelu(batch.add(batch.matmul(a, b, {1.0f, layout, kernel, variant}), batch.fill(0.5f, {200})));
      },
      k + 0.5f);
}

Case elementwise() {
  return first_use(
      [](Batch& batch) {
        Tensor x = batch.upload(std::vector<float>(100'000, 0.0f));
        for (int i = 0; i < 4; ++i) x = batch.gelu(batch.tanh(x));
        return x;
      },
      0.0f);
}

Case reduce() {
  return first_use(
      [](Batch& batch) {
        return batch.gelu(batch.offset(batch.max(batch.upload(std::vector<float>(100'000, 7.0f))), 1.0f));
      },
      8.0f);
}

}  // namespace

Suite cold_suite() {
  Suite suite{"cold", {}};
  auto add = [&](const std::string& name, std::vector<std::string> variants, auto make) {
    suite.groups.push_back({"cold/" + name, std::move(variants), {}, false, make});
  };
  add("elementwise", {"first-use"}, [](const Environment&) { return std::vector<Case>{elementwise()}; });
  add("reduce", {"first-use"}, [](const Environment&) { return std::vector<Case>{reduce()}; });
  for (const MatmulKernel kernel :
       {MatmulKernel::naive, MatmulKernel::gemv, MatmulKernel::tiled, MatmulKernel::subgroup, MatmulKernel::panel}) {
    for (const Layout layout : {Layout::nk, Layout::kn}) {
      const std::uint32_t count = matmul_variants(kernel, layout);
      std::vector<std::string> variants;
      for (std::uint32_t v = 1; v <= count; ++v) variants.push_back("first-use-" + std::to_string(v));
      add(std::string("matmul-") + to_string(kernel) + "-" + to_string(layout), variants, [=](const Environment&) {
        std::vector<Case> cases;
        for (std::uint32_t v = 1; v <= count; ++v) cases.push_back(product(kernel, layout, v));
        return cases;
      });
    }
  }
  return suite;
}

}  // namespace brontes::bench
