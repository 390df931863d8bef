#include "ops/matmul_tuning.hpp"

#include "plan/plan.hpp"
#include "spirv/words.hpp"
#include "util/bytes.hpp"
#include "util/hash.hpp"

#include <algorithm>
#include <bit>
#include <bitset>
#include <cmath>
#include <cstring>

namespace brontes::plan {
namespace {

constexpr std::uint32_t payload_version = 3;
constexpr std::size_t payload_header_bytes = 4 + 4 + 8 + 4 + 4;
constexpr std::uint8_t not_measured = 0xff;
constexpr std::size_t entry_bytes = 3 * 8 + 4 + 4;
constexpr std::uint8_t f16_bit = 2;  // in the byte of the layout

std::uint32_t loads_of(std::uint64_t k, std::uint64_t n) {
  return matmul_vectorized(static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(n));
}

bool same_code(const TunedMatmul& tuned, const MatmulProblem& p) {
  return tuned.layout == p.layout && tuned.type == p.type && tuned.f16_inputs == p.f16_inputs &&
         loads_of(tuned.k, tuned.n) == loads_of(p.k, p.n);
}

double distance(std::uint64_t a, std::uint64_t b) {
  return std::abs(std::log2(static_cast<double>(a)) - std::log2(static_cast<double>(b)));
}

struct Range {
  std::uint64_t low = ~std::uint64_t{0};
  std::uint64_t high = 0;

