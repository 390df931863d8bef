// Random modules, specialized by the driver, by freeze() and by specialize(): they compute the same.
#include "runner.hpp"

#include "spirv/prune.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace brontes;
using namespace brontes::test;

namespace {

// random_shader.py has 64 words of input and 8 of output for each of up to 32 invocations.
Contents contents(std::uint32_t seed) {
  Contents all{Words(64), Words(32 * 8, 0xdeadbeef), Words(16)};
  for (std::uint32_t i = 0; i < all[0].size(); ++i) all[0][i] = i % 3 == 0 ? i : (i + 1) * 0x9e3779b9u * (seed + 1);
  for (std::uint32_t i = 0; i < all[2].size(); ++i) all[2][i] = i + seed % 3;
  return all;
}

}  // namespace

TEST_CASE("pruned modules of random shaders compute what unpruned ones do", "[execution]") {
  Runner runner;
  std::size_t executed = 0;
  std::size_t that_wrote = 0;  // some return early
  std::uint32_t seed = 0;
  for (const Module& module : corpus()) {
    ++seed;
    if (!module.is_random() || !runner.can_run(module)) continue;
    ++executed;
    const auto values = random_values(module, seed);
    const Words frozen = spirv::freeze({module.words.data(), module.words.size()}, {values.data(), values.size()});
    const Contents before = contents(seed);
    INFO(described(module, values));
    const Contents expected = runner.run(frozen, {}, before);
    CHECK(runner.run(spirv::prune(frozen), {}, before) == expected);
    for (const std::string& message : runner.take_messages()) FAIL_CHECK(message);
    if (expected[1] != before[1]) ++that_wrote;
    if (seed % 3 != 0) continue;
    CHECK(runner.run(module.words, values, before) == expected);
    // The layer's own specialization of vectors is not valid SPIR-V to it.
    runner.take_messages();
  }
  CHECK(that_wrote > executed * 3 / 4);
  CHECK(executed >= 150);
}
