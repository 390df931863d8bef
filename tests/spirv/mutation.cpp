// Modules with broken words: whatever comes out, nothing is read out of bounds, and neither time nor memory run away.
#include "corpus.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <iterator>
#include <random>

using namespace brontes;
using namespace brontes::test;

namespace {

Words specialized(const Words& words) {
  constexpr spirv::ConstantValue values[] = {{0, 1}, {1, 0}, {2, 3}, {3, 1}, {80, 2}, {90, 4}};
  return spirv::specialize({words.data(), words.size()}, {values, std::size(values)});
}

// One or more words, the header's among them, or bits of them; sometimes the end is missing.
void mutate(Words& words, std::mt19937& random) {
  const auto below = [&random](std::size_t bound) { return static_cast<std::uint32_t>(random() % bound); };
  if (below(8) == 0) words.resize(below(words.size()));
  const std::uint32_t changes = 1 + below(4);
  for (std::uint32_t i = 0; i < changes && !words.empty(); ++i) {
    std::uint32_t& word = words[below(words.size())];
    switch (below(8)) {
      case 0: word = 0; break;
      case 1: ++word; break;
      case 2: --word; break;
      case 3: word ^= 1u << below(32); break;
      case 4: word = words[below(words.size())]; break;
      case 5: word = (word & 0xffff0000) | below(420); break;       // another instruction
      case 6: word = (word & 0x0000ffff) | below(12) << 16; break;  // of another length
      default: word = below(0xffffffff);
    }
  }
}

}  // namespace

TEST_CASE("specializing broken modules does no harm", "[validity]") {
  const int repeats = soak() ? 500 : 100;
  std::mt19937 random(3);
  std::size_t unchanged = 0;
  std::size_t all = 0;
  for (const Module& module : corpus()) {
    for (int i = 0; i < repeats; ++i) {
      Words words = module.words;
      mutate(words, random);
      // Without room behind its end, so that a sanitizer sees what reads there.
      words.shrink_to_fit();
      const Words result = specialized(words);
      if (result.size() > 20 * words.size() + 64) FAIL_CHECK(module.name << " grew to " << result.size() << " words");
      if (result == words) ++unchanged;
      ++all;
    }
  }
  // Some are found out, and some are not.
  CHECK(unchanged > 0);
  CHECK(unchanged < all);
}

TEST_CASE("what is no SPIR-V comes back unchanged", "[validity]") {
  const Words& whole = corpus().front().words;
  const auto is_unchanged = [](const Words& words) { return specialized(words) == words; };
  Words swapped = whole;
  swapped[0] = 0x03022307;
  CHECK(is_unchanged(swapped));
  Words boundless = whole;
  boundless[3] = 0x400000;
  CHECK(is_unchanged(boundless));
  Words endless = whole;
  endless.push_back(2u << 16);
  CHECK(is_unchanged(endless));
  for (std::ptrdiff_t size = 0; size <= 6; ++size) CHECK(is_unchanged(Words(whole.begin(), whole.begin() + size)));
  CHECK_FALSE(is_unchanged(whole));
}