  void add(std::uint64_t value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool holds(std::uint64_t value) const { return low <= value && value <= high; }
};

using util::Hash;

// Whether it means anything in this build; the device may still refuse it.
bool exists(const MatmulForce& choice, Layout layout) {
  if (choice.kernel == MatmulKernel::automatic) return choice.variant == 0;
  return choice.variant != 0 && choice.variant <= matmul_variants(choice.kernel, layout);
}

using KernelSet = std::bitset<kernels::count>;  // by index

// `known` are the kernels whose modules are in the hash.
void add_variant(Hash& hash, KernelSet& known, MatmulForce choice, Layout layout, Traits traits) {
  MatmulProblem p{choice.kernel == MatmulKernel::gemv ? 1u : 64u, 1024, 1024, layout};
  p.f16_inputs = choice.kernel == MatmulKernel::coopmat;
  const Tuning tuning = forcing(p, choice, traits.access);
  traits.tuning = &tuning;

  record::Graph graph(traits.max_storage_range);
  const record::ValueId a = graph.import(Shape(p.m, p.k), 0);
  const record::ValueId b = graph.import(Shape(p.k, p.n), 1);
  const Precision precision = p.f16_inputs ? Precision::f16 : Precision::f32;
  const auto c = plan::matmul(graph, a, b, p.m, p.k, p.n, {1.0f, layout, MatmulKernel::automatic, 0, precision});
  const auto plan = c ? make_plan(graph, traits) : Result<Plan>(c.error());
  hash.add(to_string(choice.kernel));
  hash.add(static_cast<std::uint64_t>(choice.kernel));
  hash.add(choice.variant);
  hash.add(plan ? plan->dispatches.size() : 0);
  if (!plan) return;
  for (const Dispatch& d : plan->dispatches) {
    const kernels::Kernel& kernel = kernels::get(d.kernel);
    hash.add(kernel.name);
    for (std::size_t i = 0; i < d.constant_count; ++i) hash.add(d.constants[i]);
    if (known.test(d.kernel.index())) continue;
    known.set(d.kernel.index());
    for (std::size_t mode = 0; mode < kernels::access_modes; ++mode) {
      const auto id = static_cast<kernels::Id>(d.kernel.index());
      for (std::uint8_t byte : kernels::packed(id, static_cast<kernels::AccessMode>(mode))) hash.add(byte);
    }
  }
}

}  // namespace

const TunedMatmul* find(const Tuning& tuning, const MatmulProblem& p, const Access& access) noexcept {
  if (!tuning.reached_by(access) || p.m == 0 || p.k == 0 || p.n == 0) return nullptr;
  Range ks, ns;
  const TunedMatmul* nearest = nullptr;
  double least = 0;
  for (const TunedMatmul& tuned : tuning.matmuls) {
    if (!same_code(tuned, p)) continue;
    ks.add(tuned.k);
    ns.add(tuned.n);
    if (tuned.m < p.m || tuned.m - p.m >= p.m) continue;
    const double by_k = distance(tuned.k, p.k);
    const double by_n = distance(tuned.n, p.n);
    if (by_k >= 1 || by_n >= 1) continue;
    const double sum = distance(tuned.m, p.m) + by_k + by_n;
    if (nearest != nullptr && sum >= least) continue;
    nearest = &tuned;
    least = sum;
  }
  return ks.holds(p.k) && ns.holds(p.n) ? nearest : nullptr;
}

void merge(Tuning& tuning, Tuning newer) {
  if (!newer.elementwise) newer.elementwise = tuning.elementwise;
  if (!newer.reductions) newer.reductions = tuning.reductions;
  if (tuning.reached_by(newer.access)) {
    newer.access_compared |= tuning.access_compared;
    const std::size_t fresh = newer.matmuls.size();
    for (const TunedMatmul& old : tuning.matmuls) {
      const auto end = newer.matmuls.begin() + static_cast<std::ptrdiff_t>(fresh);
      const bool replaced = std::any_of(newer.matmuls.begin(), end, [&](const TunedMatmul& t) {
        return t.m == old.m && t.k == old.k && t.n == old.n && t.layout == old.layout && t.type == old.type &&
               t.f16_inputs == old.f16_inputs;
      });
      if (!replaced && newer.matmuls.size() < Tuning::max_matmuls) newer.matmuls.push_back(old);
    }
  }
  tuning = std::move(newer);
}

Tuning forcing(const MatmulProblem& p, MatmulForce choice, const Access& access) {
  Tuning tuning;
  tuning.access = access;
  tuning.matmuls.push_back({p.m, p.k, p.n, p.layout, p.type, choice, 1.0f, p.f16_inputs});
  return tuning;
}

std::vector<MatmulForce> every_variant(Layout layout) {
  std::vector<MatmulForce> all;
  for (std::uint8_t i = 1;; ++i) {
    const auto kernel = static_cast<MatmulKernel>(i);
    if (std::strcmp(to_string(kernel), "unknown") == 0) return all;
    for (std::size_t variant = 1; variant <= matmul_variants(kernel, layout); ++variant) {
      all.emplace_back(kernel, variant);
    }
  }
}

namespace {

std::uint64_t hash_variants() {
  Hash hash;
  KernelSet known;
  // Devices large enough for every variant, and different where traits decide on constants.
  Traits gpu;
  gpu.max_group_invocations = 1024;
  gpu.max_shared_bytes = 1u << 16;
  gpu.matrices = {16, 16, 16, 32};
  Traits cpu = gpu;
  cpu.cpu = true;
  cpu.subgroup_size = 8;
  cpu.matrices = {8, 8, 8, 8};
  cpu.access = Access::all(kernels::AccessMode::texel);
  for (Layout layout : {Layout::kn, Layout::nk}) {
    hash.add(to_string(layout));
    for (const MatmulForce& choice : every_variant(layout)) {
      add_variant(hash, known, choice, layout, gpu);
      add_variant(hash, known, choice, layout, cpu);
    }
  }
  return hash.value();
}

}  // namespace

std::uint64_t variants_fingerprint() {
  // Plans every variant, and is the same for the life of the library.
  static const std::uint64_t fingerprint = hash_variants();
  return fingerprint;
}

std::vector<std::uint8_t> serialize(const Tuning& tuning) {
  const std::size_t count = std::min(tuning.matmuls.size(), Tuning::max_matmuls);
  util::ByteWriter writer;
  writer.out.reserve(payload_header_bytes + count * entry_bytes);
  writer.integer(payload_version, 4);
  writer.integer(count, 4);
  writer.integer(variants_fingerprint(), 8);
  writer.integer(static_cast<std::uint64_t>(tuning.access.general), 1);
  writer.integer(static_cast<std::uint64_t>(tuning.access.panels), 1);
  writer.integer(tuning.access_compared ? 1 : 0, 2);
  for (Family family : {Family::elementwise, Family::reductions}) {
    const auto mode = tuning.calibrated(family);
    writer.integer(mode ? static_cast<std::uint64_t>(*mode) : not_measured, 1);
  }
  writer.integer(0, 2);
  for (std::size_t i = 0; i < count; ++i) {
    const TunedMatmul& t = tuning.matmuls[i];
    writer.integer(t.m, 8);
    writer.integer(t.k, 8);
    writer.integer(t.n, 8);
    writer.integer(static_cast<std::uint64_t>(t.layout) | (t.f16_inputs ? f16_bit : 0), 1);
    writer.integer(static_cast<std::uint64_t>(t.type), 1);
    writer.integer(static_cast<std::uint64_t>(t.choice.kernel), 1);
    writer.integer(t.choice.variant, 1);
    writer.integer(std::bit_cast<std::uint32_t>(t.gain), 4);
  }
  return std::move(writer.out);
}

Result<Tuning> parse_tuning(Span<const std::uint8_t> bytes) {
  auto damaged = [](const std::string& what) { return Error(Errc::io, "damaged: " + what); };
  if (bytes.size() < payload_header_bytes) return damaged("only " + std::to_string(bytes.size()) + " bytes");
  util::ByteReader reader({bytes.data(), bytes.size()});
  if (const std::uint64_t version = reader.integer(4); version != payload_version) {
    return Error(Errc::io, "table version " + std::to_string(version) + ", this library writes " +
                               std::to_string(payload_version));
  }
  const std::uint64_t count = reader.integer(4);
  if (count > Tuning::max_matmuls || bytes.size() - payload_header_bytes != count * entry_bytes) {
    return damaged(std::to_string(bytes.size()) + " bytes for " + std::to_string(count) + " measurements");
  }
  if (reader.integer(8) != variants_fingerprint()) {
    return Error(Errc::io, "measured with other kernels than this library has");
  }
  Tuning tuning;
  const std::uint8_t general = reader.byte();
  const std::uint8_t panels = reader.byte();
  const std::uint64_t compared = reader.integer(2);
  if (std::max(general, panels) >= kernels::access_modes || compared > 1) return damaged("no such access mode");
  tuning.access.general = static_cast<kernels::AccessMode>(general);
  tuning.access.panels = static_cast<kernels::AccessMode>(panels);
  tuning.access_compared = compared == 1;
  for (auto* mode : {&tuning.elementwise, &tuning.reductions}) {
    const std::uint8_t written = reader.byte();
    if (written == not_measured) continue;
    if (written >= kernels::access_modes) return damaged("no such access mode");
    *mode = static_cast<kernels::AccessMode>(written);
  }
  if (reader.integer(2) != 0) return damaged("no such access mode");
  tuning.matmuls.resize(count);
  for (TunedMatmul& t : tuning.matmuls) {
    t.m = reader.integer(8);
    t.k = reader.integer(8);
    t.n = reader.integer(8);
    const std::uint8_t loads = reader.byte();
    t.f16_inputs = (loads & f16_bit) != 0;
    const auto layout = static_cast<std::uint8_t>(loads & ~f16_bit);
    t.type = static_cast<DType>(reader.byte());
    t.choice.kernel = static_cast<MatmulKernel>(reader.byte());
    t.choice.variant = reader.byte();
    t.gain = std::bit_cast<float>(static_cast<std::uint32_t>(reader.integer(4)));
    t.layout = static_cast<Layout>(layout);
    const bool stored = t.type <= DType::q4_0;  // what weights can be
    const bool good = t.m != 0 && t.k != 0 && t.n != 0 && layout <= static_cast<std::uint8_t>(Layout::nk) && stored &&
                      exists(t.choice, t.layout) && (t.f16_inputs || t.choice.kernel != MatmulKernel::coopmat) &&
                      t.gain >= 1 && t.gain <= 1e6f;
    if (!good) return damaged("a measurement of nothing this library knows");
  }
  return tuning;
}

}  // namespace brontes::plan
