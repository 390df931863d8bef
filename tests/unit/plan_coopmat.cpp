// When matrix units are chosen, with which tiles, and what a plan makes of them.
#include "ops/matmul_coopmat.hpp"
#include "ops/matmul_tuning.hpp"
#include "plan/plan.hpp"

#include <catch2/catch_test_macros.hpp>

#include <string>

namespace brontes {
namespace {

using plan::MatmulProblem;
using plan::Traits;

bool built() { return kernels::get(kernels::Id::matmul_coopmat).has(kernels::AccessMode::storage); }

Traits traits_of(plan::Vendor vendor, const plan::MatrixUnits& units,
                 plan::Architecture architecture = plan::Architecture::unknown) {
  Traits traits;
  traits.vendor = vendor;
  traits.architecture = architecture;
  traits.cpu = vendor == plan::Vendor::cpu;
  traits.matrices = units;
  traits.max_group_invocations = 1024;
  traits.max_shared_bytes = 49152;
  return traits;
}

constexpr plan::MatrixUnits square{16, 16, 16, 32}, xe2{8, 16, 16, 16}, xe_hpg{8, 8, 16, 8}, lavapipe{8, 8, 8, 8};
using plan::Architecture;
const Traits nvidia = traits_of(plan::Vendor::nvidia, square, Architecture::nvidia_turing);

MatmulProblem half(std::uint64_t m, std::uint64_t k, std::uint64_t n, Layout layout = Layout::nk) {
  MatmulProblem p{m, k, n, layout};
  p.f16_inputs = true;
  return p;
}

MatmulKernel kernel_for(const MatmulProblem& p, const Traits& traits) { return select_matmul(p, traits)->kernel; }

std::string reason(const MatmulProblem& p, const Traits& traits) { return explain(p, traits, {}).reason; }

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("matrix units are for devices on the list, f16 and more than a few rows", "[coopmat]") {
  if (!built()) SKIP("this build has no kernel for matrix units");
  CHECK(kernel_for(half(512, 512, 512), nvidia) == MatmulKernel::coopmat);
  CHECK(kernel_for(half(512, 512, 512), traits_of(plan::Vendor::amd, square, Architecture::amd_rdna3)) ==
        MatmulKernel::coopmat);
  CHECK(kernel_for(half(512, 512, 512), traits_of(plan::Vendor::intel, xe2, Architecture::intel_xe2)) ==
        MatmulKernel::coopmat);
  CHECK(kernel_for(half(512, 512, 512), traits_of(plan::Vendor::intel, xe_hpg, Architecture::intel_xe_hpg)) ==
        MatmulKernel::tiled);
  CHECK(kernel_for(half(512, 512, 512), traits_of(plan::Vendor::qualcomm, square)) == MatmulKernel::tiled);
  CHECK(kernel_for(half(512, 512, 512), traits_of(plan::Vendor::cpu, lavapipe)) != MatmulKernel::coopmat);
  CHECK(kernel_for(half(512, 512, 512), traits_of(plan::Vendor::nvidia, {})) == MatmulKernel::tiled);
  CHECK(kernel_for({512, 512, 512, Layout::nk}, nvidia) == MatmulKernel::tiled);
  CHECK(kernel_for(half(9, 512, 512), nvidia) == MatmulKernel::coopmat);
  CHECK(kernel_for(half(8, 512, 512), nvidia) == MatmulKernel::gemv);
  MatmulProblem invariant = half(512, 512, 512);
  invariant.batch_invariant = true;
  CHECK(kernel_for(invariant, nvidia) == MatmulKernel::tiled);
  for (const DType type : {DType::f16, DType::bf16, DType::q8_0, DType::q4_0}) {
    MatmulProblem stored = half(512, 512, 512);
    stored.type = type;
    CHECK(kernel_for(stored, nvidia) == MatmulKernel::coopmat);
  }
}

TEST_CASE("explain says why matrix units are not used, where there are any or f16 is allowed", "[coopmat]") {
  CHECK(contains(reason({512, 512, 512, Layout::nk}, nvidia), "Precision::f32 does not allow"));
  CHECK(contains(reason(half(512, 512, 512), traits_of(plan::Vendor::nvidia, {})), "the device has none"));
  CHECK_FALSE(contains(reason({512, 512, 512, Layout::nk}, traits_of(plan::Vendor::nvidia, {})), "matrix units"));
  if (!built()) return;
  CHECK(contains(reason(half(512, 512, 512), nvidia), "matrix units multiply f16"));
  CHECK(contains(reason(half(512, 512, 512), traits_of(plan::Vendor::intel, xe_hpg, Architecture::intel_xe_hpg)),
                 "no faster"));
  CHECK(contains(reason(half(8, 512, 512), nvidia), "so few rows"));
}

TEST_CASE("a device without matrix units plans as it did, whatever the precision", "[coopmat]") {
  const Traits without = traits_of(plan::Vendor::nvidia, {});
  for (const std::uint64_t m : {1u, 8u, 64u, 512u}) {
    const auto f32 = select_matmul({m, 512, 512, Layout::nk}, without);
    const auto f16 = select_matmul(half(m, 512, 512), without);
    CHECK(f32->kernel == f16->kernel);
    CHECK(f32->tiles.tile_m == f16->tiles.tile_m);
    CHECK(f32->k_slice == f16->k_slice);
  }
}

TEST_CASE("every tile set of every size of matrices is one that the kernel takes", "[coopmat]") {
  if (!built()) SKIP("this build has no kernel for matrix units");
  const plan::MatrixUnits unknown{16, 8, 8, 32};
  for (const plan::MatrixUnits& units : {square, xe2, xe_hpg, lavapipe, unknown}) {
    const Traits traits = traits_of(plan::Vendor::other, units);
    std::uint64_t last = ~std::uint64_t{0};
    for (std::size_t variant = 1; variant <= plan::coopmat_variants; ++variant) {
      for (const Layout layout : {Layout::kn, Layout::nk}) {
        INFO(units.m << "x" << units.n << "x" << units.k << ", variant " << variant);
        const auto s = select_matmul(half(4096, 4096, 4096, layout), traits, {MatmulKernel::coopmat, variant});
        REQUIRE(s);
        CHECK(s->coopmat.valid());
        CHECK(s->coopmat.group_size() <= traits.max_group_invocations);
        CHECK(matmul_coopmat_shared_bytes(plan::kernel_layout(layout), s->coopmat) <= 32768);
        CHECK(s->tile.rows == s->coopmat.tile_m());
        CHECK(std::uint64_t{s->tile.rows} * s->tile.columns <= last);
        if (layout == Layout::nk) last = std::uint64_t{s->tile.rows} * s->tile.columns;
      }
    }
  }
  // What is too large for a device is not offered there.
  Traits small = nvidia;
  small.max_shared_bytes = 16384;
  CHECK(select_matmul(half(4096, 4096, 4096), small)->coopmat.tile_m() < 128);
  CHECK(select_matmul(half(4096, 4096, 4096), small, {MatmulKernel::coopmat, 1}).error().code == Errc::unsupported);
}

TEST_CASE("forcing matrix units without the precision, or without them, is an error", "[coopmat]") {
  if (!built()) SKIP("this build has no kernel for matrix units");
  CHECK(select_matmul({64, 64, 64, Layout::nk}, nvidia, MatmulKernel::coopmat).error().code == Errc::invalid_argument);
  CHECK(select_matmul(half(64, 64, 64), traits_of(plan::Vendor::nvidia, {}), MatmulKernel::coopmat).error().code ==
        Errc::unsupported);
}

TEST_CASE("measurements with f16 say nothing of products without it, and the other way round", "[coopmat][tuning]") {
  if (!built()) SKIP("this build has no kernel for matrix units");
  plan::Tuning tuning = plan::forcing(half(64, 512, 512), {MatmulKernel::coopmat, 2}, nvidia.access);
  Traits traits = nvidia;
  traits.tuning = &tuning;
  CHECK(select_matmul(half(64, 512, 512), traits)->tuned != nullptr);
  CHECK(select_matmul({64, 512, 512, Layout::nk}, traits)->tuned == nullptr);
  const auto bytes = serialize(tuning);
  const auto read = plan::parse_tuning(bytes);
  REQUIRE(read);
  CHECK(*read == tuning);
  // A file cannot have matrix units for what is f32.
  tuning.matmuls[0].f16_inputs = false;
  CHECK(plan::parse_tuning(serialize(tuning)).error().code == Errc::io);
}

}  // namespace brontes
