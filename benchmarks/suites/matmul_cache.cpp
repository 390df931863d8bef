// Products from host memory to host memory, y = x W^T, with weights that stay on the device and with weights
// that do not.
//
//   matmul-cache/resident/MxKxN/cached    MatmulCache::matmul on a resident f32 weight
//   matmul-cache/resident/MxKxN/one-shot  ops::matmul, which uploads the weight every time
//   matmul-cache/resident/MxKxN/program   a Program over the same weight in a Buffer, by hand
//   matmul-cache/types/MxKxN/TYPE-SIZE    MatmulCache::matmul with the weight stored as TYPE, which takes SIZE
#include "suites.hpp"
#include "support.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace brontes::bench {
namespace {

using brontes::DType;
using brontes::MatmulCache;

struct Problem {
  std::size_t m, k, n;
};

struct Data {
  Environment environment;
  Problem problem;
  std::vector<float> x, w, y;
  MatmulCache cache;
};

std::shared_ptr<Data> data_for(const Environment& environment, const Problem& p) {
  return std::make_shared<Data>(Data{environment, p, noise(p.m * p.k, 1), noise(p.n * p.k, 2),
                                     std::vector<float>(p.m * p.n), MatmulCache(environment.device)});
}

// Some elements against double precision. `moves` is how far a weight may be from what was given.
std::string spot_check(const Data& data, double moves) {
  const Problem& p = data.problem;
  const std::size_t stride = std::max<std::size_t>(1, p.m * p.n / 251) | 1;
  for (std::size_t at = 0; at < p.m * p.n; at += stride) {
    const float* x = data.x.data() + at / p.n * p.k;
    const float* w = data.w.data() + at % p.n * p.k;
    double want = 0;
    double magnitudes = 0;
    for (std::size_t i = 0; i < p.k; ++i) {
      want += static_cast<double>(x[i]) * static_cast<double>(w[i]);
      magnitudes += std::abs(static_cast<double>(x[i]));
    }
    // f32 sums of k products below 1, besides.
    std::string wrong =
        compare(static_cast<double>(data.y[at]), want, moves * magnitudes + 1e-6 * static_cast<double>(p.k));
    if (!wrong.empty()) return "element " + std::to_string(at) + " is " + wrong;
  }
  return {};
}

Case timed(const std::shared_ptr<Data>& data, std::function<void()> run, double weight_bytes, double moves) {
  const Problem& p = data->problem;
  Case c;
  c.run = run;
  c.check = [data, run, moves] {
    std::fill(data->y.begin(), data->y.end(), 0.0f);
    run();
    return spot_check(*data, moves);
  };
  c.bytes = weight_bytes + static_cast<double>(sizeof(float) * (p.m * p.k + p.m * p.n));
  c.flops = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.k) * static_cast<double>(p.n);
  return c;
}

Case cached(const std::shared_ptr<Data>& data, DType type, double moves) {
  const std::string name = to_string(type);
  if (!data->cache.contains(name)) {
    must(data->cache.upload_weight(name, data->w, data->problem.n, data->problem.k, type));
  }
  const auto bytes = static_cast<double>(must(data->cache.info(name)).bytes);
  return timed(
      data, [data, name] { must(data->cache.matmul(name, data->x, data->y, data->problem.m)); }, bytes, moves);
}

// What a user had to write before there was a MatmulCache.
struct ByHand {
  brontes::Buffer weight;
  brontes::Tensor x, y;
  std::optional<brontes::Program> program;
};

std::vector<Case> residency(const Environment& environment, const Problem& p) {
  auto data = data_for(environment, p);
  const double bytes = static_cast<double>(sizeof(float) * p.n * p.k);
  std::vector<Case> cases{cached(data, DType::f32, 0)};

  cases.push_back(timed(
      data,
      [data] {
        brontes::MatmulOptions options;
        options.layout = brontes::Layout::nk;
        const Problem& size = data->problem;
        must(
            brontes::ops::matmul(data->environment.device, data->x, data->w, data->y, size.m, size.k, size.n, options));
      },
      bytes, 0));

  auto hand = std::make_shared<ByHand>(
      ByHand{must(brontes::Buffer::from(environment.device, data->w, {p.n, p.k})), {}, {}, std::nullopt});
  brontes::Batch batch(environment.device);
  hand->x = batch.upload(data->x, {p.m, p.k});
  hand->y = batch.linear(hand->x, batch.import_buffer(hand->weight));
  hand->program.emplace(must(batch.compile()));
  cases.push_back(timed(
      data,
      [data, hand] {
        must(hand->program->write(hand->x, data->x));
        must(hand->program->run());
        must(hand->program->read(hand->y, data->y));
      },
      bytes, 0));
  cases.back().dump = [hand] { return hand->program->dump(); };
  return cases;
}

struct StorageType {
  DType type;
  double moves;  // of weights in [-1, 1]
};
constexpr StorageType storage_types[] = {
    {DType::f32, 0}, {DType::f16, 0x1p-11}, {DType::bf16, 0x1p-8}, {DType::q8_0, 1.0 / 230}, {DType::q4_0, 1.0 / 7.9}};

std::vector<Case> types(const Environment& environment, const Problem& p) {
  auto data = data_for(environment, p);
  std::vector<Case> cases;
  for (const StorageType& s : storage_types) cases.push_back(cached(data, s.type, s.moves));
  return cases;
}

// "f32-64MiB": the memory of the weight is part of what is compared.
std::string type_name(const Problem& p, DType type) {
  const std::uint64_t bytes = p.n * brontes::row_bytes(type, p.k);
  const bool large = bytes >= std::uint64_t{1} << 20;
  return std::string(to_string(type)) + "-" + std::to_string(bytes >> (large ? 20 : 10)) + (large ? "MiB" : "KiB");
}

}  // namespace

Suite matmul_cache_suite() {
  struct Size {
    Problem problem;
    bool quick = false;
  };
  Suite suite{"matmul-cache", {}};
  for (const Size& s : {Size{{1, 256, 256}, true}, Size{{1, 4096, 4096}}, Size{{8, 4096, 4096}}}) {
    const Problem p = s.problem;
    const std::string size = std::to_string(p.m) + "x" + std::to_string(p.k) + "x" + std::to_string(p.n);
    suite.groups.push_back({"matmul-cache/resident/" + size,
                            {"cached", "one-shot", "program"},
                            {{"cached", "one-shot"}, {"cached", "program"}},
                            s.quick,
                            [p](const Environment& e) { return residency(e, p); }});
    std::vector<std::string> variants;
    std::vector<Comparison> comparisons;
    for (const StorageType& t : storage_types) {
      variants.push_back(type_name(p, t.type));
      if (t.type != DType::f32) comparisons.push_back({variants.back(), variants.front()});
    }
    suite.groups.push_back({"matmul-cache/types/" + size, variants, comparisons, s.quick,
                            [p](const Environment& e) { return types(e, p); }});
  }
  return suite;
}

}  // namespace brontes::bench
