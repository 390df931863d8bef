// The matmul selector: which kernel, with which numbers, and why.
#include "ops/matmul.hpp"
#include "ops/matmul_tiles.hpp"
#include "ops/matmul_tuning.hpp"

#include "plan/plan.hpp"
#include "support/hazard_checker.hpp"

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

using namespace brontes;
using plan::explain;
using plan::MatmulProblem;
using plan::MatmulSelection;
using plan::select_matmul;

namespace {

plan::Traits gpu() {
  plan::Traits traits;
  traits.max_group_invocations = 1024;
  traits.max_shared_bytes = 49152;
  return traits;
}

plan::Traits cpu_driver() {
  plan::Traits traits = gpu();
  traits.cpu = true;
  traits.subgroup_size = 8;
  return traits;
}

MatmulKernel kernel_for(const MatmulProblem& p, const plan::Traits& traits) {
  return select_matmul(p, traits).value().kernel;
}

std::uint32_t constant(const plan::Dispatch& dispatch, const std::string& name) {
  const kernels::Kernel& kernel = kernels::get(dispatch.kernel);
  for (std::size_t i = 0; i < dispatch.constant_count; ++i) {
    if (name == kernel.constants[i].name) return dispatch.constants[i];
  }
  return 0;
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

plan::MatmulLayout layout_of(const MatmulProblem& p) {
  return p.layout == Layout::nk ? plan::MatmulLayout::nk : plan::MatmulLayout::kn;
}

bool by_subgroups(const MatmulSelection& s) {
  return s.kernel == MatmulKernel::subgroup || s.kernel == MatmulKernel::panel;
}

// What the kernels for CPU drivers ask of their constants.
bool takes(const MatmulSelection& s, const MatmulProblem& p, const plan::Traits& traits) {
  const plan::MatmulSubgroupShape& shape = s.subgroup;
  if (shape.tiles == 0 || shape.group_size != shape.tiles * traits.subgroup_size) return false;
  if (shape.rows == 0 || shape.columns == 0 || s.tile.rows != shape.rows || s.tile.columns != shape.width) return false;
  if (s.kernel == MatmulKernel::subgroup && p.layout == Layout::nk) {
    return shape.rows <= plan::matmul_subgroup_nk_max_rows && shape.columns <= plan::matmul_subgroup_nk_max_columns &&
           shape.columns <= 2 * traits.subgroup_size && shape.width == shape.columns;
  }
  if (shape.sources != 1 && shape.sources != 4 && shape.sources != 8) return false;
  if (shape.sources > traits.subgroup_size) return false;
  if (s.kernel == MatmulKernel::subgroup) {
    return shape.rows <= plan::matmul_subgroup_kn_max_rows && shape.columns <= plan::matmul_subgroup_kn_max_vectors &&
           shape.width == 4 * traits.subgroup_size * shape.columns;
  }
  const bool whole = p.k % 4 == 0 || traits.access.panels == kernels::AccessMode::storage;
  if (shape.a_packed != !whole) return false;
  return shape.rows <= plan::matmul_panel_max_rows && shape.columns <= plan::matmul_panel_max_columns &&
         shape.width == traits.subgroup_size * shape.columns && plan::matmul_fours(p.k) % shape.steps == 0 &&
         (whole || shape.b_packed) && (shape.b_packed || (p.layout == Layout::nk && p.type == DType::f32));
}

std::uint64_t iterations(const MatmulSelection& s, const MatmulProblem& p, std::uint64_t k) {
  const auto count = static_cast<std::uint32_t>(k);
  switch (s.kernel) {
    case MatmulKernel::gemv: return plan::matmul_gemv_iterations(layout_of(p), count, s.gemv);
    case MatmulKernel::tiled: return plan::matmul_tiled_iterations(count);
    case MatmulKernel::subgroup:
      if (p.layout == Layout::kn) return plan::matmul_subgroup_kn_iterations(count);
      return plan::matmul_subgroup_nk_iterations(count, s.subgroup.group_size / s.subgroup.tiles, 4);
    case MatmulKernel::panel: return plan::matmul_panel_iterations(count, s.subgroup.steps);
    default: return plan::matmul_naive_iterations(count);
  }
}

std::uint32_t invocations(const MatmulSelection& s) {
  if (s.kernel == MatmulKernel::gemv) return s.gemv.group_size;
  if (by_subgroups(s)) return s.subgroup.group_size;
  return s.kernel == MatmulKernel::tiled ? s.tiles.group_size() : s.group_x * s.group_y;
}

std::uint32_t shared_bytes(const MatmulSelection& s, const MatmulProblem& p) {
  if (s.kernel == MatmulKernel::gemv) return plan::matmul_gemv_shared_bytes(layout_of(p), s.vectorized, s.gemv);
  if (s.kernel == MatmulKernel::naive || by_subgroups(s)) return 0;
  return plan::matmul_tiled_shared_bytes(s.tiles.tile_m, s.tiles.tile_n);
}

// The rule a selection breaks, or nothing.
std::string broken_rule(const MatmulSelection& s, const MatmulProblem& p, const plan::Traits& traits) {
  if (invocations(s) == 0 || invocations(s) > traits.max_group_invocations) return "the workgroup fits the device";
  if (shared_bytes(s, p) > traits.max_shared_bytes) return "shared memory fits the device";
  if (s.kernel == MatmulKernel::tiled && !s.tiles.valid()) return "the tiles are what the kernel takes";
  if (s.kernel == MatmulKernel::gemv &&
      (s.gemv.rows < p.m || s.gemv.rows > plan::matmul_gemv_max_rows || s.gemv.columns == 0 ||
       s.gemv.columns > plan::matmul_gemv_max_columns || s.gemv.teams == 0 || s.gemv.group_size % s.gemv.teams != 0)) {
    return "rows, columns and teams are what the kernel takes";
  }
  if (s.tile.rows == 0 || s.tile.columns == 0) return "a workgroup does something";
  const std::uint64_t down = (p.m + s.tile.rows - 1) / s.tile.rows;
  const std::uint64_t across = (p.n + s.tile.columns - 1) / s.tile.columns;
  if (by_subgroups(s) && !takes(s, p, traits)) return "the tile is what the kernel takes";
  const std::uint64_t tiles = by_subgroups(s) ? s.subgroup.tiles : 1;
  if (s.groups != (down * across + tiles - 1) / tiles) return "groups cover the matrix and no more";
  if (s.k_chunk == 0 || s.k_chunk > p.k) return "a chunk of k is part of k";
  if (s.k_chunk != p.k && s.k_chunk % 4 != 0) return "chunks are multiples of 4";
  if (s.slices == 0 || s.k_slice == 0 || s.k_chunk > s.slices * s.k_slice) return "slices cover a chunk of k";
  if (s.slices > 1 && s.k_slice % 32 != 0) return "slices are whole blocks";
  for (const std::uint64_t count : {s.k_slice, p.k % s.k_slice}) {
    if (iterations(s, p, count) > traits.max_loop_iterations) return "loops keep within the device's allowance";
  }
  return "";
}

record::Graph product_graph(const MatmulProblem& p, MatmulKernel kernel = MatmulKernel::automatic) {
  record::Graph graph(std::uint64_t{1} << 32);
  MatmulOptions options;
  options.layout = p.layout;
  options.kernel = kernel;
  const record::ValueId a = graph.import(Shape(p.m, p.k), 0);
  const record::ValueId b = graph.import(p.layout == Layout::nk ? Shape(p.n, p.k) : Shape(p.k, p.n), 1);
  REQUIRE(plan::matmul(graph, a, b, options));
  return graph;
}

}  // namespace

TEST_CASE("the selector takes gemv for few rows, naive for little, tiled for the rest", "[plan][matmul]") {
  for (const Layout layout : {Layout::kn, Layout::nk}) {
    CHECK(kernel_for({1, 512, 512, layout}, gpu()) == MatmulKernel::gemv);
    CHECK(kernel_for({1, 1, 1, layout}, gpu()) == MatmulKernel::gemv);
    CHECK(kernel_for({2, 3, 5, layout}, gpu()) == MatmulKernel::naive);
    CHECK(kernel_for({16, 16, 16, layout}, gpu()) == MatmulKernel::tiled);
    CHECK(kernel_for({512, 1, 512, layout}, gpu()) == MatmulKernel::tiled);
    CHECK(kernel_for({2, 512, 512, layout}, gpu()) == MatmulKernel::gemv);
    CHECK(kernel_for({8, 512, 512, layout}, gpu()) == MatmulKernel::gemv);
    CHECK(kernel_for({9, 512, 512, layout}, gpu()) == MatmulKernel::tiled);
  }
}

TEST_CASE("the selector keeps CPU drivers from workgroup barriers", "[plan][matmul]") {
  for (const std::uint64_t m : {1u, 2u, 31u, 512u}) {
    for (const Layout layout : {Layout::kn, Layout::nk}) {
      const MatmulSelection s = select_matmul({m, 512, 512, layout}, cpu_driver()).value();
      CHECK(by_subgroups(s));
      CHECK(shared_bytes(s, {m, 512, 512, layout}) == 0);
    }
  }
}

TEST_CASE("the selector gives CPU drivers panels where they pay", "[plan][matmul]") {
  const plan::Traits cpu = cpu_driver();
  plan::Traits loops = cpu;  // lavapipe of Mesa 22
  loops.access = {kernels::AccessMode::texel, kernels::AccessMode::texel};
  plan::Traits narrow = cpu;  // SwiftShader
  narrow.subgroup_size = 4;
  plan::Traits gathers = cpu;  // lavapipe of Mesa 25
  gathers.access = {kernels::AccessMode::pointer, kernels::AccessMode::texel};

  // Few rows are bound by reading W once, which lanes along k do best.
  CHECK(kernel_for({1, 512, 512, Layout::nk}, cpu) == MatmulKernel::subgroup);
  CHECK(kernel_for({4, 512, 512, Layout::nk}, cpu) == MatmulKernel::subgroup);
  CHECK(kernel_for({5, 512, 512, Layout::nk}, cpu) == MatmulKernel::panel);
  CHECK(kernel_for({1, 512, 512, Layout::nk}, narrow) == MatmulKernel::panel);
  // B[k,n] has to be repacked, and the subgroup kernel takes it as it is.
  CHECK(kernel_for({512, 512, 512, Layout::kn}, cpu) == MatmulKernel::subgroup);
  CHECK(kernel_for({128, 512, 512, Layout::kn}, loops) == MatmulKernel::subgroup);
  // For rows that are not whole vec4s, and for packed weights, many rows make repacking pay.
  CHECK(kernel_for({31, 513, 512, Layout::nk}, loops) == MatmulKernel::subgroup);
  CHECK(kernel_for({32, 513, 512, Layout::nk}, loops) == MatmulKernel::panel);
  CHECK(kernel_for({1, 513, 512, Layout::nk}, narrow) == MatmulKernel::panel);
  CHECK(kernel_for({17, 512, 513, Layout::kn}, narrow) == MatmulKernel::subgroup);
  CHECK(kernel_for({11, 513, 512, Layout::nk}, gathers) == MatmulKernel::subgroup);
  CHECK(kernel_for({12, 513, 512, Layout::nk}, gathers) == MatmulKernel::panel);
  CHECK(kernel_for({31, 512, 513, Layout::kn}, gathers) == MatmulKernel::subgroup);
  CHECK(kernel_for({31, 512, 512, Layout::nk, DType::q4_0}, cpu) == MatmulKernel::subgroup);
  CHECK(kernel_for({32, 512, 512, Layout::nk, DType::q4_0}, cpu) == MatmulKernel::panel);
  // Nothing is repacked for a little product.
  CHECK(kernel_for({40, 7, 6, Layout::nk}, loops) == MatmulKernel::subgroup);
  // Nor where what is repacked would be too large, nor where a row has to come out the same for every m.
  plan::Traits small = cpu;
  small.max_storage_range = 4 * 512 * 512;
  CHECK(kernel_for({64, 512, 512, Layout::nk, DType::q4_0}, small) == MatmulKernel::panel);
  CHECK(kernel_for({64, 512, 513, Layout::nk, DType::q4_0}, small) == MatmulKernel::subgroup);
  CHECK(select_matmul({64, 512, 513, Layout::nk, DType::q4_0}, small, MatmulKernel::panel).error().code ==
        Errc::limit_exceeded);
  CHECK(select_matmul({64, 512, 512, Layout::nk, DType::f32, true}, cpu)->kernel == MatmulKernel::subgroup);
}

TEST_CASE("weights whose rows lie whole pages apart are repacked for many rows", "[plan][matmul]") {
  const plan::Traits cpu = cpu_driver();
  auto repacked = [&](const MatmulProblem& p) { return select_matmul(p, cpu)->subgroup.b_packed; };
  CHECK(repacked({32, 1024, 512, Layout::nk}));
  CHECK(repacked({64, 4096, 512, Layout::nk}));
  CHECK_FALSE(repacked({31, 1024, 512, Layout::nk}));
  CHECK_FALSE(repacked({64, 1040, 512, Layout::nk}));
  // Not where they are too large for it.
  plan::Traits small = cpu;
  small.max_storage_range = 4 * 1024 * 513;
  CHECK_FALSE(select_matmul({64, 1024, 513, Layout::nk}, small)->subgroup.b_packed);
  CHECK(select_matmul({64, 1024, 513, Layout::nk}, small)->kernel == MatmulKernel::panel);
}

TEST_CASE("panels may reach memory in another way than the rest", "[plan][matmul]") {
  using kernels::AccessMode;
  plan::Traits traits = cpu_driver();
  traits.access = {AccessMode::pointer, AccessMode::texel};
  traits.max_texel_elements = 1u << 20;
  auto modes = [&](std::uint64_t m, std::uint64_t k, Layout layout) {
    record::Graph graph(traits.max_storage_range);
    const record::ValueId a = graph.import(Shape(m, k), 0);
    const record::ValueId b = graph.import(layout == Layout::nk ? Shape(512, k) : Shape(k, 512), 1);
    REQUIRE(plan::matmul(graph, a, b, m, k, 512, {1.0f, layout}));
    std::string text;
    const plan::Plan plan = plan::make_plan(graph, traits).value();
    for (const plan::Dispatch& d : plan.dispatches) {
      text += std::string(kernels::get(d.kernel).name) + (d.access == AccessMode::pointer ? " pointer " : " texel ");
      CHECK(d.access != AccessMode::storage);
    }
    return text;
  };
  CHECK(modes(1, 512, Layout::nk) == "matmul_subgroup_nk pointer ");
  CHECK(modes(1, 512, Layout::kn) == "matmul_subgroup_kn texel ");
  CHECK(modes(64, 512, Layout::nk) == "matmul_panel texel ");
  CHECK(modes(64, 513, Layout::nk) == "matmul_pack pointer matmul_pack pointer matmul_panel texel ");
}

TEST_CASE("tiles for CPU drivers fit m, and are small enough that every core gets some", "[plan][matmul]") {
  const plan::Traits cpu = cpu_driver();
  auto shape = [&](std::uint64_t m, std::uint64_t n, Layout layout) {
    return select_matmul({m, 512, n, layout}, cpu).value().subgroup;
  };
  for (const Layout layout : {Layout::kn, Layout::nk}) {
    CHECK(shape(1, 4096, layout).rows == 1);
    CHECK(shape(2, 4096, layout).rows == 2);
    CHECK(shape(3, 4096, layout).rows == 3);
    CHECK(shape(5, 4096, layout).rows == 6);
    CHECK(shape(8, 4096, layout).rows == 8);
    CHECK(shape(17, 4096, layout).rows == 10);
    CHECK(shape(64, 4096, layout).rows == 16);
    CHECK(shape(64, 4096, layout).tiles > 1);
    CHECK(shape(1, 256, layout).tiles == 1);
  }
  CHECK(shape(1, 4096, Layout::kn).columns == 4);
  CHECK(shape(1, 256, Layout::kn).columns == 1);
  plan::Traits gathers = cpu;
  gathers.access.general = kernels::AccessMode::pointer;
  CHECK(select_matmul({1, 512, 4096, Layout::nk}, cpu).value().subgroup.columns == 16);
  CHECK(select_matmul({1, 512, 4096, Layout::nk}, gathers).value().subgroup.columns == 8);
}

TEST_CASE("workgroups are whole subgroups of the device, whatever size is simulated", "[plan][matmul]") {
  plan::Traits traits = cpu_driver();
  traits.real_subgroup_size = 8;
  for (const std::uint32_t simulated : {4u, 5u, 7u, 8u}) {
    traits.subgroup_size = simulated;
    for (const MatmulKernel kernel : {MatmulKernel::subgroup, MatmulKernel::panel}) {
      for (const Layout layout : {Layout::kn, Layout::nk}) {
        const MatmulSelection s = select_matmul({33, 64, 1000, layout}, traits, kernel).value();
        CHECK(s.subgroup.group_size == 8 * s.subgroup.tiles);
        if (kernel == MatmulKernel::panel) CHECK(s.subgroup.width % 4 == 0);
      }
    }
  }
}

TEST_CASE("repacked operands live no longer than they have to", "[plan][matmul]") {
  // A chain of products: each weight is unpacked just before it is needed, so that two take turns.
  auto arena = [](std::uint64_t layers) {
    record::Graph graph(std::uint64_t{1} << 32);
    record::ValueId x = graph.import(Shape(32, 256), 0);
    for (std::uint64_t i = 0; i < layers; ++i) {
      const record::ValueId b = graph.import(Shape(256, 257), static_cast<record::ResourceId>(2 * i + 1));
      const auto wide = plan::matmul(graph, x, b, {1.0f, Layout::kn, MatmulKernel::panel});
      REQUIRE(wide);
      const record::ValueId back = graph.import(Shape(257, 256), static_cast<record::ResourceId>(2 * i + 2));
      const auto narrow = plan::matmul(graph, *wide, back, {1.0f, Layout::kn, MatmulKernel::panel});
      REQUIRE(narrow);
      x = *narrow;
    }
    const auto plan = plan::make_plan(graph, cpu_driver());
    REQUIRE(plan);
    CHECK(test::describe(test::check_plan(*plan, graph)) == "");
    return plan->arena_bytes;
  };
  CHECK(arena(8) <= arena(2) + 4096);
}

TEST_CASE("what is repacked is repacked once, before the product, and explained", "[plan][matmul]") {
  plan::Traits traits = cpu_driver();
  const MatmulProblem ragged{80, 61, 70, Layout::nk};
  CHECK(plan::make_plan(product_graph(ragged), traits)->dispatches.size() == 1);
  traits.access.panels = kernels::AccessMode::texel;
  for (const MatmulProblem& p : {MatmulProblem{80, 61, 70, Layout::kn}, MatmulProblem{80, 61, 70, Layout::nk}}) {
    const auto plan = plan::make_plan(product_graph(p), traits);
    REQUIRE(plan);
    REQUIRE(plan->dispatches.size() == 3);
    CHECK(plan->dispatches[0].kernel == kernels::Id::matmul_pack);
    CHECK(plan->dispatches[1].kernel == kernels::Id::matmul_pack);
    CHECK(plan->dispatches[2].kernel == kernels::Id::matmul_panel);
    CHECK(plan->barriers.size() == 1);
    CHECK(contains(explain(p, traits, {}).reason, "both operands are repacked"));
  }
  const MatmulProblem even{40, 32, 52, Layout::kn};
  const auto plan = plan::make_plan(product_graph(even, MatmulKernel::panel), traits);
  REQUIRE(plan);
  REQUIRE(plan->dispatches.size() == 2);
  CHECK(contains(explain(even, traits, MatmulKernel::panel).reason, "the second operand is repacked"));
}

TEST_CASE("the selector does without subgroup operations where there are none", "[plan][matmul]") {
  plan::Traits traits = cpu_driver();
  traits.subgroup_operations = false;
  CHECK(kernel_for({31, 512, 512}, traits) == MatmulKernel::naive);
  CHECK(kernel_for({512, 512, 512}, traits) == MatmulKernel::tiled);
  CHECK(kernel_for({1, 512, 512}, traits) == MatmulKernel::gemv);
  CHECK(select_matmul({4, 4, 4}, traits, MatmulKernel::subgroup).error().code == Errc::unsupported);
}

TEST_CASE("every architecture is offered the tiles that its row of the table has registers for", "[plan][matmul]") {
  constexpr MatmulProblem big{4096, 4096, 4096, Layout::nk};
  for (const plan::MatmulTiles& row : plan::matmul_tiles) {
    plan::Traits traits = gpu();
    traits.vendor = row.vendor;
    traits.architecture = row.architecture;
    traits.cpu = row.vendor == plan::Vendor::cpu;
    INFO(row.source);
    CHECK(&plan::matmul_tiles_of(traits) == &row);
    CHECK(std::strlen(row.source) > 0);
    CHECK(row.tiled <= row.registers / 2);
    if (!traits.cpu) CHECK(row.packed_gemv <= row.registers / 4);
    for (const std::uint64_t size : {64u, 256u, 1024u, 4096u}) {
      traits.subgroup_operations = false;  // a CPU driver has other kernels then
      const MatmulSelection s = select_matmul({size, size, size, Layout::nk}, traits).value();
      REQUIRE(s.kernel == MatmulKernel::tiled);
      CHECK(s.tiles.micro_m * s.tiles.micro_n <= row.tiled);
    }
    const auto largest = select_matmul(big, traits, {MatmulKernel::tiled, 1});
    CHECK(static_cast<bool>(largest) == (row.tiled >= 64 || traits.cpu));
    if (!largest) CHECK(contains(largest.error().message, row.source));
    for (const DType type : {DType::f32, DType::f16, DType::q8_0, DType::q4_0}) {
      const MatmulSelection s = select_matmul({8, 4096, 4096, Layout::nk, type}, traits, MatmulKernel::gemv).value();
      CHECK(s.gemv.rows * s.gemv.columns <= (type == DType::f32 ? 32 : row.packed_gemv));
      CHECK(s.gemv.columns >= 2);
    }
  }
}

TEST_CASE("kernels that count on all lanes of a subgroup are offered only where all are known to run",
          "[plan][matmul]") {
  for (plan::Traits traits : {gpu(), cpu_driver()}) {
    traits.exact_subgroups = false;
    for (const Layout layout : {Layout::kn, Layout::nk}) {
      const MatmulProblem p{64, 512, 512, layout};
      for (const MatmulKernel kernel : {MatmulKernel::subgroup, MatmulKernel::panel}) {
        for (std::size_t variant = 0; variant <= matmul_variants(kernel, layout); ++variant) {
          const auto refused = select_matmul(p, traits, {kernel, variant});
          REQUIRE_FALSE(refused);
          CHECK(refused.error().code == Errc::unsupported);
          CHECK(contains(refused.error().message, "neither lets pipelines require one nor has one only"));
        }
        // Nor does a measurement reach them, wherever it comes from.
        const plan::Tuning tuning = plan::forcing(p, {kernel, 1}, traits.access);
        traits.tuning = &tuning;
        CHECK_FALSE(by_subgroups(select_matmul(p, traits).value()));
        traits.tuning = nullptr;
      }
      for (const std::uint64_t m : {1u, 2u, 31u, 512u}) {
        CHECK_FALSE(by_subgroups(select_matmul({m, 512, 512, layout}, traits).value()));
      }
    }
  }
}

TEST_CASE("the pipelines of such kernels say how many lanes they count on", "[plan][matmul]") {
  plan::Traits traits = cpu_driver();
  traits.real_subgroup_size = 8;
  for (const std::uint32_t simulated : {8u, 4u}) {
    traits.subgroup_size = simulated;
    for (const Layout layout : {Layout::kn, Layout::nk}) {
      for (const MatmulKernel kernel : {MatmulKernel::subgroup, MatmulKernel::panel}) {
        const auto plan = plan::make_plan(product_graph({64, 512, 512, layout}, kernel), traits);
        REQUIRE(plan);
        const plan::Dispatch& d = plan->dispatches.back();
        CHECK(constant(d, "subgroup_lanes") == 8);
        CHECK(constant(d, "group_size") % 8 == 0);
      }
    }
  }
}

TEST_CASE("the selector can do without looking at m", "[plan][matmul]") {
  for (const plan::Traits& traits : {gpu(), cpu_driver()}) {
    for (const Layout layout : {Layout::kn, Layout::nk}) {
      MatmulProblem one{1, 512, 512, layout};
      one.batch_invariant = true;
      const MatmulSelection want = select_matmul(one, traits).value();
      for (const std::uint64_t m : {2u, 7u, 8u, 64u, 5000u}) {
        MatmulProblem more = one;
        more.m = m;
        const MatmulSelection got = select_matmul(more, traits).value();
        CHECK(got.kernel == want.kernel);
        CHECK(got.tiles.tile_m == want.tiles.tile_m);
        CHECK(got.k_chunk == want.k_chunk);
      }
    }
  }
}

TEST_CASE("the selector takes smaller tiles on smaller devices and for smaller products", "[plan][matmul]") {
  const MatmulProblem large{4096, 4096, 4096};
  CHECK(select_matmul(large, gpu())->tiles.tile_m == 128);
  CHECK(select_matmul({64, 4096, 64}, gpu())->tiles.tile_m == 32);
  plan::Traits small = gpu();
  small.max_group_invocations = 128;
  CHECK(select_matmul(large, small)->tiles.tile_m == 64);
  small.max_group_invocations = 64;
  CHECK(select_matmul(large, small)->tiles.tile_m == 32);
  small = gpu();
  small.max_shared_bytes = 16384;
  CHECK(select_matmul(large, small)->tiles.tile_m == 128);
  small.max_shared_bytes = 16383;
  CHECK(select_matmul(large, small)->tiles.tile_m == 64);
  small.max_shared_bytes = 6144;
  CHECK(select_matmul(large, small)->tiles.tile_m == 32);
}

TEST_CASE("the selector falls back to naive where nothing else fits", "[plan][matmul]") {
  plan::Traits small = gpu();
  small.max_shared_bytes = 1024;
  CHECK(kernel_for({512, 512, 512}, small) == MatmulKernel::naive);
  small = gpu();
  small.max_group_invocations = 8;
  CHECK(kernel_for({512, 512, 512}, small) == MatmulKernel::naive);
  small.max_shared_bytes = 15;
  CHECK(kernel_for({1, 512, 512}, small) == MatmulKernel::naive);
  CHECK(contains(explain({1, 512, 512}, small, MatmulKernel::automatic).reason, "shared memory"));
}

TEST_CASE("a forced kernel is obeyed", "[plan][matmul]") {
  for (const MatmulKernel kernel : {MatmulKernel::naive, MatmulKernel::gemv, MatmulKernel::tiled}) {
    for (const plan::Traits& traits : {gpu(), cpu_driver()}) {
      const auto selection = select_matmul({1, 7, 9}, traits, kernel);
      REQUIRE(selection);
      CHECK(selection->kernel == kernel);
      CHECK(std::string(selection->reason) == "forced");
    }
  }
}

TEST_CASE("a forced kernel the device is too small for is refused with the numbers", "[plan][matmul]") {
  plan::Traits small = gpu();
  small.max_shared_bytes = 8;
  const auto gemv = select_matmul({1, 64, 64}, small, MatmulKernel::gemv);
  REQUIRE_FALSE(gemv);
  CHECK(gemv.error().code == Errc::unsupported);
  CHECK(contains(gemv.error().message, "8 bytes"));
  const auto tiled = select_matmul({64, 64, 64}, small, MatmulKernel::tiled);
  REQUIRE_FALSE(tiled);
  CHECK(tiled.error().code == Errc::unsupported);
  CHECK(contains(tiled.error().message, "1024 invocations"));

  const auto plan = plan::make_plan(product_graph({64, 64, 64}, MatmulKernel::tiled), small);
  REQUIRE_FALSE(plan);
  CHECK(plan.error().code == Errc::unsupported);
}

TEST_CASE("every selection keeps the rules, for every kernel, layout, device and allowance", "[plan][matmul]") {
  constexpr std::array<std::uint64_t, 14> ks{1, 3, 4, 5, 63, 64, 65, 111, 255, 1023, 4099, 479983, 479999, 1000003};
  constexpr std::array<std::array<std::uint64_t, 2>, 7> sizes{
      {{1, 1}, {1, 70}, {1, 4096}, {2, 5}, {16, 17}, {70, 33}, {1000, 1000}}};
  using kernels::AccessMode;
  constexpr std::array<plan::Access, 4> accesses{{{AccessMode::storage, AccessMode::storage},
                                                  {AccessMode::texel, AccessMode::texel},
                                                  {AccessMode::pointer, AccessMode::texel},
                                                  {AccessMode::pointer, AccessMode::pointer}}};
  std::size_t devices = 0, checked = 0;
  for (const bool cpu : {false, true}) {
    for (const std::uint32_t most : {1u, 8u, 24u, 64u, 128u, 256u, 1024u}) {
      for (const std::uint32_t shared : {16u, 1000u, 4096u, 16384u, 49152u}) {
        for (const std::uint64_t loops :
             {std::uint64_t{16}, std::uint64_t{1000}, std::uint64_t{60000}, ~std::uint64_t{0}}) {
          plan::Traits traits;
          traits.cpu = cpu;
          traits.max_group_invocations = most;
          traits.max_shared_bytes = shared;
          traits.max_loop_iterations = loops;
          traits.subgroup_size = cpu ? (shared < 4096 ? 4 : 8) : 32;
          traits.access = accesses[devices++ * 7 / 4 % accesses.size()];  // 7 / 4: not always with the same `loops`
          for (const std::uint64_t k : ks) {
            for (const auto& [m, n] : sizes) {
              for (const Layout layout : {Layout::kn, Layout::nk}) {
                for (const MatmulKernel kernel : {MatmulKernel::automatic, MatmulKernel::naive, MatmulKernel::gemv,
                                                  MatmulKernel::tiled, MatmulKernel::subgroup, MatmulKernel::panel}) {
                  if (kernel == MatmulKernel::gemv && m > 8) continue;
                  const MatmulProblem problem{m, k, n, layout};
                  const auto s = select_matmul(problem, traits, kernel);
                  if (!s) continue;
                  ++checked;
                  const std::string rule = broken_rule(*s, problem, traits);
                  if (rule.empty()) continue;
                  FAIL("not so: " << rule << ": " << m << "x" << k << "x" << n << " " << to_string(layout) << ", "
                                  << to_string(s->kernel) << ", " << most << " invocations, " << shared
                                  << " shared bytes, " << loops << " iterations, k_chunk " << s->k_chunk);
                }
              }
            }
          }
        }
      }
    }
  }
  CHECK(checked > 50000);
}

TEST_CASE("an allowance too small for any chunk still ends, four at a time", "[plan][matmul]") {
  plan::Traits traits = gpu();
  for (const std::uint64_t loops : {0u, 1u, 2u}) {
    traits.max_loop_iterations = loops;
    for (const MatmulKernel kernel : {MatmulKernel::naive, MatmulKernel::tiled}) {
      const auto s = select_matmul({64, 1001, 64}, traits, kernel);
      REQUIRE(s);
      CHECK(s->k_chunk >= 4);
      CHECK(s->k_chunk % 4 == 0);
    }
  }
}

TEST_CASE("k of packed weights is split between vec4s of words", "[plan][matmul]") {
  plan::Traits traits = cpu_driver();
  for (const auto& [type, chunk] : {std::pair{DType::f32, 4u}, std::pair{DType::f16, 8u}, std::pair{DType::bf16, 8u},
                                    std::pair{DType::q8_0, 16u}, std::pair{DType::q4_0, 32u}}) {
    for (const std::uint64_t loops : {1u, 16u, 24u, 100u}) {
      traits.max_loop_iterations = loops;
      for (const std::uint64_t k : {32u, 96u, 2080u, 40032u}) {
        const auto s = select_matmul({1, k, 5, Layout::nk, type}, traits, MatmulKernel::subgroup);
        REQUIRE(s);
        CHECK((s->k_chunk == k || s->k_chunk % chunk == 0));
        CHECK(s->k_chunk != 0);
      }
    }
  }
}

TEST_CASE("the dispatches of a split k follow on each other and cover k once", "[plan][matmul]") {
  for (const MatmulKernel kernel : {MatmulKernel::naive, MatmulKernel::gemv, MatmulKernel::tiled}) {
    plan::Traits traits = gpu();
    traits.max_loop_iterations = 40;
    traits.max_group_invocations = 64;
    const MatmulProblem problem{1, 40003, 37};
    const record::Graph graph = product_graph(problem, kernel);
    const auto plan = plan::make_plan(graph, traits);
    REQUIRE(plan);
    CHECK(plan->dispatches.size() > 1);
    CHECK(plan->barriers.size() == plan->dispatches.size() - 1);
    std::uint32_t at = 0;
    std::uint32_t combined = 0;
    for (const plan::Dispatch& d : plan->dispatches) {
      if (d.kernel == kernels::Id::matmul_combine) {
        CHECK(d.get(kernels::matmul_combine::accumulate) == (combined == 0 ? 0u : 1u));
        ++combined;
        continue;
      }
      kernels::MatmulParams params;
      std::memcpy(&params, d.push.data(), sizeof params);
      CHECK(params.k_begin == at);
      CHECK(d.get(kernels::matmul_naive::accumulate) == (at == 0 || params.k_slice < params.k_count ? 0u : 1u));
      at += params.k_count;
    }
    CHECK(at == problem.k);
  }
}

TEST_CASE("explain says what the plan does", "[plan][matmul]") {
  plan::Traits short_loops = gpu();
  short_loops.max_loop_iterations = 100;
  for (const plan::Traits& traits : {gpu(), cpu_driver(), short_loops}) {
    const MatmulProblem problems[] = {{1, 64, 64},  {2, 3, 4},     {64, 64, 64}, {300, 200, 100},
                                      {1, 5000, 3}, {30, 9000, 4}, {2, 0, 3},    {100, 0, 200},
                                      {0, 5, 5},    {5, 5, 0},     {1, 0, 9999}, {5, 1, 5000}};
    for (const MatmulProblem& p : problems) {
      INFO(p.m << "x" << p.k << "x" << p.n);
      const MatmulChoice choice = explain(p, traits, MatmulKernel::automatic);
      const auto plan = plan::make_plan(product_graph(p), traits);
      REQUIRE(plan);
      CHECK(choice.dispatches == plan->dispatches.size());
      CHECK_FALSE(choice.reason.empty());
      if (plan->dispatches.empty()) {
        CHECK(choice.groups == 0);
        continue;
      }
      const auto& grid = plan->dispatches[0].groups;
      CHECK(choice.groups == std::uint64_t{grid[0]} * grid[1] * grid[2]);
      if (p.k != 0) CHECK(contains(kernels::get(plan->dispatches[0].kernel).name, to_string(choice.kernel)));
      CHECK(contains(choice.reason, "split") == (plan->dispatches.size() > 1));
    }
  }
}

TEST_CASE("few tiles and a long k make slices side by side", "[plan][matmul]") {
  const auto few = select_matmul({64, 8192, 64}, gpu());
  REQUIRE(few);
  CHECK(few->kernel == MatmulKernel::tiled);
  CHECK(few->slices > 4);
  CHECK(few->k_chunk == 8192);
  CHECK(few->slices * few->k_slice >= 8192);
  CHECK(select_matmul({1, 65536, 16, Layout::nk}, gpu())->slices > 4);
  CHECK(select_matmul({8, 4096, 64, Layout::kn}, gpu())->slices > 1);
  CHECK(select_matmul({64, 256, 64}, gpu())->slices == 1);
  CHECK(select_matmul({4096, 4096, 4096}, gpu())->slices == 1);
  MatmulProblem invariant{64, 8192, 64};
  invariant.batch_invariant = true;
  CHECK(select_matmul(invariant, gpu())->slices == 1);

  const MatmulChoice choice = explain({64, 8192, 64}, gpu(), MatmulKernel::automatic);
  CHECK(choice.slices == few->slices);
  CHECK(choice.dispatches == 2);
  CHECK(choice.groups == few->groups * few->slices);
  CHECK(contains(choice.reason, "slices side by side"));
}

TEST_CASE("slices and chunks of k together give the product that was recorded", "[plan][matmul]") {
  for (const std::uint64_t loops : {std::uint64_t{40}, std::uint64_t{60000}}) {
    for (const Layout layout : {Layout::kn, Layout::nk}) {
      for (const std::uint64_t m : {1u, 3u, 20u}) {
        plan::Traits traits = gpu();
        traits.max_group_invocations = 64;
        traits.max_loop_iterations = loops;
        const record::Graph graph = product_graph({m, 9000, 8, layout});
        const auto plan = plan::make_plan(graph, traits);
        REQUIRE(plan);
        CHECK(plan->dispatches.back().kernel == kernels::Id::matmul_combine);
        INFO(plan::dump(*plan, graph));
        CHECK(test::describe(test::check_plan(*plan, graph)) == "");
      }
    }
  }
}

TEST_CASE("explain gives a reason for every way of choosing nothing", "[plan][matmul]") {
  plan::Traits small = gpu();
  small.max_shared_bytes = 8;
  CHECK(contains(explain({0, 3, 4}, gpu(), MatmulKernel::automatic).reason, "nothing runs"));
  CHECK(contains(explain({3, 0, 4}, gpu(), MatmulKernel::automatic).reason, "zeros"));
  CHECK(contains(explain({9, 3, 4}, gpu(), MatmulKernel::gemv).reason, "up to 8 rows"));
  CHECK(contains(explain({3, 3, 4}, small, MatmulKernel::tiled).reason, "shared memory"));
  CHECK(explain({3, 3, 4}, small, MatmulKernel::tiled).kernel == MatmulKernel::automatic);
}

TEST_CASE("explain does not take a product past 64 bits for a small one", "[plan][matmul]") {
  constexpr std::uint64_t two_to_32 = std::uint64_t{1} << 32;
  for (const MatmulProblem& p : {MatmulProblem{two_to_32, two_to_32, two_to_32}, MatmulProblem{1, two_to_32, two_to_32},
                                 MatmulProblem{two_to_32, 16, two_to_32}, MatmulProblem{2, ~std::uint64_t{0}, 2}}) {
    const MatmulChoice choice = explain(p, gpu(), MatmulKernel::automatic);
    INFO(p.m << "x" << p.k << "x" << p.n << ": " << to_string(choice.kernel) << ", " << choice.reason);
    CHECK(choice.kernel == MatmulKernel::automatic);
    CHECK(choice.dispatches == 0);
  }
}
