// First use: a device is opened, one op is recorded and run. Some drivers compile when a pipeline is made, others when
// it first runs; this has both.
//
//   cold/KERNEL/first-use             the largest code a kernel of that kind makes, with bias and gelu behind it, and
//                                     nothing is cached
//   cold/KERNEL/cached                the same with what an earlier process left: the library's pipeline cache, and
//                                     Mesa's cache of compiled shaders
//   cold/matmul-KERNEL-LAYOUT/first-use-V  each vetted variant V of a kernel of the matmul selector
#include "suites.hpp"
#include "support.hpp"

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace brontes::bench {
namespace {

using brontes::Batch;
using brontes::Device;
using brontes::Layout;
using brontes::MatmulKernel;
using brontes::Tensor;

// A folder with caches, gone in the end.
class Caches {
 public:
  Caches() {
    std::string pattern = (std::filesystem::temp_directory_path() / "brontes-cold-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw Failure("cannot make a folder like " + pattern);
    path_ = pattern;
  }
  ~Caches() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Caches(const Caches&) = delete;
  Caches& operator=(const Caches&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

// Mesa's cache is on as long as this lives, in a folder. It is read when a device is opened.
class MesaCache {
 public:
  explicit MesaCache(const std::filesystem::path& folder) {
    if (const char* value = std::getenv(off)) before_ = value;
    setenv(off, "false", 1);
    setenv("MESA_SHADER_CACHE_DIR", folder.c_str(), 1);
  }
  ~MesaCache() {
    unsetenv("MESA_SHADER_CACHE_DIR");
    if (before_) {
      setenv(off, before_->c_str(), 1);
    } else {
      unsetenv(off);
    }
  }
  MesaCache(const MesaCache&) = delete;
  MesaCache& operator=(const MesaCache&) = delete;

 private:
  static constexpr const char* off = "MESA_SHADER_CACHE_DISABLE";
  std::optional<std::string> before_;
};

// `record` makes a tensor of which every element is `want`. With `caches`, its check fills them.
Case first_use(const std::function<Tensor(Batch&)>& record, float want,
               const std::shared_ptr<Caches>& caches = nullptr) {
  auto once = [record, caches] {
    brontes::DeviceOptions options;
    options.pipeline_cache.enabled = caches != nullptr;
    if (caches) options.pipeline_cache.path = caches->path() / "pipelines";
    options.tuning.enabled = false;
    std::optional<MesaCache> mesa;
    if (caches) mesa.emplace(caches->path());
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

Case product(MatmulKernel kernel, Layout layout, std::uint32_t variant,
             const std::shared_ptr<Caches>& caches = nullptr) {
  constexpr std::uint64_t k = 64;
  const std::uint64_t m = kernel == MatmulKernel::gemv ? 8 : 64;
  return first_use(
      [=](Batch& batch) {
        // n past one tile, and nothing that a kernel could leave out.
        const Tensor a = batch.fill(1, {m, k});
        const Tensor b = batch.fill(1, layout == Layout::nk ? brontes::Shape(200, k) : brontes::Shape(k, 200));
        return batch.gelu(batch.add(batch.matmul(a, b, {1.0f, layout, kernel, variant}), batch.fill(0.5f, {200})));
      },
      k + 0.5f, caches);
}

Case elementwise(const std::shared_ptr<Caches>& caches) {
  return first_use(
      [](Batch& batch) {
        Tensor x = batch.upload(std::vector<float>(100'000, 0.0f));
        for (int i = 0; i < 4; ++i) x = batch.gelu(batch.tanh(x));
        return x;
      },
      0.0f, caches);
}

Case reduce(const std::shared_ptr<Caches>& caches) {
  return first_use(
      [](Batch& batch) {
        return batch.gelu(batch.offset(batch.max(batch.upload(std::vector<float>(100'000, 7.0f))), 1.0f));
      },
      8.0f, caches);
}

}  // namespace

Suite cold_suite() {
  Suite suite{"cold", {}};
  auto add = [&](const std::string& name, std::vector<std::string> variants,
                 std::vector<brontes::bench::Comparison> asked, auto make) {
    suite.groups.push_back({"cold/" + name, std::move(variants), std::move(asked), false, make});
  };
  auto with_and_without = [&](const std::string& name, Case (*make)(const std::shared_ptr<Caches>&)) {
    add(name, {"first-use", "cached"}, {{"cached", "first-use"}}, [make](const Environment&) {
      return std::vector<Case>{make(nullptr), make(std::make_shared<Caches>())};
    });
  };
  with_and_without("elementwise", elementwise);
  with_and_without("reduce", reduce);
  with_and_without("matmul", [](const std::shared_ptr<Caches>& caches) {
    return product(MatmulKernel::automatic, Layout::nk, 0, caches);
  });
  for (const MatmulKernel kernel :
       {MatmulKernel::naive, MatmulKernel::gemv, MatmulKernel::tiled, MatmulKernel::subgroup, MatmulKernel::panel}) {
    for (const Layout layout : {Layout::nk, Layout::kn}) {
      const std::uint32_t count = matmul_variants(kernel, layout);
      std::vector<std::string> variants;
      for (std::uint32_t v = 1; v <= count; ++v) variants.push_back("first-use-" + std::to_string(v));
      add(std::string("matmul-") + to_string(kernel) + "-" + to_string(layout), variants, {}, [=](const Environment&) {
        std::vector<Case> cases;
        for (std::uint32_t v = 1; v <= count; ++v) cases.push_back(product(kernel, layout, v));
        return cases;
      });
    }
  }
  return suite;
}

}  // namespace brontes::bench
