// What must hold with every vendor's compiler. Run once for each by `meson test --suite gpu-compilers`.
#include "cases.hpp"
#include "fixture.hpp"
#include "vk/pipelines.hpp"

#include <catch2/catch_test_macros.hpp>

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
    if (lanes_of(c) != 0) continue;  // for CPU drivers; a GPU runs them only if told to
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
    ++count;
    INFO(c.name);
    CHECK(lanes == traits.subgroup_size);
    const auto figures = compiler().compile(brontes::kernels::get(c.kernel), c.constants);
    REQUIRE(figures);
    CHECK(figures->subgroup_size == lanes);
  }
  CHECK(count == 3);
}
