// Measurements as data: which one speaks for a product, what the selector makes of it, and the bytes of the
// tuning file.
#include "ops/matmul_tuning.hpp"

#include "ops/matmul.hpp"
#include "plan/plan.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

using namespace brontes;
using plan::MatmulForce;
using plan::MatmulProblem;
using plan::TunedMatmul;
using plan::Tuning;

namespace {

plan::Traits gpu() {
  plan::Traits traits;
  traits.max_group_invocations = 1024;
  traits.max_shared_bytes = 49152;
  return traits;
}

const MatmulForce naive(MatmulKernel::naive, 1);

// A grid with a gain by which every measurement can be told from the others.
Tuning grid() {
  Tuning tuning;
  for (std::uint64_t m : {1u, 2u, 4u, 8u, 64u}) {
    for (std::uint64_t size : {256u, 512u, 1024u}) {
      const float gain = 2.0f + static_cast<float>(tuning.matmuls.size());
      tuning.matmuls.push_back({m, size, size, Layout::nk, DType::f32, naive, gain});
    }
  }
  return tuning;
}

// "8x512x512" or "none".
std::string found(const Tuning& tuning, const MatmulProblem& p, const plan::Access& access = {}) {
  const TunedMatmul* t = find(tuning, p, access);
  if (t == nullptr) return "none";
  return std::to_string(t->m) + "x" + std::to_string(t->k) + "x" + std::to_string(t->n);
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string refusal(const std::vector<std::uint8_t>& bytes) {
  const auto parsed = plan::parse_tuning(bytes);
  return parsed ? "accepted" : parsed.error().message;
}

}  // namespace

TEST_CASE("a measured product finds its own measurement", "[tuning]") {
  const Tuning tuning = grid();
  for (const TunedMatmul& t : tuning.matmuls) {
    CHECK(find(tuning, {t.m, t.k, t.n, t.layout}, {}) == &t);
  }
}

TEST_CASE("other products go by the nearest measurement, with m rounded up", "[tuning]") {
  const Tuning tuning = grid();
  CHECK(found(tuning, {3, 512, 512, Layout::nk}) == "4x512x512");
  CHECK(found(tuning, {5, 512, 512, Layout::nk}) == "8x512x512");
  CHECK(found(tuning, {33, 512, 512, Layout::nk}) == "64x512x512");
  CHECK(found(tuning, {8, 600, 512, Layout::nk}) == "8x512x512");
  CHECK(found(tuning, {8, 960, 1000, Layout::nk}) == "8x1024x1024");
  CHECK(found(tuning, {8, 304, 304, Layout::nk}) == "8x256x256");
}

TEST_CASE("too far from everything measured, or outside its range, there is no measurement", "[tuning]") {
  const Tuning tuning = grid();
  CHECK(found(tuning, {9, 512, 512, Layout::nk}) == "none");   // 64 rows are more than twice as many
  CHECK(found(tuning, {32, 512, 512, Layout::nk}) == "none");  // exactly twice
  CHECK(found(tuning, {65, 512, 512, Layout::nk}) == "none");
  CHECK(found(tuning, {8, 256, 512, Layout::nk}) == "none");  // on the grid, but only squares were measured
  CHECK(found(tuning, {8, 1032, 1024, Layout::nk}) == "none");
  CHECK(found(tuning, {8, 248, 256, Layout::nk}) == "none");
  CHECK(found(tuning, {8, 1024, 4096, Layout::nk}) == "none");
  CHECK(found({}, {8, 256, 256, Layout::nk}) == "none");
  for (const MatmulProblem& empty :
       {MatmulProblem{0, 256, 256, Layout::nk}, MatmulProblem{8, 0, 256, Layout::nk}, MatmulProblem{8, 256, 0}}) {
    CHECK(found(tuning, empty) == "none");
  }
  const std::uint64_t huge = ~std::uint64_t{0};
  CHECK(found(tuning, {huge, huge, huge, Layout::nk}) == "none");
  Tuning of_huge;
  of_huge.matmuls.push_back({huge, 256, 256, Layout::nk, DType::f32, naive, 2.0f});
  CHECK(found(of_huge, {1, 256, 256, Layout::nk}) == "none");
  CHECK(found(of_huge, {huge - 5, 256, 256, Layout::nk}) == std::to_string(huge) + "x256x256");
}

TEST_CASE("a measurement is for its layout, type, access mode and row alignment alone", "[tuning]") {
  const Tuning tuning = grid();
  CHECK(found(tuning, {8, 512, 512, Layout::kn}) == "none");
  CHECK(found(tuning, {8, 512, 512, Layout::nk, DType::q8_0}) == "none");
  using kernels::AccessMode;
  CHECK(found(tuning, {8, 512, 512, Layout::nk}, {AccessMode::storage, AccessMode::storage}) == "8x512x512");
  CHECK(found(tuning, {8, 512, 512, Layout::nk}, {AccessMode::texel, AccessMode::storage}) == "none");
  CHECK(found(tuning, {8, 512, 512, Layout::nk}, {AccessMode::storage, AccessMode::texel}) == "none");
  CHECK(found(tuning, {8, 513, 512, Layout::nk}) == "none");
  CHECK(found(tuning, {8, 512, 511, Layout::nk}) == "none");
}

TEST_CASE("the selector obeys a forced choice, then the measurement, then its defaults", "[tuning]") {
  const MatmulProblem p{8, 512, 512, Layout::nk};
  plan::Traits traits = gpu();
  const MatmulKernel by_default = plan::select_matmul(p, traits)->kernel;
  REQUIRE(by_default != MatmulKernel::naive);
  const Tuning tuning = grid();
  traits.tuning = &tuning;
  CHECK(plan::select_matmul(p, traits)->kernel == MatmulKernel::naive);
  CHECK(plan::select_matmul(p, traits, MatmulKernel::tiled)->kernel == MatmulKernel::tiled);
  CHECK(plan::select_matmul({8, 100, 512, Layout::nk}, traits)->kernel == by_default);

  const Tuning tiles = plan::forcing(p, {MatmulKernel::tiled, 3}, traits.access);
  traits.tuning = &tiles;
  const auto forced = plan::select_matmul(p, gpu(), {MatmulKernel::tiled, 3});
  CHECK(plan::select_matmul(p, traits)->tiles.tile_m == forced->tiles.tile_m);
  CHECK(plan::select_matmul(p, traits)->groups == forced->groups);
}

TEST_CASE("a measured choice reaches the plan", "[tuning]") {
  plan::Traits traits = gpu();
  record::Graph graph(traits.max_storage_range);
  const record::ValueId a = graph.import(Shape(8, 512), 0);
  const record::ValueId b = graph.import(Shape(512, 512), 1);
  REQUIRE(plan::matmul(graph, a, b, {1.0f, Layout::nk, MatmulKernel::automatic}));
  CHECK(plan::make_plan(graph, traits)->dispatches[0].kernel != kernels::Id::matmul_naive);
  const Tuning tuning = grid();
  traits.tuning = &tuning;
  CHECK(plan::make_plan(graph, traits)->dispatches[0].kernel == kernels::Id::matmul_naive);
}

TEST_CASE("a choice that does not exist, or that the device refuses, falls back to the default", "[tuning]") {
  const MatmulProblem p{64, 512, 512, Layout::nk};
  plan::Traits traits = gpu();
  traits.max_group_invocations = 64;
  traits.subgroup_operations = false;
  const auto by_default = plan::select_matmul(p, traits);
  for (const MatmulForce& choice :
       {MatmulForce(MatmulKernel::tiled, 1), MatmulForce(MatmulKernel::tiled, 99), MatmulForce(MatmulKernel::naive, 2),
        MatmulForce(MatmulKernel::subgroup, 1), MatmulForce(MatmulKernel::gemv, 1),
        MatmulForce(static_cast<MatmulKernel>(77), 1), MatmulForce(MatmulKernel::automatic, 5)}) {
    INFO(to_string(choice.kernel) << " " << choice.variant);
    const Tuning tuning = plan::forcing(p, choice, traits.access);
    traits.tuning = &tuning;
    const auto selection = plan::select_matmul(p, traits);
    REQUIRE(selection);
    CHECK(selection->kernel == by_default->kernel);
    CHECK(selection->groups == by_default->groups);
    CHECK(std::string(selection->reason) == by_default->reason);
  }
}

TEST_CASE("a product that must not depend on m does not go by measurements, which do", "[tuning]") {
  MatmulProblem p{8, 512, 512, Layout::nk};
  p.batch_invariant = true;
  plan::Traits traits = gpu();
  const auto by_default = plan::select_matmul(p, traits);
  const Tuning tuning = grid();
  traits.tuning = &tuning;
  CHECK(plan::select_matmul(p, traits)->kernel == by_default->kernel);
  CHECK_FALSE(contains(plan::explain(p, traits, {}).reason, "measured"));
}

TEST_CASE("explain tells that something was measured, and what came of it", "[tuning]") {
  plan::Traits traits = gpu();
  Tuning tuning = grid();
  tuning.matmuls.push_back({16, 512, 512, Layout::nk, DType::f32, {}, 1.0f});
  tuning.matmuls[10].gain = 1.456f;
  traits.tuning = &tuning;
  const std::string faster = plan::explain({7, 512, 512, Layout::nk}, traits, {}).reason;
  INFO(faster);
  CHECK(contains(faster, "measured on this device: 1.46 times as fast as the default at [8, 512] x [512, 512]"));
  const std::string not_faster = plan::explain({16, 512, 512, Layout::nk}, traits, {}).reason;
  INFO(not_faster);
  CHECK(contains(not_faster, "measured on this device: nothing was faster at [16, 512] x [512, 512]"));
  CHECK_FALSE(contains(plan::explain({7, 512, 512, Layout::kn}, traits, {}).reason, "measured"));
  CHECK_FALSE(contains(plan::explain({7, 512, 512, Layout::nk}, traits, MatmulKernel::tiled).reason, "measured"));
}

TEST_CASE("newer measurements replace those of the same product and leave the others", "[tuning]") {
  Tuning tuning = grid();
  const std::size_t before = tuning.matmuls.size();
  Tuning newer;
  newer.access_compared = true;
  newer.matmuls.push_back({8, 512, 512, Layout::nk, DType::f32, {}, 1.0f});
  newer.matmuls.push_back({8, 512, 512, Layout::kn, DType::f32, naive, 3.0f});
  merge(tuning, newer);
  CHECK(tuning.access_compared);
  CHECK(tuning.matmuls.size() == before + 1);
  CHECK(find(tuning, {8, 512, 512, Layout::nk}, {})->choice == MatmulForce());
  CHECK(find(tuning, {8, 512, 512, Layout::kn}, {})->gain == 3.0f);
  CHECK(find(tuning, {4, 512, 512, Layout::nk}, {})->choice == naive);

  // How anything else reaches memory has nothing to do with it.
  tuning.elementwise = kernels::AccessMode::pointer;
  newer.access.elementwise = kernels::AccessMode::texel;
  merge(tuning, newer);
  CHECK(tuning.matmuls.size() == before + 1);
  CHECK(tuning.elementwise == kernels::AccessMode::pointer);

  newer.access.panels = kernels::AccessMode::texel;
  newer.elementwise = kernels::AccessMode::storage;
  merge(tuning, newer);
  CHECK(tuning == newer);
}

TEST_CASE("what is written is read again", "[tuning]") {
  Tuning tuning = grid();
  tuning.access = {kernels::AccessMode::pointer, kernels::AccessMode::texel};
  tuning.access_compared = true;
  tuning.reductions = kernels::AccessMode::texel;
  for (Layout layout : {Layout::kn, Layout::nk}) {
    for (const MatmulForce& choice : plan::every_variant(layout)) {
      tuning.matmuls.push_back(
          {~std::uint64_t{0}, 3, 5, layout, DType::q4_0, choice, 1.25f, choice.kernel == MatmulKernel::coopmat});
    }
  }
  const auto parsed = plan::parse_tuning(plan::serialize(tuning));
  INFO(parsed.error().message);
  REQUIRE(parsed);
  CHECK(*parsed == tuning);
  const auto empty = plan::parse_tuning(plan::serialize({}));
  REQUIRE(empty);
  CHECK(*empty == Tuning());
}

TEST_CASE("how families reach memory is read again only as it can have been written", "[tuning]") {
  Tuning tuning;
  tuning.elementwise = kernels::AccessMode::pointer;
  const std::vector<std::uint8_t> bytes = plan::serialize(tuning);
  REQUIRE(plan::parse_tuning(bytes)->elementwise == kernels::AccessMode::pointer);
  CHECK_FALSE(plan::parse_tuning(bytes)->reductions.has_value());
  // Behind version, count, fingerprint and the modes of products.
  for (const std::size_t at : {20u, 21u, 22u, 23u}) {
    for (const int value : {3, 0x7f, 0xfe}) {
      std::vector<std::uint8_t> wrong = bytes;
      wrong[at] = static_cast<std::uint8_t>(value);
      CHECK_FALSE(plan::parse_tuning(wrong).has_value());
    }
  }
}

TEST_CASE("the fingerprint covers every variant of every kernel", "[tuning]") {
  for (Layout layout : {Layout::kn, Layout::nk}) {
    const auto all = plan::every_variant(layout);
    std::size_t count = 0;
    for (MatmulKernel kernel :
         {MatmulKernel::naive, MatmulKernel::gemv, MatmulKernel::tiled, MatmulKernel::subgroup, MatmulKernel::panel}) {
      count += matmul_variants(kernel, layout);
    }
    CHECK(all.size() >= count);
  }
}

TEST_CASE("a table of other kernels or another version is refused by name", "[tuning]") {
  const auto good = plan::serialize(grid());
  REQUIRE(refusal(good) == "accepted");
  auto version = good;
  version[0] = 1;
  CHECK(contains(refusal(version), "table version 1, this library writes 3"));
  for (std::size_t at = 8; at < 16; ++at) {
    auto fingerprint = good;
    fingerprint[at] ^= 0x10;
    CHECK(contains(refusal(fingerprint), "other kernels"));
  }
}

TEST_CASE("a table that is cut, too long or says nothing sensible is refused", "[tuning]") {
  const auto good = plan::serialize(grid());
  for (std::size_t length = 0; length < good.size(); ++length) {
    CHECK(contains(refusal({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length)}), "damaged"));
  }
  auto longer = good;
  longer.push_back(0);
  CHECK(contains(refusal(longer), "damaged"));
  constexpr std::size_t entry = 24;  // where the first measurement begins
  auto with = [&](std::size_t at, std::vector<std::uint8_t> bytes) {
    auto bad = good;
    std::copy(bytes.begin(), bytes.end(), bad.begin() + static_cast<std::ptrdiff_t>(at));
    return refusal(bad);
  };
  CHECK(contains(with(4, {0xff, 0xff, 0xff, 0xff}), "damaged"));      // count
  CHECK(contains(with(16, {9}), "damaged"));                          // access mode
  CHECK(contains(with(17, {9}), "damaged"));                          // that of panels
  CHECK(contains(with(18, {2, 0}), "damaged"));                       // whether modes were compared
  CHECK(contains(with(entry, {0, 0, 0, 0, 0, 0, 0, 0}), "damaged"));  // m = 0
  CHECK(contains(with(entry + 24, {4}), "damaged"));                  // layout
  CHECK(with(entry + 24, {2}) == "accepted");                         // kn, with operands that may be f16
  CHECK(contains(with(entry + 25, {200}), "damaged"));                // type
  CHECK(contains(with(entry + 25, {5}), "damaged"));                  // i32, which no weight is
  CHECK(contains(with(entry + 26, {100}), "damaged"));                // kernel
  CHECK(contains(with(entry + 26, {0}), "damaged"));                  // the default has no variant
  CHECK(contains(with(entry + 27, {2}), "damaged"));                  // naive has one variant
  CHECK(contains(with(entry + 28, {0, 0, 0xc0, 0x7f}), "damaged"));   // a gain of NaN
  CHECK(contains(with(entry + 28, {0, 0, 0x80, 0x7f}), "damaged"));   // of infinity
  CHECK(contains(with(entry + 28, {0, 0, 0, 0}), "damaged"));         // of 0
  CHECK(contains(with(entry + 27, {0}), "damaged"));                  // every kernel has one
  CHECK(with(entry + 27, {1}) == "accepted");
}

TEST_CASE("whatever a table of random bytes says, the selector gives a selection", "[tuning]") {
  std::mt19937 random(7);
  const auto good = plan::serialize(grid());
  plan::Traits traits = gpu();
  for (int round = 0; round < 3000; ++round) {
    auto bytes = good;
    const std::size_t from = round % 2 == 0 ? 16 : 0;
    for (std::size_t i = 0; i < 1 + static_cast<std::size_t>(round) % 7; ++i) {
      bytes[from + random() % (bytes.size() - from)] = static_cast<std::uint8_t>(random());
    }
    if (round % 5 == 0) bytes.resize(random() % bytes.size());
    const auto parsed = plan::parse_tuning(bytes);
    if (!parsed) continue;
    traits.tuning = &*parsed;
    for (std::uint64_t m : {1u, 3u, 8u, 64u}) {
      for (std::uint64_t size : {256u, 700u, 1024u}) {
        const auto selection = plan::select_matmul({m, size, size, Layout::nk}, traits);
        REQUIRE(selection);
        REQUIRE((selection->kernel != MatmulKernel::gemv || m <= plan::matmul_gemv_max_rows));
      }
    }
  }
}
