// Other people's modules, specialized: still valid.
#include "corpus.hpp"
#include "spirv/prune.hpp"
#include "support/spirv_validator.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstring>
#include <set>

using namespace brontes;
using namespace brontes::test;

TEST_CASE("specialized modules of any shader are valid SPIR-V, pruned or not", "[validity]") {
  const SpirvValidator validator;
  std::uint32_t seed = 0;
  std::size_t pruned_modules = 0;
  std::size_t modules = 0;
  for (const Module& module : corpus()) {
    for (int i = 0; i < 2; ++i) {
      const auto values = random_values(module, seed++);
      const Words frozen = spirv::freeze({module.words.data(), module.words.size()}, {values.data(), values.size()});
      const Words pruned = spirv::prune(frozen);
      INFO(described(module, values));
      if (i == 0) CHECK(validator.complaint(frozen) == "");
      ++modules;
      if (pruned == frozen) continue;
      ++pruned_modules;
      CHECK(validator.complaint(pruned) == "");
    }
  }
  INFO(pruned_modules << " of " << modules << " were pruned");
  CHECK(pruned_modules > modules * 3 / 4);
}

TEST_CASE("what instructions do besides their result survives pruning", "[validity]") {
  // The instruction that makes an index non-uniform is a copy, and that which prints has no result.
  constexpr std::uint32_t op_copy_object = 83, op_decorate = 71, decoration_non_uniform = 5300, op_ext_inst = 12;
  std::size_t copies = 0;
  std::size_t prints = 0;
  for (const Module& module : corpus()) {
    const bool is_images = module.name == "images.comp vulkan1.3";
    if (!is_images && module.name != "subgroups.comp vulkan1.3") continue;
    const spirv::ConstantValue values[] = {{0, 9}};
    const Words words = spirv::specialize({module.words.data(), module.words.size()}, {values, 1});
    CHECK(words.size() < module.words.size());
    std::set<std::uint32_t> non_uniform;
    std::uint32_t print_set = 0;
    for (std::size_t at = 5; at < words.size(); at += words[at] >> 16) {
      const std::uint32_t op = words[at] & 0xffff;
      if (op == op_decorate && words[at + 2] == decoration_non_uniform) non_uniform.insert(words[at + 1]);
      if (op == op_copy_object) copies += non_uniform.count(words[at + 2]);
      if (op == 11 && std::memcmp(&words[at + 2], "NonSemantic", 11) == 0) print_set = words[at + 1];
      if (op == op_ext_inst && words[at + 3] == print_set) ++prints;
    }
  }
  CHECK(copies == 1);
  CHECK(prints == 2);
}
