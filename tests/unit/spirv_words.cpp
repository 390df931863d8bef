// The library's modules, compressed: they come out as they went in, and broken ones do no harm.
#include "spirv/words.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>

using namespace brontes;

namespace {

using Bytes = std::vector<std::uint8_t>;
using Words = std::vector<std::uint32_t>;

constexpr const char* mode_names[] = {"storage", "texel", "pointer"};
static_assert(std::size(mode_names) == kernels::access_modes);

void each_module(const std::function<void(kernels::Id, kernels::AccessMode)>& look) {
  for (std::size_t i = 0; i < kernels::count; ++i) {
    for (std::size_t mode = 0; mode < kernels::access_modes; ++mode) {
      const auto id = static_cast<kernels::Id>(i);
      const auto access = static_cast<kernels::AccessMode>(mode);
      if (kernels::get(id).has(access)) look(id, access);
    }
  }
}

// Names and other debug information are not embedded.
bool is_debug(std::uint32_t opcode) { return (opcode >= 2 && opcode <= 8) || opcode == 317 || opcode == 330; }

Words without_debug(const Words& module) {
  Words kept(module.begin(), module.begin() + 5);
  for (std::size_t at = 5; at < module.size();) {
    const std::size_t length = module[at] >> 16;
    REQUIRE(length != 0);
    REQUIRE(at + length <= module.size());
    const auto from = module.begin() + static_cast<std::ptrdiff_t>(at);
    if (!is_debug(module[at] & 0xffff)) kept.insert(kept.end(), from, from + static_cast<std::ptrdiff_t>(length));
    at += length;
  }
  return kept;
}

// unpack() into the middle of a larger range, whose other bytes must stay.
bool unpack_guarded(const Bytes& packed, std::size_t size) {
  constexpr std::size_t guard = 64;
  Bytes out(size + 2 * guard, 0xa5);
  const bool whole = spirv::unpack({packed.data(), packed.size()}, out.data() + guard, size);
  for (std::size_t i = 0; i < guard; ++i) {
    if (out[i] != 0xa5 || out[out.size() - 1 - i] != 0xa5) FAIL("a byte outside was written");
  }
  return whole;
}

}  // namespace

TEST_CASE("a kernel's words are those of the module that was compiled, without debug information", "[words]") {
  const char* folder = std::getenv("BRONTES_KERNELS");
  if (folder == nullptr) SKIP("BRONTES_KERNELS names no folder with the compiled modules");
  each_module([&](kernels::Id id, kernels::AccessMode mode) {
    const kernels::Kernel& kernel = kernels::get(id);
    const std::string path =
        std::string(folder) + "/" + kernel.name + "_" + mode_names[static_cast<std::size_t>(mode)] + ".spv";
    INFO(path);
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    Words compiled(text.size() / sizeof(std::uint32_t));
    std::memcpy(compiled.data(), text.data(), compiled.size() * sizeof(std::uint32_t));
    REQUIRE(compiled.size() > 5);
    const Words words = spirv::words(kernel, mode);
    CHECK(words.size() == kernel.words(mode).size);
    CHECK((words == without_debug(compiled)));
  });
}

TEST_CASE("compressed, the modules take less than a quarter of the bytes", "[words]") {
  std::size_t packed = 0, whole = 0;
  each_module([&](kernels::Id id, kernels::AccessMode mode) {
    packed += kernels::packed(id, mode).size;
    whole += kernels::get(id).words(mode).size * sizeof(std::uint32_t);
  });
  INFO(whole << " bytes of SPIR-V in " << packed);
  CHECK(4 * packed < whole);
}

TEST_CASE("a module that a kernel does not have is empty", "[words]") {
  CHECK(kernels::packed(kernels::Id::matmul_naive, kernels::AccessMode::texel).size == 0);
  CHECK(spirv::words(kernels::get(kernels::Id::matmul_naive), kernels::AccessMode::texel).empty());
}

TEST_CASE("a kernel that is not compressed has its own words", "[words]") {
  const Words own{1, 2, 3};
  kernels::Kernel kernel{};
  kernel.modules[0] = {own.data(), own.size()};
  CHECK(spirv::words(kernel) == own);
}

TEST_CASE("compressed bytes that are cut short or changed are refused or give other bytes, and do no harm", "[words]") {
  std::mt19937 random(5);
  each_module([&](kernels::Id id, kernels::AccessMode mode) {
    const kernels::View<std::uint8_t> view = kernels::packed(id, mode);
    const std::size_t size = kernels::get(id).words(mode).size * sizeof(std::uint32_t);
    if (size > 20000) return;
    const Bytes packed(view.begin(), view.end());
    INFO(kernels::get(id).name);
    CHECK(unpack_guarded(packed, size));
    unpack_guarded(packed, size / 2);  // may end within a copy, which is then refused
    // A stream ends with a mark that is no copy of anything.
    CHECK_FALSE(unpack_guarded(packed, size + 1));
    for (std::size_t kept : {std::size_t{0}, std::size_t{1}, std::size_t{5}, packed.size() / 2, packed.size() - 16}) {
      CHECK_FALSE(unpack_guarded(Bytes(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(kept)), size));
    }
    for (int run = 0; run < 50; ++run) {
      Bytes changed = packed;
      for (int change = 0; change <= run % 3; ++change) {
        changed[random() % changed.size()] ^= static_cast<std::uint8_t>(1u << random() % 8);
      }
      unpack_guarded(changed, size);
    }
  });
}
