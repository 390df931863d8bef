// What must hold with every vendor's compiler. Run once for each by `meson test --suite gpu-compilers`.
#include "cases.hpp"
#include "fixture.hpp"
#include "ops/matmul_coopmat.hpp"
#include "vk/pipelines.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

const bool brontes::test::radv_only = false;

namespace {

using brontes::test::compiler;
using kernel_report::Case;
using kernel_report::Figures;

const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    auto made = kernel_report::all_cases(compiler().traits());
    if (!made) FAIL(made.error().message);
    return *made;
  }();
  return all;
}

std::uint32_t lanes_of(const Case& c) {
  return brontes::vk::required_lanes(brontes::kernels::get(c.kernel), {c.constants.data(), c.constants.size()});
}

bool by_matrix_units(const Case& c) { return c.kernel == brontes::kernels::Id::matmul_coopmat; }

bool matrix_units_offered() {
  brontes::plan::MatmulProblem large{4096, 4096, 4096};
  large.f16_inputs = true;
  return brontes::plan::coopmat_refusal(large, compiler().traits()) == nullptr;
}

struct MatrixInstructions {
  std::size_t all = 0, in_loop = 0;  // of the program, and of the loop that has most of them
};

// v_wmma, hmma and dpas. A loop is what lies between a label (`BB5:`, `L7:`, `block.u 3 L7`) and a branch back to it.
MatrixInstructions matrix_instructions(const std::string& assembly) {
  std::vector<std::size_t> so_far;  // before each line
  std::map<std::string, std::size_t> labels;
  MatrixInstructions found;
  for (std::size_t at = 0; at < assembly.size();) {
    const std::size_t end = std::min(assembly.find('\n', at), assembly.size());
    const std::string line = assembly.substr(at, end - at);
    at = end + 1;
    std::vector<std::string> words;
    for (std::size_t i = 0; i < line.size();) {
      const std::size_t begin = line.find_first_not_of(" \t,", i);
      if (begin == std::string::npos) break;
      i = std::min(line.find_first_of(" \t,", begin), line.size());
      words.push_back(line.substr(begin, i - begin));
    }
    if (words.empty()) continue;
    auto has = [&](const char* name) { return line.find(name) != std::string::npos; };
    if (words[0].back() == ':') labels[words[0].substr(0, words[0].size() - 1)] = found.all;
    if (words[0].compare(0, 5, "block") == 0 && words.size() > 2) labels[words[2]] = found.all;
    if (has("v_wmma") || has("hmma.") || has("dpas")) ++found.all;
    if (!has("branch") && !has("bra ") && !has("while") && !has("jmpi")) continue;
    for (const std::string& word : words) {
      const auto label = labels.find(word);
      if (label != labels.end()) found.in_loop = std::max(found.in_loop, found.all - label->second);
    }
  }
  return found;
}

// Which compiler this is, by its name in tools/with-driver.
std::string target() {
  const char* name = std::getenv("BRONTES_GPU_TARGET");
  return name == nullptr ? "" : name;
}

}  // namespace

TEST_CASE("every pipeline compiles, and none that the selector offers spills", "[gpu-compilers]") {
  REQUIRE(cases().size() >= 125);
  for (const Case& c : cases()) {
    INFO(c.name);
    const auto figures = compiler().compile(brontes::kernels::get(c.kernel), c.constants);
    if (!figures) {
      FAIL_CHECK(figures.error().message);
      continue;
    }
    CHECK(figures->usage.instructions > 0);
    CHECK(figures->usage.registers > 0);
    // Kernels for CPU drivers, and matrix units that the selector does not take: a GPU runs them only if told to.
    if (lanes_of(c) != 0 && !(by_matrix_units(c) && matrix_units_offered())) continue;
    CHECK(figures->usage.spills == 0);
    CHECK(figures->usage.scratch_bytes == 0);
  }
}

TEST_CASE("kernels that count on the lanes of a subgroup are compiled for so many", "[gpu-compilers]") {
  const brontes::plan::Traits traits = compiler().traits();
  REQUIRE(traits.exact_subgroups);
  std::size_t count = 0;
  for (const Case& c : cases()) {
    const std::uint32_t lanes = lanes_of(c);
    if (lanes == 0) continue;
    count += by_matrix_units(c) ? 0 : 1;
    INFO(c.name);
    CHECK(lanes == (by_matrix_units(c) ? traits.matrices.lanes : traits.subgroup_size));
    const auto figures = compiler().compile(brontes::kernels::get(c.kernel), c.constants);
    REQUIRE(figures);
    CHECK(figures->subgroup_size == lanes);
  }
  CHECK(count == 3);
}

TEST_CASE("gemv unpacks and multiplies 128 weights of q4_0 in 500 instructions on RDNA2", "[gpu-compilers]") {
  if (target() != "amd-navi21") SKIP("for amd-navi21, whose assembly is read");
  bool found = false;
  for (const Case& c : cases()) {
    if (c.name != "matmul/gemv/q4_0/1") continue;
    found = true;
    const auto figures = compiler().compile(brontes::kernels::get(c.kernel), c.constants);
    REQUIRE(figures);
    // A turn of the loop: four words of each of four rows of W, a multiply-add for each weight, and one for each word.
    CHECK(figures->isa.hot_loop.fma >= 112);
    CHECK(figures->isa.hot_loop.total <= 500);
  }
  CHECK(found);
}

TEST_CASE("matrix units do the work of the loop over k where there are any", "[gpu-compilers]") {
  namespace kernel = brontes::kernels::matmul_coopmat;
  const std::vector<std::string> with{"nvidia-ada", "amd-navi31", "amd-gfx1201", "intel-dg2", "intel-lnl"};
  const brontes::plan::Traits traits = compiler().traits();
  const bool expected = std::find(with.begin(), with.end(), target()) != with.end();
  CHECK(static_cast<bool>(traits.matrices) == expected);
  const brontes::kernels::Kernel& coopmat = brontes::kernels::get(brontes::kernels::Id::matmul_coopmat);
  if (!expected) return;
  if (!coopmat.has(brontes::kernels::AccessMode::storage)) SKIP("this build has no kernel for matrix units");
  std::size_t count = 0;
  for (const Case& c : cases()) {
    if (!by_matrix_units(c)) continue;
    ++count;
    INFO(c.name);
    const auto figures = compiler().compile(coopmat, c.constants);
    REQUIRE(figures);
    auto constant = [&](std::uint32_t id) {
      std::size_t i = 0;
      while (coopmat.constants[i].id != id) ++i;
      return c.constants[i];
    };
    const std::size_t products = std::size_t{constant(kernel::matrices_m)} * constant(kernel::matrices_n) *
                                 (brontes::plan::matmul_coopmat_k / constant(kernel::matrix_k));
    const MatrixInstructions found = matrix_instructions(figures->assembly);
    CHECK(found.all >= products);
    CHECK(found.in_loop == found.all);
    if (traits.vendor == brontes::plan::Vendor::amd) CHECK(figures->isa.hot_loop.fma >= products);
  }
  CHECK(count >= 3 * 10);
}
